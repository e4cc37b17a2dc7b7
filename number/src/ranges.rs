//! Ranges: the integers that a class can have at the end of a block.
//!
//! The analysis knows an interval for each class where a first value of it is defined, and narrows
//! it behind branches. Example: `head(%i)` receives 0 and, behind `br_if slt %next, %n`, the value
//! `%next = add %i, 1`. On that edge `%next` is below the largest integer, so `%i` is, too, and
//! `sadd_overflows %i, 1` is 0 in every round.
//!
//! Parameters start without contents, and grow with each walk over the blocks. A parameter that
//! grows again and again jumps to a bound of [`LADDER`] (Cousot and Cousot, "Abstract
//! Interpretation", POPL 1977). Two walks behind the last growth make intervals smaller again.
//! [`RangeAnalysis::claims`] then lists the facts behind an interval, for a certificate.

use crate::TermIndex;
use fixedbitset::FixedBitSet;
use ir::dom::DomTree;
use ir::ranges::{Interval, RangeBy, behind, implied, of_operation};
use ir::{Block, Edge, Function, Opcode, Type, Value, ValueDef};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

/// Walks after which an interval that grows becomes unknown.
const MAX_WALKS: usize = 12;

/// Walks behind these until all parameters are unknown: each walk makes those unknown that grow.
const MAX_LATE_WALKS: usize = 4;

/// The number of a walk that takes each interval as it comes.
const LAST_WALK: usize = usize::MAX;

/// Walks in which a parameter grows to what its edges bring. Later it grows to a bound of the
/// ladder.
const EXACT_WALKS: usize = 2;

/// Branches that narrow one class: a bound on cost. The nearest to the entry come first.
const MAX_FACTS: usize = 64;

/// Values of one class, none of which dominates another, that are looked at: a bound on cost.
const MAX_LEADERS: usize = 8;

/// The other operands of comparisons are narrowed themselves to this depth: a bound on cost.
const MAX_DEPTH: usize = 2;

/// The tests in front of a comparison that are looked through: `eqz`, and `ne` and `eq` with 0.
const MAX_TESTS: usize = 3;

/// Bounds to which a growing interval jumps, besides the bounds of its type and their neighbors.
const LADDER: [i64; 3] = [-1, 0, 1];

/// An operation on classes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RangeOperation {
    /// The operation.
    pub opcode: Opcode,
    /// The controlling type.
    pub ty: Type,
    /// The operands.
    pub args: SmallVec<[TermIndex; 3]>,
}

/// The classes of the values of a function.
pub trait RangeClasses {
    /// The class of a value.
    fn class(&self, value: Value) -> TermIndex;
    /// The operation that computes a value.
    fn operation(&self, value: Value) -> Option<RangeOperation>;
    /// The operation of the first term of a class.
    fn first_operation(&self, class: TermIndex) -> Option<RangeOperation>;
    /// The contents of a class that are known everywhere; `None` if it has no integers.
    fn always(&self, class: TermIndex) -> Option<Interval>;
    /// Whether a block binds this parameter.
    fn is_bound(&self, param: Value) -> bool;
}

/// A fact about a class at the end of a block, for a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RangeFact {
    /// The block.
    pub block: Block,
    /// A value of the class that dominates the block.
    pub value: Value,
    /// The contents.
    pub within: Interval,
    /// The reason.
    pub by: RangeBy,
}

/// A value of a class that no other value of the class dominates.
#[derive(Clone, Copy, Debug)]
struct Leader {
    value: Value,
    block: Block,
    /// Its place among all values, in an order in which definitions precede uses.
    place: u32,
}

/// A step of a condition: a class that is zero or not on an edge, and the operation of it.
#[derive(Clone, Debug)]
struct BranchTest {
    class: TermIndex,
    holds: bool,
    operation: Option<RangeOperation>,
}

