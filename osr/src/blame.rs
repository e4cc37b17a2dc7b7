//! The actions of the log to suspect for a point without an entry, the likeliest first.
//!
//! An entry lacks a value v where the target version needs it and the source version lacks it. The
//! log is to blame for either:
//!
//! - *why is v lacking?* Where an action removed, moved or created its definition, or replaced v.
//! - *why is v needed?* Both versions may have v, but only the target version reads it behind the
//!   landing point. Then the search walks up from v along its uses in the target version: a use
//!   that the source version lacks was made, removed or redirected by an action; a use that both
//!   have leads on to the results of its instruction, of which the same question is asked.
//!
//! Removals of code that nothing uses are effects of other actions and are passed over: it is the
//! action that took the last use away that made the value unneeded.
//!
//! This is a guess from the log. `osier::driver::counterfactual` tests it.

use crate::facts::FirstActions;
use crate::pair::VersionPair;
use crate::reason::{Reason, Unmapped};
use ir::{Function, Inst, Opcode, Point, Value};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use transition::Side;

/// Instructions, and arguments of each, that the search looks at.
const MAX_USERS: usize = 64;

/// Suspects that the search names.
const MAX_SUSPECTS: usize = 8;

/// Actions by index in the log, the likeliest first.
pub(crate) type Suspects = SmallVec<[u32; 2]>;

/// The answers of the search for values: many points lack the same one.
pub(crate) type KnownSuspects = BTreeMap<(Value, bool), Suspects>;

/// Why a point has no entry.
#[derive(Clone, Copy)]
pub(crate) struct Lack {
    pub(crate) point: Point,
    pub(crate) reason: Reason,
    pub(crate) value: Option<Value>,
    pub(crate) inst: Option<Inst>,
}

impl Lack {
    pub(crate) fn of(unmapped: &Unmapped) -> Lack {
        let Unmapped { point, reason, value, inst, .. } = *unmapped;
        Lack { point, reason, value, inst }
    }
}

