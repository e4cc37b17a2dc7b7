// Json: reads a text of 156 operations into a tree. The result is the number of values in it.
"use strict";
const rounds = 900;
// Characters by their codes.
const tab = 9;
const newline = 10;
const blank = 32;
const quote = 34;
const plus = 43;
const comma = 44;
const minus = 45;
const dot = 46;
const zero = 48;
const nine = 57;
const colon = 58;
const bracket = 91;
const backslash = 92;
const endBracket = 93;
const brace = 123;
const endBrace = 125;
// The kinds of values, each with its functions.
function one(value) { return 1; }
function countList(value) {
    let count = 1;
    for (let i = 0; i < value.items.length; i++) {
        const item = value.items[i];
        count = count + item.kind.count(item);
    }
    return count;
}
const literals = {name: "literal", count: one};
const numbers = {name: "number", count: one};
const strings = {name: "string", count: one};
const arrays = {name: "array", count: countList};
const objects = {name: "object", count: countList};
// A table leads from the lengths of the names in an object to the last such name.
function hash(name) { return name.length * 1402589 % 32; }
function object() {
    const table = [];
    for (let i = 0; i < 32; i++) { table.push(-1); }
    return {kind: objects, names: [], items: [], table};
}
function add(object, name, value) {
    object.table[hash(name)] = object.names.length;
    object.names.push(name);
    object.items.push(value);
}
function get(object, name) {
    const names = object.names;
    const index = object.table[hash(name)];
    if (index >= 0 && names[index] === name) { return object.items[index]; }
    for (let i = 0; i < names.length; i++) { if (names[i] === name) { return object.items[i]; } }
    return null;
}
// The reader: a text, the next character, and where it is.
function reader(text) {
    return {text, at: 0, current: text.charCodeAt(0), line: 1, start: 0, captured: ""};
}
function read(r) {
    if (r.current === newline) { r.line = r.line + 1; }
    r.at = r.at + 1;
    if (r.at < r.text.length) {
        r.current = r.text.charCodeAt(r.at);
    } else {
        r.current = -1;
    }
}
function expected(r, what) {
    throw new Error("line " + String(r.line) + ": " + what + " is expected");
}
function skip(r) {
    while (r.current === blank || r.current === newline || r.current === tab) { read(r); }
}
function readIf(r, code) {
    if (r.current !== code) { return false; }
    read(r);
    return true;
}
function isDigit(r) { return r.current >= zero && r.current <= nine; }
function readDigits(r) {
    if (!isDigit(r)) { expected(r, "a digit"); }
    while (isDigit(r)) { read(r); }
}
function capture(r) {
    r.captured = "";
    r.start = r.at;
}
function pause(r) {
    r.captured = r.captured + r.text.slice(r.start, r.at);
    r.start = r.at;
}
function readLiteral(r, text, value) {
    for (let i = 0; i < text.length; i++) {
        if (!readIf(r, text.charCodeAt(i))) { expected(r, text); }
    }
    return {kind: literals, value};
}
function readNumber(r) {
    capture(r);
    readIf(r, minus);
    if (!readIf(r, zero)) { readDigits(r); }
    if (readIf(r, dot)) { readDigits(r); }
    if (r.current === 101 || r.current === 69) {
        read(r);
        if (!readIf(r, plus)) { readIf(r, minus); }
        readDigits(r);
    }
    pause(r);
    return {kind: numbers, value: r.captured};
}
function escaped(r) {
    if (r.current === quote || r.current === backslash || r.current === 47) {
        return String.fromCharCode(r.current);
    }
    if (r.current === 110) { return "\n"; }
    if (r.current === 116) { return "\t"; }
    return expected(r, "a character behind a backslash");
}
function readText(r) {
    if (!readIf(r, quote)) { expected(r, "a string"); }
    capture(r);
    while (r.current !== quote) {
        if (r.current < blank) { expected(r, "a quotation mark"); }
        if (r.current === backslash) {
            pause(r);
            read(r);
            r.captured = r.captured + escaped(r);
            read(r);
            r.start = r.at;
        } else {
            read(r);
        }
    }
    pause(r);
    read(r);
    return r.captured;
}
function readArray(r) {
    read(r);
    const items = [];
    skip(r);
    if (readIf(r, endBracket)) { return {kind: arrays, items}; }
    let isOpen = true;
    while (isOpen) {
        skip(r);
        items.push(readValue(r));
        skip(r);
        isOpen = readIf(r, comma);
    }
    if (!readIf(r, endBracket)) { expected(r, "a comma or a bracket"); }
    return {kind: arrays, items};
}
function readObject(r) {
    read(r);
    const made = object();
    skip(r);
    if (readIf(r, endBrace)) { return made; }
    let isOpen = true;
    while (isOpen) {
        skip(r);
        const name = readText(r);
        skip(r);
        if (!readIf(r, colon)) { expected(r, "a colon"); }
        skip(r);
        add(made, name, readValue(r));
        skip(r);
        isOpen = readIf(r, comma);
    }
    if (!readIf(r, endBrace)) { expected(r, "a comma or a brace"); }
    return made;
}
function readValue(r) {
    const code = r.current;
    if (code === quote) { return {kind: strings, value: readText(r)}; }
    if (code === minus || isDigit(r)) { return readNumber(r); }
    if (code === brace) { return readObject(r); }
    if (code === bracket) { return readArray(r); }
    if (code === 110) { return readLiteral(r, "null", null); }
    if (code === 116) { return readLiteral(r, "true", true); }
    if (code === 102) { return readLiteral(r, "false", false); }
    return expected(r, "a value");
}
function parse(text) {
    const r = reader(text);
    skip(r);
    const value = readValue(r);
    skip(r);
    if (r.at < text.length) { expected(r, "the end"); }
    return value;
}
// The text.
function operation(i) {
    let text = "  {\"id\": " + String(i) + ", \"target\": [\"w" + String(i % 7) + "\"], ";
    if (i % 3 === 0) { return text + "\"action\": \"create\", \"service\": \"Shell\", \"x\": {}}"; }
    if (i % 3 === 1) {
        text = text + "\"action\": \"set\", \"bounds\": [0, " + String(i * 5);
        text = text + ", 1280.5, -6.25e-2], \"visible\": true, \"enabled\": false, ";
        return text + "\"parent\": null}";
    }
    return text + "\"action\": \"call\", \"label\": \"say \\\"hello\\\"\\n\\tto \\\\ and \\/\"}";
}
function document() {
    let text = "{\"head\": {\"requestCounter\": 4},\n\"operations\": [\n";
    for (let i = 0; i < 156; i++) {
        if (i > 0) { text = text + ",\n"; }
        text = text + operation(i);
    }
    return text + "\n]}\n";
}
function benchmark(text) {
    const tree = parse(text);
    if (get(tree, "head").kind.name !== "object") { throw new Error("the head is no object"); }
    const operations = get(tree, "operations");
    if (operations.kind.name !== "array") { throw new Error("the operations are no array"); }
    if (operations.items.length !== 156) { throw new Error("the number of operations is another"); }
    const label = get(operations.items[2], "label");
    if (label.value !== "say \"hello\"\n\tto \\ and /") { throw new Error("a text is another"); }
    return tree.kind.count(tree);
}
const text = document();
const count = benchmark(text);
for (let round = 0; round < rounds; round++) {
    if (benchmark(text) !== count) { throw new Error("the number of values is another"); }
}
console.log(text.length);
console.log(count);
