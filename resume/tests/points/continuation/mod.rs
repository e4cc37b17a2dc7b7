//! Continuations, on functions made by hand.

mod built;
mod everywhere;
mod points;
mod refused;

use check::CheckedEntry;
use interp::Outcome;
use ir::decided::Decided;
use ir::liveness::Liveness;
use ir::module::FuncDecl;
use ir::text::{parse_module, print_module};
use ir::verifier::verify_module;
use ir::{Block, Func, Function, Inst, Module, Point, Value};
use osier_resume::{Continuation, ContinuationError, Instrumented};
use std::collections::BTreeMap;
use transition::VersionKey;
use transition::mapping::{Assign, Entry, Operand};

/// The entry at a point that copies every value that a run needs behind it.
fn identity(f: &Function, at: Inst) -> Entry {
    let target = Point::before(at);
    let decided = Decided::new(f);
    let live = Liveness::of_run(f, &decided, &BTreeMap::new()).live_before(f, target);
    of_values(at, live.as_slice())
}

/// The entry at a point that copies these values.
fn of_values(at: Inst, values: &[Value]) -> Entry {
    let mut requires = values.to_vec();
    requires.sort_unstable();
    let assigns =
        requires.iter().map(|v| Assign { value: *v, from: Operand::Source(*v) }).collect();
    let target = Point::before(at);
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

/// The continuation of an entry that nobody has proved.
fn continuation(
    name: &str,
    source: &Function,
    target: &Function,
    entry: &Entry,
) -> Result<Continuation, ContinuationError> {
    osier_resume::continuation(name, source, &[target], claimed(source, target, entry))
}

/// The continuation into a version with points, of an entry that nobody has proved.
fn continuation_with_points(
    name: &str,
    source: &Function,
    version: &Function,
    armed: &Instrumented,
    entry: &Entry,
) -> Result<Continuation, ContinuationError> {
    let entry = claimed(source, version, entry);
    osier_resume::continuation_with_points(name, source, version, armed, entry)
}

/// Claims that an entry leads from `source` to `target`. Continuations are independent of the
/// source point, so any point serves.
fn claimed<'e>(source: &Function, target: &Function, entry: &'e Entry) -> CheckedEntry<'e> {
    let point = Point::before(source.first_inst(source.entry()));
    CheckedEntry::unproved(VersionKey::of(source), VersionKey::of(target), point, entry)
}

fn rest(f: &Function, entry: &Entry) -> Continuation {
    continuation("rest", f, f, entry).unwrap_or_else(|e| panic!("{e}"))
}

fn refused(f: &Function, entry: &Entry) -> ContinuationError {
    continuation("rest", f, f, entry).expect_err("it is no entry")
}

fn block(f: &Function, name: &str) -> Block {
    f.blocks().find(|b| f.block_name(*b) == Some(name)).unwrap_or_else(|| panic!("no {name}"))
}

/// A loop in a loop. The inner loop is one block; the outer loop sets values that the inner loop
/// reads.
const NESTED: &str = "\
global @g: mut i32 = 0
func @f(%n: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump outer(%zero, %zero)
outer(%i: i32, %sum: i32):
  %square = mul.i32 %i, %i
  %limit = add.i32 %i, %one
  jump inner(%zero, %sum)
inner(%k: i32, %s: i32):
  %t = add.i32 %s, %square
  %j = add.i32 %k, %one
  global_set.i32 @g, %t
  %more = slt.i32 %j, %limit
  br_if %more, inner(%j, %t), next
next:
  %again = slt.i32 %limit, %n
  br_if %again, outer(%limit, %t), done
done:
  return %t
}
";

/// An endless loop that divides by its own counter.
const ENDLESS: &str = "\
func @f(%n: i32) -> i32 {
entry:
  %one = const.i32 1
  jump head(%n)
head(%i: i32):
  %q = sdiv.i32 %n, %i
  %unused = add.i32 %q, %i
  %j = sub.i32 %i, %one
  jump head(%j)
}
";

/// A loop with a branch that a constant decides. Only code behind that branch reads `%x`.
const DECIDED: &str = "\
func @f(%n: i32) -> i32 {
entry:
  %x = mul.i32 %n, %n
  %zero = const.i32 0
  jump head(%n)
head(%i: i32):
  br_if %zero, never, on
never:
  return %x
on:
  %one = const.i32 1
  %j = sub.i32 %i, %one
  br_if %j, head(%j), done
done:
  return %j
}
";

/// Adds a function to the module of a text, and has the verifier check the result.
fn with(text: &str, function: &Function) -> (Module, Func) {
    let mut module = parse_module(text).unwrap_or_else(|e| panic!("{}", e[0]));
    let sig = module.sig(function.signature());
    let func = module.funcs.push(FuncDecl {
        name: function.name().to_owned(),
        sig,
        import: None,
        effect: Default::default(),
    });
    module.define(func, function.clone());
    let findings = verify_module(&module);
    assert!(findings.is_empty(), "{}\n{}", findings[0], print_module(&module));
    (module, func)
}

/// The outcome of a run, without the place of a trap or an exit.
fn shown(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Trapped { kind, operand, .. } => format!("trap {kind} {operand:?}"),
        Outcome::Left { point, values, .. } => format!("left at {point} with {values:?}"),
        other => other.to_string(),
    }
}
