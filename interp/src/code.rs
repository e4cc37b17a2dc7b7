//! The exact code of one version of a function, with its fast code.
//!
//! Each instruction is exactly one operation, and operations are in layout order. So the pc of
//! `Before(inst)` is the number of instructions before `inst` in the layout. The pc of a block is
//! the pc of its first instruction. The moves on branch edges that pass arguments follow after the
//! last instruction.
//!
//! Every value has its own slot in the frame. A value is therefore readable wherever its definition
//! dominates, live or not. The arguments of the function have the first slots.

use super::bulk::BulkOp;
use super::decode::narrow;
use super::fast::data::Fast;
use super::op::{ExactOp, ExactOpCode};
use super::refs::RefSlots;
use cranelift_entity::EntityRef;
use ir::entity::{Func, Inst, Memory, Point, Value};
use ir::function::Function;
use ir::module::Module;
use ir::trap::TrapKind;
use ir::types::Type;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use transition::VersionKey;

/// Table entry for an id that the version does not have.
pub(super) const NONE: u32 = u32::MAX;

/// A load or store that does not fit an [`ExactOp`]: it accesses a memory other than memory 0 or a
/// host memory, or its offset has more than 32 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct FarAccess {
    pub(super) memory: Memory,
    pub(super) is_host: bool,
    pub(super) offset: u64,
    /// Bytes accessed, at most 8.
    pub(super) bytes: u32,
    /// Whether the loaded value is sign-extended to `ty`.
    pub(super) signed: bool,
    pub(super) ty: Type,
}

/// The bits that an assumption expects, and its reason.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpectedBits {
    pub(super) bits: u64,
    pub(super) reason: u32,
}

/// One version of a function, pre-decoded or to be decoded at its first use. See the module
/// documentation.
#[derive(Debug)]
pub struct Code {
    key: VersionKey,
    pub(super) params: u32,
    /// The module and the function that `decoded` will be made of, for base versions.
    source: Mutex<Option<(Arc<DecodeSource>, Func)>>,
    decoded: OnceLock<Decoded>,
}

/// The module that supplies code at its first use. All code of a program shares it with the code of
/// larger programs that the program is extended to. So earlier modules can be freed
/// (`earlier_modules_are_freed`), without a walk over the code.
#[derive(Debug)]
pub(super) struct DecodeSource(Mutex<Arc<Module>>);

impl DecodeSource {
    pub(super) fn new(module: &Arc<Module>) -> Arc<DecodeSource> {
        Arc::new(DecodeSource(Mutex::new(Arc::clone(module))))
    }

    fn module(&self) -> MutexGuard<'_, Arc<Module>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves on from a module to a larger one that begins like it. Returns false, and stays, if the
    /// source has moved on to a third one: the new functions of that are others.
    pub(super) fn move_on(&self, from: &Arc<Module>, to: &Arc<Module>) -> bool {
        let mut module = self.module();
        let moves = Arc::ptr_eq(&module, from);
        if moves {
            *module = Arc::clone(to);
        }
        moves
    }
}

/// The decoded form of a [`Code`].
#[derive(Clone, Debug)]
pub struct Decoded {
    pub(super) ops: Vec<ExactOp>,
    pub(super) pool: Vec<u32>,
    pub(super) far: Vec<FarAccess>,
    pub(super) bulk: Vec<BulkOp>,
    pub(super) traps: Vec<TrapKind>,
    pub(super) assumptions: Vec<ExpectedBits>,
    /// Slots of a frame: one per value, and a last slot that breaks cycles of moves. The constants
    /// of `fast` follow after them.
    pub(super) frame_size: u32,
    /// The code for the fast loop, which executes unobserved runs. `None` when the frame is too
    /// large for it.
    pub(super) fast: Option<Fast>,
    /// The slots of references that a collector may move. `None` in versions without.
    pub(super) refs: Option<Box<RefSlots>>,
    /// Number of slots that the constants of `fast` take.
    pub(super) consts: u32,
    /// The instruction at each pc. Shorter than `ops`, which also has the moves on edges.
    pub(super) insts: Vec<Inst>,
    /// The pc of each instruction id.
    pub(super) pcs: Vec<u32>,
    /// The slot of each value id.
    pub(super) slots: Vec<u32>,
    /// The value of each slot.
    pub(super) values: Vec<Value>,
}

impl Code {
    /// Pre-decodes one version of a function of `module`. The function must be verified.
    ///
    /// Cost: linear in the function and in its id bounds. Where loops pass arguments, the cost adds
    /// the blocks in which these arguments are live.
    ///
    /// # Panics
    /// When the verifier would reject the function for this module, or when the function has 2^32
    /// operands or more.
    pub fn new(module: &Module, function: &Function) -> Code {
        let decoded = OnceLock::from(Decoded::new(module, function));
        Code { decoded, ..Code::of(function) }
    }

    /// The base version of a function of a verified module, decoded at its first use: most runs use
    /// a part of the functions of a large module. `source` is one of this module. `None` if the
    /// function has no body. Cost: constant, plus [`Code::new`] at the first use.
    ///
    /// # Panics
    /// At the first use, as [`Code::new`].
    pub(super) fn later(source: &Arc<DecodeSource>, module: &Module, func: Func) -> Option<Code> {
        let source = Mutex::new(Some((Arc::clone(source), func)));
        Some(Code { source, ..Code::of(module.body(func)?) })
    }

