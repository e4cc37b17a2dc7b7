//! Passes and pipelines by name.
//!
//! Any order and any subset of passes is legal: no pass relies on another for correctness.

use crate::{
    Adce, CfgClean, Cse, Dse, Gvn, Hoist, Licm, LoadElim, LoopCanon, Ranges, Sccp, Simplify, Sink,
};
use ir::edit::Pass;
use std::fmt;

/// A pass that any thread may run.
pub type StaticPass = &'static (dyn Pass + Send + Sync);

/// Every pass that a list can name, in the order of names. [`crate::Speculate`] needs a list of
/// assumptions, [`crate::Refine`] runs in the log that adds them, and [`crate::ResolveCalls`],
/// [`crate::Inline`] and [`crate::RemoveObjects`] need the module.
pub const PASSES: &[StaticPass] = &[
    &Adce,
    &CfgClean,
    &Cse,
    &Dse,
    &Gvn,
    &Hoist,
    &Licm,
    &LoadElim,
    &LoopCanon::FULL,
    &LoopCanon::PREHEADERS,
    &Ranges,
    &Sccp,
    &Simplify,
    &Sink,
];

/// Named pipelines with the lists of passes they stand for. The test `named_pipelines_are_known`
/// parses each.
///
/// `O1` runs branch folding and constant propagation first, so that no later pass spends time on
/// dead code. The passes on expressions follow once blocks are merged, so that equal expressions
/// are in one block. Each cleanup comes after the pass that creates work for it. `dse` follows
/// `load_elim`, which removes the reads that keep stores alive, and precedes `licm`.
///
/// `ranges` belongs behind the last numbering, which makes one value of equal operands of tests,
/// and in front of the passes that remove the tests and the code behind them. `O1R` is `O1` with
/// `ranges`.
///
/// `O2` has the same order with `gvn` in place of `cse`. `hoist` precedes `licm`, so that an
/// operation that all arms inside a loop compute can leave the loop. `sink` is last: before `licm`
/// it would move an invariant operation into an arm of the loop instead of out of the loop.
const PIPELINES: &[(&str, &str)] = &[
    ("O0", ""),
    ("O1", "sccp,cfg_clean,simplify,cse,load_elim,simplify,dse,preheaders,licm,cse,adce,cfg_clean"),
    (
        "O2",
        "sccp,cfg_clean,simplify,gvn,load_elim,simplify,dse,hoist,preheaders,licm,gvn,adce,sink,cfg_clean",
    ),
    (
        "O1R",
        "sccp,cfg_clean,simplify,cse,load_elim,simplify,dse,preheaders,licm,cse,ranges,adce,cfg_clean",
    ),
    ("canonical", "sccp,cfg_clean,simplify,cse,loop_canon,licm,cse,adce"),
];

/// The name of the pipeline that callers use by default.
pub const DEFAULT: &str = "O1";

/// The name of the pipeline that consists of these passes, if any. Cost: linear.
pub fn name_of<S: AsRef<str>>(passes: &[S]) -> Option<&'static str> {
    let is_of = |list: &str| {
        let names = list.split(',').filter(|name| !name.is_empty());
        names.eq(passes.iter().map(AsRef::as_ref))
    };
    PIPELINES.iter().find(|(_, list)| is_of(list)).map(|(name, _)| *name)
}

/// The number of passes of the longest pipeline that has a name.
pub fn longest() -> usize {
    let passes = |list: &str| list.split(',').filter(|name| !name.is_empty()).count();
    PIPELINES.iter().map(|(_, list)| passes(list)).max().unwrap_or(0)
}

/// A list of passes, run in order.
#[derive(Clone)]
pub struct Pipeline {
    passes: Vec<StaticPass>,
}

impl Pipeline {
    /// A pipeline of these passes, which may include passes of an embedder. [`parse`] knows the
    /// passes of this crate alone.
    pub fn of(passes: Vec<StaticPass>) -> Pipeline {
        Pipeline { passes }
    }

    /// The passes, in order.
    pub fn passes(&self) -> &[StaticPass] {
        &self.passes
    }

    /// The names of the passes, in order.
    pub fn names(&self) -> Vec<&'static str> {
        self.passes.iter().map(|p| p.name()).collect()
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pipeline").field(&self.names()).finish()
    }
}

impl Default for Pipeline {
    /// The pipeline named [`DEFAULT`].
    fn default() -> Pipeline {
        parse(DEFAULT).expect("named pipelines are known")
    }
}

/// A name in a pipeline that is neither a pass nor a pipeline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownPass {
    name: String,
}

impl UnknownPass {
    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for UnknownPass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let passes: Vec<&str> = PASSES.iter().map(|p| p.name()).collect();
        let pipelines: Vec<&str> = PIPELINES.iter().map(|(name, _)| *name).collect();
        write!(f, "unknown pass `{}`; passes: {}; ", self.name, passes.join(", "))?;
        write!(f, "pipelines: {}", pipelines.join(", "))
    }
}

impl std::error::Error for UnknownPass {}

/// Parses a list of names of passes and pipelines. Commas or blanks separate the names: `sccp,cse`,
/// or `O1 adce`, since reports print pipelines with blanks. An empty list is the empty pipeline.
///
/// # Errors
/// If a name is neither a pass nor a pipeline; the error holds the first such name.
pub fn parse(text: &str) -> Result<Pipeline, UnknownPass> {
    let mut passes = Vec::new();
    for name in text.split(',').flat_map(names).filter(|_| !text.trim().is_empty()) {
        match PIPELINES.iter().find(|(known, _)| *known == name) {
            Some((_, list)) => passes.extend(
                list.split(',')
                    .filter(|n| !n.is_empty())
                    .map(pass)
                    .collect::<Result<Vec<_>, _>>()?,
            ),
            None => passes.push(pass(name)?),
        }
    }
    Ok(Pipeline { passes })
}

/// The names between two commas. An empty part yields one empty name, which [`pass`] rejects.
fn names(part: &str) -> impl Iterator<Item = &str> {
    let missing = part.trim().is_empty().then_some("");
    missing.into_iter().chain(part.split_whitespace())
}

fn pass(name: &str) -> Result<StaticPass, UnknownPass> {
    let found = PASSES.iter().copied().find(|p| p.name() == name);
    found.ok_or_else(|| UnknownPass { name: name.to_owned() })
}
