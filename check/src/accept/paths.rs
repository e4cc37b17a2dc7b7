//! Paths: the way of a version from a point to the next anchor, and the leaves that this path
//! binds.
//!
//! A *path* starts before an instruction and ends before the next anchor, which is an instruction
//! that the certificate lists as such. (The certifier lists the bounding anchors of both versions.)
//! On its way, a path runs through jumps that are no anchors. In this version
//!
//! ```text
//! entry: jump head(%x)
//! head(%i: i32): %r = call @f(%i)
//! ```
//!
//! where the jump is no anchor, the path from the start of `entry` enters `head`, binds the leaf of
//! `%i` to the class of `%x`, and ends before the call. Each block that a path enters is a
//! *crossing*.
//!
//! [`Bindings`] expresses the contents of leaves at the end of a path by classes at its start.

use super::checks::{Check, Finding, Place};
use super::version::{ProvedVersion, Support};
use fixedbitset::FixedBitSet;
use ir::{Block, Edge, Inst};
use smallvec::SmallVec;
use std::borrow::Cow;
use transition::certificate::{NO_TERM, TermId};

/// The largest number of blocks that a path enters. A longer path is not followed, and the anchor
/// that it leaves is unproved. The limit keeps the cost linear, because a path is followed anew
/// from each of its points. The certifier knows the limit (`docs/certificates.md`).
const MAX_CROSSINGS: usize = 256;

/// The largest number of bindings, summed over all paths that are followed. Beyond it, the pair
/// stays undecided (`bindings_of_all_paths_together_are_limited`).
const MAX_WORK: usize = 1 << 26;

/// One block that a path enters.
#[derive(Clone, Debug)]
pub(crate) struct PathCrossing {
    pub(crate) block: Block,
    /// Whether the block has another live predecessor: runs may reach it without this path.
    pub(crate) joins: bool,
    /// The class of the memory at the end of the predecessor.
    memory: TermId,
    /// The leaves that parameters of the block bind, ascending, each with the class of the argument
    /// it receives. [`NO_TERM`] if several edges of one terminator pass arguments of different
    /// classes.
    binds: Vec<(TermId, TermId)>,
}

impl PathCrossing {
    /// The crossing over these edges of one terminator; `None` unless all of them lead to one
    /// block.
    fn over(
        version: &ProvedVersion<'_, '_>,
        mut edges: impl Iterator<Item = Edge>,
    ) -> Option<PathCrossing> {
        let f = version.f;
        let given = |edge: Edge, index: usize| version.class(f.target(edge).args[index]);
        let first = edges.next()?;
        let block = f.target(first).block;
        let params = f.block_params(block).iter().map(|p| version.class(*p)).enumerate();
        let mut leaves: Vec<(usize, TermId)> =
            params.filter(|(_, leaf)| version.is_leaf_of(*leaf, block)).collect();
        // `bits` finds a leaf here by binary search. Parameters that share one leaf are neighbors,
        // and `LeafBinder` has proved that they receive the same class.
        leaves.sort_unstable_by_key(|(_, leaf)| *leaf);
        let mut binds: Vec<_> =
            leaves.iter().map(|(index, leaf)| (*leaf, given(first, *index))).collect();
        // A switch may reach one block over several edges. If they pass different arguments, the
        // contents of the leaf depend on the edge, and no class stands for them.
        for edge in edges {
            if f.target(edge).block != block {
                return None;
            }
            for ((index, _), (_, class)) in leaves.iter().zip(&mut binds) {
                *class = if given(edge, *index) == *class { *class } else { NO_TERM };
            }
        }
        // Only target points need to know whether the block joins paths, and `new` sets
        // this for their paths. `true` is the safe answer: it rejects the target point.
        Some(PathCrossing {
            block,
            joins: true,
            memory: version.memory_at_end(f.inst_block(first.inst)),
            binds,
        })
    }
}

/// The paths of one version, prepared so that following one costs a look-up per block.
pub(crate) struct AnchorPaths {
    /// By instruction index: the next anchor in the block, the instruction itself included.
    next: Vec<Option<Inst>>,
    /// By block index: the crossing at the end of the block, if the terminator is no anchor and
    /// leads to one block alone.
    onward: Vec<Option<PathCrossing>>,
}

