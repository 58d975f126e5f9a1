'use strict';
// The page that manages one link, which its address names behind the #.

const form = $('change');
const fields = {url: $('url'), expires_at: $('expires_at'), max_visits: $('max_visits')};
const switches = ['forward_query', 'direct_redirect', 'show_destination'];
let token, link;

// ask calls the API for the link of this page.
function ask(method, change) {
  const headers = {Authorization: `Bearer ${token}`};
  if (change) headers['Content-Type'] = 'application/json';
  const noAnswer = method === 'GET' ? say('no_answer.plain') : say('no_answer.change');
  return call(`${base}api/links/${link.slug}`, {method, headers, body: change && JSON.stringify(change)}, noAnswer);
}

// explain is what a problem says here. Its own text tells programs of a header.
function explain({code, detail}, headers) {
  return code === 'rate_limited' ? say('manage.limited', {Retry: retry(headers)}) : detail;
}

// finish ends the page's work with a sentence.
function finish(text) {
  $('managed').hidden = true;
  $('state').textContent = text;
  $('state').focus();
}

async function load() {
  const [, slug, secret] = /^#([\w-]+)\.(\w+)$/.exec(location.hash) ?? [];
  if (!slug) {
    finish(say('manage.incomplete'));
    return;
  }
  token = secret;
  link = {slug};
  $('state').textContent = say('manage.moment');
  const {link: found, problem, headers} = await ask('GET');
  if (problem) {
    if (problem.code === 'gone') drop(); // only the right token is told so
    finish(explain(problem, headers));
    return;
  }
  document.title = say('title.page', {Heading: say('manage.heading_of', {Slug: slug})});
  $('state').textContent = '';
  showLink(found);
  $('managed').hidden = false;
}

// showLink shows the link as it is now.
function showLink(found) {
  link = found;
  $('short').value = link.short_url;
  document.querySelector('.qr').src = pictureURL(link);
  show($('made'), new Date(link.created_at));
  const end = link.expires_at && new Date(link.expires_at);
  $('ends').hidden = !end;
  $('endless').hidden = Boolean(end);
  if (end) show($('ends'), end);
  const used = link.max_visits !== null && link.visits >= link.max_visits;
  $('visits').textContent = link.max_visits === null ? say('manage.unlimited') : say('manage.used', {Visits: link.visits, Max: link.max_visits});
  const over = end && end <= Date.now();
  // All that is in the way, unless nothing can be done about it.
  const ended = link.taken_down ? [say('manage.taken_down')]
    : [link.blocked && say('manage.blocked'), over && say('manage.expired'), used && say('manage.used_up')].filter(Boolean);
  $('ended').hidden = ended.length === 0;
  $('ended').replaceChildren(...ended.map((text) => {
    const p = document.createElement('p');
    p.textContent = text;
    return p;
  }));
  form.hidden = link.taken_down;
  showStatistics(link.statistics);
  fields.url.value = link.url;
  putInstant(fields.expires_at, end);
  fields.max_visits.value = link.max_visits ?? '';
  for (const name of switches) $(name).checked = link[name];
}

// changes are what was typed over. What is left alone is not sent: a field of
// local time has no place for all of an instant, and someone else may have
// changed the link meanwhile.
function changes() {
  const change = {};
  const before = fields.expires_at.cloneNode();
  putInstant(before, link.expires_at && new Date(link.expires_at));
  if (fields.url.value !== link.url) change.url = fields.url.value;
  if (fields.expires_at.value !== before.value) change.expires_at = instantIn(fields.expires_at);
  if (fields.max_visits.value !== String(link.max_visits ?? '')) change.max_visits = numberIn(fields.max_visits);
  for (const name of switches) if ($(name).checked !== link[name]) change[name] = $(name).checked;
  return change;
}

// numberIn leaves text that is no number to the API, which says what is wrong.
function numberIn({value}) {
  if (value === '') return null;
  return /^\d+$/.test(value) ? Number(value) : value;
}

function refuse(problem, headers) {
  if (blame(problem)) return;
  $('detail').textContent = explain(problem, headers);
  $('problem').hidden = false;
}

async function save() {
  const change = changes();
  if (Object.keys(change).length === 0) {
    $('saved').textContent = say('manage.unchanged');
    return;
  }
  const {link: changed, problem, headers} = await ask('PATCH', change);
  if (problem) {
    refuse(problem, headers);
    return;
  }
  showLink(changed);
  $('saved').textContent = say('manage.saved');
  keepLinks(keptLinks().map((kept) => (kept.slug === link.slug ? {...kept, url: link.url} : kept)));
}

async function remove() {
  const {problem, headers} = await ask('DELETE');
  if (problem) {
    refuse(problem, headers);
    return;
  }
  drop();
  finish(say('manage.deleted'));
}

// drop takes the link off the list of those made in this browser.
function drop() {
  keepLinks(keptLinks().filter((kept) => kept.slug !== link.slug));
}

// busily does one thing at a time.
async function busily(work) {
  if (form.ariaBusy === 'true') return;
  form.ariaBusy = 'true';
  absolve();
  $('problem').hidden = true;
  $('saved').textContent = '';
  await work();
  form.ariaBusy = null;
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  busily(save);
});
for (const other of document.querySelectorAll('[hreflang]')) other.hash = location.hash; // the same link
onceConfirmed($('delete'), $('deleting'), () => busily(remove));
addEventListener('hashchange', () => location.reload()); // another link, from the start
load();
