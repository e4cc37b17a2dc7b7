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
use ir::{Block, Function, Inst, Opcode, Point, Value, ValueDef};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use transition::Side;

/// Instructions, and arguments of each, that the search looks at.
const MAX_USERS: usize = 64;

/// Suspects that the search names.
const MAX_SUSPECTS: usize = 8;

/// Blocks in which a value waits for one use. Beyond, the use counts at every point.
const MAX_BLOCKS: usize = 64;

/// Actions by index in the log, the likeliest first.
pub(crate) type Suspects = SmallVec<[u32; 2]>;

/// The answers of the search for values: many points lack the same one.
pub(crate) type KnownSuspects = BTreeMap<(Value, bool), SuspectsOfValue>;

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
            let of_value = || UseWalk::new(pair, from).of_value(value, key.1);
            let (p, q) = (pair.source(from).f, pair.target(from).f);
            known.entry(key).or_insert_with(of_value).at(q, place_of(p, q, lack.point))
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

/// The instruction of one version that stands at a point of the other, or next behind it in its
/// block.
fn place_of(p: &Function, q: &Function, point: Point) -> Option<Inst> {
    std::iter::successors(Some(point.inst()), |at| p.next_inst(*at)).find(|at| q.has_inst(*at))
}

/// A value that waits for one use.
#[derive(Debug)]
struct Wait {
    defined: Option<Inst>,
    user: Inst,
    /// The blocks at whose end it waits; `None` for too many.
    at_end: Option<SmallVec<[Block; 4]>>,
}

impl Wait {
    fn new(f: &Function, value: Value, user: Inst) -> Wait {
        let defined = f.defining_inst(value);
        let home = match f.value_def(value) {
            ValueDef::Result(inst, _) => f.inst_block(inst),
            ValueDef::Param(block, _) => block,
        };
        let is_local =
            f.inst_block(user) == home && defined.is_none_or(|d| f.stands_before(d, user));
        let mut at_end: SmallVec<[Block; 4]> = SmallVec::new();
        let mut work: SmallVec<[Block; 4]> = SmallVec::new();
        if !is_local {
            work.push(f.inst_block(user));
        }
        while let Some(block) = work.pop() {
            for &before in f.predecessors(block) {
                let before = f.inst_block(before.inst);
                if at_end.contains(&before) {
                    continue;
                }
                if at_end.len() == MAX_BLOCKS {
                    return Wait { defined, user, at_end: None };
                }
                at_end.push(before);
                if before != home {
                    work.push(before);
                }
            }
        }
        Wait { defined, user, at_end: Some(at_end) }
    }

    /// Whether the value waits at a point.
    fn holds_at(&self, f: &Function, at: Inst) -> bool {
        let Some(at_end) = &self.at_end else { return true };
        let is_before = |a: Inst, b: Inst| a == b || f.stands_before(a, b);
        let block = f.inst_block(at);
        let is_defined =
            self.defined.is_none_or(|d| f.inst_block(d) != block || f.stands_before(d, at));
        let is_here = f.inst_block(self.user) == block && is_before(at, self.user);
        is_defined && (is_here || at_end.contains(&block))
    }
}

/// The suspects for a value, whatever the point.
#[derive(Debug, Default)]
pub(crate) struct SuspectsOfValue {
    waits: Vec<Wait>,
    /// Each with the uses that lead from the value to what the action changed.
    actions: SmallVec<[(u32, Trail); 2]>,
}

/// Uses, by number in [`SuspectsOfValue::waits`].
type Trail = SmallVec<[u32; 4]>;

impl SuspectsOfValue {
    /// The suspects for an entry that lands at an instruction. An action that gave the value a use
    /// for which it does not wait there comes last.
    fn at(&self, f: &Function, landing: Option<Inst>) -> Suspects {
        let counts = |(_, trail): &&(u32, Trail)| match landing {
            Some(at) if !trail.is_empty() => {
                trail.iter().any(|wait| self.waits[*wait as usize].holds_at(f, at))
            }
            _ => true,
        };
        let likely = self.actions.iter().filter(counts);
        let others = self.actions.iter().filter(|action| !counts(action));
        likely.chain(others).map(|(at, _)| *at).collect()
    }
}

/// The search from one value.
struct UseWalk<'a, 'v> {
    first: &'a FirstActions,
    pair: &'a VersionPair<'v>,
    from: Side,
    p: &'a Function,
    q: &'a Function,
    seen: BTreeSet<Inst>,
    found: SuspectsOfValue,
}

impl<'a, 'v> UseWalk<'a, 'v> {
    fn new(pair: &'a VersionPair<'v>, from: Side) -> UseWalk<'a, 'v> {
        let (p, q) = (pair.source(from).f, pair.target(from).f);
        let (first, seen) = (&pair.facts.first, BTreeSet::new());
        UseWalk { first, pair, from, p, q, seen, found: SuspectsOfValue::default() }
    }

