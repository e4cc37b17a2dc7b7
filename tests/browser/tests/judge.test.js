'use strict';
// The judge on trial: it accepts a page without faults, and each fault fails it.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { after, before, test } = require('node:test');
const { launch } = require('../src/browser.js');
const { CHECKS, judgePage } = require('../src/judge.js');
const faults = require('./faults.js');

const PAGE = path.join(__dirname, 'page.html');
const TEXT = fs.readFileSync(PAGE, 'utf8');
/** The names of the functions in the page. */
const NAMES = ['main', 'sum', '<img data-osier-hostile onerror="osierHostile=1" src=x>',
  '100%41&p="#\u202eoc'];

let browser;
let folder;
let options;

before(async () => {
  browser = await launch();
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'osier-judge-'));
  const names = path.join(folder, 'names.json');
  fs.writeFileSync(names, JSON.stringify(NAMES));
  options = { rounds: 1, names };
});

after(async () => {
  await browser?.close();
  if (folder) fs.rmSync(folder, { recursive: true });
});

test('a page without faults has no findings', async () => {
  const screenshots = path.join(folder, 'pictures');
  const all = { ...options, screenshots };
  const { findings, figures } = await judgePage(browser, PAGE, all, Object.keys(CHECKS));
  assert.deepEqual(findings, []);
  assert.deepEqual(figures.map(f => f.name), ['ready', 'sort', 'filter', 'open', 'select']);
  for (const { best, time, worst, own } of figures) {
    assert.ok(best > 0 && best <= time && time <= worst && own > 0);
  }
  const expected = ['', 'dark-', 'narrow-'].flatMap(look =>
    ['top', 'table', 'function', 'point'].map(view => `page-${look}${view}.png`));
  assert.deepEqual(fs.readdirSync(screenshots).sort(), expected.sort());
});

for (const { name, check, from, to, finding, ready } of faults) {
  test(`a page that ${name} is found out`, async () => {
    assert.equal(TEXT.split(from).length, 2, `${from} stands once in the page`);
    const file = path.join(folder, 'fault.html');
    fs.writeFileSync(file, TEXT.replace(from, () => to));
    const hasty = { ...options, patience: { ready: ready ?? 3000, answer: 3000 } };
    const { findings } = await judgePage(browser, file, hasty, [check]);
    const lines = findings.map(f => `${f.check}: ${f.text}`);
    assert.ok(lines.some(line => line.includes(finding)), `no finding ${finding}: ${lines}`);
  });
}

test('the command tells faults from bad input by its status', () => {
  const judge = (...args) => spawnSync(path.join(__dirname, '..', 'judge'), args,
    { encoding: 'utf8' });
  const pale = path.join(folder, 'pale.html');
  fs.writeFileSync(pale, TEXT.replace('.scroll {', 'p { color: #999; } .scroll {'));
  const good = judge('--only', 'contract,plain', PAGE);
  assert.equal(good.status, 0, good.stdout + good.stderr);
  const bad = judge('--only', 'accessibility', PAGE, pale);
  assert.equal(bad.status, 1, bad.stdout + bad.stderr);
  assert.match(bad.stdout, /FAULT accessibility: light, top: color-contrast/);
  const wrong = [[], ['no.html'], ['--only', 'beauty', PAGE], ['--rounds', 'x', PAGE],
    ['--names', 'no.json', PAGE], ['--fast', PAGE]];
  for (const args of wrong) {
    const { status, stdout, stderr } = judge(...args);
    assert.equal(status, 2, `${args}: ${stdout}${stderr}`);
    assert.match(stderr, /^judge: [^\n]+\n$/);
  }
});
