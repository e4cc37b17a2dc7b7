//! Arguments that cross in the stack: more of them than the C convention has registers.

use super::addresses::untraced;
use super::direct::named;
use super::sessions::{Nobody, compiled};
use super::support::{invoke, module};
use osier::interp::Outcome;
use osier::ir::{DeclaredEffect, Memory, Module};
use osier::jit::{BoundFunctions, Config, DirectFunction, DirectMemory, VersionSpec, Vm};
use std::sync::Arc;

/// A number in whose decimal digits each argument has its place.
fn digits(args: [i64; 6]) -> i64 {
    args.iter().fold(0, |sum, arg| 10 * sum + arg)
}

/// A program with functions of six arguments: sums of integers of both widths, of floats of both
/// widths, and calls of imports.
fn text() -> String {
    let params = "%a: i32, %b: i64, %c: i32, %d: i64, %e: i32, %f: i64";
    let mut text = format!(
        "import func @words \"env\" \"words\" (i64, i64, i64, i64, i64, i64) -> i64\n\
         import func @poke \"env\" \"poke\" (i32, i64, i32, i64, i32, i64) -> i64\n\
         memory @mem 1\n\
         func @integers({params}) -> i64 {{\nentry:\n  %ten = const.i64 10\n  %s0 = sextend.i64 %a\n"
    );
    let mut wide = |k: usize, name: char, narrow: bool| {
        let term = if narrow { format!("%w{k}") } else { format!("%{name}") };
        if narrow {
            text += &format!("  %w{k} = sextend.i64 %{name}\n");
        }
        let before = k - 1;
        text += &format!("  %m{k} = mul.i64 %s{before}, %ten\n  %s{k} = add.i64 %m{k}, {term}\n");
    };
    for (k, name) in "abcdef".chars().enumerate().skip(1) {
        wide(k, name, k % 2 == 0);
    }
    text += "  return %s5\n}\n";
    text += "func @floats(%a: f64, %b: f32, %c: f64, %d: f32, %e: f64, %f: f32) -> f64 {\nentry:\n  \
             %ten = const.f64 10.0\n  %wb = fpromote.f64 %b\n  %wd = fpromote.f64 %d\n  \
             %wf = fpromote.f64 %f\n";
    let mut before = "%a".to_owned();
    for (k, term) in ["%wb", "%c", "%wd", "%e", "%wf"].iter().enumerate() {
        text += &format!("  %m{k} = fmul.f64 {before}, %ten\n  %s{k} = fadd.f64 %m{k}, {term}\n");
        before = format!("%s{k}");
    }
    text += "  return %s4\n}\n";
    text += "func @passes(%a: i64, %b: i64, %c: i64, %d: i64, %e: i64, %f: i64) -> i64 {\nentry:\n  \
             %r = call @words(%a, %b, %c, %d, %e, %f)\n  return %r\n}\n";
    text + &format!(
        "func @pokes({params}) -> i64 {{\nentry:\n  %r = call @poke(%a, %b, %c, %d, %e, %f)\n  \
         return %r\n}}\n"
    )
}

#[test]
fn typed_entries_pass_six_arguments() {
    let mut vm = compiled(Config::default(), &text());
    let module = Arc::clone(vm.module());
    let integers = vm
        .entry::<(i32, u64, i32, u64, i32, u64), i64>(named(&module, "integers"))
        .expect("the signature fits");
    let floats = vm
        .entry::<(f64, f32, f64, f32, f64, f32), f64>(named(&module, "floats"))
        .expect("the signature fits");
    vm.session(&mut Nobody, |session| {
        let wide = u64::MAX - 3;
        for [a, c, e] in [[-1, -2, -3], [i32::MIN, 7, i32::MIN], [i32::MAX, -1, -5]] {
            let args = [a.into(), 2, c.into(), -4, e.into(), 6];
            assert_eq!(session.call(&integers, (a, 2, c, wide, e, 6)), Ok(digits(args)));
        }
        let sum = session.call(&floats, (-1.0, 2.0, 3.5, -4.25, 5.0, -6.0));
        assert_eq!(sum, Ok(-100_000.0 + 20_000.0 + 3500.0 - 425.0 + 50.0 - 6.0));
    })
    .expect("the session ends");
}

extern "C" fn words(scale: &i64, a: i64, b: i64, c: i64, d: i64, e: i64, f: i64) -> i64 {
    scale * digits([a, b, c, d, e, f])
}

/// Writes its last argument at its first one.
extern "C" fn poke(
    (): &(),
    mut memory: DirectMemory<'_>,
    a: i32,
    b: i64,
    c: i32,
    d: i64,
    e: i32,
    f: i64,
) -> i64 {
    memory.bytes_mut()[a as usize..][..8].copy_from_slice(&f.to_le_bytes());
    digits([a.into(), b, c.into(), d, e.into(), f])
}

/// Installs a version of each caller, with these functions at their addresses.
fn install(vm: &mut Vm, module: &Module, bound: &BoundFunctions) {
    for name in ["passes", "pokes"] {
        let func = named(module, name);
        let body = module.body(func).expect("it has a body");
        let spec = VersionSpec::default().calling(bound);
        let version = vm.engine().version(vm.module(), func, body, spec).expect("compiled");
        vm.install(&version, Vec::new()).expect("it fits");
    }
}

#[test]
fn bound_functions_take_six_arguments() {
    type Words = extern "C" fn(&i64, i64, i64, i64, i64, i64, i64) -> i64;
    type Poke = extern "C" fn(&(), DirectMemory<'_>, i32, i64, i32, i64, i32, i64) -> i64;
    for at_addresses in [false, true] {
        let module = module(&text());
        let mut vm = untraced(&module);
        let function = DirectFunction::new(Arc::new(3), words as Words, DeclaredEffect::Any);
        vm.bind(named(&module, "words"), &function).expect("it fits");
        let function = DirectFunction::with_memory(Arc::new(()), poke as Poke, DeclaredEffect::Any);
        vm.bind(named(&module, "poke"), &function).expect("it fits");
        let bound = if at_addresses { vm.bound() } else { BoundFunctions::default() };
        install(&mut vm, &module, &bound);

        let mut returned = |name: &str, args: [i64; 6]| {
            let outcome = invoke(&mut vm, named(&module, name), &args.map(i64::cast_unsigned));
            let Ok(Outcome::Returned(words)) = outcome else { panic!("{outcome:?}") };
            words[0].cast_signed()
        };
        let args = [-1, 2, -3, 4, -5, 1 << 40];
        assert_eq!(returned("passes", args), 3 * digits(args), "{at_addresses}");
        // Words of type i32 have zero upper bits.
        let narrow = |arg: i32| i64::from(arg.cast_unsigned());
        let poked = returned("pokes", [64, -2, narrow(-3), 1 << 40, narrow(-5), -6]);
        assert_eq!(poked, digits([64, -2, -3, 1 << 40, -5, -6]), "{at_addresses}");
        let memory = vm.machine().memories().bytes(Memory::from_u32(0));
        assert_eq!(memory[64..72], (-6_i64).to_le_bytes());
    }
}
