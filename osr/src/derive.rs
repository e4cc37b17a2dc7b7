//! Reconstruction: computes a value of the target version from values of the source version.
//!
//! The rules are listed in `docs/osr.md`, *Rules for values*:
//!
//! 1. copy a usable member of the value's class;
//! 2. execute an operation again whose operands can be had;
//! 3. replace a block parameter whose incoming values are one class by a member of that class.
//!
//! Every rule leads to values defined strictly above, so the search ends. It keeps its own stack,
//! since a chain of operations may be as long as the function.

use crate::carry::CarriedOutcomes;
use crate::level::Level;
use crate::node::{Alternative, Expr, SearchNode};
use crate::outlook::Outlooks;
use crate::pair::{Analyzed, VersionPair};
use crate::scratch::Scratch;
use crate::source::{Here, SourcePoint};
use ir::{Inst, Value};
use smallvec::SmallVec;
use std::cell::Cell;
use std::ops::ControlFlow;
use transition::mapping::Operand;

/// Nodes visited in search of one value before the search gives it up; an entry can still keep it.
/// Without the limit, a value at the end of a long chain makes compensation code as long as the
/// function, and the search at every point takes as long.
pub(crate) const MAX_VISITS: usize = 256;

/// Nodes visited in vain from one source point, over all its landing points, before the search
/// tries no more. At the end of a long chain, each landing point would cost as much again.
pub(crate) const MAX_IN_VAIN: usize = 8 * MAX_VISITS;

/// Nodes looked at from one source point, over all its landing points, before the search for
/// kept values gives up its entry.
const MAX_SHALLOW_NODES: usize = 512;

/// A successful attempt to compute a node.
enum Attempt {
    /// By a new expression.
    New(Expr),
    /// By the expression of another node.
    Known(u32),
    /// By an operation whose operands are known, or live under their own ids.
    Execute { inst: Inst, in_source: bool, args: SmallVec<[SearchNode; 3]> },
}

/// The outcome for one node: the index of its expression; `None` for a node without an expression.
pub(crate) type FoundExpr = Option<u32>;

/// The outcome for a node, and the lowest level at which it may differ: a rule applies there that
/// the search lacked. The highest level if no level adds a rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SettledNode {
    found: FoundExpr,
    lacks: Level,
}

impl Default for SettledNode {
    fn default() -> SettledNode {
        SettledNode { found: None, lacks: Level::Avail }
    }
}

/// The search at one source point. Outcomes carry over from one landing point to the next: they
/// depend on the source version's values, not on where the entry lands. Many carry over to the next
/// source point ([`crate::carry`]).
#[derive(Debug)]
pub(crate) struct Deriver<'a, 'v> {
    pub(crate) pair: &'a VersionPair<'v>,
    pub(crate) p: &'a Analyzed<'v>,
    pub(crate) q: &'a Analyzed<'v>,
    pub(crate) level: Level,
    pub(crate) exprs: Vec<Expr>,
    pub(crate) wanted: Scratch<SettledNode>,
    rest: Scratch<SettledNode>,
    read: Scratch<SettledNode>,
    /// Values that the entry at hand keeps, and so may read.
    kept: Scratch<bool>,
    /// Wanted values whose search stopped at [`MAX_VISITS`].
    pub(crate) cut_off: Scratch<bool>,
    /// Whether a search stopped there. Outcomes then depend on the order of the questions.
    is_cut_off: bool,
    /// Values given up: no set of kept values gives them from this source point, or the search for
    /// one stopped at its limit. `true` for a value of the first kind.
    pub(crate) given_up: Scratch<bool>,
    /// The same values, in the order in which they were given up.
    pub(crate) all_given_up: Vec<Value>,
    /// By wanted value: the answer of [`Deriver::forced`].
    forced: Scratch<Option<Value>>,
    /// The tables of [`Deriver::rule`].
    pub(crate) outlooks: Outlooks,
    /// By wanted value: its node in the search for kept values at hand.
    pub(crate) keep_nodes: Scratch<u32>,
    /// Nodes that the search for kept values may still look at from this source point.
    pub(crate) nodes_left: usize,
    /// As [`SettledNode::lacks`], for the whole search since it came to the source point.
    lacks: Cell<Level>,
    pub(crate) carried: CarriedOutcomes,
    /// The same for other sets of kept values.
    pub(crate) others: Vec<Deriver<'a, 'v>>,
    /// As [`SettledNode::lacks`], for the attempt at hand.
    node_lacks: Cell<Level>,
    /// Expressions that the current tally has counted.
    tallied: Scratch<bool>,
    /// By expression: the operand that holds its result, for [`crate::entry::assemble`].
    pub(crate) emitted: Scratch<Option<Operand>>,
    stack: Vec<SearchNode>,
    visits: usize,
    /// Nodes visited in search of values that turned out lost, from this source point.
    pub(crate) in_vain: usize,
}

