//! Speculation: versions that are right under assumptions, and the ways out of them.
//!
//! A JIT knows that `%x` was 7 in every call so far. [`speculate()`] makes a version that assumes
//! so, optimizes it, and proves for each assumption an entry back to the base, for the run in which
//! `%x` is 8. Passes see neither the exits nor the state that they need: the entries follow from
//! the logs, as everywhere in Osier.
//!
//! Three versions stand in a row, with a log between each two:
//!
//! ```text
//! base --speculate, refine--> assuming --optimize--> optimized
//! ```
//!
//! In the first pair, the result of an assumption is its operand, and no entry lands behind it from
//! the base. In the second pair, both versions make the assumption, and its result is the constant.
//! Each pair is proved for itself, without conditions. The way out is composed of both. With one
//! pair alone, the operand would be the constant above the assumption, too
//! (`docs/speculation.md`).

use crate::driver::{CertifiedGraph, NoObserver, Vigilance, certify_graph, derive};
use check::{Checked, CheckedEntry};
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::edit::{ActionKind, ActionLog, Fuel, apply};
use ir::{Function, Inst, Module, Opcode, Point, Type, Value};
use osr::{Level, Version, VersionGraph, VersionTree};
pub use passes::{Assumption, Fact};
use passes::{Pipeline, Refine, Speculate};
use std::collections::BTreeSet;
use std::fmt;
use transition::Demand;
use transition::mapping::Mapping;

/// Assumptions of one version.
pub const MAX_ASSUMPTIONS: usize = 4096;

/// Turns in which assumptions without an exit are left out. Leaving some out changes what the
/// passes do, and so may take the exit of another; after the last turn none is left.
const MAX_TURNS: usize = 3;

/// A version that is right while its assumptions hold.
#[derive(Clone, Debug)]
pub struct Speculative {
    /// The base, the version that makes the assumptions, and the optimized version, in this order,
    /// each derived from the one before.
    pub tree: VersionTree,
    /// The assumptions that the optimized version makes, each with an accepted entry to the base
    /// before it.
    pub exits: Vec<Exit>,
    /// The assumptions that a pass has proved or removed with code that never runs: the optimized
    /// version does not make them, and needs no exits for them.
    pub settled: Vec<Assumption>,
    /// The assumptions that were left out.
    pub dropped: Vec<(Assumption, Dropped)>,
    /// From the base to the optimized version: no entry lands behind an assumption.
    pub forward: Checked<Mapping>,
    /// From the optimized version to the base.
    pub backward: Checked<Mapping>,
}

/// An assumption of the optimized version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exit {
    /// The assumption, in terms of the base.
    pub assumption: Assumption,
    /// Its instruction, in the versions behind the base.
    pub inst: Inst,
}

/// Why an assumption was left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dropped {
    /// No entry leads from the optimized version to the base there, or the checker did not accept
    /// it.
    NoExit,
    /// The place is in code that no run reaches.
    NeverReached,
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dropped::NoExit => "no proved entry leads back from it",
            Dropped::NeverReached => "no run reaches it",
        })
    }
}

/// Why a list of assumptions is refused. Fields name an assumption by its index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpeculateError {
    /// The base lacks the instruction of the place.
    NoSuchPoint {
        /// The assumption.
        assumption: usize,
        /// The instruction.
        inst: Inst,
    },
    /// The base lacks the value, or it is not available at the place.
    NotAvailable {
        /// The assumption.
        assumption: usize,
        /// The value.
        value: Value,
    },
    /// The bits do not fit the type of the value.
    DoesNotFit {
        /// The assumption.
        assumption: usize,
        /// The bits.
        bits: u64,
        /// The type.
        ty: Type,
    },
    /// The value is to differ from some bits, and is no integer.
    NotComparable {
        /// The assumption.
        assumption: usize,
        /// The type of the value.
        ty: Type,
    },
    /// There are more than [`MAX_ASSUMPTIONS`].
    TooMany {
        /// Their number.
        count: usize,
    },
}

