'use strict';
// The page in a narrow window, and without its scripts.

const {
  functionsOf, nearest, openFunction, painted, selectPoint, thin,
} = require('./browser.js');

/** The width of a narrow window. */
const NARROW = { width: 380, height: 800 };

/** The size of the function that is opened in it. */
const SIZE = 100;

/** The body of a narrow window does not scroll sideways. */
async function narrow(judgement) {
  await judgement.withPage({ viewport: NARROW }, '', async page => {
    const check = async state => {
      await painted(page);
      const { over, wide } = await page.evaluate(() => {
        const root = document.documentElement;
        const scrolled = Math.max(root.scrollWidth, document.body.scrollWidth);
        const wide = osierJudge.tooWide().slice(0, 3).map(osierJudge.describe);
        return { over: scrolled - root.clientWidth, wide };
      });
      if (over > 0) {
        judgement.find('narrow', `${state}: ${over} pixels too wide: ${wide.join(', ')}`);
      }
    };
    await thin(page, 200);
    await check('top');
    if (judgement.options.tables) return;
    await openFunction(page, nearest(await functionsOf(page), SIZE).name);
    await check('a function');
    await selectPoint(page);
    await check('a point');
  });
}

/** Runs in the page: what a reader without scripts sees. */
function seen() {
  const { visible, allRows } = osierJudge;
  const before = element => {
    const table = document.querySelector('#functions');
    return !table || element.compareDocumentPosition(table) & Node.DOCUMENT_POSITION_FOLLOWING;
  };
  const shown = selector => [...document.querySelectorAll(selector)].filter(visible);
  const paragraphs = shown('p').filter(before).map(p => p.textContent).join(' ');
  return {
    title: shown('h1').map(h => h.textContent.trim()).join(''),
    sentences: (paragraphs.match(/[.!?](\s|$)/g) ?? []).length,
    rows: allRows().filter(visible).length,
    tables: shown('table').length,
  };
}

/** Without scripts, the page shows its title, its summary, and the tables that it has with them. */
async function plainPage(judgement) {
  const find = text => judgement.find('plain', text);
  const scripted = await judgement.withPage({}, '', page => page.evaluate(seen));
  await judgement.withPage({ javaScriptEnabled: false }, '', async page => {
    const { title, sentences, rows, tables } = await page.evaluate(seen);
    if (title === '') find('without scripts there is no title');
    const wanted = judgement.options.tables ? scripted.sentences : 2;
    if (sentences < wanted) find('without scripts there is no summary of two sentences');
    if (rows < scripted.rows) find(`without scripts ${rows} of ${scripted.rows} functions show`);
    const all = scripted.tables;
    if (tables < all) find(`without scripts ${tables} of ${all} tables show`);
  });
}

module.exports = { NARROW, narrow, plainPage };
