'use strict';
// Accessibility by axe-core, in both color schemes, in the states that a reader meets.

const {
  functionsOf, nearest, openFunction, painted, selectPoint, thin,
} = require('./browser.js');
const { weakTexts } = require('./contrast.js');
const AXE = require('axe-core').source;

/** Rules look at each element: longer tables are filtered, and a function of medium size opens. */
const ROWS = 100;
const SIZE = 150;

/**
 * Gives a page without a background of its own the color that the browser draws there. axe takes
 * white for it in the dark scheme too.
 */
function paintCanvas() {
  const { documentElement: root, body } = document;
  const isClear = element => getComputedStyle(element).backgroundColor === 'rgba(0, 0, 0, 0)';
  if (isClear(root) && isClear(body)) root.style.backgroundColor = 'Canvas';
}

async function ask(judgement, page, state) {
  await painted(page);
  const results = await page.evaluate(async () => {
    const { violations, incomplete } = await axe.run(document, {
      resultTypes: ['violations', 'incomplete'],
    });
    const brief = results => results.map(result => ({
      id: result.id,
      help: result.help,
      count: result.nodes.length,
      places: result.nodes.slice(0, 3).map(node => node.target.join(' ')),
      reason: result.nodes[0]?.failureSummary?.split('\n').at(1)?.trim() ?? '',
    }));
    return { violations: brief(violations), incomplete: brief(incomplete) };
  });
  for (const { id, help, count, places, reason } of results.violations) {
    judgement.find('accessibility',
      `${state}: ${id}: ${help}; ${count} elements: ${places.join(', ')}; ${reason}`);
  }
  for (const text of await page.evaluate(weakTexts)) {
    judgement.find('accessibility', `${state}: ${text}`);
  }
  for (const { id, count, places } of results.incomplete) {
    // `weakTexts` judges these texts, except for those of pictures.
    if (id === 'color-contrast') continue;
    judgement.notes.push(`axe cannot tell, ${state}: ${id}, ${count} elements: ${places[0]}`);
  }
}

async function accessible(judgement) {
  for (const colorScheme of ['light', 'dark']) {
    await judgement.withPage({ colorScheme }, '', async page => {
      await page.evaluate(AXE);
      await page.evaluate(paintCanvas);
      await thin(page, ROWS);
      await ask(judgement, page, `${colorScheme}, top`);
      if (judgement.options.tables) return;
      const { name } = nearest(await functionsOf(page), SIZE);
      await openFunction(page, name);
      await ask(judgement, page, `${colorScheme}, a function`);
      await selectPoint(page);
      await ask(judgement, page, `${colorScheme}, a point`);
    });
  }
}

module.exports = { accessible };
