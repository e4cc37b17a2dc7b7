//! Random modules, generated from bytes.

use osier_ir::init::{InitExpr, InitOp};
use osier_ir::module::{
    DataSegment, ElementSegment, Export, External, FuncDecl, GlobalDecl, ImportName, MemoryDecl,
    MemoryKind, TableDecl,
};
use osier_ir::{
    Block, Data, DeclaredEffect, Elem, Func, Function, FunctionBuilder, Global, Imm, InstSpec,
    Memory, Module, Opcode, OsrPoint, Shape, Signature, Table, Target, TrapKind, Type, Value,
    reference,
};

/// A source of numbers that reads bytes, and returns zero when they run out. Proptest shrinks the
/// bytes.
struct Draw<'a> {
    bytes: &'a [u8],
}

impl Draw<'_> {
    fn below(&mut self, bound: usize) -> usize {
        let Some((first, rest)) = self.bytes.split_first() else {
            return 0;
        };
        self.bytes = rest;
        *first as usize % bound
    }

    fn of<'t, T>(&mut self, items: &'t [T]) -> &'t T {
        &items[self.below(items.len())]
    }

    fn ty(&mut self) -> Type {
        *self.of(&Type::ALL)
    }

    fn bits(&mut self, ty: Type) -> u64 {
        let whole = (0..8).fold(0, |bits, _| bits << 8 | self.below(256) as u64);
        let special = [
            0,
            1,
            u64::MAX,
            1 << 63,
            1 << 31,
            0x7ff0_0000_0000_0000,
            0x7f80_0000,
            0x7fc0_0000,
            whole,
            whole,
        ];
        self.of(&special) & ty.mask()
    }
}

/// Names that clash, resemble default names or syntax, or cannot be bare.
const NAMES: &[&str] = &[
    "x",
    "x",
    "x.1",
    "v0",
    "v1",
    "v3",
    "v03",
    "v4294967295",
    "block0",
    "block2",
    "",
    " ",
    "a b",
    "jump",
    "inf",
    "-inf",
    "7up",
    "-",
    "a-",
    "a->b",
    "%",
    "\"",
    "\\",
    ";",
    "\n",
    "\u{0}",
    "\u{202e}rtl",
    "é",
    "日本",
    "i32",
    "}",
    "func",
    "default",
    "\u{301}",
];

fn types(draw: &mut Draw<'_>) -> Vec<Type> {
    (0..draw.below(4)).map(|_| draw.ty()).collect()
}

/// A module generated from bytes. Its structure is valid; its types may be wrong.
pub(crate) fn random_module(bytes: &[u8]) -> Module {
    let draw = &mut Draw { bytes };
    let mut module = Module::new();
    let mut names: Vec<&str> = NAMES.to_vec();
    names.dedup();
    for name in names.iter().take(1 + draw.below(6)) {
        let max_pages = if draw.below(2) == 0 { None } else { Some(9) };
        let import = |draw: &mut Draw<'_>| {
            let (module, field) = ((*draw.of(NAMES)).to_owned(), (*draw.of(NAMES)).to_owned());
            (draw.below(3) == 0).then_some(ImportName { module, field })
        };
        let kind = *draw.of(&[MemoryKind::Linear, MemoryKind::Host, MemoryKind::HostFrom(1 << 40)]);
        let is_linear = kind == MemoryKind::Linear;
        let memory = module.memories.push(MemoryDecl {
            name: (*name).into(),
            min_pages: if kind == MemoryKind::Host { 0 } else { 1 },
            max_pages: max_pages.filter(|_| is_linear),
            import: import(draw).filter(|_| is_linear),
            kind,
        });
        let ty = *draw.of(&[Type::FuncRef, Type::ExternRef]);
        let table = TableDecl {
            ty,
            max_size: max_pages,
            import: import(draw),
            ..TableDecl::of_funcs(*name, 100)
        };
        // An imported table cannot be declared fixed.
        let fixed = table.import.is_none() && draw.below(2) == 0;
        let table = TableDecl { fixed, ..table };
        let table = module.tables.push(table);
        let (ty, mutable, import) = (draw.ty(), draw.below(2) == 0, import(draw));
        // The printer omits the initial bits of an imported global.
        let init = if import.is_some() { InitExpr::Bits(0) } else { random_init(draw, ty) };
        let global =
            module.globals.push(GlobalDecl { name: (*name).into(), ty, mutable, init, import });
        for item in [External::Memory(memory), External::Table(table), External::Global(global)] {
            module.exports.push(Export { name: (*name).into(), item });
        }
    }
    let signatures: Vec<Signature> =
        (0..4).map(|_| Signature::new(&types(draw), &types(draw))).collect();
    let offset = draw.below(names.len());
    for index in 0..1 + draw.below(6) {
        let sig = module.sig(draw.of(&signatures));
        let name = names[(offset + index) % names.len()].to_owned();
        let field = (*draw.of(NAMES)).to_owned();
        let import = (draw.below(2) == 0).then(|| ImportName { module: name.clone(), field });
        // The effects that any signature may have.
        let effects = [DeclaredEffect::Any, DeclaredEffect::Outside];
        let effect = if import.is_some() { *draw.of(&effects) } else { DeclaredEffect::Any };
        module.funcs.push(FuncDecl { name, sig, import, effect });
    }
    for func in module.funcs.keys() {
        if module.funcs[func].import.is_none() {
            module.define(func, random_function(&module, func, draw));
        }
        module.exports.push(Export { name: func.to_string(), item: External::Func(func) });
    }
    let bytes = (0..draw.below(20)).map(|_| draw.below(256) as u8).collect();
    module.data.push(DataSegment::active(Memory::from_u32(0), draw.bits(Type::I64), bytes));
    module.data.push(DataSegment { active: None, bytes: vec![7] });
    let funcs = vec![Some(Func::from_u32(0)), None];
    module.elements.push(ElementSegment::of_funcs(Table::from_u32(0), 3, &funcs));
    module.elements.push(ElementSegment { active: None, ..module.elements[0].clone() });
    // The entry of a global has no bits.
    let entries = vec![draw.bits(Type::ExternRef), reference::NULL];
    module.elements.push(ElementSegment {
        from_globals: vec![(1, Global::from_u32(0))],
        ..ElementSegment::passive(Type::ExternRef, entries)
    });
    module.elements[0].active = Some((Table::from_u32(0), random_init(draw, Type::I32)));
    module.start = Some(Func::from_u32(0));
    module
}

