//! The action to blame for a point without an entry: without it, the point has one.

use ir::{Function, Inst, Module, Point};
use osier::driver::counterfactual::{
    Counterfactual, Culprit, CulpritEffort, Culprits, Fate, SearchBound,
};
use osier::driver::{
    NoObserver, Recipe, Retry, Secured, Vigilance, derive_proved, derive_without, prove,
};
use osier::{Format, load};
use osr::{Level, Missing, Obstacle};
use passes::Pipeline;
use transition::Side;

fn module(path: &str) -> Module {
    let bytes = std::fs::read(path).expect("tests run in the root of the package");
    let format = if path.ends_with(".oir") { Format::Oir } else { Format::Wasm };
    load(format, &bytes).expect("well-formed")
}

/// The version of the whole pipeline, with the mappings of every level.
fn secured(module: &Module, base: &Function, pipeline: &Pipeline) -> Secured {
    let (vigilance, levels, retry) = (Vigilance::Off, &Level::ALL, Retry::OFF);
    let recipe = Recipe { pipeline, vigilance, levels, retry };
    derive_proved(module, base, &recipe, &mut NoObserver)
}

/// The rewrite of a culprit in the version itself: its pass, its rule, and the action that stands
/// for it.
fn named(secured: &Secured, culprit: &Culprit) -> String {
    assert!(culprit.run.is_none(), "the version itself is made with the rewrite");
    told(secured, culprit.action)
}

/// The point of the base before the definition of a value.
fn before(base: &Function, name: &str) -> Point {
    let is_named = |inst: &Inst| {
        base.inst(*inst).result().is_some_and(|value| base.value_name(value) == Some(name))
    };
    Point::before(base.all_insts().find(is_named).expect("the base has the value"))
}

/// The action that the log alone blames, and the culprits, for a point of the base of a function,
/// at `live`.
fn blamed(path: &str, pipeline: &str, value: &str) -> (String, Vec<String>) {
    let module = module(path);
    let (_, base) = module.defined().next().expect("one function");
    let pipeline = passes::parse(pipeline).expect("known passes");
    let secured = secured(&module, base, &pipeline);
    let at = before(base, value);
    let made = secured.proved.at(Level::Live).expect("all levels were made");
    let missing = made.before.missing.obstacles().find(|missing| missing.point == at);
    let blame = missing.expect("no entry").why.blame.expect("the log names an action");
    let mut test = Counterfactual::new(&module, base, &secured.derived, &pipeline, Vec::new());
    let found = test.culprits((Side::Before, at), Level::Live, CulpritEffort::default());
    let Culprits::Found { culprits, .. } = found else { panic!("culprits are found") };
    let blame = told(&secured, blame.action);
    (blame, culprits.iter().map(|culprit| named(&secured, culprit)).collect())
}

/// An action without its number.
fn told(secured: &Secured, action: usize) -> String {
    let action = secured.derived.log.actions()[action].to_string();
    action.split_once(' ').expect("a number comes first").1.to_owned()
}

const LEDGER: &str = "tests/blame/ledger.oir";

/// The first read is of no account behind it, though it comes first in the log.
#[test]
fn a_forwarded_load_is_to_blame_for_the_value_that_it_keeps() {
    for pipeline in ["O1", "load_elim", "load_elim,adce"] {
        let (blame, culprits) = blamed(LEDGER, pipeline, "third");
        assert_eq!(blame, "load_elim/stored-value replace_all v10 -> v5", "{pipeline}");
        assert_eq!(culprits, [blame], "{pipeline}");
    }
}

/// Either of two reads keeps the value.
#[test]
fn two_forwarded_loads_are_to_blame_together() {
    let (_, culprits) = blamed(LEDGER, "O1", "second");
    let both = ["v8 -> v5", "v10 -> v5"];
    let both = both.map(|values| format!("load_elim/stored-value replace_all {values}"));
    assert_eq!(culprits, both);
}

/// `simplify` runs twice in `O1`. If its first run is denied a rewrite, its second run makes the
/// same rewrite: both are one action, not two.
#[test]
fn a_rewrite_that_a_later_pass_makes_again_is_one_action() {
    let (blame, culprits) = blamed(LEDGER, "O1", "not");
    assert_eq!(culprits, ["simplify/not-slt replace_all v14 -> v15"]);
    assert!(blame.starts_with("simplify/not-slt"), "{blame}");
}

