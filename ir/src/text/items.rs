//! The contents of the lines of a text, before name resolution.

use crate::module::ImportName;
use crate::opcode::Opcode;
use crate::trap::TrapKind;
use crate::types::{Signature, Type, TypeList};
use std::borrow::Cow;

/// A name and the byte offset of its position.
#[derive(Clone, Debug)]
pub(super) struct Name<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) at: usize,
}

/// The items of a whole text.
#[derive(Debug, Default)]
pub(super) struct File<'a> {
    pub(super) items: Vec<Item<'a>>,
    /// Whether an item could not be read. Its name is then missing, so references to undefined
    /// names are not reported.
    pub(super) lost_items: bool,
}

#[derive(Debug)]
pub(super) enum Item<'a> {
    Memory {
        name: Name<'a>,
        min: u32,
        max: Option<u32>,
        import: Option<ImportName>,
    },
    Global {
        name: Name<'a>,
        mutable: bool,
        ty: Type,
        init: BitsItem<'a>,
        import: Option<ImportName>,
    },
    Table {
        name: Name<'a>,
        ty: Type,
        size: u32,
        max: Option<u32>,
        import: Option<ImportName>,
    },
    Data {
        active: Option<(Name<'a>, u64)>,
        bytes: Vec<u8>,
    },
    Elem {
        ty: Type,
        active: Option<(Name<'a>, u64)>,
        entries: Vec<BitsItem<'a>>,
    },
    Import {
        name: Name<'a>,
        import: ImportName,
        signature: Signature,
    },
    Export {
        name: String,
        kind: ExternalKind,
        item: Name<'a>,
    },
    Start {
        func: Name<'a>,
    },
    Func(FuncItem<'a>),
}

#[derive(Debug)]
pub(super) struct FuncItem<'a> {
    pub(super) name: Name<'a>,
    pub(super) params: Vec<Param<'a>>,
    pub(super) results: TypeList,
    pub(super) blocks: Vec<BlockItem<'a>>,
    /// Whether a line of the body could not be read. Names may then be missing, so the body is not
    /// built.
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

/// The kind of an exported entity.
#[derive(Clone, Copy, Debug)]
pub(super) enum ExternalKind {
    Func,
    Global,
    Memory,
    Table,
}

/// The bits of a literal, or a reference to a function by name.
#[derive(Debug)]
pub(super) enum BitsItem<'a> {
    Bits(u64),
    Func(Name<'a>),
}

#[derive(Debug)]
pub(super) enum ImmItem<'a> {
    None,
    Bits(BitsItem<'a>),
    Address(Name<'a>, u64),
    Memory(Name<'a>),
    Global(Name<'a>),
    Func(Name<'a>),
    Indirect(Signature, Name<'a>),
    Trap(TrapKind),
    Memories(Name<'a>, Name<'a>),
    MemoryData(Name<'a>, u32),
    Data(u32),
    Table(Name<'a>),
    Tables(Name<'a>, Name<'a>),
    TableElem(Name<'a>, u32),
    Elem(u32),
    Exit(u32),
}

#[derive(Debug)]
pub(super) struct TargetItem<'a> {
    pub(super) block: Name<'a>,
    pub(super) args: Vec<Name<'a>>,
}
