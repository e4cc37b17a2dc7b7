//! A few random programs in every mode, as `osier-ebpf random` compares them.

use osier_ebpf::fuzz::{Counts, compare};
use osier_ebpf::program::{Op, op};

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
