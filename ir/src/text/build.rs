//! Construction of a module from items: resolves names and builds function bodies.

use super::error::{Faults, SourceText, TextFault};
use super::items::{
    BitsItem, BlockItem, ExternalKind, File, FuncItem, ImmItem, InstItem, Item, SourceName,
    TargetItem,
};
use crate::builder::{BuildError, FunctionBuilder};
use crate::effect::DeclaredEffect;
use crate::entity::{Block, Data, Elem, Func, Global, Inst, Memory, OsrPoint, Sig, Table, Value};
use crate::inst::{Imm, InstSpec, Target};
use crate::module::{
    DataSegment, ElementSegment, Export, External, FuncDecl, GlobalDecl, ImportName, MemoryDecl,
    Module, TableDecl,
};
use crate::reference;
use crate::types::{Signature, Type};
use cranelift_entity::EntityRef;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::HashMap;

/// The lines of the instructions of a parsed module in its text.
#[derive(Clone, Debug, Default)]
pub struct SourceLines {
    /// The lines, by function and then by instruction.
    lines: Vec<Vec<u32>>,
}

impl SourceLines {
    /// The 1-based line of an instruction of the parsed module; `None` for any other instruction.
    pub fn line(&self, func: Func, inst: Inst) -> Option<u32> {
        self.lines.get(func.index())?.get(inst.index()).copied()
    }
}

/// Builds the module that the items describe. It omits items that refer to an unreadable line,
/// without a further error. The result is usable only if there was no error.
pub(super) fn build_module<'a>(
    file: File<'a>,
    source: &SourceText<'a>,
    faults: &mut Faults,
) -> (Module, SourceLines) {
    let mut scope = ModuleScope::new(file.lost_items, source, faults);
    let mut functions = Vec::new();
    let mut uses = Vec::new();
    // The initial contents of a global may refer to functions defined below it, so they are
    // resolved later.
    let mut inits = Vec::new();
    for item in file.items {
        match item {
            Item::Global { name, mutable, ty, init, import } => {
                let global = scope.declare_global(&name, mutable, ty, import);
                inits.extend(global.map(|global| (global, init)));
            }
            Item::Memory { .. } | Item::Table { .. } | Item::Bodiless { .. } => scope.declare(item),
            Item::Func(item) => {
                let signature = Signature {
                    params: item.params.iter().map(|p| p.ty).collect(),
                    results: item.results.clone(),
                };
                if let Some(func) = scope.declare_func(&item.name, &signature, None) {
                    scope.module.funcs[func].effect = item.effect;
                    functions.push((func, signature, item));
                }
            }
            Item::Data { .. } | Item::Elem { .. } | Item::Export { .. } | Item::Start { .. } => {
                uses.push(item)
            }
        }
    }
    for (global, init) in inits {
        match scope.init(init) {
            Ok(init) => scope.module.globals[global].init = init,
            Err(fault) => scope.undefined(fault),
        }
    }
    for item in uses {
        scope.declare_use(item);
    }
    let mut lines = SourceLines { lines: vec![Vec::new(); scope.module.funcs.len()] };
    for (func, signature, item) in functions {
        if scope.faults.is_full() {
            break;
        }
        if !item.lost_lines {
            lines.lines[func.index()] = build_function(&mut scope, func, signature, item);
        }
    }
    (scope.module, lines)
}

/// The names of one kind of entity. The map is only looked up and never iterated, so its hash order
/// cannot reach a result.
pub(super) struct EntityNames<'a, K> {
    what: &'static str,
    sigil: &'static str,
    ids: HashMap<Cow<'a, str>, (K, usize)>,
}

