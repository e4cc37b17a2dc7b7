//! The numbering: the class of every value, and the edges that may be taken.
//!
//! The numbering is optimistic and proceeds in rounds. A round walks the blocks in reverse
//! postorder and takes a parameter for a copy of its argument from above, until a back edge turns
//! out to pass another class. Such a parameter is *pinned*: it is a leaf from then on, and a new
//! round numbers every value again. Continuing from the end of a round instead would compare new
//! classes with stale ones, and miss equal values.

use super::table::{NONE, Site, Table, Term};
use crate::algebra::Args;
use cranelift_entity::EntityRef;
use fixedbitset::FixedBitSet;
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::{Block, Edge, Function, Inst, InstData, Opcode, Value};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Rounds before the search assumes nothing any more, which ends it: a bound on cost.
const MAX_ROUNDS: usize = 40;

/// Walks in one round. Another walk is needed if a back edge leads to a block that no other taken
/// edge reaches.
const MAX_WALKS: usize = 8;

/// The classes that one parameter receives, by edge.
type Received = SmallVec<[Term; 4]>;

/// The targets at which the terminator of a block may continue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Taken {
    None,
    One(u32),
    All,
}

/// The classes of a function's values. Valid until the function changes.
#[derive(Debug)]
pub(super) struct Numbering<'f> {
    f: &'f Function,
    cfg: Cfg,
    pub(super) dom: DomTree,
    pub(super) table: Table,
    /// By value index: the term.
    terms: Vec<Term>,
    /// By value index: the leaf named after the value.
    leaves: Vec<Term>,
    /// By block index: the edges that may be taken.
    taken: Vec<Taken>,
    /// Parameters that are not copies.
    pinned: FixedBitSet,
    /// By value index: a number that distinguishes parameters of one block that receive different
    /// classes.
    part: Vec<u32>,
    parts: u32,
    /// Whether the search assumes nothing: parameters are leaves, and every edge may be taken.
    is_plain: bool,
}

impl<'f> Numbering<'f> {
    /// Numbers a function. Cost: near linear in its size, times the rounds: two or three in most
    /// functions.
    pub(super) fn new(f: &'f Function) -> Numbering<'f> {
        let cfg = Cfg::new(f);
        let dom = DomTree::new(f, &cfg);
        let values = f.value_bound();
        let mut numbering = Numbering {
            f,
            cfg,
            dom,
            table: Table::new(),
            terms: vec![NONE; values],
            leaves: vec![NONE; values],
            taken: vec![Taken::None; f.block_bound()],
            pinned: FixedBitSet::with_capacity(values),
            part: vec![0; values],
            parts: 0,
            is_plain: false,
        };
        numbering.run();
        numbering
    }

    /// The term of a value; [`NONE`] in unreachable code.
    pub(super) fn term(&self, value: Value) -> Term {
        self.terms[value.index()]
    }

    /// The class of a value; [`NONE`] in unreachable code.
    pub(super) fn class(&self, value: Value) -> Term {
        self.table.class(self.term(value))
    }

    /// The edges that branches always take, for the branches that take only one.
    pub(super) fn decided(&self) -> Vec<Edge> {
        let only = |block: &Block| match self.taken[block.index()] {
            Taken::One(index) => Some(Edge { inst: self.f.terminator(*block), index }),
            _ => None,
        };
        self.cfg.rpo().iter().filter_map(only).collect()
    }

    fn run(&mut self) {
        for round in 0.. {
            if round == MAX_ROUNDS {
                // Without assumptions nothing needs revision, so this round is the last.
                self.is_plain = true;
                self.pinned.insert_range(..);
            }
            self.begin();
            let is_complete = (0..MAX_WALKS).any(|_| self.walk());
            if self.is_plain || (!self.revise() && is_complete) {
                return;
            }
        }
    }

    fn begin(&mut self) {
        self.table.clear();
        self.terms.fill(NONE);
        self.leaves.fill(NONE);
        self.taken.fill(Taken::None);
    }

    /// Numbers every value once. Returns `false` if a back edge leads to a block not numbered yet.
    fn walk(&mut self) -> bool {
        let mut is_complete = true;
        for n in 0..self.cfg.rpo().len() {
            let block = self.cfg.rpo()[n];
            let incoming = self.incoming(block, n);
            if n > 0 && incoming.is_empty() && !self.is_plain {
                continue;
            }
            self.enter(block, &incoming);
            for inst in self.f.block_insts(block) {
                self.number(inst, block);
            }
            let taken = self.decide(block);
            // A newly taken back edge into a block that this walk has skipped needs another walk.
            if std::mem::replace(&mut self.taken[block.index()], taken) != taken {
                let edges = self.edges_from(block);
                let mut back = edges.map(|e| self.f.target(e).block);
                let mut back =
                    back.by_ref().filter(|to| self.cfg.rpo_index(*to).is_some_and(|t| t <= n));
                is_complete &= back.all(|to| self.taken[to.index()] != Taken::None);
            }
        }
        is_complete
    }

    fn may_take(&self, edge: Edge) -> bool {
        match self.taken[self.f.inst_block(edge.inst).index()] {
            Taken::None => false,
            Taken::One(index) => index == edge.index,
            Taken::All => true,
        }
    }

    fn edges_from(&self, block: Block) -> impl Iterator<Item = Edge> + '_ {
        let inst = self.f.terminator(block);
        let edges =
            (0..self.f.inst(inst).targets.len() as u32).map(move |index| Edge { inst, index });
        edges.filter(|e| self.may_take(*e))
    }

