//! Reconstruction: how a value of the target version is computed from what the source version has.
//!
//! The rules are those of `mappings.md`, section 4: copy a usable member of the value's class;
//! execute an operation again whose operands can be had; follow a block parameter whose incoming
//! values are one class. Every rule leads to values defined strictly above, so the search ends; it
//! keeps its own stack, since chains of operations may be as long as the function.

use crate::keep::MAX_SHALLOW_NODES;
use crate::level::Level;
use crate::lines::may_be_taken;
use crate::pair::{Side, VersionPair, members};
use crate::reason::{Obstacle, Reason};
use crate::scratch::Scratch;
use crate::source::{Here, SourcePoint};
use ir::{Effects, Function, Inst, Type, Value, ValueDef};
use smallvec::SmallVec;

/// Nodes visited in search of one value before it is given up; it can still be kept. Without a
/// limit, a value at the end of a long chain of operations makes compensation code as long as the
/// function, and the search at every point as well.
const MAX_VISITS: usize = 256;

/// Nodes visited in vain from one source point, for all landing points together, after which no
/// more are tried: at the end of a long chain each of them would cost as much again.
const MAX_IN_VAIN: usize = 8 * MAX_VISITS;

/// Members of a class looked at for one value. Classes are small but for constants, which are as
/// cheap to make anew.
const MAX_MEMBERS: usize = 16;

/// An expression over the values of the source version.
#[derive(Clone, Debug)]
pub(crate) enum Expr {
    /// A value, as it is at the source point.
    Source(Value),
    /// An operation of the target version (or, in a block that only the source version has, of
    /// that).
    Op { inst: Inst, in_source: bool, args: SmallVec<[u32; 3]> },
    /// A constant that no version needs to have.
    Constant { ty: Type, bits: u64 },
}

/// Something to be computed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Node {
    /// A value of the target version.
    Wanted(Value),
    /// An operation in the rest of a block that only the source version has, by number.
    Rest(u32),
    /// A value of the source version, as it is at the source point.
    Here(Value),
}

/// One way to compute a node, all of whose operands are needed.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    /// Read a value at the source point.
    Read(Value),
    /// The same as another node.
    Same(Node),
    /// A constant of the value's class.
    Constant { ty: Type, bits: u64 },
    /// Execute an operation.
    Execute { inst: Inst, in_source: bool, args: SmallVec<[Node; 3]> },
}

/// The outcome for one node: an expression, or none.
pub(crate) type Outcome = Option<u32>;

/// The search at one source point. Outcomes are kept from one landing point to the next: they
/// depend on what the source version has, not on where the entry lands.
#[derive(Debug)]
pub(crate) struct Deriver<'a, 'v> {
    pub(crate) pair: &'a VersionPair<'v>,
    pub(crate) p: &'a Side<'v>,
    pub(crate) q: &'a Side<'v>,
    pub(crate) level: Level,
    pub(crate) exprs: Vec<Expr>,
    wanted: Scratch<Outcome>,
    rest: Scratch<Outcome>,
    read: Scratch<Outcome>,
    /// Values to be read although they are not live, chosen for the entry at hand.
    kept: Scratch<bool>,
    /// Values that cannot be had from this source point whatever is kept.
    hopeless: Scratch<bool>,
    /// Nodes that may still be looked at from this source point for what to keep.
    nodes_left: usize,
    /// Expressions counted already.
    tallied: Scratch<bool>,
    stack: Vec<Node>,
    visits: usize,
    /// Nodes visited in search of values that could not be had, from this source point.
    in_vain: usize,
}

impl<'a, 'v> Deriver<'a, 'v> {
    pub(crate) fn new(
        pair: &'a VersionPair<'v>,
        p: &'a Side<'v>,
        q: &'a Side<'v>,
        level: Level,
    ) -> Self {
        Deriver {
            pair,
            p,
            q,
            level,
            exprs: Vec::new(),
            wanted: Scratch::new(),
            rest: Scratch::new(),
            read: Scratch::new(),
            kept: Scratch::new(),
            hopeless: Scratch::new(),
            nodes_left: 0,
            tallied: Scratch::new(),
            stack: Vec::new(),
            visits: 0,
            in_vain: 0,
        }
    }

    /// Goes on to another source point.
    pub(crate) fn leave(&mut self) {
        self.hopeless.clear();
        self.nodes_left = MAX_SHALLOW_NODES;
        self.in_vain = 0;
        self.restart();
    }

    /// Whether too much was looked at from this source point for another landing point to be worth
    /// trying.
    pub(crate) fn is_spent(&self) -> bool {
        self.in_vain > MAX_IN_VAIN
    }

    /// Whether one more node may be looked at from this source point.
    pub(crate) fn spend(&mut self) -> bool {
        self.nodes_left = self.nodes_left.saturating_sub(1);
        self.nodes_left > 0
    }

    /// Whether a value cannot be had from this source point whatever is kept.
    pub(crate) fn is_hopeless(&self, value: Value) -> bool {
        self.hopeless.get(value.as_u32() as usize).is_some()
    }

