// Both listings of a function, side by side.

const LEVELS = ['empty', 'live', 'live_e', 'alias', 'avail', 'pure', 'full', 'none', 'unreachable'];
const NONE = 7;
const SIDES = ['base', 'opt'];
const NAMES = ['base', 'optimized version'];
/** The most lines that are laid out at once. */
const MOST_LINES = 300;
const VALUE = /%(?:"(?:[^"\\]|\\.)*"|[\w.$/-]+)/g;

/** The view of a function of a report, unpacked. */
async function unpack(report, number) {
  const packed = atob(byId(`view-${report}-${number}`).textContent);
  const bytes = new Uint8Array(packed.length);
  for (let at = 0; at < packed.length; at += 1) bytes[at] = packed.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  const [view, figures] = JSON.parse(await new Response(stream).text());
  view.figures = figures;
  view.blocks = [[], []];
  view.blockOf = view.versions.map((version) => new Int32Array(version.lines.length));
  return view;
}

/** The value of a version with this name. The table is made when the first is asked for. */
function valueNamed(view, side, name) {
  view.values ??= view.versions.map(
    (version) => new Map(version.values.map((value) => [view.strings[value.name], value])),
  );
  return view.values[side].get(name);
}

/** The line of the point at this place. */
function lineAt(view, side, place) {
  const { lines } = view.versions[side];
  const id = view.strings.indexOf(place);
  return id < 0 ? -1 : lines.findIndex((line) => line.place === id);
}

/** What a point has, in words. */
function standing(point) {
  if (point.level === NONE) return 'no entry';
  if (point.level > NONE) return 'unreachable';
  return `entry at ${LEVELS[point.level]}`;
}

function pointElement(view, side, at) {
  const point = view.versions[side].lines[at];
  const [place, text] = [view.strings[point.place], view.strings[point.text]];
  const made = document.createElement('div');
  made.className = `point l-${LEVELS[point.level]}`;
  made.id = `line-${side}-${at}`;
  made.dataset.p = place;
  made.dataset.v = SIDES[side];
  made.setAttribute('role', 'option');
  made.setAttribute('aria-selected', 'false');
  made.tabIndex = -1;
  // The label begins with the texts of the line, as the line shows them.
  let label = text;
  if (point.visits !== undefined) {
    const visits = grouped(point.visits);
    made.append(element('span', { class: 'visits' }, visits), ' ');
    label = `${visits} ${text}`;
  }
  made.setAttribute('aria-label', `${label}: ${place}, ${standing(point)}`);
  made.append(element('span', { class: 'code' }, text));
  return made;
}

/** One version, a line for each row. Each block is a group, whose lines come when they are needed. */
function column(view, side) {
  const list = element('div', {
    id: SIDES[side], class: 'listing', role: 'listbox', 'aria-label': `Points of the ${NAMES[side]}`,
  });
  const blocks = view.blocks[side];
  const begin = (label) => {
    const made = element('div', { class: 'block', role: 'group', 'aria-label': label });
    made.dataset.block = blocks.length;
    blocks.push({ made, lines: [], full: false });
    list.append(made);
  };
  for (const row of view.rows) {
    const at = row[side];
    const line = at < 0 ? null : view.versions[side].lines[at];
    if (line !== null && line.head !== undefined) begin(view.strings[line.block]);
    // Rows before the first block are gaps.
    else if (blocks.length === 0) begin('before the first block');
    // A long block is laid out in parts.
    else if (blocks.at(-1).lines.length >= MOST_LINES) begin(blocks.at(-1).made.getAttribute('aria-label'));
    blocks.at(-1).lines.push(at);
    if (at >= 0) view.blockOf[side][at] = blocks.length - 1;
  }
  for (const { made, lines } of blocks) {
    made.style.setProperty('--lines', lines.length);
    // A narrow window shows no gaps. Without their height, blocks that are laid out later would push
    // the selected line out of sight.
    made.style.setProperty('--own', lines.filter((at) => at >= 0).length);
  }
  const first = view.versions[side].lines.findIndex((line) => line.place !== undefined);
  if (first >= 0) lineElement(view, side, first, list).tabIndex = 0;
  return list;
}

/** Lays out the lines of a block. */
function fill(view, side, number) {
  const block = view.blocks[side][number];
  if (block.full) return;
  block.full = true;
  block.made.append(...block.lines.map((at) => {
    if (at < 0) return element('div', { class: 'gap', role: 'presentation' });
    const line = view.versions[side].lines[at];
    return line.head === undefined
      ? pointElement(view, side, at)
      : element('div', { class: 'head', role: 'presentation' }, view.strings[line.head]);
  }));
  // A group without an option is no group of a list.
  if (block.made.querySelector('.point') === null) block.made.setAttribute('role', 'presentation');
}

