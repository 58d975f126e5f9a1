'use strict';
// The form: making links without a reload, and the list of those made here.

const form = $('new'), url = $('url'), end = $('expires_at'), key = $('key');
const keys = new Map(); // the Idempotency-Key of each demand, until it is answered
let timer;

// made shows a link that was made, or a table of several, and keeps them.
function made(answer, lists) {
  const links = [].concat(answer).map((link) => (
    {slug: link.slug, short_url: link.short_url, url: link.url, token: link.manage_token, created_at: link.created_at}));
  $('made').replaceChildren(Array.isArray(answer) ? lists.table(links) : card(answer, links[0]));
  keepLinks([...links, ...keptLinks()]);
  list();
  for (const field of form.querySelectorAll('[name]')) { // the key has none, and stays
    if (field.type === 'checkbox') field.checked = false;
    else field.value = '';
  }
  grow();
  $('more').open = false;
  const first = $('made').querySelector('input, button');
  first.focus();
  first.select?.();
}

function card(link, kept) {
  const card = $('card').content.cloneNode(true);
  const at = (selector) => card.querySelector(selector);
  at('input').value = link.short_url;
  at('.destination').textContent = link.url;
  at('.open').href = link.short_url;
  at('.ends').hidden = !link.expires_at;
  if (link.expires_at) show(at('time'), new Date(link.expires_at));
  at('.visits').hidden = !link.max_visits;
  at('.visits b').textContent = link.max_visits;
  at('.manage').href = manageURL(kept);
  at('.qr').src = pictureURL(kept);
  offerCopy(card);
  return card;
}

// grow makes the field as high as it has lines, where the browser does not.
function grow() {
  url.rows = url.value.split('\n').length;
}

// randomKey is 128 bits, also without TLS, where browsers have no randomUUID.
const randomKey = () => crypto.getRandomValues(new Uint32Array(4)).join('-').padEnd(16, '0');

function clear() {
  clearTimeout(timer);
  absolve();
  $('problem').hidden = true;
  url.setAttribute('aria-describedby', 'list allowance');
}

// refuse shows a problem.
function refuse(problem, headers, lists) {
  if (blame(problem)) return;
  const limited = problem.code === 'rate_limited';
  const faulty = problem.field === 'url';
  const {errors} = problem;
  $('detail').textContent = faulty ? reason(problem, $('detail')) : problem.detail;
  $('detail').hidden = limited || errors;
  $('wrong').hidden = !errors;
  if (errors) lists.wrong(errors);
  $('limited').hidden = !limited;
  $('fewer').hidden = !lists?.fewer(headers, url.value);
  $('none').hidden = !$('fewer').hidden;
  if (limited) wait(headers);
  $('problem').hidden = false;
  url.setAttribute('aria-describedby', 'problem list allowance');
  if (faulty) {
    url.ariaInvalid = 'true';
    url.focus();
  }
  $('problem').scrollIntoView({block: 'nearest'}); // a long list may have pushed it off the screen
}

// wait tells when to come back.
function wait(headers) {
  $('later').hidden = true; // the server's own page has it apart
  $('soon').hidden = false;
  $('soon').textContent = retry(headers);
  const seconds = Number(headers.get('Retry-After'));
  if (seconds <= soon) timer = setTimeout(() => { $('soon').textContent = say('retry.now'); }, seconds * 1000);
}

// send tries twice where no answer comes. Only what has several lines can be answered
// as a list; what is shows in the answer.
async function send() {
  let lists;
  try {
    if (url.value.includes('\n')) lists = await import('./list.js');
  } catch {
    return refuse({detail: say('no_answer.plain')});
  }
  const body = new FormData(form);
  body.set('expires_at', instantIn(end) ?? '');
  const demand = JSON.stringify([...body]);
  if (!keys.has(demand)) keys.set(demand, randomKey());
  const init = {method: 'POST', body, headers: {'Idempotency-Key': keys.get(demand), ...showKey()}};
  const ask = () => call(form.action, init, say('no_answer.link'));
  let answer = await ask();
  if (!answer.link && !answer.headers) answer = await ask();
  const {link, problem, headers} = answer;
  if (link) {
    made(link, lists);
    keys.delete(demand);
  } else if (key && problem.code === 'unauthorized') refuseKey();
  else refuse(problem, headers, lists);
}

