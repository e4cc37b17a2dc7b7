//! Flags of points, and interrupts in the same words.

use super::support::{Pair, SUM, engine, invoke, module, sum, vm};
use osier::interp::Outcome;
use osier::ir::module::{MemoryDecl, MemoryKind};
use osier::ir::{Module, Point};
use osier::jit::{
    Action, Condition, Config, Engine, Exits, Interruption, PointSpec, RunError, Version, Vm,
};
use std::sync::Arc;

const WAYS: [Interruption; 3] = [Interruption::Never, Interruption::Signal, Interruption::Fuel];

/// A machine with the base version of [`SUM`], whose header has a flag point that leads nowhere.
fn flagged(engine: &Engine, pair: &Pair) -> (Vm, Arc<Version>) {
    let mut vm = vm(engine, &pair.module);
    let version = pair.at_head(engine, false, Condition::Flag);
    vm.install(&version, vec![Action::Ask]).expect("it fits");
    (vm, version)
}

fn fired(vm: &mut Vm) -> u64 {
    vm.transitions().iter().map(|made| made.count).sum()
}

#[test]
fn a_flag_fires_while_it_is_set() {
    for (interruption, exits) in
        WAYS.into_iter().flat_map(|way| [(way, Exits::Stored), (way, Exits::Described)])
    {
        let engine = engine(Config { interruption, exits, ..Config::default() });
        let pair = Pair::new(SUM);
        let (mut vm, version) = flagged(&engine, &pair);
        let stuck = Err(RunError::Stuck { func: pair.func, point: 0 });
        for _ in 0..2 {
            let ended = Ok(Outcome::Returned(vec![sum(10, 7)]));
            assert_eq!(invoke(&mut vm, pair.func, &[10, 7]), ended, "{interruption:?}");
            // A flag has no count: one `disarm` clears it.
            [(); 2].iter().for_each(|()| version.arm(0));
            assert_eq!(invoke(&mut vm, pair.func, &[10, 7]), stuck, "{interruption:?}");
            version.disarm(0);
        }
    }
}

#[test]
fn an_interrupt_fires_no_flag() {
    let pair = Pair::new(SUM);
    for exits in [Exits::Stored, Exits::Described] {
        let config = Config { exits, interruption: Interruption::Signal, ..Config::default() };
        let (mut vm, version) = flagged(&engine(config), &pair);
        vm.interrupt().ask();
        assert_eq!(invoke(&mut vm, pair.func, &[10, 7]), Err(RunError::Interrupted));
        let ended = Ok(Outcome::Returned(vec![sum(10, 7)]));
        assert_eq!(invoke(&mut vm, pair.func, &[10, 7]), ended, "the request is done");
        version.arm(0);
        vm.interrupt().ask();
        assert_eq!(invoke(&mut vm, pair.func, &[10, 7]), Err(RunError::Interrupted), "and a flag");
        assert_eq!(fired(&mut vm), 0);
        let stuck = Err(RunError::Stuck { func: pair.func, point: 0 });
        assert_eq!(invoke(&mut vm, pair.func, &[10, 7]), stuck, "the flag stays");
    }
}

/// Code that does not heed interrupts has flags nevertheless.
#[test]
fn an_interrupt_that_nothing_heeds_fires_no_flag() {
    let pair = Pair::new(SUM);
    for interruption in [Interruption::Never, Interruption::Fuel] {
        let (mut vm, _) = flagged(&engine(Config { interruption, ..Config::default() }), &pair);
        vm.interrupt().ask();
        let ended = Ok(Outcome::Returned(vec![sum(10, 7)]));
        assert_eq!(invoke(&mut vm, pair.func, &[10, 7]), ended, "{interruption:?}");
    }
}

/// The points of a version and of its successor may have the same words.
#[test]
fn a_flag_of_a_dropped_version_fires_no_other() {
    let (pair, engine) = (Pair::new(SUM), engine(Config::default()));
    let (mut vm, version) = flagged(&engine, &pair);
    version.arm(0);
    vm.release(&version);
    drop(version);
    let next = pair.at_head(&engine, false, Condition::Flag);
    vm.install(&next, vec![Action::Ask]).expect("it fits");
    let ended = Ok(Outcome::Returned(vec![sum(10, 7)]));
    assert_eq!(invoke(&mut vm, pair.func, &[10, 7]), ended);
}

