//! One try to optimize a copy with all assumptions of a list, and to prove the mappings into the
//! version and out of the version.

use super::assumed::{CopiedAssumptions, InlinedAssumptions, InlinedExit, PlacedAssumption};
use super::exits::{copied_states, has_places, reached};
use super::row::InliningRow;
use super::ways::{InliningWays, ProvedWays};
use super::{CalleeLandings, InlinePlan, Inlined, InlinedRetry, LeftOut};
use crate::driver::{
    Derived, Observer, Recipe, StatePoints, Vigilance, derive_with_states, derive_within,
};
use crate::speculate::{
    Assumption, MadeExit, MissingExit, SpeculationSearch, TriedAssumption, assume, optimize, sort,
};
use check::{Checked, Copies};
use ir::edit::Fuel;
use ir::{Inst, Module, Opcode, Point};
use osr::{Level, Version, VersionTree};
use passes::Pipeline;
use std::collections::BTreeSet;

/// The passes behind the inlining, in one try.
#[derive(Clone, Copy)]
pub(super) struct LastPasses<'a> {
    /// The assumptions that come first.
    pub(super) made: &'a [TriedAssumption],
    pub(super) passes: &'a Pipeline,
    /// The rewrites that they leave out.
    pub(super) left_out: &'a LeftOut,
}

impl LastPasses<'_> {
    /// Runs the passes behind an inlining that assumes nothing. Returns the number of rewrites left
    /// out, too.
    fn run(
        self,
        module: &Module,
        row: &InliningRow,
        copies: &Copies,
        plan: &InlinePlan,
        observer: &mut dyn Observer,
    ) -> (Derived, u64) {
        let LastPasses { passes, left_out, .. } = self;
        let vigilance = Vigilance::On;
        if !has_places(copies, plan) {
            let mut fuel = Fuel::UNLIMITED.without(left_out.behind.iter().cloned());
            let made = derive_within(module, row.copy(), passes, vigilance, &mut fuel, observer);
            return (made, fuel.refused());
        }
        let (states, exits) = copied_states(module, row, copies, plan);
        let points = StatePoints { states: &states, entrances: &BTreeSet::new(), exits: &exits };
        let recipe = Recipe { retry: plan.retry, ..Recipe::new(passes, &[Level::Avail]) };
        let made = derive_with_states(module, row.copy(), points, &recipe, observer);
        let made = made.expect("the states and places fit, as was checked");
        (made.derived, made.retried.refused)
    }
}

/// The versions of one try, and the ways between them and the bases that the checker accepted.
pub(super) struct InliningAttempt {
    tree: VersionTree,
    optimized: Version,
    made: Vec<MadeExit>,
    settled: Vec<Assumption>,
    proved: ProvedWays,
    /// The exits of the plan that runs of the optimized version reach.
    exits: BTreeSet<Point>,
    /// The number of rewrites behind the inlining that were left out.
    refused: u64,
}

impl InliningAttempt {
    pub(super) fn new(
        module: &Module,
        row: &InliningRow,
        copies: &Checked<Copies>,
        plan: &InlinePlan,
        last: LastPasses<'_>,
        landings: &CalleeLandings<'_>,
        observer: &mut dyn Observer,
    ) -> InliningAttempt {
        let LastPasses { made, passes, .. } = last;
        let mut tree = row.tree.clone();
        let own = "the log leads to the version derived";
        let mut refused = 0;
        let (assuming, insts, optimized) = if made.is_empty() {
            let (last, omitted) = last.run(module, row, copies, plan, observer);
            refused = omitted;
            let optimized = tree.add_replayed(row.copy, last.function, last.log);
            (row.copy, Vec::new(), optimized)
        } else {
            let (assuming, log, insts) = assume(row.copy(), made);
            let (last, to_last) = optimize(module, &assuming, passes);
            let assuming = tree.add(row.copy, assuming, log).expect(own);
            (assuming, insts, tree.add(assuming, last, to_last).expect(own))
        };
        let reached = reached(tree.function(optimized), copies, plan);
        if has_places(copies, plan) {
            let f = tree.function(optimized);
            let assumes = f.all_insts().filter(|inst| f.inst(*inst).opcode == Opcode::Assume);
            let leaves = assumes.map(Point::before).chain(reached.iter().copied()).collect();
            tree.leave_at(optimized, leaves);
        }
        let (exits, settled) = sort(&tree, row.copy, optimized, made, &insts);
        let ways = InliningWays::new(module, row, copies, &tree, [assuming, optimized], observer);
        let proved = ways.prove(module, copies, &exits, landings, observer);
        let (made, exits) = (exits, reached);
        InliningAttempt { tree, optimized, made, settled, proved, exits, refused }
    }

