//! References that a collector moves: the roots of a machine.

use super::support::{landing, machine, returned};
use check::CheckedEntry;
use interp::{FireError, Limits, Machine, NoHost, Options, PauseAtMarks, Program, Resumed, Run};
use ir::text::parse_module;
use ir::{Func, Module, Opcode, Point};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU32;
use transition::VersionKey;

fn parse(text: &str) -> Module {
    parse_module(text).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// Moves every object at every call of an imported function. A visit of a word without an object
/// ends the test.
#[derive(Default)]
struct Heap {
    /// The content of each object, by its word.
    objects: BTreeMap<u64, u64>,
    moves: u64,
}

impl Heap {
    /// Moves all objects that the machine or `own` refers to.
    fn collect(&mut self, machine: &mut Machine, own: Option<&mut u64>) {
        self.moves += 1;
        let (from, key) = (std::mem::take(&mut self.objects), self.moves << 32);
        let mut visit = |word: &mut u64| {
            let content = from.get(word).unwrap_or_else(|| panic!("{word:#x} is no object"));
            *word = (*word & 0xffff_ffff) | key;
            self.objects.insert(*word, *content);
        };
        machine.visit_refs(&mut visit);
        own.into_iter().for_each(&mut visit);
    }

    /// Executes `@make` and `@content`.
    fn call(&mut self, machine: &mut Machine, makes: bool, arg: u64) -> u64 {
        if makes {
            self.collect(machine, None);
            let word = (self.moves << 32) | (2 * self.moves + 1);
            self.objects.insert(word, arg);
            return word;
        }
        let mut own = arg;
        self.collect(machine, Some(&mut own));
        self.objects[&own]
    }
}

/// A loop whose parameter `%p` and whose value `%made` share a slot in fast code. `%made` is live
/// at the last call of a round alone.
const CARRIED: &str = r#"
import func @make "env" "make" (i64) -> ref
import func @content "env" "content" (ref) -> i64
func @work(%n: i64) -> i64 {
entry:
  %zero = const.i64 0
  %one = const.i64 1
  %first = call @make(%n)
  jump head(%zero, %zero, %first)
head(%i: i64, %sum: i64, %p: ref):
  %a = call @content(%p)
  %made = call @make(%i)
  %b = call @content(%made)
  %s = add.i64 %sum, %a
  %t = add.i64 %s, %b
  %j = add.i64 %i, %one
  %more = ult.i64 %j, %n
  br_if %more, head(%j, %t, %made), done
done:
  %c = call @content(%made)
  %u = add.i64 %t, %c
  return %u
}
"#;

/// A pause copies the shared slot of `%p` and `%made` to the slot of `%made`, where it stays
/// unchanged while the fast loop continues.
#[test]
fn slots_that_a_pause_has_shown_are_no_roots() {
    let module = parse(CARRIED);
    let work = module.lookup("work").expect("the text has it");
    let body = module.body(work).expect("it is defined");
    // The fast loop keeps no trace.
    let options = Options::default();
    let machine = Machine::with_options(&Program::new(&module), Limits::default(), options);
    let mut machine = machine.expect("it instantiates");
    machine.stop_at_imports(true);
    machine.count_visits();
    let version = machine.current(work).expect("it is not imported");
    let heads = body.blocks().map(|block| (body.first_inst(block), 1));
    machine.count_blocks(version, heads);
    let (n, mut pauses, mut heap) = (9, 0, Heap::default());
    machine.start(work, &[n]);
    let asked = AtomicU32::new(0);
    let outcome = loop {
        match machine.run_to_visit(&mut NoHost, [&asked; 2]) {
            Run::Done(outcome) => break outcome,
            Run::Paused => {
                pauses += 1;
                assert!(!machine.has_dead_values(), "the fast loop executes the run");
                machine.show_live_values();
            }
            Run::Called { func, args } => {
                let result = heap.call(&mut machine, func == Func::from_u32(0), args[0]);
                assert_eq!(machine.return_from_call(&[result]), Resumed::InCaller);
            }
            Run::Failed { reason } => panic!("{reason}"),
        }
    };
    let sum = n + 2 * (0..n).sum::<u64>();
    assert_eq!(outcome, returned(&[sum]));
    assert!(pauses > 0, "no pause");
}

/// Two mappings accepted apart: the first transition leaves `%r` out, and the second reads it. A
/// collector does not see the slot meanwhile.
#[test]
fn references_that_no_transition_provided_are_not_read() {
    let module = parse(
        "func @f(%w: i64) -> i64 {\nentry:\n  %r = ref_of %w\n  %bits = ref_bits %r\n  \
         return %bits\n}\n",
    );
    let func = module.lookup("f").expect("the text has it");
    let body = module.body(func).expect("it is defined");
    let reads = |inst: &ir::Inst| body.inst(*inst).opcode == Opcode::RefBits;
    let at = body.all_insts().find(reads).expect("the text has one");
    let (point, r) = (Point::before(at), body.inst(at).args[0]);
    let mut machine = machine(&module, Limits::default());
    let version = machine.current(func).expect("it is not imported");
    machine.mark(version, [at]);
    machine.start(func, &[7]);
    assert_eq!(machine.run(&mut NoHost, &mut PauseAtMarks), Run::Paused);
    let key = VersionKey::of(body);
    let (less, all) = (landing(point, &[]), landing(point, &[r]));
    let claimed = |entry| CheckedEntry::unproved(key, key, point, entry);
    assert_eq!(machine.fire(version, claimed(&less)), Ok(point));
    machine.visit_refs(&mut |word| panic!("{word:#x} is no reference"));
    assert_eq!(machine.fire(version, claimed(&all)), Err(FireError::NotProvided(r)));
}
