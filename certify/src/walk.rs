//! Value numbering of one version: the class of every value, and of the memory at the start of
//! every block.
//!
//! The rounds follow [`NumberingRound`], which the pass `gvn` shares. The certifier adds memory,
//! which blocks bind like a parameter, and names: both versions find a shared leaf by the name of a
//! parameter or a block.

use super::leaves::{LeafName, Leaves, LeavesMark};
use super::memory::MemoryRead;
use super::merges::{Merges, MergesMark};
use super::terms::{CertificateTerms, ReasonedTerms, WithReasons};
use super::version::{Assumptions, NumberedVersion, RoundFindings};
use ir::place::Place;
use ir::{Block, Edge, Effects, Function, Imm, Inst, InstData, Opcode, Value};
use number::{
    ClassArgs, CopyAssumptions, FlowGraph, Home, HomesMark, NumberingRound, OperationRef,
    ValueClasses,
};
use smallvec::SmallVec;
use std::ops::Range;
use transition::Side;
use transition::certificate::{NO_TERM, TermId, TermKind};

/// Blocks in a row, each joining edges, behind which the name of a leaf is looked for.
const MAX_JOINS: usize = 8;

/// A walk over one version. It numbers into the terms and leaves that both versions share.
pub(super) struct VersionWalk<'w, 'a> {
    pub(super) version: &'w mut NumberedVersion<'a>,
    /// The findings of the other version in this round, if that is numbered already.
    pub(super) numbered: Option<&'w RoundFindings>,
    pub(super) assumed: &'w mut Assumptions,
    pub(super) terms: &'w mut CertificateTerms,
    pub(super) leaves: &'w mut Leaves,
    pub(super) merges: &'w mut Merges,
}

/// A state of a walk to return to.
pub(super) struct WalkMark {
    terms: [usize; 2],
    homes: HomesMark,
    leaves: LeavesMark,
    pub(super) merges: MergesMark,
    names: usize,
    doubted: usize,
}

impl<'a> NumberingRound<'a> for VersionWalk<'_, 'a> {
    type Form = WithReasons;
    type Mark = WalkMark;

