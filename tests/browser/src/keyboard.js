'use strict';
// The page without a mouse: Tab reaches everything, the focus shows, keys open and select.

const { contractOfFunction } = require('./contract.js');
const { functionsOf, nearest, openFunction, painted, thin } = require('./browser.js');

/** Each row has a link, and each press of a key takes a moment: longer tables are filtered. */
const ROWS = 30;

/** The size of the function whose points are walked through. */
const SIZE = 20;

/** The most presses of Tab until the page counts as a trap. */
const PRESSES = 1500;

async function keyboard(judgement) {
  await judgement.withPage({}, '', async page => {
    const find = text => judgement.find('keyboard', text);
    await thin(page, ROWS);
    await tabThrough(page, 'top', find);
    if (judgement.options.tables) return;
    await sortByKeys(page, find);
    await openByKeys(page, find);
    const { name } = nearest(await functionsOf(page), SIZE);
    await openFunction(page, name);
    await contractOfFunction(judgement, page);
    await tabThrough(page, 'a function', find);
    for (const version of ['base', 'opt']) await selectByKeys(page, version, find);
    await tabThrough(page, 'a point', find);
  });
}

/** Presses Tab through the page from its start, and finds elements left out or without focus. */
async function tabThrough(page, state, find) {
  const expected = await page.evaluate(() => {
    const judge = osierJudge;
    document.activeElement?.blur();
    getSelection().removeAllRanges();
    scrollTo(0, 0);
    judge.expected = new Map(judge.tabbable().map(e => [e, judge.looks(e)]));
    judge.visited = new Set();
    return judge.expected.size;
  });
  // The place from which Tab starts is the start of the page only after a click there.
  await startOfPage(page);
  const kinds = new Set();
  let presses = 0;
  for (; presses < PRESSES + expected; presses++) {
    await page.keyboard.press('Tab');
    const at = await page.evaluate(visit);
    if (at.isEnd) break;
    if (at.finding) find(`${state}: ${at.finding}`);
    if (!kinds.has(at.kind)) {
      kinds.add(at.kind);
      if (!await isSeen(page)) find(`${state}: the focus is not seen on ${at.text}`);
    }
  }
  if (presses === PRESSES + expected) find(`${state}: Tab never leaves the page`);
  const left = await page.evaluate(() => [...osierJudge.expected.keys()]
    .filter(e => !osierJudge.visited.has(e) && e.isConnected && osierJudge.visible(e))
    .map(osierJudge.describe));
  if (left.length > 0) {
    find(`${state}: Tab does not reach ${left.length} elements: ${left.slice(0, 3).join(', ')}`);
  }
  const mouseOnly = await page.evaluate(() => osierJudge.mouseOnly().map(osierJudge.describe));
  if (mouseOnly.length > 0) {
    find(`${state}: a mouse alone reaches ${mouseOnly.slice(0, 3).join(', ')}`);
  }
}

/** Moves the start of sequential focus to the top, without focusing or clicking an element. */
function startOfPage(page) {
  return page.evaluate(() => {
    const anchor = document.createElement('span');
    anchor.tabIndex = -1;
    document.body.prepend(anchor);
    anchor.focus();
    anchor.remove();
  });
}

/** Runs in the page: describes the focused element, and says what is wrong with it. */
function visit() {
  const judge = osierJudge;
  const element = document.activeElement;
  if (!element || element === document.body || judge.visited.has(element)) return { isEnd: true };
  judge.visited.add(element);
  const text = judge.describe(element);
  const classes = [...element.classList].filter(name => !name.startsWith('l-')).sort();
  let finding = null;
  if (judge.expected.has(element) && !judge.showsFocus(element, judge.expected.get(element))) {
    finding = `the focus is not visible on ${text}`;
  } else if (!judge.isUncovered(element)) {
    finding = `the focused element is covered or outside: ${text}`;
  }
  return { text, finding, kind: [element.localName, ...classes].join('.') };
}

