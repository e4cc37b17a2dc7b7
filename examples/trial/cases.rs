//! Generated programs with their mappings, which are then damaged.

use certify::Certifier;
use interp::Limits;
use ir::{Func, Function, Inst};
use osier::driver::{NoObserver, Vigilance, derive};
use osr::{Level, VersionPair, synthesize};
use std::collections::BTreeSet;
use transition::certificate::{Certificate, MappingFacts};
use transition::mapping::Mapping;
use transition::{Pair, Side};
use verify::generate::{Program, Weights, generate};
use verify::state_oracle::{FunctionPair, OracleOptions};

/// A function and a version derived from it, with the log and the mappings in both directions.
pub(crate) struct Case {
    pub(crate) func: Func,
    pub(crate) versions: Pair<Function>,
    pub(crate) log: ir::edit::ActionLog,
    pub(crate) anchors: BTreeSet<Inst>,
    pub(crate) mappings: Pair<Mapping>,
}

impl Case {
    pub(crate) fn pair<'a>(&'a self, mappings: Pair<&'a Mapping>) -> FunctionPair<'a> {
        let Pair { before, after } = self.versions.as_ref();
        let Pair { before: forward, after: backward } = mappings;
        let (func, anchors) = (self.func, &self.anchors);
        FunctionPair { func, before, after, anchors, forward, backward, copies: None }
    }

    /// The certificate, and the facts for the mappings in both directions.
    pub(crate) fn certificate(
        &self,
        mappings: Pair<&Mapping>,
    ) -> (Certificate, Pair<MappingFacts>) {
        let pair = VersionPair::new(&self.versions.before, &self.versions.after, &self.log)
            .expect("the log was replayed");
        let common = pair.correspondence();
        let mut certifier = Certifier::new(&common);
        let facts = Pair::from_fn(|side: Side| certifier.facts(side, mappings[side]));
        (certifier.into_certificate(), facts)
    }
}

/// The pipelines, which programs take in turn.
pub(crate) const PIPELINES: [&str; 4] =
    ["O1", "canonical", "simplify,cse,licm,sccp,adce", "canonical,load_elim,dse,adce"];

/// A generated program and its changed functions.
pub(crate) fn cases(seed: u64, size: u32) -> (Program, Vec<Case>) {
    let program = generate(seed, size, &Weights::default());
    let name = PIPELINES[seed as usize % PIPELINES.len()];
    let pipeline = passes::parse(name).expect("a pipeline");
    let mut cases = Vec::new();
    for (func, base) in program.module.defined() {
        let derived = derive(&program.module, base, &pipeline, Vigilance::On, &mut NoObserver);
        if derived.log.is_empty() {
            continue;
        }
        let pair =
            VersionPair::new(base, &derived.function, &derived.log).expect("the log was replayed");
        let pair = pair.in_module(&program.module);
        let made = synthesize(&pair, Level::Avail);
        let anchors = pair.bounding_anchors().collect();
        let mappings = Pair::new(made.forward.mapping, made.backward.mapping);
        cases.push(Case {
            func,
            versions: Pair::new(base.clone(), derived.function),
            log: derived.log,
            anchors,
            mappings,
        });
    }
    (program, cases)
}

/// An oracle that keeps every divergence.
pub(crate) fn oracle_options(program: &Program, seed: u64) -> OracleOptions {
    OracleOptions {
        limits: Limits { fuel: 2 * program.steps + 1000, ..Limits::default() },
        divergences: usize::MAX,
        seed,
        ..OracleOptions::default()
    }
}
