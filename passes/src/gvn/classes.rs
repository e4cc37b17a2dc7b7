//! The numbering of a function: the class of every value, and the edges that may be taken.
//!
//! The rounds follow [`number::NumberingRound`], which the certifier shares. Every value that is no
//! function of the classes of its operands is a leaf, named after the value.

use super::form::ClassesAlone;
use ir::{Block, Edge, Function, Inst, InstData, Value};
use number::{
    ClassArgs, ClassTable, CopyAssumptions, Dense, FlowGraph, Home, HomesMark, LiveTargets,
    NumberingRound, TermIndex, ValueClasses,
};
use smallvec::SmallVec;
use std::ops::Range;

/// The classes of a function's values. Valid until the function changes.
#[derive(Debug)]
pub(super) struct ValueNumbering<'f> {
    pub(super) graph: FlowGraph<'f>,
    pub(super) table: ClassTable<ClassesAlone>,
    assumed: CopyAssumptions,
    found: ValueClasses,
    /// The leaf named after a value.
    leaves: Dense<Value>,
}

impl<'f> ValueNumbering<'f> {
    /// Numbers a function. Cost: near linear in its size, times the turns of the loops around an
    /// instruction ([`NumberingRound::walk`]).
    pub(super) fn new(f: &'f Function) -> ValueNumbering<'f> {
        let mut numbering = ValueNumbering {
            graph: FlowGraph::new(f),
            table: ClassTable::with_rules(f.rules()),
            assumed: CopyAssumptions::new(f),
            found: ValueClasses::default(),
            leaves: Dense::default(),
        };
        numbering.found.reset(f);
        numbering.leaves.reset(f.value_bound());
        numbering.walk();
        numbering
    }

    /// The term of a value; [`number::NO_TERM`] in unreachable code.
    pub(super) fn term(&self, value: Value) -> TermIndex {
        self.found.terms.get(value)
    }

    /// The edges that branches always take, for the branches that take a single edge.
    pub(super) fn decided(&self) -> Vec<Edge> {
        let f = self.graph.f;
        let only = |block: &Block| match self.found.live.targets(*block) {
            LiveTargets::One(index) => Some(Edge { inst: f.terminator(*block), index }),
            _ => None,
        };
        self.graph.order().iter().filter_map(only).collect()
    }

    /// Gives a value the leaf named after another value.
    fn bind(&mut self, value: Value, name: Value, block: Block) {
        let leaf = self.leaves.find(name).unwrap_or_else(|| {
            let leaf = self.table.leaf((), Some(self.graph.f.value_type(name)));
            self.found.homes.bind(leaf, block);
            self.leaves.set(name, leaf);
            leaf
        });
        self.found.terms.set(value, leaf);
    }

    fn number(&mut self, inst: Inst, block: Block) {
        let data = self.graph.f.inst(inst);
        match data.result().filter(|_| is_numbered(data)) {
            Some(result) => {
                let args: ClassArgs = data.args.iter().map(|v| self.class(*v)).collect();
                let term = self.table.op(data.opcode, data.ty, data.imm, args);
                self.found.terms.set(result, term);
            }
            None => data.results.iter().for_each(|v| self.bind(*v, *v, block)),
        }
    }
}

/// A state to return to.
pub(super) struct NumberingMark {
    /// The number of terms.
    terms: usize,
    homes: HomesMark,
}

impl<'f> NumberingRound<'f> for ValueNumbering<'f> {
    type Form = ClassesAlone;
    type Mark = NumberingMark;

    fn graph(&self) -> &FlowGraph<'f> {
        &self.graph
    }

    fn table(&self) -> &ClassTable<ClassesAlone> {
        &self.table
    }

    fn assumed(&self) -> &CopyAssumptions {
        &self.assumed
    }

    fn assumed_mut(&mut self) -> &mut CopyAssumptions {
        &mut self.assumed
    }

    fn found(&self) -> &ValueClasses {
        &self.found
    }

    fn found_mut(&mut self) -> &mut ValueClasses {
        &mut self.found
    }

    fn home(&mut self, class: TermIndex) -> Home {
        self.found.homes.of(&self.table, &self.graph.dom, class)
    }

    fn bind_arguments(&mut self) {
        let entry = self.graph.f.entry();
        self.graph.f.block_params(entry).iter().for_each(|p| self.bind(*p, *p, entry));
    }

    fn bind_equal(&mut self, block: Block, members: &[Value]) {
        members.iter().for_each(|p| self.bind(*p, members[0], block));
    }

    fn number_block(&mut self, block: Block) {
        self.graph.f.block_insts(block).for_each(|inst| self.number(inst, block));
    }

    fn mark(&mut self) -> NumberingMark {
        let terms = self.table.terms().len();
        NumberingMark { terms, homes: self.found.homes.mark(terms) }
    }

    fn rewind(&mut self, mark: &NumberingMark, places: Range<usize>) {
        let ValueNumbering { graph, table, found, leaves, .. } = self;
        table.rewind(mark.terms);
        found.homes.rewind(mark.homes);
        for &block in &graph.order()[places] {
            found.forget(graph.f, block);
            graph.f.block_params(block).iter().for_each(|value| leaves.unset(*value));
            let results = graph.f.block_insts(block).flat_map(|inst| &graph.f.inst(inst).results);
            results.for_each(|value| leaves.unset(*value));
        }
    }

    // Each block binds its own leaves once more, in the same homes.
    fn rewind_bindings(&mut self, _mark: &NumberingMark) {}

    fn revise(&mut self, block: Block, _mark: &NumberingMark) -> bool {
        let ValueNumbering { graph, table, assumed, found, .. } = self;
        let edges: SmallVec<[Edge; 4]> = found.live.leading_to(graph.f, block).collect();
        assumed.revise(graph.f, block, &edges, |value| found.class(table, value))
    }

    fn give_up(&mut self, block: Block) {
        self.assumed.give_up(self.graph.f.block_params(block).iter().copied());
    }
}

/// Whether the result of an instruction is a function of the classes of its operands.
fn is_numbered(data: &InstData) -> bool {
    data.opcode.is_value_determined()
}
