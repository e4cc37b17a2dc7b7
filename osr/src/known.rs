//! Knowledge about a value of the target version that is the same at every source point.

use crate::facts::Facts;
use crate::pair::analyzed::{Analyzed, members};
use crate::paths::may_be_taken;
use ir::{Function, Type, Value, ValueDef};
use smallvec::SmallVec;

/// Members of a class tried for one value. Only classes of constants are large, and a new constant
/// is as cheap as a member.
const MAX_MEMBERS: usize = 16;

/// The knowledge about a wanted value that is the same at every source point and level.
#[derive(Debug)]
pub(crate) struct KnownValue {
    /// The other members of its class, nearest first.
    pub(crate) members: SmallVec<[Value; 4]>,
    /// The constant of its class.
    pub(crate) constant: Option<(Type, u64)>,
    /// If it is a parameter: the member that all its incoming values share.
    pub(crate) shared: Option<Value>,
}

impl KnownValue {
    /// The knowledge about `value` of `q`, for entries from `p`.
    pub(crate) fn new(
        facts: &Facts,
        p: &Analyzed<'_>,
        q: &Analyzed<'_>,
        value: Value,
    ) -> KnownValue {
        let members = members(facts, p, q, value).into_iter().filter(|m| *m != value);
        KnownValue {
            members: members.take(MAX_MEMBERS).collect(),
            constant: facts.constant(value, q.side),
            shared: shared_member(facts, q, value),
        }
    }
}

/// Rule 3: the member of the classes of all incoming values of a parameter that dominates its
/// block.
fn shared_member(facts: &Facts, q: &Analyzed<'_>, value: Value) -> Option<Value> {
    let ValueDef::Param(block, index) = q.f.value_def(value) else { return None };
    let f: &Function = q.f;
    let mut incoming = f
        .predecessors(block)
        .iter()
        // Edges that no run takes bring nothing. Counting them, a parameter whose other
        // predecessor the log removed would lose its only equation.
        .filter(|e| may_be_taken(f, &q.cfg, facts, **e))
        .map(|e| f.target(*e).args[index as usize])
        .filter(|v| *v != value);
    let first = incoming.next()?;
    // The intersection of the chains of all incoming values, nearest member first.
    let mut shared: SmallVec<[Value; 4]> = SmallVec::new();
    shared.push(first);
    shared.extend(facts.chain(first, q.side));
    for other in incoming {
        let chain = facts.chain(other, q.side);
        shared.retain(|m| *m == other || chain.contains(m));
    }
    // Only a member above the block. Around a loop, a parameter or an instruction of the block
    // itself may hold the last iteration's contents.
    let above = |m: &Value| {
        f.has_value(*m) && f.value_block(*m) != block && q.dom.dominates(f.value_block(*m), block)
    };
    shared.into_iter().find(above)
}
