//! Counts the work of a campaign, with floors that the counts of generated programs must reach.

use super::inlining::JudgedInlining;
use super::native::NativeFigures;
use super::oracle::FuzzOracle;
use super::speculation::JudgedAssumptions;
use std::collections::BTreeMap;
use verify::hops::HopReport;
use verify::state_oracle::Report;

/// Counts for one pass over all programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PassFigures {
    /// The number of programs that the pass ran on.
    pub programs: u64,
    /// The number of these programs in which the pass logged an action.
    pub acted: u64,
    /// The number of actions that the pass logged.
    pub actions: u64,
}

/// Counts over any number of programs. Counts only, so that figures add up in any order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Figures {
    /// The number of programs.
    pub programs: u64,
    /// The number of programs that no pass changed.
    pub unchanged: u64,
    /// The number of inputs (modules) that are not programs for this compiler.
    pub refused: u64,
    /// The number of programs, by number of versions.
    pub versions: BTreeMap<usize, u64>,
    /// The figures of each pass, by its name.
    pub passes: BTreeMap<&'static str, PassFigures>,
    /// The number of pairs of versions of a function with mappings.
    pub pairs: u64,
    /// The number of reachable points, of both versions of all pairs.
    pub points: u64,
    /// The number of these points with an entry.
    pub entries: u64,
    /// The number of entries that the state oracle can fire, composed ones included.
    pub armed: u64,
    /// The number of these entries that fired at least once: coverage in pairs of point and
    /// versions.
    pub fired: u64,
    /// The number of entries that the checker accepts.
    pub certified: u64,
    /// The number of entries at unreachable points, for which the checker claims nothing.
    pub unreached: u64,
    /// The number of pairs of versions whose certificate the checker refutes, in whole or at an
    /// anchor. The entries that this costs count as dropped.
    pub unrelated: u64,
    /// The number of entries that the checker drops, by name of the failed check.
    pub dropped: BTreeMap<&'static str, u64>,
    /// The number of pairs with dropped entries. For each, the driver made the later version again
    /// without the rewrites to blame.
    pub retried: u64,
    /// The number of rewrites that it gave up there.
    pub given_up: u64,
    /// The number of entries of the versions so made that the checker drops.
    pub still_dropped: u64,
    /// The number of entries of the versions so made that the checker accepts.
    pub held_again: u64,
    /// The number of points with a composed entry along the whole chain of versions.
    pub composed: u64,
    /// The number of points with an entry in the first mapping of the chain but no composed entry.
    pub not_composed: u64,
    /// The number of comparisons of composed, rebuilt and direct entries that land at the same
    /// point.
    pub same_point: u64,
    /// The number of such entries that land at other points and are not compared.
    pub other_point: u64,
    /// The figures of the state oracle, without its findings.
    pub state: Report,
    /// The figures of chains of random transitions, without their findings.
    pub hops: HopReport,
    /// The number of runs with transitions of a stress switch.
    pub stressed: u64,
    /// The number of transitions in these runs.
    pub stress_hops: u64,
    /// The number of these runs that a limit ended.
    pub stressed_exhausted: u64,
    /// The figures of speculative versions.
    pub speculation: JudgedAssumptions,
    /// The figures of versions with inlined code.
    pub inlining: JudgedInlining,
    /// The figures of native code.
    pub native: NativeFigures,
    /// The number of programs with findings, by oracle.
    pub findings: BTreeMap<FuzzOracle, u64>,
}

impl Figures {
    /// The number of compared transitions in both directions, by the interpreter and in native
    /// code, those of speculative versions included.
    pub fn transitions(&self) -> u64 {
        let native = self.native.transitions + self.native.left_inlined;
        let speculation = self.speculation.state.total().transitions;
        let inlining = self.inlining.frames.transitions();
        self.state.total().transitions + speculation + inlining + native
    }

    /// Whether an oracle ran. [`FuzzOracle::Panic`] always runs. Of the others a campaign runs the
    /// speculation oracle or the inlining oracle alone, or [`FuzzOracle::Ssa`] with either the
    /// native oracle or all the rest. Reports name oracles that did not run, so that their silence
    /// is not mistaken for a verdict.
    pub fn asked(&self, oracle: FuzzOracle) -> bool {
        let native = self.native.runs > 0;
        let speculation = self.speculation.wanted > 0;
        let found = |oracle: FuzzOracle| self.findings.contains_key(&oracle);
        match oracle {
            FuzzOracle::Panic => true,
            FuzzOracle::Speculation => speculation || found(oracle),
            FuzzOracle::Inlining => self.inlining.versions > 0 || found(oracle),
            FuzzOracle::Native => native || found(FuzzOracle::Native),
            FuzzOracle::Ssa if native => !self.passes.is_empty(),
            _ => found(oracle) || !(native || found(FuzzOracle::Native) || self.is_only_one()),
        }
    }

