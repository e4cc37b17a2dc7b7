'use strict';
// Tables of source lines in the form of DWARF 4, for modules of WebAssembly.

/** A number in the form of LEB128, unsigned. */
function leb(number) {
  const bytes = [];
  do {
    bytes.push((number & 127) | (number > 127 ? 128 : 0));
    number >>>= 7;
  } while (number > 0);
  return bytes;
}

const word = number => [0, 8, 16, 24].map(shift => (number >>> shift) & 255);
const half = number => [number & 255, number >>> 8];
/** A text that ends with a zero, and so cannot have one. */
const string = text => [...Buffer.from(text.replaceAll('\0', ''), 'utf8'), 0];
const sized = contents => [...word(contents.length), ...contents];

/**
 * The custom sections by name, for functions of which each has the offset of its first and behind
 * its last instruction, and a file of its own. Each function has one line, counted from 1.
 */
function lineSections(functions) {
  const files = functions.flatMap(({ file }) => [...string(file), 0, 0, 0]);
  const tables = [1, 1, 1, 0xfb, 14, 13, ...[0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1], 0, ...files, 0];
  const program = functions.flatMap(({ start, end }, number) => [
    0, 5, 2, ...word(start), // the address
    4, ...leb(number + 1), // the file
    3, ...slebOfSmall(number % 60), // from line 1 on
    1, // a row
    2, ...leb(end - start),
    0, 1, 1, // the end of the sequence
  ]);
  const [first, last] = [functions[0].start, functions.at(-1).end];
  const attributes = [[0x10, 0x17], [0x03, 0x08], [0x1b, 0x08], [0x11, 0x01], [0x12, 0x06]];
  const unit = [...half(4), ...word(0), 4,
    1, ...word(0), ...string(functions[0].file), ...string('/<osier-hostile>'),
    ...word(first), ...word(last - first)];
  return {
    '.debug_abbrev': [1, 0x11, 0, ...attributes.flat(), 0, 0, 0],
    '.debug_info': sized(unit),
    '.debug_line': sized([...half(4), ...sized(tables), ...program]),
  };
}

/** Of a number below 64, the form with a sign is one byte. */
const slebOfSmall = number => [number];

module.exports = { leb, lineSections };
