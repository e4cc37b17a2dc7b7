//! OSR mappings as data. `osr` makes them, `check` judges them, and the interpreter fires their
//! entries.
//!
//! For example, a pass hoists `%m = mul.i32 %a, %b` out of a loop. Version p computes `%m` in the
//! loop; version q has computed it before the loop. The entry at a point of p before the
//! multiplication has one step, `mul.i32 %a, %b`, and assigns its result to `%m` of q.
//!
//! A mapping from version *p* to version *q* of one family is a partial function from points of p
//! to [`Entry`]s. Firing an entry at its source point runs its *compensation code*. This code has
//! three parts:
//!
//! 1. straight-line steps over values of p: operations without effects, and calls that make
//!    objects ([`Step::object`]);
//! 2. the stores that q has executed and p has not;
//! 3. one parallel assignment to values of q.
//!
//! Execution then continues in q at the entry's target point.
//!
//! An entry makes this claim. Suppose that p, started on some input, reaches the source point with
//! state s. Then q, started on the same input, reaches the target point with the same memory and
//! the same effects so far. The compensation code run on s agrees with q's state on every value
//! that the entry provides.

use crate::VersionKey;
use crate::ascending::union;
use crate::frames::{Frame, FramePlace, Landing};
pub use crate::packed::{EntryOutline, EntryStore};
pub use crate::parts::{EntryCode, EntryParts, ValueList};
pub use crate::shared::SharedEntry;
use ir::entity::{Func, Inst, Point, Value};
use ir::eval::accepts;
use ir::function::Function;
use ir::inst::Imm;
use ir::opcode::Opcode;
use ir::trap::TrapKind;
use ir::types::Type;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// An operand of a step, a replayed store or an assignment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Operand {
    /// A value of the source version, with its contents at the source point.
    Source(Value),
    /// The result of an earlier step of the same entry, by index.
    Step(u32),
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Source(value) => write!(f, "%{value}"),
            Operand::Step(index) => write!(f, "${index}"),
        }
    }
}

/// One step of compensation code: an operation on values, without effects, or a call that makes an
/// object ([`Step::object`]).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Step {
    /// The operation. Its result depends on its operands alone, unless it makes an object.
    pub opcode: Opcode,
    /// The controlling type.
    pub ty: Type,
    /// The type of the first operand, or `ty` if the step has no operands. Conversions convert from
    /// this type.
    pub operand_ty: Type,
    /// The bits of a constant, and the function and the number of an object. 0 for every other
    /// operation.
    pub bits: u64,
    /// The operands.
    pub args: SmallVec<[Operand; 2]>,
}

impl Step {
    /// A step that makes an object: a call of `func`, which the module declares an allocator
    /// ([`ir::DeclaredEffect::is_allocator`]), with constants. `number` tells the objects of an
    /// entry apart, since two calls with equal arguments make two objects.
    pub fn object(func: Func, number: u32, args: SmallVec<[Operand; 2]>) -> Step {
        let bits = u64::from(func.as_u32()) | u64::from(number) << 32;
        let (opcode, ty, operand_ty) = (Opcode::Call, Type::Ref, Type::I32);
        Step { opcode, ty, operand_ty, bits, args }
    }

    /// The allocator that the step calls, if it makes an object.
    pub fn allocator(&self) -> Option<Func> {
        (self.opcode == Opcode::Call).then(|| Func::from_u32(self.bits as u32))
    }

