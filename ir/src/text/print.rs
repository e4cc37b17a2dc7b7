//! The printer.

use super::init::{write_entries, write_init, write_place};
use super::mentions::{write_bits, write_func, write_global, write_memory, write_table};
use super::names::{resolve_clashes, write_block_name, write_bytes, write_name, write_text};
use crate::effect::DeclaredEffect;
use crate::entity::{Block, Inst, Memory, Value};
use crate::function::Function;
use crate::inst::{Imm, InstData, Target};
use crate::module::{External, ImportName, MemoryKind, Module};
use crate::opcode::Shape;
use crate::trap::TrapKind;
use crate::types::{Signature, Type};
use cranelift_entity::EntityRef;
use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write;

/// The text form of a module, as far as possible even if the verifier rejects the module. The text
/// of a rejected module may not parse. Cost: near linear in the size.
pub fn print_module(module: &Module) -> String {
    collect(|out| write_module(out, module))
}

/// The text form of a function of a module. Cost: near linear in its size.
pub fn print_function(module: &Module, function: &Function) -> String {
    collect(|out| FunctionText::new(module, function).write_function(out, DeclaredEffect::Any))
}

impl fmt::Display for Function {
    /// Writes the text form. Without a module, functions, memories, tables, globals and signatures
    /// have the names of their ids, `@func0`; [`print_function`] gives them their own. Cost: near
    /// linear in the size.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        FunctionText::new(&Module::new(), self).write_function(f, DeclaredEffect::Any)
    }
}

/// The text form of one instruction, without indentation or line end. Cost: linear in the number of
/// names in the function; keep a [`FunctionText`] to print many instructions.
///
/// # Panics
/// When the function lacks the instruction.
pub fn print_inst(module: &Module, function: &Function, inst: Inst) -> String {
    FunctionText::new(module, function).inst(inst)
}

fn collect(write: impl FnOnce(&mut String) -> fmt::Result) -> String {
    let mut out = String::new();
    write(&mut out).expect("writing to a string cannot fail");
    out
}

/// The resolved names of one function, for printing many of its parts.
#[derive(Clone, Debug)]
pub struct FunctionText<'a> {
    module: &'a Module,
    function: &'a Function,
    /// Printed names that differ from the given names because of a clash.
    values: BTreeMap<Value, String>,
    blocks: BTreeMap<Block, String>,
    /// The length in bytes at which names are cut. A text with a cut name may not parse.
    name_limit: usize,
}