    fn of(function: &Function) -> Code {
        let params = narrow(function.arguments().len());
        let (key, decoded) = (VersionKey::of(function), OnceLock::new());
        Code { key, params, source: Mutex::new(None), decoded }
    }

    /// Whether the function is decoded: code of [`crate::Program::on_demand`] is at its first use.
    pub fn is_decoded(&self) -> bool {
        self.decoded.get().is_some()
    }

    /// The decoded form.
    #[inline]
    pub(super) fn decoded(&self) -> &Decoded {
        match self.decoded.get() {
            Some(decoded) => decoded,
            None => self.decode(),
        }
    }

    #[cold]
    fn decode(&self) -> &Decoded {
        self.decoded.get_or_init(|| {
            let (source, func) = self.source().take().expect("code has a source or is decoded");
            let module = Arc::clone(&source.module());
            let body = module.body(func).expect("the source has a body");
            Decoded::new(&module, body)
        })
    }

    fn source(&self) -> MutexGuard<'_, Option<(Arc<DecodeSource>, Func)>> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets code that is still to be decoded be made of a later module, which has the same
    /// function, so that the earlier module can be freed.
    pub(super) fn settle(&self, later: &Arc<DecodeSource>) {
        if let Some((source, _)) = &mut *self.source() {
            *source = Arc::clone(later);
        }
    }

    /// The key by which mappings name this version as their source or target.
    pub fn key(&self) -> VersionKey {
        self.key
    }

    /// Sets or clears the mark of every instruction of `insts`. Instructions the version lacks are
    /// skipped.
    pub(super) fn set_marks(&mut self, insts: impl IntoIterator<Item = Inst>, marked: bool) {
        self.decoded();
        self.decoded.get_mut().expect("it is decoded").set_marks(insts, marked);
    }
}

impl Clone for Code {
    fn clone(&self) -> Code {
        // The source goes when the code is decoded, so it is read first.
        let source = Mutex::new(self.source().clone());
        let Code { key, params, ref decoded, .. } = *self;
        Code { key, params, source, decoded: decoded.clone() }
    }
}

impl Deref for Code {
    type Target = Decoded;

    #[inline]
    fn deref(&self) -> &Decoded {
        self.decoded()
    }
}

impl Decoded {
    /// The pc of a point, or `None` if the version lacks the instruction. Cost: constant.
    pub fn pc_of(&self, point: Point) -> Option<u32> {
        self.pcs.get(point.inst().index()).copied().filter(|pc| *pc != NONE)
    }

    /// The instruction at a pc; `None` at moves on an edge. Cost: constant.
    #[inline]
    pub fn inst_at(&self, pc: u32) -> Option<Inst> {
        self.insts.get(pc as usize).copied()
    }

    /// The slot of a value, or `None` if the version lacks the value. Cost: constant.
    pub fn slot_of(&self, value: Value) -> Option<u32> {
        self.slots.get(value.index()).copied().filter(|slot| *slot != NONE)
    }

    /// The value in a slot; `None` for the slot that breaks cycles of moves. Cost: constant.
    pub fn value_at(&self, slot: u32) -> Option<Value> {
        self.values.get(slot as usize).copied()
    }

    /// The number of slots of a frame, without the constants of fast code.
    pub fn frame_size(&self) -> u32 {
        self.frame_size
    }

    /// The instruction at a pc. At moves on an edge, this is the first instruction of the target
    /// block.
    pub(super) fn inst_near(&self, pc: u32) -> Option<Inst> {
        self.inst_at(pc).or_else(|| self.inst_at(self.ops[pc as usize].c))
    }

    /// Number of constant slots that follow the frame.
    #[inline]
    pub(super) fn consts(&self) -> u32 {
        self.consts
    }

    /// The slots that `const` instructions write, with the bits they write. Cost: linear in the
    /// code.
    pub(super) fn constants(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let constant = |op: &&ExactOp| op.code == ExactOpCode::Const;
        self.ops.iter().filter(constant).map(|op| (op.a, u64::from(op.b) | u64::from(op.c) << 32))
    }

    /// Whether the operation at a pc calls a function with a body, so that an activation may wait
    /// there.
    pub(super) fn is_call(&self, pc: u32) -> bool {
        matches!(self.ops[pc as usize].code, ExactOpCode::Call | ExactOpCode::CallIndirect)
    }

    /// Index into the pool at which the slots of the results of the call at `pc` are listed.
    pub(super) fn results_at(&self, pc: u32) -> u32 {
        let op = self.ops[pc as usize];
        match op.code {
            ExactOpCode::CallIndirect => op.b + 2 + op.c,
            _ => op.b + op.c,
        }
    }

    /// Sets or clears the mark of every instruction of `insts`. Instructions the version lacks are
    /// skipped.
    pub(super) fn set_marks(&mut self, insts: impl IntoIterator<Item = Inst>, marked: bool) {
        for inst in insts {
            if let Some(pc) = self.pc_of(Point::before(inst)) {
                self.ops[pc as usize].marked = marked;
            }
        }
    }
}
