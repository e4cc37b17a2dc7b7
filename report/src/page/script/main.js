// What the address names is shown: a function, a point of it, an action of its log.

/** The function that is open: the number of its report, its name, and its view. */
let open = null;
let placeInOverview = 0;

const overviews = () => Array.from(document.querySelectorAll('.overview'));
const tableOf = (report) => overviews()[report].querySelector('table.functions');
/** The row of a function. Its address has the name as the module gives it. */
function rowOf(asked) {
  const wanted = address(asked);
  return Array.from(tableOf(asked.report).tBodies[0].rows)
    .find((row) => row.querySelector('a').getAttribute('href') === wanted);
}

function logElement(view) {
  const text = view.strings;
  const items = view.log.map((action) => element('li', { id: `a${action.stamp}`, tabindex: '-1' },
    code(`a${action.stamp}`), ` ${text[action.pass]}, rule ${text[action.rule]}: ${text[action.words]}`));
  const given = view.given_up.map(([pass, rule, check, what]) => element('li', {},
    `${text[pass]}, rule ${text[rule]}: `, code(text[what]), `; after it the check ${text[check]} failed`));
  return [
    given.length === 0 ? null : element('h3', {}, 'Rewrites given up, so that entries hold'),
    given.length === 0 ? null : element('ul', {}, given),
    element('ol', { class: 'log' }, items),
  ];
}

const decimal = (number) => (number === null || number === undefined ? '-' : number.toFixed(1));

/** A share in percent. Rounding must not hide a point, as in the text of the report. */
const percent = (share) => decimal(share > 0 && share < 100 ? Math.min(99.9, Math.max(0.1, share)) : share);

/** The shares and costs of a function by level, and the causes of what it lost. */
function figuresOf(figures) {
  const ways = [['base to opt', figures.forward], ['opt to base', figures.backward]];
  const made = LEVELS.filter((level) => typeof figures.forward.feasible[level] === 'number');
  const ran = figures.forward.dynamic !== null && figures.forward.dynamic !== undefined;
  const head = ['% with an entry', ...(ran ? ['ran %'] : []), 'steps', 'kept values', 'kept arguments'];
  const cells = (way, level) => {
    const reachable = way.points - way.unreachable;
    const share = (part, all) => (all > 0 ? percent((100 * part) / all) : '-');
    const { dynamic } = way;
    return [
      share(way.feasible[level], reachable),
      ...(ran ? [share(dynamic?.feasible[level], dynamic?.visits ?? 0)] : []),
      decimal(way.chi[level]?.mean), decimal(way.kept[level]?.mean), decimal(way.kept_args[level]?.mean),
    ].map((figure) => element('td', {}, figure));
  };
  const table = element('table', {},
    element('thead', {},
      element('tr', {}, element('td', {}), ways.map(([name]) => (
        element('th', { colspan: head.length, scope: 'colgroup' }, name)))),
      element('tr', {}, element('th', { scope: 'col' }, 'level'), ways.flatMap(() => (
        head.map((text) => element('th', { scope: 'col' }, text)))))),
    element('tbody', {}, made.map((level) => element('tr', {},
      element('th', { scope: 'row' }, element('i', { class: `l-${level}` }), level),
      ways.flatMap(([, way]) => cells(way, level))))));
  const sizes = `${figures.base.instructions} instructions, optimized ${figures.opt.instructions}`;
  return [
    element('p', { class: 'note' }, sizes),
    element('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': 'Shares and costs by level' }, table),
  ];
}

/** The points without an entry by reason and pass to blame, each with links to the first point and
 * its action. One line for each action would be a hundred lines for one reason in an unrolled loop. */
function causesOf(made) {
  const { view } = made;
  const text = view.strings;
  const passes = new Map(view.log.map((action) => [action.stamp, action.pass]));
  const causes = new Map();
  view.versions.forEach((version, side) => version.lines.forEach((line) => {
    if (line.level !== NONE) return;
    const key = `${side} ${line.why.text} ${passes.get(line.why.blame)}`;
    if (!causes.has(key)) causes.set(key, { side, line, count: 0, actions: new Set() });
    const cause = causes.get(key);
    cause.count += 1;
    cause.actions.add(line.why.blame);
  }));
  const blame = (action, others) => {
    if (action === undefined) return ['no action can be named'];
    const more = others === 0 ? '' : ` and ${plural(others, 'other action', 'other actions')} of this pass`;
    return ['blame ', ...actionLink(made, action, false), more];
  };
  const items = Array.from(causes.values(), ({ side, line, count, actions }) => element('li', {},
    `${plural(count, 'point', 'points')} of the ${NAMES[side]}, first `,
    element('a', { href: pointAddress(made, side, text[line.place]) }, text[line.place]),
    `: ${text[line.why.text]}; `, ...blame(line.why.blame, actions.size - 1)));
  if (items.length === 0) return [];
  return [element('h3', {}, 'Points without an entry'), element('ul', {}, items)];
}