impl<'a> FunctionText<'a> {
    /// Resolves the names of a function. Cost: near linear in the number of given names.
    pub fn new(module: &'a Module, function: &'a Function) -> FunctionText<'a> {
        let value_named =
            |name: &str| default_id(name, "v").map(Value::new).filter(|v| function.has_value(*v));
        let block_named = |name: &str| {
            default_id(name, "block").map(Block::new).filter(|b| function.has_block(*b))
        };
        FunctionText {
            module,
            function,
            values: resolve_clashes(&function.value_names, value_named),
            blocks: resolve_clashes(&function.block_names, block_named),
            name_limit: usize::MAX,
        }
    }

    /// As [`FunctionText::new`], but cuts names after this many bytes, for use in messages.
    pub(crate) fn with_name_limit(
        module: &'a Module,
        function: &'a Function,
        limit: usize,
    ) -> FunctionText<'a> {
        FunctionText { name_limit: limit, ..FunctionText::new(module, function) }
    }

    /// The text form of a value: `%sum`, `%v7`.
    pub fn value(&self, value: Value) -> String {
        collect(|out| self.write_value(out, value))
    }

    /// The text form of a block: `loop`, `block3`.
    pub fn block(&self, block: Block) -> String {
        collect(|out| self.write_block(out, block))
    }

    /// The text form of an instruction, without indentation or line end.
    ///
    /// # Panics
    /// When the function lacks the instruction.
    pub fn inst(&self, inst: Inst) -> String {
        collect(|out| self.write_inst(out, inst))
    }

    /// As [`FunctionText::inst`], cut with `...` after about `limit` bytes. Cost: linear in the
    /// limit, independent of the number of operands.
    ///
    /// # Panics
    /// When the function lacks the instruction.
    pub fn inst_up_to(&self, inst: Inst, limit: usize) -> String {
        let mut out = Limited { text: String::new(), limit };
        match self.write_inst(&mut out, inst) {
            Ok(()) => out.text,
            Err(fmt::Error) => out.text + "...",
        }
    }

    fn write_value(&self, out: &mut dyn Write, value: Value) -> fmt::Result {
        out.write_char('%')?;
        match self
            .values
            .get(&value)
            .map(String::as_str)
            .or_else(|| self.function.value_name(value))
        {
            Some(name) => write_name(out, cut(name, self.name_limit)),
            None => write!(out, "{value}"),
        }
    }

    fn write_block(&self, out: &mut dyn Write, block: Block) -> fmt::Result {
        match self
            .blocks
            .get(&block)
            .map(String::as_str)
            .or_else(|| self.function.block_name(block))
        {
            Some(name) => write_block_name(out, cut(name, self.name_limit)),
            None => write!(out, "{block}"),
        }
    }

    fn write_values(&self, out: &mut dyn Write, values: &[Value]) -> fmt::Result {
        write_list(out, values, |out, v| self.write_value(out, *v))
    }

    fn write_function(&self, out: &mut dyn Write, effect: DeclaredEffect) -> fmt::Result {
        let function = self.function;
        out.write_str("func @")?;
        write_name(out, function.name())?;
        let arguments = function.blocks().next().map_or(&[][..], |b| function.block_params(b));
        self.write_params(out, arguments)?;
        write_results(out, function.signature())?;
        write_effect(out, effect)?;
        out.write_str(" {\n")?;
        for (index, block) in function.blocks().enumerate() {
            self.write_block(out, block)?;
            let params = function.block_params(block);
            // The first line of the function has the parameters of the entry block.
            if index > 0 && !params.is_empty() {
                self.write_params(out, params)?;
            }
            // The entry has no mark in the text; a function still in the builder may have one.
            let is_cold = index > 0 && function.is_cold(block);
            out.write_str(if is_cold { " cold:\n" } else { ":\n" })?;
            for inst in function.block_insts(block) {
                out.write_str("  ")?;
                self.write_inst(out, inst)?;
                out.write_char('\n')?;
            }
        }
        out.write_str("}\n")
    }

    fn write_params(&self, out: &mut dyn Write, params: &[Value]) -> fmt::Result {
        out.write_char('(')?;
        write_list(out, params, |out, value| {
            self.write_value(out, *value)?;
            write!(out, ": {}", self.function.value_type(*value))
        })?;
        out.write_char(')')
    }

    fn write_inst(&self, out: &mut dyn Write, inst: Inst) -> fmt::Result {
        let data = self.function.inst(inst);
        if !data.results.is_empty() {
            self.write_values(out, &data.results)?;
            out.write_str(" = ")?;
        }
        out.write_str(data.opcode.name())?;
        if data.opcode.has_type_suffix() {
            write!(out, ".{}", data.ty)?;
        }
        if self.try_write_rest(out, data)? { Ok(()) } else { self.write_malformed(out, data) }
    }

    /// Writes the part of an instruction after the mnemonic, according to the shape of the opcode.
    /// Returns `false` and writes nothing if the instruction has another shape.
    fn try_write_rest(&self, out: &mut dyn Write, data: &InstData) -> Result<bool, fmt::Error> {
        let module = self.module;
        let stores = matches!(data.opcode.shape(), Shape::Store(_));
        match (data.opcode.shape(), data.imm, data.args.as_slice(), data.targets.as_slice()) {
            (Shape::Const, Imm::Bits(bits), [], []) => write_bits(out, module, data.ty, bits)?,
            (
                Shape::Load(_) | Shape::Store(_),
                Imm::Address(memory, offset) | Imm::HostAddress(memory, offset),
                [address, value @ ..],
                [],
            ) if value.len() == usize::from(stores) => {
                self.write_address(out, memory, *address, offset)?;
                self.write_more_values(out, value)?;
            }
            (Shape::MemorySize, Imm::Memory(memory), [], []) => write_memory(out, module, memory)?,
            (Shape::MemoryGrow, Imm::Memory(memory), [pages], []) => {
                write_memory(out, module, memory)?;
                out.write_str(", ")?;
                self.write_value(out, *pages)?;
            }
            (Shape::MemoryFill, Imm::Memory(memory), args, []) => {
                write_memory(out, module, memory)?;
                self.write_more_values(out, args)?;
            }
            (Shape::MemoryCopy, Imm::Memories(to, from), args, []) => {
                write_memory(out, module, to)?;
                write_memory(out, module, from)?;
                self.write_more_values(out, args)?;
            }
            (Shape::MemoryInit, Imm::MemoryData(memory, segment), args, []) => {
                write_memory(out, module, memory)?;
                write!(out, " {}", segment.as_u32())?;
                self.write_more_values(out, args)?;
            }
            (Shape::DataDrop, Imm::Data(segment), [], []) => write!(out, " {}", segment.as_u32())?,
            (
                Shape::TableGet
                | Shape::TableSet
                | Shape::TableSize
                | Shape::TableGrow
                | Shape::TableFill,
                Imm::Table(table),
                args,
                [],
            ) => {
                write_table(out, module, table)?;
                self.write_more_values(out, args)?;
            }
            (Shape::TableCopy, Imm::Tables(to, from), args, []) => {
                write_table(out, module, to)?;
                write_table(out, module, from)?;
                self.write_more_values(out, args)?;
            }
            (Shape::TableInit, Imm::TableElem(table, segment), args, []) => {
                write_table(out, module, table)?;
                write!(out, " {}", segment.as_u32())?;
                self.write_more_values(out, args)?;
            }
            (Shape::ElemDrop, Imm::Elem(segment), [], []) => write!(out, " {}", segment.as_u32())?,
            (Shape::GlobalGet, Imm::Global(global), [], []) => write_global(out, module, global)?,
            (Shape::GlobalSet, Imm::Global(global), [value], []) => {
                write_global(out, module, global)?;
                out.write_str(", ")?;
                self.write_value(out, *value)?;
            }
            (Shape::Call | Shape::CallValue, Imm::Func(func), args, []) => {
                write_func(out, module, func)?;
                self.write_arguments(out, args)?;
            }
            (Shape::CallIndirect, Imm::Indirect(sig, table), [args @ .., index], []) => {
                write_table(out, module, table)?;
                match module.sigs.get(sig) {
                    Some(signature) => write!(out, " {signature} [")?,
                    None => write!(out, " {sig} [")?,
                }
                self.write_value(out, *index)?;
                out.write_char(']')?;
                self.write_arguments(out, args)?;
            }
            (Shape::OsrTest, Imm::Exit(point), [], []) => write!(out, " {}", point.as_u32())?,
            (Shape::OsrExit, Imm::Exit(point), args, []) => {
                write!(out, " {}", point.as_u32())?;
                self.write_arguments(out, args)?;
            }
            (Shape::Assume, Imm::Assumed(bits, reason), [value, kept @ ..], []) => {
                out.write_char(' ')?;
                self.write_value(out, *value)?;
                out.write_char(',')?;
                write_bits(out, module, data.ty, bits)?;
                write!(out, ", {reason}")?;
                self.write_more_values(out, kept)?;
            }
            (Shape::Trap, Imm::Trap(kind), args, []) => self.write_trap(out, kind, args)?,
            (_, Imm::None, args, targets) => {
                return self.try_write_plain(out, data.opcode.shape(), args, targets);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// As [`Self::try_write_rest`], for shapes without an immediate.
    fn try_write_plain(
        &self,
        out: &mut dyn Write,
        shape: Shape,
        args: &[Value],
        targets: &[Target],
    ) -> Result<bool, fmt::Error> {
        match (shape, args, targets) {
            (Shape::Jump, [], [target]) => {
                out.write_char(' ')?;
                self.write_target(out, target)?;
            }
            (Shape::BrIf, [condition], [_, _]) => {
                out.write_char(' ')?;
                self.write_value(out, *condition)?;
                out.write_str(", ")?;
                write_list(out, targets, |out, t| self.write_target(out, t))?;
            }
            (Shape::Switch, [index], [cases @ .., default]) => {
                out.write_char(' ')?;
                self.write_value(out, *index)?;
                out.write_str(", [")?;
                write_list(out, cases, |out, t| self.write_target(out, t))?;
                out.write_str("], default ")?;
                self.write_target(out, default)?;
            }
            (Shape::Jump | Shape::BrIf | Shape::Switch | Shape::OsrExit | Shape::OsrTest, ..)
            | (_, _, [_, ..])
            | (Shape::Trap | Shape::Const | Shape::Assume, ..) => {
                return Ok(false);
            }
            (_, [], []) => {}
            (_, args, []) => {
                out.write_char(' ')?;
                self.write_values(out, args)?;
            }
        }
        Ok(true)
    }

    /// Writes an instruction that does not match the shape of its opcode, for a finding.
    fn write_malformed(&self, out: &mut dyn Write, data: &InstData) -> fmt::Result {
        write!(out, " <malformed> {:?} (", data.imm)?;
        self.write_values(out, &data.args)?;
        out.write_str(") [")?;
        write_list(out, &data.targets, |out, t| self.write_target(out, t))?;
        out.write_char(']')
    }

    fn write_address(
        &self,
        out: &mut dyn Write,
        memory: Memory,
        address: Value,
        offset: u64,
    ) -> fmt::Result {
        write_memory(out, self.module, memory)?;
        out.write_char('[')?;
        self.write_value(out, address)?;
        if offset != 0 {
            write!(out, " + {offset}")?;
        }
        out.write_char(']')
    }

    /// Writes values, each after a comma.
    fn write_more_values(&self, out: &mut dyn Write, values: &[Value]) -> fmt::Result {
        values.iter().try_for_each(|value| {
            out.write_str(", ")?;
            self.write_value(out, *value)
        })
    }

    fn write_trap(&self, out: &mut dyn Write, kind: TrapKind, args: &[Value]) -> fmt::Result {
        write!(out, " {kind}")?;
        self.write_more_values(out, args)
    }

    fn write_arguments(&self, out: &mut dyn Write, args: &[Value]) -> fmt::Result {
        out.write_char('(')?;
        self.write_values(out, args)?;
        out.write_char(')')
    }

    /// Writes `block` or `block(%a)`, without parentheses if there are no arguments.
    fn write_target(&self, out: &mut dyn Write, target: &Target) -> fmt::Result {
        self.write_block(out, target.block)?;
        if target.args.is_empty() { Ok(()) } else { self.write_arguments(out, &target.args) }
    }
}

/// The number in a default name: 12 in `v12`. A name with a leading zero is no default name.
fn default_id(name: &str, prefix: &str) -> Option<usize> {
    let digits = name.strip_prefix(prefix)?;
    let number: u32 = digits.parse().ok()?;
    // `u32::MAX` is the reserved index of `cranelift-entity`.
    (number < u32::MAX && number.to_string() == digits).then_some(number as usize)
}

fn write_list<T>(
    out: &mut dyn Write,
    items: &[T],
    mut write: impl FnMut(&mut dyn Write, &T) -> fmt::Result,
) -> fmt::Result {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.write_str(", ")?;
        }
        write(out, item)?;
    }
    Ok(())
}

