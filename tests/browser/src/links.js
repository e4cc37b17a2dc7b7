'use strict';
// Links to functions and points open what they name, whatever the name consists of.

const { fragment, functionsOf, openFunction, painted, show } = require('./browser.js');

/** The most functions whose links are followed, in the page that is open and from outside. */
const INSIDE = 60;
const OUTSIDE = 12;

/** Fragments that name nothing. None may make a script fail. */
const WRONG = ['#f=', '#f=%', '#f=%E0%A4%A', '#f=no such function', '#p=block0:0', '#&&=', '#f',
  '#f=__proto__', '#f=constructor'];
const WRONG_POINTS = ['', 'block', 'block0', 'block999999:0', 'block0:999999', 'block0:-1',
  'block0:1e9', '%', ':', '"]', 'block0:0&p=block0:1'];

/** The functions whose links are followed: unusual names first, then some of the others. */
function sample(functions, most) {
  const named = functions.filter(f => f.name !== null);
  const isUnusual = f => !/^[\w.$-]*$/.test(f.name);
  const usual = named.filter(f => !isUnusual(f));
  const step = Math.max(1, Math.ceil(usual.length / 8));
  return [...named.filter(isUnusual), ...usual.filter((_, at) => at % step === 0)].slice(0, most);
}

/** Text as it is compared: without marks of direction, which isolate names from one another. */
function plain(text) {
  return text?.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '')
    .replace(/\s+/g, ' ').trim();
}

async function expectHeading(judgement, page, f, how) {
  const heading = await page.evaluate(() => osierJudge.heading());
  if (!plain(heading)?.includes(plain(f.text))) {
    judgement.find('links', `${how} ${show(f.name)} shows ${show(heading)}`);
  }
}

/** Opens a function by its link, and gives one of its points. */
async function follow(judgement, page, f) {
  const shown = await openFunction(page, f.name).then(() => true, () => false);
  if (!shown) {
    judgement.find('links', `${fragment(f.name)} opens nothing`);
    return null;
  }
  await expectHeading(judgement, page, f, 'the link to');
  return page.evaluate(() => {
    const points = osierJudge.points('base');
    return points[Math.floor(points.length / 2)]?.dataset.p ?? null;
  });
}

async function expectSelected(judgement, page, f, point) {
  const isSelected = point => osierJudge.selected().some(place => place.endsWith(` ${point}`));
  await page.waitForFunction(isSelected, point).catch(() => {
    judgement.find('links', `${fragment(f.name, point)} does not select the point`);
  });
}

/** Whether so many links fail that the rest tells nothing more, each after some waiting. */
function isLost(judgement) {
  return judgement.findings.filter(finding => finding.check === 'links').length >= 4;
}

async function links(judgement) {
  let functions;
  const points = new Map();
  await judgement.withPage({}, '', async page => {
    functions = await functionsOf(page);
    for (const f of sample(functions, INSIDE)) {
      if (isLost(judgement)) return;
      const point = await follow(judgement, page, f);
      if (!point) continue;
      points.set(f.name, point);
      await page.evaluate(hash => { location.hash = hash; }, fragment(f.name, point));
      await expectSelected(judgement, page, f, point);
    }
    await wayBack(judgement, page, functions.filter(f => points.has(f.name)));
    await wrongLinks(judgement, page, functions[0]?.name ?? '');
  });
  for (const f of sample(functions, OUTSIDE).filter(f => points.has(f.name))) {
    if (isLost(judgement)) return;
    const point = points.get(f.name);
    await judgement.withPage({}, fragment(f.name, point), async page => {
      await page.waitForFunction(() => osierJudge.isOpen()).catch(() => {
        judgement.find('links', `${fragment(f.name, point)} opens nothing in a new window`);
      });
      await expectHeading(judgement, page, f, 'a new window of');
      await expectSelected(judgement, page, f, point);
    });
  }
}

/** The button to the page before shows the function before. */
async function wayBack(judgement, page, functions) {
  if (functions.length < 2) return;
  const [first, second] = functions;
  await openFunction(page, first.name);
  await openFunction(page, second.name);
  await page.goBack();
  const shows = text => osierJudge.heading()?.includes(text);
  await page.waitForFunction(shows, first.text).catch(() => {
    judgement.find('links', 'the way back does not show the function before');
  });
}

/** Links that name nothing leave a page that works. */
async function wrongLinks(judgement, page, name) {
  const points = WRONG_POINTS.map(point => `#f=${encodeURIComponent(name)}&p=${point}`);
  for (const hash of [...WRONG, ...points]) {
    await page.evaluate(hash => { location.hash = hash; }, hash);
    await painted(page);
  }
  const rows = await page.evaluate(() => osierJudge.allRows().length);
  if (rows === 0) judgement.find('links', 'a link that names nothing leaves no table');
}

module.exports = { links, plain };
