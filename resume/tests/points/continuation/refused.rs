//! Entries for which there is no continuation.

use super::{NESTED, block, claimed, continuation, identity, of_values, refused};
use crate::common::{function, inst, value};
use ir::{Func, Imm, Inst, Opcode, Point, Type, Value};
use osier_resume::ContinuationError;
use smallvec::{SmallVec, smallvec};
use transition::mapping::{Assign, Entry, Operand, Replay, Step};

/// The entry must provide a value that some path reads before it reaches the definition in the
/// loop.
#[test]
fn a_value_defined_on_some_paths_only_is_refused() {
    let f = function(NESTED);
    let at = inst(&f, "j");
    for name in ["square", "t", "k"] {
        let missing = value(&f, name);
        let mut entry = identity(&f, at);
        entry.assigns.retain(|a| a.value != missing);
        let provided = identity(&f, at).provides_value(missing);
        match provided {
            true => {
                assert_eq!(refused(&f, &entry), ContinuationError::NotProvided(missing), "{name}")
            }
            false => assert!(continuation("rest", &f, &f, &entry).is_ok(), "{name}"),
        }
    }
    let square = value(&f, "square");
    assert!(
        identity(&f, at).provides_value(square)
            && refused(&f, &of_values(at, &[])).to_string().contains("read")
    );
}

#[test]
fn entries_that_do_not_fit_are_refused() {
    let f = function(NESTED);
    // Each change breaks one thing of an entry that is right otherwise.
    let (at, stray) = (inst(&f, "j"), Value::from_u32(999));
    let good = identity(&f, at);
    let changed = |change: &dyn Fn(&mut Entry)| {
        let mut entry = good.clone();
        change(&mut entry);
        refused(&f, &entry)
    };
    let nowhere = Point::before(Inst::from_u32(999));
    assert_eq!(changed(&|e| e.target = nowhere), ContinuationError::NoSuchPoint(nowhere));
    assert_eq!(changed(&|e| e.requires.push(stray)), ContinuationError::NotInSource(stray));
    let from = Operand::Source(good.requires[0]);
    assert_eq!(
        changed(&|e| e.assigns.push(Assign { value: stray, from })),
        ContinuationError::NotInTarget(stray)
    );
    let first = good.requires[0];
    assert_eq!(
        changed(&|e| e.requires.retain(|v| *v != first)),
        ContinuationError::NotRequired(first)
    );
    assert_eq!(
        changed(&|e| e.assigns[0].from = Operand::Step(0)),
        ContinuationError::NoSuchStep { index: 0 }
    );
    let step = |opcode, ty, args| Step { opcode, ty, operand_ty: Type::I32, bits: 0, args };
    let itself = step(Opcode::Eqz, Type::I32, smallvec![Operand::Step(0)]);
    assert_eq!(
        changed(&|e| e.steps.push(itself.clone())),
        ContinuationError::NoSuchStep { index: 0 }
    );
    for (opcode, ty) in [
        (Opcode::Load, Type::I32),
        (Opcode::Return, Type::I32),
        (Opcode::OsrTest, Type::I32),
        (Opcode::Add, Type::I32),
        (Opcode::Sext32, Type::I32),
        (Opcode::Eqz, Type::F64),
    ] {
        let malformed = step(opcode, ty, smallvec![from]);
        let error = changed(&|e| e.steps.push(malformed.clone()));
        assert_eq!(error, ContinuationError::MalformedStep { index: 0 }, "{}", opcode.name());
    }
    for (opcode, imm) in
        [(Opcode::Call, Imm::Func(Func::from_u32(0))), (Opcode::GlobalSet, Imm::None)]
    {
        let replay = Replay { inst: at, opcode, ty: Type::I32, imm, args: smallvec![from] };
        assert_eq!(
            changed(&|e| e.replays.push(replay.clone())),
            ContinuationError::MalformedReplay { inst: at }
        );
    }
    let wide = Step {
        opcode: Opcode::Const,
        ty: Type::I64,
        operand_ty: Type::I64,
        bits: 7,
        args: SmallVec::new(),
    };
    let error = changed(&|e| {
        e.steps.push(wide.clone());
        e.assigns[0].from = Operand::Step(0);
    });
    let (value, ty) = (good.assigns[0].value, Type::I32);
    assert_eq!(error, ContinuationError::WrongType { value, ty, given: Type::I64 });
    assert_eq!(error.to_string(), format!("{value} is i32 and provided as i64"));
}

/// In unreachable code, definitions need not dominate uses. An entry that lands there is refused if
/// they do not.
#[test]
fn entries_into_unreachable_code_may_be_refused() {
    let text = "\
func @f(%n: i32) -> i32 {
entry:
  return %n
dead:
  br_if %n, one, two
one:
  %a = add.i32 %n, %n
  jump join
two:
  jump join
join:
  return %a
}
";
    let f = function(text);
    let entry = of_values(f.terminator(block(&f, "dead")), f.arguments());
    assert_eq!(refused(&f, &entry), ContinuationError::NotProvided(value(&f, "a")));
}

/// A continuation is made of an entry between the two versions given, and of no other.
#[test]
fn entries_of_other_versions_are_refused() {
    let f = function(NESTED);
    let other = function(&NESTED.replace("@f(", "@g("));
    let entry = identity(&f, inst(&f, "j"));
    for (source, target) in [(&other, &f), (&f, &other)] {
        let refused =
            osier_resume::continuation("rest", &f, &[&f], claimed(source, target, &entry));
        assert_eq!(
            refused.err(),
            Some(ContinuationError::OtherVersions),
            "equal text, other names"
        );
    }
}
