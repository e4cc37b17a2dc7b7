//! The programs for the trial of bugs: the `.oir` tests with `run` lines, then generated programs.

use super::{declared, directed};
use fuzz::CampaignOptions;
use ir::Func;
use osier::passes;
use osier::{Format, load};
use passes::{Assumption, PinnedAssumption, Pipeline};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use verify::generate::{Planted, Program, Weights, generate};

/// A program, and the pipelines from each version to the next.
pub(crate) struct Subject {
    pub(crate) program: Program,
    pub(crate) steps: Vec<Pipeline>,
    /// The assumptions of a version before these steps, by function. Every second keeps values.
    pub(crate) assume: BTreeMap<Func, Vec<PinnedAssumption>>,
}

/// A function of an `.oir` test, with the arguments of its runs.
struct HandMade {
    text: String,
    function: String,
    pipeline: String,
    arguments: Vec<Vec<u64>>,
}

/// Every program, by number.
pub(crate) struct Programs {
    hand_made: Vec<HandMade>,
    size: u32,
}

/// The most instructions that a run of a hand-made program executes.
const HAND_MADE_STEPS: u64 = 20_000;

impl Programs {
    pub(crate) fn read(size: u32) -> Programs {
        let mut paths = Vec::new();
        for folder in ["calls", "control", "osr", "passes", "traps"] {
            collect(
                &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oir").join(folder),
                &mut paths,
            );
        }
        paths.sort();
        let hand_made: Vec<HandMade> = paths.iter().flat_map(|path| hand_made(path)).collect();
        assert!(hand_made.len() >= 20, "only {} hand-made programs", hand_made.len());
        Programs { hand_made, size }
    }

    /// A program, built again at each call, so that its versions get equal ids each time.
    pub(crate) fn subject(&self, number: usize, area: &str) -> Subject {
        let parse = |names: &str| passes::parse(names).expect("a pipeline");
        let number = match number.checked_sub(directed::COUNT) {
            _ if !is_speculative(area) => number,
            Some(number) => number,
            None => return directed::subject(number),
        };
        if area == DECLARED {
            let steps = plans(area)[number % plans(area).len()].split('|').map(parse).collect();
            return Subject::new(with_rules(number), steps, number, area);
        }
        if let Some(made) = self.hand_made.get(number) {
            let second = if area == "Compose" { Some("O1") } else { None };
            let steps =
                [Some(made.pipeline.as_str()), second].into_iter().flatten().map(parse).collect();
            return Subject::new(made.program(), steps, number, area);
        }
        let seed = number - self.hand_made.len();
        let plans = plans(area);
        let steps = plans[seed % plans.len()].split('|').map(parse).collect();
        let weights = match area {
            "Effects" => Weights::default().and_declared_calls(),
            _ if is_speculative(area) => Weights::with_facts(),
            _ => Weights::default(),
        };
        Subject::new(generate(seed as u64, self.size, &weights), steps, number, area)
    }
}

impl Subject {
    fn new(program: Program, steps: Vec<Pipeline>, number: usize, area: &str) -> Subject {
        let mut assume = BTreeMap::new();
        if is_speculative(area) {
            let (module, arguments) = (program.module.clone(), program.arguments.clone());
            let fuel = 2 * program.steps + 1000;
            let options = CampaignOptions::default();
            let case = options.case(number as u64, module, program.main, arguments, fuel);
            let suggested = fuzz::suggested(&case).expect("the program can be instantiated");
            assume = suggested
                .into_iter()
                .map(|(func, list)| (func, kept(&program, func, list)))
                .collect();
        }
        Subject { program, steps, assume }
    }
}

/// The assumptions of a function; every second keeps the arguments.
fn kept(program: &Program, func: Func, assumptions: Vec<Assumption>) -> Vec<PinnedAssumption> {
    let arguments = program.module.body(func).map(|f| f.arguments().to_vec()).unwrap_or_default();
    let pins = |number: usize| match number % 2 {
        0 => arguments.clone(),
        _ => Vec::new(),
    };
    let all = assumptions.into_iter().enumerate();
    all.map(|(number, assumption)| PinnedAssumption { assumption, pins: pins(number) }).collect()
}

/// Whether the programs of an area make assumptions.
fn is_speculative(area: &str) -> bool {
    matches!(area, "Speculate" | "Refine" | "Exits")
}

impl HandMade {
    fn program(&self) -> Program {
        let module = load(Format::Oir, self.text.as_bytes()).expect("loaded before");
        let main = module.func_named(&self.function).expect("found before");
        let arguments = self.arguments.clone();
        Program { module, main, arguments, steps: HAND_MADE_STEPS, planted: Planted::default() }
    }
}

/// A program whose functions have declared rules.
fn with_rules(number: usize) -> Program {
    let text = declared::program(number as u64);
    let mut module = load(Format::Oir, text.as_bytes()).expect("it is well-formed");
    let rules = declared::accepted(declared::IDENTITIES, &module);
    module.use_rules(&rules).expect("the rules are of this module");
    let main = module.func_named("f").expect("it is defined");
    let arguments = vec![vec![5, 3], vec![0xffff_fff0, 7], vec![0x8000_0000, 0x1234_5678]];
    Program { module, main, arguments, steps: HAND_MADE_STEPS, planted: Planted::default() }
}

/// The area of rules that embedders declare. Every program of it has some.
pub(crate) const DECLARED: &str = "Declared";
/// The area of the search for exits, which has a judge of its own.
pub(crate) const SPECULATING: &str = "Speculating";
/// The area of native code, which has a judge of its own.
pub(crate) const NATIVE: &str = "Native";
/// The area of versions with inlined code.
pub(crate) const INLINING: &str = "Inlining";
/// The area of the interpreter's transitions into several activations.
pub(crate) const LANDING: &str = "Landing";
/// The area of the checker's demands on copies.
pub(crate) const DEMANDS: &str = "CopyDemands";

