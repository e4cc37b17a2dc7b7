//! What the client said about its variables, as it said it.

use crate::entity::{Block, Value};
use crate::types::Type;
use cranelift_entity::{PrimaryMap, entity_impl};
use std::collections::{BTreeSet, HashMap};

/// A mutable variable of the function being built. See [`super::FunctionBuilder::declare_var`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Variable(u32);
entity_impl!(Variable, "var");

/// What happens to one variable in one block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) variable: Variable,
    pub(super) block: Block,
    /// What the variable holds at the end of the block as far as it is built.
    pub(super) current: Value,
    /// What stands for the variable's value at the start of the block, when it is read before it is
    /// set: a value that belongs to no instruction and no parameter list until `finish`.
    pub(super) read: Option<Value>,
    /// Whether the block sets it.
    pub(super) set: bool,
}

/// The variables of a function and the blocks that touch them.
#[derive(Debug, Default)]
pub(super) struct Variables {
    pub(super) types: PrimaryMap<Variable, Type>,
    /// In the order of the first access.
    pub(super) accesses: Vec<Access>,
    /// Looked up only, never iterated.
    index: HashMap<(Variable, Block), u32>,
}

impl Variables {
    /// What the variable holds at the end of a block, if the block touches it.
    pub(super) fn current(&self, variable: Variable, block: Block) -> Option<Value> {
        self.index.get(&(variable, block)).map(|i| self.accesses[*i as usize].current)
    }

    pub(super) fn set(&mut self, variable: Variable, block: Block, value: Value) {
        match self.index.get(&(variable, block)) {
            Some(i) => {
                let access = &mut self.accesses[*i as usize];
                (access.current, access.set) = (value, true);
            }
            None => self.push(Access { variable, block, current: value, read: None, set: true }),
        }
    }

    /// Records that a block not seen to touch the variable reads it, as `value`.
    pub(super) fn read(&mut self, variable: Variable, block: Block, value: Value) {
        self.push(Access { variable, block, current: value, read: Some(value), set: false });
    }

    fn push(&mut self, access: Access) {
        self.index.insert((access.variable, access.block), self.accesses.len() as u32);
        self.accesses.push(access);
    }

    /// The blocks that access a variable.
    pub(super) fn blocks(&self) -> BTreeSet<Block> {
        self.accesses.iter().map(|a| a.block).collect()
    }

    /// The accesses of each variable in turn, by a counting sort.
    pub(super) fn by_variable(&self) -> Vec<Access> {
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