impl<'a, K: Copy> EntityNames<'a, K> {
    fn new(what: &'static str, sigil: &'static str) -> EntityNames<'a, K> {
        EntityNames { what, sigil, ids: HashMap::new() }
    }

    /// Whether the name is new. Otherwise adds an error that gives the line of the first
    /// definition.
    fn check_new(
        &self,
        name: &SourceName<'a>,
        source: &SourceText<'_>,
        faults: &mut Faults,
    ) -> bool {
        let Some((_, first)) = self.ids.get(&name.text) else {
            return true;
        };
        let (what, sigil, text) = (self.what, self.sigil, short(&name.text));
        let line = source.line_of(*first);
        faults.push(TextFault::new(
            name.at,
            format!("{what} `{sigil}{text}` is already defined on line {line}"),
        ));
        false
    }

    fn insert(&mut self, name: &SourceName<'a>, id: K) {
        self.ids.insert(name.text.clone(), (id, name.at));
    }

    pub(super) fn find(&self, name: &SourceName<'a>) -> Result<K, TextFault> {
        let (what, sigil) = (self.what, self.sigil);
        let undefined = || {
            TextFault::new(name.at, format!("{what} `{sigil}{}` is not defined", short(&name.text)))
        };
        self.ids.get(&name.text).map(|(id, _)| *id).ok_or_else(undefined)
    }
}

/// A name for a message, cut if very long and escaped where not printable.
fn short(name: &str) -> String {
    name.chars().take(80).flat_map(char::escape_debug).collect()
}

pub(super) struct ModuleScope<'a, 'b> {
    module: Module,
    sigs: HashMap<Signature, Sig>,
    funcs: EntityNames<'a, Func>,
    pub(super) globals: EntityNames<'a, Global>,
    memories: EntityNames<'a, Memory>,
    tables: EntityNames<'a, Table>,
    /// Whether some declarations could not be read. An undefined name may then belong to one of
    /// them.
    lost_items: bool,
    source: &'b SourceText<'a>,
    faults: &'b mut Faults,
}

impl<'a, 'b> ModuleScope<'a, 'b> {
    fn new(
        lost_items: bool,
        source: &'b SourceText<'a>,
        faults: &'b mut Faults,
    ) -> ModuleScope<'a, 'b> {
        ModuleScope {
            module: Module::new(),
            sigs: HashMap::new(),
            funcs: EntityNames::new("function", "@"),
            globals: EntityNames::new("global", "@"),
            memories: EntityNames::new("memory", "@"),
            tables: EntityNames::new("table", "@"),
            lost_items,
            source,
            faults,
        }
    }

    /// The id of a signature. `Module::sig` searches linearly; this function uses a map.
    fn sig(&mut self, signature: &Signature) -> Sig {
        match self.sigs.get(signature) {
            Some(sig) => *sig,
            None => {
                let sig = self.module.sigs.push(signature.clone());
                self.sigs.insert(signature.clone(), sig);
                sig
            }
        }
    }

    fn declare_func(
        &mut self,
        name: &SourceName<'a>,
        signature: &Signature,
        import: Option<ImportName>,
    ) -> Option<Func> {
        if !self.funcs.check_new(name, self.source, self.faults) {
            return None;
        }
        let sig = self.sig(signature);
        let (name_text, effect) = (name.text.to_string(), DeclaredEffect::Any);
        let func = self.module.funcs.push(FuncDecl { name: name_text, sig, import, effect });
        self.funcs.insert(name, func);
        Some(func)
    }

    /// Declares a global. Its initial bits are set later.
    fn declare_global(
        &mut self,
        name: &SourceName<'a>,
        mutable: bool,
        ty: Type,
        import: Option<ImportName>,
    ) -> Option<Global> {
        if !self.globals.check_new(name, self.source, self.faults) {
            return None;
        }
        let decl = GlobalDecl { name: name.text.to_string(), ty, mutable, init: 0.into(), import };
        let global = self.module.globals.push(decl);
        self.globals.insert(name, global);
        Some(global)
    }

