//! The actions of the log to suspect for a point without an entry, the likeliest first.
//!
//! An entry lacks a value v where the target version needs it and the source version lacks it. The
//! log is to blame for either:
//!
//! - *why is v lacking?* Where an action removed, moved or created its definition, or replaced v.
//! - *why is v needed?* Both versions may have v, but only the target version reads it behind the
//!   landing point. Then the search looks at the uses of v in the target version:
//!   - A use *ahead* of the landing point that the source version lacks was made, removed or
//!     redirected by an action. Each such use needs v, so the entry is back without all of these
//!     actions, and not earlier.
//!   - A use ahead in both versions is no reason: it keeps v alive on both sides.
//!   - A use *behind* has been executed. There v is needed to compute the result again, and the
//!     search looks at the uses of the result likewise.
//!
//! An instruction that a pass creates reads operands that earlier actions have replaced. The search
//! compares it with the expression in whose place it stands: then the action that replaced the
//! operand is to blame, instead of the action that created the instruction.
//!
//! Removals of code that nothing uses are effects of other actions and are passed over: it is the
//! action that took the last use away that made the value unneeded.
//!
//! This is a guess from the log. `osier::driver::counterfactual` tests it.

use crate::facts::FirstActions;
use crate::pair::VersionPair;
use crate::reason::{Missing, Obstacle, Reason};
use ir::{Block, Function, Inst, Opcode, Point, Value, ValueDef};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use transition::Side;

/// Uses that the search looks at for one point, and arguments of each instruction.
const MAX_USERS: usize = 64;

/// Suspects that the search names.
pub(crate) const MAX_SUSPECTS: usize = 8;

/// Blocks in which a value waits for one use. Beyond, the use counts at every point.
const MAX_BLOCKS: usize = 64;

/// Operations of an expression that a created instruction replaces.
const MAX_OPERATIONS: usize = 16;

/// Actions by index in the log, the likeliest first.
pub(crate) type Suspects = SmallVec<[u32; 2]>;

/// The uses of values in the target version: many points lack the same value.
pub(crate) type KnownUses = BTreeMap<Value, Vec<ValueUse>>;

impl VersionPair<'_> {
    /// The actions of the log to suspect for a point without an entry, by index, the likeliest
    /// first: [`Obstacle::blame`] is the first of them. A few at most.
    pub fn suspects(&self, from: Side, missing: Missing<Obstacle>) -> Vec<usize> {
        let suspects = suspects(self, from, missing, MAX_SUSPECTS, &mut BTreeMap::new());
        suspects.into_iter().map(|at| at as usize).collect()
    }
}

/// The actions to suspect, the likeliest first. At most `most` of them come from uses. `known` has
/// the uses of values looked at before.
pub(crate) fn suspects(
    pair: &VersionPair<'_>,
    from: Side,
    Missing { point, why }: Missing<Obstacle>,
    most: usize,
    known: &mut KnownUses,
) -> Suspects {
    let first = &pair.facts.first;
    let mut suspects = match (why.reason, why.value) {
        (Reason::Effect, _) => first.on_effects().map(|at| at as u32).into_iter().collect(),
        (_, Some(value)) => UseWalk::new(pair, from, point, known).of_value(
            value,
            why.reason == Reason::NotLive,
            most,
        ),
        (_, None) => Suspects::new(),
    };
    if let Some(inst) = why.inst {
        suspects.extend_from_slice(first.placed(inst));
        suspects.extend(first.of_inst(inst).map(|at| at as u32));
    }
    if suspects.is_empty() {
        suspects.extend(first.of_inst(point.inst()).map(|at| at as u32));
    }
    suspects
}

