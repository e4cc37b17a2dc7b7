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
//! A path also continues past a branch that the certificate lists as passed, if constants that the
//! path has bound decide this branch. One version may have lost such a branch by jump threading,
//! while the other still executes it. The list is a hint: a branch that a path does not decide ends
//! this path, listed or not (`wrongly_listed_branches_change_nothing`).
//!
//! [`Bindings`] expresses the contents of leaves at the end of a path by classes at its start.

use super::checks::{Check, Finding, Place};
use super::version::{ProvedVersion, Support};
use fixedbitset::FixedBitSet;
use ir::eval::{fold, is_evaluated};
use ir::{Block, Edge, Inst};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;
use transition::certificate::{NO_TERM, TermId, TermKind};

/// The largest number of blocks that a path enters. A longer path is not followed, and the anchor
/// that it leaves is unproved. The limit keeps the cost linear, because a path is followed anew
/// from each of its points. The certifier knows the limit (`docs/certificates.md`).
const MAX_CROSSINGS: usize = 256;

/// The largest number of branches that one path passes. A decision looks through all blocks that
/// the path has entered, so long paths of many decisions would take quadratic time.
const MAX_PASSED: usize = 64;

/// The largest number of classes that the decision of one branch looks at. Branches that a pass
/// threads depend on a parameter and a few operations. The limit also bounds the depth of the
/// recursion in `bits`.
const MAX_LOOKED_AT: u32 = 32;

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
        // `bits` finds a leaf here by binary search. Parameters that share one leaf are
        // neighbors, and `LeafBinder` has proved that they receive one class.
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
    /// Branches past which a path may continue, if constants that it has bound decide them.
    pub(crate) passed: Rc<BTreeSet<Inst>>,
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
    /// The part of `crossings` with blocks from which other paths lead to other anchors: from the
    /// first block that binds a leaf which decides a branch, up to the last decided branch.
    shared: Range<usize>,
}

impl AnchorPath<'_> {
    /// The blocks that the path enters, in order.
    pub(crate) fn crossings(&self) -> impl Iterator<Item = &PathCrossing> {
        self.crossings.iter().map(|c| &**c)
    }

    /// Whether the blocks that the path enters are distinct. The checks on traps and lone writes
    /// speak about one execution of each instruction on a path; a path around a loop would execute
    /// it several times (`a_path_enters_no_block_twice`).
    fn enters_no_block_twice(&self) -> bool {
        let mut seen = BTreeSet::new();
        self.crossings().all(|crossing| seen.insert(crossing.block))
    }

    /// The blocks of this path that also lead to another anchor than its own.
    ///
    /// Example: the block `test(%p)` ends in a passed branch on `%p`. The path that enters it with
    /// `%p` = 1 knows the target of the branch. A path that starts inside `test` does not, and ends
    /// at the branch. A point in `test` thus has no single next anchor: entries must not start
    /// there (`no_entry_leaves_the_block_of_a_passed_branch`), and lone writes must not stand there
    /// (`no_lone_write_is_accepted_where_paths_part`).
    pub(crate) fn shared(&self) -> impl Iterator<Item = Block> + '_ {
        self.crossings[self.shared.clone()].iter().map(|c| c.block)
    }
}

impl AnchorPaths {
    /// Finds the next anchor of every instruction and the crossing at the end of every block. Cost:
    /// linear in instructions and operands.
    pub(crate) fn new(
        version: &ProvedVersion<'_, '_>,
        anchors: &FixedBitSet,
        passed: Rc<BTreeSet<Inst>>,
    ) -> AnchorPaths {
        let f = version.f;
        let mut paths = AnchorPaths {
            passed,
            next: vec![None; f.inst_bound()],
            onward: vec![None; f.block_bound()],
        };
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
        // The crossing of `over` does not count: both kinds of paths may enter as many
        // blocks after it.
        let most = crossings.len() + MAX_CROSSINGS;
        let (mut first_shared, mut shared_end) = (usize::MAX, 0);
        let mut left = MAX_PASSED;
        loop {
            let block = version.f.inst_block(at);
            let next = self.next_in_block(at);
            let onward = self.onward[block.as_u32() as usize].as_ref().filter(|_| next.is_none());
            // A branch is passed only where the path would end otherwise: at an anchor, or at a
            // terminator with several targets. An `end` that is no branch in this version has no
            // `target_for`, so the path ends there even if it is listed.
            let end = next.unwrap_or(version.f.terminator(block));
            let may_pass = onward.is_none() && left > 0 && self.passed.contains(&end);
            left -= usize::from(may_pass);
            let decided =
                may_pass.then(|| BranchDecision::find(version, &crossings, end)).flatten();
            let crossing = match (onward, decided, next) {
                (Some(crossing), ..) => Cow::Borrowed(crossing),
                (_, Some((edge, first)), _) => {
                    // The path decides this branch by a leaf that it bound at `first`. From this
                    // block to the branch, a path that starts later decides nothing, so these
                    // blocks are shared. The minimum over all decided branches keeps the blocks
                    // between two of them shared, too
                    // (`no_entry_leaves_between_two_deciding_blocks`).
                    (first_shared, shared_end) = (first_shared.min(first), crossings.len());
                    Cow::Owned(PathCrossing::over(version, std::iter::once(edge))?)
                }
                (.., Some(anchor)) => {
                    let shared = first_shared.min(shared_end)..shared_end;
                    let path = AnchorPath { crossings, anchor, shared };
                    // Without passed branches, a path that enters a block twice goes around until
                    // it exceeds the limit.
                    let is_simple = self.passed.is_empty() || path.enters_no_block_twice();
                    return is_simple.then_some(path);
                }
                _ => return None,
            };
            if crossings.len() == most {
                return None;
            }
            at = version.f.first_inst(crossing.block);
            crossings.push(crossing);
        }
    }
}

