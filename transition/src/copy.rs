//! Copies: versions made of the code of others, as inlining makes them.
//!
//! Example: `@f` calls `@g` twice, and its version has both bodies in the place of the calls. That
//! version consists of three *instances*: `@f` itself, and two of `@g`, each with the call of `@f`
//! that it stands for. Each block of the version belongs to one instance and begins where a point
//! of the original is. Each value of the original has its copy in the instance.
//!
//! A run of the copy executes the instructions that runs of the originals would, one by one. At a
//! point of an inlined body, the originals have several *frames*: the callee before an instruction,
//! and its callers within their calls.

use crate::VersionKey;
use ir::{Block, Func, Inst, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The sites of inlined code: by instruction of a version, the function and the instruction of its
/// base that it stands for. Other instructions stand for themselves.
pub type InlinedSites = BTreeMap<Inst, (Func, Inst)>;

/// The number of an instance in its claim.
pub type InstanceId = usize;

/// The claim that a version is a copy of others. `check::copy` decides it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CopyClaim {
    /// The instances. The first is the instance of the function itself.
    pub instances: Vec<CopyInstance>,
    /// For each reachable block of the copy, its instance, and the original of its first
    /// instruction.
    pub blocks: BTreeMap<Block, (InstanceId, Inst)>,
    /// The objects that the originals make, and the copy does not.
    pub objects: ObjectClaim,
}

/// The objects that the originals of a copy make, and the copy does not.
///
/// Example: the original makes a point with `call @new`, stores `%a` and `%b` into it, and loads
/// `%b` again. The copy has none of these four instructions and uses `%b`. The original has the
/// object all the same: where a run leaves the copy, the entry makes it from `%a` and `%b`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ObjectClaim {
    /// The instructions of originals that the copy lacks: calls that make objects, computations
    /// about their words, and accesses of their bytes.
    pub removed: BTreeSet<(InstanceId, Inst)>,
    /// The instructions of the copy that no original has: constants.
    pub added: BTreeSet<Inst>,
    /// By block of the copy: the objects at its start. A block without any is absent.
    pub at_start: BTreeMap<Block, Vec<ObjectState>>,
}

/// An object that originals have at a place, and the copy does not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectState {
    /// The call that has made the object. Of several objects of one call, the latest.
    pub site: (InstanceId, Inst),
    /// Values of originals, and what they are of the object.
    pub forms: BTreeMap<(InstanceId, Value), ObjectForm>,
    /// By offset in bytes: the value of the copy that was stored there, all bytes of it. Other
    /// bytes have not been written.
    pub fields: BTreeMap<u64, Value>,
    /// Whether bytes were written whose contents are unknown here. No entry can make the object
    /// then.
    pub is_lost: bool,
}

/// Objects by instruction: those before it. Instructions without objects are absent. Neighbours
/// share the objects that stay as they are.
pub type ObjectsAt = BTreeMap<Inst, Arc<Vec<Arc<ObjectState>>>>;

/// What a value of an original is of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectForm {
    /// The reference to it.
    Reference,
    /// The word of the reference.
    Word,
    /// The address of its bytes.
    Address,
}

/// The code of one function in a copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopyInstance {
    /// The function.
    pub func: Func,
    /// The version of it that is the original.
    pub version: VersionKey,
    /// The instance and the call there, in terms of its original, that this instance stands for.
    /// `None` for the first instance.
    pub caller: Option<(InstanceId, Inst)>,
    /// For each value of the original that the copy needs, the value of the copy.
    pub values: BTreeMap<Value, Value>,
}

/// The claim that a function is the code of versions behind the frames that an entry lands in: a
/// *continuation*. `check::continuation` decides it.
///
/// Example: an entry lands in the middle of a loop and provides `x`, which the upper part of the
/// loop defines. The continuation has a block parameter in which the two definitions meet. At the
/// start of the loop header, `x` is in another value than behind the definition. So the environment
/// belongs to the block.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ContinuationClaim {
    /// The steps of the entry that the entry block executes, by index, ascending. It leaves out the
    /// others.
    pub steps: Vec<u32>,
    /// For each copied instruction: its original in a frame's version. The frame is the frame of
    /// its block; for the entry block, the innermost frame.
    pub insts: BTreeMap<Inst, Inst>,
    /// For each reachable block but the entry block: where it begins.
    pub blocks: BTreeMap<Block, FrameBlock>,
}

/// Where a block of a continuation begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrameBlock {
    /// The frame whose code it is, by its index in the entry. The number of frames for a block
    /// behind the last `return`.
    pub frame: usize,
    /// The instruction of the frame's version that control is about to execute. Any, behind the
    /// last `return`.
    pub at: Inst,
    /// The environment: values of the frames' versions, each with the value of the continuation
    /// that holds it at the start of the block.
    pub values: Environment,
}

/// Values of the versions of frames, each with the frame, and the values that hold them.
pub type Environment = BTreeMap<(usize, Value), Value>;
