//! Prints the results of operations on constants, for comparison with their meaning in Coq.
//!
//! A line has the opcode, its type, the type of the first operand, the operands, and the result of
//! `ir::eval::fold`, or `-` where that gives none. `proof/meaning` runs this.

use osier::ir::eval::{accepts, fold};
use osier::ir::{Opcode, Type};
use std::io::{self, BufWriter, Write};

/// Edge cases of every width, and numbers without a pattern from a multiplicative generator.
fn operands(ty: Type, extra: usize) -> Vec<u64> {
    let mut list: Vec<u64> = vec![0, 1, 2, 3, 5, 7, 8, 31, 32, 33, 63, 64];
    for width in [8, 16, 32, 64] {
        let top = 1u64 << (width - 1);
        list.extend([top - 1, top, top + 1, top.wrapping_mul(2).wrapping_sub(1)]);
        list.push(top.wrapping_mul(2).wrapping_sub(2));
    }
    list.extend(floats(ty));
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..extra {
        state = state.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
        list.push(state ^ state >> 29);
    }
    list.iter_mut().for_each(|bits| *bits &= ty.mask());
    list.sort_unstable();
    list.dedup();
    list
}

/// Zeros, ones, infinities, NaNs, the least and the largest number, of both signs.
fn floats(ty: Type) -> Vec<u64> {
    let positive: &[u64] = match ty {
        Type::F32 => &[0, 0x3f80_0000, 0x7f80_0000, 0x7fc0_0000, 0x7f80_0001, 1, 0x7f7f_ffff],
        Type::F64 => &[
            0,
            0x3ff0_0000_0000_0000,
            0x7ff0_0000_0000_0000,
            0x7ff8_0000_0000_0000,
            0x7ff0_0000_0000_0001,
            1,
            0x7fef_ffff_ffff_ffff,
            0x4059_0000_0000_0000,
        ],
        _ => &[],
    };
    let sign = ty.mask() ^ ty.mask() >> 1;
    positive.iter().flat_map(|bits| [*bits, bits | sign]).collect()
}

fn print(
    out: &mut impl Write,
    opcode: Opcode,
    ty: Type,
    source: Type,
    args: &[u64],
) -> io::Result<()> {
    let text: Vec<String> = args.iter().map(u64::to_string).collect();
    let result = fold(opcode, ty, source, args).map_or("-".into(), |bits| bits.to_string());
    let names = (opcode.name(), ty.name(), source.name());
    writeln!(out, "{} {} {} {} {result}", names.0, names.1, names.2, text.join(","))
}

fn main() -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for &opcode in Opcode::ALL {
        for (ty, source) in Type::ALL.into_iter().flat_map(|t| Type::ALL.map(move |s| (t, s))) {
            if accepts(opcode, ty, &[source]) {
                for x in operands(source, 500) {
                    print(&mut out, opcode, ty, source, &[x])?;
                }
            }
            if accepts(opcode, ty, &[source, source]) {
                let list = operands(source, 20);
                for (x, y) in list.iter().flat_map(|x| list.iter().map(move |y| (*x, *y))) {
                    print(&mut out, opcode, ty, source, &[x, y])?;
                }
            }
            if accepts(opcode, ty, &[source, ty, ty]) {
                for x in operands(source, 20) {
                    print(&mut out, opcode, ty, source, &[x, ty.mask() >> 1, 3])?;
                }
            }
        }
    }
    out.flush()
}