/// Decides a branch at the end of a path by the constants that the path has bound. Other leaves
/// have unknown contents, so a condition on such a leaf decides nothing.
struct BranchDecision<'d, 'a, 'c> {
    version: &'d ProvedVersion<'a, 'c>,
    /// How many more classes may be looked at. This also bounds the recursion.
    left: u32,
    /// The index of the first crossing that bound a leaf the decision looked at.
    first: usize,
}

impl BranchDecision<'_, '_, '_> {
    /// The only edge that the branch can take at the end of this path, and the index of the first
    /// crossing that decides this. `None` if the path does not decide the branch.
    fn find(
        version: &ProvedVersion<'_, '_>,
        path: &[Cow<'_, PathCrossing>],
        branch: Inst,
    ) -> Option<(Edge, usize)> {
        let mut decision = BranchDecision { version, left: MAX_LOOKED_AT, first: usize::MAX };
        let bits = decision.bits(path, version.class(*version.f.inst(branch).args.first()?))?;
        // An edge that the classes of this version exclude was not checked: its target may be dead
        // code. If the path decides for such an edge, no run takes the path, and it ends here.
        let edge = version.target_for(branch, bits).filter(|edge| version.may_take(*edge))?;
        Some((edge, decision.first))
    }

    /// The contents of a class at the end of this part of a path; `None` if unknown.
    ///
    /// A parameter holds the argument of the latest crossing into its block. The class of this
    /// argument is in terms of the leaves *before* that crossing, so the recursion continues with
    /// the part of the path before it (`a_binding_after_the_argument_decides_nothing`).
    fn bits(&mut self, path: &[Cow<'_, PathCrossing>], class: TermId) -> Option<u64> {
        // Counted before anything else, so that terms that share operands cannot make the recursion
        // exponential.
        self.left = self.left.checked_sub(1)?;
        let table = &self.version.table;
        if let Some(bits) = table.constant(class) {
            return Some(bits);
        }
        match table.kind(class)? {
            TermKind::Param => {
                // The latest crossing counts: an earlier binding of the same leaf no longer holds.
                let at = path.iter().rposition(|c| self.version.is_leaf_of(class, c.block))?;
                let binds = &path[at].binds;
                let index = binds.binary_search_by_key(&class, |(leaf, _)| *leaf).ok()?;
                self.first = self.first.min(at);
                self.bits(&path[..at], binds[index].1)
            }
            TermKind::Op { opcode, ty, args, .. } if is_evaluated(*opcode) => {
                let bits: SmallVec<[u64; 3]> =
                    args.iter().map(|a| self.bits(path, *a)).collect::<Option<_>>()?;
                fold(*opcode, *ty, table.ty(*args.first()?)?, &bits)
            }
            _ => None,
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
    /// Bindings of an empty path, for a table of so many terms.
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
    /// a class whose contents do not depend on the leaf: the support is that of its first term,
    /// which may mention more leaves (`a_class_that_names_more_leaves_is_rebound`).
    ///
    /// A missing dominator may give the wrong answer. It makes the checker reject all the same:
    /// every use asks, too, whether the class is supported at the end of the path
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

    /// Binds the leaves of a path, instead of those of the path before. Cost: linear in the
    /// parameters of the blocks that the path enters.
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

    /// Counts classes that are resolved at the end of a path, as if the path bound so many leaves.
    pub(crate) fn add_work(&mut self, classes: usize) {
        self.work = self.work.saturating_add(classes);
    }

    /// Fails with [`Check::Size`] when all paths together bind more than [`MAX_WORK`] leaves.
    pub(crate) fn check_work(&self, version: &ProvedVersion<'_, '_>) -> Result<(), Finding> {
        version.table.require(Check::Size, self.work <= MAX_WORK, Place::Whole)
    }
}
