// Runs inside the judged page, where it defines `osierJudge`. It only reads the page, except that
// `after` listens to one event. The judge injects it once the page is ready.
(() => {
  'use strict';
  const judge = {};
  window.osierJudge = judge;

  judge.visible = element =>
    element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0;

  /** The name and the point that a link to `#f=NAME&p=POINT` gives; null for other links. */
  judge.target = hash => {
    const fields = new Map(hash.replace(/^#/, '').split('&').map(field => {
      const [key, ...rest] = field.split('=');
      return [key, rest.join('=')];
    }));
    if (!fields.has('f')) return null;
    try {
      const point = fields.has('p') ? decodeURIComponent(fields.get('p')) : null;
      return { name: decodeURIComponent(fields.get('f')), point };
    } catch {
      return null;
    }
  };

  const LINK = 'a[href^="#f="]';

  judge.allRows = () =>
    [...document.querySelectorAll('#functions tbody tr')].filter(row => row.querySelector(LINK));

  judge.rows = () => judge.allRows().filter(judge.visible);

  /** The first visible rows, at most so many, at the cost of those before them. */
  const firstRows = most => {
    const found = [];
    for (const row of document.querySelectorAll('#functions tbody tr')) {
      if (judge.visible(row) && row.querySelector(LINK)) found.push(row);
      if (found.length === most) break;
    }
    return found;
  };

  judge.link = row => row.querySelector(LINK);

  judge.rowOf = name =>
    judge.allRows().find(row => judge.target(judge.link(row).getAttribute('href'))?.name === name);

  /** Headers that sort, with the position of their column. */
  judge.headers = () => {
    const rows = [...document.querySelectorAll('#functions thead tr')];
    const row = rows.find(row => row.querySelector('button'));
    let at = 0;
    const headers = [];
    for (const cell of row ? row.cells : []) {
      const button = cell.querySelector('button');
      if (button) headers.push({ cell, button, column: at, text: button.textContent.trim() });
      at += cell.colSpan;
    }
    return headers;
  };

  /** A cell's figure; NaN for text and for cells without figures. */
  judge.figure = cell => {
    const given = cell.dataset.v ?? cell.textContent;
    const text = given.replace(/[\s\u00a0\u2009\u202f,%]/g, '').replace('\u2212', '-');
    return /^[-+]?\d+(\.\d+)?/.test(text) ? parseFloat(text) : NaN;
  };

  /** The header of the column with the size of functions. */
  judge.sizeHeader = () => {
    const headers = judge.headers();
    return headers.find(h => /\b(size|instructions|points)\b/i.test(h.text))
      ?? headers.find(h => /\bbase\b/i.test(h.text))
      ?? headers.find(h => !Number.isNaN(judge.figure(judge.allRows()[0].cells[h.column])));
  };

  const isMonotonic = (values, compare) =>
    values.every((value, at) => at === 0 || compare(values[at - 1], value) <= 0);

  /** Whether the first visible rows are in the order that the column's header states. */
  judge.isSorted = column => areSorted(firstRows(40), column);

  /** Whether all rows are, also those that a page shows on demand. */
  judge.areAllSorted = column => areSorted(judge.allRows(), column);

  const areSorted = (rows, column) => {
    const header = judge.headers().find(h => h.column === column);
    const order = header.cell.getAttribute('aria-sort');
    if (order !== 'ascending' && order !== 'descending') return false;
    const sign = order === 'ascending' ? 1 : -1;
    // Cells without contents come last in any order.
    const cells = rows.map(row => row.cells[column])
      .filter(cell => !/^[-\u2013\u2014]?$/.test(cell.textContent.trim()));
    const figures = cells.map(judge.figure).filter(figure => !Number.isNaN(figure));
    if (figures.length > 0) return isMonotonic(figures, (a, b) => sign * (a - b));
    const texts = cells.map(cell => cell.textContent);
    const orders = [
      (a, b) => a < b ? -1 : Number(a > b),
      (a, b) => a.localeCompare(b),
      (a, b) => a.localeCompare(b, undefined, { numeric: true }),
      (a, b) => a.toLowerCase() < b.toLowerCase() ? -1 : Number(a.toLowerCase() > b.toLowerCase()),
    ];
    return orders.some(compare => isMonotonic(texts, (a, b) => sign * compare(a, b)));
  };

  /** The button that shows the other rows of a table that begins with some of them. */
  judge.more = () => [...document.querySelectorAll('button')]
    .find(button => judge.visible(button) && /^Show all\b/.test(button.textContent.trim()));

  /** Whether the rows with a text are visible, or the first of them, and no others. */
  judge.isFiltered = text => {
    const wanted = text.toLowerCase();
    const has = element => element.textContent.toLowerCase().includes(wanted);
    const rows = judge.allRows();
    const shown = rows.filter(judge.visible);
    if (shown.length === 0 || !shown.every(has)) return false;
    // A filter may look at names alone or at all cells.
    const isLeftOut = row => has(judge.link(row)) && !judge.visible(row);
    return judge.more() !== undefined || !rows.some(isLeftOut);
  };

  judge.points = version =>
    [...document.querySelectorAll(`#function #${version} .point`)].filter(judge.visible);

  /** Whether a function is open that was not when `forget` was called. */
  judge.isOpen = () => {
    const section = document.querySelector('section#function');
    if (!section || !judge.visible(section)) return false;
    const first = document.querySelector('#function #base .point');
    return first !== null && first !== judge.known && judge.visible(first);
  };

  judge.forget = () => {
    judge.known = document.querySelector('#function #base .point');
  };

  /** The heading of the open function. */
  judge.heading = () => {
    const section = document.querySelector('section#function');
    if (!section || !judge.visible(section)) return null;
    return section.querySelector('h1, h2, h3')?.textContent.trim() ?? null;
  };

  judge.isSelectedElement = element =>
    element.getAttribute('aria-selected') === 'true'
    || element.getAttribute('aria-current') === 'true';

  /** The places of the selected points, such as `base block3:2`. */
  judge.selected = () =>
    [...document.querySelectorAll('#function .point[aria-selected="true"], '
      + '#function .point[aria-current="true"]')]
      .map(point => `${point.dataset.v} ${point.dataset.p}`);

  judge.isSelected = place => {
    const details = document.querySelector('#point');
    return judge.selected().includes(place) && details !== null && judge.visible(details)
      && details.textContent.trim() !== '';
  };

  /**
   * Prepares the measurement `name`: from the next event of a type until the frame is painted in
   * which `judge[done](...args)` holds. The promise `judge.measured` gives milliseconds; it
   * fails after `judge.patience` milliseconds.
   */
  judge.after = (name, type, done, args) => {
    const begun = performance.now();
    judge.measured = new Promise((resolve, reject) => {
      let start;
      const listen = event => { start ??= event.timeStamp; };
      addEventListener(type, listen, { capture: true, once: true });
      // A message posted before a frame is painted arrives once it is.
      const channel = new MessageChannel();
      channel.port1.onmessage = () =>
        resolve(performance.measure(name, { start, end: performance.now() }).duration);
      const frame = () => {
        if (start !== undefined && judge[done](...args)) {
          channel.port2.postMessage(null);
        } else if (performance.now() - begun > judge.patience) {
          reject(new Error(`no ${type} event brought the page to ${done}(${args})`));
        } else {
          requestAnimationFrame(frame);
        }
      };
      requestAnimationFrame(frame);
    });
    // A rejection is reported by the evaluation that awaits the promise.
    judge.measured.catch(() => {});
  };

  const FOCUSABLE = 'a[href], area[href], button, input, select, textarea, summary, [tabindex], '
    + '[contenteditable="true"]';

  /** Elements that Tab should reach, leaving out those that groups reach by arrow keys. */
  judge.tabbable = () =>
    [...document.querySelectorAll(FOCUSABLE)].filter(element =>
      element.tabIndex >= 0 && !element.disabled && judge.visible(element)
      && element.closest('[inert]') === null);

  /** A short description of an element for findings. */
  judge.describe = element => {
    if (!element || element === document.body) return 'the body';
    const id = element.id ? `#${element.id}` : '';
    const place = element.dataset?.p ? `[data-p="${element.dataset.p}"]` : '';
    const classes = [...element.classList].map(name => `.${name}`).join('');
    const text = (element.getAttribute('aria-label') ?? element.textContent).trim()
      .replace(/\s+/g, ' ').slice(0, 40);
    return `${element.localName}${id}${classes}${place} ${JSON.stringify(text)}`;
  };

  const LOOKS = ['box-shadow', 'background-color', 'color', 'border-top-color',
    'border-top-width', 'text-decoration-line', 'text-decoration-thickness', 'font-weight'];

  judge.looks = element => {
    const style = getComputedStyle(element);
    return LOOKS.map(property => style.getPropertyValue(property)).join(' | ');
  };

  /** Whether an outline is drawn, or the element looks different from `resting`. */
  judge.showsFocus = (element, resting) => {
    const style = getComputedStyle(element);
    const clear = /^(transparent|rgba\(.*, 0\))$/.test(style.outlineColor);
    const outlined = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 && !clear;
    return outlined || judge.looks(element) !== resting;
  };

  /** Whether some part of an element is in the window and not covered. */
  judge.isUncovered = element => [...element.getClientRects()].some(box => {
    const [left, right] = [Math.max(0, box.left), Math.min(innerWidth, box.right)];
    const [top, bottom] = [Math.max(0, box.top), Math.min(innerHeight, box.bottom)];
    if (left >= right || top >= bottom) return false;
    const across = [0.1, 0.5, 0.9].map(part => left + part * (right - left));
    const down = [0.1, 0.5, 0.9].map(part => top + part * (bottom - top));
    return across.some(x => down.some(y => {
      const found = document.elementFromPoint(x, y);
      return found !== null && (element.contains(found) || found.contains(element));
    }));
  });

  /** Elements with the pointer of links that no key reaches. */
  judge.mouseOnly = () =>
    [...document.querySelectorAll('body *')].filter(element => {
      if (!judge.visible(element) || getComputedStyle(element).cursor !== 'pointer') return false;
      const outer = element.parentElement;
      const inherits = outer !== null && getComputedStyle(outer).cursor === 'pointer';
      return !inherits && element.closest(`${FOCUSABLE}, label`) === null
        && element.querySelector(FOCUSABLE) === null;
    });

  /** Elements that are wider than the window and that no box around them scrolls or cuts. */
  judge.tooWide = () => {
    const width = document.documentElement.clientWidth;
    const cuts = element => getComputedStyle(element).overflowX !== 'visible';
    const isHeld = element => {
      for (let at = element.parentElement; at && at !== document.body; at = at.parentElement) {
        if (cuts(at)) return true;
      }
      return false;
    };
    return [...document.querySelectorAll('body *')].filter(element =>
      judge.visible(element) && element.getBoundingClientRect().right > width + 1
      && !isHeld(element));
  };
})();
