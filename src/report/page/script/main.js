// What the address names is shown: a function, a point of it, an action of its log.

/** The function that is open: its name, its view, and the line selected in it. */
let open = null;
let placeInOverview = 0;

const rowOf = (name) => Array.from(byId('functions').tBodies[0].rows)
  .find((row) => row.dataset.name === name);

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

function layOut(made) {
  const { view, name } = made;
  const row = rowOf(name);
  const figures = headings(byId('functions')).map((heading, at) => (
    [heading.querySelector('button').title, row.cells[at].textContent]
  )).slice(1);
  const log = element('details', { id: 'log' }, element('summary', {},
    `The log: ${plural(view.log.length, 'action', 'actions')} of the passes`));
  log.addEventListener('toggle', () => {
    if (log.open && log.children.length === 1) log.append(...logElement(view).filter(Boolean));
  });
  const columns = [column(view, 0), column(view, 1)];
  const listings = element('div', { class: 'listings' },
    columns.map((each, side) => element('div', { class: 'side' }, element('h3', {}, NAMES[side]), each)));
  byId('function').replaceChildren(
    element('p', {}, element('a', { href: '#', id: 'back' }, '← All functions')),
    element('h2', { tabindex: '-1' }, element('bdi', {}, name)),
    element('details', { class: 'note' }, element('summary', {}, 'Figures of this function'),
      terms(figures.map(([meaning, figure]) => [meaning, [figure === '' ? '-' : figure]]))),
    element('p', { class: 'legend' }, LEVELS.filter((_, at) => at < 5 || at >= NONE)
      .map((level) => element('span', {}, element('i', { class: `l-${level}` }), level, ' '))),
    element('div', { class: 'work' }, listings,
      element('div', { id: 'point', 'aria-live': 'polite', tabindex: '0', role: 'region', 'aria-label': 'The selected point' },
        element('p', {}, 'Select a point of either listing: by a click, or by the arrow keys.'))),
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
}

const sideOf = (line) => SIDES.indexOf(line.dataset.v);
const numberOf = (line) => Number(line.id.split('-')[2]);

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
      const landing = byId(`line-${1 - side}-${point.entry.to}`);
      landing.classList.add('landing');
    }
    if (focus) line.focus({ preventScroll: true });
    line.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    if (write) history.replaceState(null, '', pointAddress(open, side, line.dataset.p));
  });
}

/** The line that a key leads to. */
function move(event) {
  const line = event.target.closest('.point');
  if (line === null || event.ctrlKey || event.metaKey || event.altKey) return;
  const side = sideOf(line);
  const points = () => Array.from(byId(SIDES[side]).querySelectorAll('.point'));
  const beside = (step) => {
    const last = open.view.versions[side].lines.length;
    for (let at = numberOf(line) + step; at >= 0 && at < last; at += step) {
      const found = byId(`line-${side}-${at}`);
      if (found !== null) return found;
    }
    return null;
  };
  const across = () => {
    const point = open.view.versions[side].lines[numberOf(line)];
    return point.entry === undefined ? null : byId(`line-${1 - side}-${point.entry.to}`);
  };
  const targets = {
    ArrowDown: () => beside(1),
    ArrowUp: () => beside(-1),
    ArrowRight: () => (side === 0 ? across() : null),
    ArrowLeft: () => (side === 1 ? across() : null),
    Home: () => points()[0],
    End: () => points().at(-1),
    Enter: () => line,
    ' ': () => line,
  };
  if (targets[event.key] === undefined) return;
  event.preventDefault();
  const target = targets[event.key]();
  if (target !== null && target !== undefined) choose(target);
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

function showOverview() {
  open = null;
  byId('function').hidden = true;
  byId('function').replaceChildren();
  byId('overview').hidden = false;
  window.scrollTo(0, placeInOverview);
}

function showMessage(text) {
  byId('function').replaceChildren(
    element('p', {}, element('a', { href: '#' }, '← All functions')),
    element('p', { role: 'alert' }, text),
  );
}

/** Opens a function; what it was, if it is open. */
async function openFunction(name) {
  if (open !== null && open.name === name) return true;
  if (!byId('overview').hidden) placeInOverview = window.scrollY;
  const row = rowOf(name);
  const start = performance.now();
  byId('overview').hidden = true;
  byId('function').hidden = false;
  if (row === undefined) {
    open = null;
    showMessage(`This report has no listing of a function ${name}.`);
    return false;
  }
  showMessage(`Opening ${name}`);
  const made = { name, view: await unpack(row.dataset.n) };
  open = made;
  layOut(made);
  window.scrollTo(0, 0);
  byId('function').querySelector('h2').focus({ preventScroll: true });
  performance.measure('osier-open', { start, end: performance.now() });
  return true;
}

async function route() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const name = asked.get('f');
  if (name === null) {
    showOverview();
    return;
  }
  if (!(await openFunction(name)) || open === null || open.name !== name) return;
  const place = asked.get('p');
  const side = asked.get('v') === 'opt' ? 1 : 0;
  if (place !== null) {
    const at = open.view.places[side].get(place);
    if (at === undefined) byId('point').replaceChildren(element('p', { role: 'alert' }, `The ${NAMES[side]} has no point ${place}.`));
    else choose(byId(`line-${side}-${at}`), { write: false });
  }
  if (asked.has('a')) showAction(asked.get('a'));
}

function start() {
  startTable();
  window.addEventListener('hashchange', () => { route(); });
  route().catch((error) => showMessage(`The listing cannot be shown: ${error.message}`));
  performance.mark('osier-ready');
}

start();
