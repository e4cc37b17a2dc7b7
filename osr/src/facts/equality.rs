//! Equal values, and the moves that end an equality.
//!
//! A `replace_all(o, n)` states a fact about the version in which it was recorded: a *link*, usable
//! where both ids are available in that version (`docs/osr.md`, *Rules for values*). Keeping every
//! intermediate version to look that up would cost too much. Instead, the reader records a link
//! only if n's definition dominated o's, or stood so close behind it that no bounding instruction
//! lies between. Then n is available wherever o is, and one question remains: whether o still
//! stands where it stood.
//!
//! Example: a pass replaces o by n and deletes o. A backward entry then copies n to o, without
//! computing o again.

use cranelift_entity::SecondaryMap;
use ir::{Inst, InstData, Type, Value};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use transition::Side;

/// A `replace_all`, seen from the replaced value.
#[derive(Clone, Copy, Debug)]
struct ValueLink {
    to: Value,
    /// The index of the action.
    at: u32,
}

/// The links between values, and the constants among them.
#[derive(Debug, Default)]
pub(super) struct Equalities {
    links: SecondaryMap<Value, Option<ValueLink>>,
    /// The bits of every value that a constant instruction defines, in any version of the log.
    constants: SecondaryMap<Value, Option<(Type, u64)>>,
    /// The number of actions: the time of the version after the log.
    end: u32,
}

impl Equalities {
    /// No equalities, of a log with `end` actions.
    pub(super) fn new(end: u32) -> Equalities {
        Equalities { end, ..Equalities::default() }
    }

    /// Records the constant that an instruction defines, if it is one.
    pub(super) fn define(&mut self, data: &InstData) {
        if let Some(bits) = data.constant() {
            data.results.iter().for_each(|v| self.constants[*v] = Some((data.ty, bits)));
        }
    }

    pub(super) fn has_link(&self, value: Value) -> bool {
        self.links[value].is_some()
    }

    /// Records that action `at` replaced `value` by `to`, which is available wherever `value` is.
    pub(super) fn link(&mut self, value: Value, to: Value, at: u32) {
        self.links[value] = Some(ValueLink { to, at });
    }

    /// See [`super::Facts::chain`].
    pub(super) fn chain(&self, moves: &Moves, value: Value, side: Side) -> SmallVec<[Value; 2]> {
        let mut chain = SmallVec::new();
        let (mut value, mut time) = (value, if side == Side::Before { 0 } else { self.end });
        while let Some(link) = self.links[value] {
            // A link recorded after the value moved out of reach is unusable, and so are all links
            // behind it. The second condition ends the walk should links ever form a cycle.
            if !moves.stands_still(value, time, link.at) || chain.contains(&link.to) {
                break;
            }
            (value, time) = (link.to, link.at);
            chain.push(value);
        }
        chain
    }

    /// See [`super::Facts::constant`].
    pub(super) fn constant(&self, moves: &Moves, value: Value, side: Side) -> Option<(Type, u64)> {
        self.chain(moves, value, side).iter().find_map(|id| self.constants[*id])
    }
}

/// A move of an instruction by action `at`. A move that is neither up nor down along dominance
/// counts as both.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoggedMove {
    pub(super) at: u32,
    pub(super) up: bool,
    pub(super) down: bool,
}

/// The moves of instructions, and the instructions that define values.
#[derive(Debug, Default)]
pub(super) struct Moves {
    of_inst: BTreeMap<Inst, SmallVec<[LoggedMove; 1]>>,
    /// By value of any version of the log: the instruction that defines it.
    definition: SecondaryMap<Value, Option<Inst>>,
}

impl Moves {
    pub(super) fn define(&mut self, inst: Inst, results: &[Value]) {
        results.iter().for_each(|value| self.definition[*value] = Some(inst));
    }

    pub(super) fn record(&mut self, inst: Inst, logged: LoggedMove) {
        self.of_inst.entry(inst).or_default().push(logged);
    }

    pub(super) fn is_moved(&self, inst: Inst) -> bool {
        self.of_inst.contains_key(&inst)
    }

    /// Whether a value available at some place at time `from` was available there at time `to`.
    /// Forward in time its definition must not have moved down, backward not up. Without this
    /// check, a value sunk below a branch and then replaced would equal its replacement above the
    /// branch too (`a_link_is_not_used_where_the_replaced_value_had_left`).
    fn stands_still(&self, value: Value, from: u32, to: u32) -> bool {
        let Some(moves) = self.definition[value].and_then(|inst| self.of_inst.get(&inst)) else {
            return true;
        };
        let mut between = moves.iter().filter(|m| (from.min(to)..from.max(to)).contains(&m.at));
        between.all(|m| if from <= to { !m.down } else { !m.up })
    }
}
