//! The cost of accesses to host memories: a loop over the fields of 1,024 objects, in a linear
//! memory with guards, in a host memory of the embedder (no check), and in a host memory of the
//! machine (a check). `cargo bench -p osier-jit --bench host_memory` prints nanoseconds
//! for each object visited, the least of 21 rounds that take turns.

use interp::{Limits, NoHost, Options, Outcome};
use ir::Module;
use osier_jit::{Config, Engine, Vm};
use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

/// The objects visited in one run.
const VISITS: u64 = 4_000_000;

const ROUNDS: usize = 21;

/// The words of all objects: 1,024 objects of eight words.
const WORDS: usize = 8 * 1024;

/// Adds up one field of each object, and writes another.
fn text(memory: &str, ty: &str) -> String {
    let wide = ty == "i64";
    let narrow = if wide { "%at = or.i64 %offset, %zero" } else { "%at = wrap.i32 %offset" };
    let address = "%address = add.TY %at, %base".replace("TY", ty);
    format!(
        "{memory}
func @sum(%base: {ty}, %n: i64) -> i64 {{
entry:
  %zero = const.i64 0
  %one = const.i64 1
  %mask = const.i64 1023
  %six = const.i64 6
  jump head(%zero, %zero)
head(%i: i64, %sum: i64):
  %number = and.i64 %i, %mask
  %offset = shl.i64 %number, %six
  {narrow}
  {address}
  %kind = load.i64 @m[%address]
  %field = load.i64 @m[%address + 8]
  %x = add.i64 %kind, %field
  %next = add.i64 %sum, %x
  store.i64 @m[%address + 16], %next
  %j = add.i64 %i, %one
  %more = ult.i64 %j, %n
  br_if %more, head(%j, %next), done
done:
  return %next
}}
"
    )
}

/// A machine with native code for the program, and the first argument of its runs.
struct Contender {
    name: &'static str,
    vm: Vm,
    base: u64,
    best: f64,
}

fn install(vm: &mut Vm, engine: &Engine, module: &Arc<Module>) -> Result<(), Box<dyn Error>> {
    let (func, body) = module.defined().next().ok_or("the text has a function")?;
    let version = engine.version(module, func, body, &[])?;
    Ok(vm.install(&version, Vec::new())?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let engine = Engine::new(Config::default())?;
    let heap: &'static [AtomicU64] = Vec::leak((0..WORDS).map(|_| AtomicU64::new(0)).collect());
    let address = heap.as_ptr().expose_provenance() as u64;
    let mut contenders = Vec::new();
    for (name, memory, ty, base) in [
        ("linear memory, guarded", "memory @m 1", "i32", 0),
        ("host memory of the embedder", "memory @m host", "i64", address),
        ("host memory of the machine", "memory @m host 65536 1", "i64", 65536),
    ] {
        let module = Arc::new(
            ir::text::parse_module(&text(memory, ty)).map_err(|errors| errors[0].to_string())?,
        );
        // SAFETY: the program accesses the leaked words alone: its addresses are `base` plus less
        // than 64 KiB. They are atomic, and no one else uses them.
        let mut vm = unsafe {
            Vm::with_host_memory(&engine, &module, Limits::default(), Options::default())
        }?;
        install(&mut vm, &engine, &module)?;
        contenders.push(Contender { name, vm, base, best: f64::INFINITY });
    }
    for _ in 0..ROUNDS {
        for Contender { vm, base, best, name } in &mut contenders {
            let func = vm.module().func_named("sum").ok_or("the text has it")?;
            let start = Instant::now();
            let outcome = vm.invoke(func, &[*base, VISITS], &mut NoHost)?;
            let taken = start.elapsed().as_secs_f64() * 1e9 / VISITS as f64;
            if !matches!(outcome, Outcome::Returned(_)) {
                return Err(format!("{name}: {outcome}").into());
            }
            *best = best.min(taken);
        }
    }
    let first = contenders.first().map_or(1.0, |contender| contender.best);
    let mut out = std::io::stdout().lock();
    for Contender { name, best, .. } in &contenders {
        writeln!(out, "{name:<30} {best:6.3} ns  {:5.2}", best / first)?;
    }
    Ok(())
}
