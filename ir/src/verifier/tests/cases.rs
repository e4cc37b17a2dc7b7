//! The damages, each with the rules that it breaks.

use super::*;
use crate::init::{InitExpr, InitOp};

fn module_cases() -> Vec<Case> {
    let other_sig = |m: &mut Module| m.sig(&Signature::new(&[Type::I64], &[]));
    let far = Func::new(99);
    vec![
        damaged(&[Rule::ModName1], |m| m.globals[Global::new(1)].name = "g".into()),
        damaged(&[Rule::ModName1], |m| m.funcs[Func::new(0)].name = "f".into()),
        damaged(&[Rule::ModName2], |m| f(m).name = "other".into()),
        damaged(&[Rule::ModSig1, Rule::Imm3], |m| m.funcs[Func::new(0)].sig = Sig::new(99)),
        damaged(&[Rule::ModSig2], |m| m.funcs[Func::new(2)].sig = other_sig(m)),
        damaged(&[Rule::ModSig3], |m| {
            m.sigs.push(Signature::new(&[], &[]));
        }),
        damaged(&[Rule::ModBody1], |m| m.undefine(Func::new(2))),
        damaged(&[Rule::ModBody2], |m| {
            m.funcs[Func::new(2)].import =
                Some(ImportName { module: "a".into(), field: "b".into() });
        }),
        damaged(&[Rule::ModBody3], |m| {
            let body = f(m).clone();
            m.define(far, body);
        }),
        damaged(&[Rule::ModEffect1], |m| m.funcs[Func::new(2)].effect = DeclaredEffect::Outside),
        written(&[Rule::ModEffect1], "import func @f \"a\" \"b\" () -> () effect(reads)\n"),
        written(&[Rule::ModEffect1], "import func @f \"a\" \"b\" (ref) -> i32 effect(pure)\n"),
        written(
            &[Rule::Imm9],
            "import func @f \"a\" \"b\" (i32) -> i32 effect(reads)\n\
             func @g(%x: i32) -> i32 {\nentry:\n  %y = call_pure.i32 @f(%x)\n  return %y\n}\n",
        ),
        damaged(&[Rule::ModGlobal1], |m| m.globals[Global::new(0)].init = (1 << 32).into()),
        written(&[Rule::ModInit1], "global @a: i32 = (@b)\nglobal @b: i32 = 1\n"),
        written(&[Rule::ModInit1], "global @a: mut i32 = 1\nglobal @b: i32 = (@a)\n"),
        written(&[Rule::ModInit1], "global @a: i64 = 1\nglobal @b: i32 = (@a)\n"),
        written(&[Rule::ModInit1], "global @a: i32 = 1\nglobal @b: i32 = (@a, add)\n"),
        written(&[Rule::ModInit1], "global @a: i32 = 1\nglobal @b: i32 = (@a, 1)\n"),
        written(&[Rule::ModInit1], "global @a: f32 = 1.5\nglobal @b: f32 = (@a, @a, add)\n"),
        damaged(&[Rule::ModInit1], |m| {
            let wide = InitExpr::Computed([InitOp::Bits(1 << 32)].into());
            m.globals[Global::new(0)].init = wide;
        }),
        written(&[Rule::ModInit1], "global @a: i64 = 1\nmemory @m 1\ndata @m (@a) \"x\"\n"),
        written(&[Rule::ModInit1], "global @a: i64 = 1\ntable @t 1\nelem @t (@a) [null]\n"),
        written(&[Rule::ModInit1], "global @a: i64 = 1\nelem [(@a)]\n"),
        damaged(&[Rule::ModInit1], |m| m.elements[0].from_globals.push((99, Global::new(0)))),
        damaged(&[Rule::ModInit1], |m| {
            let (one, entries) = (Global::new(0), vec![0; 2]);
            let segment = ElementSegment::passive(Type::FuncRef, entries);
            m.globals[one].ty = Type::FuncRef;
            m.globals[one].init = 0.into();
            m.globals[one].mutable = false;
            m.elements.push(ElementSegment { from_globals: vec![(1, one), (0, one)], ..segment });
        }),
        written(
            &[Rule::ModTable3],
            "import global @a \"m\" \"a\": i32\ntable @t 4 fixed\nelem @t (@a) [null]\n",
        ),
        written(
            &[Rule::ModTable3],
            "import global @a \"m\" \"a\": funcref\ntable @t 4 fixed\nelem @t 0 [(@a)]\n",
        ),
        damaged(&[Rule::ModMemory1], |m| m.memories[Memory::new(0)].max_pages = Some(0)),
        damaged(&[Rule::ModMemory1], |m| m.memories[Memory::new(0)].max_pages = Some(65537)),
        damaged(&[Rule::ModTable1], |m| m.tables[Table::new(0)].size = 10_000_001),
        damaged(&[Rule::ModTable1], |m| m.tables[Table::new(0)].max_size = Some(0)),
        damaged(&[Rule::ModTable3], |m| {
            let name = ImportName { module: "a".into(), field: "b".into() };
            m.tables[Table::new(0)].import = Some(name);
            m.tables[Table::new(0)].fixed = true;
        }),
        damaged(&[Rule::ModTable2, Rule::Imm6, Rule::ModElem4], |m| {
            m.tables[Table::new(0)].ty = Type::I64
        }),
        damaged(&[Rule::ModGlobal1], |m| {
            let decl = GlobalDecl {
                name: "r".into(),
                ty: Type::FuncRef,
                mutable: false,
                init: 100.into(),
                import: None,
            };
            m.globals.push(decl);
        }),
        damaged(&[Rule::ModElem4], |m| {
            m.elements.push(ElementSegment::passive(Type::I32, vec![1]));
        }),
        damaged(&[Rule::ModData1], |m| m.data[0].active = Some((Memory::new(9), 0.into()))),
        damaged(&[Rule::ModData2], |m| m.data[0].active = Some((Memory::new(0), 65534.into()))),
        damaged(&[Rule::ModData2], |m| {
            m.data.push(DataSegment::active(Memory::new(0), u64::MAX, vec![1, 2]));
        }),
        damaged(&[Rule::ModElem1], |m| m.elements[0].active = Some((Table::new(9), 0.into()))),
        damaged(&[Rule::ModElem2], |m| m.elements[0].active = Some((Table::new(0), 3.into()))),
        damaged(&[Rule::ModElem3], |m| {
            m.elements.push(ElementSegment::of_funcs(Table::new(0), 0, &[Some(far)]));
        }),
        damaged(&[Rule::ModExport1], |m| m.exports[0].item = External::Func(far)),
        damaged(&[Rule::ModExport2], |m| {
            m.exports.push(Export { name: "f".into(), item: External::Func(Func::new(1)) })
        }),
        damaged(&[Rule::ModExport1], |m| m.exports[0].item = External::Table(Table::new(7))),
        damaged(&[Rule::ModExport1], |m| m.exports[0].item = External::Memory(Memory::new(7))),
        damaged(&[Rule::ModExport1], |m| m.exports[0].item = External::Global(Global::new(7))),
        damaged(&[Rule::ModStart1], |m| m.start = Some(far)),
        damaged(&[Rule::ModStart2], |m| m.start = Some(Func::new(0))),
    ]
}

