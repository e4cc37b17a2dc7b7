// Both listings of a function, side by side.

const LEVELS = ['empty', 'live', 'live_e', 'alias', 'avail', 'pure', 'full', 'none', 'unreachable'];
const NONE = 7;
const SIDES = ['base', 'opt'];
const NAMES = ['base', 'optimized version'];
const VALUE = /%(?:"(?:[^"\\]|\\.)*"|[\w.$/-]+)/g;

/** The view of a function of a report, unpacked. */
async function unpack(report, number) {
  const packed = atob(byId(`view-${report}-${number}`).textContent);
  const bytes = new Uint8Array(packed.length);
  for (let at = 0; at < packed.length; at += 1) bytes[at] = packed.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  const [view, figures] = JSON.parse(await new Response(stream).text());
  view.figures = figures;
  view.places = view.versions.map(
    (version) => new Map(version.lines.map((line, at) => [view.strings[line.place], at])),
  );
  view.values = view.versions.map(
    (version) => new Map(version.values.map((value) => [view.strings[value.name], value])),
  );
  return view;
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
  made.setAttribute('aria-label', `${place} ${text}: ${standing(point)}`);
  made.tabIndex = -1;
  if (point.visits !== undefined) {
    made.append(element('span', { class: 'visits' }, point.visits.toLocaleString('en')));
  }
  made.append(element('span', { class: 'code' }, text));
  return made;
}

/** One version, a line for each row. Each block is a group, which the browser lays out when seen. */
function column(view, side) {
  const list = element('div', {
    id: SIDES[side], class: 'listing', role: 'listbox', 'aria-label': `Points of the ${NAMES[side]}`,
  });
  let group = null;
  const begin = (label) => {
    group = element('div', { class: 'block', role: 'group', 'aria-label': label });
    group.lines = 0;
    list.append(group);
  };
  for (const row of view.rows) {
    const at = row[side];
    const line = at < 0 ? null : view.versions[side].lines[at];
    if (line !== null && line.head !== undefined) {
      begin(view.strings[line.block]);
      group.append(element('div', { class: 'head', role: 'presentation' }, view.strings[line.head]));
    } else {
      // Rows before the first block are gaps.
      if (group === null) begin('before the first block');
      group.append(line === null
        ? element('div', { class: 'gap', role: 'presentation' })
        : pointElement(view, side, at));
    }
    group.lines += 1;
  }
  for (const block of list.children) block.style.setProperty('--lines', block.lines);
  // An empty group would be a list without options.
  for (const block of [...list.children]) {
    if (block.querySelector('.point') === null) block.setAttribute('role', 'presentation');
  }
  const first = list.querySelector('.point');
  if (first !== null) first.tabIndex = 0;
  return list;
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

/** Where a value lives in the other version, in words. */
function whereabouts(view, side, name) {
  const value = view.values[side].get(name);
  if (value === undefined) return null;
  const other = NAMES[1 - side];
  const said = [];
  if (value.alike !== undefined) {
    const homes = value.alike.map((at) => {
      const home = view.values[1 - side].get(view.strings[at]);
      return `${view.strings[at]} (${home === undefined ? '?' : view.strings[home.defined]})`;
    });
    said.push(`in the ${other}: ${homes.join(', ')}`);
    if (value.because !== undefined) said.push(view.strings[value.because]);
  } else if (value.constant !== undefined) {
    said.push(`always ${view.strings[value.constant]}; the ${other} has no value for it`);
  } else {
    said.push(`the ${other} has no value that is known to be equal`);
  }
  return { defined: view.strings[value.defined], text: said.join('; '), since: value.since };
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
    const found = whereabouts(view, SIDES.indexOf(line.dataset.v), name);
    if (found === null) {
      tip.hidden = true;
      return;
    }
    const since = found.since === undefined ? '' : `; first action: a${found.since}`;
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