/// Bits, or an expression on the first global.
fn random_init(draw: &mut Draw<'_>, ty: Type) -> InitExpr {
    if draw.below(2) == 0 {
        return draw.bits(ty).into();
    }
    let op = *draw.of(&[InitOp::Add, InitOp::Sub, InitOp::Mul]);
    let ops = [InitOp::Global(Global::from_u32(0)), InitOp::Bits(draw.bits(ty)), op];
    // A name in an expression is that of a global.
    let count = if ty.is_ref() { 1 } else { *draw.of(&[1, 3]) };
    InitExpr::Computed(ops[..count].into())
}

fn random_function(module: &Module, func: Func, draw: &mut Draw<'_>) -> Function {
    let signature = module.signature(func).clone();
    let mut builder = FunctionBuilder::new(&module.funcs[func].name, signature.clone());
    let mut values = Vec::new();
    let blocks: Vec<Block> = (0..1 + draw.below(4)).map(|_| builder.create_block()).collect();
    for (index, block) in blocks.iter().enumerate() {
        let params = if index == 0 { signature.params.to_vec() } else { types(draw) };
        values.extend(params.iter().map(|ty| builder.append_param(*block, *ty)));
    }
    for block in &blocks {
        builder.switch_to(*block);
        for _ in 0..draw.below(6) {
            let spec = random_inst(module, &values, draw, |op| !op.is_terminator(), &[]);
            let inst = builder.insert(spec);
            values.extend(builder.function().inst(inst).results.iter().copied());
        }
        let spec = random_inst(module, &values, draw, Opcode::is_terminator, &blocks);
        builder.insert(spec);
    }
    for value in values {
        if draw.below(2) == 0 {
            let name: &&str = draw.of(NAMES);
            builder.name_value(value, name);
        }
    }
    for block in blocks {
        if draw.below(2) == 0 {
            let name: &&str = draw.of(NAMES);
            builder.name_block(block, name);
        }
    }
    builder.finish().expect("every block is terminated").function
}

