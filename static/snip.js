'use strict';
// What the pages share. They can be read without any script, and links can be
// made; the scripts spare the reload, show times in the visitor's zone, keep the
// links made in this browser, and change them.

const $ = (id) => document.getElementById(id);

// base is where the service begins on the page's own origin, whatever short
// links begin with. No script talks to anything else.
const base = document.querySelector('.home').href;

// show writes an instant into a <time>, in the visitor's zone and in UTC.
function show(time, instant) {
  const text = (timeZone) => instant.toLocaleString('en-GB', {
    ...('dated' in time.dataset && {day: 'numeric', month: 'long', year: 'numeric'}),
    hour: '2-digit', minute: '2-digit', timeZone,
  });
  const utc = `${text('UTC')}\u00a0UTC`;
  time.dateTime = instant.toISOString();
  time.textContent = instant.getTimezoneOffset() === 0 ? utc : `${text()} your time (${utc})`;
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
async function copy(button) {
  const short = button.closest('.row, li').querySelector('input, .short');
  let copied = true;
  try {
    await navigator.clipboard.writeText(short.value ?? short.textContent);
  } catch {
    if (short.select) {
      short.focus();
      short.select();
    } else {
      getSelection().selectAllChildren(short);
    }
    copied = document.execCommand('copy');
  }
  button.textContent = copied ? 'Copied' : 'Selected';
}

function offerCopy(root) {
  for (const button of root.querySelectorAll('.copy')) {
    button.hidden = false;
    button.addEventListener('click', () => copy(button));
  }
}

// call asks the API for a link. It returns the link, or a problem and the headers
// that came with it; where no answer comes, the problem says what is in doubt.
async function call(url, init, doubt) {
  let response, answer;
  try {
    response = await fetch(url, {
      ...init,
      headers: {Accept: 'application/json', ...init.headers},
      signal: AbortSignal.timeout(30_000),
    });
  } catch {
    return {problem: {detail: `No answer came${doubt}. Check your connection and try again.`}};
  }
  try {
    answer = response.status === 204 ? {} : await response.json();
  } catch { /* not ours, as below */ }
  const {headers} = response;
  if (response.ok && (response.status === 204 || answer?.short_url)) return {link: answer};
  if (!response.ok && typeof answer?.detail === 'string') return {problem: answer, headers};
  // Something between here and the service answered in its place.
  return {problem: {detail: `The answer (${response.status}) is not one that this page understands. Try again in a few seconds.`}, headers};
}

// blame shows a problem beside the field that its detail names, and moves there.
// It returns whether there is one.
function blame({detail}) {
  const [, unread, unfit, reason] = /^(?:The body cannot be used: the field "(\w+)"|(\w+):) (.*)$/s.exec(detail) ?? [];
  const name = unread ?? unfit;
  const place = name && $(`${name}-problem`);
  if (!place) return false;
  place.textContent = place.dataset.lead + reason;
  place.hidden = false;
  const fold = place.closest('details');
  if (fold) fold.open = true;
  $(name).ariaInvalid = 'true';
  $(name).focus();
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
