//! Pairs of versions with mappings to damage, for the judges that run programs.

use interp::NoHost;
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::edit::{Editor, Fuel, Pass, apply};
use ir::text::parse_module;
use ir::{Effects, Function, Inst, Module, Opcode, Point, Type, Value};
use osier_verify::state_oracle::{Difference, FunctionPair, Oracle, OracleOptions, Report};
use std::collections::BTreeSet;
use transition::mapping::{Assign, Entry, Mapping, Operand, Step};

pub(crate) fn parse(text: &str) -> Module {
    parse_module(text).unwrap_or_else(|errors| panic!("{}\n{text}", errors[0]))
}

/// Whether an instruction is a terminator, has an effect, or may trap.
fn bounds(function: &Function, inst: Inst) -> bool {
    let effects = function.inst(inst).opcode.effects();
    effects.has(Effects::TERMINATOR)
        || effects.has(Effects::WRITES)
        || effects.has(Effects::TRACED)
        || function.may_trap(inst)
}

/// The bounding anchors of two versions between which nothing moved.
pub(crate) fn anchors(before: &Function, after: &Function) -> BTreeSet<Inst> {
    before
        .all_insts()
        .filter(|i| after.has_inst(*i) && bounds(before, *i) && bounds(after, *i))
        .collect()
}

pub(crate) fn values(function: &Function) -> BTreeSet<Value> {
    let params = function.blocks().flat_map(|b| function.block_params(b).iter().copied());
    params
        .chain(function.all_insts().flat_map(|i| function.inst(i).results.iter().copied()))
        .collect()
}

pub(crate) fn copy(value: Value) -> Assign {
    Assign { value, from: Operand::Source(value) }
}

/// An entry that provides these values by copying them.
pub(crate) fn copies(target: Point, provided: &[Value]) -> Entry {
    Entry {
        replays: Vec::new(),
        target,
        steps: Vec::new(),
        assigns: provided.iter().copied().map(copy).collect(),
        requires: provided.to_vec(),
        kept: Vec::new(),
        inner: Box::default(),
    }
}

/// At every reachable point, an entry to the same point, which provides all available values.
pub(crate) fn identity(source: &Function, target: &Function) -> Mapping {
    let mut mapping = Mapping::new(source, target);
    let cfg = Cfg::new(source);
    let dom = DomTree::new(source, &cfg);
    for inst in source.all_insts().filter(|i| cfg.is_reachable(source.inst_block(*i))) {
        let point = Point::before(inst);
        let provided: Vec<Value> =
            values(source).into_iter().filter(|v| dom.available_at(source, *v, point)).collect();
        mapping.insert(point, copies(point, &provided));
    }
    mapping
}

/// A function in two versions, with mappings to damage.
pub(crate) struct Case {
    pub(crate) module: Module,
    pub(crate) before: Function,
    pub(crate) after: Function,
    pub(crate) anchors: BTreeSet<Inst>,
    pub(crate) forward: Mapping,
    pub(crate) backward: Mapping,
}

impl Case {
    /// The function `f` of a module, as both versions.
    pub(crate) fn new(text: &str) -> Case {
        let module = parse(text);
        let before = module
            .body(module.lookup("f").expect("the module has an f"))
            .expect("f has a body")
            .clone();
        let after = before.clone();
        Case::of(module, before, after)
    }

    /// Two versions with empty mappings.
    pub(crate) fn of(module: Module, before: Function, after: Function) -> Case {
        let anchors = anchors(&before, &after);
        let forward = Mapping::new(&before, &after);
        let backward = Mapping::new(&after, &before);
        Case { module, before, after, anchors, forward, backward }
    }

    /// The value with this name.
    pub(crate) fn value(&self, name: &str) -> Value {
        let named = |f: &Function| values(f).into_iter().find(|v| f.value_name(*v) == Some(name));
        named(&self.before).unwrap_or_else(|| panic!("no value {name}"))
    }

