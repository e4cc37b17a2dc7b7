// Runs a module in node.
//
// usage: node --no-warnings run_node.mjs FILE -- ARGS...
//        node --no-warnings run_node.mjs --invoke FUNCTION RESULT FILE -- TYPE:VALUE...   prints RESULT:VALUE, floats as bits
//        node --no-warnings run_node.mjs --calls N FUNCTION RESULT FILE -- TYPE:VALUE...  the same N times, with seconds
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { WASI } from 'node:wasi';

let args = process.argv.slice(2);
let invoke = null;
let calls = 0;
if (args[0] === '--calls') {
  calls = Number(args[1]);
  args = ['--invoke', ...args.slice(2)];
}
if (args[0] === '--invoke') {
  invoke = args.slice(1, 3);
  args = args.slice(3);
}
const file = args.shift();
if (args[0] === '--') args.shift();

const wasi = new WASI({ version: 'preview1', args: [basename(file), ...(invoke ? [] : args)], returnOnExit: true });
// Called directly from Wasm, node 20's own functions abort the process once memory has grown by some tens of MiB.
const imports = {};
for (const [name, f] of Object.entries(wasi.wasiImport)) imports[name] = (...a) => f(...a);
const instance = new WebAssembly.Instance(new WebAssembly.Module(readFileSync(file)), { wasi_snapshot_preview1: imports });

function scalar(text) {
  const [kind, value] = text.split(':');
  return kind === 'i64' ? BigInt(value) : Number(value);
}

function show(kind, value) {
  if (kind[0] === 'i') return `${kind}:${value}`;
  const bits = Buffer.alloc(kind === 'f32' ? 4 : 8);
  if (kind === 'f32') bits.writeFloatBE(value);
  else bits.writeDoubleBE(value);
  return `${kind}:0x${bits.toString('hex')}`;
}

if (invoke) {
  // Kernels print through fd_write only in _start, so memory need not be made known to the WASI object.
  const call = () => instance.exports[invoke[0]](...args.map(scalar));
  for (let i = 0; i < calls; i++) {
    const begun = performance.now();
    const result = call();
    const seconds = (performance.now() - begun) / 1000;
    console.log(`${show(invoke[1], result)} ${seconds.toFixed(9)}`);
  }
  if (calls === 0) console.log(show(invoke[1], call()));
} else {
  process.exitCode = wasi.start(instance);
}