    /// Whether the step is an operation on values that takes operands of these types.
    pub fn accepts(&self, operands: &[Type]) -> bool {
        if self.opcode == Opcode::Const {
            return self.args.is_empty() && operands.is_empty() && self.bits & !self.ty.mask() == 0;
        }
        let first_fits = operands.first().is_some_and(|ty| *ty == self.operand_ty);
        first_fits && operands.len() == self.args.len() && accepts(self.opcode, self.ty, operands)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.allocator() {
            Some(func) => write!(f, "call {func}")?,
            None => write!(f, "{}.{}", self.opcode.name(), self.ty)?,
        }
        if self.opcode == Opcode::Const {
            return write!(f, " {:#x}", self.bits);
        }
        for (i, arg) in self.args.iter().enumerate() {
            write!(f, "{} {arg}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// A replay: a store or global write that the target version has executed and the source version
/// has not. The compensation code executes it. Replays are the only effects of compensation code,
/// and they cannot trap.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Replay {
    /// The instruction of the target version. In a composed entry it may be one of a version on the
    /// way, which the target version lacks.
    pub inst: Inst,
    /// The operation of that instruction.
    pub opcode: Opcode,
    /// The controlling type.
    pub ty: Type,
    /// The memory and the offset, or the global.
    pub imm: Imm,
    /// The operands.
    pub args: SmallVec<[Operand; 2]>,
}

impl fmt::Display for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} of {}", self.opcode.name(), self.ty, self.inst)?;
        for (i, arg) in self.args.iter().enumerate() {
            write!(f, "{} {arg}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// A write that is about to be executed: a [`Replay`] with the contents of its operands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Write {
    /// The operation.
    pub opcode: Opcode,
    /// The controlling type.
    pub ty: Type,
    /// The memory and the offset, or the global.
    pub imm: Imm,
    /// The contents of the operands.
    pub args: SmallVec<[u64; 2]>,
}

/// One part of the parallel assignment that ends compensation code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Assign {
    /// The assigned value of the target version.
    pub value: Value,
    /// The source of its contents.
    pub from: Operand,
}

impl Assign {
    /// Whether the value keeps its own contents, so that the assignment costs nothing at run time.
    pub fn is_identity(&self) -> bool {
        self.from == Operand::Source(self.value)
    }
}

/// A transition from one source point.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The landing point in the target version, where execution continues. Where the run lands in
    /// inner activations too, this one waits for the results of the call there.
    pub target: Point,
    /// The steps. Each step reads source values and results of earlier steps only.
    pub steps: Vec<Step>,
    /// The replayed stores of the target version, in its execution order. In a composed entry, the
    /// replays of the first entry precede the replays of the second.
    pub replays: Vec<Replay>,
    /// The parallel assignment, in ascending order of the assigned values, each value once. The
    /// entry *provides* these values.
    pub assigns: Vec<Assign>,
    /// The values of the source version that the entry reads, in ascending order.
    pub requires: Vec<Value>,
    /// The values of `requires` that are not live at the source point, in ascending order. Function
    /// arguments count too. Arming the entry adds a use of each at that point.
    pub kept: Vec<Value>,
    /// The inner activations that the run lands in, the innermost first ([`crate::frames`]). Empty
    /// for an entry that lands in the target version alone.
    pub inner: Box<[Frame]>,
}

impl Entry {
    /// The values of the target version that hold correct contents after the entry ran, in
    /// ascending order.
    pub fn provides(&self) -> impl ExactSizeIterator<Item = Value> + '_ {
        self.assigns.iter().map(|a| a.value)
    }

