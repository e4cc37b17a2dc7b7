//! A back end on Osier for a virtual machine that exists: the eBPF runtime `rbpf`.
//!
//! [`program`] decodes and analyses a program, [`translate`] makes functions of the IR with frame
//! states, [`runtime`] runs them in native code, and [`interpreter`] continues where a version with
//! assumptions leaves. [`api`] has the types of the runtime itself, over this back end: its own
//! tests run on them. [`fuzz`], [`mod@bench`] and [`theirs`] judge and measure.

pub mod api;
pub mod bench;
pub mod fuzz;
pub mod interpreter;
pub mod kernels;
mod memory;
pub mod program;
pub mod runtime;
pub mod theirs;
pub mod translate;

pub use api::{EbpfVmFixedMbuff, EbpfVmMbuff, EbpfVmNoData, EbpfVmRaw};
pub use rbpf::{assembler, disassembler, ebpf, helpers, insn_builder, lib};