/// Writes the result part of a signature: ` -> ...`.
fn write_results(out: &mut dyn Write, signature: &Signature) -> fmt::Result {
    let results =
        Signature { params: Default::default(), results: signature.results.clone() }.to_string();
    out.write_str(
        results.strip_prefix("()").expect("a signature without parameters starts with ()"),
    )
}

fn write_module(out: &mut dyn Write, module: &Module) -> fmt::Result {
    write_declarations(out, module)?;
    write_functions(out, module)?;
    write_segments(out, module)
}

fn write_declarations(out: &mut dyn Write, module: &Module) -> fmt::Result {
    for (id, decl) in &module.memories {
        out.write_str(if decl.import.is_some() { "import memory" } else { "memory" })?;
        write_memory(out, module, id)?;
        write_import_name(out, decl.import.as_ref())?;
        match decl.kind {
            MemoryKind::Linear => write!(out, " {}", decl.min_pages)?,
            MemoryKind::Host => out.write_str(" host")?,
            MemoryKind::HostFrom(first) => write!(out, " host {first} {}", decl.min_pages)?,
        }
        if let Some(max) = decl.max_pages {
            write!(out, " {max}")?;
        }
        out.write_char('\n')?;
    }
    for (id, decl) in &module.tables {
        out.write_str(if decl.import.is_some() { "import table" } else { "table" })?;
        write_table(out, module, id)?;
        write_import_name(out, decl.import.as_ref())?;
        write!(out, " {}", decl.size)?;
        if let Some(max) = decl.max_size {
            write!(out, " {max}")?;
        }
        if decl.ty != Type::FuncRef {
            write!(out, " : {}", decl.ty)?;
        }
        if decl.fixed {
            out.write_str(" fixed")?;
        }
        out.write_char('\n')?;
    }
    for (id, decl) in &module.globals {
        out.write_str(if decl.import.is_some() { "import global" } else { "global" })?;
        write_global(out, module, id)?;
        write_import_name(out, decl.import.as_ref())?;
        write!(out, ": {}{}", if decl.mutable { "mut " } else { "" }, decl.ty)?;
        if decl.import.is_none() {
            out.write_str(" =")?;
            write_init(out, module, decl.ty, &decl.init)?;
        }
        out.write_char('\n')?;
    }
    for export in &module.exports {
        out.write_str("export ")?;
        write_text(out, &export.name)?;
        match export.item {
            External::Func(func) => write_func(out, module, func)?,
            External::Global(global) => {
                out.write_str(" global")?;
                write_global(out, module, global)?;
            }
            External::Memory(memory) => {
                out.write_str(" memory")?;
                write_memory(out, module, memory)?;
            }
            External::Table(table) => {
                out.write_str(" table")?;
                write_table(out, module, table)?;
            }
        }
        out.write_char('\n')?;
    }
    if let Some(start) = module.start {
        out.write_str("start")?;
        write_func(out, module, start)?;
        out.write_char('\n')?;
    }
    Ok(())
}