/// The ranges of a function.
#[derive(Debug)]
pub struct RangeAnalysis<'a, 'f, C> {
    f: &'f Function,
    dom: &'a DomTree,
    order: &'a [Block],
    classes: &'a C,
    /// By block index: the edges into it that runs may take.
    incoming: Vec<SmallVec<[Edge; 2]>>,
    /// By class: its values that no other value of the class dominates.
    leaders: BTreeMap<TermIndex, SmallVec<[Leader; 1]>>,
    /// By such a value: the contents where it is defined.
    found: BTreeMap<Value, Interval>,
    /// By class: the blocks whose only edge says something about it, dominators first.
    facts: BTreeMap<TermIndex, SmallVec<[Block; 2]>>,
    /// By block with one edge into it: the tests of the branch.
    tests: BTreeMap<Block, SmallVec<[BranchTest; 2]>>,
    /// The parameters of unknown contents, by index.
    given_up: FixedBitSet,
}

impl<'a, 'f, C: RangeClasses> RangeAnalysis<'a, 'f, C> {
    /// Analyzes the reachable blocks, listed dominators first, along live edges. Cost: near linear
    /// in the instructions.
    pub fn new(
        f: &'f Function,
        dom: &'a DomTree,
        order: &'a [Block],
        is_live: &dyn Fn(Edge) -> bool,
        classes: &'a C,
    ) -> RangeAnalysis<'a, 'f, C> {
        let mut analysis = RangeAnalysis {
            f,
            dom,
            order,
            classes,
            incoming: vec![SmallVec::new(); f.block_bound()],
            leaders: BTreeMap::new(),
            found: BTreeMap::new(),
            facts: BTreeMap::new(),
            tests: BTreeMap::new(),
            given_up: FixedBitSet::with_capacity(f.value_bound()),
        };
        let mut reached = FixedBitSet::with_capacity(f.block_bound());
        order.iter().for_each(|block| reached.insert(block.as_u32() as usize));
        let comes =
            |e: &Edge| reached.contains(f.inst_block(e.inst).as_u32() as usize) && is_live(*e);
        for &block in order {
            let edges = f.predecessors(block).iter().copied().filter(comes);
            analysis.incoming[block.as_u32() as usize] = edges.collect();
        }
        analysis.find_leaders();
        analysis.find_facts();
        analysis.settle();
        analysis
    }

    fn find_leaders(&mut self) {
        let mut place = 0;
        for &block in self.order {
            let results = self.f.block_insts(block).flat_map(|i| self.f.inst(i).results.iter());
            for &value in self.f.block_params(block).iter().chain(results) {
                if self.f.value_type(value).is_int() {
                    let list = self.leaders.entry(self.classes.class(value)).or_default();
                    let is_led = list.iter().any(|of| self.dom.dominates(of.block, block));
                    if !is_led && list.len() < MAX_LEADERS {
                        list.push(Leader { value, block, place });
                    }
                    place += 1;
                }
            }
        }
    }

    fn find_facts(&mut self) {
        for &block in self.order {
            let &[edge] = &self.incoming[block.as_u32() as usize][..] else { continue };
            let tests = self.tests_of(edge);
            for test in &tests {
                let operands = test.operation.iter().flat_map(|of| of.args.iter());
                for class in operands.chain([&test.class]) {
                    let list = self.facts.entry(*class).or_default();
                    if list.len() < MAX_FACTS && list.last() != Some(&block) {
                        list.push(block);
                    }
                }
            }
            if !tests.is_empty() {
                self.tests.insert(block, tests);
            }
        }
    }

    /// The tests that an edge says something about: of the condition, and of the operand that it
    /// tests.
    fn tests_of(&self, edge: Edge) -> SmallVec<[BranchTest; 2]> {
        let mut tests = SmallVec::new();
        let data = self.f.inst(edge.inst);
        let Some(&condition) = data.args.first().filter(|_| data.opcode == Opcode::BrIf) else {
            return tests;
        };
        let (mut class, mut holds) = (self.classes.class(condition), edge.index == 0);
        let mut operation = self.classes.operation(condition);
        for _ in 0..MAX_TESTS {
            let next = operation.as_ref().and_then(|op| self.tested(op));
            tests.push(BranchTest { class, holds, operation });
            let Some((of, is_same)) = next else { break };
            (class, holds) = (of, holds == is_same);
            operation = self.classes.first_operation(class);
        }
        tests
    }

