//! The accesses of one version that cannot trap.
//!
//! Two things show that. Either an earlier access *vouches for* it: one that dominates it, at the
//! same address, and reaches at least as far. The earlier access has not trapped, a linear memory
//! begins at 0 and never shrinks, and the bytes of a host memory stay accessible. Or the class of
//! the address is a constant, and the access ends within the pages that the module declares for its
//! linear memory as the minimum. Every machine for the module creates the memory with at least
//! these pages, and memories never shrink, so no run traps there
//! (`an_access_below_the_least_size_never_traps`). A constant address and the offset are added as
//! numbers, as a machine adds them: a sum beyond 2^32 does not wrap into the memory.
//!
//! The same sum makes accesses at different constants comparable: `store @mem[64]` vouches for
//! `load @mem[0 + 64]`. Sums with a base are not comparable, since they may have wrapped. A host
//! memory has no declared minimum, and its bytes below an accessed one may belong to nobody, so
//! constants of it are compared as classes.

use super::version::ProvedVersion;
use fixedbitset::FixedBitSet;
use ir::place::Place;
use ir::{Function, Inst, Memory, Type};
use std::collections::BTreeMap;
use std::rc::Rc;
use transition::certificate::{TermId, TermKind};

/// The number of accesses at one address that are tried as the reason why a replayed write cannot
/// trap. The last accesses are tried, since they stand nearest. An entry whose only reason is
/// further up is not proved.
const MAX_ACCESSES: usize = 256;

/// The address from which the place of an access counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum CountedFrom {
    /// The start of a linear memory: the access is at a constant address, which the place includes.
    Start,
    /// The contents of a class.
    Of(TermId),
}

/// The accesses of a version, as [`ProvedVersion::vouch`] finds them.
pub(super) struct Accesses {
    /// By memory: the bytes that it has in every run ([`Module::least_bytes`]).
    least: Rc<[u64]>,
    /// By address: the accesses that may trap and that no earlier access vouches for, in preorder
    /// of the dominator tree.
    unvouched: BTreeMap<CountedFrom, Vec<(Inst, Place)>>,
    /// The accesses that cannot trap: below the least size of their memory, or because an access at
    /// the same address has passed before.
    vouched: FixedBitSet,
}

impl Accesses {
    /// No accesses, for a version whose memories have at least `least` bytes.
    pub(super) fn new(f: &Function, least: &Rc<[u64]>) -> Accesses {
        let vouched = FixedBitSet::with_capacity(f.inst_bound());
        Accesses { least: Rc::clone(least), unvouched: BTreeMap::new(), vouched }
    }
}

impl ProvedVersion<'_, '_> {
    /// Finds the accesses that cannot trap (see the module documentation). An access vouches for
    /// another if it dominates it, at the same address, and reaches at least as far (in a host
    /// memory: has all of its bytes).
    ///
    /// The walk is in preorder of the dominator tree, with a stack of accesses for each address and
    /// memory. An access that does not dominate the current access dominates no later access
    /// either, and is popped for good. The accesses left on the stack dominate it. An access is
    /// pushed only if none of the nearest [`MAX_ACCESSES`] vouches for it (in a host memory, each
    /// vouches for its own bytes alone: `host_fields.oir`). In a linear memory, accesses on the
    /// stack reach further and further, so the last says as much as all, and is the only one looked
    /// at. Cost: near linear in the accesses; in a host memory, times [`MAX_ACCESSES`].
    pub(super) fn vouch(&mut self) {
        let (mut vouched, mut unvouched) = (Vec::new(), BTreeMap::<_, Vec<_>>::new());
        let graph = self.live();
        let mut blocks = graph.blocks().to_vec();
        blocks.sort_by_key(|block| graph.preorder(*block));
        let mut above: BTreeMap<_, Vec<(Inst, Place)>> = BTreeMap::new();
        for inst in blocks.iter().flat_map(|block| self.f.block_insts(*block)) {
            let Some((address, place)) = self.access(inst) else { continue };
            // Not pushed: it vouches for nothing but accesses below the least size.
            if self.is_below_least(address, &place) {
                vouched.push(inst);
                continue;
            }
            // An access on another arm dominates nothing here, although it precedes in the walk
            // (`an_access_on_another_arm_vouches_for_nothing`).
            let above = above.entry((address, place.memory())).or_default();
            while above.pop_if(|(other, _)| !graph.passed(self.f, *other, inst)).is_some() {}
            let is_linear = matches!(place, Place::Bytes { address: Type::I32, .. });
            let most = if is_linear { 1 } else { MAX_ACCESSES };
            if above.iter().rev().take(most).any(|(_, p)| p.vouches_for(&place)) {
                vouched.push(inst);
            } else {
                above.push((inst, place));
                unvouched.entry(address).or_default().push((inst, place));
            }
        }
        self.accesses.vouched.extend(vouched.into_iter().map(|inst| inst.as_u32() as usize));
        self.accesses.unvouched = unvouched;
    }