fn structure_cases() -> Vec<Case> {
    vec![
        broken(
            &[
                Rule::CfgLayout1,
                Rule::CfgList1,
                Rule::CfgTarget1,
                Rule::CfgEdge1,
                Rule::SsaOne2,
                Rule::UseList1,
            ],
            |f| {
                f.layout.remove(block(LEFT));
            },
        ),
        broken(&[Rule::CfgLayout1], |f| f.layout.push(f.blocks().last().expect("some"))),
        broken(&[Rule::CfgLayout1], |f| f.layout.push(block(77))),
        damaged(&[Rule::CfgLayout1], |m| {
            let none = Function::empty("init", Signature::default(), crate::Family::new());
            m.define(Func::new(1), none);
        }),
        broken(&[Rule::CfgList1], |f| f.node_mut(inst(1)).block = block(LEFT)),
        broken(&[Rule::CfgList1], |f| f.node_mut(inst(1)).prev = None.into()),
        broken(&[Rule::CfgList1], |f| f.node_mut(inst(1)).order = 0),
        broken(&[Rule::CfgList1], |f| f.block_mut(block(ENTRY)).last = Some(inst(1))),
        broken(&[Rule::CfgList1, Rule::CfgTerm2], |f| f.node_mut(inst(2)).next = inst(1).into()),
        broken(&[Rule::CfgList1, Rule::CfgTerm2], |f| f.node_mut(inst(2)).next = inst(99).into()),
        broken(&[Rule::CfgList1, Rule::CfgTerm1, Rule::CfgEdge1, Rule::UseList1], |f| {
            f.node_mut(inst(3)).next = None.into();
        }),
        broken(&[Rule::CfgTerm1], |f| f.remove_inst(inst(9))),
        broken(&[Rule::CfgTerm1, Rule::CfgTerm2], |f| f.move_inst(inst(9), inst(1))),
        broken(&[Rule::CfgTarget1, Rule::CfgTarget2], |f| {
            f.inst_mut(inst(9)).targets.push(Target::new(block(50), &[]))
        }),
        changed(&[Rule::CfgTarget2], 4, |i| {
            let target = i.targets[0].clone();
            i.targets.push(target);
        }),
        changed(&[Rule::CfgTarget2], 2, |i| {
            i.targets.pop();
        }),
        changed(&[Rule::CfgArgs1], 4, |i| i.targets[0].args.clear()),
        changed(&[Rule::CfgArgs2], 4, |i| i.targets[0].args[0] = value(1)),
        broken(&[Rule::CfgEdge1], |f| f.block_mut(block(LEFT)).preds = Default::default()),
        broken(&[Rule::CfgEdge1], |f| {
            f.block_mut(block(LEFT)).preds.push(Edge { inst: inst(2), index: 0 })
        }),
        changed(&[Rule::CfgEntry1], 4, |i| {
            i.targets[0] = Target::new(block(ENTRY), &[value(0), value(1)])
        }),
        broken(&[Rule::ModSig2, Rule::CfgEntry2], |f| f.signature.params[1] = Type::F64),
        broken(&[Rule::Name1], |f| {
            f.value_names.insert(value(88), "ghost".into());
        }),
        broken(&[Rule::Name1], |f| {
            f.block_names.insert(block(88), "ghost".into());
        }),
    ]
}

