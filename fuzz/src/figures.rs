//! What a campaign did.

use super::native::NativeFigures;
use super::oracle::Oracle;
use std::collections::BTreeMap;
use verify::hops::HopReport;
use verify::state_oracle::Report;

/// What a pass did over all programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PassFigures {
    /// Programs it was run on.
    pub programs: u64,
    /// Of these, programs in which it did something.
    pub acted: u64,
    /// Actions it logged.
    pub actions: u64,
}

/// What was done, over any number of programs. Counts only, so that they add up in any order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Figures {
    /// Programs.
    pub programs: u64,
    /// Programs that no pass changed.
    pub unchanged: u64,
    /// Inputs (modules) that are no program for this compiler and were left out.
    pub refused: u64,
    /// By number of versions: programs.
    pub versions: BTreeMap<usize, u64>,
    /// By name of the pass.
    pub passes: BTreeMap<&'static str, PassFigures>,
    /// Pairs of versions of a function between which mappings were made.
    pub pairs: u64,
    /// Reachable points of both versions of all pairs.
    pub points: u64,
    /// Of these, with an entry.
    pub entries: u64,
    /// Entries under the state oracle, composed ones included.
    pub armed: u64,
    /// Of these, entries that fired at least once: (point x pair) coverage.
    pub fired: u64,
    /// Entries whose certificates the checker accepts.
    pub certified: u64,
    /// Entries that start in code proved never to run: nothing is claimed.
    pub unreached: u64,
    /// Pairs of versions whose certificate the checker refutes; their entries count as dropped.
    pub unrelated: u64,
    /// Entries that it drops, by name of the check that fails.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Points from which mappings compose along the whole chain of versions.
    pub composed: u64,
    /// Points from which the first mapping has an entry and the chain has none.
    pub not_composed: u64,
    /// Comparisons of composed, rebuilt and direct entries that land at the same point.
    pub same_point: u64,
    /// Such entries that do not.
    pub other_point: u64,
    /// What the state oracle did, without what it found.
    pub state: Report,
    /// What chains of random transitions did, without what they found.
    pub hops: HopReport,
    /// Runs with the transitions of a stress switch.
    pub stressed: u64,
    /// Transitions made in them.
    pub stress_hops: u64,
    /// Such runs that a limit ended.
    pub stressed_exhausted: u64,
    /// What was done in native code.
    pub native: NativeFigures,
    /// By oracle: programs in which it found something.
    pub findings: BTreeMap<Oracle, u64>,
}

impl Figures {
    /// The transitions compared, in both directions, by the interpreter and in native code.
    pub fn transitions(&self) -> u64 {
        let native = self.native.transitions;
        self.state.total().transitions + native
    }

    /// Whether an oracle was asked: native code by itself, or all the others. A report names those
    /// that were not, so that nobody takes silence for a verdict.
    pub fn asked(&self, oracle: Oracle) -> bool {
        let native = self.native.runs > 0;
        let found = |oracle: Oracle| self.findings.contains_key(&oracle);
        match oracle {
            Oracle::Panic | Oracle::Ssa => true,
            Oracle::Native => native || found(Oracle::Native),
            _ => !native && !found(Oracle::Native),
        }
    }

    /// Entries that the checker drops.
    pub fn dropped(&self) -> u64 {
        self.dropped.values().sum()
    }

    /// Programs in which something was found.
    pub fn divergences(&self) -> u64 {
        self.findings.values().sum()
    }

    /// Adds the figures of other programs.
    pub fn add(&mut self, other: &Figures) {
        self.programs += other.programs;
        self.unchanged += other.unchanged;
        self.refused += other.refused;
        other.versions.iter().for_each(|(n, count)| *self.versions.entry(*n).or_default() += count);
        for (name, figures) in &other.passes {
            let sum = self.passes.entry(name).or_default();
            sum.programs += figures.programs;
            sum.acted += figures.acted;
            sum.actions += figures.actions;
        }
        self.pairs += other.pairs;
        self.points += other.points;
        self.entries += other.entries;
        self.armed += other.armed;
        self.fired += other.fired;
        self.certified += other.certified;
        self.unrelated += other.unrelated;
        self.unreached += other.unreached;
        other
            .dropped
            .iter()
            .for_each(|(check, count)| *self.dropped.entry(check).or_default() += count);
        self.composed += other.composed;
        self.not_composed += other.not_composed;
        self.same_point += other.same_point;
        self.other_point += other.other_point;
        self.state.add(&other.state);
        self.hops.add(&other.hops);
        self.stressed += other.stressed;
        self.stress_hops += other.stress_hops;
        self.stressed_exhausted += other.stressed_exhausted;
        self.native.add(&other.native);
        other
            .findings
            .iter()
            .for_each(|(oracle, count)| *self.findings.entry(*oracle).or_default() += count);
    }

    /// Counts the passes of one program, with the actions of each.
    pub(super) fn count_passes(&mut self, acted: &BTreeMap<&'static str, u64>) {
        for (name, actions) in acted {
            let pass = self.passes.entry(name).or_default();
            pass.programs += 1;
            pass.acted += u64::from(*actions > 0);
            pass.actions += actions;
        }
        self.unchanged += u64::from(acted.values().all(|actions| *actions == 0));
    }

    /// The floors that the figures of many generated programs must not fall below, and do: what the
    /// judges do not get to see they cannot judge. Each as a sentence; none when all is well.
    pub fn below_floors(&self) -> Vec<String> {
        let total = self.state.total();
        let share = |part: u64, all: u64| if all == 0 { 0.0 } else { part as f64 / all as f64 };
        let mut below = Vec::new();
        let mut floor = |what: &str, found: f64, least: f64| {
            if found < least {
                below.push(format!("{what}: {found:.3}, must be at least {least}"));
            }
        };
        floor("transitions that run code", share(total.with_code, total.transitions), 0.30);
        floor("transitions inside loops", share(total.in_loops, total.transitions), 0.50);
        floor("values compared in a transition", share(total.compared, total.transitions), 6.0);
        for (name, pass) in &self.passes {
            floor(&format!("programs that {name} acts on"), share(pass.acted, pass.programs), 0.50);
        }
        below
    }
}
