//! The client's accesses to its variables, as recorded.

use crate::entity::{Block, Value};
use crate::types::Type;
use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};
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
    /// In the order of the first access. The accesses from `begun` on belong to the current block.
    pub(super) accesses: Vec<VariableAccess>,
    begun: usize,
    /// By variable: one more than the index of its newest access, or 0.
    newest: SecondaryMap<Variable, u32>,
    /// The accesses of blocks that the builder left unfinished and may return to. A map for look-up
    /// only: it is never iterated, so its hash order cannot reach a result. Accesses of the current
    /// block need no entry, which halves the time of recording
    /// (`a_block_that_is_left_open_keeps_its_variables`).
    left: HashMap<(Variable, Block), u32>,
}

impl Variables {
    /// The index of the access of the current block to a variable.
    fn index(&self, variable: Variable, block: Block) -> Option<usize> {
        let newest = (self.newest[variable] as usize).checked_sub(1)?;
        if self.accesses[newest].block == block {
            return Some(newest);
        }
        match self.left.is_empty() {
            true => None,
            false => self.left.get(&(variable, block)).map(|index| *index as usize),
        }
    }

    /// Another block becomes the current one. `open` is the current block, if it has no terminator.
    pub(super) fn switch(&mut self, open: Option<Block>) {
        if let Some(block) = open {
            for index in self.begun..self.accesses.len() {
                self.left.insert((self.accesses[index].variable, block), index as u32);
            }
        }
        self.begun = self.accesses.len();
    }

    /// The value of the variable at the end of the current block; `None` if the block does not
    /// access it.
    pub(super) fn current(&self, variable: Variable, block: Block) -> Option<Value> {
        self.index(variable, block).map(|index| self.accesses[index].current)
    }

    pub(super) fn set(&mut self, variable: Variable, block: Block, value: Value) {
        match self.index(variable, block) {
            Some(index) => {
                let access = &mut self.accesses[index];
                (access.current, access.set) = (value, true);
            }
            None => {
                self.push(VariableAccess { variable, block, current: value, read: None, set: true })
            }
        }
    }

    /// Records that the current block reads the variable, without an earlier access, with `value`
    /// as the placeholder.
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
        self.accesses.push(access);
        self.newest[access.variable] = self.accesses.len() as u32;
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