    /// Declares an entity that others refer to by name.
    fn declare(&mut self, item: Item<'a>) {
        match item {
            Item::Memory { name, min, max, import, kind }
                if self.memories.check_new(&name, self.source, self.faults) =>
            {
                let decl = MemoryDecl {
                    name: name.text.to_string(),
                    min_pages: min,
                    max_pages: max,
                    import,
                    kind,
                };
                self.memories.insert(&name, self.module.memories.push(decl));
            }
            Item::Table { name, ty, size, max, import, fixed }
                if self.tables.check_new(&name, self.source, self.faults) =>
            {
                let (name_text, max_size) = (name.text.to_string(), max);
                let decl = TableDecl { name: name_text, ty, size, max_size, import, fixed };
                self.tables.insert(&name, self.module.tables.push(decl));
            }
            Item::Bodiless { name, import, signature, effect } => {
                let is_later = import.is_none();
                if let Some(func) = self.declare_func(&name, &signature, import) {
                    self.module.funcs[func].effect = effect;
                    if is_later {
                        self.module.define_later(func);
                    }
                }
            }
            // A duplicate definition: the guard has already added the error.
            _ => {}
        }
    }

    /// Adds an item that refers to entities by name.
    fn declare_use(&mut self, item: Item<'a>) {
        if let Err(fault) = self.try_declare_use(item) {
            self.undefined(fault);
        }
    }

    /// Adds an error for an undefined name of the module. It adds none if some declaration could
    /// not be read, because that line may define the name.
    fn undefined(&mut self, fault: TextFault) {
        if !self.lost_items {
            self.faults.push(fault);
        }
    }

