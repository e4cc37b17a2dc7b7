//! Rounds: walks over a function that number every block from the edges that lead to it.
//!
//! The numbering is *optimistic* (Click, "Global Code Motion, Global Value Numbering", PLDI 1995;
//! for edges, Wegman and Zadeck). It takes a parameter for a copy of the value it receives, until
//! two live edges bring different classes. Example: `head(%k)` receives %a from outside and %k over
//! the back edge. The walk takes %k for a copy of %a, and so the back edge brings the class of %a
//! too. One round ([`NumberingRound::walk`]) goes over the blocks in the order of the graph:
//!
//! 1. It numbers each block from the edges that come from above.
//! 2. At the end of a region, it checks that every live edge back to the start of the region brings
//!    the assumed class ([`CopyAssumptions::revise`]). It *pins* each parameter for which an edge
//!    does not: a pinned parameter is a leaf from then on.
//! 3. If an assumption changed, it forgets all findings since the start of the region, and numbers
//!    the region once more: the next *turn*.
//!
//! So a loop is settled before the code behind it is numbered. That code may look dead as long as
//! the loop is not: the counter of a loop starts as a constant, and the constant never ends the
//! loop. With turns of the whole function, each loop of a row would wait for the loop before it
//! (`loops_in_a_row_take_no_rounds_of_their_own`). An inner loop takes turns within each turn of
//! the outer loop. But assumptions last. So all turns together are one for each failing assumption,
//! and one more for each loop around, up to [`MAX_AGAIN`].
//!
//! Assumptions only grow weaker, and classes that differ under strong assumptions differ under weak
//! ones. No turn therefore pins a parameter without need, and the turns end. A turn that kept the
//! old numbers would compare new classes with outdated ones. It would pin parameters that only hand
//! a value through an inner loop.

use crate::copies::{CopyAssumptions, IncomingClasses, same_class};
use crate::flow::FlowGraph;
use crate::homes::{Home, Homes};
use crate::live::{LiveEdges, LiveTargets};
use crate::table::{ClassTable, TermForm};
use crate::{Dense, TermIndex};
use fixedbitset::FixedBitSet;
use ir::{Block, Edge, Function, Value};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Range;

/// Turns of one region in one visit after which the block at its start gives up its assumptions: a
/// bound on cost. Each turn finds at least one more parameter that is not a copy. Blocks inside the
/// region have to hand values around for there to be many
/// (`a_long_chain_through_an_inner_block_gives_up_one_block`).
pub const MAX_TURNS: usize = 40;

/// Blocks numbered again in a walk, for each block that the walk has reached. Beyond the limit, a
/// region that needs another turn gives up the assumptions of its start, and so do the regions
/// around it: a bound on cost. Without it, each of the loops around a block numbers the block again
/// (`a_deep_nest_gives_up_its_outer_loops`). With the limit, [`MAX_AGAIN`] loops around a block are
/// settled, and all loops where a function is small.
pub const MAX_AGAIN: usize = 64;

/// The terms of values and the live edges that a round has found.
#[derive(Debug, Default)]
pub struct ValueClasses {
    /// The terms of values.
    pub terms: Dense<Value>,
    /// The edges that may be taken.
    pub live: LiveEdges,
    /// The blocks that bind leaves.
    pub homes: Homes,
    /// The place that the walk has reached: the number of blocks that it has gone past.
    pub at: usize,
    /// The blocks numbered so far, in all walks: a measure of cost.
    pub numbered: usize,
}

impl ValueClasses {
    /// Forgets everything but the cost.
    pub fn reset(&mut self, f: &Function) {
        self.terms.reset(f.value_bound());
        self.live.clear(f);
        self.homes.clear();
        self.at = 0;
    }

    /// Forgets the terms of the values that a block defines, and its outgoing edges.
    pub fn forget(&mut self, f: &Function, block: Block) {
        self.live.take(block, LiveTargets::None);
        let results = f.block_insts(block).flat_map(|inst| f.inst(inst).results.iter());
        let params = f.block_params(block).iter();
        params.chain(results).for_each(|value| self.terms.unset(*value));
    }

    /// The class of a value. [`crate::NO_TERM`] in dead code, and for values that the function
    /// lacks.
    pub fn class<F: TermForm>(&self, table: &ClassTable<F>, value: Value) -> TermIndex {
        table.class(self.terms.get(value))
    }
}

/// A region that the walk is in.
struct OpenRegion<M> {
    places: Range<usize>,
    /// The turns that contradicted an assumption.
    turns: usize,
    /// The state before the region.
    mark: M,
}

/// The blocks that a walk has numbered more than once.
#[derive(Default)]
struct Again {
    /// The number of places reached.
    reached: usize,
    /// The blocks numbered again.
    count: usize,
    /// The places of the blocks whose assumptions are given up.
    given_up: FixedBitSet,
}