    /// The class that an operation tests for zero, and whether the result is true if it is not.
    fn tested(&self, operation: &RangeOperation) -> Option<(TermIndex, bool)> {
        let zero = Some(Interval::exactly(0));
        match (operation.opcode, &operation.args[..]) {
            (Opcode::Eqz, &[x]) => Some((x, false)),
            (Opcode::Ne | Opcode::Eq, &[x, y]) => {
                let is_ne = operation.opcode == Opcode::Ne;
                let pairs = [(x, y), (y, x)];
                let found = pairs.into_iter().find(|(_, y)| self.classes.always(*y) == zero);
                found.map(|(x, _)| (x, is_ne))
            }
            _ => None,
        }
    }

    /// Walks over the blocks until nothing grows, and then twice more.
    fn settle(&mut self) {
        let mut number = 0;
        while self.walk(number) {
            number += 1;
            if number == MAX_WALKS + MAX_LATE_WALKS {
                // All other values follow from these in one walk, since operands come first.
                self.forget_params();
                self.walk(LAST_WALK);
                return;
            }
        }
        // Intervals only shrink from here on, and each remains true of the ones before.
        self.walk(LAST_WALK);
        self.walk(LAST_WALK);
    }

    /// Makes all parameters unknown, for good.
    fn forget_params(&mut self) {
        for leader in self.leaders.values().flatten() {
            if let ValueDef::Param(..) = self.f.value_def(leader.value) {
                self.given_up.insert(leader.value.as_u32() as usize);
            }
        }
    }

    /// Finds the interval of each class anew. Returns whether one has grown.
    fn walk(&mut self, number: usize) -> bool {
        let mut has_grown = false;
        for &block in self.order {
            let params = self.f.block_params(block).iter().enumerate();
            for (index, &param) in params {
                if self.leads(param) && block != self.f.entry() && self.classes.is_bound(param) {
                    has_grown |= self.enter(block, param, index, number);
                }
            }
            for inst in self.f.block_insts(block) {
                for &value in &self.f.inst(inst).results {
                    if self.leads(value) {
                        has_grown |= self.define(block, value, number);
                    }
                }
            }
        }
        has_grown
    }

    fn leads(&self, value: Value) -> bool {
        let leaders = self.leaders.get(&self.classes.class(value));
        leaders.is_some_and(|leaders| leaders.iter().any(|leader| leader.value == value))
    }

    fn enter(&mut self, block: Block, param: Value, index: usize, number: usize) -> bool {
        let class = self.classes.class(param);
        let Some(all) = self.classes.always(class) else { return false };
        if self.given_up.contains(param.as_u32() as usize) {
            return self.set(param, all, all, number);
        }
        let brought = self.incoming[block.as_u32() as usize].iter();
        let brought = brought.filter_map(|e| self.over(*e, self.f.target(*e).args[index]));
        let Some(all_brought) = brought.reduce(Interval::or) else { return false };
        self.set(param, all_brought.and(all), all, number)
    }

    /// The contents that an edge brings of a value; `None` if none are known to come.
    fn over(&self, edge: Edge, value: Value) -> Option<Interval> {
        let (from, class) = (self.f.inst_block(edge.inst), self.classes.class(value));
        let own = self.at(from, class, 0)?;
        Some(self.narrowed(&self.tests_of(edge), from, class, own, 0))
    }

    fn define(&mut self, block: Block, value: Value, number: usize) -> bool {
        let class = self.classes.class(value);
        let Some(all) = self.classes.always(class) else { return false };
        let operation = self.classes.operation(value);
        let known = match &operation {
            Some(operation) => match self.computed(block, operation) {
                Some(known) => known.map_or(all, |known| known.and(all)),
                // An operand has no contents so far.
                None => return false,
            },
            None => all,
        };
        let known = match operation.and_then(|of| self.compared(block, &of)) {
            Some((_, holds)) => Interval::exactly(holds.into()),
            None => known,
        };
        self.set(value, known, all, number)
    }

    /// The result of an operation at the end of a block: `None` if an operand has no contents so
    /// far, `Some(None)` if nothing is known.
    fn computed(&self, block: Block, of: &RangeOperation) -> Option<Option<Interval>> {
        let mut operands: SmallVec<[Interval; 3]> = SmallVec::new();
        for class in &of.args {
            if self.classes.always(*class).is_none() {
                return Some(None);
            }
            operands.push(self.at(block, *class, 0)?);
        }
        Some(of_operation(of.opcode, of.ty.bits(), &operands))
    }

