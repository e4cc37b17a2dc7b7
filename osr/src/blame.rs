//! The action of the log to blame for a point without an entry.

use crate::derive::Deriver;
use crate::pair::VersionPair;
use crate::reason::{Obstacle, Reason};
use ir::{Function, Inst, Point, Value};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use transition::Side;

/// The first action in the log that concerns the obstacle: the effect; else the value, its
/// definition or a use of it; else the instruction; else the source point's own instruction.
/// `known` has the answers for values: many points lack the same one.
pub(crate) fn blame(
    (pair, from): (&VersionPair<'_>, Side),
    deriver: &Deriver<'_, '_>,
    obstacle: &Obstacle,
    point: Point,
    known: &mut BTreeMap<Value, Option<usize>>,
) -> Option<usize> {
    let first = &pair.facts.first;
    if obstacle.reason == Reason::Effect {
        return first.on_effects();
    }
    let q = deriver.q.f;
    let of_value = obstacle.value.and_then(|v| {
        let of_users = || first_of_users((pair, from), q, v);
        // The users come second. The value itself may be untouched, and needed only because of
        // something the log did to an instruction that reads it.
        *known.entry(v).or_insert_with(|| first.of_value(v).or_else(of_users))
    });
    let of_inst = || obstacle.inst.and_then(|i| first.of_inst(i));
    of_value.or_else(of_inst).or_else(|| first.of_inst(point.inst()))
}

/// Instructions, and arguments of each, that the search for the action to blame looks at.
const MAX_USERS: usize = 64;

/// The first action that concerns an instruction that reads a value of the target version, or else
/// one that reads the results of those, and so on. A value may be needed there, and dead here,
/// because the log changed the last link of a chain. Code that never runs does not count. Cost:
/// bounded.
fn first_of_users(
    (pair, from): (&VersionPair<'_>, Side),
    q: &Function,
    value: Value,
) -> Option<usize> {
    let back = from.other();
    let mut seen: BTreeSet<Inst> = BTreeSet::new();
    let mut values: SmallVec<[Value; 4]> = SmallVec::from_iter([value]);
    // Breadth first, one link of the chain a round: the action nearest to the value is the one to
    // blame. `seen` ends the walk around loops.
    while !values.is_empty() && seen.len() < MAX_USERS {
        let users = values.iter().flat_map(|v| q.users(*v)).copied();
        let runs = |user: &Inst| !pair.is_unreachable(back, q.inst_block(*user));
        let users: BTreeSet<Inst> =
            users.filter(|user| runs(user) && !seen.contains(user)).take(MAX_USERS).collect();
        let first = users.iter().filter_map(|user| pair.facts.first.of_inst(*user)).min();
        if first.is_some() {
            return first;
        }
        let results = users.iter().flat_map(|user| q.inst(*user).results.iter().copied());
        let bound = users.iter().flat_map(|user| bound_to(q, *user, &values));
        values = results.chain(bound).collect();
        seen.extend(users);
    }
    None
}

/// The block parameters that a terminator binds to one of these values, up to the limit.
fn bound_to(f: &Function, inst: Inst, values: &[Value]) -> SmallVec<[Value; 4]> {
    let targets = f.inst(inst).targets.iter();
    let bound = targets.flat_map(|target| f.block_params(target.block).iter().zip(&target.args));
    bound.take(MAX_USERS).filter(|(_, arg)| values.contains(arg)).map(|(param, _)| *param).collect()
}
