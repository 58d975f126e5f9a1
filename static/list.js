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
    at('.manage').ariaLabel = fill(made.querySelector('table').dataset.manage, {Slug: link.short_url});
    return copy;
  }));
  const [all, download] = made.querySelectorAll('button');
  all.hidden = download.hidden = false;
  const field = document.createElement('textarea');
  field.value = links.map((link) => link.short_url).join('\n');
  field.readOnly = true;
  field.ariaLabel = all.textContent;
  all.addEventListener('click', async () => {
    const copied = await copy(all, field.value, () => {
      all.parentElement.append(field);
      field.select();
    });
    if (!copied || !field.isConnected) return;
    field.remove();
    all.focus();
  });
  download.addEventListener('click', () => save('snip-links.csv', 'text/csv', csv(links)));
  return made;
}

// csv is as RFC 4180 has it, with a mark in front by which Excel knows UTF-8. No field
// begins like a formula: all are addresses, and begin with their scheme.
function csv(links) {
  const line = (...fields) => `${fields.map((field) => `"${field.replaceAll('"', '""')}"`)}\r\n`;
  return '\ufeff' + line('url', 'short_url', 'manage_url') + links.map((link) => line(link.url, link.short_url, manageURL(link))).join('');
}

// fewer reports whether something is left, but not for all of the list. A line that is
// not blank is one for the server: to it U+0085 is a blank and U+FEFF is none.
export function fewer(headers, text) {
  const left = Number(headers?.get('Quota-Remaining'));
  return left > 0 && left < text.split('\n').filter((line) => /[^\s\x85]|\ufeff/.test(line)).length;
}

// wrong says what is wrong with which line.
export function wrong(errors) {
  $('wrong').replaceChildren(...errors.map((error) => {
    const item = document.createElement('li');
    item.textContent = fill($('wrong').dataset.line, {Line: error.line, Problem: reason(error, $('detail'))});
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
