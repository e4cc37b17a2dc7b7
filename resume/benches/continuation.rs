//! The cost of a continuation, and of adding points to a version, by size of the function.
//! Throughput is in instructions copied. Its inverse, the time for one instruction, should not grow
//! with the size.
//!
//!     cargo bench -p osier-resume --bench continuation

use check::CheckedEntry;
use divan::Bencher;
use divan::counter::ItemsCount;
use ir::decided::Decided;
use ir::liveness::Liveness;
use ir::{
    Function, FunctionBuilder, Imm, InstSpec, Memory, Opcode, Point, Signature, Target, Type,
    Value, Variable,
};
use osier_resume::{Condition, PointSpec, continuation, instrument};
use std::collections::BTreeMap;
use std::hint::black_box;
use transition::VersionKey;
use transition::mapping::{Assign, Entry, Operand};

/// Approximate numbers of instructions of the functions.
const SIZES: [usize; 4] = [100, 500, 1000, 5000];

/// A loop around units; each unit is a loop with two arms. Every unit sets the eight variables, so
/// behind a landing point in the middle each variable has two definitions.
fn units(size: usize) -> Function {
    let mut b = FunctionBuilder::new("units", Signature::new(&[Type::I32], &[Type::I32]));
    let entry = b.create_block();
    let n = b.append_param(entry, Type::I32);
    b.switch_to(entry);
    let variables: Vec<Variable> = (0..8).map(|_| b.declare_var(Type::I32)).collect();
    variables.iter().for_each(|v| b.def_var(*v, n));
    let (head, done) = (b.create_block(), b.reserve_block());
    b.jump(head, &[]);
    b.switch_to(head);
    for unit in 0..size.div_ceil(26) {
        let at = |k: usize| variables[(unit + k) % variables.len()];
        let inner = b.create_block();
        b.jump(inner, &[]);
        b.switch_to(inner);
        let (x, y) = (b.use_var(at(0)), b.use_var(at(1)));
        let five = b.constant(Type::I32, 5);
        let sum = b.op(Opcode::Add, Type::I32, &[x, y]);
        let mixed = b.op(Opcode::Xor, Type::I32, &[sum, five]);
        b.def_var(at(0), mixed);
        let loaded = b.insert_value(InstSpec::new(
            Opcode::Load,
            Type::I32,
            Imm::Address(Memory::from_u32(0), 0),
            &[x],
        ));
        let (then, otherwise, join) = (b.create_block(), b.create_block(), b.create_block());
        let less = b.op(Opcode::Slt, Type::I32, &[loaded, n]);
        b.br_if(less, Target::new(then, &[]), Target::new(otherwise, &[]));
        for (arm, opcode) in [(then, Opcode::Sub), (otherwise, Opcode::Mul)] {
            b.switch_to(arm);
            let (x, y) = (b.use_var(at(2)), b.use_var(at(3)));
            let z = b.op(opcode, Type::I32, &[x, y]);
            let w = b.op(Opcode::Shl, Type::I32, &[z, five]);
            b.def_var(at(2), z);
            b.def_var(at(4), w);
            b.jump(join, &[]);
        }
        b.switch_to(join);
        let (x, y) = (b.use_var(at(2)), b.use_var(at(4)));
        b.insert(InstSpec::new(
            Opcode::Store,
            Type::I32,
            Imm::Address(Memory::from_u32(0), 4),
            &[x, y],
        ));
        let next = b.create_block();
        let odd = b.op(Opcode::And, Type::I32, &[y, five]);
        b.br_if(odd, Target::new(inner, &[]), Target::new(next, &[]));
        b.switch_to(next);
    }
    let all: Vec<Value> = variables.iter().map(|v| b.use_var(*v)).collect();
    let more = all[1..].iter().fold(all[0], |sum, v| b.op(Opcode::Add, Type::I32, &[sum, *v]));
    b.br_if(more, Target::new(head, &[]), Target::new(done, &[]));
    b.place_block(done);
    b.switch_to(done);
    let x = b.use_var(variables[0]);
    b.ret(&[x]);
    b.finish().expect("complete").function
}

/// An entry without steps, at a landing point with half of the function behind it.
fn entry_in_the_middle(function: &Function) -> Entry {
    let insts: Vec<_> = function.all_insts().collect();
    let target = Point::before(insts[insts.len() / 2]);
    let decided = Decided::new(function);
    let live = Liveness::of_run(function, &decided, &BTreeMap::new()).live_before(function, target);
    let requires: Vec<Value> = live.iter().collect();
    let assigns = live.iter().map(|value| Assign { value, from: Operand::Source(value) }).collect();
    Entry {
        target,
        steps: Vec::new(),
        replays: Vec::new(),
        assigns,
        requires,
        kept: Vec::new(),
        inner: Box::default(),
    }
}

#[divan::bench(args = SIZES)]
fn continuations(bencher: Bencher<'_, '_>, size: usize) {
    let function = units(size);
    let entry = entry_in_the_middle(&function);
    let key = VersionKey::of(&function);
    let entry = CheckedEntry::unproved(key, key, entry.target, &entry);
    let made = continuation("rest", &function, &[&function], entry).expect("the entry is right");
    let counted = bencher.counter(ItemsCount::new(made.function.inst_count()));
    counted.bench_local(|| {
        continuation("rest", black_box(&function), black_box(&[&function]), black_box(entry))
    });
}

#[divan::bench(args = SIZES)]
fn points(bencher: Bencher<'_, '_>, size: usize) {
    let function = units(size);
    let at = |block| Point::before(function.first_inst(block));
    let points: Vec<PointSpec> = function
        .blocks()
        .map(|b| PointSpec {
            at: at(b),
            condition: Condition::Flag,
            values: function.block_params(b).to_vec(),
        })
        .collect();
    let counted = bencher.counter(ItemsCount::new(function.inst_count()));
    counted.bench_local(|| instrument(black_box(&function), black_box(&points)));
}

fn main() {
    divan::main();
}
