'use strict';
// Opens pages in headless Chromium, and records what no page of a report may do: fail in script,
// ask the network, open a dialog.

const fs = require('node:fs');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const { chromium } = require('playwright-core');

const INSIDE = fs.readFileSync(path.join(__dirname, 'inside.js'), 'utf8');

/** The window in which pages are judged unless a check says otherwise. */
const WINDOW = { width: 1280, height: 900 };

/**
 * How long the judge waits in milliseconds: for a page to be ready, and for the answer to an
 * action.
 */
const PATIENCE = { ready: 60_000, answer: 15_000 };

/** Starts Chromium, which cannot resolve any host. */
function launch() {
  const args = ['--host-resolver-rules=MAP * ~NOTFOUND', '--disable-dev-shm-usage'];
  // The sandbox of Chromium refuses to work for root.
  if (process.getuid?.() === 0) args.push('--no-sandbox');
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? chromiumPath(), args });
}

function chromiumPath() {
  const folders = (process.env.PATH ?? '').split(path.delimiter);
  const found = folders.map(folder => path.join(folder, 'chromium')).find(fs.existsSync);
  if (!found) throw new Error('there is no chromium; tests/browser/install installs it');
  return found;
}

/** The judgement of one page: where it is, its findings, its figures. */
class Judgement {
  constructor(browser, file, options = {}) {
    this.browser = browser;
    this.file = file;
    this.url = pathToFileURL(path.resolve(file)).href;
    this.options = { rounds: 3, ...options };
    this.patience = { ...PATIENCE, ...options.patience };
    /** Each with `check` and `text`, in the order of their discovery. */
    this.findings = [];
    /** Each with the columns of the printed table. */
    this.figures = [];
    this.notes = [];
  }

  /** Records a finding once. */
  find(check, text) {
    if (!this.findings.some(f => f.check === check && f.text === text)) {
      this.findings.push({ check, text });
    }
  }

  /**
   * Opens the page with a fragment in a context of its own, hands it to `use` once it is ready,
   * and closes it. `settings` are those of the browser's context.
   */
  async withPage(settings, fragment, use) {
    const context = await this.browser.newContext({ viewport: WINDOW, ...settings });
    try {
      const page = await context.newPage();
      await this.watch(page);
      page.setDefaultTimeout(this.patience.answer);
      // A busy machine takes long to load any page. Patience is for the page's own script.
      const timeout = Math.max(this.patience.ready, 30_000);
      await page.goto(this.url + fragment, { waitUntil: 'load', timeout });
      const isActive = settings.javaScriptEnabled !== false && !this.options.tables;
      if (isActive) await this.ready(page);
      await page.evaluate(INSIDE);
      return await use(page);
    } finally {
      await context.close();
    }
  }

  /** Waits until the page has said that it is interactive. Throws if it does not. */
  async ready(page) {
    const isReady = () => performance.getEntriesByName('osier-ready', 'mark').length > 0;
    const timeout = this.patience.ready;
    await page.waitForFunction(isReady, undefined, { timeout }).catch(() => {
      this.isDead = true;
      throw new Error('the page never marked osier-ready');
    });
  }

  /** Records errors, requests and dialogs of a page from now on. */
  async watch(page) {
    page.on('pageerror', error => this.find('script', `${error}`));
    page.on('console', message => {
      if (['error', 'warning'].includes(message.type())) {
        this.find('script', `console ${message.type()}: ${message.text()}`);
      }
    });
    page.on('crash', () => this.find('script', 'the page crashed'));
    page.on('dialog', dialog => {
      this.find('dialog', `${dialog.type()} ${JSON.stringify(dialog.message())}`);
      dialog.dismiss().catch(error => this.find('dialog', `${error}`));
    });
    page.on('popup', () => this.find('network', 'the page opened a window'));
    const session = await page.context().newCDPSession(page);
    await session.send('Network.enable');
    session.on('Network.webSocketCreated', ({ url }) => {
      this.find('network', `a web socket to ${url}`);
    });
    page.on('request', request => {
      const url = request.url();
      const isOwn = request.isNavigationRequest() && url.split('#')[0] === this.url;
      if (!isOwn && !/^(data|blob|about):/.test(url)) {
        this.find('network', `${request.resourceType()} ${url.slice(0, 200)}`);
      }
    });
  }
}

