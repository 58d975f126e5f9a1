'use strict';
// The pages work without this file. It spares the reload, shows times in the
// visitor's zone and keeps the allowance current.

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

// copy falls back to a selection: browsers offer no clipboard to a page that is
// served without TLS from anywhere but this very machine.
async function copy(button) {
  const short = button.parentElement.querySelector('input');
  let copied = true;
  try {
    await navigator.clipboard.writeText(short.value);
  } catch {
    short.focus();
    short.select();
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

function enhance(form) {
  const $ = (id) => document.getElementById(id);
  const url = $('url');
  let timer;

  function made(link) {
    const card = $('card').content.cloneNode(true);
    card.querySelector('input').value = link.short_url;
    card.querySelector('.destination').textContent = link.url;
    card.querySelector('.open').href = link.short_url;
    offerCopy(card);
    $('made').replaceChildren(card);
    url.value = '';
    const short = $('made').querySelector('input');
    short.focus();
    short.select();
  }

  function clear() {
    clearTimeout(timer);
    $('problem').hidden = true;
    url.setAttribute('aria-describedby', 'allowance');
    url.removeAttribute('aria-invalid');
  }

  // refuse shows a problem.
  function refuse(problem, headers) {
    const limited = problem.code === 'rate_limited';
    // The reasons continue the field's name, which means nothing here.
    $('detail').textContent = problem.detail.replace(/^url: /, 'This link ');
    $('detail').hidden = limited;
    $('limited').hidden = !limited;
    if (limited) wait(Number(headers.get('Retry-After')), Date.parse(headers.get('Date')) || Date.now());
    $('problem').hidden = false;
    url.setAttribute('aria-describedby', 'problem allowance');
    if (problem.status === 400) {
      url.setAttribute('aria-invalid', 'true');
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
    $('soon').textContent = `in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}`;
    timer = setTimeout(() => { $('soon').textContent = 'now'; }, seconds * 1000);
  }

  async function send() {
    let response;
    try {
      response = await fetch(form.action, {
        method: 'POST',
        headers: {Accept: 'application/json'},
        body: new URLSearchParams(new FormData(form)),
        signal: AbortSignal.timeout(30_000),
      });
    } catch {
      refuse({detail: 'No answer came, so it is unknown whether the link was made. Check your connection and try again.'});
      return;
    }
    try {
      const answer = await response.json();
      if (response.ok) made(answer);
      else refuse({...answer, detail: answer.detail || answer.title}, response.headers);
    } catch {
      // Something between here and the service answered in its place.
      refuse({detail: `The answer (${response.status}) is not one that this page understands. Try again in a few seconds.`}, response.headers);
    }
  }

  // refresh leaves the numbers as they were when they cannot be read: each
  // attempt is decided by the server anyway.
  async function refresh() {
    try {
      const response = await fetch($('allowance').dataset.source, {headers: {Accept: 'application/json'}});
      if (!response.ok) return;
      const {limit, remaining, resets_at, open} = await response.json();
      if (limit !== null) {
        $('limit').textContent = limit;
        $('links').textContent = limit === 1 ? 'link' : 'links';
        $('remaining').textContent = remaining;
      }
      $('daily').hidden = limit === null;
      $('left').hidden = limit === null || (!open && remaining > 0); // a wider limit is reached
      $('opens').hidden = open;
      $('fresh').hidden = !open || limit === null;
      for (const time of $('allowance').querySelectorAll('time')) show(time, new Date(resets_at));
    } catch { /* as above */ }
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
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') refresh();
  });
}

// wholeMinute rounds up. Retry-After is up to a second more than the wait, and
// the Date header up to a second less than the time.
function wholeMinute(ms) {
  return new Date(Math.ceil((ms - 1000) / 60_000) * 60_000);
}

for (const time of document.querySelectorAll('time:not([datetime=""])')) show(time, new Date(time.dateTime));
offerCopy(document);
const form = document.querySelector('form');
if (form) enhance(form);
