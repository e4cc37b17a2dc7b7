//! The code of continuations: split blocks, values with two definitions, code that is left out, and
//! decided branches.

use super::everywhere::compare_at_every_visit;
use super::{
    DECIDED, ENDLESS, NESTED, block, continuation, identity, of_values, refused, rest, shown, with,
};
use crate::common::{edited, function, inst, value};
use interp::{Limits, Machine, NoHost, NoObserver};
use ir::{Block, Imm, Inst, Opcode, Point, Type, Value};
use osier_resume::ContinuationError;
use osr::{Level, VersionPair, synthesize};
use smallvec::{SmallVec, smallvec};
use transition::mapping::{Assign, Entry, Operand, Replay, Step};

/// No part of a split block is copied twice. An entry at the start of a block does not split it.
#[test]
fn a_block_that_control_returns_to_is_split_once() {
    let f = function(NESTED);
    let inner = block(&f, "inner");
    let count = |at: Inst| {
        let made = rest(&f, &identity(&f, at));
        let copies = |of: Inst| {
            made.function.all_insts().filter(|i| made.origins.inst(*i) == Some(of)).count()
        };
        assert!(f.block_insts(inner).all(|i| copies(i) == 1));
        made.function.block_count()
    };
    assert_eq!(
        count(f.first_inst(inner)),
        5,
        "a block that enters, and the four of the loops and behind"
    );
    // One block more: the part of `inner` above the landing point.
    assert_eq!(count(inst(&f, "j")), 6);
    assert_eq!(count(f.terminator(inner)), 6);
}

/// A landing point behind the loops leaves them out. One in the entry block leaves out the
/// instructions above it, and splits nothing.
#[test]
fn unreachable_code_is_left_out() {
    let f = function(NESTED);
    let made = rest(&f, &identity(&f, f.terminator(block(&f, "done"))));
    assert_eq!((made.function.block_count(), made.function.inst_count()), (1, 1));
    assert_eq!(made.function.signature().params.len(), 1);
    let made = rest(&f, &identity(&f, inst(&f, "one")));
    assert_eq!(made.function.block_count(), f.block_count());
    let arguments = f.arguments().len();
    assert_eq!(
        made.function.signature().params.len(),
        arguments + 1,
        "the argument, and what stands before"
    );
}

/// The entry provides `%limit`, and the next iteration of the outer loop sets it again. The two
/// definitions meet in block parameters.
#[test]
fn a_value_set_again_has_two_definitions() {
    let f = function(NESTED);
    let made = rest(&f, &identity(&f, inst(&f, "j")));
    let (function, limit) = (&made.function, value(&f, "limit"));
    let joins: Vec<Block> = function
        .blocks()
        .filter(|b| function.block_params(*b).iter().any(|p| made.origins.value(*p) == Some(limit)))
        .collect();
    assert_eq!(
        joins.len(),
        2,
        "where the landing meets the inner loop, and where the outer one does"
    );
    let given = made.provided.iter().find(|(of, _)| *of == limit).expect("it is provided").1;
    assert!(function.block_params(function.entry()).contains(&given));
    let defined: Vec<Value> =
        function.all_insts().flat_map(|i| function.inst(i).results.to_vec()).collect();
    assert_eq!(defined.iter().filter(|v| made.origins.value(**v) == Some(limit)).count(), 1);
}

#[test]
fn operations_without_readers_are_left_out() {
    let f = function(ENDLESS);
    let made = rest(&f, &identity(&f, inst(&f, "q")));
    let has = |name: &str| {
        made.function.all_insts().any(|i| made.origins.inst(i) == Some(inst(&f, name)))
    };
    assert!(has("q") && has("j") && !has("unused"), "what may trap stays");
    // The only reader of `%q` is an operation that nothing needs, so entries behind the division
    // omit `%q`.
    let (entry, q) = (identity(&f, inst(&f, "unused")), value(&f, "q"));
    assert!(!entry.provides_value(q), "nothing depends on it");
    assert!(rest(&f, &entry).provided.iter().all(|(v, _)| *v != q));
}

