'use strict';
// The form: making links without a reload, and the list of those made here.

const form = $('new'), url = $('url'), end = $('expires_at'), key = $('key');
let timer;

function made(link) {
  const card = $('card').content.cloneNode(true);
  const at = (selector) => card.querySelector(selector);
  at('input').value = link.short_url;
  at('.destination').textContent = link.url;
  at('.open').href = link.short_url;
  at('.ends').hidden = !link.expires_at;
  if (link.expires_at) show(at('time'), new Date(link.expires_at));
  at('.visits').hidden = !link.max_visits;
  at('.visits b').textContent = link.max_visits;
  const kept = {slug: link.slug, short_url: link.short_url, url: link.url, token: link.manage_token, created_at: link.created_at};
  at('.manage').href = manageURL(kept);
  at('.qr').src = pictureURL(kept);
  offerCopy(card);
  $('made').replaceChildren(card);
  keepLinks([kept, ...keptLinks()]);
  list();
  for (const field of form.querySelectorAll('input[name]')) { // the key has none, and stays
    if (field.type === 'checkbox') field.checked = false;
    else field.value = '';
  }
  $('more').open = false;
  const short = $('made').querySelector('input');
  short.focus();
  short.select();
}

function clear() {
  clearTimeout(timer);
  absolve();
  $('problem').hidden = true;
  url.setAttribute('aria-describedby', 'allowance');
}

// refuse shows a problem.
function refuse(problem, headers) {
  if (blame(problem)) return;
  const limited = problem.code === 'rate_limited';
  const faulty = problem.field === 'url';
  $('detail').textContent = faulty ? reason(problem, $('detail')) : problem.detail;
  $('detail').hidden = limited;
  $('limited').hidden = !limited;
  if (limited) wait(Number(headers.get('Retry-After')), Date.parse(headers.get('Date')) || Date.now());
  $('problem').hidden = false;
  url.setAttribute('aria-describedby', 'problem allowance');
  if (faulty) {
    url.ariaInvalid = 'true';
    url.focus();
  }
}

// wait tells when to come back. It counts from the server's clock, because the
// visitor's may be wrong.
function wait(seconds, sent) {
  const soon = seconds <= 90;
  $('soon').hidden = !soon;
  $('later').hidden = soon;
  if (!soon) {
    show($('later').querySelector('time'), wholeMinute(sent + seconds * 1000));
    return;
  }
  $('soon').textContent = say('retry.in', {Count: seconds});
  timer = setTimeout(() => { $('soon').textContent = say('retry.now'); }, seconds * 1000);
}

// wholeMinute rounds up. Retry-After is up to a second more than the wait, and
// the Date header up to a second less than the time.
function wholeMinute(ms) {
  return new Date(Math.ceil((ms - 1000) / 60_000) * 60_000);
}

async function send() {
  const body = new URLSearchParams(new FormData(form));
  body.set('expires_at', instantIn(end) ?? '');
  const {link, problem, headers} = await call(form.action, {method: 'POST', body, headers: showKey()}, say('no_answer.link'));
  if (link) made(link);
  else if (key && problem.code === 'unauthorized') refuseKey();
  else refuse(problem, headers);
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
    if (limit !== null) $('daily').textContent = told ? say('allowance.left', {Count: limit, Remaining: remaining}) : say('allowance.daily', {Count: limit});
    $('daily').hidden = limit === null;
    $('opens').hidden = open;
    $('fresh').hidden = !open || limit === null;
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

function download() {
  const file = document.createElement('a');
  file.href = URL.createObjectURL(new Blob([JSON.stringify(keptLinks(), null, 2), '\n'], {type: 'application/json'}));
  file.download = 'snip-links.json';
  file.click();
  setTimeout(() => URL.revokeObjectURL(file.href), 60_000); // some browsers read it later
}

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  if (form.ariaBusy === 'true') return;
  // The button is not disabled meanwhile: that would drop the keyboard's focus.
  form.ariaBusy = 'true';
  clear();
  await send();
  form.ariaBusy = null;
  await refresh();
});
// Browsers cannot point at a field that is folded away.
form.addEventListener('invalid', ({target}) => { $('more').open ||= $('more').contains(target); }, {capture: true});
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') refresh();
});
addEventListener('storage', list);
addEventListener('pageshow', (event) => { if (event.persisted) list(); });
$('export').addEventListener('click', download);
onceConfirmed($('forget'), $('forgetting'), () => {
  keepLinks([]);
  list();
  url.focus();
});

const typed = end.value && new Date(end.value);
end.type = 'datetime-local';
putInstant(end, typed && !isNaN(typed) ? typed : null);
$('end').hidden = false;
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
