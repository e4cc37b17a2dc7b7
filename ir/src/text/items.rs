//! The contents of the lines of a text, before name resolution.

use crate::effect::DeclaredEffect;
use crate::init::InitOp;
use crate::module::{ImportName, MemoryKind};
use crate::opcode::Opcode;
use crate::trap::TrapKind;
use crate::types::{Signature, Type, TypeList};
use std::borrow::Cow;

/// A name and the byte offset of its position.
#[derive(Clone, Debug)]
pub(super) struct SourceName<'a> {
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
        name: SourceName<'a>,
        min: u32,
        max: Option<u32>,
        import: Option<ImportName>,
        kind: MemoryKind,
    },
    Global {
        name: SourceName<'a>,
        mutable: bool,
        ty: Type,
        init: InitItem<'a>,
        import: Option<ImportName>,
    },
    Table {
        fixed: bool,
        name: SourceName<'a>,
        ty: Type,
        size: u32,
        max: Option<u32>,
        import: Option<ImportName>,
    },
    Data {
        active: Option<(SourceName<'a>, InitItem<'a>)>,
        bytes: Vec<u8>,
    },
    Elem {
        ty: Type,
        active: Option<(SourceName<'a>, InitItem<'a>)>,
        entries: Vec<EntryItem<'a>>,
    },
    /// A function that is imported, or whose body comes later.
    Bodiless {
        name: SourceName<'a>,
        import: Option<ImportName>,
        signature: Signature,
        effect: DeclaredEffect,
    },
    Export {
        name: String,
        kind: ExternalKind,
        item: SourceName<'a>,
    },
    Start {
        func: SourceName<'a>,
    },
    Func(FuncItem<'a>),
}

#[derive(Debug)]
pub(super) struct FuncItem<'a> {
    pub(super) name: SourceName<'a>,
    pub(super) params: Vec<Param<'a>>,
    pub(super) results: TypeList,
    pub(super) effect: DeclaredEffect,
    pub(super) blocks: Vec<BlockItem<'a>>,
    /// Whether a line of the body could not be read. Names may then be missing, so the body is not
    /// built.
    pub(super) lost_lines: bool,
}

#[derive(Debug)]
pub(super) struct Param<'a> {
    pub(super) name: SourceName<'a>,
    pub(super) ty: Type,
}

#[derive(Debug)]
pub(super) struct BlockItem<'a> {
    pub(super) name: SourceName<'a>,
    pub(super) params: Vec<Param<'a>>,
    pub(super) is_cold: bool,
    pub(super) insts: Vec<InstItem<'a>>,
}

#[derive(Debug)]
pub(super) struct InstItem<'a> {
    pub(super) at: usize,
    pub(super) results: Vec<SourceName<'a>>,
    pub(super) opcode: Opcode,
    pub(super) ty: Type,
    pub(super) imm: ImmItem<'a>,
    pub(super) args: Vec<SourceName<'a>>,
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
    Func(SourceName<'a>),
}

#[derive(Debug)]
pub(super) enum ImmItem<'a> {
    None,
    Bits(BitsItem<'a>),
    Address(SourceName<'a>, u64),
    Memory(SourceName<'a>),
    Global(SourceName<'a>),
    Func(SourceName<'a>),
    Indirect(Signature, SourceName<'a>),
    Trap(TrapKind),
    Memories(SourceName<'a>, SourceName<'a>),
    MemoryData(SourceName<'a>, u32),
    Data(u32),
    Table(SourceName<'a>),
    Tables(SourceName<'a>, SourceName<'a>),
    TableElem(SourceName<'a>, u32),
    Elem(u32),
    Exit(u32),
    Assumed(BitsItem<'a>, u32),
}

#[derive(Debug)]
pub(super) struct TargetItem<'a> {
    pub(super) block: SourceName<'a>,
    pub(super) args: Vec<SourceName<'a>>,
}

/// An entry of an element segment.
#[derive(Debug)]
pub(super) enum EntryItem<'a> {
    Bits(BitsItem<'a>),
    Global(SourceName<'a>),
}

/// The initial value of a global, or the place of a segment.
#[derive(Debug)]
pub(super) enum InitItem<'a> {
    Bits(BitsItem<'a>),
    Computed(Vec<InitOpItem<'a>>),
}

#[derive(Debug)]
pub(super) enum InitOpItem<'a> {
    Global(SourceName<'a>),
    Op(InitOp),
}