/// Compensation code has only the steps that the code needs, and replayed stores precede all copied
/// code.
#[test]
fn compensation_code_comes_first() {
    let f = function(NESTED);
    let n = f.arguments()[0];
    let step = |opcode, bits, args: SmallVec<[Operand; 2]>| Step {
        opcode,
        ty: Type::I32,
        operand_ty: Type::I32,
        bits,
        args,
    };
    let read = Operand::Source(n);
    let steps = vec![
        step(Opcode::Const, 3, SmallVec::new()),
        step(Opcode::Mul, 0, smallvec![read, read]),
        step(Opcode::Add, 0, smallvec![Operand::Step(0), read]),
        step(Opcode::Sub, 0, smallvec![Operand::Step(0), Operand::Step(2)]),
    ];
    let at = f.first_inst(block(&f, "next"));
    let mut assigns: Vec<Assign> =
        [("limit", read), ("n", read), ("t", Operand::Step(2)), ("sum", Operand::Step(1))]
            .map(|(name, from)| Assign { value: value(&f, name), from })
            .to_vec();
    assigns.sort_unstable();
    let set =
        f.all_insts().find(|i| f.inst(*i).opcode == Opcode::GlobalSet).expect("it sets the global");
    let Imm::Global(global) = f.inst(set).imm else { panic!("a global is set") };
    let replay = Replay {
        inst: set,
        opcode: Opcode::GlobalSet,
        ty: Type::I32,
        imm: Imm::Global(global),
        args: smallvec![Operand::Step(0)],
    };
    let entry = Entry {
        target: Point::before(at),
        steps,
        replays: vec![replay],
        assigns,
        requires: vec![n],
        kept: Vec::new(),
        inner: Box::default(),
    };
    // Either may be reported: the order in which the search meets them is not part of the contract.
    let constants = ["zero", "one"].map(|name| ContinuationError::NotProvided(value(&f, name)));
    assert!(constants.contains(&refused(&f, &entry)), "the loop reads constants");
    let mut whole = entry;
    for name in ["zero", "one"] {
        // Any contents do: the run at the end reads neither constant.
        whole.assigns.push(Assign { value: value(&f, name), from: Operand::Step(0) });
    }
    whole.assigns.sort_unstable();
    let mut missing = whole.clone();
    missing.assigns.retain(|a| a.value != value(&f, "t"));
    assert_eq!(refused(&f, &missing), ContinuationError::NotProvided(value(&f, "t")));
    let made = rest(&f, &whole);
    let opcodes =
        made.function.block_insts(made.function.entry()).map(|i| made.function.inst(i).opcode);
    let first: Vec<Opcode> = opcodes.take(3).collect();
    assert_eq!(
        first,
        [Opcode::Const, Opcode::Add, Opcode::GlobalSet],
        "the steps that nothing reads are left out"
    );
    let (module, func) = with(NESTED, &made.function);
    let mut machine = Machine::new(&module, Limits::default()).expect("it instantiates");
    assert_eq!(shown(&machine.invoke(func, &[5], &mut NoHost, &mut NoObserver)), "returned 8");
    assert_eq!(machine.globals(), [3]);
}

/// An entry does not provide values that only code behind a decided branch reads. The branch then
/// becomes a jump.
#[test]
fn branches_that_constants_decide_become_jumps() {
    let f = function(DECIDED);
    let entry = identity(&f, f.first_inst(block(&f, "on")));
    assert!(!entry.provides_value(value(&f, "x")));
    let made = rest(&f, &entry);
    let branch = f.terminator(block(&f, "head"));
    let copy = made
        .function
        .all_insts()
        .find(|i| made.origins.inst(*i) == Some(branch))
        .expect("it is copied");
    assert_eq!(made.function.inst(copy).opcode, Opcode::Jump);
    assert_eq!(made.function.block_count(), 4, "what never runs is left out");
    assert!(compare_at_every_visit(DECIDED, 3) > 10);
    // With all values provided, no branch has to be decided, and the code of the arm is copied.
    let told = of_values(
        f.first_inst(block(&f, "on")),
        &[value(&f, "i"), value(&f, "x"), value(&f, "zero")],
    );
    let made = rest(&f, &told);
    assert_eq!(made.function.block_count(), 5, "nothing is missing, so all is copied");
}

/// Every entry that synthesis makes of an edit, compensation code included, has a continuation.
#[test]
fn entries_that_are_synthesized() {
    let base = function(NESTED);
    let applied = edited(&base, |ed| {
        let (square, i) = (value(ed.func(), "square"), value(ed.func(), "i"));
        let at = inst(ed.func(), "t");
        let spec = ir::InstSpec::new(Opcode::Mul, Type::I32, Imm::None, &[i, i]);
        let new = ed.add_value(spec, at);
        ed.replace_all(square, new);
        let square = ed.func().defining_inst(square).expect("an instruction");
        ed.delete(square);
    });
    let pair = VersionPair::new(&base, applied.function(), applied.log()).expect("the log replays");
    let synthesis = synthesize(&pair, Level::Avail);
    let mut made = 0;
    for (mapping, source, target) in [
        (&synthesis.forward.mapping, &base, applied.function()),
        (&synthesis.backward.mapping, applied.function(), &base),
    ] {
        for (point, entry) in mapping.entries() {
            let rest = continuation("rest", source, target, entry)
                .unwrap_or_else(|e| panic!("{point:?}: {e}"));
            with(NESTED, &rest.function);
            made += 1;
        }
    }
    assert!(made > 20, "{made} entries");
}