impl Again {
    fn visit(&mut self, place: usize) {
        if place < self.reached {
            self.count += 1;
        } else {
            self.reached = place + 1;
        }
    }

    fn is_spent(&self) -> bool {
        // A function of a few blocks may number each of them as often as `MAX_TURNS` allows.
        self.count > MAX_AGAIN * (self.reached + MAX_AGAIN)
    }

    /// Gives up the assumptions of all open regions that still have theirs, and goes back to the
    /// outermost of these. The walk then numbers it once more, and no region around does.
    fn give_up<'f, M>(
        &mut self,
        open: &mut Vec<OpenRegion<M>>,
        round: &mut impl NumberingRound<'f, Mark = M>,
    ) {
        let mut outermost = None;
        for (index, region) in open.iter().enumerate() {
            self.given_up.grow(region.places.start + 1);
            if !self.given_up.put(region.places.start) {
                let block = round.graph().order()[region.places.start];
                round.give_up(block);
                outermost = outermost.or(Some(index));
            }
        }
        if let Some(index) = outermost {
            open.truncate(index + 1);
            round.rewind(&open[index].mark, open[index].places.clone());
        }
    }
}

/// The step after the end of a turn.
enum TurnEnd {
    /// The walk continues behind the region.
    Settled,
    /// Another turn, perhaps because an assumption was refuted.
    Again { is_refuted: bool },
}

impl<M> OpenRegion<M> {
    /// Ends a turn, and prepares the next turn if there is to be one.
    fn close<'f>(&mut self, round: &mut impl NumberingRound<'f, Mark = M>) -> TurnEnd {
        let graph = round.graph();
        let block = graph.order()[self.places.start];
        let live = &round.found().live;
        if !live.has_block(block) {
            // If an edge that leads back has become live, and none from above is, the block has no
            // terms yet.
            if live.leading_to(graph.f, block).next().is_none() {
                return TurnEnd::Settled;
            }
            round.rewind_bindings(&self.mark);
            return TurnEnd::Again { is_refuted: false };
        }
        if !round.revise(block, &self.mark) {
            return TurnEnd::Settled;
        }
        self.turns += 1;
        if self.turns == MAX_TURNS {
            round.give_up(block);
        }
        round.rewind(&self.mark, self.places.clone());
        TurnEnd::Again { is_refuted: true }
    }
}

