// The table of functions: sorting and filtering.

const byId = (id) => document.getElementById(id);

/** An element with attributes and children. Texts become text, never markup. */
function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return made;
}

/** A number in groups of three digits, which do not break. */
const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, '\u00a0');

/** Runs a task and records its time under a name, for the browser's performance panel. */
function measured(name, task) {
  const start = performance.now();
  const result = task();
  performance.measure(name, { start, end: performance.now() });
  return result;
}

/** The headings by which the table sorts: the last row of them. */
const headings = (table) => Array.from(table.tHead.rows[table.tHead.rows.length - 1].cells);

/** What a cell sorts by: its number, or nothing, which comes last. */
function sortKey(cell, kind) {
  if (kind === 'text') return cell.textContent.toLowerCase();
  return cell.dataset.v === undefined ? null : Number(cell.dataset.v);
}

function compare(a, b) {
  if (a === b) return 0;
  if (a === null || a === '') return 1;
  if (b === null || b === '') return -1;
  return a < b ? -1 : 1;
}

/** The most rows that are laid out at once: a table of thousands of rows takes long to lay out. */
const MOST_ROWS = 300;

/** Shows the rows that fit the filter: the first of them, unless the reader wants all. */
function showRows(overview) {
  const { rows } = overview.querySelector('table.functions').tBodies[0];
  const wanted = overview.querySelector('.filter').value.trim().toLowerCase();
  const more = overview.querySelector('.more');
  const most = more.dataset.all === undefined ? MOST_ROWS : rows.length;
  let fitting = 0;
  for (const row of rows) {
    const pass = row.cells[row.cells.length - 1].textContent;
    const fits = row.dataset.name.toLowerCase().includes(wanted) || pass.includes(wanted);
    if (fits) fitting += 1;
    row.hidden = !fits || fitting > most;
  }
  overview.querySelector('.filtered').textContent = wanted === '' ? '' : `${fitting} of ${rows.length} functions`;
  more.hidden = fitting <= most;
  // Without more rows, the button is hidden, but a search of the page would find its text.
  more.textContent = more.hidden ? '' : `Show all ${fitting}: ${fitting - most} more`;
}

/** Sorts by a column. Numbers begin with the largest; a second press turns the order around. */
function sortBy(table, heading) {
  const column = heading.cellIndex;
  const kind = heading.dataset.kind;
  const first = kind === 'number' ? 'descending' : 'ascending';
  const other = { ascending: 'descending', descending: 'ascending' };
  const before = heading.getAttribute('aria-sort');
  const order = before === 'none' ? first : other[before];
  for (const each of headings(table)) each.setAttribute('aria-sort', 'none');
  heading.setAttribute('aria-sort', order);
  const rows = Array.from(table.tBodies[0].rows, (row) => [sortKey(row.cells[column], kind), row]);
  const sign = order === 'ascending' ? 1 : -1;
  const missing = (key) => key === null || key === '';
  // Rows without a figure stay at the end in both orders.
  rows.sort(([a], [b]) => (missing(a) || missing(b) ? compare(a, b) : sign * compare(a, b)));
  table.tBodies[0].append(...rows.map(([, row]) => row));
}

function startTable(overview) {
  const table = overview.querySelector('table.functions');
  const more = element('button', { type: 'button', class: 'more', hidden: '' });
  table.parentElement.after(more);
  more.addEventListener('click', () => {
    more.dataset.all = '';
    showRows(overview);
  });
  for (const heading of headings(table)) {
    heading.querySelector('button').addEventListener('click', () => {
      measured('osier-sort', () => {
        sortBy(table, heading);
        showRows(overview);
      });
    });
  }
  overview.querySelector('.filter').addEventListener('input', () => {
    measured('osier-filter', () => showRows(overview));
  });
  showRows(overview);
}
