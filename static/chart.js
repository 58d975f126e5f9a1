'use strict';
// The visits of a link on its manage page: as a sentence, as bars, and as a table
// that says the same.

const chartDays = 30;

function svg(name, attributes) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
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
    'aria-label': say('visits.chart', {Days: days.length, Most: most})});
  days.forEach((day, i) => {
    const tall = day.visits === 0 ? 1 : Math.max(3, Math.round((day.visits / most) * height));
    const bar = svg('rect', {x: i * width + 1, y: height - tall, width: width - 2, height: tall, rx: 1});
    const title = svg('title', {});
    title.textContent = say('visits.bar', {Day: day.day, Visits: say('visits.count', {Count: day.visits})});
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
  const people = say('visits.count', {Count: visits});
  const others = [
    crawlers > 0 && say('visits.crawlers', {Count: crawlers}),
    previews > 0 && say('visits.previews', {Count: previews}),
    heads > 0 && say('visits.heads', {Count: heads}),
    prefetches > 0 && say('visits.prefetches', {Count: prefetches}),
  ].filter(Boolean).join(say('visits.comma'));
  $('people').textContent = others ? say('visits.people_others', {Visits: people, Others: others}) : say('visits.people', {Visits: people});
  $('by-day').hidden = visits === 0;
  $('bars').replaceChildren(bars(lastDays(days, Date.now())));
  $('days').replaceChildren(...days.toReversed().map((day) => row(day.day, day.visits)));
  $('by-referrer').hidden = referrers.length === 0;
  $('referrers').replaceChildren(...referrers.map((referrer) => row(referrer.host, referrer.visits)));
}
