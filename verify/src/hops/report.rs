//! The report of chains: counts, and divergences.

use crate::state_oracle::EntryFault;
use ir::{Func, Point, Value};
use std::fmt;

/// One transition of a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// The function.
    pub func: Func,
    /// The index of its edge in the graph of the function.
    pub edge: usize,
    /// The number of visits of points with entries, of any function, since the previous hop or the
    /// start.
    pub wait: u64,
    /// The source version, as an index of the versions of the graph.
    pub from: usize,
    /// The target version, as another index of the versions of the graph.
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
            "{func}: after {wait} visits, from {point} of version {from} to {target} of version {to} (edge {edge})"
        )
    }
}

/// The difference between a chain and the run without hops.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HopDifference {
    /// The entry has a fault regardless of the run.
    Entry(EntryFault),
    /// The entry does not provide a value that is live at its target point, or that an entry of its
    /// target version requires. Found without a run.
    NotProvided {
        /// The value.
        value: Value,
    },
    /// The entry of the last hop requires a value that has no contents.
    Undefined {
        /// The value.
        value: Value,
    },
    /// The compensation code of the last hop failed.
    Compensation(String),
    /// The machine refused the last hop.
    Refused(String),
    /// Result, memory or effects differ at the end.
    End {
        /// The end of the run without hops.
        expected: String,
        /// The end of the chain.
        found: String,
    },
}

impl fmt::Display for HopDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HopDifference::Entry(fault) => write!(f, "{fault}"),
            HopDifference::NotProvided { value } => {
                write!(f, "{value} is not provided, but live or required at the target point")
            }
            HopDifference::Undefined { value } => {
                write!(f, "the entry requires {value}, which has no contents")
            }
            HopDifference::Compensation(fault) => write!(f, "{fault}"),
            HopDifference::Refused(reason) => write!(f, "the machine refused the hop: {reason}"),
            HopDifference::End { expected, found } => {
                write!(f, "the chain ends in {found}; without hops, the run ends in {expected}")
            }
        }
    }
}

/// A chain that does not end as it should, or an entry with a fault found without a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HopDivergence {
    /// The arguments of the run, as bits; empty if the divergence was found without a run.
    pub input: Vec<u64>,
    /// All hops of the chain; the last may be the failing hop. Without a run: the entry alone.
    pub hops: Vec<Hop>,
    /// The difference.
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

/// Counts and divergences, summed over any number of runs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HopReport {
    /// Inputs run.
    pub runs: u64,
    /// Runs that a trap of the program ended.
    pub trapped: u64,
    /// Runs that visit no point with an entry.
    pub without_entries: u64,
    /// Chains run.
    pub chains: u64,
    /// Chains with at least [`super::FULL_CHAIN`] hops.
    pub full_chains: u64,
    /// Chains that a limit ended, so that nothing was compared.
    pub exhausted: u64,
    /// Hops of all chains.
    pub hops: u64,
    /// Hops of the longest chain.
    pub longest: u64,
    /// All divergences found, kept or not.
    pub divergence_count: u64,
    /// The first divergences, up to the limit of the options.
    pub divergences: Vec<HopDivergence>,
}

impl HopReport {
    /// Adds the counts of another report, and keeps all its divergences.
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
