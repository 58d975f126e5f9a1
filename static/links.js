'use strict';
// The links made in this browser, newest first. Each has its token, so whoever
// uses the browser manages them. Storage may be switched off or full: then
// nothing is kept, and the pages work all the same.

const mostKept = 1000;

// Two services may share an origin, each under its own path.
const shelf = `snip.links ${new URL(base).pathname}`;

// The key that a private service asks for is kept beside them.
const keyShelf = `snip.key ${new URL(base).pathname}`;

function keptKey() {
  try {
    return localStorage.getItem(keyShelf) ?? '';
  } catch {
    return '';
  }
}

function keepKey(text) {
  try {
    if (text) localStorage.setItem(keyShelf, text);
    else localStorage.removeItem(keyShelf);
  } catch { /* as above */ }
}

function keptLinks() {
  try {
    return JSON.parse(localStorage.getItem(shelf)).filter((link) =>
      ['slug', 'short_url', 'url', 'token'].every((name) => typeof link?.[name] === 'string'));
  } catch {
    return [];
  }
}

function keepLinks(links) {
  try {
    if (links.length > 0) localStorage.setItem(shelf, JSON.stringify(links.slice(0, mostKept)));
    else localStorage.removeItem(shelf);
  } catch { /* as above */ }
}

// A token goes into the fragment, which browsers send nowhere.
const manageURL = ({slug, token}) => `${base}-/manage${chosen}#${slug}.${token}`;

// By the path: the page shows pictures of its own origin only.
const pictureURL = ({slug}) => `${base}${slug}/qr.svg`;