/// One round of numbering, over the blocks of one function.
///
/// The implementer decides which leaves parameters bind and how instructions are numbered; the walk
/// itself is here.
pub trait NumberingRound<'f> {
    /// The form of the terms.
    type Form: TermForm;
    /// A state of the findings to return to.
    type Mark;

    /// The function.
    fn graph(&self) -> &FlowGraph<'f>;
    /// The table of terms.
    fn table(&self) -> &ClassTable<Self::Form>;
    /// The assumptions about parameters.
    fn assumed(&self) -> &CopyAssumptions;
    /// The assumptions, to weaken them.
    fn assumed_mut(&mut self) -> &mut CopyAssumptions;
    /// The results so far.
    fn found(&self) -> &ValueClasses;
    /// The results so far, to add to them.
    fn found_mut(&mut self) -> &mut ValueClasses;
    /// The home of a class.
    fn home(&mut self, class: TermIndex) -> Home;

    /// Binds the arguments of the function.
    fn bind_arguments(&mut self);
    /// Makes one leaf of parameters of a block that are assumed to be equal.
    fn bind_equal(&mut self, block: Block, members: &[Value]);
    /// Whether a parameter, or else the memory, may copy a class with leaves that no block binds so
    /// far. An implementer that answers yes pins it at the end of the round, if the class is still
    /// such a class.
    fn takes_unbound(&mut self, _block: Block, _param: Option<Value>) -> bool {
        false
    }
    /// Numbers the memory at the start of a block from these edges.
    fn enter_memory(&mut self, _block: Block, _incoming: &[Edge]) {}
    /// Numbers the results of a block.
    fn number_block(&mut self, block: Block);

    /// Marks the state of the findings.
    fn mark(&mut self) -> Self::Mark;
    /// Returns to a marked state, in which the blocks at these places had no findings yet.
    fn rewind(&mut self, mark: &Self::Mark, places: Range<usize>);
    /// Returns to the marked state before another walk over the same places, but keeps the classes
    /// of values and the live edges, because back edges bring them.
    fn rewind_bindings(&mut self, mark: &Self::Mark);
    /// Weakens the assumptions that edges back to the start of a region contradict, when the walk
    /// has gone past the region. `mark` is the state before it. Returns whether there are any.
    fn revise(&mut self, block: Block, mark: &Self::Mark) -> bool;
    /// Gives up all assumptions about the start of a block.
    fn give_up(&mut self, block: Block);
    /// The only target that a block's branch takes for a reason other than its class.
    fn assumed_target(&self, _block: Block) -> Option<u32> {
        None
    }

    /// The class of a value.
    fn class(&self, value: Value) -> TermIndex {
        self.found().class(self.table(), value)
    }

    /// Numbers everything once, each region in turns until nothing contradicts its assumptions.
    /// Returns whether a region took more than one turn.
    ///
    /// Cost: linear in the instructions, times the depth of loops and the assumptions that fail in
    /// the loops around an instruction, up to [`MAX_AGAIN`].
    fn walk(&mut self) -> bool
    where
        Self: Sized,
    {
        let count = self.graph().order().len();
        let mut open: Vec<OpenRegion<Self::Mark>> = Vec::new();
        let (mut at, mut is_weaker, mut again) = (0, false, Again::default());
        while at < count {
            let end = self.graph().region_end(at);
            if let Some(end) = end.filter(|_| open.last().is_none_or(|of| of.places.start != at)) {
                open.push(OpenRegion { places: at..end, turns: 0, mark: self.mark() });
            }
            again.visit(at);
            self.visit(at);
            at += 1;
            self.found_mut().at = at;
            while let Some(region) = open.last_mut().filter(|of| of.places.end == at) {
                match region.close(self) {
                    TurnEnd::Settled => {
                        open.pop();
                    }
                    TurnEnd::Again { is_refuted } => {
                        is_weaker |= is_refuted;
                        if is_refuted && again.is_spent() {
                            again.give_up(&mut open, self);
                        }
                        at = open.last().map_or(0, |region| region.places.start);
                        self.found_mut().at = at;
                    }
                }
            }
        }
        is_weaker
    }

    /// Numbers the block at a place.
    fn visit(&mut self, place: usize) {
        let graph = self.graph();
        let block = graph.order()[place];
        let incoming = self.found().live.incoming(graph, place);
        // No live edge reaches the block so far, so its values stay without terms, and do not stop
        // others from being copies.
        if place > 0 && incoming.is_empty() {
            return;
        }
        self.found_mut().numbered += 1;
        self.enter(block, &incoming);
        self.number_block(block);
        let targets = self.decide(block);
        self.found_mut().live.take(block, targets);
    }

    /// Numbers the parameters of a block and the memory at its start.
    fn enter(&mut self, block: Block, incoming: &[Edge]) {
        let f = self.graph().f;
        if block == f.entry() {
            self.bind_arguments();
            return;
        }
        // Pinned parameters that receive the same classes become one leaf, as two equal loop
        // counters do. Grouping by part too keeps parameters apart that a back edge was found to
        // tell apart.
        let mut groups: BTreeMap<(u32, IncomingClasses), SmallVec<[Value; 2]>> = BTreeMap::new();
        for (index, &param) in f.block_params(block).iter().enumerate() {
            let received: IncomingClasses =
                incoming.iter().map(|e| self.class(f.target(*e).args[index])).collect();
            // A failed copy is pinned at once. From then on it is a leaf, even if later turns
            // bring equal classes, so assumptions only grow weaker.
            if !self.assumed().is_pinned(param) {
                if let Some(class) = self.copied(block, Some(param), &received) {
                    self.found_mut().terms.set(param, class);
                    continue;
                }
                self.assumed_mut().pin(param);
            }
            let part = self.assumed().part(param, &received);
            groups.entry((part, received)).or_default().push(param);
        }
        for members in groups.values() {
            self.bind_equal(block, members);
        }
        self.enter_memory(block, incoming);
    }

    /// The class that a parameter, or else the memory, may be assumed to copy. All these edges
    /// bring the class, and its leaves are bound strictly above the block. A leaf of the block
    /// itself would have the contents of the last iteration.
    fn copied(
        &mut self,
        block: Block,
        param: Option<Value>,
        received: &[TermIndex],
    ) -> Option<TermIndex> {
        let class = same_class(received)?;
        let fits = match self.home(class) {
            Home::Nowhere => self.takes_unbound(block, param),
            home => home.is_above(&self.graph().dom, block),
        };
        fits.then_some(class)
    }

    /// The targets that the terminator of a block may take, by the class of its condition.
    fn decide(&self, block: Block) -> LiveTargets {
        if let Some(only) = self.assumed_target(block) {
            return LiveTargets::One(only);
        }
        let f = self.graph().f;
        let condition = f.inst(f.terminator(block)).args.first();
        let bits = condition.and_then(|v| self.table().constant(self.class(*v)));
        LiveTargets::decided(f, block, bits)
    }
}