    /// Notes that a value cannot be had from this source point whatever is kept.
    pub(crate) fn give_up(&mut self, value: Value) {
        self.hopeless.set(value.as_u32() as usize, true);
    }

    /// Forgets what was found: other kept values.
    pub(crate) fn restart(&mut self) {
        self.exprs.clear();
        self.wanted.clear();
        self.rest.clear();
        self.read.clear();
        self.kept.clear();
        self.visits = 0;
    }

    /// Allows a value to be read although it is not live.
    pub(crate) fn keep(&mut self, value: Value) {
        self.kept.set(value.as_u32() as usize, true);
    }

    /// The expression for a value, if there is one from what may be read.
    pub(crate) fn derive(&mut self, here: &SourcePoint, value: Value) -> Outcome {
        let outcome = self.outcome_of(here, Node::Wanted(value));
        if outcome.is_none() {
            self.in_vain += self.visits;
        }
        outcome
    }

    /// Whether a value was found not to be had from what may be read.
    pub(crate) fn is_lost(&self, value: Value) -> bool {
        self.known(Node::Wanted(value)) == Some(None)
    }

    /// The operations that expressions take, each counted once, and the values they read, some more
    /// than once.
    pub(crate) fn tally(&mut self, roots: &[u32]) -> (usize, SmallVec<[Value; 16]>) {
        let (mut steps, mut read) = (0, SmallVec::new());
        let mut stack: SmallVec<[u32; 16]> = SmallVec::from_slice(roots);
        self.tallied.clear();
        while let Some(expr) = stack.pop() {
            if self.tallied.get(expr as usize).is_some() {
                continue;
            }
            self.tallied.set(expr as usize, true);
            match &self.exprs[expr as usize] {
                Expr::Source(value) => read.push(*value),
                Expr::Constant { .. } => steps += 1,
                Expr::Op { args, .. } => {
                    steps += 1;
                    stack.extend_from_slice(args);
                }
            }
        }
        (steps, read)
    }

    /// The outcome for a node, searched for on its own.
    pub(crate) fn outcome_of(&mut self, here: &SourcePoint, node: Node) -> Outcome {
        self.visits = 0;
        self.outcome(here, node)
    }

    /// The outcome for a node. Evaluates it and everything it needs, while visits are left.
    fn outcome(&mut self, here: &SourcePoint, node: Node) -> Outcome {
        self.stack.push(node);
        while let Some(&top) = self.stack.last() {
            if self.known(top).is_none() {
                self.visits += 1;
                match if self.visits > MAX_VISITS { Ok(None) } else { self.attempt(here, top) } {
                    Ok(outcome) => self.settle(top, outcome),
                    Err(first) => {
                        self.stack.push(first);
                        continue;
                    }
                }
            }
            self.stack.pop();
        }
        self.known(node).expect("the node was settled")
    }

    fn known(&self, node: Node) -> Option<Outcome> {
        match node {
            Node::Wanted(value) => self.wanted.get(value.as_u32() as usize),
            Node::Rest(index) => self.rest.get(index as usize),
            Node::Here(value) => self.read.get(value.as_u32() as usize),
        }
    }

    fn settle(&mut self, node: Node, outcome: Outcome) {
        match node {
            Node::Wanted(value) => self.wanted.set(value.as_u32() as usize, outcome),
            Node::Rest(index) => self.rest.set(index as usize, outcome),
            Node::Here(value) => self.read.set(value.as_u32() as usize, outcome),
        }
    }

    /// Tries the ways to compute a node in order; `Err` names a node to be evaluated first.
    fn attempt(&mut self, here: &SourcePoint, node: Node) -> Result<Outcome, Node> {
        // The usual case, apart and first: the value itself is live.
        if let Node::Wanted(value) = node
            && self.has_itself(here, value)
            && self.may_read(here, value)
        {
            return Ok(Some(self.push(Expr::Source(value))));
        }
        for way in self.ways(here, node) {
            match way {
                Way::Read(value) if self.may_read(here, value) => {
                    return Ok(Some(self.push(Expr::Source(value))));
                }
                Way::Read(_) => {}
                Way::Constant { ty, bits } => {
                    return Ok(Some(self.push(Expr::Constant { ty, bits })));
                }
                Way::Same(other) => {
                    if let Some(expr) = self.known(other).ok_or(other)? {
                        return Ok(Some(expr));
                    }
                }
                Way::Execute { inst, in_source, args } => {
                    let known: SmallVec<[Outcome; 3]> =
                        args.iter().map(|n| self.known(*n).ok_or(*n)).collect::<Result<_, _>>()?;
                    if let Some(args) = known.into_iter().collect() {
                        return Ok(Some(self.push(Expr::Op { inst, in_source, args })));
                    }
                }
            }
        }
        Ok(None)
    }

