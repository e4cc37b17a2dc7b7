//! Tests of `judges::smith::judge`.

use super::*;

/// The verdict on a call of `f`, with one module for our engines and another for wasmi.
fn verdict(ours: &str, theirs: &str) -> Result<CallEnd, String> {
    let sample = |text| Sample::of(wat::parse_str(text).expect("valid text")).expect("a module");
    let (ours, theirs) = (sample(ours), sample(theirs));
    let module = load(Format::Wasm, &ours.bytes).expect("it is supported");
    let programs = JudgedPrograms::new(module.clone(), module);
    let theirs = translate(&theirs)?;
    let engine = ours::engine().expect("native code is supported where it is tested");
    let mut instances =
        fresh(&ours, &programs, &theirs, Some(&engine))?.expect("it is instantiated");
    call(&mut instances, &ours, Func::from_u32(0), "f", &[])
}

fn module(body: &str) -> String {
    format!(
        r#"(module (memory (export "m") 1) (global (export "g") (mut i32) (i32.const 1)) (table (export "t") 2 funcref)
               (func (export "f") (result i32) {body}))"#
    )
}

#[test]
fn equal_modules_agree() {
    let text = module(
        "(i32.store (i32.const 9) (i32.const 7)) (global.set 0 (i32.const 3)) (i32.const 5)",
    );
    assert_eq!(verdict(&text, &text), Ok(CallEnd::Returned(vec![5])));
    let text = module("(i32.div_u (i32.const 1) (i32.const 0))");
    assert_eq!(verdict(&text, &text), Ok(CallEnd::Trapped(TrapKind::DivisionByZero)));
    for trap in [
        "(table.copy (i32.const 1) (i32.const 0) (i32.const 2))",
        "(table.set (i32.const 2) (ref.null func))",
    ] {
        let text = module(&format!("{trap} (i32.const 5)"));
        assert_eq!(
            verdict(&text, &text),
            Ok(CallEnd::Trapped(TrapKind::TableOutOfBounds)),
            "{trap}"
        );
    }
}

#[test]
fn differences_are_reported() {
    let five = module("(i32.const 5)");
    for (other, message) in [
        ("(i32.const 6)", "base: returned 0x5; wasmi: returned 0x6"),
        ("unreachable", "base: returned 0x5; wasmi: trap unreachable"),
        ("(global.set 0 (i32.const 3)) (i32.const 5)", "base and wasmi: global 0: 0x1 and Some(3)"),
        (
            "(i32.store8 (i32.const 9) (i32.const 7)) (i32.const 5)",
            "base and wasmi: memory 0 at 9: 0x0 and 0x7",
        ),
        (
            "(drop (memory.grow (i32.const 1))) (i32.const 5)",
            "base and wasmi: memory 0: 65536 and 131072 bytes",
        ),
        (
            "(table.set (i32.const 1) (ref.func 0)) (i32.const 5)",
            "base and wasmi: table 0 at 1: one of the references is null",
        ),
        (
            "(drop (table.grow (ref.null func) (i32.const 1))) (i32.const 5)",
            "base and wasmi: table 0: 2 and 3 entries",
        ),
    ] {
        assert_eq!(verdict(&five, &module(other)), Err(message.to_owned()));
    }
}