/** The element of a line. */
function lineElement(view, side, at) {
  const number = view.blockOf[side][at];
  fill(view, side, number);
  const { made, lines } = view.blocks[side][number];
  return made.children[lines.indexOf(at)];
}

/** Fills blocks that come into sight, and the others while nothing else is to do. */
function fillOnDemand(view, listings, isOpen) {
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      fill(view, SIDES.indexOf(target.parentElement.id), Number(target.dataset.block));
    }
  }, { root: listings, rootMargin: '600px' });
  const left = [0, 1].flatMap((side) => view.blocks[side].map(({ made }, number) => {
    seen.observe(made);
    return [side, number];
  }));
  const later = window.requestIdleCallback ?? ((task) => setTimeout(() => task({ timeRemaining: () => 8 }), 30));
  // Searching a page finds lines that are there alone.
  const work = (deadline) => {
    if (!isOpen()) return;
    while (left.length > 0 && deadline.timeRemaining() > 2) fill(view, ...left.shift());
    if (left.length > 0) later(work);
    else performance.mark('osier-filled');
  };
  later(work);
}

/** Makes the values of a line elements of their own, when the reader first comes to it. */
function splitValues(line) {
  const code = line.querySelector('.code');
  if (code === null || code.dataset.split !== undefined) return;
  code.dataset.split = '';
  const text = code.textContent;
  const parts = [];
  let end = 0;
  for (const found of text.matchAll(VALUE)) {
    parts.push(text.slice(end, found.index), element('span', { class: 'value' }, found[0]));
    end = found.index + found[0].length;
  }
  parts.push(text.slice(end));
  code.replaceChildren(...parts);
}

/** The values of the other version that the entry of a point provides. */
function provided(view, point) {
  const { entry } = point;
  if (entry === undefined) return new Set();
  return new Set([...entry.same, ...entry.set.map((set) => set.value)].map((id) => view.strings[id]));
}

/** Where a value lives in the other version when a run moves at a point, in words. */
function whereabouts(view, side, name, point) {
  const value = valueNamed(view, side, name);
  if (value === undefined) return null;
  const other = NAMES[1 - side];
  const said = [];
  if (value.alike !== undefined) {
    const names = value.alike.map((at) => view.strings[at]);
    const there = provided(view, point);
    const held = names.filter((each) => there.has(each));
    const home = (each) => {
      const defined = valueNamed(view, 1 - side, each);
      return defined === undefined ? each : `${each} (${view.strings[defined.defined]})`;
    };
    said.push(held.length > 0
      ? `at the landing point, the ${other} holds it in ${held.map(home).join(', ')}`
      : `${point.entry === undefined ? '' : 'not needed at the landing point; '}equal in the ${other}, `
        + `once computed: ${names.map(home).join(', ')}`);
    if (value.because !== undefined) said.push(`${names[0]}: ${view.strings[value.because]}`);
  } else if (value.constant !== undefined) {
    said.push(`always ${view.strings[value.constant]}; the ${other} has no value for it`);
  } else {
    said.push(`the ${other} has no value that is known to be equal`);
  }
  // An action says something of the value if the other version lacks it.
  const since = value.alike === undefined ? value.since : undefined;
  return { defined: view.strings[value.defined], text: said.join('; '), since };
}

/** Shows where a value lives, beside the pointer. */
function startHover(view, listings) {
  const tip = byId('tip');
  listings.addEventListener('pointerover', (event) => {
    const line = event.target.closest('.point');
    if (line !== null) splitValues(line);
    const value = event.target.closest('.value');
    tip.hidden = value === null;
    if (value === null) return;
    const name = value.textContent;
    const side = SIDES.indexOf(line.dataset.v);
    const point = view.versions[side].lines[Number(line.id.split('-')[2])];
    const found = whereabouts(view, side, name, point);
    if (found === null) {
      tip.hidden = true;
      return;
    }
    const since = found.since === undefined ? '' : `; first action on it: a${found.since}`;
    tip.textContent = `${name}, ${found.defined}: ${found.text}${since}`;
    const box = value.getBoundingClientRect();
    const left = Math.min(box.left, window.innerWidth - tip.offsetWidth - 8);
    tip.style.left = `${Math.max(8, left)}px`;
    const below = box.bottom + 4;
    const above = box.top - tip.offsetHeight - 4;
    tip.style.top = `${below + tip.offsetHeight > window.innerHeight ? above : below}px`;
  });
  listings.addEventListener('pointerleave', () => { tip.hidden = true; });
}
