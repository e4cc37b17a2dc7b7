//! Rewrites around inlining that are right and that the checker cannot prove: such rewrites are
//! given up, before the inlining and behind it, and all entries hold.

use super::parsed;
use crate::certified::retry::SHIFTS;
use ir::{Func, Function, Module, Opcode, Point};
use osier::driver::{NoObserver, Retry};
use osier::exchange::{self, WrittenCopy, recheck_copy};
use osier::inlining::{CalleeLandings, InlinePlan, Inlined, LeftOut, inline};
use passes::{Callers, InlinePolicy, Pipeline};

/// `@main` stores a product in its own code, and one in the code of `@leaf`. Two loops hold other
/// points of each.
const TEXT: &str = "memory @mem 1
func @main(%n: i32, %d: i32) -> i32 {
start:
  %zero = const.i32 0
  %eight = const.i32 OWN
  %same = add.i32 %d, %zero
  jump head(%zero)
head(%i: i32):
  %product = mul.i32 %i, %eight
  store.i32 @mem[%zero], %product
  %y = call @leaf(%i, %same)
  %one = const.i32 1
  %next = add.i32 %y, %one
  %more = slt.i32 %next, %n
  br_if %more, head(%next), done
done:
  return %next
}
func @leaf(%i: i32, %d: i32) -> i32 {
entry:
  %eight = const.i32 CALLED
  %zero = const.i32 0
  %x = add.i32 %i, %d
  %product = mul.i32 %x, %eight
  store.i32 @mem[%zero], %product
  %y = sub.i32 %product, %x
  return %y
}
";

fn module(own: u32, called: u32) -> (Module, Func) {
    let text = TEXT.replace("OWN", &own.to_string()).replace("CALLED", &called.to_string());
    let module = parsed(&text);
    let main = module.func_named("main").expect("the text has it");
    (module, main)
}

/// `O2` with products made shifts, before the inlining, behind it, or both.
fn plan([before, behind]: [bool; 2], retry: Retry) -> InlinePlan {
    let passes = |shifts: bool| {
        let mut passes = passes::parse("O2").expect("a pipeline").passes().to_vec();
        if shifts {
            passes.insert(3, &SHIFTS);
        }
        Pipeline::of(passes)
    };
    InlinePlan::new(passes(before), InlinePolicy::default(), passes(behind)).with_retry(retry)
}

fn made(module: &Module, main: Func, plan: &InlinePlan) -> Inlined {
    let landings = CalleeLandings::new(module, plan);
    inline(module, main, plan, &landings, &mut NoObserver).expect("calls are inlined")
}

fn lost(made: &Inlined) -> usize {
    made.missing.iter().map(|points| points.len()).sum()
}

fn shifts(f: &Function) -> usize {
    f.all_insts().filter(|inst| f.inst(*inst).opcode == Opcode::Shl).count()
}

/// The steps with shifts, the factors, and the numbers of rewrites given up in each step. The last
/// case needs the search behind the inlining although only a rewrite before it failed at first: the
/// product that stays there becomes a shift behind.
const CASES: [([bool; 2], [u32; 2], [usize; 2]); 4] = [
    ([true, false], [8, 9], [1, 0]),
    ([false, true], [9, 8], [0, 1]),
    ([true, true], [8, 8], [1, 2]),
    ([true, true], [8, 9], [1, 1]),
];

#[test]
fn unprovable_rewrites_are_given_up_on_both_sides_of_the_inlining() {
    for (steps, [own, called], given_up) in CASES {
        let case = format!("{steps:?}, {own} and {called}");
        let (program, main) = module(own, called);
        let without = made(&program, main, &plan(steps, Retry::OFF));
        assert!(lost(&without) > 10, "{case}: {} points without an entry", lost(&without));
        assert!(without.all_checked().all_dropped() > 10, "{case}");
        assert_eq!(without.retried, Default::default(), "{case}");
        let better = made(&program, main, &plan(steps, Retry::default()));
        assert_eq!(lost(&better), 0, "{case}: {:?}", better.missing);
        assert_eq!(better.all_checked().all_dropped(), 0, "{case}");
        assert_eq!(shifts(better.tree.function(better.optimized)), 0, "{case}");
        let retried = &better.retried;
        assert_eq!(retried.given_up.each_ref().map(Vec::len), given_up, "{case}: {retried:?}");
        let all = retried.given_up.iter().flatten();
        assert!(all.clone().all(|g| (g.pass, g.rule) == ("shifts", "power-of-two")), "{case}");
        assert_eq!(retried.refused as usize, all.count(), "{case}");
        assert_eq!(retried.without, Some(without.all_checked()), "{case}");
    }
}

