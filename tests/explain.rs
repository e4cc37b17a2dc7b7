//! Explanations agree with the report. The tests explain every point of kernels and of generated
//! programs, and count the answers as the report does.

use ir::{Function, Module};
use osier::driver::{
    MissingPoints, NoObserver, Recipe, Retry, Secured, UNPROVED, Vigilance, derive, derive_proved,
    prove,
};
use osier::explain::{Question, explain, text};
use osier::report::{UNBLAMED, function_report};
use osier::schema::{DirectionFigures, Explanation, LEVELS, PointAnswer, PointStatus, SCHEMA};
use osr::Level;
use passes::Pipeline;
use std::collections::BTreeMap;
use transition::Side;
use verify::generate::{Weights, generate};

/// The levels, each with its index in the schema.
fn levels() -> impl Iterator<Item = (usize, Level)> {
    Level::ALL.into_iter().map(|level| {
        (LEVELS.iter().position(|n| *n == level.name()).expect("in the schema"), level)
    })
}

/// Kernels, and generated programs of these seeds, which take pipelines in turn.
fn programs(seeds: std::ops::Range<u64>) -> Vec<(String, Module, Pipeline)> {
    let pipeline = |text: &str| passes::parse(text).expect("known passes");
    let mut programs = Vec::new();
    for name in ["vm", "sort", "words"] {
        let bytes = std::fs::read(format!("tests/corpus/{name}.wasm"))
            .expect("tests run in the root of the package");
        let module = osier::load(osier::Format::Wasm, &bytes).expect("well-formed");
        programs.push((name.to_owned(), module, Pipeline::default()));
    }
    let pipelines =
        ["O1", "preheaders,licm,sccp,cse", "loop_canon,licm,adce", "simplify,sccp,cfg_clean"];
    for seed in seeds {
        let module = generate(seed, 80, &Weights::default()).module;
        programs.push((
            format!("seed {seed}"),
            module,
            pipeline(pipelines[seed as usize % pipelines.len()]),
        ));
    }
    programs
}

/// The version of the whole pipeline, with the mappings of every level.
fn secured(module: &Module, base: &Function, pipeline: &Pipeline) -> Secured {
    let (vigilance, levels, retry) = (Vigilance::Off, &Level::ALL, Retry::OFF);
    let recipe = Recipe { pipeline, vigilance, levels, retry };
    derive_proved(module, base, &recipe, &mut NoObserver)
}

fn sum(counts: &BTreeMap<String, u64>) -> u64 {
    counts.values().sum()
}

/// Asserts that the counts of a direction add up by reason, by pass and by both.
fn adds_up(side: &DirectionFigures, level: usize, what: &str) {
    let missing = side.reachable() - side.feasible.get(level).expect("a figure for each level");
    assert_eq!(sum(&side.causes.infeasible), missing, "{what}: by reason");
    assert_eq!(sum(&side.causes.blame), missing, "{what}: by pass");
    let mut by_pass: BTreeMap<String, u64> = BTreeMap::new();
    for (reason, passes) in &side.causes.infeasible_by_pass {
        assert_eq!(sum(passes), side.causes.infeasible[reason], "{what}: the row {reason}");
        passes.iter().for_each(|(pass, count)| *by_pass.entry(pass.clone()).or_default() += count);
    }
    assert_eq!(by_pass, side.causes.blame, "{what}: the columns");
    assert!(
        side.causes.infeasible_by_pass.keys().eq(side.causes.infeasible.keys()),
        "{what}: reasons"
    );
}

#[test]
fn counts_by_reason_and_by_pass_add_up_at_every_level() {
    let (mut named, mut not_named) = ([0; LEVELS.len()], [0; LEVELS.len()]);
    for (name, module, pipeline) in programs(0..120) {
        for (_, base) in module.defined() {
            let secured = secured(&module, base, &pipeline);
            for (place, level) in levels() {
                let report = function_report(base, &secured, level);
                for (side, way) in [(&report.forward, "forward"), (&report.backward, "backward")] {
                    adds_up(side, place, &format!("{name} @{} {way} {level}", base.name()));
                    // The checker drops entries mostly in unreachable code, where no pass is to
                    // blame.
                    let found = side
                        .causes
                        .infeasible_by_pass
                        .iter()
                        .filter(|(reason, _)| *reason != UNPROVED);
                    let unnamed: u64 = found.filter_map(|(_, passes)| passes.get(UNBLAMED)).sum();
                    not_named[place] += unnamed;
                    named[place] += sum(&side.causes.blame) - unnamed;
                }
            }
        }
    }
    // There are points without an entry, and for most of them the report names a pass.
    let few = named.iter().zip(&not_named).all(|(named, not_named)| *not_named <= named / 10);
    assert!(named.iter().sum::<u64>() > 1000 && few, "{named:?} and {not_named:?}");
}