fn value_cases() -> Vec<Case> {
    vec![
        broken(&[Rule::SsaOne1, Rule::SsaOne2], |f| {
            f.value_mut(value(5)).def = ValueDef::Result(inst(0), 0)
        }),
        broken(&[Rule::SsaOne1, Rule::SsaOne2], |f| f.inst_mut(inst(6)).results[0] = value(7)),
        broken(&[Rule::SsaOne2], |f| {
            let data = ValueData {
                ty: Type::I32,
                def: ValueDef::Result(inst(0), 1),
                users: Default::default(),
            };
            f.values.insert(value(60), data);
        }),
        broken(&[Rule::SsaDef1, Rule::UseList1], |f| f.inst_mut(inst(9)).args[0] = value(70)),
        changed(&[Rule::SsaDom1], 9, |i| i.args[0] = value(6)),
        changed(&[Rule::SsaDom1], 1, |i| i.args[0] = value(5)),
        changed(&[Rule::SsaDom1], 2, |i| i.targets[0].args[0] = value(2)),
        broken(&[Rule::SsaDom1], |f| f.move_inst(inst(0), inst(2))),
        broken(&[Rule::UseList1], |f| f.value_mut(value(5)).users = Default::default()),
        broken(&[Rule::UseList1], |f| f.value_mut(value(5)).users.push(inst(9))),
    ]
}

