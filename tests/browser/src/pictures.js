'use strict';
// Pictures of the page for people to look at.

const fs = require('node:fs');
const path = require('node:path');
const {
  WINDOW, functionsOf, nearest, openFunction, painted, selectPoint,
} = require('./browser.js');
const { NARROW } = require('./layout.js');

/** The size of the function that is shown. */
const SIZE = 100;

/** The place of the selected point, which is in the window with the top of the function. */
const EARLY = 12;

/** Writes pictures to the folder `options.screenshots`, named after the page's file. */
async function pictures(judgement) {
  const folder = judgement.options.screenshots;
  fs.mkdirSync(folder, { recursive: true });
  const stem = path.basename(judgement.file, '.html').replace(/[^\w.-]+/g, '_');
  const shoot = async (page, name) => {
    await painted(page);
    await page.screenshot({ path: path.join(folder, `${stem}-${name}.png`) });
  };
  const scroll = (page, selector) => page.evaluate(selector => {
    document.querySelector(selector).scrollIntoView({ block: 'start', behavior: 'instant' });
  }, selector);
  const looks = [
    ['', { viewport: WINDOW, colorScheme: 'light' }],
    ['dark-', { viewport: WINDOW, colorScheme: 'dark' }],
    ['narrow-', { viewport: NARROW, colorScheme: 'light' }],
  ];
  for (const [look, settings] of looks) {
    await judgement.withPage(settings, '', async page => {
      await shoot(page, `${look}top`);
      await scroll(page, '#functions');
      await shoot(page, `${look}table`);
      if (await page.locator('#comparison').count() > 0) {
        await scroll(page, '#comparison');
        await shoot(page, `${look}comparison`);
      }
      const { name } = nearest(await functionsOf(page), judgement.options.size ?? SIZE);
      await openFunction(page, name);
      await selectPoint(page, EARLY);
      await scroll(page, '#function');
      await shoot(page, `${look}function`);
      await scroll(page, '#point');
      await shoot(page, `${look}point`);
    });
  }
}

module.exports = { pictures };
