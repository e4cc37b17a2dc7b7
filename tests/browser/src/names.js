'use strict';
// Names from modules are shown as text: no markup of theirs is an element, no script of theirs
// runs, and no mark of theirs turns the text around them.

const fs = require('node:fs');
const { fragment, functionsOf, openFunction, show } = require('./browser.js');
const { plain } = require('./links.js');

/** Control characters that a reader cannot see. */
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/;

/**
 * Judges a page of which `--names FILE` lists the functions' names. The names mark the elements
 * that they would make with the attribute `data-osier-hostile`, and their scripts set
 * `window.osierHostile`.
 */
async function names(judgement) {
  const find = text => judgement.find('names', text);
  const wanted = judgement.options.names
    ? JSON.parse(fs.readFileSync(judgement.options.names, 'utf8')) : [];
  await judgement.withPage({}, '', async page => {
    const functions = await functionsOf(page);
    const byName = new Map(functions.map(f => [f.name, f]));
    const lost = wanted.filter(name => !byName.has(name));
    if (lost.length > 0) {
      find(`no row links to ${lost.length} of the names: ${lost.slice(0, 5).map(show).join(', ')}`);
    }
    for (const name of wanted.filter(name => byName.has(name))) {
      const f = byName.get(name);
      // Parts of a name that any page can show as they are. A backslash may stand as an escape.
      const parts = name.match(/[!-[\]-~]{3,}/g) ?? [];
      const missing = parts.find(part => !plain(f.text).includes(part));
      if (missing) find(`the row of ${show(name)} does not show ${missing}`);
      if (f.text === '') find(`the row of ${show(name)} shows nothing`);
      await openFunction(page, name).catch(() => find(`${fragment(name)} opens nothing`));
      (await page.evaluate(harm)).forEach(find);
    }
    const texts = functions.map(f => f.whole);
    const twice = texts.find((text, at) => texts.indexOf(text) !== at);
    if (twice !== undefined) find(`two functions are shown as ${show(twice)}`);
    const shown = await page.evaluate(shownTexts);
    for (const text of shown.filter(text => CONTROL.test(text)).slice(0, 3)) {
      find(`a control character is not visible in ${show(text.slice(0, 80))}`);
    }
    (await page.evaluate(harm)).forEach(find);
    (await page.evaluate(turned)).forEach(data => {
      find(`a mark of direction turns text around ${show(data)}`);
    });
  });
}

/** Runs in the page: traces of names that were taken for markup. */
function harm() {
  const found = [];
  if (window.osierHostile !== undefined) found.push(`a name ran its script: ${osierHostile}`);
  const made = document.querySelector('[data-osier-hostile], osier-hostile');
  if (made) found.push(`a name made an element ${made.localName}`);
  return found;
}

/** Runs in the page: every text that is shown. */
function shownTexts() {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) {
    const { parentElement, data } = walker.currentNode;
    if (!/^(script|style|template|noscript)$/i.test(parentElement.localName)
      && osierJudge.visible(parentElement)) texts.push(data);
  }
  return texts;
}

/** Runs in the page: texts whose marks of direction reach beyond their element. */
function turned() {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const { parentElement, data } = walker.currentNode;
    if (/^(script|style|template|noscript)$/i.test(parentElement.localName)) continue;
    if (!/[\u202a-\u202e\u2066-\u2069]/.test(data)) continue;
    const ends = at => {
      const { unicodeBidi, display } = getComputedStyle(at);
      const isAlone = display !== 'inline' && at.textContent.trim() === data.trim();
      return isAlone || (display === 'inline' && /isolate|plaintext/.test(unicodeBidi));
    };
    let at = parentElement;
    while (!ends(at) && getComputedStyle(at).display === 'inline') at = at.parentElement;
    if (!ends(at)) found.push(data);
  }
  return found.slice(0, 3);
}

module.exports = { names };
