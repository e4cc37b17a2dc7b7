'use strict';

/**
 * Runs in the page: texts whose contrast to the color behind them is below that of WCAG 2, level
 * AA. axe leaves texts undecided that another element covers in part, such as the lines of a
 * listing that scrolls. Texts in pictures, and in front of pictures, are left out.
 */
function weakTexts() {
  const context = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const known = new Map();
  /** Red, green, blue and opacity of any color that a style may name. */
  const parse = color => {
    if (!known.has(color)) {
      context.clearRect(0, 0, 1, 1);
      context.fillStyle = color;
      context.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
      known.set(color, [r, g, b, a / 255]);
    }
    return known.get(color);
  };
  const over = (front, back) =>
    [0, 1, 2].map(i => front[3] * front[i] + (1 - front[3]) * back[i]).concat(1);
  const luminance = color => {
    const [r, g, b] = color.map(c => c / 255)
      .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  /** The color behind an element; null if a picture is there. */
  const behind = element => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (style.backgroundImage !== 'none' || style.opacity !== '1') return null;
      const color = parse(style.backgroundColor);
      layers.push(color);
      if (color[3] === 1) break;
    }
    return layers.reduceRight((back, front) => over(front, back), parse('Canvas'));
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const judged = new Set();
  const weak = new Map();
  while (walker.nextNode()) {
    const { data, parentElement: element } = walker.currentNode;
    if (data.trim() === '' || judged.has(element)) continue;
    judged.add(element);
    if (element.closest('svg, script, style, template, noscript, :disabled')) continue;
    if (!osierJudge.visible(element)) continue;
    const back = behind(element);
    if (back === null) continue;
    const style = getComputedStyle(element);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const found = ratio(over(parse(style.color), back), back);
    if (found < (isLarge ? 3 : 4.5)) {
      const key = `${style.color} on rgb(${back.slice(0, 3).map(Math.round)})`;
      if (!weak.has(key)) {
        weak.set(key, `contrast ${found.toFixed(2)} of ${osierJudge.describe(element)}: ${key}`);
      }
    }
  }
  return [...weak.values()];
}

module.exports = { weakTexts };
