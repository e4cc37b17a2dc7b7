//! What chains did and found.

use crate::state_oracle::Fault;
use ir::{Func, Point, Value};
use std::fmt;

/// One transition of a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// The function.
    pub func: Func,
    /// The index of the edge taken, in the graph of the function.
    pub edge: usize,
    /// Visits of points with entries, of any function, that passed since the hop before or the
    /// start.
    pub wait: u64,
    /// The version it left, as an index of those of the graph.
    pub from: usize,
    /// The version it led to.
    pub to: usize,
    /// The source point.
    pub point: Point,
    /// The target point.
    pub target: Point,
}

impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Hop { func, edge, wait, from, to, point, target } = self;
        let (point, target) = (point.inst(), target.inst());
        write!(
            f,
            "{func}: after {wait} visits from version {from}, {point}, to version {to}, {target} (edge {edge})"
        )
    }
}

/// In what a chain differs from a run without hops.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HopDifference {
    /// The entry is wrong whatever the run.
    Entry(Fault),
    /// The entry does not provide a value that is live where it lands, or that an entry which
    /// leaves its target version requires. Found without a run.
    NotProvided {
        /// The value.
        value: Value,
    },
    /// The entry of the last hop requires a value that was never given any contents.
    Undefined {
        /// The value.
        value: Value,
    },
    /// The compensation code of the last hop failed.
    Compensation(String),
    /// The machine refused the last hop.
    Refused(String),
    /// Result, memory or effects at the end differ.
    End {
        /// How the run without hops ended.
        expected: String,
        /// How the chain ended.
        found: String,
    },
}

impl fmt::Display for HopDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HopDifference::Entry(fault) => write!(f, "{fault}"),
            HopDifference::NotProvided { value } => {
                write!(f, "{value} is live or required at the target point and not provided")
            }
            HopDifference::Undefined { value } => write!(f, "{value} is required and undefined"),
            HopDifference::Compensation(fault) => write!(f, "{fault}"),
            HopDifference::Refused(reason) => write!(f, "the transition was refused: {reason}"),
            HopDifference::End { expected, found } => {
                write!(f, "the chain ends in {found}; without hops the run ends in {expected}")
            }
        }
    }
}

/// A chain that does not end as it should, or an entry that is wrong without a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HopDivergence {
    /// The arguments of the run, as bits; empty when it took no run.
    pub input: Vec<u64>,
    /// The hops up to the end, or the one that went wrong; without a run, the entry alone.
    pub hops: Vec<Hop>,
    /// In what.
    pub difference: HopDifference,
}

impl fmt::Display for HopDivergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for hop in &self.hops {
            writeln!(f, "  {hop}")?;
        }
        write!(f, "  {}\n  on input (", self.difference)?;
        for (index, bits) in self.input.iter().enumerate() {
            write!(f, "{}{bits:#x}", if index == 0 { "" } else { ", " })?;
        }
        f.write_str(")")
    }
}

/// What was done and found, over any number of runs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HopReport {
    /// Inputs run.
    pub runs: u64,
    /// Of these, ended by a trap of the program.
    pub trapped: u64,
    /// Of these, that visit no point with an entry.
    pub without_entries: u64,
    /// Chains run.
    pub chains: u64,
    /// Of these, with at least [`super::FULL_CHAIN`] hops.
    pub full_chains: u64,
    /// Of these, ended by a limit, so that nothing was compared.
    pub exhausted: u64,
    /// Hops of all chains.
    pub hops: u64,
    /// Hops of the longest.
    pub longest: u64,
    /// Divergences found, those not kept included.
    pub divergence_count: u64,
    /// The first ones, up to the limit asked for.
    pub divergences: Vec<HopDivergence>,
}

impl HopReport {
    /// Adds what another runner did; divergences are all kept.
    pub fn add(&mut self, other: &HopReport) {
        self.runs += other.runs;
        self.trapped += other.trapped;
        self.without_entries += other.without_entries;
        self.chains += other.chains;
        self.full_chains += other.full_chains;
        self.exhausted += other.exhausted;
        self.hops += other.hops;
        self.longest = self.longest.max(other.longest);
        self.divergence_count += other.divergence_count;
        self.divergences.extend(other.divergences.iter().cloned());
    }
}
