//! What the lines of a text say, before names are resolved.

use crate::opcode::Opcode;
use crate::trap::TrapKind;
use crate::types::{Signature, Type, TypeList};
use std::borrow::Cow;

/// A name and the byte offset where it stands.
#[derive(Clone, Debug)]
pub(super) struct Name<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) at: usize,
}

/// A whole text.
#[derive(Debug, Default)]
pub(super) struct File<'a> {
    pub(super) items: Vec<Item<'a>>,
    /// An item could not be read, so its name is missing: what refers to it is not at fault.
    pub(super) lost_items: bool,
}

#[derive(Debug)]
pub(super) enum Item<'a> {
    Memory { name: Name<'a>, min: u32, max: Option<u32> },
    Global { name: Name<'a>, mutable: bool, ty: Type, init: u64 },
    Table { name: Name<'a>, size: u32 },
    Data { memory: Name<'a>, offset: u64, bytes: Vec<u8> },
    Elem { table: Name<'a>, offset: u64, funcs: Vec<Option<Name<'a>>> },
    Import { name: Name<'a>, module: String, field: String, signature: Signature },
    Export { name: String, func: Name<'a> },
    Start { func: Name<'a> },
    Func(FuncItem<'a>),
}

#[derive(Debug)]
pub(super) struct FuncItem<'a> {
    pub(super) name: Name<'a>,
    pub(super) params: Vec<Param<'a>>,
    pub(super) results: TypeList,
    pub(super) blocks: Vec<BlockItem<'a>>,
    /// A line of the body could not be read, so names may be missing: the body is not built.
    pub(super) lost_lines: bool,
}

#[derive(Debug)]
pub(super) struct Param<'a> {
    pub(super) name: Name<'a>,
    pub(super) ty: Type,
}

#[derive(Debug)]
pub(super) struct BlockItem<'a> {
    pub(super) name: Name<'a>,
    pub(super) params: Vec<Param<'a>>,
    pub(super) insts: Vec<InstItem<'a>>,
}

#[derive(Debug)]
pub(super) struct InstItem<'a> {
    pub(super) at: usize,
    pub(super) results: Vec<Name<'a>>,
    pub(super) opcode: Opcode,
    pub(super) ty: Type,
    pub(super) imm: ImmItem<'a>,
    pub(super) args: Vec<Name<'a>>,
    pub(super) targets: Vec<TargetItem<'a>>,
}

#[derive(Debug)]
pub(super) enum ImmItem<'a> {
    None,
    Bits(u64),
    Address(Name<'a>, u64),
    Memory(Name<'a>),
    Global(Name<'a>),
    Func(Name<'a>),
    Indirect(Signature, Name<'a>),
    Trap(TrapKind),
}

#[derive(Debug)]
pub(super) struct TargetItem<'a> {
    pub(super) block: Name<'a>,
    pub(super) args: Vec<Name<'a>>,
}
