'use strict';
// Modules whose names are markup, scripts, addresses, control characters and marks of direction.
// Elements and scripts made of names leave the traces that `names.js` looks for.

const { leb, lineSections } = require('./lines.js');

/** Names of functions. Each is taken by a page that is wrong in one way for something else. */
const NAMES = [
  // Markup, in text, in attributes, in scripts and in styles.
  '<script>window.osierHostile=1</script>',
  '<img data-osier-hostile src=x onerror="osierHostile=2">',
  '"><svg data-osier-hostile onload=osierHostile=3>',
  "' autofocus tabindex=0 onfocus='osierHostile=4' x='",
  '</script><osier-hostile>',
  '<!--<script>',
  '-->]]></style></title></textarea></template></table><osier-hostile>',
  '&lt;b&gt; &amp;lt; &#60; &#x202e;',
  '${osierHostile=5} {{osierHostile=6}}',
  'javascript:osierHostile=7',
  // Addresses.
  '100%', '%41', 'A', '%E0%A4%A', 'a+b', 'a b', 'a%20b', 'a&p=block0:0', 'a#f=main', 'a=b?c/d\\e;',
  // Quotes and blanks.
  '"', "'", '`', '\\', '', ' ', '  ', ' a', 'a\tb', 'a\nb', 'a\r\nb', '\u00a0', '\u3000',
  // Control characters, and names that look like them when they are escaped.
  'a\u0000b', 'a\u0001\u001b[31mb', '\u007f\u0085', '\\u{1}', '\u0001', '\ufffd', '\ufffe',
  // Marks of direction, and characters without width.
  '\u202egpj.exe', 'a\u202eb', 'a\\u{202e}b', '\u2067\u2067a', '\u200b', '\ufeff', 'a\u00adb',
  'a\u2028b\u2029c',
  // Scripts from right to left, combining marks, characters beyond the first plane.
  '\u05e2\u05d1\u05e8\u05d9\u05ea(1)', '\u0645\u0631\u062d\u0628\u0627 = 1',
  `e${'\u0301'.repeat(40)}`,
  '\u{1f980}\u{1f468}\u200d\u{1f469}', '\u{10ffff}',
  // Names of properties in script, and of elements of the page.
  '__proto__', 'constructor', 'toString', 'hasOwnProperty', 'functions', 'filter', 'point', 'base',
  // Names that differ little.
  'main', 'MAIN', 'main.1', 'main ', 'M\u0430IN',
  // Long ones.
  'x'.repeat(3000), `${'wide '.repeat(60)}end`,
];

/** A name between quotes in the text form. */
function quoted(name) {
  const escape = c => /[ !#-\[\]-~]/.test(c) ? c
    : c === '"' || c === '\\' ? `\\${c}` : `\\u{${c.codePointAt(0).toString(16)}}`;
  return `"${[...name].map(escape).join('')}"`;
}

/** A module in the text form, whose functions, blocks, parameters and values have the names. */
function textModule(names = NAMES) {
  const at = place => quoted(names[place % names.length]);
  const each = names.map((name, number) => {
    const [n, sum, product] = [1, 2, 3].map(step => `%${at(number + 7 * step)}`);
    const [head, body] = [4, 5].map(step => at(number + 7 * step));
    // Each function has a size of its own.
    const more = Array.from({ length: number }, (_, i) => `  %t${i} = add.i32 %k, %k\n`
      + `  global_set.i32 @${at(number)}, %t${i}\n`).join('');
    return `func @${quoted(name)}(%k: i32, ${n}: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
${more}  jump ${head}(%zero, %zero)
${head}(%i: i32, ${sum}: i32):
  %more = slt.i32 %i, ${n}
  br_if %more, ${body}, done
${body}:
  ${product} = mul.i32 %k, %k
  %next_sum = add.i32 ${sum}, ${product}
  %next = add.i32 %i, %one
  jump ${head}(%next, %next_sum)
done:
  return ${sum}
}
`;
  });
  const globals = names.map(name => `global @${quoted(name)}: mut i32 = 0\n`);
  const exports = names.map(name => `export ${quoted(name)} @${quoted(name)}\n`);
  return [...globals, ...exports, ...each].join('');
}

const vector = items => [...leb(items.length), ...items.flat()];
const text = name => vector([...Buffer.from(name, 'utf8')].map(byte => [byte]));
const section = (id, contents) => [id, ...leb(contents.length), ...contents];

/**
 * A WebAssembly module with the same names in its name section, and as source files. An empty name
 * in a name section is no name, and is left out.
 */
function binaryModule(names = wasmNames()) {
  const [I32, GET, ADD, MUL, END] = [0x7f, 0x20, 0x6a, 0x6c, 0x0b];
  const sum = [GET, 0, GET, 1, ADD];
  // A sum computed again and again, so that every function changes, each with a size of its own.
  const bodies = names.map((_, number) => {
    const again = Array.from({ length: number + 1 }, () => [...sum, MUL]).flat();
    const body = [0, ...sum, ...again, END];
    return [...leb(body.length), ...body];
  });
  // Tables of lines count bytes from the start of the code section's contents.
  let end = leb(bodies.length).length;
  const lines = bodies.map((body, number) => {
    end += body.length;
    return { start: end - (body.length - leb(body.length).length) + 1, end, file: names[number] };
  });
  const functions = vector(names.map((name, number) => [...leb(number), ...text(name)]));
  const custom = Object.entries(lineSections(lines))
    .flatMap(([name, contents]) => section(0, [...text(name), ...contents]));
  return Buffer.from([
    0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
    ...section(1, vector([[0x60, 2, I32, I32, 1, I32]])),
    ...section(3, vector(names.map(() => [0]))),
    ...section(7, vector(names.map((name, number) => [...text(name), 0, ...leb(number)]))),
    ...section(10, vector(bodies)),
    ...section(0, [...text('name'), 1, ...leb(functions.length), ...functions]),
    ...custom,
  ]);
}

/** The names that a module of WebAssembly can give. */
function wasmNames() {
  return NAMES.filter(name => name !== '');
}

module.exports = { NAMES, binaryModule, textModule, wasmNames };