/** Which pipeline a function is shown for, and links to the same function for the others. */
function pipelinesOf({ report, name }) {
  const all = overviews();
  if (all.length === 1) return [];
  const label = (at) => all[at].getAttribute('aria-label');
  const others = all.map((_, at) => at).filter((at) => at !== report && rowOf({ report: at, name }) !== undefined);
  return [element('p', {}, label(report), ...others.flatMap((at) => [
    ' · ', element('a', { href: address({ report: at, name }) }, `see ${label(at)}`)]))];
}

function layOut(made) {
  const { view } = made;
  const log = element('details', { id: 'log' }, element('summary', {},
    `The log: ${plural(view.log.length, 'action', 'actions')} of the passes`));
  log.addEventListener('toggle', () => {
    if (log.open && log.children.length === 1) log.append(...logElement(view).filter(Boolean));
  });
  const columns = [column(view, 0), column(view, 1)];
  const listings = element('div', { class: 'listings' },
    columns.map((each, side) => element('div', { class: 'side' }, element('h3', {}, NAMES[side]), each)));
  byId('function').replaceChildren(
    element('p', {}, element('a', { href: made.report === 0 ? '#' : `#k=${made.report}`, id: 'back' }, '← All functions')),
    element('h2', { tabindex: '-1' }, element('bdi', {}, rowOf(made).dataset.name)),
    ...pipelinesOf(made),
    ...figuresOf(view.figures),
    ...causesOf(made),
    element('p', { class: 'legend' }, LEVELS.filter((_, at) => at < 5 || at >= NONE)
      .flatMap((level) => [element('span', {}, element('i', { class: `l-${level}` }), level), ' '])),
    element('div', { class: 'work' }, listings,
      element('div', { id: 'point', 'aria-live': 'polite', tabindex: '0', role: 'region', 'aria-label': 'The selected point' },
        element('p', {}, 'Select a point of either listing by a click, or by the arrow keys. The keys n and p '
          + 'lead to the next and the previous point without an entry.'))),
    log,
    element('div', { id: 'tip', role: 'tooltip', hidden: '' }),
  );
  listings.addEventListener('click', (event) => {
    const line = event.target.closest('.point');
    if (line !== null) choose(line);
  });
  listings.addEventListener('keydown', (event) => move(event));
  listings.addEventListener('focusin', (event) => splitValues(event.target));
  startHover(view, listings);
  fillOnDemand(view, listings, () => open !== null && open.view === view);
}

const sideOf = (line) => SIDES.indexOf(line.dataset.v);
const numberOf = (line) => Number(line.id.split('-')[2]);

/** Scrolls to a line, up and down alone: the colors of the levels stand at the left edge. */
function bringIntoView(line) {
  const listings = document.querySelector('.listings');
  listings.scrollIntoView({ block: 'nearest' });
  const heading = listings.querySelector('h3').offsetHeight;
  const [frame, box] = [listings.getBoundingClientRect(), line.getBoundingClientRect()];
  const above = frame.top + heading - box.top;
  const below = box.bottom - frame.bottom;
  if (above > 0) listings.scrollTop -= above + 2 * box.height;
  else if (below > 0) listings.scrollTop += below + 2 * box.height;
}

/** Selects a line, and marks where it goes on. */
function choose(line, { write = true, focus = true } = {}) {
  measured('osier-select', () => {
    for (const old of document.querySelectorAll('.point[aria-selected="true"], .landing')) {
      old.setAttribute('aria-selected', 'false');
      old.classList.remove('landing');
    }
    document.querySelectorAll(`#${line.dataset.v} .point[tabindex="0"]`).forEach((old) => { old.tabIndex = -1; });
    line.setAttribute('aria-selected', 'true');
    line.tabIndex = 0;
    const side = sideOf(line);
    const point = showPoint(open, side, numberOf(line));
    if (point.entry !== undefined) {
      const landing = lineElement(open.view, 1 - side, point.entry.to);
      landing.classList.add('landing');
    }
    if (focus) line.focus({ preventScroll: true });
    bringIntoView(line);
    if (write) history.replaceState(null, '', pointAddress(open, side, line.dataset.p));
  });
}