    /// The activations that the run lands in, the innermost first: [`Entry::inner`], and the
    /// activation of `func`, whose version the entry leaves, in the target version of its mapping.
    pub fn landings(
        &self,
        func: Func,
        target: VersionKey,
    ) -> impl DoubleEndedIterator<Item = Landing<'_>> {
        let (at, assigns) = (self.own_place(), &self.assigns[..]);
        let outermost = Landing { func, version: target, at, assigns };
        self.inner.iter().map(Frame::landing).chain([outermost])
    }

    /// The place of each activation that the run lands in, the innermost first.
    pub fn places(&self) -> impl DoubleEndedIterator<Item = FramePlace> + '_ {
        self.inner.iter().map(|frame| frame.at).chain([self.own_place()])
    }

    /// Where the activation of the target version stands.
    fn own_place(&self) -> FramePlace {
        match self.inner[..] {
            [] => FramePlace::Before(self.target),
            _ => FramePlace::Within(self.target.inst()),
        }
    }

    /// The number of activations that the run lands in.
    pub fn activations(&self) -> usize {
        self.inner.len() + 1
    }

    /// The assignments to each activation, the innermost first.
    pub fn assign_lists(&self) -> impl DoubleEndedIterator<Item = &[Assign]> {
        self.inner.iter().map(|frame| &frame.assigns[..]).chain([&self.assigns[..]])
    }

    /// The number of assignments that copy from another value.
    pub(crate) fn changed(&self) -> usize {
        self.assign_lists().flatten().filter(|assign| !assign.is_identity()).count()
    }

    /// The values of the source version that steps, replays and assignments read, in ascending
    /// order. An entry of `osr` requires exactly these. Cost: near linear in the entry.
    pub fn reads(&self) -> Vec<Value> {
        let source = |operand: &Operand| match operand {
            Operand::Source(value) => Some(*value),
            Operand::Step(_) => None,
        };
        let of_steps = self.steps.iter().flat_map(|step| &step.args);
        let of_replays = self.replays.iter().flat_map(|replay| &replay.args);
        let of_inner = self.inner.iter().flat_map(|frame| &frame.assigns).map(|to| &to.from);
        let read = of_steps.chain(of_replays).chain(of_inner);
        let mut read: Vec<Value> = read.filter_map(source).collect();
        // Most values keep their contents, and ascend: these need no sorting, but a merge. In a
        // forged entry, assignments may stand in another order.
        let mut same: Vec<Value> = Vec::with_capacity(self.assigns.len());
        for Assign { value, from } in &self.assigns {
            match from {
                Operand::Source(from) if from == value => same.push(*value),
                changed => read.extend(source(changed)),
            }
        }
        union(same, read)
    }

    /// Whether the entry provides a value. Cost: logarithmic in the number of provided values.
    pub fn provides_value(&self, value: Value) -> bool {
        self.assigns.binary_search_by_key(&value, |a| a.value).is_ok()
    }

    /// Whether the entry does nothing: it lands in the target version alone, it has no step and no
    /// replay, and every provided value keeps its contents.
    pub fn is_empty(&self) -> bool {
        self.inner.is_empty() && self.size() == 0
    }

    /// The size of the compensation code: the number of steps, replayed stores, and assignments
    /// that copy from another value.
    pub fn size(&self) -> usize {
        self.steps.len() + self.replays.len() + self.changed()
    }

    /// The objects that the entry makes, in the order of its steps: the allocator, and the
    /// arguments, which are constants. `None` for arguments that are not.
    pub fn objects(&self) -> impl Iterator<Item = (Func, Option<SmallVec<[u64; 4]>>)> + '_ {
        let constant = |operand: &Operand| match operand {
            Operand::Step(index) => {
                let step = self.steps.get(*index as usize);
                step.filter(|step| step.opcode == Opcode::Const).map(|step| step.bits)
            }
            Operand::Source(_) => None,
        };
        let calls = self.steps.iter().filter_map(|step| Some((step.allocator()?, step)));
        calls.map(move |(func, step)| (func, step.args.iter().map(constant).collect()))
    }

    /// Runs the compensation code. The function `read` gives the contents of a value of the source
    /// version. After all steps are evaluated, this method calls `assign` once for every assigned
    /// value, in the order of [`Entry::assign_lists`], with the index of its activation there. It
    /// returns the replayed stores in order. The caller must execute them
    /// (`interp::Machine::write`); otherwise the target version reads stale memory.
    ///
    /// # Errors
    /// When a step traps, or when an operand refers to a step that has not run. Neither happens in
    /// a correct entry.
    pub fn run(
        &self,
        read: impl FnMut(Value) -> u64,
        assign: impl FnMut(usize, Value, u64),
    ) -> Result<SmallVec<[Write; 1]>, CompensationFault> {
        self.run_with(&[], read, assign)
    }

    /// As [`Entry::run`], with the references to the objects of the entry ([`Entry::objects`]),
    /// which the caller has made.
    ///
    /// # Errors
    /// As [`Entry::run`], and [`CompensationFault::NoObject`] where one is missing.
    pub fn run_with(
        &self,
        objects: &[u64],
        mut read: impl FnMut(Value) -> u64,
        mut assign: impl FnMut(usize, Value, u64),
    ) -> Result<SmallVec<[Write; 1]>, CompensationFault> {
        let (read, mut objects) = (&mut read, objects.iter().copied());
        let mut results: SmallVec<[u64; 16]> = SmallVec::new();
        let mut args: SmallVec<[u64; 4]> = SmallVec::new();
        for (index, step) in self.steps.iter().enumerate() {
            args.clear();
            for arg in &step.args {
                args.push(fetch(*arg, &results, read)?);
            }
            let result = match step.allocator() {
                Some(func) => objects.next().ok_or(CompensationFault::NoObject { func })?,
                None => evaluate(step, &args)
                    .map_err(|kind| CompensationFault::Trap { step: index, kind })?,
            };
            results.push(result);
        }
        let mut writes = SmallVec::new();
        for Replay { opcode, ty, imm, args, .. } in &self.replays {
            let args: SmallVec<[u64; 2]> =
                args.iter().map(|arg| fetch(*arg, &results, read)).collect::<Result<_, _>>()?;
            writes.push(Write { opcode: *opcode, ty: *ty, imm: *imm, args });
        }
        for (activation, assigns) in self.assign_lists().enumerate() {
            for to in assigns {
                assign(activation, to.value, fetch(to.from, &results, read)?);
            }
        }
        Ok(writes)
    }
}

fn fetch(
    operand: Operand,
    results: &[u64],
    read: &mut impl FnMut(Value) -> u64,
) -> Result<u64, CompensationFault> {
    match operand {
        Operand::Source(value) => Ok(read(value)),
        Operand::Step(index) => results
            .get(index as usize)
            .copied()
            .ok_or(CompensationFault::NoSuchStep { index: index as usize }),
    }
}

fn evaluate(step: &Step, args: &[u64]) -> Result<u64, TrapKind> {
    match step.opcode {
        Opcode::Const => Ok(step.bits),
        // The contents of a reference are its word.
        Opcode::RefBits => Ok(args.first().copied().unwrap_or(0)),
        opcode => ir::eval::eval(opcode, step.ty, step.operand_ty, args),
    }
}