    /// Whether the speculation oracle or the inlining oracle alone judged the programs.
    pub(super) fn is_only_one(&self) -> bool {
        let judged = self.speculation.wanted + self.inlining.versions;
        judged > 0 && self.passes.is_empty()
    }

    /// The number of entries that the checker drops.
    pub fn dropped(&self) -> u64 {
        self.dropped.values().sum()
    }

    /// The number of programs with findings.
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
        self.retried += other.retried;
        self.given_up += other.given_up;
        self.still_dropped += other.still_dropped;
        self.held_again += other.held_again;
        self.composed += other.composed;
        self.not_composed += other.not_composed;
        self.same_point += other.same_point;
        self.other_point += other.other_point;
        self.state.add(&other.state);
        self.hops.add(&other.hops);
        self.stressed += other.stressed;
        self.stress_hops += other.stress_hops;
        self.stressed_exhausted += other.stressed_exhausted;
        self.speculation.add(&other.speculation);
        self.inlining.add(&other.inlining);
        self.native.add(&other.native);
        other
            .findings
            .iter()
            .for_each(|(oracle, count)| *self.findings.entry(*oracle).or_default() += count);
    }

    /// Counts the passes of one program. `acted` holds the number of actions of each.
    pub(super) fn count_passes(&mut self, acted: &BTreeMap<&'static str, u64>) {
        for (name, actions) in acted {
            let pass = self.passes.entry(name).or_default();
            pass.programs += 1;
            pass.acted += u64::from(*actions > 0);
            pass.actions += actions;
        }
        self.unchanged += u64::from(acted.values().all(|actions| *actions == 0));
    }

    /// The floors that these figures fall below, as sentences. Floors apply to campaigns over many
    /// generated programs: oracles find no bugs in transitions that never happen.
    pub fn below_floors(&self) -> Vec<String> {
        if self.native.runs > 0 {
            return self.below_native_floors();
        }
        let total = self.state.total();
        let mut below = Vec::new();
        let mut floor = |what: &str, found: f64, least: f64| {
            below.extend(below_floor(what, found, least));
        };
        if !self.is_only_one() {
            floor("transitions that run code", share(total.with_code, total.transitions), 0.30);
            floor("transitions inside loops", share(total.in_loops, total.transitions), 0.50);
            floor("values compared in a transition", share(total.compared, total.transitions), 6.0);
        }
        let made = self.speculation.made;
        let failing = if made == 0 { 1.0 } else { share(self.speculation.failing, made) };
        floor("assumptions seen failing", failing, 0.30);
        for (name, pass) in &self.passes {
            floor(&format!("programs that {name} acts on"), share(pass.acted, pass.programs), 0.50);
        }
        below
    }

    /// The floor for NaNs of the processor, if these figures fall below it: programs whose values
    /// all have the bits of the interpreter's show nothing.
    pub fn below_nan_floor(&self) -> Option<String> {
        let found = share(self.native.nans, self.programs);
        below_floor("values of a program that agree but for the bits of NaNs", found, 2.0)
    }

    /// As [`Figures::below_floors`], for campaigns of the native oracle: it does not see a bug of
    /// tiering in programs that never enter code which came late.
    fn below_native_floors(&self) -> Vec<String> {
        let native = &self.native;
        let mut floors = Vec::new();
        if native.assumptions > 0 {
            floors.push(("exits of an assumption", share(native.exits, native.assumptions), 5.0));
        }
        // Otherwise one of the other judges was asked alone.
        if !self.passes.is_empty() {
            let tiered = |part: u64| share(part, native.tiered);
            floors.extend([
                ("transitions of a program", share(native.transitions, self.programs), 500.0),
                ("programs in tiers", share(native.tiered, self.programs), 0.6),
                ("late pieces of code of a program in tiers", tiered(native.late), 1.5),
                ("visits by which code came late", share(native.delays, native.late), 1.5),
                ("entries of a program in tiers", tiered(native.entered), 1.0),
                ("exits at flags of other threads", tiered(native.flagged), 2.0),
            ]);
        }
        let below =
            floors.into_iter().filter_map(|(what, found, least)| below_floor(what, found, least));
        below.collect()
    }
}

fn share(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { part as f64 / all as f64 }
}

/// The sentence about a figure below its floor.
fn below_floor(what: &str, found: f64, least: f64) -> Option<String> {
    (found < least).then(|| format!("{what}: {found:.3}, the floor is {least}"))
}