    /// The block behind a branch that decides a comparison in `block`, with the result.
    fn compared(&self, block: Block, asked: &RangeOperation) -> Option<(Block, bool)> {
        let &[x, y] = &asked.args[..] else { return None };
        let operands = [self.at(block, x, 0)?, self.at(block, y, 0)?];
        let behind = self.facts.get(&x).into_iter().flatten();
        let mut behind = behind.filter(|of| self.dom.dominates(**of, block));
        behind.find_map(|of| {
            let tests = self.tests.get(of).into_iter().flatten();
            let mut results = tests.filter_map(|test| {
                let known = test.operation.as_ref()?;
                let is_swapped = known.args[..] == [y, x] && x != y;
                let fits = is_swapped || known.args[..] == [x, y];
                let found = implied(known.opcode, test.holds, is_swapped, asked.opcode, operands);
                found.filter(|_| fits)
            });
            results.next().map(|result| (*of, result))
        })
    }

    fn set(&mut self, leader: Value, new: Interval, all: Interval, number: usize) -> bool {
        let old = self.found.get(&leader).copied();
        let has_grown = old.is_none_or(|old| !new.is_within(old));
        let new = match old {
            // The last walks take each interval as it comes.
            _ if number == LAST_WALK => new,
            None => new,
            Some(old) if !has_grown => old,
            Some(_) if number >= MAX_WALKS => all,
            Some(old) if number > EXACT_WALKS => widened(old, old.or(new), all),
            Some(old) => old.or(new),
        };
        self.found.insert(leader, new);
        has_grown && old != Some(new)
    }

    fn leader_at(&self, block: Block, class: TermIndex) -> Option<Leader> {
        let leaders = self.leaders.get(&class)?;
        leaders.iter().copied().find(|leader| self.dom.dominates(leader.block, block))
    }