/// The actions to suspect. `known` has the answers for values.
pub(crate) fn suspects(
    (pair, from): (&VersionPair<'_>, Side),
    lack: Lack,
    known: &mut KnownSuspects,
) -> Suspects {
    let first = &pair.facts.first;
    let mut suspects = match (lack.reason, lack.value) {
        (Reason::Effect, _) => first.on_effects().map(|at| at as u32).into_iter().collect(),
        (reason, Some(value)) => {
            let key = (value, reason == Reason::NotLive);
            let of_value = || Walk::new(pair, from).of_value(value, key.1);
            known.entry(key).or_insert_with(of_value).clone()
        }
        (_, None) => Suspects::new(),
    };
    if let Some(inst) = lack.inst {
        suspects.extend_from_slice(first.placed(inst));
        suspects.extend(first.of_inst(inst).map(|at| at as u32));
    }
    if suspects.is_empty() {
        suspects.extend(first.of_inst(lack.point.inst()).map(|at| at as u32));
    }
    suspects
}

/// The search from one value.
struct Walk<'a, 'v> {
    first: &'a FirstActions,
    pair: &'a VersionPair<'v>,
    from: Side,
    p: &'a Function,
    q: &'a Function,
    seen: BTreeSet<Inst>,
    found: Suspects,
}

impl<'a, 'v> Walk<'a, 'v> {
    fn new(pair: &'a VersionPair<'v>, from: Side) -> Walk<'a, 'v> {
        let (p, q) = (pair.source(from).f, pair.target(from).f);
        let (first, seen, found) = (&pair.facts.first, BTreeSet::new(), Suspects::new());
        Walk { first, pair, from, p, q, seen, found }
    }

    fn of_value(mut self, value: Value, is_not_live: bool) -> Suspects {
        if is_not_live {
            self.uses(value);
            self.definition(value);
        } else {
            self.definition(value);
            self.uses(value);
        }
        if self.found.is_empty() {
            let mentioned = self.first.of_value(value).map(|at| at as u32);
            mentioned.into_iter().for_each(|at| self.suspect(at));
        }
        self.found
    }

    fn suspect(&mut self, action: u32) {
        if self.found.len() < MAX_SUSPECTS && !self.found.contains(&action) {
            self.found.push(action);
        }
    }

    /// Suspects the actions that created, moved, replaced or removed a value.
    fn definition(&mut self, value: Value) {
        let replaced = self.first.replaced(value);
        replaced.iter().for_each(|(at, _)| self.suspect(*at));
        match self.q.defining_inst(value) {
            Some(inst) => self.first.placed(inst).iter().for_each(|at| self.suspect(*at)),
            None => self.first.of_value(value).into_iter().for_each(|at| self.suspect(at as u32)),
        }
    }

    /// Suspects the actions because of which the target version needs a value, and the source
    /// version does not.
    fn uses(&mut self, value: Value) {
        let mut values: SmallVec<[Value; 4]> = SmallVec::from_iter([value]);
        if self.from == Side::Before {
            self.first.standing_in(value).iter().for_each(|at| self.suspect(*at));
        }
        // Breadth first, one link of the chain a round: the action nearest to the value comes
        // first. `seen` ends the walk around loops.
        while !values.is_empty() && self.seen.len() < MAX_USERS && self.found.len() < MAX_SUSPECTS {
            let mut next: SmallVec<[Value; 4]> = SmallVec::new();
            for value in values {
                for user in self.q.users(value).iter().copied().take(MAX_USERS) {
                    let runs =
                        !self.pair.is_unreachable(self.from.other(), self.q.inst_block(user));
                    if runs && self.seen.insert(user) {
                        self.use_of(user, value, &mut next);
                    }
                }
            }
            values = next;
        }
    }

    /// Suspects the actions because of which the source version lacks a use; else goes on to what
    /// the use gives.
    fn use_of(&mut self, user: Inst, value: Value, next: &mut SmallVec<[Value; 4]>) {
        let count = self.found.len();
        let data = self.q.inst(user);
        if !self.p.has_inst(user) {
            let replaced = data.results.iter().flat_map(|result| self.first.replaced(*result));
            replaced.for_each(|(at, _)| self.suspect(*at));
            // What nothing uses is removed in consequence. The jump of a new block hands on what
            // the edge handed on before.
            let is_dead = self.from == Side::After && !data.results.is_empty();
            let is_plain = data.opcode == Opcode::Jump || is_dead;
            if self.found.len() == count && !is_plain {
                self.first.placed(user).iter().for_each(|at| self.suspect(*at));
            }
        } else if !reads(self.p, user, value) {
            self.redirected(user, value);
        } else {
            self.first.placed(user).iter().for_each(|at| self.suspect(*at));
        }
        if self.found.len() == count {
            next.extend(data.results.iter().copied());
            next.extend(bound_to(self.q, user, value));
        }
    }

    /// Suspects the actions because of which an instruction that both versions have reads a value
    /// in the target version alone.
    fn redirected(&mut self, user: Inst, value: Value) {
        let is_new = |[before, after]: &[Value; 2]| match self.from {
            Side::Before => *after == value,
            Side::After => *before == value,
        };
        let operands: SmallVec<[u32; 4]> =
            self.first.operands(user).iter().filter(|(_, o)| is_new(o)).map(|(at, _)| *at).collect();
        operands.iter().for_each(|at| self.suspect(*at));
        match self.from {
            Side::After => self.first.replaced(value).iter().for_each(|(at, _)| self.suspect(*at)),
            // Of the operands that the source version has there, those that links lead from.
            Side::Before => {
                for operand in operands_of(self.p, user) {
                    self.link(operand, value);
                }
            }
        }
        self.first.placed(user).iter().for_each(|at| self.suspect(*at));
    }

    /// Suspects the replacements that lead from one value to another, the last first.
    fn link(&mut self, from: Value, to: Value) {
        let mut links: SmallVec<[u32; 4]> = SmallVec::new();
        let mut value = from;
        while value != to && links.len() < MAX_SUSPECTS {
            let Some((at, after)) = self.first.replaced(value).last() else { return };
            links.push(*at);
            value = *after;
        }
        links.iter().rev().for_each(|at| self.suspect(*at));
    }
}

/// Whether an instruction reads a value, as an operand or as an argument of a target.
fn reads(f: &Function, inst: Inst, value: Value) -> bool {
    operands_of(f, inst).any(|operand| operand == value)
}

fn operands_of(f: &Function, inst: Inst) -> impl Iterator<Item = Value> + '_ {
    let data = f.inst(inst);
    let bound = data.targets.iter().flat_map(|target| target.args.iter());
    data.args.iter().chain(bound).copied().take(MAX_USERS)
}

/// The block parameters that a terminator binds to a value, up to the limit.
fn bound_to(f: &Function, inst: Inst, value: Value) -> SmallVec<[Value; 4]> {
    let targets = f.inst(inst).targets.iter();
    let bound = targets.flat_map(|target| f.block_params(target.block).iter().zip(&target.args));
    bound.take(MAX_USERS).filter(|(_, arg)| **arg == value).map(|(param, _)| *param).collect()
}
