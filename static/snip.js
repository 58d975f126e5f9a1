'use strict';
// What the pages share. They can be read without any script, and links can be
// made; the scripts spare the reload, show times in the visitor's zone, keep the
// links made in this browser, and change them.

const $ = (id) => document.getElementById(id);

// base is where the service begins on the page's own origin, whatever short
// links begin with. No script talks to anything else. A language that was chosen
// in the page's address is handed on.
const [base, chosen = ''] = document.querySelector('.home').href.split(/(?=\?)/);

const {lang} = document.documentElement;
const words = JSON.parse($('words').textContent);
const plural = new Intl.PluralRules(lang);

// fill puts values into a sentence.
function fill(sentence, values) {
  return sentence.replace(/{{\.(\w+)}}/g, (_, name) => values[name]);
}

// say returns a sentence in the page's language. Count picks the plural form.
function say(key, values = {}) {
  const word = words[key];
  return fill(typeof word === 'string' ? word : word[plural.select(values.Count)], values);
}

// clock is an instant as text, in the visitor's zone and in UTC.
function clock(instant, date) {
  const text = (timeZone) => instant.toLocaleString(lang === 'en' ? 'en-GB' : lang, {
    ...date, hour: '2-digit', minute: '2-digit', hourCycle: 'h23', timeZone,
  });
  const utc = `${text('UTC')}\u00a0UTC`;
  return instant.getTimezoneOffset() === 0 ? utc : say('local_time', {Local: text(), UTC: utc});
}

// show writes an instant into a <time>.
function show(time, instant) {
  time.dateTime = instant.toISOString();
  time.textContent = clock(instant, 'dated' in time.dataset && {day: 'numeric', month: 'long', year: 'numeric'});
}

// soon is up to where a wait is told in seconds. The server has the same bound.
const soon = 90;

// retry says when a limited client may try again, by the headers of the answer. It
// counts from the server's clock, because the visitor's may be wrong.
function retry(headers) {
  const seconds = Number(headers.get('Retry-After'));
  if (seconds <= soon) return say('retry.in', {Count: seconds});
  const sent = Date.parse(headers.get('Date')) || Date.now();
  return say('retry.at', {Time: clock(wholeMinute(sent + seconds * 1000))});
}

// wholeMinute rounds up. Retry-After is up to a second more than the wait, and
// the Date header up to a second less than the time.
function wholeMinute(ms) {
  return new Date(Math.ceil((ms - 1000) / 60_000) * 60_000);
}

// putInstant shows an instant in a field of local time; null empties it.
function putInstant(field, instant) {
  const local = instant && new Date(instant - instant.getTimezoneOffset() * 60_000);
  const seconds = instant && instant.getSeconds() > 0;
  field.step = seconds ? 1 : 60; // a field of minutes would refuse them
  field.value = local ? local.toISOString().slice(0, seconds ? 19 : 16) : '';
}

// instantIn returns what such a field holds, for the API, or null.
function instantIn(field) {
  return field.value ? new Date(field.value).toISOString() : null;
}

// copy falls back to a selection: browsers offer no clipboard to a page that is
// served without TLS from anywhere but this very machine.
async function copy(button, text, select) {
  let copied = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    select();
    copied = document.execCommand('copy');
  }
  button.textContent = copied ? say('button.copied') : say('button.selected');
  return copied;
}

function offerCopy(root) {
  for (const button of root.querySelectorAll('.copy')) {
    const short = button.closest('.row, li').querySelector('input, .short');
    button.hidden = false;
    button.addEventListener('click', () => copy(button, short.value ?? short.textContent, () => {
      if (short.select) {
        short.focus();
        short.select();
      } else {
        getSelection().selectAllChildren(short);
      }
    }));
  }
}

// call asks the API for a link. It returns the link, or a problem and the headers
// that came with it; noAnswer is what the problem says where none comes, unless
// nothing was sent.
async function call(url, init, noAnswer) {
  let response, answer;
  try {
    response = await fetch(url, {
      ...init,
      headers: {Accept: 'application/json', 'Accept-Language': lang, ...init.headers},
      signal: AbortSignal.timeout(30_000),
    });
  } catch {
    return {problem: {detail: navigator.onLine ? noAnswer : say('no_answer.plain')}};
  }
  try {
    answer = response.status === 204 ? {} : await response.json();
  } catch { /* not ours, as below */ }
  const {headers} = response;
  if (response.ok && (response.status === 204 || (answer?.[0] ?? answer)?.short_url)) return {link: answer};
  if (!response.ok && typeof answer?.detail === 'string') return {problem: answer, headers};
  // Something between here and the service answered in its place.
  return {problem: {detail: say('no_answer.foreign', {Status: response.status})}, headers};
}

// reason is what a problem says of its field, in a place that knows how to begin.
function reason({field, detail}, place) {
  return fill(place.dataset.lead, {Reason: detail.slice(`${field}: `.length)});
}

// blame shows a problem beside the field at fault, and moves there. It returns
// whether there is one.
function blame(problem) {
  const place = problem.field && $(`${problem.field}-problem`);
  if (!place) return false;
  place.textContent = reason(problem, place);
  place.hidden = false;
  const fold = place.closest('details');
  if (fold) fold.open = true;
  $(problem.field).ariaInvalid = 'true';
  $(problem.field).focus();
  return true;
}

// absolve takes back what blame has said.
function absolve() {
  for (const place of document.querySelectorAll('.wrong')) {
    place.hidden = true;
    place.textContent = '';
  }
  for (const field of document.querySelectorAll('[aria-invalid]')) field.ariaInvalid = null;
}

// onceConfirmed makes a button ask with a dialog first, whose Escape key is a no.
function onceConfirmed(button, dialog, work) {
  button.addEventListener('click', () => {
    dialog.returnValue = '';
    dialog.showModal();
  });
  dialog.addEventListener('close', () => { if (dialog.returnValue === 'yes') work(); });
}

for (const time of document.querySelectorAll('time:not([datetime=""])')) show(time, new Date(time.dateTime));
offerCopy(document);
