//! The claim that a function is a continuation, for the checker ([`check::continuation`]).
//!
//! The maker knows the original of each instruction, each block and each block parameter. It finds
//! the environments by a forward analysis: an environment holds the facts that all edges to its
//! block agree on, as far as code of the function still reads them, or runs take them out of it.
//!
//! Cost: one liveness analysis, times the rounds. Loops that redefine their own inputs take several
//! rounds.

use ir::cfg::Cfg;
use ir::liveness::Liveness;
use ir::{Block, FrameStates, Function, Inst, Value};
use std::collections::{BTreeMap, BTreeSet};
use transition::copy::{ContinuationClaim, Environment, FrameBlock};

/// The originals of the parts of a continuation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    /// The steps that the entry block executes, by index, ascending.
    pub(crate) steps: Vec<u32>,
    /// By instruction: its instruction in the frame's version.
    pub(crate) insts: BTreeMap<Inst, Inst>,
    /// By block but the entry block: the frame, and the instruction of its version that it begins
    /// at.
    pub(crate) blocks: BTreeMap<Block, (usize, Inst)>,
    /// By block parameter: the frame, and the value of its version.
    pub(crate) params: BTreeMap<Value, (usize, Value)>,
}

impl Draft {
    /// The claim about a function whose compensation code ends with this environment. `versions`
    /// are the versions of the frames.
    pub(crate) fn claim(
        self,
        function: &Function,
        versions: &[&Function],
        start: Environment,
        taken_out: &FrameStates,
    ) -> ContinuationClaim {
        let environments = Environments::new(function, versions, &self, start, taken_out).found;
        let block = |(block, (frame, at)): (&Block, &(usize, Inst))| {
            let values = environments.get(block).cloned().unwrap_or_default();
            (*block, FrameBlock { frame: *frame, at: *at, values })
        };
        let blocks = self.blocks.iter().map(block).collect();
        ContinuationClaim { steps: self.steps, insts: self.insts, blocks }
    }
}

/// The forward analysis. See the module documentation.
struct Environments<'a> {
    function: &'a Function,
    versions: &'a [&'a Function],
    draft: &'a Draft,
    live: Liveness,
    /// By block that an edge has reached: the environment common to all such edges.
    found: BTreeMap<Block, Environment>,
}

impl<'a> Environments<'a> {
    fn new(
        function: &'a Function,
        versions: &'a [&'a Function],
        draft: &'a Draft,
        start: Environment,
        taken_out: &FrameStates,
    ) -> Environments<'a> {
        let cfg = Cfg::new(function);
        let named = taken_out.iter().map(|(at, state)| (at.inst(), state.values().collect()));
        let live = Liveness::with_extra_uses(function, &cfg, &named.collect());
        let found = BTreeMap::from([(function.entry(), start)]);
        let mut all = Environments { function, versions, draft, live, found };
        // In reverse postorder, so that a block follows the blocks that lead forward to it.
        let number = |block: Block| cfg.rpo_index(block).expect("an edge reaches it");
        let mut open = BTreeSet::from([0]);
        while let Some(next) = open.pop_first() {
            open.extend(all.leave(cfg.rpo()[next]).into_iter().map(number));
        }
        all
    }

    /// Propagates the environment of a block to its successors, and returns the successors whose
    /// environment has changed.
    fn leave(&mut self, block: Block) -> Vec<Block> {
        let frame = self.draft.blocks.get(&block).map_or(0, |(frame, _)| *frame);
        let mut values = self.found[&block].clone();
        for inst in self.function.block_insts(block) {
            if let Some(of) = self.draft.insts.get(&inst) {
                let originals = &self.versions[frame].inst(*of).results;
                let results = &self.function.inst(inst).results;
                values.extend(originals.iter().map(|of| (frame, *of)).zip(results.iter().copied()));
            }
        }
        let mut changed = Vec::new();
        for target in self.function.successors(block) {
            let live = self.live.live_in(target.block);
            let mut there: Environment = values
                .iter()
                .filter(|(_, v)| live.contains(**v))
                .map(|(of, v)| (*of, *v))
                .collect();
            for param in self.function.block_params(target.block) {
                if let Some(of) = self.draft.params.get(param) {
                    there.insert(*of, *param);
                }
            }
            match self.found.get_mut(&target.block) {
                None => {
                    self.found.insert(target.block, there);
                    changed.push(target.block);
                }
                Some(known) => {
                    let before = known.len();
                    known.retain(|of, value| there.get(of) == Some(value));
                    if known.len() < before {
                        changed.push(target.block);
                    }
                }
            }
        }
        changed
    }
}