/// Writes ` "module" "field"` if there is an import name.
fn write_import_name(out: &mut dyn Write, import: Option<&ImportName>) -> fmt::Result {
    let Some(import) = import else { return Ok(()) };
    out.write_char(' ')?;
    write_text(out, &import.module)?;
    out.write_char(' ')?;
    write_text(out, &import.field)
}

/// Writes ` effect(pure)`, or nothing.
fn write_effect(out: &mut dyn Write, effect: DeclaredEffect) -> fmt::Result {
    match effect {
        DeclaredEffect::Any => Ok(()),
        effect => write!(out, " effect({effect})"),
    }
}

/// Writes all functions in the order of their ids, so that parsing assigns the same ids.
fn write_functions(out: &mut dyn Write, module: &Module) -> fmt::Result {
    for (func, decl) in module.funcs.iter() {
        if decl.import.is_some() || module.awaits_body(func) {
            out.write_str(if decl.import.is_some() { "import func" } else { "later func" })?;
            write_func(out, module, func)?;
            write_import_name(out, decl.import.as_ref())?;
            match module.sigs.get(decl.sig) {
                Some(signature) => write!(out, " {signature}")?,
                None => write!(out, " {}", decl.sig)?,
            }
            write_effect(out, decl.effect)?;
            out.write_char('\n')?;
        } else if let Some(body) = module.body(func) {
            FunctionText::new(module, body).write_function(out, decl.effect)?;
        } else {
            out.write_str("; func")?;
            write_func(out, module, func)?;
            out.write_str(" has no body\n")?;
        }
    }
    Ok(())
}