/// The created operation is not to blame for the operand that it got later.
#[test]
fn a_forwarded_load_is_to_blame_that_a_created_operation_reads() {
    let (blame, culprits) = blamed("tests/blame/created.oir", "simplify,load_elim,adce", "again");
    assert!(blame.starts_with("load_elim/redundant-load replace_all"), "{blame}");
    assert_eq!(culprits, [blame]);
}

/// Where the mask has been executed, the action that dropped it is to blame for the operands of
/// the comparison below it.
#[test]
fn an_operand_that_a_pass_looked_through_is_to_blame() {
    let (blame, culprits) = blamed("tests/blame/between.oir", "simplify,adce", "not");
    assert!(blame.starts_with("simplify/and-known replace_all"), "{blame}");
    assert_eq!(culprits, [blame]);
}

/// A search in [`LEDGER`] for the point of its base before the definition of a value, at `live`.
fn searched(pipeline: &str, value: &str, effort: CulpritEffort) -> Culprits {
    let module = module(LEDGER);
    let (_, base) = module.defined().next().expect("one function");
    let pipeline = passes::parse(pipeline).expect("known passes");
    let secured = secured(&module, base, &pipeline);
    let mut test = Counterfactual::new(&module, base, &secured.derived, &pipeline, Vec::new());
    test.culprits((Side::Before, before(base, value)), Level::Live, effort)
}

fn bound(culprits: &Culprits) -> Option<SearchBound> {
    match culprits {
        Culprits::Found { .. } => None,
        Culprits::NotFound(bound) => Some(*bound),
    }
}

/// Where the search ends: before the first run, in the runs without one suspect, or later.
#[test]
fn a_search_ends_at_its_bound_on_work() {
    let whole = CulpritEffort::default();
    let mut ended = 0;
    for work in (0..2_000).step_by(20) {
        let found = searched("O1", "second", CulpritEffort { work, ..whole });
        match bound(&found) {
            Some(bound) => {
                assert_eq!(bound, SearchBound::Work, "{work}");
                ended += 1;
            }
            None => break,
        }
    }
    assert!((2..100).contains(&ended), "{ended} bounds were too small");
    assert_eq!(bound(&searched("O1", "second", whole)), None);
}

#[test]
fn a_search_ends_at_its_bound_on_sets() {
    let one = CulpritEffort { set: 1, ..CulpritEffort::default() };
    assert_eq!(bound(&searched("O1", "second", one)), Some(SearchBound::Set));
    assert_eq!(bound(&searched("O1", "third", one)), None);
}

/// Each of 70 runs of the pass reads the stored value again.
#[test]
fn a_rewrite_that_passes_make_too_often_has_no_answer() {
    let pipeline = ["load_elim"; 70].join(",");
    let found = searched(&pipeline, "third", CulpritEffort::default());
    assert_eq!(bound(&found), Some(SearchBound::Repeats));
    let pipeline = ["load_elim"; 60].join(",");
    assert_eq!(bound(&searched(&pipeline, "third", CulpritEffort::default())), None);
}

/// The division moves up together with its constant operand, in one rewrite. Without this rewrite
/// the product takes the constant along, and that is another action.
#[test]
fn a_constant_that_another_operation_takes_along_is_no_part_of_a_name() {
    let module = module("tests/blame/division.oir");
    let (_, base) = module.defined().next().expect("one function");
    let pipeline = passes::parse("licm").expect("known passes");
    let secured = secured(&module, base, &pipeline);
    let mut test = Counterfactual::new(&module, base, &secured.derived, &pipeline, Vec::new());
    let at = before(base, "q");
    let found = test.culprits((Side::Before, at), Level::Live, CulpritEffort::default());
    let Culprits::Found { culprits, left_out } = found else { panic!("a culprit is found") };
    let culprits: Vec<_> = culprits.iter().map(|culprit| named(&secured, culprit)).collect();
    let division = format!("licm/invariant hoist {} ", at.inst());
    assert!(culprits.len() == 1 && culprits[0].starts_with(&division), "{culprits:?}");
    assert_eq!(left_out.len(), 1, "the product still moves up");
}