fn inst_cases() -> Vec<Case> {
    vec![
        written(
            &[Rule::TypeControl1],
            "func @f(%a: f32) {\nb:\n  %c = add.f32 %a, %a\n  return\n}",
        ),
        written(&[Rule::TypeControl1], "func @f(%a: i8) {\nb:\n  %c = sext8.i8 %a\n  return\n}"),
        written(&[Rule::TypeOperand1], "func @f(%a: i32) {\nb:\n  %c = add.i32 %a\n  return\n}"),
        written(&[Rule::TypeOperand1], "func @f(%a: i32) {\nb:\n  return %a\n}"),
        written(
            &[Rule::TypeOperand2],
            "func @f(%a: i64) {\nb:\n  %c = add.i32 %a, %a\n  return\n}",
        ),
        written(
            &[Rule::TypeOperand2],
            "func @f(%a: i64) {\nb:\n  %c = sextend.i64 %a\n  return\n}",
        ),
        written(&[Rule::TypeOperand2], "func @f(%a: i32) {\nb:\n  %c = wrap.i32 %a\n  return\n}"),
        written(
            &[Rule::TypeOperand2],
            "func @f(%a: i16) {\nb:\n  %c = float_from_sint.f32 %a\n  return\n}",
        ),
        written(
            &[Rule::TypeOperand2],
            "func @f(%a: i32) {\nb:\n  %c = sint_from_float.i32 %a\n  return\n}",
        ),
        written(
            &[Rule::TypeOperand2],
            "func @f(%a: f64) {\nb:\n  %c = bitcast.i32 %a\n  return\n}",
        ),
        written(
            &[Rule::TypeOperand2],
            "func @f(%a: f64) {\nb:\n  %c = select.f64 %a, %a, %a\n  return\n}",
        ),
        written(
            &[Rule::TypeOperand2],
            "func @f(%a: i64) {\nb:\n  switch %a, [], default b2\nb2:\n  return\n}",
        ),
        written(
            &[Rule::TypeOperand2],
            "func @f(%a: f32) {\nb:\n  br_if %a, b2, b2\nb2:\n  return\n}",
        ),
        written(
            &[Rule::SsaDom1, Rule::TypeOperand2],
            "func @f(%a: i64) {\nb:\n  call @f(%c)\n  %c = const.i32 1\n  return\n}",
        ),
        broken(&[Rule::SsaOne2, Rule::TypeResult1], |f| f.inst_mut(inst(1)).results.clear()),
        broken(&[Rule::TypeOperand2, Rule::TypeResult2], |f| f.value_mut(value(7)).ty = Type::I64),
        changed(&[Rule::Imm1], 0, |i| i.imm = Imm::None),
        changed(&[Rule::Imm1], 1, |i| i.imm = Imm::Bits(1)),
        changed(&[Rule::Imm2], 0, |i| i.imm = Imm::Bits(1 << 32)),
        changed(&[Rule::Imm3], 5, |i| i.imm = Imm::Address(Memory::new(9), 0)),
        changed(&[Rule::Imm3], 3, |i| i.imm = Imm::Func(Func::new(9))),
        changed(&[Rule::Imm3], 6, |i| i.imm = Imm::Indirect(Sig::new(99), Table::new(0))),
        changed(&[Rule::Imm3], 7, |i| i.imm = Imm::Global(Global::new(9))),
        changed(&[Rule::TypeOperand2, Rule::Imm7], 5, |i| {
            i.imm = Imm::HostAddress(Memory::new(0), 0);
        }),
        written(&[Rule::ModHost1], "memory @h host\nexport \"h\" memory @h"),
        written(&[Rule::ModHost2], "memory @h host 65537 1"),
        written(&[Rule::ModHost2], "memory @h host 18446744073709486080 2"),
        written(&[Rule::ModHost2], "memory @g host 131072 1\nmemory @h host 65536 2"),
        written(&[Rule::ModData3], "memory @h host 65536 1\ndata @h 65536 \"a\""),
        written(
            &[Rule::TypeOperand2],
            "memory @h host\nfunc @f(%a: i32) {\nb:\n  %c = load.i32 @h[%a]\n  return\n}",
        ),
        written(
            &[Rule::TypeOperand2],
            "memory @m 1\nfunc @f(%a: i64) {\nb:\n  %c = load.i32 @m[%a]\n  return\n}",
        ),
        written(
            &[Rule::Imm8],
            "memory @h host\nfunc @f() {\nb:\n  %c = memory_size @h\n  return\n}",
        ),
        written(
            &[Rule::Imm8],
            "memory @h host\nfunc @f(%a: i32) {\nb:\n  %c = memory_grow @h, %a\n  return\n}",
        ),
        written(
            &[Rule::Imm8],
            "memory @h host\nfunc @f(%a: i32) {\nb:\n  memory_fill @h, %a, %a, %a\n  return\n}",
        ),
        written(
            &[Rule::Imm8],
            "memory @m 1\nmemory @h host\nfunc @f(%a: i32) {\nb:\n  \
             memory_copy @m @h, %a, %a, %a\n  return\n}",
        ),
        written(
            &[Rule::Imm8],
            "memory @h host\nfunc @f(%a: i32) {\nb:\n  memory_init @h 0, %a, %a, %a\n  \
             return\n}\ndata \"a\"",
        ),
        written(&[Rule::Imm2], "func @f() {\nb:\n  %c = const.externref ref:5\n  return\n}"),
        written(&[Rule::Imm3], "func @f() {\nb:\n  %c = const.funcref ref:5\n  return\n}"),
        written(&[Rule::Imm3], "func @f() {\nb:\n  data_drop 0\n  return\n}"),
        written(&[Rule::Imm3], "func @f() {\nb:\n  elem_drop 3\n  return\n}"),
        written(
            &[Rule::Imm5],
            "table @t 1 : externref\nfunc @f(%i: i32) {\nb:\n  %a = table_get.funcref @t, %i\n  return\n}",
        ),
        written(
            &[Rule::Imm6],
            "table @t 1\ntable @x 1 : externref\nfunc @f(%i: i32) {\nb:\n  table_copy @t @x, %i, %i, %i\n  return\n}",
        ),
        written(
            &[Rule::Imm6],
            "table @x 1 : externref\nelem [@f]\nfunc @f(%i: i32) {\nb:\n  table_init @x 0, %i, %i, %i\n  return\n}",
        ),
        written(
            &[Rule::Imm6],
            "table @x 1 : externref\nfunc @f(%i: i32) {\nb:\n  call_indirect @x () [%i]()\n  return\n}",
        ),
        changed(&[Rule::Imm4, Rule::Imm5], 7, |i| i.imm = Imm::Global(Global::new(0))),
    ]
}

/// Every case.
pub(super) fn all_cases() -> Vec<Case> {
    [module_cases(), structure_cases(), value_cases(), inst_cases()].into_iter().flatten().collect()
}