#[test]
fn nothing_is_searched_where_nothing_is_dropped() {
    let (module, main) = module(9, 9);
    let made = made(&module, main, &plan([true, true], Retry::default()));
    assert_eq!((lost(&made), made.retried), (0, Default::default()));
}

/// The reader of a file makes the versions again from the numbers alone, with the same ids. Without
/// the numbers, the file describes other versions.
#[test]
fn a_file_names_the_rewrites_left_out_around_the_inlining() {
    for (steps, [own, called], _) in CASES {
        let (module, main) = module(own, called);
        let plan = plan(steps, Retry::default());
        let landings = CalleeLandings::new(&module, &plan);
        let made =
            inline(&module, main, &plan, &landings, &mut NoObserver).expect("calls are inlined");
        let mut text = exchange::header(&plan.names().join(","), "avail", 1);
        text += &exchange::landings_header(0);
        exchange::write_copy(&mut text, &module, &WrittenCopy::of(main, &made));
        let judged = |text: &str| {
            let file = exchange::read(text)?;
            let function = &file.functions[0];
            let (module, main) = self::module(own, called);
            let callers = Callers::new(&module);
            let left_out = function.left_out();
            let versions = plan.versions(&callers, main, &left_out, &mut NoObserver);
            let versions = versions.expect("inlined again");
            let versions = versions.each_ref();
            let copy = function.copy(&module, main, versions)?;
            let landings = CalleeLandings::new(&module, &plan);
            Ok::<_, exchange::ReadError>(
                recheck_copy(&module, main, versions, copy, &landings, &mut NoObserver).counts,
            )
        };
        let counts = judged(&text).expect("a written file can be read");
        assert!(counts.all_dropped() == 0 && counts.held > 30, "{counts:?}");
        assert!(
            !made.retried.left_out().is_empty() && made.retried.left_out() != LeftOut::default()
        );
        let without: String = text
            .lines()
            .filter(|line| !line.starts_with("left-out"))
            .map(|line| format!("{line}\n"))
            .collect();
        let error = judged(&without).expect_err("other versions");
        assert!(error.what.contains("another version"), "{error}");
    }
}

/// A function that never returns is inlined in one arm: behind it, the value of the other arm has
/// taken the place of the parameter, which the version before the inlining cannot provide
/// (a solver for linear programs lost most entries of a function).
#[test]
fn code_that_never_returns_leaves_values_of_one_arm_alone() {
    let module = parsed(
        "
memory @m 1
import func @out \"env\" \"out\" (i32)
func @die(%a: i32) -> () {
e:
  trap unreachable
}
func @f(%v0: i32, %v1: i32) -> i32 {
b0:
  %v10 = load.i32 @m[%v0 + 20]
  %v11 = const.i32 1
  %v12 = sub.i32 %v10, %v11
  br_if %v1, b1, b2
b1:
  call @die(%v12)
  jump b3(%v12)
b2:
  %v26 = eqz.i32 %v12
  jump b3(%v26)
b3(%v27: i32):
  %v29 = load.i32 @m[%v0 + 4]
  call @out(%v27)
  br_if %v29, b8, b9
b8:
  %v40 = const.i32 52
  call @die(%v40)
  jump b9
b9:
  %t = sub.i32 %v27, %v29
  return %t
}
",
    );
    let func = module.func_named("f").expect("the text has it");
    let plan = InlinePlan::o3();
    let landings = CalleeLandings::new(&module, &plan);
    let made = inline(&module, func, &plan, &landings, &mut NoObserver).expect("calls are inlined");
    let checked = made.all_checked();
    assert_eq!((checked.all_dropped(), checked.refuted), (0, 0), "{checked:?}");
    let f = module.body(func).expect("a body");
    let block = |at: usize| f.blocks().nth(at).expect("a block");
    for at in [0, 2] {
        assert!(made.up.has_entry(Point::before(f.first_inst(block(at)))), "block {at}");
    }
}
