//! OSR mappings as data: what `osr` makes, what `verify` judges, what the interpreter fires.
//!
//! A mapping from version *p* to version *q* of one family is a partial function from points of p
//! to [`Entry`]s. Firing an entry at its source point runs its *compensation code*: straight-line,
//! effect-free steps over values of p, then the stores that q has executed and p has not, then one
//! parallel assignment to values of q. Execution goes on in q at the entry's target point.
//!
//! The claim an entry makes: if p, started on some input, reaches the source point with state s,
//! then q, started on the same input, reaches the target point with the same memory and the same
//! effects so far, and the compensation code run on s agrees with q's state on every value
//! provided.

use crate::VersionKey;
use ir::entity::{Inst, Point, Value};
use ir::eval::accepts;
use ir::function::Function;
use ir::inst::Imm;
use ir::opcode::Opcode;
use ir::trap::TrapKind;
use ir::types::Type;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::fmt;

/// What a step or an assignment reads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Operand {
    /// A value of the source version, as it is at the source point.
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

/// One step of compensation code: an operation on values, without effects.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Step {
    /// The operation; its result depends on its operands alone.
    pub opcode: Opcode,
    /// Its controlling type.
    pub ty: Type,
    /// The type of its first operand, or `ty` when it has none: what conversions convert from.
    pub operand_ty: Type,
    /// The bits of a constant, 0 for every other operation.
    pub bits: u64,
    /// What it reads.
    pub args: SmallVec<[Operand; 2]>,
}

impl Step {
    /// Whether it is an operation on values, and takes operands of these types.
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
        write!(f, "{}.{}", self.opcode.name(), self.ty)?;
        if self.opcode == Opcode::Const {
            return write!(f, " {:#x}", self.bits);
        }
        for (i, arg) in self.args.iter().enumerate() {
            write!(f, "{} {arg}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// A store (or the setting of a global) of the target version that the source version has not
/// executed, executed on the way. The one effect that compensation code may have; it cannot trap.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Replay {
    /// The instruction of the target version.
    pub inst: Inst,
    /// Its operation.
    pub opcode: Opcode,
    /// Its controlling type.
    pub ty: Type,
    /// Its memory and offset, or its global.
    pub imm: Imm,
    /// What it reads.
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
    /// Its controlling type.
    pub ty: Type,
    /// Its memory and offset, or its global.
    pub imm: Imm,
    /// The contents of its operands.
    pub args: SmallVec<[u64; 2]>,
}

/// Part of the parallel assignment that ends compensation code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Assign {
    /// The value of the target version that is given its contents.
    pub value: Value,
    /// Where they come from.
    pub from: Operand,
}

impl Assign {
    /// Whether the value keeps its own contents: nothing happens at run time.
    pub fn is_identity(&self) -> bool {
        self.from == Operand::Source(self.value)
    }
}

/// A transition from one source point.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Where execution goes on, in the target version.
    pub target: Point,
    /// The steps, each reading earlier ones.
    pub steps: Vec<Step>,
    /// The stores of the target version to be executed, in its order. An entry that has some does
    /// not compose.
    pub replays: Vec<Replay>,
    /// The parallel assignment, in ascending order of the value assigned, each value once. These
    /// are the values the entry *provides*.
    pub assigns: Vec<Assign>,
    /// The values of the source version that the entry reads, ascending.
    pub requires: Vec<Value>,
    /// Those of `requires` that are not live at the source point, function arguments included,
    /// ascending. Arming the entry adds a use of them there.
    pub kept: Vec<Value>,
}