/// The reason why compensation code could not run. Correct entries never cause a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompensationFault {
    /// A step trapped.
    Trap {
        /// The index of the step.
        step: usize,
        /// The kind of the trap.
        kind: TrapKind,
    },
    /// An object was not made.
    NoObject {
        /// The allocator.
        func: Func,
    },
    /// An operand refers to a step that does not exist or comes later.
    NoSuchStep {
        /// The index in the operand.
        index: usize,
    },
}

impl fmt::Display for CompensationFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompensationFault::Trap { step, kind } => {
                write!(f, "step {step} of the compensation code traps: {kind}")
            }
            CompensationFault::NoObject { func } => {
                write!(f, "{func} has made no object for the compensation code")
            }
            CompensationFault::NoSuchStep { index } => {
                write!(f, "the compensation code reads step {index}, which has not run")
            }
        }
    }
}

impl std::error::Error for CompensationFault {}

/// A mapping from one version of a function to another.
#[derive(Clone, Debug)]
pub struct Mapping {
    source: VersionKey,
    target: VersionKey,
    /// Mappings of several levels share the entries that they have in common.
    entries: BTreeMap<Point, SharedEntry>,
    /// Where entries are packed; `None` if they are not.
    store: Option<EntryStore>,
}

impl PartialEq for Mapping {
    fn eq(&self, other: &Mapping) -> bool {
        let keys = |mapping: &Mapping| (mapping.source, mapping.target);
        keys(self) == keys(other) && self.entries == other.entries
    }
}

impl Eq for Mapping {}

impl Mapping {
    /// A mapping without entries.
    pub fn new(source: &Function, target: &Function) -> Mapping {
        Mapping::between(VersionKey::of(source), VersionKey::of(target))
    }

    /// A mapping without entries, between the versions with these keys.
    pub fn between(source: VersionKey, target: VersionKey) -> Mapping {
        Mapping { source, target, entries: BTreeMap::new(), store: None }
    }

    /// Where entries are packed; `None` if they are not.
    pub fn store(&self) -> Option<&EntryStore> {
        self.store.as_ref()
    }

    /// The same mapping, which packs the entries that it is given from here on: for mappings with
    /// many values. Mappings of several levels have one store.
    #[must_use]
    pub fn packing(self, store: EntryStore) -> Mapping {
        Mapping { store: Some(store), ..self }
    }

    /// The source version of the transitions.
    pub fn source(&self) -> VersionKey {
        self.source
    }

    /// The target version of the transitions.
    pub fn target(&self) -> VersionKey {
        self.target
    }

    /// The entry at a point of the source version. A packed entry then stays in memory.
    pub fn entry(&self, point: Point) -> Option<&Entry> {
        self.entries.get(&point).map(SharedEntry::whole)
    }

    /// Whether a point of the source version has an entry.
    pub fn has_entry(&self, point: Point) -> bool {
        self.entries.contains_key(&point)
    }

    /// The entry at a point of the source version, to be shared with another mapping.
    pub fn shared(&self, point: Point) -> Option<&SharedEntry> {
        self.entries.get(&point)
    }

    /// Every entry, in ascending order of its source point. Packed entries then all stay in memory:
    /// code that meets large mappings calls [`Mapping::shared_entries`].
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (Point, &Entry)> {
        self.entries.iter().map(|(p, e)| (*p, e.whole()))
    }

    /// Every entry, in ascending order of its source point, to be read and forgotten, or to be
    /// shared with another mapping.
    pub fn shared_entries(&self) -> impl ExactSizeIterator<Item = (Point, &SharedEntry)> {
        self.entries.iter().map(|(p, e)| (*p, e))
    }

    /// The source points of the entries, ascending.
    pub fn points(&self) -> impl ExactSizeIterator<Item = Point> {
        self.entries.keys().copied()
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the mapping has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Inserts an entry at a point. Replaces an entry that the point already has.
    pub fn insert(&mut self, point: Point, entry: Entry) {
        self.insert_shared(point, Arc::new(entry));
    }

    /// As [`Mapping::insert`], with an entry that other mappings may have too.
    pub fn insert_shared(&mut self, point: Point, entry: impl Into<SharedEntry>) {
        let entry = match &self.store {
            Some(store) => entry.into().packed(store),
            None => entry.into(),
        };
        self.entries.insert(point, entry);
    }

    /// Removes the entry at a point and returns it. Cost: if another mapping shares the entry, or
    /// the entry is packed, its size.
    pub fn remove(&mut self, point: Point) -> Option<Entry> {
        self.entries.remove(&point).map(SharedEntry::into_entry)
    }
}