#[test]
fn a_flag_set_before_adoption_fires() {
    let (pair, engine) = (Pair::new(SUM), engine(Config::default()));
    let version = pair.at_head(&engine, false, Condition::Flag);
    version.arm(0);
    let mut vm = vm(&engine, &pair.module);
    vm.install(&version, vec![Action::Ask]).expect("it fits");
    let stuck = Err(RunError::Stuck { func: pair.func, point: 0 });
    assert_eq!(invoke(&mut vm, pair.func, &[10, 7]), stuck);
}

#[test]
fn a_flag_follows_the_machine() {
    let (pair, engine) = (Pair::new(SUM), engine(Config::default()));
    let (mut vm, version) = flagged(&engine, &pair);
    version.arm(0);
    let extend = |vm: &mut Vm, from: &Arc<Module>| {
        let mut later = Module::clone(from);
        let name = format!("memory{}", later.memories.len());
        let decl = MemoryDecl {
            name,
            min_pages: 1,
            max_pages: Some(1),
            import: None,
            kind: MemoryKind::Linear,
        };
        _ = later.memories.push(decl);
        let later = Arc::new(later);
        vm.extend(&later).expect("it begins alike");
        later
    };
    let later = extend(&mut vm, &pair.module);
    let stuck = Err(RunError::Stuck { func: pair.func, point: 0 });
    assert_eq!(invoke(&mut vm, pair.func, &[10, 7]), stuck, "set before");
    version.disarm(0);
    extend(&mut vm, &later);
    let ended = Ok(Outcome::Returned(vec![sum(10, 7)]));
    assert_eq!(invoke(&mut vm, pair.func, &[10, 7]), ended, "cleared before");
    version.arm(0);
    assert_eq!(invoke(&mut vm, pair.func, &[10, 7]), stuck, "set behind");
}

/// A loop in a loop with a flag at each header.
const NEST: &str = "
func @nest(%n: i64) -> i64 {
entry:
  %zero = const.i64 0
  %one = const.i64 1
  jump outer(%zero, %zero)
outer(%i: i64, %sum: i64):
  jump inner(%zero, %sum)
inner(%j: i64, %acc: i64):
  %more = add.i64 %acc, %one
  %k = add.i64 %j, %one
  %again = ult.i64 %k, %n
  br_if %again, inner(%k, %more), next
next:
  %l = add.i64 %i, %one
  %on = ult.i64 %l, %n
  br_if %on, outer(%l, %more), end
end:
  return %more
}
";

/// The words of an engine.
const WORDS: usize = 2048;

/// A module with [`NEST`] and a function `fill` that has all words but one.
fn filling() -> Arc<Module> {
    let mut text =
        format!("global @at : mut i64 = 0\n{NEST}func @fill(%x: i64) -> () {{\nentry:\n");
    (1..WORDS).for_each(|_| text += "  global_set.i64 @at, %x\n");
    module(&(text + "  return\n}\n"))
}

/// More points than words: the first loop has the last word, and the second loop tests its cell.
#[test]
fn a_flag_without_a_word_fires() {
    let module = filling();
    let [nest, fill] = ["nest", "fill"].map(|name| module.func_named(name).expect("there"));
    let body = |func| module.body(func).expect("a body");
    let point = |func, at| PointSpec::of_live(body(func), Point::before(at), Condition::Flag);
    let named = |name| {
        let mut blocks = body(nest).blocks();
        let block = blocks.find(|block| body(nest).block_name(*block) == Some(name));
        point(nest, body(nest).first_inst(block.expect("it has the block")))
    };
    let points = ["outer", "inner"].map(named);
    let stores = body(fill).block_insts(body(fill).entry()).take(WORDS - 1);
    let fillers: Vec<PointSpec> = stores.map(|at| point(fill, at)).collect();
    for interruption in WAYS {
        let engine = engine(Config { interruption, ..Config::default() });
        let _filler = engine.version(&module, fill, body(fill), &fillers).expect("compiled");
        let version = engine.version(&module, nest, body(nest), &points).expect("compiled");
        let mut vm = vm(&engine, &module);
        vm.install(&version, vec![Action::Ask, Action::Ask]).expect("it fits");
        for point in [0, 1] {
            assert_eq!(invoke(&mut vm, nest, &[3]), Ok(Outcome::Returned(vec![9])));
            version.arm(point);
            let stuck = Err(RunError::Stuck { func: nest, point });
            assert_eq!(invoke(&mut vm, nest, &[3]), stuck, "{interruption:?}");
            version.disarm(point);
            if interruption == Interruption::Signal {
                vm.interrupt().ask();
                assert_eq!(invoke(&mut vm, nest, &[3]), Err(RunError::Interrupted));
            }
        }
    }
}