/// The first landing point: behind the last instruction of the block before the point that both
/// versions have, and that no action moved. Without one, it is the start of the block, or the next
/// instruction that both have.
fn landing_of(first: &FirstActions, [p, q]: [&Function; 2], point: Point) -> Option<Inst> {
    let block = p.inst_block(point.inst());
    let is_there = |at: &Inst| q.has_inst(*at) && first.moved(*at).is_empty();
    let before = std::iter::successors(p.prev_inst(point.inst()), |at| p.prev_inst(*at));
    if let Some(before) = before.take(MAX_USERS).find(is_there) {
        return q.next_inst(before);
    }
    if q.has_block(block) {
        return q.block_insts(block).next();
    }
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

/// A use of a value in the target version.
#[derive(Debug)]
pub(crate) struct ValueUse {
    wait: Wait,
    /// Whether the source version reads the value at the same instruction, and it has not moved.
    is_shared: bool,
    /// The actions that removed the use from the source version.
    actions: Suspects,
}

/// The search from one value at one landing point.
struct UseWalk<'a, 'v> {
    first: &'a FirstActions,
    pair: &'a VersionPair<'v>,
    from: Side,
    p: &'a Function,
    q: &'a Function,
    landing: Option<Inst>,
    known: &'a mut KnownUses,
    found: Suspects,
}

impl<'a, 'v> UseWalk<'a, 'v> {
    fn new(
        pair: &'a VersionPair<'v>,
        from: Side,
        point: Point,
        known: &'a mut KnownUses,
    ) -> UseWalk<'a, 'v> {
        let (p, q) = (pair.source(from).f, pair.target(from).f);
        let (first, found) = (&pair.facts.first, Suspects::new());
        let landing = landing_of(first, [p, q], point);
        UseWalk { first, pair, from, p, q, landing, known, found }
    }

    fn of_value(mut self, value: Value, is_not_live: bool, most: usize) -> Suspects {
        if is_not_live {
            self.uses(value, most);
            self.definition(value);
        } else {
            self.definition(value);
            self.uses(value, most);
        }
        if self.from == Side::Before {
            self.suspect_all(&numbers(self.first.standing_in(value)));
        }
        self.suspect_all(self.first.of_value(value).map(|at| at as u32).as_slice());
        self.found
    }

    fn suspect_all(&mut self, actions: &[u32]) {
        for action in actions {
            if self.found.len() < MAX_SUSPECTS && !self.found.contains(action) {
                self.found.push(*action);
            }
        }
    }

    /// Suspects the actions that created, moved, replaced or removed a value.
    fn definition(&mut self, value: Value) {
        self.suspect_all(&numbers(self.first.replaced(value)));
        if let Some(inst) = self.q.defining_inst(value) {
            self.suspect_all(self.first.placed(inst));
        }
    }

    /// Suspects the actions that make the target version, but not the source version, need a value
    /// behind the landing point. Ends after `most` actions.
    fn uses(&mut self, root: Value, most: usize) {
        let mut others = Suspects::new();
        // Breadth first: the use nearest to the value comes first. `seen` ends the walk around
        // loops.
        let (mut values, mut seen) = (VecDeque::from([root]), BTreeSet::from([root]));
        let mut looked_at = 0;
        while let Some(value) = values.pop_front() {
            if self.found.len() >= most || looked_at >= MAX_USERS {
                break;
            }
            let uses = match self.known.remove(&value) {
                Some(uses) => uses,
                None => self.uses_of(value),
            };
            for of_value in &uses {
                looked_at += 1;
                let is_ahead = self.landing.is_none_or(|at| of_value.wait.holds_at(self.q, at));
                if is_ahead && of_value.is_shared {
                    continue;
                }
                let user = of_value.wait.user;
                if !is_ahead {
                    others.extend_from_slice(&of_value.actions);
                } else if !of_value.actions.is_empty() {
                    let of_root = self.of_expressions(user, root);
                    self.suspect_all(&of_root);
                    self.suspect_all(&of_value.actions);
                    continue;
                }
                let results = self.q.inst(user).results.iter().copied();
                let given = results.chain(bound_to(self.q, user, value));
                values.extend(given.filter(|value| seen.insert(*value)));
            }
            self.known.insert(value, uses);
        }
        self.suspect_all(&others);
    }

    /// The uses of a value in the target version, up to the limit.
    fn uses_of(&self, value: Value) -> Vec<ValueUse> {
        let users = self.q.users(value).iter().take(MAX_USERS);
        let mut users: SmallVec<[Inst; 8]> = users.copied().collect();
        users.dedup();
        users.retain(|user| !self.pair.is_unreachable(self.from.other(), self.q.inst_block(*user)));
        let of_user = |user: Inst| {
            let is_shared = self.p.has_inst(user)
                && reads(self.p, user, value)
                && self.first.moved(user).is_empty();
            let actions = if is_shared { Suspects::new() } else { self.lacks_use(user, value) };
            ValueUse { wait: Wait::new(self.q, value, user), is_shared, actions }
        };
        users.into_iter().map(of_user).collect()
    }

    /// The actions that explain why the source version lacks a use.
    fn lacks_use(&self, user: Inst, value: Value) -> Suspects {
        let data = self.q.inst(user);
        if self.p.has_inst(user) {
            return match reads(self.p, user, value) {
                true => self.first.moved(user).iter().copied().collect(),
                false => self.redirected(user, value),
            };
        }
        let results = || data.results.iter().copied();
        match self.from {
            // An unused result is removed in consequence.
            Side::After if !data.results.is_empty() => {
                results().flat_map(|r| numbers(self.first.replaced(r))).collect()
            }
            // The jump of a new block hands on the arguments that the edge handed on before.
            _ if data.opcode == Opcode::Jump => Suspects::new(),
            Side::After => self.first.placed(user).iter().copied().collect(),
            Side::Before => {
                let mut actions = self.of_expressions(user, value);
                actions.extend(results().flat_map(|r| numbers(self.first.standing_in(r))));
                actions.extend_from_slice(self.first.placed(user));
                actions
            }
        }
    }

    /// The actions that put a value in the place of an operand of the expressions that the source
    /// version has where the target version has an instruction.
    ///
    /// Example: `load_elim` replaces %again by %first; `simplify` makes one `sext8` of two shifts
    /// of %again. The `sext8` reads %first because of the first action.
    fn of_expressions(&self, user: Inst, value: Value) -> Suspects {
        if self.from == Side::After {
            return Suspects::new();
        }
        let mut expressions: SmallVec<[Value; 4]> = SmallVec::new();
        if self.p.has_inst(user) {
            let stays = |operand: &Value| reads(self.q, user, *operand);
            expressions.extend(operands_of(self.p, user).filter(|operand| !stays(operand)));
        } else {
            let results = self.q.inst(user).results.iter();
            let stands = results.flat_map(|result| self.first.standing_in(*result));
            expressions.extend(stands.map(|(_, before)| *before).take(MAX_USERS));
        }
        expressions.into_iter().flat_map(|before| self.replaced_in(before, value)).collect()
    }

    /// The actions that put `value` in the place of an operand of an expression of the source
    /// version, and the actions that replaced values on the way from the expression to `value`.
    ///
    /// Example: `%one = and %less, 1; %not = eqz %one`. A pass makes one comparison of the operands
    /// of %less after an action has replaced %one by %less. Where the source version has executed
    /// %one, that action is to blame for the operands.
    fn replaced_in(&self, expression: Value, value: Value) -> Suspects {
        let (mut actions, mut between) = (Suspects::new(), Suspects::new());
        let mut users = BTreeMap::from([(expression, None)]);
        let mut work = VecDeque::from([expression]);
        while let Some(at) = work.pop_front() {
            let Some(inst) = definition_in(self.p, at) else { continue };
            for operand in operands_of(self.p, inst) {
                if users.len() > MAX_OPERATIONS || users.contains_key(&operand) {
                    continue;
                }
                users.insert(operand, Some(at));
                let mut above = (operand == value).then_some(at);
                while let Some(inner) = above {
                    above = users[&inner];
                    if above.is_some() {
                        between.extend(numbers(self.first.replaced(inner)));
                    }
                }
                let links = self.links(operand, value);
                if links.is_empty() && operand != value {
                    work.push_back(operand);
                }
                actions.extend(links);
            }
        }
        actions.extend(between);
        actions
    }

    /// The actions that make an instruction of both versions read a value in the target version
    /// alone.
    fn redirected(&self, user: Inst, value: Value) -> Suspects {
        let is_new = |[before, after]: &[Value; 2]| match self.from {
            Side::Before => *after == value,
            Side::After => *before == value,
        };
        let operands = self.first.operands(user).iter().filter(|(_, o)| is_new(o));
        let mut actions: Suspects = operands.map(|(at, _)| *at).collect();
        match self.from {
            Side::After => actions.extend(numbers(self.first.replaced(value))),
            // The operands that the source version has there and from which links lead.
            Side::Before => {
                operands_of(self.p, user).for_each(|o| actions.extend(self.links(o, value)));
            }
        }
        // A redirected edge hands on the arguments of the block that it skips.
        if !self.q.inst(user).opcode.is_terminator() {
            actions.extend_from_slice(self.first.placed(user));
        }
        actions
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

/// The instruction that defines a value of a version. `None` for parameters, and for values that
/// the version lacks.
fn definition_in(f: &Function, value: Value) -> Option<Inst> {
    f.has_value(value).then(|| f.defining_inst(value)).flatten()
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