    /// The point before the instruction that defines a value.
    pub(crate) fn before_definition(&self, name: &str) -> Point {
        Point::before(
            self.before.defining_inst(self.value(name)).expect("an instruction defines the value"),
        )
    }

    pub(crate) fn point_before(&self, opcode: Opcode) -> Point {
        let found = self.before.all_insts().find(|i| self.before.inst(*i).opcode == opcode);
        Point::before(found.unwrap_or_else(|| panic!("no {}", opcode.name())))
    }

    pub(crate) fn run_with(&self, args: &[&[u64]], options: OracleOptions) -> Report {
        let func = self.module.lookup("f").expect("the module has an f");
        let pair = FunctionPair {
            func,
            before: &self.before,
            after: &self.after,
            anchors: &self.anchors,
            forward: &self.forward,
            backward: &self.backward,
            copies: None,
        };
        let mut oracle = Oracle::new(&self.module, &[pair], options).expect("the pair fits");
        for args in args {
            oracle.run(func, args, &NoHost);
        }
        oracle.report().clone()
    }

    pub(crate) fn run(&self, args: &[&[u64]]) -> Report {
        self.run_with(args, OracleOptions::default())
    }

    /// The only difference that the oracle finds.
    pub(crate) fn difference(&self, args: &[&[u64]]) -> Difference {
        let report = self.run(args);
        assert_eq!(report.divergences.len(), 1, "{report:#?}");
        report.divergences[0].difference.clone()
    }
}

pub(crate) const STRAIGHT: &str = "func @f(%a: i32, %b: i32) -> i32 {
entry:
  %sum = add.i32 %a, %b
  %square = mul.i32 %sum, %sum
  %low = and.i32 %square, %a
  return %low
}
";

/// Counts `%n` down, and sums twice the counter.
pub(crate) const LOOP: &str = "func @f(%n: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump head(%n, %zero)
head(%i: i32, %sum: i32):
  br_if %i, body, done
body:
  %twice = add.i32 %i, %i
  %next = sub.i32 %i, %one
  %more = add.i32 %sum, %twice
  jump head(%next, %more)
done:
  return %sum
}
";

/// An entry that lands after `%twice` and `%next`, computes both again, and provides all live
/// values.
pub(crate) fn late(case: &Case) -> Entry {
    let [one, i, sum, twice, next] = ["one", "i", "sum", "twice", "next"].map(|n| case.value(n));
    let step = |opcode, a, b| Step {
        opcode,
        ty: Type::I32,
        operand_ty: Type::I32,
        bits: 0,
        args: [Operand::Source(a), Operand::Source(b)].into(),
    };
    Entry {
        replays: Vec::new(),
        target: case.before_definition("more"),
        steps: vec![step(Opcode::Add, i, i), step(Opcode::Sub, i, one)],
        assigns: sorted(vec![
            copy(one),
            copy(sum),
            Assign { value: twice, from: Operand::Step(0) },
            Assign { value: next, from: Operand::Step(1) },
        ]),
        requires: sorted(vec![one, i, sum]),
        kept: Vec::new(),
        inner: Box::default(),
    }
}

pub(crate) fn sorted<T: Ord>(mut list: Vec<T>) -> Vec<T> {
    list.sort();
    list
}

/// A pass that calls a function.
struct Edit<F>(F);

impl<F: Fn(&mut Editor<'_>)> Pass for Edit<F> {
    fn name(&self) -> &'static str {
        "edit"
    }

    fn run(&self, editor: &mut Editor<'_>) {
        assert!(editor.plan("all"), "there is fuel");
        (self.0)(editor);
    }
}

pub(crate) fn edited(case: Case, edit: impl Fn(&mut Editor<'_>)) -> Case {
    let applied = apply(&case.before, &Edit(edit), &mut Fuel::UNLIMITED.clone());
    Case::of(case.module, case.before, applied.into_parts().0)
}
