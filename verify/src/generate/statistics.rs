//! Counts of the contents of generated programs.

use super::feature::{FEATURES, Feature};
use ir::loops::LoopForest;
use ir::{Function, Module, Opcode, Type};
use std::collections::BTreeMap;

/// How often the generator planted each feature.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Planted {
    counts: [u64; FEATURES],
}

impl Default for Planted {
    fn default() -> Planted {
        Planted { counts: [0; FEATURES] }
    }
}

impl Planted {
    /// How often a feature was planted.
    pub fn of(&self, feature: Feature) -> u64 {
        self.counts[feature as usize]
    }

    pub(super) fn count(&mut self, feature: Feature) {
        self.counts[feature as usize] += 1;
    }

    fn add(&mut self, other: &Planted) {
        for (sum, count) in self.counts.iter_mut().zip(other.counts) {
            *sum += count;
        }
    }
}

/// Counts over one program, or over several. `planted` is counted by the generator as it goes, and
/// all others on the finished functions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// Programs.
    pub programs: u64,
    /// Functions with a body.
    pub functions: u64,
    /// Blocks.
    pub blocks: u64,
    /// Block parameters, without the arguments of functions.
    pub params: u64,
    /// Instructions, terminators included.
    pub instructions: u64,
    /// Instructions that may trap.
    pub may_trap: u64,
    /// Loops.
    pub loops: u64,
    /// Loops inside other loops.
    pub nested_loops: u64,
    /// Loops with more than one entry.
    pub multi_entry_loops: u64,
    /// Loops with more than one exit edge.
    pub multi_exit_loops: u64,
    /// Loops with more than one latch.
    pub multi_latch_loops: u64,
    /// Edges from a block with several successors to one with several predecessors.
    pub critical_edges: u64,
    /// Instructions of each opcode.
    pub opcodes: BTreeMap<Opcode, u64>,
    /// Results and block parameters of each type.
    pub types: BTreeMap<Type, u64>,
    /// How often each feature was planted.
    pub planted: Planted,
    /// Programs in which each feature was planted at least once.
    pub programs_with: BTreeMap<Feature, u64>,
}

impl Statistics {
    /// Counts a program. Cost: near linear in its size.
    pub fn of(module: &Module, planted: &Planted) -> Statistics {
        let mut statistics =
            Statistics { programs: 1, planted: planted.clone(), ..Statistics::default() };
        for (_, function) in module.defined() {
            statistics.functions += 1;
            statistics.count_code(function);
            statistics.count_loops(function);
        }
        for feature in Feature::ALL {
            statistics.programs_with.insert(*feature, u64::from(planted.of(*feature) > 0));
        }
        statistics
    }

    /// Adds the counts of other programs.
    pub fn add(&mut self, other: &Statistics) {
        self.programs += other.programs;
        self.functions += other.functions;
        self.blocks += other.blocks;
        self.params += other.params;
        self.instructions += other.instructions;
        self.may_trap += other.may_trap;
        self.loops += other.loops;
        self.nested_loops += other.nested_loops;
        self.multi_entry_loops += other.multi_entry_loops;
        self.multi_exit_loops += other.multi_exit_loops;
        self.multi_latch_loops += other.multi_latch_loops;
        self.critical_edges += other.critical_edges;
        self.planted.add(&other.planted);
        add_counts(&mut self.opcodes, &other.opcodes);
        add_counts(&mut self.types, &other.types);
        add_counts(&mut self.programs_with, &other.programs_with);
    }

    fn count_code(&mut self, function: &Function) {
        for block in function.blocks() {
            self.blocks += 1;
            let params = function.block_params(block);
            if block != function.entry() {
                self.params += params.len() as u64;
            }
            for param in params {
                *self.types.entry(function.value_type(*param)).or_default() += 1;
            }
            let successors = function.successors(block);
            let joins = successors.iter().filter(|t| function.predecessors(t.block).len() > 1);
            self.critical_edges += if successors.len() > 1 { joins.count() as u64 } else { 0 };
            for inst in function.block_insts(block) {
                let data = function.inst(inst);
                self.instructions += 1;
                self.may_trap += u64::from(function.may_trap(inst));
                *self.opcodes.entry(data.opcode).or_default() += 1;
                for result in &data.results {
                    *self.types.entry(function.value_type(*result)).or_default() += 1;
                }
            }
        }
    }

    fn count_loops(&mut self, function: &Function) {
        let forest = LoopForest::of(function);
        for id in forest.loops() {
            self.loops += 1;
            self.nested_loops += u64::from(forest.depth(id) > 1);
            self.multi_entry_loops += u64::from(!forest.is_reducible(id));
            self.multi_exit_loops += u64::from(forest.exits(id).len() > 1);
            self.multi_latch_loops += u64::from(forest.latches(id).len() > 1);
        }
    }
}

fn add_counts<K: Ord + Copy>(sums: &mut BTreeMap<K, u64>, counts: &BTreeMap<K, u64>) {
    for (key, count) in counts {
        *sums.entry(*key).or_default() += count;
    }
}
