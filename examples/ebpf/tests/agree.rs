//! A few random programs in every mode, as `osier-ebpf random` compares them.

#![allow(unsafe_code, reason = "running a program takes promises about its memory")]

use osier::passes::parse;
use osier_ebpf::fuzz::{Counts, compare};
use osier_ebpf::interpreter::{Profile, profile};
use osier_ebpf::program::{Op, Program, op};
use osier_ebpf::runtime::{Mode, Native};
use std::collections::HashMap;
use std::sync::Arc;

#[test]
fn random_programs_agree() {
    let mut counts = Counts::default();
    for seed in 1..=60 {
        compare(seed, &mut counts).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
    }
    assert!(counts.faults > 0 && counts.exits > 0 && counts.entries > 0, "{counts:?}");
    assert!(counts.rows > 0 && counts.linked > 0, "{counts:?}");
}

/// 5 for a byte below 200, else 9.
fn rate(byte: u64, _: u64, _: u64, _: u64, _: u64) -> u64 {
    if byte < 200 { 5 } else { 9 }
}

/// All time is in one loop over the packet, which multiplies by the result of a helper. The
/// interpreter enters it in the middle, in code that assumes the result. Where a byte has another
/// result, two runs leave to the interpreter, and later ones to code for that result.
#[test]
fn a_loop_is_entered_in_code_that_assumes_the_result_of_a_helper() {
    let text = "
        mov r6, r1
        mov r7, 0
        mov r8, r1
        add r8, 600
        ldxb r1, [r6]
        mov r9, r1
        call 1
        mul r9, r0
        add r7, r9
        add r6, 1
        jlt r6, r8, -7
        mov r0, r7
        exit";
    let bytes = rbpf::assembler::assemble(text).expect("the text is right");
    let program = Arc::new(Program::new(&bytes, |_| 0).expect("a program"));
    let helpers = Arc::new(HashMap::from([(1, rate as rbpf::ebpf::Helper)]));
    let calm: Vec<u8> = (0..600).map(|at| (at % 200) as u8).collect();
    let mut mixed = calm.clone();
    mixed.iter_mut().skip(300).step_by(3).for_each(|byte| *byte = 201);
    let mut seen = Profile::default();
    profile(&program, &helpers, &mut calm.clone(), &mut seen).expect("it ends");
    let mode = Mode::Landing(parse("O2").expect("a pipeline"), seen);
    // SAFETY: no range is allowed, and the helper does not panic.
    let mut native =
        unsafe { Native::new(&program, &helpers, &[], false, &mode) }.expect("it compiles");
    let rates = |packet: &[u8]| -> u64 {
        packet.iter().map(|byte| u64::from(*byte) * rate(u64::from(*byte), 0, 0, 0, 0)).sum()
    };
    assert_eq!(native.run(&mut calm.clone(), &mut []), Ok(rates(&calm)));
    let (_, exits, entries) = native.counts();
    assert_eq!((exits, entries, native.rows()), (0, 1, [1, 0]), "one row, entered once");
    for _ in 0..3 {
        assert_eq!(native.run(&mut mixed.clone(), &mut []), Ok(rates(&mixed)));
    }
    let (_, exits, _) = native.counts();
    let [rows, linked] = native.rows();
    // A hundred bytes of each packet have the other result.
    assert!(exits <= 4 && rows > 1 && linked > 0, "{exits} exits, {rows} rows, {linked} linked");
}

/// Every opcode, in a program of its own: the opcodes that the client does not translate are those
/// that the runtime's verifier does not know or support.
#[test]
fn no_opcode_is_taken_for_another() {
    let mut taken: Vec<String> = Vec::new();
    for opcode in 0..=u8::MAX {
        // Byte swaps have a width, and divisors are not zero.
        let program =
            [opcode, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0];
        let wide = op(opcode) == Op::Wide;
        let program =
            if wide { program.to_vec() } else { [&program[..8], &program[16..]].concat() };
        let refused = rbpf::EbpfVmNoData::new(Some(&program)).err().map(|error| error.to_string());
        let unknown = refused
            .as_ref()
            .is_some_and(|text| text.contains("unknown") || text.contains("not supported"));
        if (op(opcode) == Op::Unsupported) != unknown {
            taken.push(format!("{opcode:#x} as {:?}: {refused:?}", op(opcode)));
        }
    }
    assert_eq!(taken, Vec::<String>::new());
}

/// Eight levels of twenty functions, each of which calls all functions of the next level: there are
/// 20^8 ways to nest, and 3,000 calls.
#[test]
fn many_ways_to_nest_take_no_time() {
    const LEVELS: usize = 8;
    const FUNCTIONS: usize = 20;
    // The program calls the first level; a function has a call for each one of the next, and an
    // exit.
    let length = FUNCTIONS + 1;
    let mut bytes: Vec<u8> = Vec::new();
    for function in 0..=LEVELS * FUNCTIONS {
        let next = if function == 0 { 0 } else { (function - 1) / FUNCTIONS + 1 };
        for callee in 0..FUNCTIONS {
            let at = function * length + callee;
            let to = (1 + next * FUNCTIONS + callee) * length;
            match next < LEVELS {
                true => {
                    bytes.extend([0x85, 0x10, 0, 0]);
                    bytes.extend((to as i32 - at as i32 - 1).to_le_bytes());
                }
                // The last level moves registers.
                false => bytes.extend([0xbf, 0, 0, 0, 0, 0, 0, 0]),
            }
        }
        bytes.extend([0x95, 0, 0, 0, 0, 0, 0, 0]);
    }
    let program = Program::new(&bytes, |_| 0).expect("a program");
    assert_eq!(program.functions.len(), 1 + LEVELS * FUNCTIONS);
    assert!(!program.counts_depth, "eight levels are allowed");
}

/// A loop walks beyond the packet. Native code reports the address that the runtime reports.
#[test]
fn an_error_in_a_loop_names_the_address() {
    let text = "ldxb r0, [r1+0]\nadd64 r1, 1\njne r2, 1, -3\nexit";
    let bytes = rbpf::assembler::assemble(text).expect("the text is right");
    let mut packet = [0; 16];
    let theirs = rbpf::EbpfVmRaw::new(Some(&bytes)).expect("the verifier accepts it");
    let expected = theirs.execute_program(&mut packet).expect_err("it has no end").to_string();
    let mut ours = osier_ebpf::EbpfVmRaw::new(Some(&bytes)).expect("the verifier accepts it");
    ours.cranelift_compile().expect("it compiles");
    let found = ours.execute_program_cranelift(&mut packet).expect_err("it has no end").to_string();
    assert!(found.contains("addr 0x") && expected.starts_with(&found), "{found}\n{expected}");
}