type Crossings<'l> = SmallVec<[Cow<'l, PathCrossing>; 2]>;

/// A path to an anchor.
#[derive(Clone, Debug)]
pub(crate) struct AnchorPath<'l> {
    crossings: Crossings<'l>,
    pub(crate) anchor: Inst,
}

impl AnchorPath<'_> {
    /// The blocks that the path enters, in order.
    pub(crate) fn crossings(&self) -> impl Iterator<Item = &PathCrossing> {
        self.crossings.iter().map(|c| &**c)
    }
}

impl AnchorPaths {
    /// Finds the next anchor of every instruction and the crossing at the end of every block. Cost:
    /// linear in instructions and operands.
    pub(crate) fn new(version: &ProvedVersion<'_, '_>, anchors: &FixedBitSet) -> AnchorPaths {
        let f = version.f;
        let mut paths =
            AnchorPaths { next: vec![None; f.inst_bound()], onward: vec![None; f.block_bound()] };
        for &block in version.live().blocks() {
            let end = f.terminator(block);
            // Upward, so that `next` is always the nearest anchor below.
            let (mut at, mut next) = (Some(end), None);
            while let Some(inst) = at {
                next = Some(inst).filter(|i| anchors.contains(i.as_u32() as usize)).or(next);
                paths.next[inst.as_u32() as usize] = next;
                at = f.prev_inst(inst);
            }
            if paths.next_in_block(end).is_none() {
                let crossing = PathCrossing::over(version, version.live_targets(end));
                // The edges of `end` itself lead along this path, so they do not count as other
                // edges into the block.
                let otherwise = |block: Block| version.live_into(block).any(|e| e.inst != end);
                paths.onward[block.as_u32() as usize] =
                    crossing.map(|c| PathCrossing { joins: otherwise(c.block), ..c });
            }
        }
        paths
    }

    fn next_in_block(&self, inst: Inst) -> Option<Inst> {
        self.next.get(inst.as_u32() as usize).copied().flatten()
    }

    /// The path from the point before an instruction; `None` if no anchor follows within the
    /// limits.
    pub(crate) fn from(
        &self,
        version: &ProvedVersion<'_, '_>,
        inst: Inst,
    ) -> Option<AnchorPath<'_>> {
        self.follow(version, Crossings::new(), inst)
    }

    /// The path over an edge, entering its target first. `None` as for `from`.
    pub(crate) fn over(
        &self,
        version: &ProvedVersion<'_, '_>,
        edge: Edge,
    ) -> Option<AnchorPath<'_>> {
        let first = PathCrossing::over(version, std::iter::once(edge))?;
        let at = version.f.first_inst(first.block);
        self.follow(version, Crossings::from_iter([Cow::Owned(first)]), at)
    }

    /// Follows the version from the point before `at`, `crossings` being entered already.
    fn follow<'l>(
        &'l self,
        version: &ProvedVersion<'_, '_>,
        mut crossings: Crossings<'l>,
        mut at: Inst,
    ) -> Option<AnchorPath<'l>> {
        // The crossing of `over` does not count: both kinds of paths may enter the same number of
        // blocks after it.
        let most = crossings.len() + MAX_CROSSINGS;
        loop {
            if let Some(anchor) = self.next_in_block(at) {
                return Some(AnchorPath { crossings, anchor });
            }
            // A terminator with several targets that is no anchor ends the path without one. A
            // path around a loop exceeds the limit.
            let block = version.f.inst_block(at);
            let crossing = self.onward[block.as_u32() as usize].as_ref()?;
            if crossings.len() == most {
                return None;
            }
            at = version.f.first_inst(crossing.block);
            crossings.push(Cow::Borrowed(crossing));
        }
    }
}

/// The contents of leaves at the end of a path, as classes in terms of the leaves at its start.
///
/// Example: a path from the end of a loop body enters `head(%i)` with the argument `%i + 1`. It
/// binds the leaf `i` to the class of `i + 1`, in which `i` is the leaf of the previous round.
pub(crate) struct Bindings {
    /// By leaf: the number of the path that bound it last, and the class. [`NO_TERM`] if no class
    /// in terms of the start of the path is known. The number saves clearing the table for each
    /// path.
    bound: Vec<(u32, TermId)>,
    /// The number of the current path.
    path: u32,
    /// The leaves that the current path binds, in order.
    pub(crate) leaves: Vec<TermId>,
    /// The blocks that the current path enters.
    blocks: SmallVec<[Block; 2]>,
    /// How many leaves all paths together have bound.
    work: usize,
}