    /// The ways to compute a node, cheapest first. A value read is available at the source point;
    /// whether it may be read is another question.
    pub(crate) fn ways(&self, here: &SourcePoint, node: Node) -> SmallVec<[Way; 4]> {
        let mut ways = SmallVec::new();
        match node {
            Node::Here(value) => ways.push(Way::Read(value)),
            Node::Rest(number) => ways.push(here.rest_way(number)),
            Node::Wanted(value) => {
                ways.extend(here.way_of(self.p, value));
                if self.level >= Level::Alias {
                    let members = members(&self.pair.facts, self.p, self.q, value);
                    let others = members.into_iter().filter(|m| *m != value);
                    let way_of = |m: Value| here.way_of(self.p, m);
                    ways.extend(others.take(MAX_MEMBERS).filter_map(way_of));
                    let constant = self.pair.facts.constant(value, self.q.era);
                    ways.extend(constant.map(|(ty, bits)| Way::Constant { ty, bits }));
                }
                ways.extend(self.executed_again(value));
                ways.extend(self.parameter(value));
            }
        }
        ways
    }

    /// Whether a value that is available at the source point may be read there.
    pub(crate) fn may_read(&self, here: &SourcePoint, value: Value) -> bool {
        here.is_live(value)
            || (self.level >= Level::LiveE && self.p.is_argument(value))
            || self.kept.get(value.as_u32() as usize).is_some()
    }

    /// Whether the source point has a value under its own id, live.
    pub(crate) fn reads_itself(&self, here: &SourcePoint, value: Value) -> bool {
        here.is_live(value) && self.has_itself(here, value)
    }

    fn has_itself(&self, here: &SourcePoint, value: Value) -> bool {
        here.look_up(self.p, value) == Here::Value(value)
    }

    /// Rule 2: the operation that defines the value, executed again. It dominates the landing
    /// point, as every value asked for here does, so it has executed in the target version; and by
    /// the trap rule in the source version.
    fn executed_again(&self, value: Value) -> Option<Way> {
        if self.level < Level::Live {
            return None;
        }
        let inst = self.q.f.defining_inst(value)?;
        let data = self.q.f.inst(inst);
        if !data.opcode.is_value_determined() || data.results.len() != 1 {
            return None;
        }
        let args = data.args.iter().map(|v| Node::Wanted(*v)).collect();
        Some(Way::Execute { inst, in_source: false, args })
    }

    /// Rule 3, first half: a parameter whose incoming values share a member that dominates the
    /// block.
    fn parameter(&self, value: Value) -> Option<Way> {
        if self.level < Level::LiveE {
            return None;
        }
        let ValueDef::Param(block, index) = self.q.f.value_def(value) else { return None };
        let f: &Function = self.q.f;
        let mut incoming = f
            .predecessors(block)
            .iter()
            .filter(|e| may_be_taken(f, &self.q.cfg, &self.pair.facts, **e))
            .map(|e| f.target(*e).args[index as usize])
            .filter(|v| *v != value);
        let first = incoming.next()?;
        let mut shared: SmallVec<[Value; 4]> = SmallVec::new();
        shared.push(first);
        shared.extend(self.pair.facts.chain(first, self.q.era));
        for other in incoming {
            let chain = self.pair.facts.chain(other, self.q.era);
            shared.retain(|m| *m == other || chain.contains(m));
        }
        // Available at the block's first point and not one of its parameters or instructions: above
        // it.
        let above = |m: &Value| {
            f.has_value(*m)
                && f.value_block(*m) != block
                && self.q.dom.dominates(f.value_block(*m), block)
        };
        shared.into_iter().find(above).map(|m| Way::Same(Node::Wanted(m)))
    }

    fn push(&mut self, expr: Expr) -> u32 {
        self.exprs.push(expr);
        (self.exprs.len() - 1) as u32
    }

    /// Why a value that could not be derived, in the last search, cannot: follows the operations
    /// down to a value that could be had only by itself.
    pub(crate) fn explain(&self, here: &SourcePoint, value: Value) -> Obstacle {
        if self.visits > MAX_VISITS {
            return Obstacle { value: Some(value), ..Obstacle::new(Reason::TooLong) };
        }
        let mut value = value;
        loop {
            let way = self.executed_again(value).or_else(|| self.parameter(value));
            let missing = match &way {
                Some(Way::Execute { args, .. }) => {
                    args.iter().copied().find(|n| self.known(*n) == Some(None))
                }
                Some(Way::Same(node)) => Some(*node),
                _ => None,
            };
            match missing {
                Some(Node::Wanted(next)) => value = next,
                _ => {
                    return Obstacle {
                        reason: self.lost_because(here, value),
                        value: Some(value),
                        inst: None,
                    };
                }
            }
        }
    }

    fn lost_because(&self, here: &SourcePoint, value: Value) -> Reason {
        if here.way_of(self.p, value).is_some() {
            return Reason::NotLive;
        }
        let Some(inst) = self.q.f.defining_inst(value) else { return Reason::Parameter };
        let effects = self.q.f.inst(inst).opcode.effects();
        if effects.has(Effects::TRACED) {
            Reason::Call
        } else if effects.has(Effects::READS) {
            Reason::Load
        } else {
            Reason::Unavailable
        }
    }
}
