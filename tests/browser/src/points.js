'use strict';
// Each point of a function can be selected, and its details are words.

const { functionsOf, nearest, openFunction, show } = require('./browser.js');

/** The size of the function whose points are selected, and the most of them in a listing. */
const SIZE = 150;
const MOST = 200;

/** What script writes where a text was meant. */
const BROKEN = /\[object \w+\]|^\s*(undefined|null|NaN)\s*$|\bundefined\b.*\bundefined\b/;

async function points(judgement) {
  await judgement.withPage({}, '', async page => {
    const { name } = nearest(await functionsOf(page), SIZE);
    await openFunction(page, name);
    for (const version of ['base', 'opt']) {
      const seen = await page.evaluate(selectAll, [version, MOST]);
      const texts = seen.flatMap(point => point.texts.map(text => [point.place, text]));
      const broken = texts.find(([, text]) => BROKEN.test(text));
      if (broken) judgement.find('points', `${broken[0]} shows ${show(broken[1].slice(0, 80))}`);
      const bare = seen.find(point => point.texts.length === 0);
      if (bare) judgement.find('points', `${bare.place} shows nothing`);
      const lost = seen.filter(point => !point.isSelected);
      if (lost.length > 0) {
        judgement.find('points', `a click does not select ${lost.length} points: ${lost[0].place}`);
      }
      const moved = seen.find(point => point.sideways > 0);
      if (moved) {
        judgement.find('points',
          `selecting ${moved.place} scrolls a listing sideways by ${moved.sideways} pixels`);
      }
    }
  });
}

/** Runs in the page: selects the points of a version one by one, and gives what is shown. */
async function selectAll([version, most]) {
  const seen = [];
  for (const { dataset } of osierJudge.points(version).slice(0, most)) {
    const place = `${dataset.v} ${dataset.p}`;
    // A page may make the element anew.
    const point = osierJudge.points(version).find(point => point.dataset.p === dataset.p);
    point.click();
    await new Promise(requestAnimationFrame);
    const texts = [];
    const details = document.querySelector('#point');
    const walker = document.createTreeWalker(details, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      if (walker.currentNode.data.trim() !== '') texts.push(walker.currentNode.data);
    }
    let sideways = 0;
    for (let at = document.querySelector(`#${version}`); at; at = at.parentElement) {
      sideways = Math.max(sideways, at.scrollLeft);
    }
    seen.push({ place, texts, sideways, isSelected: osierJudge.selected().includes(place) });
  }
  return seen;
}

module.exports = { points };