/// The pipelines that run the code of an area. A `|` separates the pipelines of two versions. An
/// area without a row is named after a pass, which runs alone.
fn plans(area: &str) -> Vec<&'static str> {
    let listed: &[&str] = match area {
        "Sccp" => &["sccp", "O1", "sccp,simplify,adce", "cfg_clean,sccp"],
        "Simplify" => &["simplify", "O1", "simplify,adce", "sccp,simplify"],
        "Cse" => &["cse", "O1", "cse,adce", "cse,licm"],
        DECLARED => &["simplify", "O1", "gvn,adce", "O2", "simplify,gvn|simplify,adce"],
        "Gvn" => &["gvn", "O2", "simplify,gvn,adce", "gvn,licm"],
        "Motion" => &["sink", "hoist", "O2", "hoist,licm,sink", "simplify,sink,adce"],
        "Licm" => &["loop_canon,licm", "O1", "preheaders,licm", "canonical"],
        "LoopCanon" => &["loop_canon,licm", "preheaders,licm", "loop_canon", "O1"],
        "Adce" => &["adce", "O1", "cse,adce", "canonical"],
        "CfgClean" => &["cfg_clean", "O1", "sccp,cfg_clean", "cfg_clean,cse"],
        "LoadElim" => {
            &["load_elim", "cse,load_elim", "simplify,cse,load_elim,adce", "load_elim,licm"]
        }
        "Effects" => &[
            "O1",
            "O2",
            "cse,load_elim,dse",
            "loop_canon,licm,sink",
            "gvn,adce",
            "preheaders,licm",
        ],
        "Dse" => &["dse", "cse,dse", "simplify,cse,dse,adce", "dse,licm"],
        "Log" => &["O1", "canonical", "simplify,cse,licm,sccp,adce"],
        "Compose" => &[
            "sccp,cfg_clean,simplify,cse|preheaders,licm,cse,adce,cfg_clean",
            "O1|canonical",
            "cse,simplify|loop_canon,licm,adce",
            "dse,adce|cse,licm",
            "cse,adce|load_elim,dse,adce",
            "dse|load_elim,dse,licm",
        ],
        "Speculate" | "Refine" | "Exits" => {
            &["O1", "sccp,adce", "O2", "sccp,cfg_clean,load_elim,dse,adce", "canonical"]
        }
        // These judges draw passes themselves.
        SPECULATING | NATIVE | INLINING | LANDING | DEMANDS => &[],
        "Osr" => &[
            "O1",
            "canonical",
            "simplify,cse,licm,sccp,adce",
            "loop_canon,licm,cse,adce",
            "sccp,loop_canon",
        ],
        _ => return vec![pass_of(area)],
    };
    listed.to_vec()
}

/// The pass that an area is named after: `load_elim` for `LoadElim`.
fn pass_of(area: &str) -> &'static str {
    let mut names = passes::registry::PASSES.iter().map(|pass| pass.name());
    let found = names.find(|name| name.replace('_', "") == area.to_lowercase());
    found.unwrap_or_else(|| panic!("the area {area} has no pipelines, and no pass has its name"))
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).expect("the folder of tests can be read");
    for entry in entries {
        let path = entry.expect("the folder of tests can be read").path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|e| e == "oir") {
            paths.push(path);
        }
    }
}

/// The functions that a test runs with integers.
fn hand_made(path: &Path) -> Vec<HandMade> {
    let text = std::fs::read_to_string(path).expect("a test can be read");
    let directive = |name: &str| {
        let prefix = format!(";@ {name}: ");
        text.lines()
            .filter_map(move |l| l.strip_prefix(prefix.as_str()).map(str::to_owned))
            .collect::<Vec<_>>()
    };
    let pipeline = directive("pipeline")
        .into_iter()
        .next()
        .unwrap_or_else(|| passes::registry::DEFAULT.to_owned());
    let mut calls: BTreeMap<String, Vec<Vec<u64>>> = BTreeMap::new();
    // Files about rejected modules do not load, and have no `run` line.
    let runs = directive("run");
    let Ok(module) = load(Format::Oir, text.as_bytes()) else {
        assert!(runs.is_empty(), "{}: it has `run` lines and does not load", path.display());
        return Vec::new();
    };
    // Calls with other arguments than integers are left out.
    for (function, numbers) in runs.iter().filter_map(|line| call(line)) {
        let Some(func) = module.func_named(&function) else { continue };
        let params = &module.signature(func).params;
        if params.len() == numbers.len() && params.iter().all(|ty| ty.is_int()) {
            let bits =
                numbers.iter().zip(params).map(|(n, ty): (&i64, &ir::Type)| *n as u64 & ty.mask());
            calls.entry(function).or_default().push(bits.collect());
        }
    }
    let one = |(function, arguments)| HandMade {
        text: text.clone(),
        function,
        pipeline: pipeline.clone(),
        arguments,
    };
    calls.into_iter().map(one).collect()
}

/// The function and the arguments of a line `@f(1, -2) == 3`.
fn call(line: &str) -> Option<(String, Vec<i64>)> {
    let (function, rest) = line.trim().strip_prefix('@')?.split_once('(')?;
    let (numbers, _) = rest.split_once(')')?;
    let numbers =
        numbers.split(',').map(str::trim).filter(|n| !n.is_empty()).map(|n| n.parse().ok());
    Some((function.to_owned(), numbers.collect::<Option<_>>()?))
}
