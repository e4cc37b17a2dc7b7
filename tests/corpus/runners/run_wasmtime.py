"""Runs a module in wasmtime (PyPI package wasmtime), with what the corpus promises not to use switched off where
that is possible (wasmtime insists on reference types).

usage: run_wasmtime.py FILE -- ARGS...
       run_wasmtime.py --invoke FUNCTION RESULT FILE -- TYPE:VALUE...   prints RESULT:VALUE, floats as bits
"""
import os
import struct
import sys

import wasmtime


def scalar(text):
    kind, _, value = text.partition(":")
    return float(value) if kind in ("f32", "f64") else int(value)


def show(kind, value):
    if kind in ("f32", "f64"):
        return kind + ":0x" + struct.pack(">" + {"f32": "f", "f64": "d"}[kind], value).hex()
    return f"{kind}:{value}"


def main(args):
    invoke = None
    if args[0] == "--invoke":
        invoke, args = args[1:3], args[3:]
    file, args = args[0], args[1:]
    if args[:1] == ["--"]:
        args = args[1:]
    config = wasmtime.Config()
    for feature in ("threads", "tail_call", "simd", "relaxed_simd", "multi_value", "multi_memory", "memory64",
                    "bulk_memory"):
        setattr(config, "wasm_" + feature, False)
    engine = wasmtime.Engine(config)
    linker = wasmtime.Linker(engine)
    linker.define_wasi()
    store = wasmtime.Store(engine)
    wasi = wasmtime.WasiConfig()
    wasi.argv = [os.path.basename(file)] + ([] if invoke else args)
    wasi.inherit_stdin()
    wasi.inherit_stdout()
    wasi.inherit_stderr()
    store.set_wasi(wasi)
    exports = linker.instantiate(store, wasmtime.Module.from_file(engine, file)).exports(store)
    try:
        if invoke:
            print(show(invoke[1], exports[invoke[0]](store, *map(scalar, args))))
        else:
            exports["_start"](store)
    except wasmtime.ExitTrap as exit:
        return exit.code
    return 0


sys.exit(main(sys.argv[1:]))
