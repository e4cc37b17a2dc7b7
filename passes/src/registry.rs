//! Passes and pipelines by name.
//!
//! Any order and any subset of passes is legal: no pass relies on another for correctness.

use crate::{
    Adce, CfgClean, Cse, Dse, Gvn, Hoist, Licm, LoadElim, LoopCanon, Sccp, Simplify, Sink, Thread,
};
use ir::edit::Pass;
use std::fmt;

/// A pass that any thread may run.
pub type StaticPass = &'static (dyn Pass + Send + Sync);

/// Every pass, in the order of names.
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
    &Sccp,
    &Simplify,
    &Sink,
    &Thread,
];

/// Named pipelines and what they stand for. See the test `named_pipelines_are_known`.
///
/// `O1`: branches and constants first, so that nothing is spent on dead code; straight lines next,
/// so that expressions meet; each of the cleanups that a later pass makes room for comes after it;
/// `dse` behind `load_elim`, when the reads that kept a store are gone, and before what leaves a
/// loop for good.
///
/// `O2`: the same, with `gvn` for `cse`; `hoist` before `licm`, so that what all arms in a loop
/// compute can leave it; `sink` last, since before `licm` it would take what leaves a loop into an
/// arm there. `thread` is in neither, as its documentation says.
const PIPELINES: &[(&str, &str)] = &[
    ("O0", ""),
    ("O1", "sccp,cfg_clean,simplify,cse,load_elim,simplify,dse,preheaders,licm,cse,adce,cfg_clean"),
    (
        "O2",
        "sccp,cfg_clean,simplify,gvn,load_elim,simplify,dse,hoist,preheaders,licm,gvn,adce,sink,cfg_clean",
    ),
    ("canonical", "sccp,cfg_clean,simplify,cse,loop_canon,licm,cse,adce"),
];

/// The name of the pipeline that is used when none is asked for.
pub const DEFAULT: &str = "O1";

/// A list of passes, run in order.
#[derive(Clone)]
pub struct Pipeline {
    passes: Vec<StaticPass>,
}

impl Pipeline {
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

/// The passes of a list of names of passes and pipelines with commas or blanks between them, as
/// `sccp,cse` or `O1 adce`: reports print pipelines with blanks. An empty list is the empty
/// pipeline.
///
/// # Errors
/// On the first name that is unknown.
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

/// The names between two commas; one that is empty where nothing stands there, which is no pass.
fn names(part: &str) -> impl Iterator<Item = &str> {
    let missing = part.trim().is_empty().then_some("");
    missing.into_iter().chain(part.split_whitespace())
}

fn pass(name: &str) -> Result<StaticPass, UnknownPass> {
    let found = PASSES.iter().copied().find(|p| p.name() == name);
    found.ok_or_else(|| UnknownPass { name: name.to_owned() })
}
