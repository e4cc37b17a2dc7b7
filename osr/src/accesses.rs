//! Memory accesses that cannot trap.
//!
//! An access cannot trap where
//!
//! - it is at a constant address below the declared minimum of its memory ([`LeastSizes`]): no run
//!   has a smaller memory. C programs access their globals so;
//! - an earlier access *vouches for* it: any run that comes to it has passed one that reaches at
//!   least as far, at the same address or at constants of one linear memory
//!   ([`Access::vouches_for`]).
//!
//! Example: `store @mem[64], %x` vouches for a later `load @mem[0 + 64]`, whatever instructions
//! compute the constants. So an entry may land behind the load, although a pass has replaced the
//! load by `%x` in the source version.

use crate::facts::Facts;
use crate::pair::analyzed::{AccessIndex, Analyzed, MAX_ACCESSES};
use crate::run_graph::RunGraph;
use fixedbitset::FixedBitSet;
use ir::access::{Access, Address};
use ir::place::Place;
use ir::{Inst, Memory, Module, Point, Type, Value};
use std::collections::BTreeMap;
use std::rc::Rc;

/// By memory: the bytes that it has in every run. Nothing is known of memories beyond the list.
#[derive(Clone, Default, Debug)]
pub(crate) struct LeastSizes(Rc<[u64]>);

impl LeastSizes {
    /// The declared minima of a module.
    pub(crate) fn of(module: &Module) -> LeastSizes {
        LeastSizes(module.memories.keys().map(|memory| module.least_bytes(memory)).collect())
    }

    /// Whether an access never traps: it is at a constant address below the least size.
    pub(crate) fn contain(&self, access: &Access) -> bool {
        access.is_within(|of: Memory| self.0.get(of.as_u32() as usize).copied().unwrap_or(0))
    }
}

/// A value of `version` as an address from which places count.
pub(crate) fn address(version: &Analyzed<'_>, facts: &Facts, value: Value) -> Address {
    let address = Address::of(version.f, value, |v| v);
    let constant = address.base().and_then(|base| facts.constant(base, version.side));
    constant.map_or(address, |(ty, bits)| address.with_base(ty, bits))
}

/// The bytes that an instruction of `version` accesses; `None` for an instruction without accesses.
/// `leader` maps the address to a value known to be equal.
pub(crate) fn accessed(
    version: &Analyzed<'_>,
    facts: &Facts,
    inst: Inst,
    leader: impl Fn(Value) -> Value,
) -> Option<Access> {
    let data = version.f.inst(inst);
    let place = Place::read(data.opcode, data.ty, &data.imm);
    let place = place.or_else(|| Place::written(data.opcode, data.ty, &data.imm))?;
    if !matches!(place, Place::Bytes { .. }) {
        return None;
    }
    Some(Access { place, address: Some(address(version, facts, leader(*data.args.first()?))) })
}

/// The accesses of a version by address, so that one may vouch for another
/// ([`Analyzed::vouches`]). Cost: linear in the instructions.
pub(crate) fn access_index(version: &Analyzed<'_>, facts: &Facts) -> AccessIndex {
    let mut index = AccessIndex::new();
    for inst in version.cfg.rpo().iter().flat_map(|block| version.f.block_insts(*block)) {
        if let Some(access) = accessed(version, facts, inst, |v| v) {
            index.entry(access.voucher_key()).or_default().push((inst, access));
        }
    }
    index
}

/// The accesses of `q` that cannot trap, by the index of the instruction. Cost: near linear in its
/// instructions.
pub(crate) fn harmless_accesses(
    q: &Analyzed<'_>,
    runs: &RunGraph,
    facts: &Facts,
    least: &LeastSizes,
) -> FixedBitSet {
    let mut harmless = FixedBitSet::with_capacity(q.f.inst_bound());
    // By address: accesses that dominate the current one, the nearest last. Dominators come first
    // in preorder, and an access that does not dominate the current access dominates no later
    // access.
    let mut above: BTreeMap<_, Vec<(Inst, Access)>> = BTreeMap::new();
    for inst in runs.dom.preorder().iter().flat_map(|block| q.f.block_insts(*block)) {
        // Two accesses of one class of addresses are compared under one key, the end of the chain,
        // if that value is available here; elsewhere the equation is not usable.
        let leader = |value: Value| {
            let equal = facts.chain(value, q.side).last().copied();
            equal.filter(|v| q.available(*v, Point::before(inst))).unwrap_or(value)
        };
        let Some(access) = accessed(q, facts, inst, leader) else { continue };
        let mut is_harmless = least.contain(&access);
        if !is_harmless {
            let above = above.entry(access.voucher_key()).or_default();
            while above.pop_if(|(other, _)| !runs.dom.inst_dominates(q.f, *other, inst)).is_some() {
            }
            // In a linear memory, accesses on the stack reach further and further, so the last says
            // as much as all.
            let is_linear = matches!(access.place, Place::Bytes { address: Type::I32, .. });
            let most = if is_linear { 1 } else { MAX_ACCESSES };
            let mut nearest = above.iter().rev().take(most);
            is_harmless = nearest.any(|(_, other)| other.vouches_for(&access));
            // A harmless access is not recorded: the access that makes it harmless covers
            // everything that it would cover.
            if !is_harmless {
                above.push((inst, access));
            }
        }
        harmless.set(inst.as_u32() as usize, is_harmless);
    }
    harmless
}
