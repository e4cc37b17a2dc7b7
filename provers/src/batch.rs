//! Claims about many constants at once: the results of [`ir::eval`], and the divisions that cannot
//! trap.

use crate::goal::SolverGoal;
use crate::meaning::{SmtDefinitions, SmtValue};
use crate::rewrite::same_number;
use crate::typing::Typing;
use easy_smt::SExpr;
use ir::eval::eval;
use ir::{FunctionBuilder, Imm, InstSpec, Signature, TrapKind, Type};
use std::io;

/// An operation on constants with its claimed result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoldingCase {
    /// The bits of the operands.
    pub operands: Vec<u64>,
    /// The bits of the result, or the trap.
    pub gives: Result<u64, TrapKind>,
}

/// Random numbers (SplitMix64, by Steele, Lea and Flood).
pub(crate) struct Generator(u64);

impl Generator {
    pub(crate) fn new(seed: u64) -> Generator {
        Generator(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn masked(&mut self, ty: Type) -> u64 {
        self.next() & ty.mask()
    }
}

/// The boundary values of a type: bounds, powers of two, their neighbors, and every kind of float.
pub fn inputs(ty: Type) -> Vec<u64> {
    let mut found = if ty.is_float() { floats(ty) } else { integers(ty) };
    found.iter_mut().for_each(|bits| *bits &= ty.mask());
    found.sort_unstable();
    found.dedup();
    found
}

fn integers(ty: Type) -> Vec<u64> {
    let mut found =
        vec![0, 1, 2, 3, 7, 10, ty.mask(), ty.mask() - 1, ty.mask() >> 1, ty.mask() / 2 + 1];
    found.extend([0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff]);
    found.extend([
        u64::from(ty.bits()),
        u64::from(ty.bits()) - 1,
        0x5555_5555_5555_5555,
        0x1234_5678_9abc_def0,
    ]);
    // Integers that are not exact as floats.
    found.extend([
        0x0100_0001,
        0x0100_0003,
        0x0020_0000_0000_0001,
        0x7fff_ffff_ffff_fdff,
        0x7fff_ff80_0000_0001,
    ]);
    found
}

/// The bits of a number in a float type.
fn float_bits(x: f64, ty: Type) -> u64 {
    if ty == Type::F32 { u64::from((x as f32).to_bits()) } else { x.to_bits() }
}

fn floats(ty: Type) -> Vec<u64> {
    // The bounds of integers, with their neighbors.
    let bounds = [31, 32, 63, 64].map(|exponent| float_bits(f64::from(exponent).exp2(), ty));
    let bounds = bounds.into_iter().flat_map(|bits| [bits - 1, bits, bits + 1]);
    let numbers =
        [0.0, 0.5, 0.999_999_94, 1.0, 1.5, 2.5, 0.1, 3.0, 2_147_483_647.0, 2_147_483_648.5, 1e10];
    let numbers = numbers.map(|x| float_bits(x, ty));
    let (infinity, quiet) =
        if ty == Type::F32 { (0x7f80_0000, 0x0040_0000) } else { (0x7ff0 << 48, 0x8 << 48) };
    let least_normal = infinity & !(infinity << 1);
    let special = [1, least_normal - 1, least_normal, infinity - 1, infinity];
    let nans = [infinity + 1, infinity | quiet, infinity | quiet | 5];
    let sign = ty.mask() / 2 + 1;
    bounds.chain(numbers).chain(special).chain(nans).flat_map(|bits| [bits, bits | sign]).collect()
}

/// Operands for an operation: all combinations of boundary values, and random operands.
fn operands(typing: &Typing, seed: u64, random: usize) -> Vec<Vec<u64>> {
    let mut generator = Generator::new(seed);
    let mut lists: Vec<Vec<u64>> = vec![Vec::new()];
    for ty in &typing.operands {
        let mut choices = inputs(*ty);
        if typing.operands.len() > 2 {
            choices.truncate(6);
        }
        lists = lists
            .iter()
            .flat_map(|l| choices.iter().map(|c| [l.as_slice(), &[*c]].concat()))
            .collect();
    }
    lists.extend(
        (0..random).map(|_| typing.operands.iter().map(|ty| generator.masked(*ty)).collect()),
    );
    // Numbers near each other, which random bits seldom are.
    lists.extend((0..random / 4).map(|_| {
        let base = generator.next();
        typing
            .operands
            .iter()
            .map(|ty| base.wrapping_add(generator.next() % 5) & ty.mask())
            .collect()
    }));
    lists
}

/// The results of [`eval`] for an operation, on boundary values and on `random` random operands.
pub(crate) fn folded(typing: &Typing, seed: u64, random: usize) -> Vec<FoldingCase> {
    let case = |operands: Vec<u64>| {
        let gives = eval(typing.opcode, typing.ty, typing.operands[0], &operands);
        FoldingCase { operands, gives }
    };
    operands(typing, seed, random).into_iter().map(case).collect()
}

/// Constants for which [`ir::Function::may_trap`] says that a division cannot trap: all of 8 bits,
/// and a choice of wider constants.
pub(crate) fn safe_divisors(typing: &Typing, seed: u64) -> Vec<u64> {
    let mut generator = Generator::new(seed);
    let candidates = match typing.ty {
        Type::I8 => (0..256).collect(),
        ty => inputs(ty)
            .into_iter()
            .chain((0..100).map(|_| generator.masked(ty)))
            .collect::<Vec<u64>>(),
    };
    candidates.into_iter().filter(|divisor| !division_may_trap(typing, *divisor)).collect()
}

fn division_may_trap(typing: &Typing, divisor: u64) -> bool {
    let ty = typing.ty;
    let mut builder = FunctionBuilder::new("division", Signature::new(&[ty], &[ty]));
    let entry = builder.create_block();
    let x = builder.append_param(entry, ty);
    builder.switch_to(entry);
    let divisor = builder.constant(ty, divisor);
    let quotient = builder.insert_value(InstSpec::new(typing.opcode, ty, Imm::None, &[x, divisor]));
    builder.ret(&[quotient]);
    let function = builder.finish().expect("a division of an argument is well-formed").function;
    let division = function.defining_inst(quotient).expect("a quotient is a result");
    function.may_trap(division)
}

/// The goal that the operation gives the result of each case.
pub(crate) fn gives(
    definitions: &mut SmtDefinitions<'_>,
    typing: &Typing,
    cases: &[FoldingCase],
) -> io::Result<SolverGoal> {
    let mut goal = SolverGoal::default();
    let mut equalities = Vec::new();
    for case in cases {
        let pairs = case.operands.iter().zip(&typing.operands);
        let operands: Vec<SExpr> =
            pairs.map(|(bits, ty)| definitions.terms().of_type(*bits, *ty)).collect();
        let meaning = definitions.apply(typing, &operands)?;
        let t = definitions.terms();
        let mut all: Vec<SExpr> = Vec::new();
        for (kind, condition) in &meaning.traps {
            all.push(if case.gives == Err(*kind) { *condition } else { t.not(*condition) });
        }
        match case.gives {
            Ok(bits) => {
                let bits = t.of_type(bits, typing.result);
                all.push(match meaning.value {
                    SmtValue::Bits(value) => t.equal(value, bits),
                    SmtValue::Number(number) => {
                        same_number(definitions, number, bits, typing.result)
                    }
                });
            }
            // The operation never traps in this way.
            Err(kind) if meaning.traps.iter().all(|(k, _)| *k != kind) => all.push(t.atom("false")),
            Err(_) => {}
        }
        equalities.push(t.and(&all));
        let result =
            case.gives.map_or_else(|kind| format!("the trap {kind}"), |bits| format!("{bits:#x}"));
        goal.cases.push(format!(
            "{} of {}: computed {result}",
            typing.opcode.name(),
            hex(&case.operands)
        ));
    }
    goal.holds_in_each_case(definitions, &equalities)?;
    Ok(goal)
}

/// The goal: no division of any value by these constants traps.
pub(crate) fn never_trap(
    definitions: &mut SmtDefinitions<'_>,
    typing: &Typing,
    divisors: &[u64],
) -> io::Result<SolverGoal> {
    let x = definitions.variable("X", typing.ty)?;
    let mut goal = SolverGoal { shown: vec![("X".to_owned(), x)], ..SolverGoal::default() };
    let mut all = Vec::new();
    for divisor in divisors {
        let divisor_term = definitions.terms().of_type(*divisor, typing.ty);
        let meaning = definitions.apply(typing, &[x, divisor_term])?;
        let t = definitions.terms();
        let conditions: Vec<SExpr> =
            meaning.traps.into_iter().map(|(_, condition)| condition).collect();
        all.push(t.not(t.or(&conditions)));
        goal.cases.push(format!("{} by {divisor:#x}", typing.opcode.name()));
    }
    goal.holds_in_each_case(definitions, &all)?;
    Ok(goal)
}

pub(crate) fn hex(all: &[u64]) -> String {
    let all: Vec<String> = all.iter().map(|bits| format!("{bits:#x}")).collect();
    all.join(", ")
}
