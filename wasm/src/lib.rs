//! WebAssembly in: modules to IR, and WASI for programs that read and print.