fn write_segments(out: &mut dyn Write, module: &Module) -> fmt::Result {
    for segment in &module.elements {
        out.write_str("elem")?;
        if let Some((table, place)) = &segment.active {
            write_table(out, module, *table)?;
            write_place(out, module, place)?;
        }
        if segment.ty != Type::FuncRef {
            write!(out, " : {}", segment.ty)?;
        }
        write_entries(out, module, segment)?;
        out.write_char('\n')?;
    }
    for segment in &module.data {
        out.write_str("data")?;
        if let Some((memory, place)) = &segment.active {
            write_memory(out, module, *memory)?;
            write_place(out, module, place)?;
        }
        out.write_char(' ')?;
        write_bytes(out, &segment.bytes)?;
        out.write_char('\n')?;
    }
    Ok(())
}

/// The longest prefix of a text with at most this many bytes, cut between characters.
fn cut(text: &str, limit: usize) -> &str {
    match text.len() <= limit {
        true => text,
        false => &text[..text.floor_char_boundary(limit)],
    }
}

/// A string that stops growing at a limit and returns an error instead.
struct Limited {
    text: String,
    limit: usize,
}

impl Write for Limited {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        if self.text.len() + s.len() <= self.limit {
            self.text.push_str(s);
            return Ok(());
        }
        self.text.push_str(cut(s, self.limit - self.text.len()));
        Err(fmt::Error)
    }
}