// showKey is the header for the key that was typed, where one is asked for. What
// no header can hold is no key.
function showKey() {
  const text = key?.value.trim();
  return text ? {Authorization: `Bearer ${/^[!-~]+$/.test(text) ? text : '?'}`} : {};
}

function refuseKey() {
  $('key-problem').textContent = say('form.key_wrong');
  $('key-problem').hidden = false;
  key.ariaInvalid = 'true';
  key.focus();
}

// refresh leaves the numbers as they were when they cannot be read: each
// attempt is decided by the server anyway.
async function refresh() {
  try {
    const response = await fetch($('allowance').dataset.source, {headers: {Accept: 'application/json', ...showKey()}});
    if (!response.ok) return;
    const {limit, remaining, resets_at, open} = await response.json();
    const told = open || remaining === 0; // else a wider limit is reached
    const blocked = limit === 0; // for as long as the operator wants it
    if (limit !== null) $('daily').textContent = told ? say('allowance.left', {Count: limit, Remaining: remaining}) : say('allowance.daily', {Count: limit});
    $('daily').hidden = limit === null || blocked;
    $('opens').hidden = open || blocked;
    $('fresh').hidden = !open || limit === null || blocked;
    for (const time of $('allowance').querySelectorAll('time')) show(time, new Date(resets_at));
  } catch { /* as above */ }
}

// list shows the links made in this browser.
function list() {
  const links = keptLinks();
  $('kept').hidden = links.length === 0;
  $('kept-links').replaceChildren(...links.map((link) => {
    const item = $('kept-link').content.cloneNode(true);
    item.querySelector('.short').textContent = link.short_url;
    item.querySelector('.destination').textContent = link.url;
    item.querySelector('.picture').href = pictureURL(link);
    item.querySelector('.manage').href = manageURL(link);
    offerCopy(item);
    return item;
  }));
}

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  if (form.ariaBusy === 'true') return;
  // The button is not disabled meanwhile: that would drop the keyboard's focus.
  form.ariaBusy = 'true';
  clear();
  try {
    await send();
  } catch (error) {
    console.error(error);
    refuse({detail: say('no_answer.fault')});
  } finally {
    form.ariaBusy = null;
  }
  await refresh();
});
url.addEventListener('input', grow);
// Enter sends, as in a field of one line, but not where it ends a composition (229
// in Safari).
url.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing || event.keyCode === 229) return;
  event.preventDefault();
  form.requestSubmit();
});
// Browsers cannot point at a field that is folded away.
form.addEventListener('invalid', ({target}) => { $('more').open ||= $('more').contains(target); }, {capture: true});
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') refresh();
});
addEventListener('storage', list);
addEventListener('pageshow', (event) => { if (event.persisted) list(); });
$('export').addEventListener('click', async () => (await import('./list.js')).save('snip-links.json', 'application/json', `${JSON.stringify(keptLinks(), null, 2)}\n`));
onceConfirmed($('forget'), $('forgetting'), () => {
  keepLinks([]);
  list();
  url.focus();
});

const typed = end.value && new Date(end.value);
end.type = 'datetime-local';
putInstant(end, typed && !isNaN(typed) ? typed : null);
$('end').hidden = false;
$('shift').hidden = !matchMedia('(hover: hover)').matches; // keyboards on a screen have no such keys
$('end-hint').textContent = say('hint.end_local');
list();
if (key) {
  key.value = keptKey();
  key.addEventListener('change', () => {
    keepKey(key.value.trim());
    refresh();
  });
  if (key.value) refresh();
}