fn kernels() -> impl Iterator<Item = (String, Module)> {
    ["vm", "sort", "words"].into_iter().map(|name| {
        let path = format!("tests/corpus/{name}.wasm");
        let module = module(&path);
        (path, module)
    })
}

/// The points of a function without an entry at a level, one in `one_in`.
fn some_lacking(secured: &Secured, level: Level, one_in: usize) -> Vec<(Side, Missing<Obstacle>)> {
    let below = secured.proved.levels.iter().filter(|(of, _)| *of < level);
    let below: Vec<_> = below.collect();
    let made = secured.proved.at(level).expect("all levels were made");
    let mut lacking = Vec::new();
    for side in Side::BOTH {
        for missing in made[side].missing.obstacles() {
            if below.iter().all(|(_, made)| made[side].mapping.entry(missing.point).is_none()) {
                lacking.push((side, missing));
            }
        }
    }
    lacking.into_iter().step_by(one_in).collect()
}

/// The driver makes the version again without the rewrites, and the checker judges its entries.
#[test]
fn the_checker_accepts_an_entry_without_the_culprits() {
    let pipeline = Pipeline::default();
    let (mut searched, mut single, mut judged) = (0, 0, 0);
    for (name, module) in kernels() {
        for (_, base) in module.defined() {
            let secured = secured(&module, base, &pipeline);
            let mut test =
                Counterfactual::new(&module, base, &secured.derived, &pipeline, Vec::new());
            for level in [Level::Live, Level::LiveE, Level::Alias, Level::Avail] {
                for (side, missing) in some_lacking(&secured, level, 29) {
                    let at = (side, missing.point);
                    let found = test.culprits(at, level, CulpritEffort::default());
                    let what = format!("{name} @{} {level} {at:?}", base.name());
                    let Culprits::Found { culprits, left_out } = found else {
                        panic!("{what}: no culprits")
                    };
                    searched += 1;
                    single += u32::from(culprits.len() == 1);
                    assert!(!culprits.is_empty(), "{what}");
                    if side == Side::Before {
                        judged += 1;
                        let entry =
                            has_entry_without(&module, base, &pipeline, &left_out, at.1, level);
                        assert!(entry, "{what}: without {left_out:?}");
                    }
                }
            }
        }
    }
    assert!(searched > 50 && judged > 25, "{searched} searched, {judged} judged");
    assert!(single > searched / 2, "one action suffices for {single} of {searched}");
}

/// Whether the checker accepts an entry at a point of the base, or finds it unreachable, in a
/// version made without some rewrites.
fn has_entry_without(
    module: &Module,
    base: &Function,
    pipeline: &Pipeline,
    left_out: &[u64],
    point: Point,
    level: Level,
) -> bool {
    let base = base.fork();
    let left_out: Vec<_> = left_out.iter().map(|number| *number..number + 1).collect();
    let derived = derive_without(module, &base, pipeline, &left_out, &mut NoObserver);
    let certified = prove(module, &base, &derived, &[level], &mut NoObserver);
    let made = &certified.levels[0].1.before;
    made.missing.at(point).is_none()
}

/// The blame of reports is a guess from the log alone, and must be a good one.
#[test]
fn most_entries_come_back_without_the_action_that_the_log_suggests() {
    let pipeline = Pipeline::default();
    let (mut tested, mut right) = (0, 0);
    for (_, module) in kernels() {
        for (_, base) in module.defined() {
            let secured = secured(&module, base, &pipeline);
            let actions = secured.derived.log.actions();
            let mut test =
                Counterfactual::new(&module, base, &secured.derived, &pipeline, Vec::new());
            for level in [Level::Live, Level::Avail] {
                for (side, missing) in some_lacking(&secured, level, 17) {
                    let blame = missing.why.blame.expect("the log names an action");
                    let rewrite = actions[blame.action].origin().rewrite();
                    let at = [(side, missing.point)];
                    let fates = test.fates_without(rewrite, level, &at).expect("within bounds");
                    tested += 1;
                    right += u32::from(fates.iter().all(Fate::is_mended));
                }
            }
        }
    }
    assert!(tested > 50 && right > tested / 2, "{right} of {tested}");
}