impl Bindings {
    /// Bindings of an empty path, for a table of `terms` terms.
    pub(crate) fn new(terms: usize) -> Bindings {
        Bindings {
            bound: vec![(0, NO_TERM); terms],
            path: 0,
            leaves: Vec::new(),
            blocks: SmallVec::new(),
            work: 0,
        }
    }

    /// The class to which the current path binds a leaf; `None` if it does not bind the leaf.
    pub(crate) fn get(&self, leaf: TermId) -> Option<TermId> {
        self.bound
            .get(leaf as usize)
            .filter(|(path, _)| *path == self.path)
            .map(|(_, class)| *class)
    }

    /// Whether the current path enters no block.
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Whether the current path may bind a leaf that a class depends on.
    ///
    /// The answer is `true` if some block on the path dominates the deepest block that binds a leaf
    /// of the class. All blocks that bind leaves of the class dominate the deepest one
    /// (`Support::Below`), so a path that binds such a leaf is found. The answer may be `true` for
    /// a class whose contents do not depend on the leaf. The support covers the first term of the
    /// class, which may mention more leaves (`a_class_that_names_more_leaves_is_rebound`).
    ///
    /// A missing dominator may give the wrong answer. It makes the checker reject all the same:
    /// every use also tests whether the class is supported at the end of the path
    /// (`CrossProduct::are_equal`). If a block on the path dominates the deepest binder, the path
    /// passes this binder again, and a block always dominates itself.
    pub(crate) fn affects(&self, version: &ProvedVersion<'_, '_>, class: TermId) -> bool {
        match version.support(class) {
            Support::Anywhere => false,
            Support::Below(home) => self.blocks.iter().any(|b| version.live().dominates(*b, home)),
            Support::Unbound => !self.blocks.is_empty(),
        }
    }

    /// A class in terms of the start of the path, given a class in terms of the leaves as bound so
    /// far. [`NO_TERM`] if the class mixes leaves of this path with others: no term is at hand for
    /// the result.
    pub(crate) fn resolve(&self, version: &ProvedVersion<'_, '_>, class: TermId) -> TermId {
        match self.get(class) {
            // The binding of a leaf comes before the question whether the path affects it.
            Some(bound) => bound,
            None if self.affects(version, class) => NO_TERM,
            None => class,
        }
    }

    /// Binds the leaves of a path, and forgets the path before. Cost: linear in the parameters of
    /// the blocks that the path enters.
    pub(crate) fn enter(&mut self, version: &ProvedVersion<'_, '_>, path: &AnchorPath<'_>) {
        self.path += 1;
        self.leaves.clear();
        self.blocks.clear();
        for crossing in path.crossings() {
            let received =
                crossing.binds.iter().map(|(leaf, class)| (*leaf, self.resolve(version, *class)));
            let memory = version.memory_leaf(crossing.block);
            let memory = memory.map(|leaf| (leaf, self.resolve(version, crossing.memory)));
            // A jump assigns all parameters at once. All arguments are therefore resolved before
            // any leaf of this block is bound, or a swap of two parameters in a loop would give
            // both the same contents.
            let received: SmallVec<[(TermId, TermId); 8]> = received.chain(memory).collect();
            for (leaf, class) in received {
                self.bound[leaf as usize] = (self.path, class);
                self.leaves.push(leaf);
            }
            self.blocks.push(crossing.block);
        }
        self.work += self.leaves.len();
    }

    /// Counts classes that are resolved at the end of a path, like `classes` bound leaves.
    pub(crate) fn add_work(&mut self, classes: usize) {
        self.work = self.work.saturating_add(classes);
    }

    /// Fails with [`Check::Size`] when all paths together bind more than [`MAX_WORK`] leaves.
    pub(crate) fn check_work(&self, version: &ProvedVersion<'_, '_>) -> Result<(), Finding> {
        version.table.require(Check::Size, self.work <= MAX_WORK, Place::Whole)
    }
}