    fn graph(&self) -> &FlowGraph<'a> {
        &self.version.code.graph
    }

    fn table(&self) -> &ReasonedTerms {
        &self.terms.table
    }

    fn assumed(&self) -> &CopyAssumptions {
        &self.assumed.copies
    }

    fn assumed_mut(&mut self) -> &mut CopyAssumptions {
        &mut self.assumed.copies
    }

    fn found(&self) -> &ValueClasses {
        &self.version.found.values
    }

    fn found_mut(&mut self) -> &mut ValueClasses {
        &mut self.version.found.values
    }

    fn home(&mut self, class: TermId) -> Home {
        self.version.home(&self.terms.table, class)
    }

    fn bind_arguments(&mut self) {
        let entry = self.f().entry();
        for (index, &param) in self.f().block_params(entry).iter().enumerate() {
            let kind = TermKind::Argument(index as u32);
            self.bind_named(kind, entry, Some(param));
        }
        let memory = self.bind_named(TermKind::MemoryAtEntry, entry, None);
        self.version.found.at_start.set(entry, memory);
    }

    fn bind_equal(&mut self, block: Block, members: &[Value]) {
        // A parameter that is also in the other version gives the leaf its name: the other version
        // finds the leaf by that name.
        let other = self.version.code.other;
        let in_both = members.iter().copied().find(|p| other.has_value(*p));
        let Some(leader) = in_both.or(members.first().copied()) else { return };
        let name = self.name(leader, members, block);
        let (ty, side) = (Some(self.f().value_type(leader)), self.version.code.side);
        let named = name.map(|name| self.leaves.get(self.terms, side, name, ty));
        // By different names, the other version may have bound one leaf where this version binds
        // two leaves. The second then needs a leaf of its own.
        let homes = &mut self.version.found.values.homes;
        let leaf = named
            .filter(|leaf| !homes.is_bound(*leaf))
            .unwrap_or_else(|| self.terms.leaf(TermKind::Param, ty));
        homes.bind(leaf, block);
        // The other version may know the leaf by any of these parameters.
        if let (Some(LeafName::Param(name)), true) = (name, named == Some(leaf)) {
            members.iter().for_each(|p| self.leaves.rename(side, name, *p));
        }
        for &param in members {
            self.version.found.values.terms.set(param, leaf);
            self.version.found.binding.insert(param.as_u32() as usize);
        }
    }

    fn takes_unbound(&mut self, block: Block, param: Option<Value>) -> bool {
        self.assumed.doubted.push((block, param));
        true
    }

    fn enter_memory(&mut self, block: Block, incoming: &[Edge]) {
        if !self.assumed.pinned_memory.contains(block.as_u32() as usize) {
            let received = self.version.brought(incoming.iter().copied());
            if let Some(class) = self.copied(block, None, &received) {
                self.version.found.at_start.set(block, class);
                return;
            }
            self.assumed.pinned_memory.insert(block.as_u32() as usize);
        }
        let (name, side) = (self.memory_name(block), self.version.code.side);
        let leaf = match name {
            Some(name) => self.leaves.get(self.terms, side, name, None),
            None => self.terms.leaf(TermKind::MemoryParam, None),
        };
        self.version.found.values.homes.bind(leaf, block);
        self.version.found.at_start.set(block, leaf);
        self.version.found.binding_memory.insert(block.as_u32() as usize);
    }

    fn number_block(&mut self, block: Block) {
        let mut memory = self.version.found.at_start.get(block);
        for inst in self.f().block_insts(block) {
            self.version.found.before.set(inst, memory);
            memory = self.number(inst, block, memory);
        }
        self.version.found.at_end.set(block, memory);
    }

    fn mark(&mut self) -> WalkMark {
        let terms = self.terms.mark();
        WalkMark {
            terms,
            homes: self.version.found.values.homes.mark(terms[0]),
            leaves: self.leaves.mark(),
            merges: self.merges.mark(),
            names: self.version.found.names.mark(),
            doubted: self.assumed.doubted.len(),
        }
    }

    fn rewind(&mut self, mark: &WalkMark, places: Range<usize>) {
        self.terms.rewind(mark.terms);
        self.leaves.rewind(mark.leaves);
        self.merges.rewind(mark.merges);
        self.rewind_bindings(mark);
        self.version.forget(places);
    }

    fn rewind_bindings(&mut self, mark: &WalkMark) {
        self.version.found.values.homes.rewind(mark.homes);
        self.version.found.names.rewind(mark.names);
        self.assumed.doubted.truncate(mark.doubted);
    }

    fn revise(&mut self, block: Block, mark: &WalkMark) -> bool {
        // Both revisions run in every turn (no `||`, which would stop at the first): each revision
        // finds all its contradictions. A turn saved is a numbering of the region saved.
        let is_copy_wrong = self.assumed.revise(self.version, &self.terms.table, block);
        let is_read_wrong = !self.check_merges_at(block, mark.merges);
        is_copy_wrong | is_read_wrong
    }

    fn give_up(&mut self, block: Block) {
        self.assumed.give_up(&self.version.code, block);
    }

    fn assumed_target(&self, block: Block) -> Option<u32> {
        self.version.code.folded.get(&block).copied()
    }
}

