// Lists of links. Only who makes one, or saves one as a file, loads this.

// table shows the links, to copy or to take along as a file.
export function table(links) {
  const made = $('table').content.cloneNode(true);
  const row = made.querySelector('tbody tr');
  row.replaceWith(...links.map((link) => {
    const copy = row.cloneNode(true);
    const at = (selector) => copy.querySelector(selector);
    at('.destination').textContent = link.url;
    at('.short').href = at('.short').textContent = link.short_url;
    at('.manage').href = manageURL(link);
    return copy;
  }));
  const [all, download] = made.querySelectorAll('button');
  all.hidden = download.hidden = false;
  all.addEventListener('click', () => {
    const text = links.map((link) => link.short_url).join('\n');
    copy(all, text, () => select(all, text));
  });
  download.addEventListener('click', () => save('snip-links.csv', 'text/csv', csv(links)));
  return made;
}

// select shows a text, selected, below the button that copies it.
function select(button, text) {
  const field = document.createElement('textarea');
  field.value = text;
  field.readOnly = true;
  field.ariaLabel = button.textContent;
  button.parentElement.append(field);
  field.select();
}

// csv is as RFC 4180 has it. No field begins like a formula, and none would where a
// spreadsheet takes semicolons for the ends of fields.
function csv(links) {
  const line = (...fields) => `${fields.map((field) => `"${field.replaceAll('"', '""').replaceAll(';', '%3B')}"`)}\r\n`;
  return line('url', 'short_url', 'manage_url') + links.map((link) => line(link.url, link.short_url, manageURL(link))).join('');
}

// linesOf returns the number of each line that has a link. Blank ones are counted by
// who reads them.
const linesOf = (text) => text.split('\n').flatMap((line, i) => (line.trim() ? i + 1 : []));

// fewer reports whether something is left, but not for all of the list.
export function fewer(headers, text) {
  const left = Number(headers?.get('Quota-Remaining'));
  return left > 0 && left < linesOf(text).length;
}

// wrong says what is wrong with which line.
export function wrong(errors, text) {
  const lines = linesOf(text);
  $('wrong').replaceChildren(...errors.map((error) => {
    const item = document.createElement('li');
    item.textContent = fill($('wrong').dataset.line, {Line: lines[error.index], Problem: reason(error, $('detail'))});
    return item;
  }));
}

// save hands a file to the browser.
export function save(name, type, content) {
  const file = document.createElement('a');
  file.href = URL.createObjectURL(new Blob([content], {type}));
  file.download = name;
  file.click();
  setTimeout(() => URL.revokeObjectURL(file.href), 60_000); // some browsers read it later
}
