'use strict';
// The elements by which scripts, and this judge, find their way in the page.

/** Finds elements that the page must have and has not. */
async function contract(judgement) {
  await judgement.withPage({}, '', async page => {
    const missing = await page.evaluate(() => {
      const judge = osierJudge;
      const found = [];
      const need = (holds, text) => { if (!holds) found.push(text); };
      need(document.querySelector('table#functions'), 'there is no table#functions');
      need(document.querySelector('input#filter[type="search"]'),
        'there is no search field #filter');
      need(document.querySelector('section#function'), 'there is no section#function');
      need(judge.headers().length > 0, 'no header of #functions has a button');
      need(judge.allRows().length > 0, 'no row of #functions links to #f=NAME');
      for (const row of document.querySelectorAll('#functions tbody tr')) {
        const link = judge.link(row);
        need(link, `a row of #functions has no link to #f=NAME: ${judge.describe(row)}`);
        need(!link || judge.target(link.getAttribute('href')),
          `the link of a row cannot be decoded: ${link?.getAttribute('href')}`);
      }
      return found;
    });
    missing.forEach(text => judgement.find('contract', text));
    const hidden = await page.evaluate(() => {
      osierJudge.more()?.click();
      return osierJudge.allRows().length - osierJudge.rows().length;
    });
    if (hidden > 0) judgement.find('contract', `${hidden} rows are hidden, and no button shows all`);
  });
}

/** Finds points without what scripts read from them. To be called with a function open. */
async function contractOfFunction(judgement, page) {
  const wrong = await page.evaluate(() => {
    const found = [];
    const details = document.querySelector('#point');
    if (!details) found.push('there is no #point');
    else if (details.getAttribute('aria-live') !== 'polite') found.push('#point is not polite');
    for (const version of ['base', 'opt']) {
      const points = osierJudge.points(version);
      if (points.length === 0) found.push(`#${version} shows no point`);
      for (const point of points) {
        const place = osierJudge.describe(point);
        const { p, v } = point.dataset;
        if (!/:\d+$/.test(p ?? '')) found.push(`data-p is no block:index: ${place}`);
        if (v !== version) found.push(`data-v is not ${version}: ${place}`);
        if (!/(^| )l-(empty|live|live_e|alias|avail|none|unreachable)( |$)/.test(point.className)) {
          found.push(`a point has no class of a level: ${place}`);
        }
      }
    }
    return found.slice(0, 10);
  });
  wrong.forEach(text => judgement.find('contract', text));
}

module.exports = { contract, contractOfFunction };
