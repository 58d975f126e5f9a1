'use strict';
// Each click uses up a visit, so a second one waits for what becomes of the first.

let sent = false;
document.getElementById('onward').form.addEventListener('submit', (event) => {
  if (sent) event.preventDefault();
  sent = true;
});
addEventListener('pageshow', () => { sent = false; });