    fn edges_to(&self, block: Block) -> impl Iterator<Item = Edge> + '_ {
        self.f.predecessors(block).iter().copied().filter(|e| self.may_take(*e))
    }

    /// The edges from which a block takes its parameters' classes: those from earlier blocks in
    /// reverse postorder if there are any, otherwise all.
    fn incoming(&self, block: Block, n: usize) -> SmallVec<[Edge; 4]> {
        let above =
            |e: &Edge| self.cfg.rpo_index(self.f.inst_block(e.inst)).is_some_and(|from| from < n);
        let edges: SmallVec<[Edge; 4]> = self.edges_to(block).filter(above).collect();
        if edges.is_empty() { self.edges_to(block).collect() } else { edges }
    }

    fn received(&self, edges: &[Edge], index: usize) -> Received {
        edges.iter().map(|e| self.class(self.f.target(*e).args[index])).collect()
    }

    /// Numbers the parameters of a block.
    fn enter(&mut self, block: Block, incoming: &[Edge]) {
        let params = self.f.block_params(block);
        if block == self.f.entry() {
            params.iter().for_each(|p| self.bind(*p, *p, block));
            return;
        }
        let mut groups: BTreeMap<(u32, Received), SmallVec<[Value; 2]>> = BTreeMap::new();
        for (index, &param) in params.iter().enumerate() {
            let received = self.received(incoming, index);
            if !self.pinned.contains(param.index()) {
                if let Some(class) = self.copied(block, &received) {
                    self.terms[param.index()] = class;
                    continue;
                }
                self.pinned.insert(param.index());
            }
            // Pinned parameters that receive the same classes share a leaf, unless `revise` has put
            // them into different parts.
            let is_alone = self.is_plain || received.is_empty();
            let part = if is_alone { param.as_u32() } else { self.part[param.index()] };
            groups.entry((part, received)).or_default().push(param);
        }
        for members in groups.values() {
            members.iter().for_each(|p| self.bind(*p, members[0], block));
        }
    }

    /// The class of which a parameter with these incoming classes is a copy; `None` if it is not
    /// one.
    fn copied(&self, block: Block, received: &[Term]) -> Option<Term> {
        let (&class, rest) = received.split_first()?;
        if class == NONE || rest.iter().any(|other| *other != class) {
            return None;
        }
        // The leaves of the class must not be defined again at the copy, or the two would be
        // different instances around a loop.
        let fits = match self.table.site(class) {
            Site::Anywhere => true,
            Site::Below(home) => home != block && self.dom.dominates(home, block),
            Site::Nowhere => false,
        };
        fits.then_some(class)
    }

    /// Gives a value the leaf named after another value.
    fn bind(&mut self, value: Value, name: Value, block: Block) {
        if self.leaves[name.index()] == NONE {
            self.leaves[name.index()] = self.table.leaf(self.f.value_type(name), block);
        }
        self.terms[value.index()] = self.leaves[name.index()];
    }

    fn number(&mut self, inst: Inst, block: Block) {
        let data = self.f.inst(inst);
        match data.result().filter(|_| is_numbered(data)) {
            Some(result) => {
                let args: Args<Term> = data.args.iter().map(|v| self.class(*v)).collect();
                self.terms[result.index()] =
                    self.table.operation(&self.dom, data.opcode, data.ty, data.imm, args);
            }
            None => data.results.iter().for_each(|v| self.bind(*v, *v, block)),
        }
    }

    /// The edges that a block may take.
    fn decide(&self, block: Block) -> Taken {
        let data = self.f.inst(self.f.terminator(block));
        let condition = data.args.first().filter(|_| !self.is_plain);
        match (data.opcode, condition.and_then(|v| self.table.known(self.class(*v)))) {
            (Opcode::BrIf, Some(bits)) => Taken::One(u32::from(bits == 0)),
            (Opcode::Switch, Some(bits)) => {
                Taken::One(bits.min(data.targets.len() as u64 - 1) as u32)
            }
            _ => Taken::All,
        }
    }

    /// Pins the parameters for which an edge passes another class than assumed, and tells apart
    /// parameters of a block that receive different classes. Returns whether anything changed.
    fn revise(&mut self) -> bool {
        let mut changed = false;
        for n in 1..self.cfg.rpo().len() {
            let block = self.cfg.rpo()[n];
            if self.taken[block.index()] == Taken::None || self.f.block_params(block).is_empty() {
                continue;
            }
            let edges: SmallVec<[Edge; 4]> = self.edges_to(block).collect();
            changed |= self.revise_params(block, &edges);
        }
        changed
    }

    fn revise_params(&mut self, block: Block, edges: &[Edge]) -> bool {
        let mut changed = false;
        let params = self.f.block_params(block);
        let mut groups: BTreeMap<Term, SmallVec<[usize; 2]>> = BTreeMap::new();
        for (index, &param) in params.iter().enumerate() {
            let own = self.class(param);
            if self.pinned.contains(param.index()) {
                groups.entry(own).or_default().push(index);
            } else if self.received(edges, index).iter().any(|class| *class != own) {
                self.pinned.insert(param.index());
                changed = true;
            }
        }
        for members in groups.values().filter(|m| m.len() > 1) {
            let mut seen: BTreeMap<Received, u32> = BTreeMap::new();
            for &index in members {
                let received = self.received(edges, index);
                let before = self.part[params[index].index()];
                let new = if seen.is_empty() { before } else { self.parts + 1 };
                let part = *seen.entry(received).or_insert(new);
                self.parts = self.parts.max(part);
                changed |= before != part;
                self.part[params[index].index()] = part;
            }
        }
        changed
    }
}

/// Whether the result of an instruction is a function of the classes of its operands.
fn is_numbered(data: &InstData) -> bool {
    data.opcode.is_value_determined()
}