impl Entry {
    /// The values of the target version that hold correct contents afterwards, ascending.
    pub fn provides(&self) -> impl ExactSizeIterator<Item = Value> + '_ {
        self.assigns.iter().map(|a| a.value)
    }

    /// Whether the entry provides a value. Cost: logarithmic in the number provided.
    pub fn provides_value(&self, value: Value) -> bool {
        self.assigns.binary_search_by_key(&value, |a| a.value).is_ok()
    }

    /// Whether nothing has to be done: no step, and every value provided keeps its own contents.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
            && self.replays.is_empty()
            && self.assigns.iter().all(Assign::is_identity)
    }

    /// The size of the compensation code: its steps, its stores, and its copies from other values.
    pub fn size(&self) -> usize {
        self.steps.len()
            + self.replays.len()
            + self.assigns.iter().filter(|a| !a.is_identity()).count()
    }

    /// Runs the compensation code: calls `assign` for every value provided, after all steps were
    /// evaluated. `read` gives the contents of a value of the source version. Returns the stores to
    /// be executed, in order ([`interp::Machine::write`]): where they are left out, the
    /// target version finds stale memory.
    ///
    /// # Errors
    /// When a step traps, which in a correct entry none does; or an operand names no earlier step.
    pub fn run(
        &self,
        mut read: impl FnMut(Value) -> u64,
        mut assign: impl FnMut(Value, u64),
    ) -> Result<SmallVec<[Write; 1]>, CompensationFault> {
        let mut results: SmallVec<[u64; 16]> = SmallVec::new();
        let mut args: SmallVec<[u64; 4]> = SmallVec::new();
        for (index, step) in self.steps.iter().enumerate() {
            args.clear();
            for arg in &step.args {
                args.push(fetch(*arg, &results, &mut read)?);
            }
            results.push(
                evaluate(step, &args)
                    .map_err(|kind| CompensationFault::Trap { step: index, kind })?,
            );
        }
        let mut writes = SmallVec::new();
        for Replay { opcode, ty, imm, args, .. } in &self.replays {
            let args: SmallVec<[u64; 2]> = args
                .iter()
                .map(|arg| fetch(*arg, &results, &mut read))
                .collect::<Result<_, _>>()?;
            writes.push(Write { opcode: *opcode, ty: *ty, imm: *imm, args });
        }
        for to in &self.assigns {
            assign(to.value, fetch(to.from, &results, &mut read)?);
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
        opcode => ir::eval::eval(opcode, step.ty, step.operand_ty, args),
    }
}

/// Why compensation code could not run. Never happens to an entry that is correct.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompensationFault {
    /// A step trapped.
    Trap {
        /// Its index.
        step: usize,
        /// How.
        kind: TrapKind,
    },
    /// An operand names a step that does not exist or comes later.
    NoSuchStep {
        /// The index it names.
        index: usize,
    },
}

impl fmt::Display for CompensationFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompensationFault::Trap { step, kind } => {
                write!(f, "step {step} of the compensation code traps: {kind}")
            }
            CompensationFault::NoSuchStep { index } => {
                write!(f, "the compensation code reads step {index}, which has not run")
            }
        }
    }
}

impl std::error::Error for CompensationFault {}

/// A mapping from one version of a function to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mapping {
    source: VersionKey,
    target: VersionKey,
    entries: BTreeMap<Point, Entry>,
}

impl Mapping {
    /// A mapping without entries.
    pub fn new(source: &Function, target: &Function) -> Mapping {
        Mapping::between(VersionKey::of(source), VersionKey::of(target))
    }

    /// A mapping without entries, between versions that are known by their keys.
    pub fn between(source: VersionKey, target: VersionKey) -> Mapping {
        Mapping { source, target, entries: BTreeMap::new() }
    }

    /// The version transitions leave from.
    pub fn source(&self) -> VersionKey {
        self.source
    }

    /// The version transitions lead to.
    pub fn target(&self) -> VersionKey {
        self.target
    }

    /// The entry at a point of the source version.
    pub fn entry(&self, point: Point) -> Option<&Entry> {
        self.entries.get(&point)
    }

    /// Every entry, in ascending order of its source point.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (Point, &Entry)> {
        self.entries.iter().map(|(p, e)| (*p, e))
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Puts an entry, replacing the one the point had.
    pub fn insert(&mut self, point: Point, entry: Entry) {
        self.entries.insert(point, entry);
    }

    /// Drops an entry; it is never used again.
    pub fn remove(&mut self, point: Point) -> Option<Entry> {
        self.entries.remove(&point)
    }
}