impl<'a> VersionWalk<'_, 'a> {
    pub(super) fn f(&self) -> &'a Function {
        self.version.f()
    }

    /// Binds the leaf of this kind, which the other version finds by its kind too, and gives it to
    /// a value, if there is one.
    fn bind_named(&mut self, kind: TermKind, block: Block, value: Option<Value>) -> TermId {
        let leaf = self.terms.named_leaf(kind, value.map(|v| self.f().value_type(v)));
        self.version.found.values.homes.bind(leaf, block);
        if let Some(value) = value {
            self.version.found.values.terms.set(value, leaf);
        }
        leaf
    }

    /// The name of the leaf of some parameters of a block. A parameter of a block that joins edges
    /// hands its contents on to another parameter, which is then often a copy. The other version
    /// may have that parameter alone, and its name is then the name of the leaf. Or a parameter of
    /// the other version was replaced by a member of `members`.
    fn name(&mut self, param: Value, members: &[Value], block: Block) -> Option<LeafName> {
        let (other, name) = (self.version.code.other, self.handed_param(param));
        let replaced = members.iter().filter_map(|p| self.replaced(*p)).flatten().copied();
        let replaced =
            replaced.filter(|p| name == param && !other.has_value(param) && self.leaves.offers(*p));
        let own: SmallVec<[LeafName; 4]> = replaced.chain([param]).map(LeafName::Param).collect();
        let handed = (name != param).then_some(LeafName::Param(name));
        if let Some(name) = handed {
            self.version.found.names.hand(LeafName::Param(param), name);
        }
        self.version.found.names.take(&mut self.assumed.yielded, block, handed, &own)
    }

    /// Follows the hand-overs of joins from a parameter to the last one that is a copy. A pinned
    /// one binds a leaf itself, under its own name.
    fn handed_param(&self, param: Value) -> Value {
        let mut name = param;
        for _ in 0..MAX_JOINS {
            let to = self.version.code.common.joined_params.get(&name).copied();
            let Some(to) = to.filter(|to| !self.assumed.copies.is_pinned(*to)) else { break };
            name = to;
        }
        name
    }

    /// As [`VersionWalk::handed_param`], for the memory at the start of a block.
    fn handed_memory(&self, block: Block) -> Block {
        let mut name = block;
        for _ in 0..MAX_JOINS {
            let to = self.version.code.common.joined_blocks.get(&name).copied();
            let pinned = &self.assumed.pinned_memory;
            let Some(to) = to.filter(|to| !pinned.contains(to.as_u32() as usize)) else { break };
            name = to;
        }
        name
    }

    /// Whether joins no longer hand on a name that a block wanted in this round, because a block
    /// behind has turned out to be the start of a leaf.
    pub(super) fn hands_other_names(&self) -> bool {
        let is_other = |(of, to): (LeafName, LeafName)| match (of, to) {
            (LeafName::Param(of), LeafName::Param(to)) => self.handed_param(of) != to,
            (LeafName::Memory(of), LeafName::Memory(to)) => self.handed_memory(of) != to,
            _ => true,
        };
        self.version.found.names.handed().any(is_other)
    }

    /// The parameters of the version before that a parameter of the version after replaced. Only
    /// the version after looks names up: it is numbered second, when the leaves of the version
    /// before exist.
    fn replaced(&self, param: Value) -> Option<&'a SmallVec<[Value; 2]>> {
        let code = &self.version.code;
        (code.side == Side::After).then(|| code.common.replaced.get(&param)).flatten()
    }

    /// The name of the leaf for the memory at the start of a block, found as by
    /// [`VersionWalk::name`].
    fn memory_name(&mut self, block: Block) -> Option<LeafName> {
        let name = self.handed_memory(block);
        let handed = (name != block).then_some(LeafName::Memory(name));
        if let Some(name) = handed {
            self.version.found.names.hand(LeafName::Memory(block), name);
        }
        let own = [LeafName::Memory(block)];
        self.version.found.names.take(&mut self.assumed.yielded, block, handed, &own)
    }

    /// Numbers the results of an instruction. Returns the class of the memory after it.
    fn number(&mut self, inst: Inst, block: Block, memory: TermId) -> TermId {
        let data = self.f().inst(inst);
        if data.opcode.is_effect_free() {
            if let Some(result) = data.result() {
                let twin = self.twin(inst, data, memory).and_then(|(of, twin)| {
                    twin.result().and_then(|result| of.values.terms.find(result))
                });
                let term = twin.unwrap_or_else(|| self.operation(data, memory));
                self.version.found.values.terms.set(result, term);
            }
            return memory;
        }
        if Place::written(data.opcode, data.ty, &data.imm).is_some() {
            // A write that this version alone hides has to be noted as hidden first.
            let is_hidden = self.assumed.hidden.contains(inst.as_u32() as usize);
            let twin = self.twin(inst, data, memory).filter(|_| !is_hidden);
            if let Some(term) = twin.and_then(|(of, _)| of.writes.find(inst)) {
                self.version.found.writes.set(inst, term);
                return self.terms.table.class(term);
            }
            let mut args: ClassArgs = data.args.iter().map(|v| self.class(*v)).collect();
            args.push(memory);
            // Hidden before its term is made: making the term notes whether it is hidden, and a
            // later write may cover it.
            if is_hidden {
                let InstData { opcode, ty, imm, .. } = *data;
                self.terms.hide(OperationRef { opcode, ty, imm, args: &args });
            }
            let term = self.terms.write(data.opcode, data.ty, data.imm, args);
            self.version.found.writes.set(inst, term);
            return self.terms.table.class(term);
        }
        if let Imm::Assumed(bits, _) = data.imm {
            let term = self.assumed_term(inst, data, bits);
            data.results.iter().for_each(|v| self.version.found.values.terms.set(*v, term));
            return memory;
        }
        // An anchor with an effect: both versions execute it with equal operands, so its results
        // are the same leaves in both.
        for (index, &result) in data.results.iter().enumerate() {
            self.bind_named(TermKind::Result(inst, index as u32), block, Some(result));
        }
        if data.opcode.effects().has(Effects::WRITES) {
            return self.bind_named(TermKind::MemoryAfter(inst), block, None);
        }
        memory
    }

    /// The same instruction in the version that is numbered already, and the findings there. The
    /// instruction must have the same operation on the same classes. Then a look-up would find the
    /// term of the twin. Most instructions of the version after have such a twin.
    fn twin(
        &self,
        inst: Inst,
        data: &InstData,
        memory: TermId,
    ) -> Option<(&RoundFindings, &'a InstData)> {
        let (found, other) = (self.numbered?, self.version.code.other);
        let twin = other.has_inst(inst).then(|| other.inst(inst))?;
        let operation = |of: &InstData| (of.opcode, of.ty, of.imm);
        if operation(data) != operation(twin) || data.args.len() != twin.args.len() {
            return None;
        }
        // A read records the value of its address, by which the next round knows it again.
        let effects = data.opcode.effects();
        let takes_memory = effects.has(Effects::READS) || effects.has(Effects::WRITES);
        if takes_memory && (found.before.get(inst) != memory || data.args != twin.args) {
            return None;
        }
        let class_there = |value: &Value| found.values.class(&self.terms.table, *value);
        let mut pairs = data.args.iter().zip(&twin.args);
        pairs.all(|(a, b)| self.class(*a) == class_there(b)).then_some((found, twin))
    }

    /// The term of the result of an assumption: the constant if both versions make it, and the term
    /// of the operand otherwise (`check/src/accept/assume.rs`).
    fn assumed_term(&mut self, inst: Inst, data: &InstData, bits: u64) -> TermId {
        match self.version.code.other.has_inst(inst) {
            true => self.terms.op(Opcode::Const, data.ty, Imm::Bits(bits), ClassArgs::new()),
            false => self.class(data.args[0]),
        }
    }

    fn operation(&mut self, data: &InstData, memory: TermId) -> TermId {
        let args: ClassArgs = data.args.iter().map(|v| self.class(*v)).collect();
        if !data.opcode.effects().has(Effects::READS) {
            return self.terms.op(data.opcode, data.ty, data.imm, args);
        }
        if args.contains(&NO_TERM) || memory == NO_TERM {
            return NO_TERM;
        }
        let read = MemoryRead { opcode: data.opcode, ty: data.ty, imm: data.imm, args };
        let address = data.args.first().copied();
        self.read_checked(&read, memory, address)
    }

    /// The block that binds a leaf for memory, if a block does.
    pub(super) fn memory_home(&mut self, leaf: TermId) -> Option<Block> {
        let kind = &self.terms.table.terms().get(leaf as usize)?.kind;
        let is_bound_by_block = matches!(kind, TermKind::MemoryParam);
        match self.home(leaf) {
            Home::Below(block) if is_bound_by_block => Some(block),
            _ => None,
        }
    }
}
