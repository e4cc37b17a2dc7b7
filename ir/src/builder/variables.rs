//! The client's accesses to its variables, as recorded.

use crate::entity::{Block, Value};
use crate::types::Type;
use cranelift_entity::{PrimaryMap, entity_impl};
use std::collections::{BTreeSet, HashMap};

/// A mutable variable of the function being built. See [`super::FunctionBuilder::declare_var`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Variable(u32);
entity_impl!(Variable, "var");

/// The accesses to one variable in one block.
#[derive(Clone, Copy, Debug)]
pub(super) struct VariableAccess {
    pub(super) variable: Variable,
    pub(super) block: Block,
    /// The value of the variable at the current end of the block.
    pub(super) current: Value,
    /// The placeholder for the variable's value at the start of the block, if the block reads the
    /// variable before setting it. Until `finish` a placeholder belongs to no instruction and to no
    /// parameter list.
    pub(super) read: Option<Value>,
    /// Whether the block sets the variable.
    pub(super) set: bool,
}

/// The variables of a function and the blocks that access them.
#[derive(Debug, Default)]
pub(super) struct Variables {
    pub(super) types: PrimaryMap<Variable, Type>,
    /// In the order of the first access.
    pub(super) accesses: Vec<VariableAccess>,
    /// A map for look-up only. It is never iterated, so its hash order cannot reach a result.
    index: HashMap<(Variable, Block), u32>,
}

impl Variables {
    /// The value of the variable at the end of a block; `None` if the block does not access it.
    pub(super) fn current(&self, variable: Variable, block: Block) -> Option<Value> {
        self.index.get(&(variable, block)).map(|i| self.accesses[*i as usize].current)
    }

    pub(super) fn set(&mut self, variable: Variable, block: Block, value: Value) {
        match self.index.get(&(variable, block)) {
            Some(i) => {
                let access = &mut self.accesses[*i as usize];
                (access.current, access.set) = (value, true);
            }
            None => {
                self.push(VariableAccess { variable, block, current: value, read: None, set: true })
            }
        }
    }

    /// Records that a block without an earlier access reads the variable, with `value` as the
    /// placeholder.
    pub(super) fn read(&mut self, variable: Variable, block: Block, value: Value) {
        self.push(VariableAccess {
            variable,
            block,
            current: value,
            read: Some(value),
            set: false,
        });
    }

    fn push(&mut self, access: VariableAccess) {
        self.index.insert((access.variable, access.block), self.accesses.len() as u32);
        self.accesses.push(access);
    }

    /// The blocks that access any variable.
    pub(super) fn blocks(&self) -> BTreeSet<Block> {
        self.accesses.iter().map(|a| a.block).collect()
    }

    /// All accesses, grouped by variable, by a counting sort.
    pub(super) fn by_variable(&self) -> Vec<VariableAccess> {
        use cranelift_entity::EntityRef;
        let mut next = vec![0u32; self.types.len() + 1];
        for access in &self.accesses {
            next[access.variable.index() + 1] += 1;
        }
        for v in 0..self.types.len() {
            next[v + 1] += next[v];
        }
        let mut order = vec![0u32; self.accesses.len()];
        for (i, access) in self.accesses.iter().enumerate() {
            let slot = &mut next[access.variable.index()];
            order[*slot as usize] = i as u32;
            *slot += 1;
        }
        order.into_iter().map(|i| self.accesses[i as usize]).collect()
    }
}
