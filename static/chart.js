'use strict';
// The visits of a link on its manage page: as a sentence, as bars, and as a table
// that says the same.

const chartDays = 30;

function svg(name, attributes) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function counted(n, noun) {
  return `${n} ${noun}${n === 1 ? '' : 's'}`;
}

// lastDays are the last days of UTC, those without a visit too.
function lastDays(days, now) {
  const visits = new Map(days.map((day) => [day.day, day.visits]));
  return Array.from({length: chartDays}, (_, i) => {
    const day = new Date(now - (chartDays - 1 - i) * 86_400_000).toISOString().slice(0, 10);
    return {day, visits: visits.get(day) ?? 0};
  });
}

// bars draws a bar for each day. The table has the numbers, so this is a picture.
function bars(days) {
  const width = 10, height = 80;
  const most = Math.max(1, ...days.map((day) => day.visits));
  const chart = svg('svg', {viewBox: `0 0 ${days.length * width} ${height}`, role: 'img', class: 'bars',
    'aria-label': `Visits in the last ${days.length} days, at most ${most} a day. The table has the numbers.`});
  days.forEach((day, i) => {
    const tall = day.visits === 0 ? 1 : Math.max(3, Math.round((day.visits / most) * height));
    const bar = svg('rect', {x: i * width + 1, y: height - tall, width: width - 2, height: tall, rx: 1});
    const title = svg('title', {});
    title.textContent = `${day.day}: ${counted(day.visits, 'visit')}`;
    bar.append(title);
    chart.append(bar);
  });
  return chart;
}

function row(...cells) {
  const tr = document.createElement('tr');
  for (const [i, text] of cells.entries()) {
    const cell = document.createElement(i === 0 ? 'th' : 'td');
    if (i === 0) cell.scope = 'row';
    cell.textContent = text;
    tr.append(cell);
  }
  return tr;
}

// showStatistics puts a link's statistics, as the API tells them, on the page.
function showStatistics({visits, crawlers, previews, heads, prefetches, days, referrers}) {
  $('people').textContent = counted(visits, 'visit');
  const others = [[crawlers, 'crawler visit'], [previews, 'link preview'], [heads, 'look without a visit', 'looks without a visit'], [prefetches, 'page loaded ahead', 'pages loaded ahead']]
    .filter(([n]) => n > 0)
    .map(([n, one, many]) => (n === 1 ? `1 ${one}` : `${n} ${many ?? `${one}s`}`));
  $('others').textContent = others.length > 0 ? `, and not among them ${others.join(', ')}` : '';
  $('by-day').hidden = visits === 0;
  $('bars').replaceChildren(bars(lastDays(days, Date.now())));
  $('days').replaceChildren(...days.toReversed().map((day) => row(day.day, day.visits)));
  $('by-referrer').hidden = referrers.length === 0;
  $('referrers').replaceChildren(...referrers.map((referrer) => row(referrer.host, referrer.visits)));
}