/** The line that a key leads to. */
function move(event) {
  const line = event.target.closest('.point');
  if (line === null || event.ctrlKey || event.metaKey || event.altKey) return;
  const side = sideOf(line);
  const { lines } = open.view.versions[side];
  const from = (at, step, fits = ({ place }) => place !== undefined) => {
    for (let next = at; next >= 0 && next < lines.length; next += step) {
      if (fits(lines[next])) return lineElement(open.view, side, next);
    }
    return null;
  };
  const isGap = ({ level }) => level === NONE;
  const across = () => {
    const { entry } = lines[numberOf(line)];
    return entry === undefined ? null : lineElement(open.view, 1 - side, entry.to);
  };
  const targets = {
    ArrowDown: () => from(numberOf(line) + 1, 1),
    ArrowUp: () => from(numberOf(line) - 1, -1),
    ArrowRight: () => (side === 0 ? across() : null),
    ArrowLeft: () => (side === 1 ? across() : null),
    Home: () => from(0, 1),
    End: () => from(lines.length - 1, -1),
    n: () => from(numberOf(line) + 1, 1, isGap),
    p: () => from(numberOf(line) - 1, -1, isGap),
    Enter: () => line,
    ' ': () => line,
  };
  if (targets[event.key] === undefined) return;
  event.preventDefault();
  const target = targets[event.key]();
  if (target !== null) choose(target);
}

function showAction(stamp) {
  const log = byId('log');
  log.open = true;
  if (log.children.length === 1) log.append(...logElement(open.view).filter(Boolean));
  const action = byId(`a${stamp}`);
  if (action === null) return;
  action.scrollIntoView({ block: 'center' });
  action.focus({ preventScroll: true });
}

/** Shows the report with this number, or none while a function is open. */
function showReport(number) {
  overviews().forEach((overview, at) => { overview.hidden = at !== number; });
  const choice = document.querySelector('nav');
  if (choice === null) return;
  choice.hidden = number === null;
  for (const link of choice.querySelectorAll('a')) {
    if (Number(link.dataset.choose) === number) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
}

function showOverview(report) {
  open = null;
  byId('function').hidden = true;
  byId('function').replaceChildren();
  showReport(report);
  window.scrollTo(0, placeInOverview);
}

function showMessage(text) {
  byId('function').hidden = false;
  byId('function').replaceChildren(
    element('p', {}, element('a', { href: '#' }, '← All functions')),
    element('p', { role: 'alert' }, text),
  );
}

/** Unpacks and shows a function. */
async function prepare(asked) {
  const start = performance.now();
  const row = rowOf(asked);
  showReport(null);
  if (row === undefined) {
    throw new Error(`this report has no listing of ${asked.name}: the passes left it as it was, or it is not there`);
  }
  showMessage(`Opening ${row.dataset.name}`);
  const view = await unpack(asked.report, row.dataset.n);
  // The reader may have left in the meantime.
  if (open !== asked) return;
  asked.view = view;
  layOut(asked);
  window.scrollTo(0, 0);
  byId('function').querySelector('h2').focus({ preventScroll: true });
  performance.measure('osier-open', { start, end: performance.now() });
}

/** Opens a function. A second address of one that is being opened waits for the first. */
async function openFunction(report, name) {
  if (open === null) placeInOverview = window.scrollY;
  if (open === null || open.name !== name || open.report !== report) {
    open = { report, name };
    open.ready = prepare(open);
  }
  await open.ready;
}

function showPlace(side, place) {
  const at = lineAt(open.view, side, place);
  if (at < 0) {
    byId('point').replaceChildren(element('p', { role: 'alert' }, `The ${NAMES[side]} has no point ${place}.`));
  } else {
    choose(lineElement(open.view, side, at), { write: false });
  }
}

/** The number of addresses so far. What comes late for an earlier one is dropped. */
let addresses = 0;

async function route() {
  addresses += 1;
  const mine = addresses;
  const asked = new URLSearchParams(location.hash.slice(1));
  const number = Number.parseInt(asked.get('k') ?? '0', 10) || 0;
  const report = Math.min(Math.max(0, number), overviews().length - 1);
  const name = asked.get('f');
  if (name === null) {
    showOverview(report);
    return;
  }
  try {
    await openFunction(report, name);
    if (mine !== addresses) return;
    if (asked.has('p')) showPlace(asked.get('v') === 'opt' ? 1 : 0, asked.get('p'));
    if (asked.has('a')) showAction(asked.get('a'));
  } catch (error) {
    if (mine !== addresses) return;
    open = null;
    showMessage(`The listing cannot be shown: ${error.message}`);
  }
}

function start() {
  overviews().forEach(startTable);
  window.addEventListener('hashchange', route);
  route();
  performance.mark('osier-ready');
}

start();
