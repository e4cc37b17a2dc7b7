//! Parameters that only ever receive one value.
//!
//! The *root* of a parameter is the single value that arrives on every edge that may be taken, or
//! the parameter itself if several values arrive. A set of parameters that pass each other around
//! loops has the root of the value that enters the set.
//!
//! Take the graph in which an argument leads to the parameter that receives it, and a source above
//! all leads to each value that is no parameter. A value that stands on every path from that source
//! to a parameter is all that the parameter can receive: it *dominates* the parameter. So the root
//! is the dominator right below the source. If two values arrive by ways of their own, no value but
//! the parameter itself stands there.

use super::{Analysis, Fact};
use cranelift_entity::EntityRef;
use ir::dom::{SuccessorGraph, immediate_dominators};
use ir::{Edge, Value, ValueDef};

/// The source above all values.
const SOURCE: u32 = 0;

/// By value index: the root of each parameter of a block that may be entered; `None` for other
/// values. Cost: near linear in the arguments of edges.
pub(super) fn roots(analysis: &Analysis<'_>) -> Vec<Option<Value>> {
    let function = analysis.function;
    let mut graph = ValueGraph {
        node: vec![SOURCE; function.value_bound()],
        values: Vec::new(),
        edges: Vec::new(),
    };
    for block in function.blocks().filter(|b| analysis.entered.contains(b.index())) {
        for edge in function.predecessors(block).iter().filter(|e| analysis.is_taken(**e)) {
            graph.add_edge(analysis, *edge);
        }
    }
    graph.roots(analysis)
}

/// Which values reach which parameters.
struct ValueGraph {
    /// By value index: its node, from 1, or the source for a value without a node.
    node: Vec<u32>,
    /// By node, from 1: its value.
    values: Vec<Value>,
    edges: Vec<(u32, u32)>,
}

impl ValueGraph {
    /// Adds the arguments of an edge.
    fn add_edge(&mut self, analysis: &Analysis<'_>, edge: Edge) {
        let target = analysis.function.target(edge);
        let params = analysis.function.block_params(target.block);
        // A parameter that receives itself receives nothing new. Loops over many variables pass
        // most of them on in this way.
        for (&param, &arg) in params.iter().zip(&target.args).filter(|(p, a)| p != a) {
            let ends = (self.node(analysis, arg), self.node(analysis, param));
            self.edges.push(ends);
        }
    }

    fn node(&mut self, analysis: &Analysis<'_>, value: Value) -> u32 {
        if self.node[value.index()] == SOURCE {
            self.values.push(value);
            self.node[value.index()] = self.values.len() as u32;
            if !passes_on(analysis, value) {
                self.edges.push((SOURCE, self.node[value.index()]));
            }
        }
        self.node[value.index()]
    }

    fn roots(self, analysis: &Analysis<'_>) -> Vec<Option<Value>> {
        let ValueGraph { node, values, edges } = self;
        let idom = immediate_dominators(&SuccessorGraph::new(values.len() + 1, &edges));
        // By node: its root, or the source if it is not known yet. Each walk ends at a known root,
        // and leaves all nodes known that it has passed.
        let mut root = vec![SOURCE; values.len() + 1];
        let mut path: Vec<u32> = Vec::new();
        for start in 1..root.len() as u32 {
            let mut at = start;
            while root[at as usize] == SOURCE {
                path.push(at);
                match idom[at as usize] {
                    SOURCE => root[at as usize] = at,
                    above if above == at => root[at as usize] = at,
                    above => at = above,
                }
            }
            let found = root[at as usize];
            path.drain(..).for_each(|passed| root[passed as usize] = found);
        }
        let mut roots = vec![None; node.len()];
        for (index, &value) in values.iter().enumerate() {
            if matches!(analysis.function.value_def(value), ValueDef::Param(..)) {
                roots[value.index()] = Some(values[root[index + 1] as usize - 1]);
            }
        }
        roots
    }
}

/// Whether a value is a parameter that passes its arguments on. One that is always the same
/// constant is replaced by the constant, so it counts as a value of its own.
fn passes_on(analysis: &Analysis<'_>, value: Value) -> bool {
    let function = analysis.function;
    match function.value_def(value) {
        ValueDef::Param(block, _) => {
            block != function.entry() && !matches!(analysis.fact(value), Fact::Constant(_))
        }
        ValueDef::Result(..) => false,
    }
}
