'use strict';
// All checks of a page, and the printed judgement.

const { accessible } = require('./accessible.js');
const { Judgement, show } = require('./browser.js');
const { contract } = require('./contract.js');
const { keyboard } = require('./keyboard.js');
const { narrow, plainPage } = require('./layout.js');
const { links } = require('./links.js');
const { names } = require('./names.js');
const { pictures } = require('./pictures.js');
const { points } = require('./points.js');
const { times } = require('./times.js');

/** Each check by its name, in the order in which they run. */
const CHECKS = {
  contract,
  times,
  accessibility: accessible,
  keyboard,
  points,
  links,
  narrow,
  plain: plainPage,
  names,
};

/** The checks of a page that has tables alone. */
const OF_TABLES = ['accessibility', 'keyboard', 'narrow', 'plain', 'names'];

/** Judges one page by the named checks. A check that cannot go on is a finding of its own. */
async function judgePage(browser, file, options, only) {
  const judgement = new Judgement(browser, file, options);
  const run = async (name, check) => {
    const start = performance.now();
    try {
      await check(judgement);
    } catch (error) {
      const lines = `${error.message ?? error}`.split('\n');
      judgement.find(name, `the check ended early: ${lines.slice(0, 2).join(' ')}`);
    }
    judgement.notes.push(`${name} took ${((performance.now() - start) / 1000).toFixed(1)} s`);
  };
  const checks = only.map(name => [name, CHECKS[name]]);
  if (judgement.options.screenshots) checks.push(['screenshots', pictures]);
  for (const [name, check] of checks) {
    // Each further check of a page that is never ready would wait, and find the same.
    if (judgement.isDead) judgement.notes.push(`${name} did not run`);
    else await run(name, check);
  }
  return judgement;
}

/**
 * Prints the table of a page's figures, and its findings. "Quickest" and "slowest" are of different
 * events, each in its best round; "worst" is the slowest event in any round.
 */
function print(judgement) {
  const { file, figures, findings, notes } = judgement;
  console.log(file);
  // A check of times that ended early has no figures.
  if (figures.length > 0) {
    const { bytes, empty, largest } = judgement;
    console.log(`  ${(bytes / 1e6).toFixed(2)} MB; empty page ready in ${empty.toFixed(1)} ms; `
      + `largest function ${show(largest.text.slice(0, 60))}`);
    console.log('         quickest   slowest     worst  page\'s own  x empty  goal');
  }
  const ms = value => (Number.isNaN(value) ? '-' : `${value.toFixed(0)} ms`).padStart(9);
  for (const { name, best, time, worst, own, ratio, goal, isMissed } of figures) {
    const cells = [best, time, worst, own].map(ms).join(' ');
    console.log(`  ${name.padEnd(6)}${cells}${ratio.toFixed(1).padStart(11)}  `
      + `${goal.milliseconds} ms or ${goal.ratio} times empty${isMissed ? '  MISSED' : ''}`);
  }
  for (const note of notes) console.log(`  ${note}`);
  for (const { check, text } of findings) console.log(`  FAULT ${check}: ${text}`);
  console.log(`  ${findings.length} faults`);
}

module.exports = { CHECKS, OF_TABLES, judgePage, print };