impl<'a, 'v> Deriver<'a, 'v> {
    pub(crate) fn new(
        pair: &'a VersionPair<'v>,
        p: &'a Analyzed<'v>,
        q: &'a Analyzed<'v>,
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
            cut_off: Scratch::new(),
            is_cut_off: false,
            given_up: Scratch::new(),
            all_given_up: Vec::new(),
            forced: Scratch::new(),
            outlooks: Outlooks::default(),
            keep_nodes: Scratch::new(),
            nodes_left: 0,
            lacks: Cell::new(Level::Avail),
            carried: CarriedOutcomes::default(),
            others: Vec::new(),
            node_lacks: Cell::new(Level::Avail),
            tallied: Scratch::new(),
            emitted: Scratch::new(),
            stack: Vec::new(),
            visits: 0,
            in_vain: 0,
        }
    }

    /// Forgets the values given up, and renews the budgets, for another search.
    pub(crate) fn renew_budgets(&mut self) {
        self.given_up.clear();
        self.all_given_up.clear();
        self.forced.clear();
        self.outlooks.clear();
        self.lacks.set(Level::Avail);
        self.nodes_left = MAX_SHALLOW_NODES;
        self.in_vain = 0;
    }

    /// Whether the search from this source point has used up its budget: another landing point is
    /// not worth trying.
    pub(crate) fn is_spent(&self) -> bool {
        self.in_vain > MAX_IN_VAIN
    }

    /// Whether a search at another level, from the same source point to the same landing points,
    /// would have met the same alternatives, and so has the same result. Not for
    /// [`Level::Empty`], nor for kept values.
    pub(crate) fn is_same_at(&self, level: Level) -> bool {
        (Level::Live..Level::Avail).contains(&self.level)
            && (self.level..self.lacks.get()).contains(&level)
    }

    /// Notes that a rule of a level applies.
    pub(crate) fn note(&self, level: Level) {
        if self.level < level {
            self.lacks.set(self.lacks.get().min(level));
            self.node_lacks.set(self.node_lacks.get().min(level));
        }
    }

    /// Whether a search stopped at its limit of visits since the last restart. If not, outcomes do
    /// not depend on the order of the questions.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    /// Forgets outcomes and kept values, for another set of kept values at the same source point.
    pub(crate) fn restart(&mut self) {
        self.exprs.clear();
        self.carried.clear();
        self.wanted.clear();
        self.rest.clear();
        self.read.clear();
        self.cut_off.clear();
        self.is_cut_off = false;
        self.kept.clear();
        self.visits = 0;
    }

    /// Lets entries read a value although it is not live.
    pub(crate) fn keep(&mut self, value: Value) {
        self.kept.set(value.as_u32() as usize, true);
    }

    /// The expression for a value from the values that may be read, or `None`.
    pub(crate) fn derive(&mut self, here: &SourcePoint, value: Value) -> FoundExpr {
        // Most values were requested at another landing point before.
        if let Some(known) = self.consult(SearchNode::Wanted(value)) {
            return known;
        }
        let outcome = self.outcome_of(here, SearchNode::Wanted(value));
        // Only failures count toward the budget. All landing points that need an expression share
        // it once it is found.
        if outcome.is_none() {
            self.in_vain += self.visits;
        }
        outcome
    }

    /// Whether the search has already found that a value is lost.
    pub(crate) fn is_lost(&self, value: Value) -> bool {
        self.consult(SearchNode::Wanted(value)) == Some(None)
    }

    /// The number of operations in these expressions, each counted once, and the values they read
    /// that are not live, some more than once.
    pub(crate) fn tally(
        &mut self,
        here: &SourcePoint,
        roots: &[u32],
    ) -> (usize, SmallVec<[Value; 8]>) {
        let (mut steps, mut read) = (0, SmallVec::new());
        let mut stack: SmallVec<[u32; 16]> = SmallVec::from_slice(roots);
        self.tallied.clear();
        while let Some(expr) = stack.pop() {
            if self.tallied.get(expr as usize).is_some() {
                continue;
            }
            self.tallied.set(expr as usize, true);
            match &self.exprs[expr as usize] {
                Expr::Source(value) if here.is_live(*value) => {}
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

    /// The outcome for a node, with a fresh budget of visits.
    pub(crate) fn outcome_of(&mut self, here: &SourcePoint, node: SearchNode) -> FoundExpr {
        self.visits = 0;
        self.outcome(here, node)
    }

    /// The outcome for a node. Evaluates it and every node it needs, depth first, within the budget
    /// of visits.
    fn outcome(&mut self, here: &SourcePoint, node: SearchNode) -> FoundExpr {
        self.stack.push(node);
        while let Some(&top) = self.stack.last() {
            if self.settle_as_is(here, top) {
                // A value that is live costs no search, so it does not count.
            } else if self.known(top).is_none() {
                self.visits += 1;
                // Past the limit every node on the stack settles as lost, and the loop unwinds.
                // These outcomes stay: the next landing point must not pay for the same search
                // again. They may be too pessimistic for a node that another order of search would
                // reach sooner.
                let is_over = self.visits > MAX_VISITS;
                self.is_cut_off |= is_over;
                if let (true, SearchNode::Wanted(value)) = (is_over, top) {
                    self.cut_off.set(value.as_u32() as usize, true);
                }
                match if is_over { Ok(None) } else { self.attempt(here, top) } {
                    Ok(found) => {
                        let lacks = self.node_lacks.get();
                        if let SearchNode::Wanted(value) = top {
                            self.note_dependencies(value);
                        }
                        self.settle(top, SettledNode { found, lacks });
                    }
                    Err(first) => {
                        // `attempt` starts over when the node is on top again, with one more
                        // operand known. A node has few alternatives, each of few operands, so the
                        // repetition is cheap.
                        self.stack.push(first);
                        continue;
                    }
                }
            }
            self.stack.pop();
        }
        self.known(node).expect("the node was settled")
    }

    /// Settles a wanted value that is live under its own id. Returns whether the node is one.
    fn settle_as_is(&mut self, here: &SourcePoint, node: SearchNode) -> bool {
        let SearchNode::Wanted(value) = node else { return false };
        let is_as_is = self.is_as_is(here, node);
        if is_as_is && self.known(node).is_none() {
            let found = Some(self.push(Expr::Source(value)));
            self.settle(node, SettledNode { found, ..SettledNode::default() });
        }
        is_as_is
    }

    /// Whether a node is a wanted value that is live under its own id.
    fn is_as_is(&self, here: &SourcePoint, node: SearchNode) -> bool {
        matches!(node, SearchNode::Wanted(value) if here.reads_itself(self.p, value))
    }

    pub(crate) fn known(&self, node: SearchNode) -> Option<FoundExpr> {
        self.settled(node).map(|settled| settled.found)
    }

    /// As [`Deriver::known`], for an outcome that the result of the search then depends on.
    pub(crate) fn consult(&self, node: SearchNode) -> Option<FoundExpr> {
        let settled = self.settled(node)?;
        self.note(settled.lacks);
        Some(settled.found)
    }

    fn settled(&self, node: SearchNode) -> Option<SettledNode> {
        let settled = match node {
            SearchNode::Wanted(value) => self.wanted.get(value.as_u32() as usize),
            SearchNode::Rest(index) => self.rest.get(index as usize),
            SearchNode::Here(value) => self.read.get(value.as_u32() as usize),
        };
        // `avail` adds only kept values, and a kept value forgets all outcomes
        // ([`Deriver::restart`]).
        settled.filter(|s| self.level < s.lacks || s.lacks == Level::Avail)
    }

    fn settle(&mut self, node: SearchNode, outcome: SettledNode) {
        match node {
            SearchNode::Wanted(value) => self.wanted.set(value.as_u32() as usize, outcome),
            SearchNode::Rest(index) => self.rest.set(index as usize, outcome),
            SearchNode::Here(value) => self.read.set(value.as_u32() as usize, outcome),
        }
    }

    /// Tries the alternatives to compute a node in order. `Err` names a node to evaluate first.
    fn attempt(&mut self, here: &SourcePoint, node: SearchNode) -> Result<FoundExpr, SearchNode> {
        self.node_lacks.set(Level::Avail);
        // The value itself is kept, or an argument. It spares the list of alternatives.
        if let SearchNode::Wanted(value) = node
            && self.has_itself(here, value)
            && self.may_read(here, value)
        {
            return Ok(Some(self.push(Expr::Source(value))));
        }
        let attempt = self.each_alternative(here, node, true, |alternative| match alternative {
            Alternative::Read(value) if self.may_read(here, value) => {
                ControlFlow::Break(Ok(Attempt::New(Expr::Source(value))))
            }
            Alternative::Read(_) => ControlFlow::Continue(()),
            Alternative::Constant { ty, bits } => {
                ControlFlow::Break(Ok(Attempt::New(Expr::Constant { ty, bits })))
            }
            // A lost one falls through to the next alternative.
            Alternative::Same(other) => match self.consult(other) {
                None => ControlFlow::Break(Err(other)),
                Some(Some(expr)) => ControlFlow::Break(Ok(Attempt::Known(expr))),
                Some(None) => ControlFlow::Continue(()),
            },
            Alternative::Execute { inst, in_source, args } => {
                for arg in &args {
                    match self.consult(*arg) {
                        None if self.is_as_is(here, *arg) => {}
                        None => return ControlFlow::Break(Err(*arg)),
                        Some(Some(_)) => {}
                        // The search for the other operands would be in vain.
                        Some(None) => return ControlFlow::Continue(()),
                    }
                }
                ControlFlow::Break(Ok(Attempt::Execute { inst, in_source, args }))
            }
        });
        Ok(match attempt.transpose()? {
            Some(Attempt::New(expr)) => Some(self.push(expr)),
            Some(Attempt::Known(expr)) => Some(expr),
            Some(Attempt::Execute { inst, in_source, args }) => {
                let mut known = SmallVec::new();
                for arg in args {
                    self.settle_as_is(here, arg);
                    known.extend(self.known(arg).flatten());
                }
                Some(self.push(Expr::Op { inst, in_source, args: known }))
            }
            None => None,
        })
    }

    /// The alternatives to compute a node, cheapest first. An [`Alternative::Read`] names an
    /// available value; [`Deriver::may_read`] decides whether this entry may read it.
    pub(crate) fn alternatives(
        &self,
        here: &SourcePoint,
        node: SearchNode,
    ) -> SmallVec<[Alternative; 4]> {
        let mut alternatives = SmallVec::new();
        let all = |alternative| {
            alternatives.push(alternative);
            ControlFlow::<()>::Continue(())
        };
        self.each_alternative(here, node, false, all);
        alternatives
    }

    /// The value that an entry must keep to have a wanted value which is lost: nothing else gives
    /// it. `None` if the value can be computed from others.
    pub(crate) fn forced(&mut self, here: &SourcePoint, value: Value) -> Option<Value> {
        if let Some(known) = self.forced.get(value.as_u32() as usize) {
            return known;
        }
        let mut first = None;
        let computed =
            self.each_alternative(here, SearchNode::Wanted(value), false, |found| match found {
                Alternative::Read(value) => {
                    first.get_or_insert(value);
                    ControlFlow::Continue(())
                }
                _ => ControlFlow::Break(()),
            });
        let forced = first.filter(|_| computed.is_none());
        self.forced.set(value.as_u32() as usize, forced);
        forced
    }

    /// Calls `visit` for the alternatives to compute a node, cheapest first, until it breaks. With
    /// `readable`, some alternatives to read values that this entry may not read are left out.
    fn each_alternative<T>(
        &self,
        here: &SourcePoint,
        node: SearchNode,
        readable: bool,
        mut visit: impl FnMut(Alternative) -> ControlFlow<T>,
    ) -> Option<T> {
        let value = match node {
            SearchNode::Here(value) => return visit(Alternative::Read(value)).break_value(),
            SearchNode::Rest(number) => {
                return visit(here.rest_alternative(number)).break_value();
            }
            SearchNode::Wanted(value) => value,
        };
        // Where the path binds nothing, a value can only be read. Most values are not live, and
        // their places need not be compared.
        let reads_only = readable && here.is_plain();
        let alternative_of = |m: Value| match reads_only
            && !(here.is_live(m) || (self.p.f.has_value(m) && self.may_read(here, m)))
        {
            true => None,
            false => {
                let (alternative, least) = here.alternative_of(self.p, m)?;
                self.usable(alternative, least)
            }
        };
        let mut visit = |alternative: Option<Alternative>| -> ControlFlow<T> {
            alternative.map_or(ControlFlow::Continue(()), &mut visit)
        };
        // The value's own id comes before the rest of its class: a copy under the same id needs no
        // assignment that moves anything.
        if let ControlFlow::Break(found) = visit(alternative_of(value)) {
            return Some(found);
        }
        let known = self.pair.known_of(self.q.side, value);
        if self.level < Level::Alias {
            let adds = |member: &Value| alternative_of(*member).is_some();
            if known.constant.is_some() || known.members.iter().any(adds) {
                self.note(Level::Alias);
            }
        } else {
            for member in &known.members {
                if let ControlFlow::Break(found) = visit(alternative_of(*member)) {
                    return Some(found);
                }
            }
            let constant = known.constant.map(|(ty, bits)| Alternative::Constant { ty, bits });
            if let ControlFlow::Break(found) = visit(constant) {
                return Some(found);
            }
        }
        // Executing again comes after all reads and constants, since it costs a step for each
        // operation. A parameter comes last, since its member is a node to search in turn.
        if let ControlFlow::Break(found) = visit(self.executed_again(value)) {
            return Some(found);
        }
        visit(self.parameter(value)).break_value()
    }

    /// An alternative that this level may use.
    fn usable(&self, alternative: Alternative, least: Level) -> Option<Alternative> {
        self.note(least);
        (self.level >= least).then_some(alternative)
    }

    /// Whether this entry may read a value that is available at the source point.
    pub(crate) fn may_read(&self, here: &SourcePoint, value: Value) -> bool {
        here.is_live(value)
            || self.reads_argument(value)
            || self.kept.get(value.as_u32() as usize).is_some()
    }

    fn reads_argument(&self, value: Value) -> bool {
        let is_argument = self.p.is_argument(value);
        if is_argument {
            self.note(Level::LiveE);
        }
        is_argument && self.level >= Level::LiveE
    }

    fn has_itself(&self, here: &SourcePoint, value: Value) -> bool {
        here.readable(self.p, value) == Here::Value(value)
    }

    /// Rule 2: executes the operation that defines the value again. The operation dominates the
    /// landing point, like every wanted value, so the target version has executed it. By the trap
    /// rule ([`crate::traps`]) so has the source version, and it cannot newly trap.
    pub(crate) fn executed_again(&self, value: Value) -> Option<Alternative> {
        if self.level < Level::Live {
            return None;
        }
        let inst = self.operation(value)?;
        let args = self.operands(value).iter().map(|v| SearchNode::Wanted(*v)).collect();
        Some(Alternative::Execute { inst, in_source: false, args })
    }

    /// The operation of the target version that an entry executes again for a value.
    pub(crate) fn operation(&self, value: Value) -> Option<Inst> {
        let inst = self.q.f.defining_inst(value)?;
        let data = self.q.f.inst(inst);
        // A load or a call may give another result now, and an operation with several results has
        // no expression.
        if !data.opcode.is_step() || data.results.len() != 1 {
            return None;
        }
        Some(inst)
    }

    /// The operands of the operation that defines a value.
    pub(crate) fn operands(&self, value: Value) -> &'v [Value] {
        let inst = self.q.f.defining_inst(value);
        inst.map_or(&[], |inst| self.q.f.inst(inst).args.as_slice())
    }

    /// Rule 3: replaces a parameter by a member that all its incoming values share and that
    /// dominates its block.
    pub(crate) fn parameter(&self, value: Value) -> Option<Alternative> {
        let member = self.pair.known_of(self.q.side, value).shared?;
        self.note(Level::LiveE);
        (self.level >= Level::LiveE).then_some(Alternative::Same(SearchNode::Wanted(member)))
    }

    fn push(&mut self, expr: Expr) -> u32 {
        self.exprs.push(expr);
        (self.exprs.len() - 1) as u32
    }
}
