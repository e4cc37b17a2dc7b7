'use strict';
// Sizes and times of a page beside goals.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const { functionsOf, largest, painted } = require('./browser.js');

/** The largest size of a file, in bytes. */
const LARGEST = 40_000_000;

/**
 * Goals in milliseconds, and as multiples of the time until an empty page is ready. Where that time
 * is 12 ms, both goals are the same.
 */
const GOALS = {
  ready: { milliseconds: 3000, ratio: 250 },
  act: { milliseconds: 200, ratio: 17 },
  // A view is unpacked and laid out when it is opened: that of SQLite's largest function has 7 MB.
  open: { milliseconds: 1000, ratio: 85 },
};

/** The most events of one kind that the times of a round are taken from. */
const EVENTS = 6;

/** Times until an empty page is ready, in milliseconds: one for each round. */
async function emptyTimes(browser, rounds) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'osier-empty-'));
  try {
    const file = path.join(folder, 'empty.html');
    fs.writeFileSync(file, '<!DOCTYPE html><html lang="en"><title>empty</title>'
      + '<script>performance.mark("osier-ready")</script>');
    const times = [];
    for (let round = 0; round < rounds; round++) {
      const context = await browser.newContext();
      const page = await context.newPage();
      await page.goto(pathToFileURL(file).href);
      times.push(await readyTime(page));
      await context.close();
    }
    return times;
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}

function readyTime(page) {
  return page.evaluate(() => performance.getEntriesByName('osier-ready', 'mark')[0].startTime);
}

/** The time from an event that `act` causes until `judge[done]` holds in a painted frame. */
async function timed(page, name, type, done, args, act) {
  await painted(page);
  const parts = [`judge-${name}`, type, done, args];
  await page.evaluate(parts => osierJudge.after(...parts), parts);
  await act();
  return page.evaluate(() => osierJudge.measured);
}

/** Sorts by some columns, up and down. */
async function sorting(judgement, page) {
  const headers = await page.evaluate(() => osierJudge.headers().map(h => h.column));
  const times = [];
  for (const column of headers.slice(0, EVENTS / 2)) {
    for (let press = 0; press < 2; press++) {
      const button = page.locator('#functions thead th button').nth(headers.indexOf(column));
      await button.scrollIntoViewIfNeeded();
      const click = () => button.click();
      times.push(await timed(page, 'sort', 'click', 'isSorted', [column], click));
      if (!await page.evaluate(column => osierJudge.areAllSorted(column), column)) {
        judgement.find('contract', `rows that column ${column} sorts are out of order`);
      }
    }
  }
  return times;
}

/** Types the start of a name letter by letter, and removes it. */
async function filtering(page, functions) {
  const text = functions[Math.floor(functions.length / 2)].text.slice(0, EVENTS - 1);
  const times = [];
  await page.locator('#filter').click();
  for (let length = 1; length <= text.length; length++) {
    const typed = text.slice(0, length);
    const type = () => page.keyboard.insertText(typed.at(-1));
    times.push(await timed(page, 'filter', 'input', 'isFiltered', [typed], type));
  }
  await page.keyboard.press('Control+A');
  const clear = () => page.keyboard.press('Delete');
  times.push(await timed(page, 'filter', 'input', 'isFiltered', [''], clear));
  return times;
}

/** Opens the largest function by a click on its link; its time is that of the first opening. */
async function opening(page, largest) {
  const isShown = await page.evaluate(name => {
    osierJudge.forget();
    const row = osierJudge.rowOf(name);
    osierJudge.chosen = osierJudge.link(row);
    return osierJudge.visible(row);
  }, largest.name);
  if (!isShown) {
    await page.fill('#filter', largest.text);
    await page.waitForFunction(text => osierJudge.isFiltered(text), largest.text);
  }
  const link = (await page.evaluateHandle(() => osierJudge.chosen)).asElement();
  await link.scrollIntoViewIfNeeded();
  return [await timed(page, 'open', 'click', 'isOpen', [], () => link.click())];
}

