//! Places of loads out of bounds, where the code generator makes a load and its user one
//! instruction of the processor.

use interp::{Limits, Machine, NoHost, NoObserver, Options, Outcome};
use ir::Module;
use ir::text::parse_module;
use jit::{Bounds, Config, Engine, Vm};
use std::sync::Arc;

/// Each function loads from its argument, and the single user of the load can contain it. `@kept`
/// and `@first` store to the place that they load from, and `@wider` stores more bytes there.
fn text(loads: usize) -> String {
    let mut many = String::new();
    let mut sum = "%p".to_owned();
    for i in 0..loads {
        many.push_str(&format!(
            "  %a{i} = load.i32 @mem[%p+{}]\n  %s{i} = add.i32 {sum}, %a{i}\n",
            16 * i
        ));
        sum = format!("%s{i}");
    }
    format!(
        "memory @mem 1
func @sum(%p: i32, %x: i32) -> i32 {{
entry:
  %a = load.i32 @mem[%p]
  %r = add.i32 %x, %a
  return %r
}}
func @bits(%p: i32, %x: i32) -> i32 {{
entry:
  %a = load.i32 @mem[%p+4]
  %y = mul.i32 %x, %x
  %r = xor.i32 %a, %y
  return %r
}}
func @float(%p: i32, %x: f64) -> f64 {{
entry:
  %a = load.f64 @mem[%p]
  %r = fmul.f64 %x, %a
  return %r
}}
func @wider(%p: i32, %x: i32) {{
entry:
  %a = load.i32 @mem[%p]
  %w = uextend.i64 %a
  store.i64 @mem[%p], %w
  return
}}
func @tested(%p: i32, %x: i32) -> i32 {{
entry:
  %a = load.i32 @mem[%p]
  %less = ult.i32 %a, %x
  br_if %less, one, two
one:
  return %x
two:
  return %p
}}
func @turned(%p: i32, %x: i32) -> i32 {{
entry:
  %a = load.i32 @mem[%p]
  %less = ult.i32 %x, %a
  return %less
}}
func @counted(%p: i32, %x: i32) -> i32 {{
entry:
  %a = load.i32 @mem[%p]
  %y = add.i32 %x, %x
  %z = mul.i32 %y, %x
  %r = add.i32 %z, %a
  %s = or.i32 %r, %x
  return %s
}}
func @zero(%p: i32, %x: i32) -> i32 {{
entry:
  %a = load.i32 @mem[%p]
  %zero = const.i32 0
  %is = eq.i32 %a, %zero
  br_if %is, one, two
one:
  return %x
two:
  return %p
}}
func @root(%p: i32, %x: f64) -> f64 {{
entry:
  %a = load.f64 @mem[%p]
  %r = fsqrt.f64 %a
  %s = fadd.f64 %r, %x
  return %s
}}
func @kept(%p: i32, %x: i32) {{
entry:
  %a = load.i32 @mem[%p]
  %r = add.i32 %a, %x
  store.i32 @mem[%p], %r
  return
}}
func @first(%p: i32, %x: i32) {{
entry:
  store.i32 @mem[%p], %x
  %a = load.i32 @mem[%p+8]
  %r = sub.i32 %a, %x
  store.i32 @mem[%p+8], %r
  return
}}
func @many(%p: i32, %x: i32) -> i32 {{
entry:
{many}  return {sum}
}}
"
    )
}

fn module() -> Arc<Module> {
    Arc::new(parse_module(&text(600)).unwrap_or_else(|errors| panic!("{}", errors[0])))
}

/// Runs every function at addresses around the end of the memory. Returns how many runs trapped.
fn compare(config: Config) -> usize {
    let module = module();
    let engine = Engine::new(config).expect("native code is supported where it is tested");
    let mut vm = Vm::new(&engine, &module, Limits::default(), Options::default()).expect("a vm");
    let mut machine = Machine::new(&module, Limits::default()).expect("an instance");
    for (func, body) in module.defined() {
        let version = engine.version(&module, func, body, &[]).expect("it compiles");
        vm.install(&version, Vec::new()).expect("it is installed");
    }
    let mut trapped = 0;
    for (func, body) in module.defined() {
        for address in (0..9800).step_by(4).map(|back| 65_540 - back).chain([0, 1 << 31]) {
            let args = [address, 3];
            let wanted = machine.invoke(func, &args, &mut NoHost, &mut NoObserver);
            let found = vm.invoke(func, &args, &mut NoHost).expect("it runs");
            assert_eq!(found, wanted, "{} at {address}: {:?}", body.name(), found.site());
            trapped += usize::from(matches!(wanted, Outcome::Trapped { .. }));
        }
    }
    trapped
}

#[test]
fn a_load_inside_another_instruction_has_its_place() {
    for bounds in [Bounds::Guarded, Bounds::Checked] {
        let trapped = compare(Config { bounds, checked: true, ..Config::default() });
        assert!(trapped > 2_000, "{trapped}");
    }
}
