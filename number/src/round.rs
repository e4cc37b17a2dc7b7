//! Rounds: walks over a function that number every block from the edges that lead to it.
//!
//! The numbering is *optimistic* (Click, "Global Code Motion, Global Value Numbering", PLDI 1995;
//! for edges, Wegman and Zadeck). It takes a parameter for a copy of the value it receives, until
//! two live edges bring different classes. Example: `head(%k)` receives %a from outside and %k over
//! the back edge. The walk takes %k for a copy of %a, and so the back edge brings the class of %a
//! too. One round:
//!
//! 1. [`NumberingRound::walk`] goes over the blocks in reverse postorder and numbers each block
//!    from the edges that come from above;
//! 2. [`CopyAssumptions::revise`] checks that every live edge, back edges included, brings the
//!    assumed class. It *pins* each parameter for which an edge does not: a pinned parameter is a
//!    leaf from then on;
//! 3. if an assumption changed, the caller numbers everything anew.
//!
//! Assumptions only grow weaker, and classes that differ under strong assumptions differ under weak
//! ones. No round therefore pins a parameter without need, and the rounds end. A round that kept
//! the old numbers would compare new classes with outdated ones. It would pin parameters that only
//! hand a value through an inner loop.

use crate::copies::{CopyAssumptions, IncomingClasses, same_class};
use crate::homes::{Home, Homes};
use crate::live::{LiveEdges, LiveTargets};
use crate::table::{ClassTable, TermForm};
use crate::{Dense, TermIndex};
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::{Block, Edge, Function, Value};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Rounds of numbering after which the search gives up its assumptions: a bound on cost. Each round
/// pins the parameters that the round before showed not to be copies. A chain of loop variables
/// that hand values on needs one round for each link.
pub const MAX_ROUNDS: usize = 40;

/// Walks over the blocks in one round. A second walk is needed where only back edges lead to code.
pub const MAX_WALKS: usize = 8;

/// A function and its control-flow graph, which stay while the function is numbered.
#[derive(Debug)]
pub struct FlowGraph<'f> {
    /// The function.
    pub f: &'f Function,
    /// The edges that count.
    pub cfg: Cfg,
    /// Dominance along these edges.
    pub dom: DomTree,
}

impl<'f> FlowGraph<'f> {
    /// The graph of all edges.
    pub fn new(f: &'f Function) -> FlowGraph<'f> {
        FlowGraph::of_cfg(f, Cfg::new(f))
    }

    /// The graph of the live edges alone.
    pub fn narrowed(f: &'f Function, live: &LiveEdges) -> FlowGraph<'f> {
        FlowGraph::of_cfg(f, Cfg::of_edges(f, |e| live.has(f, e)))
    }

    fn of_cfg(f: &'f Function, cfg: Cfg) -> FlowGraph<'f> {
        let dom = DomTree::new(f, &cfg);
        FlowGraph { f, cfg, dom }
    }
}

/// The terms of values and the live edges that a round has found.
#[derive(Debug, Default)]
pub struct ValueClasses {
    /// The terms of values.
    pub terms: Dense<Value>,
    /// The edges that may be taken.
    pub live: LiveEdges,
    /// The blocks that bind leaves.
    pub homes: Homes,
}

impl ValueClasses {
    /// Forgets everything.
    pub fn reset(&mut self, f: &Function) {
        self.terms.reset(f.value_bound());
        self.live.clear(f);
        self.homes.clear();
    }

    /// The class of a value. [`crate::NO_TERM`] in dead code, and for values that the function
    /// lacks.
    pub fn class<F: TermForm>(&self, table: &ClassTable<F>, value: Value) -> TermIndex {
        table.class(self.terms.get(value))
    }
}

/// One round of numbering, over the blocks of one function.
///
/// The implementer decides which leaves parameters bind and how instructions are numbered; the walk
/// itself is here.
pub trait NumberingRound<'f> {
    /// The form of the terms.
    type Form: TermForm;

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

    /// The class of a value.
    fn class(&self, value: Value) -> TermIndex {
        self.found().class(self.table(), value)
    }

    /// Numbers everything once. Returns `false` when a back edge leads to code that no edge from
    /// above leads to. Another walk is then needed.
    fn walk(&mut self) -> bool {
        let f = self.graph().f;
        let mut is_complete = true;
        for n in 0..self.graph().cfg.rpo().len() {
            let block = self.graph().cfg.rpo()[n];
            let incoming = self.found().live.incoming(f, &self.graph().cfg, n);
            // No live edge reaches the block so far, so its values stay without terms, and do not
            // stop others from being copies.
            if n > 0 && incoming.is_empty() && !self.assumed().is_plain() {
                continue;
            }
            self.enter(block, &incoming);
            self.number_block(block);
            let targets = self.decide(block);
            // A back edge that becomes live leads to a block that this walk has gone past. If no
            // edge from above has made that block live, it has no terms yet.
            if self.found_mut().live.take(block, targets) {
                let (live, cfg) = (&self.found().live, &self.graph().cfg);
                let back = live.out_of(f, block).into_iter().map(|e| f.target(e).block);
                let mut back = back.filter(|to| cfg.rpo_index(*to).is_some_and(|t| t <= n));
                is_complete &= back.all(|to| live.has_block(to));
            }
        }
        is_complete
    }

    /// Numbers the parameters of a block and the memory at its start.
    fn enter(&mut self, block: Block, incoming: &[Edge]) {
        let f = self.graph().f;
        if block == f.entry() {
            self.bind_arguments();
            return;
        }
        // Pinned parameters that receive the same classes become one leaf, as two equal loop
        // counters do. Grouping by part too keeps those apart that a back edge was found to tell
        // apart.
        let mut groups: BTreeMap<(u32, IncomingClasses), SmallVec<[Value; 2]>> = BTreeMap::new();
        for (index, &param) in f.block_params(block).iter().enumerate() {
            let received: IncomingClasses =
                incoming.iter().map(|e| self.class(f.target(*e).args[index])).collect();
            // A failed copy is pinned at once. From then on it is a leaf, even if later rounds
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
        let f = self.graph().f;
        let condition = f.inst(f.terminator(block)).args.first();
        let condition = condition.filter(|_| !self.assumed().is_plain());
        let bits = condition.and_then(|v| self.table().constant(self.class(*v)));
        LiveTargets::decided(f, block, bits)
    }
}