async function selecting(page) {
  const times = [];
  for (const version of ['base', 'opt']) {
    for (const part of [0.5, 0.9, 0.1]) {
      const place = await page.evaluate(([version, part]) => {
        const points = osierJudge.points(version);
        osierJudge.chosen = points[Math.floor(part * (points.length - 1))];
        return `${osierJudge.chosen.dataset.v} ${osierJudge.chosen.dataset.p}`;
      }, [version, part]);
      if (await page.evaluate(place => osierJudge.isSelected(place), place)) continue;
      const point = (await page.evaluateHandle(() => osierJudge.chosen)).asElement();
      await point.scrollIntoViewIfNeeded();
      const click = () => point.click();
      times.push(await timed(page, 'select', 'click', 'isSelected', [place], click));
    }
  }
  return times;
}

/** The page's own measures of one kind, in milliseconds. */
function ownTimes(page, name) {
  return page.evaluate(name =>
    performance.getEntriesByName(name, 'measure').map(entry => entry.duration), name);
}

/** Loads the page, then sorts, filters, opens and selects. Adds to the lists in `times`. */
async function round(judgement, times) {
  await judgement.withPage({}, '', async page => {
    await page.evaluate(answer => { osierJudge.patience = answer; }, judgement.patience.answer);
    times.ready.push([await readyTime(page)]);
    const functions = await functionsOf(page);
    judgement.largest = largest(functions);
    times.sort.push(await sorting(judgement, page));
    times.filter.push(await filtering(page, functions));
    times.open.push(await opening(page, judgement.largest));
    times.select.push(await selecting(page));
    for (const name of ['sort', 'filter', 'open', 'select']) {
      times.own[name].push(...await ownTimes(page, `osier-${name}`));
    }
  });
}

/**
 * Adds a row of the table, and a finding if the goal is missed. `rounds` has the times of the same
 * events in each round. The slowest event counts, by its best round.
 */
function judge(judgement, name, rounds, empty, goal, own) {
  if (rounds.some(times => times.length !== rounds[0].length)) {
    throw new Error(`the rounds have different events of ${name}`);
  }
  const events = rounds[0].map((_, at) => Math.min(...rounds.map(times => times[at])));
  const time = Math.max(...events);
  const ratio = time / empty;
  const isMissed = time > goal.milliseconds && ratio > goal.ratio;
  judgement.figures.push({
    name,
    best: Math.min(...events),
    time,
    worst: Math.max(...rounds.flat()),
    own: own.length > 0 ? Math.max(...own) : NaN,
    ratio,
    goal,
    isMissed,
  });
  if (isMissed) {
    judgement.find('times', `${name}: ${time.toFixed(0)} ms, ${goal.milliseconds} wanted`);
  }
}

/**
 * Measures a page. A goal is missed only if a time is beyond both the goal and the multiple
 * of an empty page's time, so that a slow or busy machine fails no page.
 */
async function times(judgement) {
  const bytes = fs.statSync(judgement.file).size;
  judgement.bytes = bytes;
  if (bytes > LARGEST) judgement.find('times', `the file has ${bytes} bytes, over ${LARGEST}`);
  const { rounds } = judgement.options;
  const all = {
    ready: [], sort: [], filter: [], open: [], select: [],
    own: { sort: [], filter: [], open: [], select: [] },
  };
  const before = await emptyTimes(judgement.browser, rounds + 1);
  for (let at = 0; at < rounds; at++) await round(judgement, all);
  const after = await emptyTimes(judgement.browser, rounds + 1);
  const empty = Math.min(...before, ...after);
  judgement.empty = empty;
  judge(judgement, 'ready', all.ready, empty, GOALS.ready, all.ready.flat());
  for (const name of ['sort', 'filter', 'open', 'select']) {
    judge(judgement, name, all[name], empty, GOALS[name] ?? GOALS.act, all.own[name]);
    if (all.own[name].length === 0) {
      judgement.find('contract', `the page never recorded the measure osier-${name}`);
    }
  }
}

module.exports = { times };
