'use strict';
// Without it the page is as it was when it was loaded. The script takes what has
// changed from a fresh one, and compares the clocks.

const every = 10_000;
const mostApart = 30_000;
const $ = (id) => document.getElementById(id);
const button = $('live');
let live = !matchMedia('(prefers-reduced-motion: reduce)').matches;

function showLive() {
  button.hidden = false;
  button.textContent = live ? 'Live: on' : 'Live: off';
  button.ariaPressed = String(live);
}

// compareClocks is told how long ago the server may have written its time at most.
function compareClocks(took) {
  const apart = Math.abs(Date.now() - Date.parse($('clock').dateTime));
  const place = $('clocks-apart');
  place.hidden = apart - took <= mostApart;
  place.textContent = place.hidden ? '' : `The server's clock and this browser's are ${Math.round(apart / 1000)} s apart.`;
}

// inUse is what would be pulled away from under a pointer, or from the keyboard.
function inUse(element) {
  return element.contains(document.activeElement) || element.matches(':hover') && element.querySelector('button');
}

async function refresh() {
  const asked = Date.now();
  let fresh;
  try {
    const response = await fetch('/live', {signal: AbortSignal.timeout(every)});
    if (response.status === 403) {
      live = false;
      showLive();
      $('live-state').textContent = 'The session has ended: load the page again.';
      return;
    }
    if (!response.ok) throw new Error(response.status);
    fresh = new DOMParser().parseFromString(await response.text(), 'text/html');
  } catch {
    $('live-state').textContent = 'The server does not answer.';
    return;
  }
  $('live-state').textContent = '';
  for (const element of document.querySelectorAll('[data-live]')) {
    const other = fresh.getElementById(element.id);
    if (other && !inUse(element)) element.replaceChildren(...other.childNodes);
  }
  compareClocks(Date.now() - asked);
}

button.addEventListener('click', () => {
  live = !live;
  showLive();
  if (live) refresh();
});
setInterval(() => { if (live && !document.hidden) refresh(); }, every);
showLive();
// How long ago a page was sent that the browser kept is unknown; one that it has just loaded came in this time.
compareClocks(performance.now());