/** Resolves once the frame with all changes so far is painted. */
function painted(page) {
  return page.evaluate(() => new Promise(resolve => {
    const channel = new MessageChannel();
    channel.port1.onmessage = resolve;
    requestAnimationFrame(() => channel.port2.postMessage(null));
  }).then(() => undefined));
}

/**
 * The name of each function, its text with and without blanks around it, and its size (NaN without
 * a column of sizes), in the order of the page.
 */
function functionsOf(page) {
  return page.evaluate(() => {
    const judge = osierJudge;
    const rows = judge.allRows();
    const column = rows.length > 0 ? judge.sizeHeader()?.column : undefined;
    return rows.map(row => ({
      name: judge.target(judge.link(row).getAttribute('href'))?.name ?? null,
      text: judge.link(row).textContent.trim(),
      whole: judge.link(row).textContent,
      size: column === undefined ? NaN : judge.figure(row.cells[column]),
    }));
  });
}

/** The function whose size is nearest to `size`. */
function nearest(functions, size) {
  const named = functions.filter(f => f.name !== null);
  const distance = f => Number.isNaN(f.size) ? Infinity : Math.abs(f.size - size);
  return named.reduce((best, f) => distance(f) < distance(best) ? f : best, named[0]);
}

/** A text for people: between quotes, with escapes for characters that they cannot see. */
function show(text) {
  const unseen = new RegExp('[\\0-\\x1f\\x7f-\\xa0\\xad\\u061c\\u200b-\\u200f\\u2028-\\u202e'
    + '\\u2060-\\u206f\\ufeff]', 'g');
  const escaped = `${text}`.replace(unseen, c => `\\u{${c.codePointAt(0).toString(16)}}`);
  return text === null ? 'nothing' : `"${escaped}"`;
}

/** The function with the largest size, or the first of functions without sizes. */
function largest(functions) {
  const named = functions.filter(f => f.name !== null);
  return named.reduce((best, f) => f.size > (best.size || 0) ? f : best, named[0]);
}

/** The fragment of a function's link. */
function fragment(name, point) {
  return `#f=${encodeURIComponent(name)}` + (point ? `&p=${encodeURIComponent(point)}` : '');
}

/**
 * Leaves few rows by filtering a long table, so that checks of each element end. Gives the number
 * of rows left.
 */
async function thin(page, most) {
  const functions = await functionsOf(page);
  if (functions.length <= most) return functions.length;
  const counts = new Map();
  for (const f of functions) {
    const key = f.text.slice(0, 6).toLowerCase();
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const fitting = [...counts].filter(([key, count]) => key !== '' && count <= most / 2);
  const [needle] = fitting.reduce((best, entry) => entry[1] > best[1] ? entry : best,
    [functions[0].text, 0]);
  await page.fill('#filter', needle);
  await page.waitForFunction(text => osierJudge.isFiltered(text), needle);
  return page.evaluate(() => osierJudge.rows().length);
}

/** Opens a function by its fragment and waits until it is shown. */
async function openFunction(page, name, point) {
  await page.evaluate(hash => {
    osierJudge.forget();
    location.hash = hash;
  }, fragment(name, point));
  await page.waitForFunction(() => osierJudge.isOpen());
  await painted(page);
}

/**
 * Selects the point in the middle of the base's listing by a click, or the one at `most` if that
 * is earlier. Gives its place.
 */
async function selectPoint(page, most = Number.MAX_SAFE_INTEGER) {
  const place = await page.evaluate(most => {
    const points = osierJudge.points('base');
    const point = points[Math.min(most, Math.floor(points.length / 2))];
    osierJudge.chosen = point;
    return `${point.dataset.v} ${point.dataset.p}`;
  }, most);
  const point = (await page.evaluateHandle(() => osierJudge.chosen)).asElement();
  await point.click();
  await page.waitForFunction(place => osierJudge.isSelected(place), place);
  await painted(page);
  return place;
}

module.exports = {
  Judgement, WINDOW, fragment, functionsOf, largest, launch, nearest, openFunction, painted,
  selectPoint, show, thin,
};