impl fmt::Display for SpeculateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpeculateError::NoSuchPoint { assumption, inst } => {
                write!(f, "assumption {assumption}: the base has no {inst}")
            }
            SpeculateError::NotAvailable { assumption, value } => {
                write!(f, "assumption {assumption}: {value} is not available there")
            }
            SpeculateError::DoesNotFit { assumption, bits, ty } => {
                write!(f, "assumption {assumption}: {bits:#x} does not fit {ty}")
            }
            SpeculateError::NotComparable { assumption, ty } => {
                write!(
                    f,
                    "assumption {assumption}: only an integer can be assumed to differ, not {ty}"
                )
            }
            SpeculateError::TooMany { count } => {
                write!(f, "{count} assumptions; the limit is {MAX_ASSUMPTIONS}")
            }
        }
    }
}

impl std::error::Error for SpeculateError {}

impl Speculative {
    /// The optimized version.
    pub fn function(&self) -> &Function {
        let last = self.tree.versions().last().expect("a tree has its base");
        self.tree.function(last)
    }

    /// The entry that a run takes when the assumption of this instruction fails.
    pub fn exit(&self, inst: Inst) -> Option<CheckedEntry<'_>> {
        self.backward.checked_entry(Point::before(inst))
    }
}

/// Makes a version of `base` that makes these assumptions, and optimizes it. An assumption without
/// a proved exit is left out, and the version made again without it. Cost: that of two pairs of
/// versions, times the turns, of which there are at most five.
///
/// # Errors
/// [`SpeculateError`]; nothing is made then.
///
/// # Panics
/// As [`derive()`].
pub fn speculate(
    module: &Module,
    base: &Function,
    assumptions: &[Assumption],
    pipeline: &Pipeline,
) -> Result<Speculative, SpeculateError> {
    check_all(base, assumptions)?;
    let cfg = Cfg::new(base);
    let is_reached = |a: &Assumption| cfg.is_reachable(base.inst_block(a.at.inst()));
    let (mut made, unreached): (Vec<Assumption>, Vec<Assumption>) =
        assumptions.iter().partition(|a| is_reached(a));
    let mut dropped: Vec<(Assumption, Dropped)> =
        unreached.into_iter().map(|a| (a, Dropped::NeverReached)).collect();
    for turn in 0.. {
        let attempt = Speculation::new(module, base, &made, pipeline);
        let lacking = attempt.without_exit();
        if lacking.is_empty() {
            return Ok(attempt.finish(&made, dropped));
        }
        let goes = |index: usize| turn == MAX_TURNS || lacking.contains(&index);
        let all = made.iter().copied().enumerate();
        dropped.extend(all.filter(|(index, _)| goes(*index)).map(|(_, a)| (a, Dropped::NoExit)));
        let mut index = 0..;
        made.retain(|_| !index.next().is_some_and(goes));
    }
    unreachable!("a version without assumptions lacks no exit")
}

/// Checks that the base can make the assumptions.
fn check_all(base: &Function, assumptions: &[Assumption]) -> Result<(), SpeculateError> {
    if assumptions.len() > MAX_ASSUMPTIONS {
        return Err(SpeculateError::TooMany { count: assumptions.len() });
    }
    let cfg = Cfg::new(base);
    let dom = DomTree::new(base, &cfg);
    for (assumption, Assumption { at, value, fact, .. }) in assumptions.iter().enumerate() {
        let (inst, value, bits) = (at.inst(), *value, fact.bits());
        if !base.has_inst(inst) {
            return Err(SpeculateError::NoSuchPoint { assumption, inst });
        }
        let is_reached = cfg.is_reachable(base.inst_block(inst));
        // Dominance says nothing about code that no run reaches.
        if !base.has_value(value) || (is_reached && !dom.available_at(base, value, *at)) {
            return Err(SpeculateError::NotAvailable { assumption, value });
        }
        let ty = base.value_type(value);
        if bits & !ty.mask() != 0 {
            return Err(SpeculateError::DoesNotFit { assumption, bits, ty });
        }
        if matches!(fact, Fact::IsNot(_)) && !ty.is_int() {
            return Err(SpeculateError::NotComparable { assumption, ty });
        }
    }
    Ok(())
}