    /// The address and the place of an access that may trap in general; `None` for other
    /// instructions.
    pub(crate) fn access(&self, inst: Inst) -> Option<(CountedFrom, Place)> {
        let data = self.f.inst(inst);
        let place = Place::read(data.opcode, data.ty, &data.imm);
        let place = place.or(Place::written(data.opcode, data.ty, &data.imm));
        let place = place.filter(|_| data.opcode.can_trap())?;
        Some(self.counted(self.class(*data.args.first()?), place))
    }

    /// A place at an address of a class, with the address from which it counts: a constant address
    /// of a linear memory becomes a part of the place.
    fn counted(&self, class: TermId, place: Place) -> (CountedFrom, Place) {
        let whole = self.table.constant(class).and_then(|constant| place.at_constant(constant));
        whole.map_or((CountedFrom::Of(class), place), |place| (CountedFrom::Start, place))
    }

    /// Whether an access never traps: it ends within the bytes that its memory has in every run.
    fn is_below_least(&self, address: CountedFrom, place: &Place) -> bool {
        let least =
            |of: Memory| self.accesses.least.get(of.as_u32() as usize).copied().unwrap_or(0);
        address == CountedFrom::Start && place.ends_within(least)
    }

    /// Whether a write cannot trap before `at`. Either it never traps, like a write of a global or
    /// a write below the least size of its memory, or an access at its address has passed there.
    pub(crate) fn has_accessed(&self, write: TermId, at: Inst) -> bool {
        let Some(TermKind::Op { opcode, .. }) = self.table.kind(write) else { return false };
        if !opcode.can_trap() {
            return true;
        }
        let Some((class, place)) = self.table.bytes_written(write) else { return false };
        let (address, place) = self.counted(class, place);
        if self.is_below_least(address, &place) {
            return true;
        }
        // From the end: the accesses nearest to the point come last in preorder. A vouched access
        // is not listed, but its voucher is, and reaches as far.
        let mut passed =
            self.accesses.unvouched.get(&address).into_iter().flatten().rev().take(MAX_ACCESSES);
        passed.any(|(i, p)| p.vouches_for(&place) && self.live().passed(self.f, *i, at))
    }

    /// Whether `inst` cannot trap if `other` does not, where control runs from the first to the
    /// second along one path: `other` reaches at least as far, at the same address.
    pub(crate) fn traps_like(&self, inst: Inst, other: Inst) -> bool {
        let both = self.access(inst).zip(self.access(other));
        both.is_some_and(|((x, place), (y, p))| x == y && p.vouches_for(&place))
    }

    /// Whether an access cannot trap: below the least size of its memory, or because another at its
    /// address has passed before.
    pub(crate) fn is_vouched(&self, inst: Inst) -> bool {
        self.accesses.vouched.contains(inst.as_u32() as usize)
    }
}