    /// The assumptions of the optimized version without an exit.
    pub(super) fn without_exit(&self) -> &[MissingExit] {
        &self.proved.without_exit
    }

    /// The instructions of all versions.
    pub(super) fn work(&self) -> u64 {
        self.tree.versions().map(|version| self.tree.function(version).inst_count() as u64).sum()
    }

    pub(super) fn publish(
        self,
        row: &InliningRow,
        copies: Checked<Copies>,
        copied: &CopiedAssumptions,
        search: SpeculationSearch,
    ) -> Inlined {
        let assumptions = assumptions(row, copied, &search, self.made, self.settled);
        let refused = row.refused + self.refused;
        let ProvedWays { up, down, pairs, missing, points, unreachable, events, counts, .. } =
            self.proved;
        Inlined {
            tree: self.tree,
            cleaned: row.cleaned,
            copy: row.copy,
            optimized: self.optimized,
            copies,
            up,
            down,
            pairs,
            missing,
            points,
            unreachable,
            events,
            exits: self.exits,
            removed_objects: row.removed,
            assumptions,
            checked: counts,
            retried: InlinedRetry { refused, ..InlinedRetry::default() },
        }
    }
}

/// The outcome of the assumptions, in terms of the bases.
fn assumptions(
    row: &InliningRow,
    copied: &CopiedAssumptions,
    search: &SpeculationSearch,
    made: Vec<MadeExit>,
    settled: Vec<Assumption>,
) -> InlinedAssumptions {
    let own = |assumption| PlacedAssumption { instance: 0, assumption };
    let first = row.assumed.as_ref();
    // The assumption made before the inlining by an instruction.
    let earlier = |inst: Inst| {
        let exit = first?.exits.iter().find(|exit| exit.inst == inst)?;
        Some((exit.assumption.map(own), exit.pins.clone()))
    };
    let exit = |MadeExit { exit, index }: MadeExit| {
        let tried = index.map(|index| &search.made[index]);
        let repeated = tried.filter(|tried| tried.is_repeated);
        // A repeated assumption stands before the assumption that it repeats.
        let of = repeated.map_or(exit.inst, |tried| tried.pinned.assumption.at.inst());
        let (mut assumption, mut pins) = earlier(of).unwrap_or_default();
        if let Some(made) = &exit.assumption {
            assumption = copied.placed(made);
        }
        pins.extend(exit.pins);
        (of, InlinedExit { inst: exit.inst, assumption, pins })
    };
    let exits: Vec<(Inst, InlinedExit)> = made.into_iter().map(exit).collect();
    let is_made = |inst: Inst| exits.iter().any(|(of, _)| *of == inst);
    let gone = first.into_iter().flat_map(|first| &first.exits);
    let gone = gone.filter(|exit| !is_made(exit.inst)).filter_map(|exit| exit.assumption);
    let settled_first = first.into_iter().flat_map(|first| first.settled.iter().copied());
    let settled = settled.iter().filter_map(|one| copied.placed(one));
    let dropped_first = first.into_iter().flat_map(|first| first.dropped.iter().copied());
    let dropped = search.dropped.iter().filter_map(|(one, why)| Some((copied.placed(one)?, *why)));
    InlinedAssumptions {
        settled: settled_first.chain(gone).map(own).chain(settled).collect(),
        dropped: dropped_first
            .map(|(one, why)| (own(one), why))
            .chain(copied.dropped.iter().copied())
            .chain(dropped)
            .collect(),
        exits: exits.into_iter().map(|(_, exit)| exit).collect(),
    }
}