    fn try_declare_use(&mut self, item: Item<'a>) -> Result<(), TextFault> {
        match item {
            Item::Data { active, bytes } => {
                let place = |(memory, place)| Ok((self.memories.find(&memory)?, self.init(place)?));
                self.module
                    .data
                    .push(DataSegment { active: active.map(place).transpose()?, bytes });
            }
            Item::Elem { ty, active, entries } => {
                let place = |(table, place)| Ok((self.tables.find(&table)?, self.init(place)?));
                let active = active.map(place).transpose()?;
                let mut segment = ElementSegment { active, ..ElementSegment::passive(ty, vec![]) };
                for entry in entries {
                    self.add_entry(&mut segment, entry)?;
                }
                self.module.elements.push(segment);
            }
            Item::Export { name, kind, item } => {
                let item = match kind {
                    ExternalKind::Func => External::Func(self.funcs.find(&item)?),
                    ExternalKind::Global => External::Global(self.globals.find(&item)?),
                    ExternalKind::Memory => External::Memory(self.memories.find(&item)?),
                    ExternalKind::Table => External::Table(self.tables.find(&item)?),
                };
                self.module.exports.push(Export { name, item });
            }
            Item::Start { func } => {
                let id = self.funcs.find(&func)?;
                if self.module.start.is_some() {
                    return Err(TextFault::new(func.at, "the module already has a start function"));
                }
                self.module.start = Some(id);
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn bits(&self, item: BitsItem<'a>) -> Result<u64, TextFault> {
        match item {
            BitsItem::Bits(bits) => Ok(bits),
            BitsItem::Func(name) => Ok(reference::of_func(Some(self.funcs.find(&name)?))),
        }
    }

    /// Resolves the names in an immediate.
    fn imm(&mut self, imm: ImmItem<'a>) -> Result<Imm, TextFault> {
        Ok(match imm {
            ImmItem::None => Imm::None,
            ImmItem::Bits(bits) => Imm::Bits(self.bits(bits)?),
            ImmItem::Address(name, offset) => {
                let memory = self.memories.find(&name)?;
                self.module.memories[memory].kind.address(memory, offset)
            }
            ImmItem::Memory(name) => Imm::Memory(self.memories.find(&name)?),
            ImmItem::Global(name) => Imm::Global(self.globals.find(&name)?),
            ImmItem::Func(name) => Imm::Func(self.funcs.find(&name)?),
            ImmItem::Indirect(signature, name) => {
                Imm::Indirect(self.sig(&signature), self.tables.find(&name)?)
            }
            ImmItem::Trap(kind) => Imm::Trap(kind),
            ImmItem::Memories(to, from) => {
                Imm::Memories(self.memories.find(&to)?, self.memories.find(&from)?)
            }
            ImmItem::MemoryData(name, segment) => {
                Imm::MemoryData(self.memories.find(&name)?, Data::from_u32(segment))
            }
            ImmItem::Data(segment) => Imm::Data(Data::from_u32(segment)),
            ImmItem::Table(name) => Imm::Table(self.tables.find(&name)?),
            ImmItem::Tables(to, from) => {
                Imm::Tables(self.tables.find(&to)?, self.tables.find(&from)?)
            }
            ImmItem::TableElem(name, segment) => {
                Imm::TableElem(self.tables.find(&name)?, Elem::from_u32(segment))
            }
            ImmItem::Elem(segment) => Imm::Elem(Elem::from_u32(segment)),
            ImmItem::Exit(point) => Imm::Exit(OsrPoint::from_u32(point)),
            ImmItem::Assumed(bits, reason) => Imm::Assumed(self.bits(bits)?, reason),
        })
    }

    /// The result types of an instruction.
    fn result_types(&self, inst: &InstItem<'a>, imm: Imm) -> SmallVec<[Type; 1]> {
        match imm {
            Imm::Func(func) => self.module.signature(func).results.iter().copied().collect(),
            Imm::Indirect(sig, _) => self.module.sigs[sig].results.iter().copied().collect(),
            _ => inst.opcode.result_type(inst.ty).into_iter().collect(),
        }
    }
}

/// The operands of an instruction before resolution. They may refer to values defined below it.
struct UnresolvedOperands<'a> {
    inst: Inst,
    args: Vec<SourceName<'a>>,
    targets: Vec<TargetItem<'a>>,
}

struct FunctionScope<'a> {
    builder: FunctionBuilder,
    values: EntityNames<'a, Value>,
    blocks: EntityNames<'a, Block>,
    pending: Vec<UnresolvedOperands<'a>>,
    /// The line of every instruction.
    lines: Vec<u32>,
    /// Whether a value or block is missing because its own definition has an error.
    lost: bool,
}

/// Builds the body of a function. Returns the lines of its instructions.
fn build_function<'a>(
    scope: &mut ModuleScope<'a, '_>,
    func: Func,
    signature: Signature,
    item: FuncItem<'a>,
) -> Vec<u32> {
    let mut function = FunctionScope {
        builder: FunctionBuilder::new(&item.name.text, signature),
        values: EntityNames::new("value", "%"),
        blocks: EntityNames::new("block", ""),
        pending: Vec::new(),
        lines: Vec::new(),
        lost: false,
    };
    let ids = function.declare_blocks(scope, &item);
    let places: Vec<usize> = item.blocks.iter().map(|b| b.name.at).collect();
    for (block, item) in ids.iter().zip(item.blocks) {
        function.builder.switch_to(*block);
        for inst in item.insts {
            function.insert(scope, inst);
        }
    }
    function.resolve_operands(scope.faults);
    let lines = function.lines;
    match function.builder.finish() {
        Ok(finished) => scope.module.define(func, finished.function),
        Err(_) if function.lost => {}
        Err(error) => {
            let (at, message) = match error {
                BuildError::NoBlock => (item.name.at, "the function has no block"),
                BuildError::Unterminated(block) => {
                    let index = ids
                        .iter()
                        .position(|b| *b == block)
                        .expect("the builder knows only these blocks");
                    (places[index], "the block does not end in a terminator")
                }
                BuildError::Unplaced(_) | BuildError::EdgeToEntry | BuildError::TooLarge => {
                    unreachable!("the parser reserves no block and uses no variable: {error}")
                }
            };
            scope.faults.push(TextFault::new(at, message));
        }
    }
    lines
}