/// The answers for all points, counted as the report counts.
#[derive(Default, PartialEq, Eq, Debug)]
struct Counted {
    unreachable: u64,
    feasible: u64,
    by_pass: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Counted {
    fn take(&mut self, answer: &PointAnswer) {
        match answer.status {
            PointStatus::Entry => self.feasible += 1,
            PointStatus::Unreachable => self.unreachable += 1,
            PointStatus::None | PointStatus::Unproved => {
                let why = answer.why.as_ref().expect("there is a reason");
                assert_eq!(answer.status == PointStatus::Unproved, why.reason == UNPROVED);
                let pass = why.blame.as_ref().map_or(UNBLAMED, |done| done.pass);
                let passes = self.by_pass.entry(why.reason.to_owned()).or_default();
                *passes.entry(pass.to_owned()).or_default() += 1;
            }
            PointStatus::Absent => panic!("every point is one of the source version"),
        }
    }

    fn of(side: &DirectionFigures, level: usize) -> Counted {
        Counted {
            unreachable: side.unreachable,
            feasible: *side.feasible.get(level).expect("a figure for each level"),
            by_pass: side.causes.infeasible_by_pass.clone(),
        }
    }
}

fn explanation(base: &Function, answers: Vec<PointAnswer>) -> Explanation {
    Explanation {
        schema: SCHEMA,
        path: String::new(),
        function: base.name().to_owned(),
        source_name: None,
        pipeline: Vec::new(),
        level: String::new(),
        asked: String::new(),
        given_up: None,
        calls: None,
        answers,
    }
}

/// Explains every point of one version and counts the answers. Each explanation fits 80 columns.
fn explain_all(
    module: &Module,
    base: &Function,
    Secured { derived, proved: certified, .. }: &Secured,
    heading: Side,
    level: Level,
) -> Counted {
    let version = if heading == Side::Before { base } else { &derived.function };
    let mut counted = Counted::default();
    for inst in version.all_insts() {
        let question =
            Question { point: &inst.to_string(), headings: &[heading], level, lines: None };
        let answers =
            explain(module, base, derived, certified, question).expect("the version has the point");
        counted.take(&answers[0]);
        let shown = text(&explanation(base, answers));
        let widest = shown.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80) && !shown.contains(" \n"), "{shown}");
    }
    counted
}

#[test]
fn explanations_of_all_points_match_the_report() {
    for (name, module, pipeline) in programs(40..46) {
        for (_, base) in module.defined() {
            let secured = secured(&module, base, &pipeline);
            for (place, level) in
                levels().filter(|(_, level)| matches!(level, Level::Live | Level::Avail))
            {
                let report = function_report(base, &secured, level);
                for (heading, side) in
                    [(Side::Before, &report.forward), (Side::After, &report.backward)]
                {
                    let counted = explain_all(&module, base, &secured, heading, level);
                    assert_eq!(
                        counted,
                        Counted::of(side, place),
                        "{name} @{} {heading:?} {level}",
                        base.name()
                    );
                }
            }
        }
    }
}

#[test]
fn odd_texts_for_points_are_refused() {
    let source = std::fs::read("cli/tests/cli/golden/window.oir")
        .expect("tests run in the root of the package");
    let module = osier::load(osier::Format::Oir, &source).expect("well-formed");
    let (_, base) = module.defined().next().expect("one function");
    let derived = derive(&module, base, &Pipeline::default(), Vigilance::On, &mut NoObserver);
    let certified = prove(&module, base, &derived, &Level::ALL, &mut NoObserver);
    let long = "x".repeat(1_000_000);
    let numbers = format!("body:{}", "9".repeat(1_000_000));
    let odd = [
        "",
        " ",
        ":",
        "::",
        "%",
        "% ",
        "inst",
        "inst4294967295",
        "inst-1",
        "inst07",
        ":0",
        "body:",
        "body:x",
    ];
    let more = [
        "\u{1f980}:1",
        "%\u{e9}",
        "body 0",
        "body:0 inst",
        "%\u{1b}[2J",
        &long,
        &numbers,
        "body:0\0",
    ];
    for point in odd.into_iter().chain(more) {
        let question =
            Question { point, headings: &[Side::Before], level: Level::Avail, lines: None };
        let error = explain(&module, base, &derived, &certified, question)
            .expect_err(&point[..point.len().min(99)]);
        let message = error.to_string();
        assert!(message.len() < 400 && !message.contains(char::is_control), "{message}");
    }
}

#[test]
fn a_dropped_entry_is_explained_as_unproved() {
    let source = std::fs::read("cli/tests/cli/golden/window.oir")
        .expect("tests run in the root of the package");
    let module = osier::load(osier::Format::Oir, &source).expect("well-formed");
    let (_, base) = module.defined().next().expect("one function");
    let pipeline = passes::parse("sccp,cse,preheaders,licm").expect("known passes");
    let derived = derive(&module, base, &pipeline, Vigilance::On, &mut NoObserver);
    let mut certified = prove(&module, base, &derived, &Level::ALL, &mut NoObserver);
    let inst = base.all_insts().find(|i| i.to_string() == "inst12").expect("it is there");
    let point = ir::Point::before(inst);
    let division = base.all_insts().find(|i| i.to_string() == "inst7").expect("it is there");
    let at = check::verdict::Place::Value(base.inst(division).result().expect("one result"));
    let finding = check::verdict::Finding { check: check::verdict::Check::AssignValue, at };
    for (_, made) in &mut certified.levels {
        made.before.mapping.retain(|at, _| at != point);
        let obstacles: Vec<_> = made.before.missing.obstacles().collect();
        let rejected = [(point, check::verdict::Verdict::Undecided(finding))];
        made.before.missing = MissingPoints::new(obstacles, rejected);
    }
    let question =
        Question { point: "inst12", headings: &[Side::Before], level: Level::Avail, lines: None };
    let answers = explain(&module, base, &derived, &certified, question).expect("a point");
    assert_eq!(answers[0].status, PointStatus::Unproved);
    let why = answers[0].why.as_ref().expect("a reason");
    assert_eq!(why.verdict.as_deref(), Some("undecided: assign-value at %v8"));
    assert_eq!(
        why.blame.as_ref().map(|done| done.pass),
        Some("licm"),
        "it moved the division the value is of"
    );
    let shown = text(&explanation(base, answers));
    assert!(
        shown.contains("no entry: the checker did not accept the entry that was found;"),
        "{shown}"
    );
}