/// One try to make a version with all of a list of assumptions.
struct Speculation {
    tree: VersionTree,
    /// The optimized version.
    last: Version,
    /// By assumption: its instruction.
    insts: Vec<Inst>,
    forward: Checked<Mapping>,
    backward: Checked<Mapping>,
}

impl Speculation {
    fn new(
        module: &Module,
        base: &Function,
        assumptions: &[Assumption],
        pipeline: &Pipeline,
    ) -> Speculation {
        let unlimited = || Fuel::UNLIMITED.clone();
        let (assuming, mut log) =
            apply(base, &Speculate { assumptions }, &mut unlimited()).into_parts();
        let insts = added(&log);
        let (assuming, refined) = apply(&assuming, &Refine, &mut unlimited()).into_parts();
        log.extend(refined);
        let optimized = derive(module, &assuming, pipeline, Vigilance::Off, &mut NoObserver);
        let mut tree = VersionTree::new(base.clone());
        let own = "the log leads to the version derived";
        let middle = tree.add(VersionTree::BASE, assuming, log).expect(own);
        let last = tree.add(middle, optimized.function, optimized.log).expect(own);
        let [forward, backward] = mappings(module, &tree, [VersionTree::BASE, middle, last]);
        Speculation { tree, last, insts, forward, backward }
    }

    fn optimized(&self) -> &Function {
        self.tree.function(self.last)
    }

    /// The indices of the assumptions that the optimized version makes and that have no exit.
    fn without_exit(&self) -> BTreeSet<usize> {
        let cfg = Cfg::new(self.optimized());
        let f = self.optimized();
        let lacks = |inst: Inst| {
            f.has_inst(inst)
                && cfg.is_reachable(f.inst_block(inst))
                && self.backward.entry(Point::before(inst)).is_none()
        };
        let all = self.insts.iter().enumerate();
        all.filter(|(_, inst)| lacks(**inst)).map(|(index, _)| index).collect()
    }

    fn finish(self, made: &[Assumption], dropped: Vec<(Assumption, Dropped)>) -> Speculative {
        let f = self.optimized();
        let cfg = Cfg::new(f);
        // In code that no run reaches, an assumption never fails, and has no exit.
        let is_made = |inst: Inst| f.has_inst(inst) && cfg.is_reachable(f.inst_block(inst));
        let all = made.iter().copied().zip(self.insts.iter().copied());
        let (stays, goes): (Vec<_>, Vec<_>) = all.partition(|(_, inst)| is_made(*inst));
        let exits = stays.into_iter().map(|(assumption, inst)| Exit { assumption, inst });
        Speculative {
            exits: exits.collect(),
            settled: goes.into_iter().map(|(assumption, _)| assumption).collect(),
            dropped,
            tree: self.tree,
            forward: self.forward,
            backward: self.backward,
        }
    }
}

/// The instructions of the assumptions that a log adds, in order.
fn added(log: &ActionLog) -> Vec<Inst> {
    let adds = log.actions().iter().filter_map(|action| match action.kind() {
        ActionKind::Add { inst, data, .. } if data.opcode == Opcode::Assume => Some(*inst),
        _ => None,
    });
    adds.collect()
}

/// The accepted mappings between the first and the last of three versions, both ways.
fn mappings(module: &Module, tree: &VersionTree, row: [Version; 3]) -> [Checked<Mapping>; 2] {
    let [base, middle, last] = row;
    let pairs = [(base, middle), (middle, last)];
    let mut graph = VersionGraph::build(tree, &pairs, Level::Avail, Demand::default())
        .expect("each version is derived from the one before");
    for path in [[base, middle, last], [last, middle, base]] {
        graph.add_composed(&path).expect("the graph has the edges of the path");
    }
    let CertifiedGraph { mut mappings, .. } = certify_graph(module, &mut graph, &mut NoObserver);
    let backward = mappings.pop().expect("an edge was added last");
    let forward = mappings.pop().expect("an edge was added before it");
    [forward, backward]
}