    /// The branches that narrow a class at the end of a block.
    fn facts_at(&self, block: Block, class: TermIndex) -> impl Iterator<Item = Block> + '_ {
        let leader = self.leader_at(block, class);
        let list = self.facts.get(&class).into_iter().flatten().copied();
        list.filter(move |of| {
            let is_defined = leader
                .is_some_and(|leader| leader.block != *of && self.dom.dominates(leader.block, *of));
            is_defined && self.dom.dominates(*of, block)
        })
    }

    /// The contents of a class at the end of a block; `None` if there are none so far.
    fn at(&self, block: Block, class: TermIndex, depth: usize) -> Option<Interval> {
        let all = self.classes.always(class)?;
        let Some(leader) = self.leader_at(block, class) else { return Some(all) };
        let mut own = self.found.get(&leader.value).copied().or_else(|| {
            // Parameters of the entry, and copies.
            self.is_unknown(leader.value).then_some(all)
        })?;
        for of in self.facts_at(block, class) {
            if let Some((tests, edge)) = self.tests.get(&of).zip(self.only_edge(of)) {
                own = self.narrowed(tests, self.f.inst_block(edge.inst), class, own, depth);
            }
        }
        Some(own)
    }

    fn is_unknown(&self, leader: Value) -> bool {
        match self.f.value_def(leader) {
            ValueDef::Param(block, _) => block == self.f.entry() || !self.classes.is_bound(leader),
            ValueDef::Result(..) => false,
        }
    }

    fn only_edge(&self, block: Block) -> Option<Edge> {
        match self.incoming[block.as_u32() as usize][..] {
            [edge] => Some(edge),
            _ => None,
        }
    }

    /// The contents of a class behind tests at the end of the block `from`.
    fn narrowed(
        &self,
        tests: &[BranchTest],
        from: Block,
        class: TermIndex,
        own: Interval,
        depth: usize,
    ) -> Interval {
        let mut own = own;
        for test in tests {
            if test.class == class {
                own = if test.holds { own.without(0) } else { own.and(Interval::exactly(0)) };
            }
            let Some(of) = &test.operation else { continue };
            let &[a, b] = &of.args[..] else { continue };
            let other = |class: TermIndex| match depth < MAX_DEPTH {
                true => self.at(from, class, depth + 1).or_else(|| self.classes.always(class)),
                false => self.classes.always(class),
            };
            if a == class
                && let Some(other) = other(b)
            {
                own = behind(of.opcode, of.ty.bits(), test.holds, [own, other], 0);
            }
            if b == class
                && let Some(other) = other(a)
            {
                own = behind(of.opcode, of.ty.bits(), test.holds, [other, own], 1);
            }
        }
        own
    }

    /// Whether a value is zero at the end of a block, or never zero there.
    pub fn is_zero(&self, block: Block, value: Value) -> Option<bool> {
        let found = self.at(block, self.classes.class(value), 0)?;
        match (found.has(0), found.value()) {
            (false, _) => Some(false),
            (true, Some(_)) => Some(true),
            _ => None,
        }
    }

    /// The facts behind what [`RangeAnalysis::is_zero`] says of values, in an order in which
    /// operands precede operations.
    pub fn claims(&self, wanted: impl IntoIterator<Item = (Block, Value)>) -> Vec<RangeFact> {
        let mut seen: BTreeSet<(Block, TermIndex)> = BTreeSet::new();
        let mut facts: Vec<(u32, RangeFact)> = Vec::new();
        let wanted = wanted.into_iter().map(|(block, value)| (block, self.classes.class(value)));
        let mut work: Vec<(Block, TermIndex)> = wanted.collect();
        while let Some((block, class)) = work.pop() {
            if !seen.insert((block, class)) {
                continue;
            }
            let (leader, all) = (self.leader_at(block, class), self.classes.always(class));
            let (Some(leader), Some(within)) = (leader, self.at(block, class, 0)) else { continue };
            if all.is_some_and(|all| all.is_within(within)) {
                continue;
            }
            let by = self.reason(block, class, leader, &mut work);
            facts.push((leader.place, RangeFact { block, value: leader.value, within, by }));
        }
        facts.sort_by_key(|(place, fact)| (*place, fact.block));
        facts.into_iter().map(|(_, fact)| fact).collect()
    }

    /// The reason of a fact. Adds the facts that it rests on to the work.
    fn reason(
        &self,
        block: Block,
        class: TermIndex,
        leader: Leader,
        work: &mut Vec<(Block, TermIndex)>,
    ) -> RangeBy {
        let mut rest_on = |edge: Edge, class: TermIndex| {
            let from = self.f.inst_block(edge.inst);
            work.push((from, class));
            for of in self.tests_of(edge).iter().filter_map(|test| test.operation.as_ref()) {
                if of.args.contains(&class) {
                    work.extend(of.args.iter().map(|arg| (from, *arg)));
                }
            }
        };
        if let Some(of) = self.facts_at(block, class).last() {
            if of != block {
                work.push((of, class));
                return RangeBy::Above(of);
            }
            self.only_edge(of).into_iter().for_each(|edge| rest_on(edge, class));
            return RangeBy::Edges;
        }
        if leader.block != block {
            work.push((leader.block, class));
            return RangeBy::Above(leader.block);
        }
        if let ValueDef::Param(_, index) = self.f.value_def(leader.value)
            && self.classes.is_bound(leader.value)
        {
            for &edge in &self.incoming[block.as_u32() as usize] {
                let given = self.f.target(edge).args[index as usize];
                rest_on(edge, self.classes.class(given));
            }
            return RangeBy::Edges;
        }
        let operation = self.classes.operation(leader.value);
        let operands = operation.iter().flat_map(|of| of.args.iter());
        work.extend(operands.map(|arg| (block, *arg)));
        match operation.and_then(|operation| self.compared(block, &operation)) {
            Some((of, _)) => RangeBy::Compared(of),
            None => RangeBy::Operation,
        }
    }
}

/// An interval that has grown from `old` to `new`, with bounds of the ladder where it has.
fn widened(old: Interval, new: Interval, all: Interval) -> Interval {
    let ladder = || LADDER.into_iter().chain([all.low, all.low + 1, all.high - 1, all.high]);
    let low = ladder().filter(|bound| *bound <= new.low).max().unwrap_or(all.low);
    let high = ladder().filter(|bound| *bound >= new.high).min().unwrap_or(all.high);
    Interval {
        low: if new.low < old.low { low } else { new.low },
        high: if new.high > old.high { high } else { new.high },
    }
}
