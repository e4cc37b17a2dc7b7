//! The versions of a program's functions, and the mappings between two of them.

use super::case::Case;
use super::figures::Figures;
use super::oracle::{Finding, Oracle};
use ir::edit::{ActionLog, Fuel, apply, check_replay};
use ir::mapping::Mapping;
use ir::verifier::verify_function;
use ir::{Func, Function, Inst, Module};
use osr::{Level, Synthesis, VersionPair};
use passes::registry::StaticPass;
use std::collections::{BTreeMap, BTreeSet};
use verify::state_oracle::FunctionPair;

/// All versions of one function.
pub(super) struct Versions {
    pub(super) func: Func,
    /// Version 0 is the program's own.
    pub(super) functions: Vec<Function>,
    /// What leads from each version to the next.
    pub(super) logs: Vec<ActionLog>,
}

impl Versions {
    /// Whether two versions differ by some action.
    fn differ(&self, first: usize, last: usize) -> bool {
        self.logs[first..last].iter().any(|log| !log.is_empty())
    }

    /// What leads from one version to a later one.
    fn log(&self, first: usize, last: usize) -> ActionLog {
        let mut log = self.logs[first].clone();
        self.logs[first + 1..last].iter().for_each(|next| log.extend(next.clone()));
        log
    }
}

/// Derives the versions of every function. After each pass the version is verified and the log replayed: the
/// first oracle.
pub(super) fn derive(case: &Case, figures: &mut Figures) -> Result<Vec<Versions>, Finding> {
    let mut acted: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut all = Vec::new();
    for (func, base) in case.module.defined() {
        let mut versions = Versions { func, functions: vec![base.clone()], logs: Vec::new() };
        for (number, passes) in case.steps.iter().enumerate() {
            let before = &versions.functions[number];
            let (function, log) = derive_one(&case.module, before, passes, &mut acted).map_err(|message| Finding {
                oracle: Oracle::Ssa,
                versions: (number, number + 1),
                message,
            })?;
            versions.functions.push(function);
            versions.logs.push(log);
        }
        all.push(versions);
    }
    figures.count_passes(&acted);
    Ok(all)
}

/// Runs passes over one version, and adds what each did to `acted`.
fn derive_one(
    module: &Module,
    base: &Function,
    passes: &[StaticPass],
    acted: &mut BTreeMap<&'static str, u64>,
) -> Result<(Function, ActionLog), String> {
    let mut version = base.clone();
    let mut log = ActionLog::empty_for(base);
    for pass in passes {
        let (function, actions) = apply(&version, *pass, &mut Fuel::UNLIMITED.clone()).into_parts();
        let place = || format!("pass {} on @{}", pass.name(), base.name());
        check_replay(&version, &actions, &function)
            .map_err(|e| format!("{}: its log does not replay: {e}", place()))?;
        if let Some(finding) = verify_function(module, &function).first() {
            return Err(format!("{}: the version it made is not well-formed: {finding}", place()));
        }
        *acted.entry(pass.name()).or_default() += actions.len() as u64;
        version = function;
        log.extend(actions);
    }
    Ok((version, log))
}

/// Two versions of a function with the mappings between them.
pub(super) struct Mapped<'v> {
    pub(super) func: Func,
    before: &'v Function,
    after: &'v Function,
    anchors: BTreeSet<Inst>,
    pub(super) forward: Mapping,
    pub(super) backward: Mapping,
}

impl Mapped<'_> {
    /// What the state oracle takes.
    pub(super) fn pair(&self) -> FunctionPair<'_> {
        let Mapped { func, before, after, anchors, forward, backward } = self;
        FunctionPair { func: *func, before, after, anchors, forward, backward }
    }
}

/// Makes mappings between two versions: [`osr::synthesize`], or in tests of the judges something worse.
pub type Mapper = fn(&VersionPair<'_>, Level) -> Synthesis;

/// The mappings, in both directions, between two versions of every function that has changed between them.
pub(super) fn map<'v>(
    all: &'v [Versions],
    (first, last): (usize, usize),
    level: Level,
    mapper: Mapper,
    figures: &mut Figures,
) -> Result<Vec<Mapped<'v>>, Finding> {
    let mut mapped = Vec::new();
    for versions in all.iter().filter(|v| v.differ(first, last)) {
        let (before, after) = (&versions.functions[first], &versions.functions[last]);
        let log = versions.log(first, last);
        let pair = VersionPair::new(before, after, &log).map_err(|error| Finding {
            oracle: Oracle::Ssa,
            versions: (first, last),
            message: format!("@{}: the log of several passes does not replay: {error}", before.name()),
        })?;
        let anchors = pair.bounding_anchors().collect();
        let made = mapper(&pair, level);
        for direction in [&made.forward, &made.backward] {
            figures.points += (direction.points - direction.unreachable) as u64;
            figures.entries += direction.mapping.len() as u64;
        }
        let (forward, backward) = (made.forward.mapping, made.backward.mapping);
        mapped.push(Mapped { func: versions.func, before, after, anchors, forward, backward });
    }
    Ok(mapped)
}
