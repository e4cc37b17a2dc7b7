//! A few random programs in every mode, as `osier-ebpf random` compares them.

use osier_ebpf::fuzz::{Counts, compare};
use osier_ebpf::program::{Op, Program, op};

#[test]
fn random_programs_agree() {
    let mut counts = Counts::default();
    for seed in 1..=60 {
        compare(seed, &mut counts).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
    }
    assert!(counts.faults > 0 && counts.exits > 0 && counts.entries > 0, "{counts:?}");
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
