// The answer for one point.

const plural = (count, one, many) => `${count} ${count === 1 ? one : many}`;

function pointAddress(open, side, place) {
  const point = `${address(open)}&p=${encodeURIComponent(place)}`;
  return side === 0 ? point : `${point}&v=opt`;
}

/** The address of a function, equal to the one in its row. */
function address({ report, name }) {
  const encoded = encodeURIComponent(name)
    .replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
  return `#${report === 0 ? '' : `k=${report}&`}f=${encoded}`;
}

/** A link to an action of the log, with its words if there is room for them. */
function actionLink(open, stamp, words) {
  const action = open.view.log.find((each) => each.stamp === stamp);
  const link = element('a', { href: `${address(open)}&a=${stamp}` }, `a${stamp}`);
  if (action === undefined) return [link];
  const text = open.view.strings;
  const pass = `${text[action.pass]}, rule ${text[action.rule]}`;
  return words ? [link, ` ${pass}: it ${text[action.words]}`] : [link, ` ${text[action.pass]}`];
}

/** Terms, each with what is said of it. */
function terms(rows) {
  const each = rows.filter(([, said]) => said.length > 0);
  return element('dl', {}, each.map(([term, said]) => [
    element('dt', {}, term), element('dd', {}, said),
  ]));
}

const code = (text) => element('code', {}, text);

const list = (items) => (items.length === 0 ? [] : [element('ul', {}, items)]);

function assignment(open, other, set) {
  const text = open.view.strings;
  const value = valueNamed(open.view, other, text[set.value]);
  const said = [];
  if (value !== undefined) said.push(`there ${text[value.defined]}`);
  if (set.because !== undefined) said.push(text[set.because]);
  const item = element('li', {}, code(`${text[set.value]} = ${text[set.from]}`));
  if (said.length > 0) item.append(` ${said.join('; ')}`);
  if (set.since !== undefined) item.append(' (', ...actionLink(open, set.since, false), ')');
  return item;
}

/** What an entry costs, in words: each transition, and being ready for one. */
function priceWords([steps, copies, kept, keptArguments]) {
  const moves = `${plural(steps, 'operation', 'operations')} and ${plural(copies, 'copy', 'copies')}`;
  if (kept + keptArguments === 0) return `${moves} for each transition`;
  const keeps = `${plural(kept, 'value', 'values')} and ${plural(keptArguments, 'argument', 'arguments')}`;
  return `${moves} for each transition; keeps ${keeps} until here`;
}

/** The price at each level: one line for levels that cost the same. */
function prices(point) {
  const rows = [];
  const below = LEVELS.slice(0, point.level);
  if (below.length > 0) rows.push({ words: 'no entry', levels: below });
  point.prices.forEach((price, at) => {
    const words = priceWords(price);
    const last = rows.at(-1);
    const level = LEVELS[point.level + at];
    if (last !== undefined && last.words === words) last.levels.push(level);
    else rows.push({ words, levels: [level] });
  });
  return rows.map(({ words, levels }) => element('li', {}, code(levels.join(' ')), ` ${words}`));
}

function entryTerms(open, side, point) {
  const { view } = open;
  const text = view.strings;
  const { entry } = point;
  const other = 1 - side;
  const landing = view.versions[other].lines[entry.to];
  const place = text[landing.place];
  const link = element('a', { href: pointAddress(open, other, place), class: 'landing-link' },
    `${place} ${text[landing.inst]}`);
  const names = (values) => (values.length === 0 ? [] : [code(values.map((v) => text[v]).join(' '))]);
  const first = LEVELS[point.level];
  const level = first === LEVELS[entry.level]
    ? `first entry at ${first}`
    : `first entry at ${first}; shown here: the entry at ${LEVELS[entry.level]}`;
  return terms([
    ['goes on at', [link, ` of the ${NAMES[other]}: `, code(text[landing.text])]],
    ['level', [level]],
    ['compute', list(entry.compute.map(([step, means]) => element('li', {}, code(text[step]), ` ${text[means]}`)))],
    ['replay', list(entry.replay.map(([store, at]) => element('li', {}, code(text[store]), `, as at ${text[at]}`)))],
    ['set', list(entry.set.map((set) => assignment(open, other, set)))],
    ['unchanged', names(entry.same)],
    ['keep', list(entry.kept.map(([value, isArgument]) => {
      const home = valueNamed(view, side, text[value]);
      const defined = home === undefined ? '' : ` from ${text[home.defined]}`;
      return element('li', {}, code(text[value]), isArgument ? ' an argument' : defined);
    }))],
    ['cost', list(prices(point))],
  ]);
}

function whyTerms(open, side, why) {
  const text = open.view.strings;
  const details = why.details.map(([term, said]) => [text[term], [code(text[said])]]);
  const blame = why.blame === undefined ? ['no action can be named'] : actionLink(open, why.blame, true);
  return terms([['no entry', [text[why.text]]], ...details, ['blame', blame]]);
}

/** Where the values of the instruction live: what hovering tells, for the keyboard. */
function valueTerms(open, side, point) {
  const names = new Set(open.view.strings[point.text].match(VALUE) ?? []);
  const rows = [];
  for (const name of names) {
    const found = whereabouts(open.view, side, name, point);
    if (found === null) continue;
    const item = element('li', {}, code(name), ` ${found.defined}: ${found.text}`);
    if (found.since !== undefined) item.append(' (', ...actionLink(open, found.since, false), ')');
    rows.push(item);
  }
  return rows.length === 0 ? [] : [element('h4', {}, 'Values here'), element('ul', {}, rows)];
}

function showPoint(open, side, at) {
  const { view } = open;
  const point = view.versions[side].lines[at];
  const text = view.strings;
  const facts = [`${text[point.place]} ${text[point.inst]} of the ${NAMES[side]}`];
  if (point.source !== undefined) facts.push(text[point.source]);
  if (point.visits !== undefined) facts.push(`ran ${grouped(point.visits)} ${point.visits === 1 ? 'time' : 'times'}`);
  byId('point').replaceChildren(
    element('h3', {}, element('i', { class: `l-${LEVELS[point.level]}` }), facts.join(' · ')),
    element('p', {}, code(text[point.text])),
    point.entry === undefined ? whyTerms(open, side, point.why) : entryTerms(open, side, point),
    ...valueTerms(open, side, point),
  );
  return point;
}