    fn of_value(mut self, value: Value, is_not_live: bool) -> SuspectsOfValue {
        if is_not_live {
            self.uses(value);
            self.definition(value);
        } else {
            self.definition(value);
            self.uses(value);
        }
        if self.from == Side::Before {
            self.suspect_all(self.first.standing_in(value), &Trail::new());
        }
        self.suspect_all(self.first.of_value(value).map(|at| at as u32).as_slice(), &Trail::new());
        self.found
    }

    /// Suspects actions because of uses. Returns whether there are any.
    fn suspect_all(&mut self, actions: &[u32], trail: &Trail) -> bool {
        for &action in actions {
            let known = &mut self.found.actions;
            if known.len() < MAX_SUSPECTS && known.iter().all(|(at, _)| *at != action) {
                known.push((action, trail.clone()));
            }
        }
        !actions.is_empty()
    }

    /// Suspects the actions that created, moved, replaced or removed a value.
    fn definition(&mut self, value: Value) {
        let none = &Trail::new();
        self.suspect_all(&numbers(self.first.replaced(value)), none);
        if let Some(inst) = self.q.defining_inst(value) {
            self.suspect_all(self.first.placed(inst), none);
        }
    }

    /// Suspects the actions because of which the target version needs a value, and the source
    /// version does not.
    fn uses(&mut self, value: Value) {
        let mut values: SmallVec<[(Value, Trail); 4]> = SmallVec::new();
        values.push((value, Trail::new()));
        // Breadth first, one link of the chain a round: the action nearest to the value comes
        // first. `seen` ends the walk around loops.
        while !values.is_empty() && self.seen.len() < MAX_USERS {
            let mut next: SmallVec<[(Value, Trail); 4]> = SmallVec::new();
            for (value, trail) in values {
                for &user in self.q.users(value).iter().take(MAX_USERS) {
                    let block = self.q.inst_block(user);
                    let runs = !self.pair.is_unreachable(self.from.other(), block);
                    if !runs || !self.seen.insert(user) {
                        continue;
                    }
                    let mut trail = trail.clone();
                    trail.push(self.found.waits.len() as u32);
                    self.found.waits.push(Wait::new(self.q, value, user));
                    if !self.use_of(user, value, &trail) {
                        let results = self.q.inst(user).results.iter().copied();
                        let given = results.chain(bound_to(self.q, user, value));
                        next.extend(given.map(|value| (value, trail.clone())));
                    }
                }
            }
            if self.found.actions.len() >= MAX_SUSPECTS {
                break;
            }
            values = next;
        }
    }

    /// Suspects the actions because of which the source version lacks a use. Returns whether there
    /// are any.
    fn use_of(&mut self, user: Inst, value: Value, trail: &Trail) -> bool {
        let data = self.q.inst(user);
        if self.p.has_inst(user) {
            return match reads(self.p, user, value) {
                true => self.suspect_all(self.first.placed(user), trail),
                false => self.redirected(user, value, trail),
            };
        }
        let replaced = data.results.iter().flat_map(|r| self.first.replaced(*r)).map(|(at, _)| *at);
        let replaced: Suspects = replaced.collect();
        // What nothing uses is removed in consequence. The jump of a new block hands on what the
        // edge handed on before.
        let is_dead = self.from == Side::After && !data.results.is_empty();
        let is_plain = data.opcode == Opcode::Jump || is_dead;
        self.suspect_all(&replaced, trail)
            || (!is_plain && self.suspect_all(self.first.placed(user), trail))
    }

    /// Suspects the actions because of which an instruction that both versions have reads a value
    /// in the target version alone. Returns whether there are any.
    fn redirected(&mut self, user: Inst, value: Value, trail: &Trail) -> bool {
        let is_new = |[before, after]: &[Value; 2]| match self.from {
            Side::Before => *after == value,
            Side::After => *before == value,
        };
        let operands = self.first.operands(user).iter().filter(|(_, o)| is_new(o));
        let mut actions: Suspects = operands.map(|(at, _)| *at).collect();
        match self.from {
            Side::After => actions.extend(numbers(self.first.replaced(value))),
            // Of the operands that the source version has there, those that links lead from.
            Side::Before => {
                operands_of(self.p, user).for_each(|o| actions.extend(self.links(o, value)));
            }
        }
        actions.extend_from_slice(self.first.placed(user));
        self.suspect_all(&actions, trail)
    }

    /// The replacements that lead from one value to another, the last first.
    fn links(&self, from: Value, to: Value) -> Suspects {
        let (mut links, mut value) = (Suspects::new(), from);
        while value != to {
            let Some((at, after)) = self.first.replaced(value).last() else {
                return Suspects::new();
            };
            if links.len() == MAX_SUSPECTS {
                return Suspects::new();
            }
            links.push(*at);
            value = *after;
        }
        links.reverse();
        links
    }
}

fn numbers(replacements: &[(u32, Value)]) -> Suspects {
    replacements.iter().map(|(at, _)| *at).collect()
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