fn random_inst(
    module: &Module,
    values: &[Value],
    draw: &mut Draw<'_>,
    wanted: impl Fn(Opcode) -> bool,
    blocks: &[Block],
) -> InstSpec {
    let opcodes: Vec<Opcode> = Opcode::ALL.iter().copied().filter(|op| wanted(*op)).collect();
    let mut opcode = *draw.of(&opcodes);
    let mut list = |draw: &mut Draw<'_>, count: usize| -> Vec<Value> {
        if values.is_empty() { Vec::new() } else { (0..count).map(|_| *draw.of(values)).collect() }
    };
    let ty = if opcode.has_type_suffix() { draw.ty() } else { Type::I32 };
    let memory = Memory::from_u32(draw.below(module.memories.len()) as u32);
    let global = Global::from_u32(draw.below(module.globals.len()) as u32);
    let table = Table::from_u32(draw.below(module.tables.len()) as u32);
    let (imm, count) = match opcode.shape() {
        Shape::Const => (Imm::Bits(draw.bits(ty)), 0),
        Shape::Load(_) => (module.memories[memory].kind.address(memory, draw.bits(Type::I64)), 1),
        Shape::Store(_) => (module.memories[memory].kind.address(memory, draw.below(2) as u64), 2),
        Shape::MemorySize => (Imm::Memory(memory), 0),
        Shape::MemoryGrow => (Imm::Memory(memory), 1),
        Shape::MemoryCopy => (Imm::Memories(memory, Memory::from_u32(0)), 3),
        Shape::MemoryFill => (Imm::Memory(memory), 3),
        Shape::MemoryInit => (Imm::MemoryData(memory, Data::from_u32(draw.below(256) as u32)), 3),
        Shape::DataDrop => (Imm::Data(Data::from_u32(1)), 0),
        Shape::TableSize => (Imm::Table(table), 0),
        Shape::TableGet => (Imm::Table(table), 1),
        Shape::TableSet | Shape::TableGrow => (Imm::Table(table), 2),
        Shape::TableFill => (Imm::Table(table), 3),
        Shape::TableCopy => (Imm::Tables(Table::from_u32(0), table), 3),
        Shape::TableInit => (Imm::TableElem(table, Elem::from_u32(draw.below(256) as u32)), 3),
        Shape::ElemDrop => (Imm::Elem(Elem::from_u32(1)), 0),
        Shape::GlobalGet => (Imm::Global(global), 0),
        Shape::GlobalSet => (Imm::Global(global), 1),
        Shape::Trap => {
            let kind = *draw.of(&[TrapKind::Unreachable, TrapKind::User(u32::MAX)]);
            (Imm::Trap(kind), draw.below(2))
        }
        Shape::OsrTest => (Imm::Exit(OsrPoint::from_u32(draw.below(256) as u32)), 0),
        Shape::OsrExit => (Imm::Exit(OsrPoint::from_u32(u32::MAX - 1)), draw.below(4)),
        Shape::Assume => (Imm::Assumed(draw.bits(ty), draw.below(256) as u32), 1 + draw.below(3)),
        Shape::BrIf | Shape::Switch => (Imm::None, 1),
        Shape::Jump => (Imm::None, 0),
        Shape::Call | Shape::CallIndirect | Shape::CallValue => {
            return random_call(module, opcode, table, &mut list, draw);
        }
        _ => (Imm::None, draw.below(4)),
    };
    let args = list(draw, count);
    let fixed =
        !matches!(opcode.shape(), Shape::Return) && (imm != Imm::None || opcode.is_terminator());
    if fixed && args.len() != count {
        // No value is available as an operand yet.
        opcode = if opcode.is_terminator() { Opcode::Return } else { Opcode::Add };
        return InstSpec::new(opcode, Type::I32, Imm::None, &[]);
    }
    let target_count = match opcode.shape() {
        Shape::Jump => 1,
        Shape::BrIf => 2,
        Shape::Switch => 1 + draw.below(4),
        _ => 0,
    };
    let mut spec = InstSpec::new(opcode, ty, imm, &args);
    for _ in 0..target_count {
        let count = draw.below(3);
        spec.targets.push(Target::new(*draw.of(blocks), &list(draw, count)));
    }
    spec
}

fn random_call(
    module: &Module,
    opcode: Opcode,
    table: Table,
    list: &mut impl FnMut(&mut Draw<'_>, usize) -> Vec<Value>,
    draw: &mut Draw<'_>,
) -> InstSpec {
    let func = Func::from_u32(draw.below(module.funcs.len()) as u32);
    let results = &module.signature(func).results;
    let args = list(draw, 2);
    match (opcode, args.is_empty()) {
        (Opcode::CallIndirect, true) => InstSpec::call(func, &args, results),
        (Opcode::CallIndirect, false) => {
            InstSpec::call_indirect(module.funcs[func].sig, table, &args, results)
        }
        // A text gives the result of such a call the type in the signature.
        (Opcode::CallPure | Opcode::CallReads, _) => match results[..] {
            [ty] if ty.is_number() => InstSpec::call_value(opcode, func, &args, ty),
            _ => InstSpec::call(func, &args, results),
        },
        _ => InstSpec { opcode, ..InstSpec::call(func, &args, results) },
    }
}