/** Whether pixels around the focused element change when it loses the focus. */
async function isSeen(page) {
  const clip = await page.evaluate(() => {
    // The first box that is in the window, with room for an outline.
    const boxes = [...document.activeElement.getClientRects()];
    const box = boxes.find(b => b.bottom > 0 && b.top < innerHeight) ?? boxes[0];
    const [left, top] = [Math.max(0, box.left - 6), Math.max(0, box.top - 6)];
    const right = Math.min(innerWidth, box.right + 6);
    const bottom = Math.min(innerHeight, box.bottom + 6);
    return { x: left, y: top, width: right - left, height: bottom - top };
  });
  // Covered and scrolled-out elements have a finding of their own.
  if (clip.width < 1 || clip.height < 1) return true;
  const options = { clip, animations: 'disabled', caret: 'hide' };
  const focused = await page.screenshot(options);
  await page.evaluate(() => {
    osierJudge.focused = document.activeElement;
    osierJudge.focused.blur();
  });
  const blurred = await page.screenshot(options);
  await page.evaluate(() => osierJudge.focused.focus({ preventScroll: true }));
  return !focused.equals(blurred);
}

/** Presses a key, and gives whether `holds` comes true in the page soon after. */
async function pressed(page, key, holds, argument) {
  await page.keyboard.press(key);
  return page.waitForFunction(holds, argument).then(() => true, error => {
    if (error.name === 'TimeoutError') return false;
    throw error;
  });
}

async function sortByKeys(page, find) {
  for (const key of ['Enter', 'Space']) {
    const { column, order } = await page.evaluate(() => {
      const { button, cell, column } = osierJudge.headers().at(-1);
      button.focus();
      return { column, order: cell.getAttribute('aria-sort') };
    });
    const isSorted = ([column, order]) => {
      const { cell } = osierJudge.headers().find(h => h.column === column);
      return cell.getAttribute('aria-sort') !== order && osierJudge.isSorted(column);
    };
    if (!await pressed(page, key, isSorted, [column, order])) {
      find(`${key} on the header of a column does not sort`);
    }
  }
}

async function openByKeys(page, find) {
  await page.evaluate(() => {
    osierJudge.forget();
    osierJudge.link(osierJudge.rows()[0]).focus();
  });
  if (!await pressed(page, 'Enter', () => osierJudge.isOpen())) {
    find('Enter on the link of a function does not open it');
  }
}

/** Enter selects a point that Tab reaches; arrows go on to each other point. */
async function selectByKeys(page, version, find) {
  const first = await page.evaluate(version => {
    const point = osierJudge.points(version).find(point => point.tabIndex >= 0);
    point?.focus();
    return point ? `${version} ${point.dataset.p}` : null;
  }, version);
  if (first === null) return find(`Tab reaches no point of #${version}`);
  if (!await pressed(page, 'Enter', place => osierJudge.isSelected(place), first)) {
    find(`Enter does not select the point ${first}`);
  }
  const count = await page.evaluate(version => osierJudge.points(version).length, version);
  if (count < 2) return undefined;
  // From the first point, or as far as it goes, to the last.
  const seen = new Set();
  for (const key of ['ArrowUp', 'ArrowDown']) {
    for (let press = 0; press < count; press++) {
      await page.keyboard.press(key);
      await painted(page);
      const at = await page.evaluate(() => {
        const { dataset } = document.activeElement;
        return dataset.p ? `${dataset.v} ${dataset.p}` : null;
      });
      if (at) seen.add(at);
    }
  }
  const missed = await page.evaluate(([version, seen]) => osierJudge.points(version)
    .map(point => `${version} ${point.dataset.p}`)
    .filter(place => !seen.includes(place)), [version, [...seen]]);
  if (missed.length > 0) {
    find(`arrows do not reach ${missed.length} of ${count} points: ${missed.slice(0, 3)}`);
  }
  const last = await page.evaluate(version => {
    const { dataset } = document.activeElement;
    return dataset.v === version ? `${version} ${dataset.p}` : null;
  }, version);
  if (last && !await pressed(page, 'Enter', place => osierJudge.isSelected(place), last)) {
    find(`Enter does not select the point ${last}, which arrows reached`);
  }
  const selected = await page.evaluate(() => osierJudge.selected());
  if (last && selected.filter(place => place.startsWith(version)).length > 1) {
    find(`several points are selected: ${selected.slice(0, 4)}`);
  }
  return undefined;
}

module.exports = { keyboard };
