//! The visits that a profile of bases gives for optimized versions, against runs that count in
//! these versions.

use super::{FUEL, kernel, machine, parsed, profiled, programs};
use cranelift_entity::EntityRef;
use interp::{NoObserver, Outcome, Program, TraceLevel};
use ir::edit::{ActionKind, ActionLog};
use ir::{Block, Func, Function, Module};
use osier::driver::{self, Vigilance};
use osier::profile::{FunctionProfile, Profile};
use std::collections::BTreeMap;
use wasm::wasi::Wasi;

const PIPELINES: [&str; 4] = ["O1", "O2", "canonical", "cfg_clean"];

/// The profile of a run, and whether the run ended by itself: a trap may stand elsewhere in another
/// version.
fn run(module: &Module, entry: Func, args: &[u64]) -> (Profile, bool) {
    let mut machine = machine(&Program::new(module), FUEL << 8, TraceLevel::Off);
    let arguments = vec!["program".to_owned(), "3".to_owned()];
    let mut wasi = Wasi::new(arguments, &[][..], std::io::sink(), std::io::sink());
    let ended = machine.invoke(entry, args, &mut wasi, &mut NoObserver);
    let by_itself = matches!(ended, Outcome::Returned(_) | Outcome::Exited(_));
    (Profile::collect(module, &machine), by_itself)
}

/// A module with derived functions, and the log of each function that has a body.
struct Optimized {
    module: Module,
    logs: BTreeMap<Func, ActionLog>,
}

fn optimized(module: &Module, pipeline: &str) -> Optimized {
    let pipeline = passes::parse(pipeline).expect("its passes are known");
    let mut made = Optimized { module: module.clone(), logs: BTreeMap::new() };
    for (func, base) in module.defined() {
        let observer = &mut driver::NoObserver;
        let derived = driver::derive(module, base, &pipeline, Vigilance::Off, observer);
        made.module.define(func, derived.function);
        made.logs.insert(func, derived.log);
    }
    made
}

/// The visits of the blocks that a version has.
fn of_blocks(version: &Function, visits: &[u64]) -> BTreeMap<Block, u64> {
    version.blocks().map(|block| (block, visits[block.index()])).collect()
}

/// Counts of the compared cases, so that the comparisons cannot pass on programs that change
/// nothing.
#[derive(Default)]
struct Seen {
    runs: usize,
    functions: usize,
    actions: BTreeMap<&'static str, usize>,
}

impl Seen {
    /// Compares the visits of every function of one program.
    fn compare(&mut self, module: &Module, entry: Func, args: &[u64], what: &str) {
        let (profile, by_itself) = run(module, entry, args);
        if !by_itself {
            return;
        }
        for pipeline in PIPELINES {
            let made = optimized(module, pipeline);
            let (counted, by_itself) = run(&made.module, entry, args);
            assert!(by_itself, "{what}, {pipeline}: the version ends otherwise");
            self.runs += 1;
            for (func, base) in module.defined() {
                let Some(of_base) = profile.functions.get(&func) else { continue };
                let log = &made.logs[&func];
                let version = made.module.body(func).expect("it has a body");
                let none = FunctionProfile::default();
                let counted = counted.functions.get(&func).unwrap_or(&none).visits(version);
                let derived = of_base.visits_after(base, log).expect("nothing is inlined");
                assert_eq!(
                    of_blocks(version, &derived),
                    of_blocks(version, &counted),
                    "{what}, {pipeline}, @{}",
                    base.name()
                );
                self.functions += 1;
                for action in log.actions() {
                    *self.actions.entry(action.kind().name()).or_default() += 1;
                }
            }
        }
    }

    fn require(&self, actions: &[&str]) {
        assert!(self.runs > 10 && self.functions > 50, "{} runs", self.runs);
        for action in actions {
            assert!(self.actions.contains_key(action), "no {action} in {:?}", self.actions);
        }
    }
}

#[test]
fn derived_visits_of_random_programs_are_counted_ones() {
    let mut seen = Seen::default();
    for (seed, module, entry, arguments) in programs() {
        for args in arguments.iter().take(2) {
            seen.compare(&module, entry, args, &format!("program {seed} with {args:x?}"));
        }
    }
    seen.require(&[
        "fold_branch",
        "split_edge",
        "join_edges",
        "redirect",
        "merge_blocks",
        "remove_unreachable",
    ]);
}

#[test]
fn derived_visits_of_kernels_are_counted_ones() {
    let mut seen = Seen::default();
    for name in ["sort", "vm", "words", "calls", "matmul.o2"] {
        let module = kernel(name);
        let entry = module.lookup("_start").expect("it is exported");
        seen.compare(&module, entry, &[], name);
    }
    seen.require(&["redirect", "remove_unreachable"]);
}

/// `cfg_clean` sends the edge to the empty block past it.
const SKIPPED: &str = r#"
func @f(%n: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump head(%zero)
head(%i: i32):
  %odd = and.i32 %i, %one
  br_if %odd, empty(%i), other
other:
  %far = ugt.i32 %i, %n
  br_if %far, done, next(%i)
empty(%k: i32):
  jump next(%k)
next(%m: i32):
  %j = add.i32 %m, %one
  jump head(%j)
done:
  return %i
}
"#;

#[test]
fn redirected_edges_take_their_visits_from_the_block_they_skip() {
    let module = parsed(SKIPPED);
    let func = module.lookup("f").expect("the text has it");
    let base = module.body(func).expect("it has a body");
    let profile = profiled(&module, &[6]);
    let made = optimized(&module, "cfg_clean");
    let log = &made.logs[&func];
    let redirects = |a: &&ir::edit::Action| matches!(a.kind(), ActionKind::Redirect { .. });
    assert_eq!(log.actions().iter().filter(redirects).count(), 1, "{log:?}");
    let visits = |block: &str, visits: &[u64]| {
        let block = base.blocks().find(|b| base.block_name(*b) == Some(block));
        visits[block.expect("the text has it").index()]
    };
    let of = &profile.functions[&func];
    let (before, after) = (of.visits(base), of.visits_after(base, log).expect("nothing inlined"));
    // Rounds 0 to 7 continue, since 8 is even and beyond 6. The odd rounds run through the empty
    // block.
    assert_eq!((visits("empty", &before), visits("next", &before)), (4, 8));
    for block in ["head", "other", "next", "done"] {
        assert_eq!(visits(block, &before), visits(block, &after), "{block}");
    }
}