impl<'a> FunctionScope<'a> {
    /// Creates all blocks and their parameters first, because instructions anywhere may refer to
    /// them.
    fn declare_blocks(
        &mut self,
        scope: &mut ModuleScope<'a, '_>,
        item: &FuncItem<'a>,
    ) -> Vec<Block> {
        let mut ids = Vec::new();
        for (index, block) in item.blocks.iter().enumerate() {
            let id = self.builder.create_block();
            ids.push(id);
            self.name_block(scope, block, id);
            if block.is_cold {
                self.builder.mark_cold(id);
            }
            let params = if index == 0 { &item.params } else { &block.params };
            for param in params {
                let value = self.builder.append_param(id, param.ty);
                self.name_value(scope, &param.name, value);
            }
        }
        ids
    }

    fn name_block(&mut self, scope: &mut ModuleScope<'a, '_>, item: &BlockItem<'a>, id: Block) {
        if !self.blocks.check_new(&item.name, scope.source, scope.faults) {
            return;
        }
        self.blocks.insert(&item.name, id);
        // A name that equals the default name of the id is not stored: see
        // `default_names_are_not_kept`.
        if item.name.text != id.to_string() {
            self.builder.name_block(id, &item.name.text);
        }
    }

    fn name_value(&mut self, scope: &mut ModuleScope<'a, '_>, name: &SourceName<'a>, value: Value) {
        if !self.values.check_new(name, scope.source, scope.faults) {
            return;
        }
        self.values.insert(name, value);
        if name.text != value.to_string() {
            self.builder.name_value(value, &name.text);
        }
    }

    /// Appends an instruction without operands; they are resolved later.
    fn insert(&mut self, scope: &mut ModuleScope<'a, '_>, mut item: InstItem<'a>) {
        if self.builder.current().is_none() {
            scope.faults.push(TextFault::new(
                item.at,
                "this instruction follows the terminator of its block",
            ));
            self.lost = true;
            return;
        }
        let imm = match scope.imm(std::mem::replace(&mut item.imm, ImmItem::None)) {
            Ok(imm) => imm,
            Err(fault) => {
                scope.undefined(fault);
                self.lost = true;
                return;
            }
        };
        let result_types = scope.result_types(&item, imm);
        if result_types.len() != item.results.len() {
            scope.faults.push(wrong_result_count(&item, result_types.len()));
            self.lost = true;
            return;
        }
        let spec = InstSpec { result_types, ..InstSpec::new(item.opcode, item.ty, imm, &[]) };
        let inst = self.builder.insert(spec);
        self.lines.push(scope.source.line_of(item.at));
        let results = self.builder.function().inst(inst).results.clone();
        for (name, value) in item.results.iter().zip(results) {
            self.name_value(scope, name, value);
        }
        self.pending.push(UnresolvedOperands { inst, args: item.args, targets: item.targets });
    }

    /// Sets the operands of every instruction, after all definitions are known.
    fn resolve_operands(&mut self, faults: &mut Faults) {
        let mut undefined = Vec::new();
        for pending in std::mem::take(&mut self.pending) {
            let mut args = SmallVec::new();
            for name in &pending.args {
                self.values
                    .find(name)
                    .map_or_else(|fault| undefined.push(fault), |value| args.push(value));
            }
            let mut targets = Vec::new();
            for item in &pending.targets {
                match self.blocks.find(&item.block) {
                    Ok(block) => targets.push(Target::new(block, &[])),
                    Err(fault) => {
                        undefined.push(fault);
                        continue;
                    }
                }
                let target = targets.last_mut().expect("a target was just added");
                for name in &item.args {
                    self.values.find(name).map_or_else(
                        |fault| undefined.push(fault),
                        |value| target.args.push(value),
                    );
                }
            }
            self.builder.set_operands(pending.inst, args, targets);
        }
        if !self.lost {
            undefined.into_iter().for_each(|fault| faults.push(fault));
        }
    }
}

fn wrong_result_count(item: &InstItem<'_>, expected: usize) -> TextFault {
    let (name, given) = (item.opcode.name(), item.results.len());
    let plural = if expected == 1 { "" } else { "s" };
    TextFault::new(
        item.at,
        format!("this {name} has {expected} result{plural}, but {given} are named"),
    )
}
