//! The cost of a call across the border of native code: into a function of two instructions, and
//! from a loop out to a function of the embedder with five arguments. Each is beside the same code
//! compiled by Cranelift alone and called by its address.
//! `cargo bench -p osier-jit --bench calls` prints nanoseconds for each call, the least of 801
//! rounds that take turns, and the ratio to Cranelift's. An argument is another number of rounds,
//! and a further one selects the lines that contain it: for counts of instructions by `valgrind`.

use cranelift_codegen::ir::{AbiParam, BlockArg, InstBuilder, Signature, types::I64};
use cranelift_codegen::isa::CallConv;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Module as _, default_libcall_names};
use interp::{Limits, NoHost, Options, Outcome};
use ir::{DeclaredEffect, Func, Module};
use osier_jit::{Config, DirectFunction, Embedder, Engine, SessionEnd, VersionSpec, Vm};
use std::error::Error;
use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

/// The calls in one round, which is shorter than a time slice of a busy system.
const CALLS: u64 = 10_000;

const ROUNDS: usize = 801;

const LEAF: &str = "
func @leaf(%x: i64) -> i64 {
entry:
  %one = const.i64 1
  %y = add.i64 %x, %one
  return %y
}
";

const LOOP: &str = "
import func @mix \"env\" \"mix\" (i64, i64, i64, i64, i64) -> i64
func @main(%n: i64) -> i64 {
entry:
  %zero = const.i64 0
  jump head(%n, %zero)
head(%left: i64, %x: i64):
  %y = call @mix(%x, %left, %left, %left, %left)
  %one = const.i64 1
  %rest = sub.i64 %left, %one
  br_if %rest, head(%rest, %y), done
done:
  return %y
}
";

/// The function of the embedder, without data.
extern "C" fn mix(a: u64, b: u64, c: u64, d: u64, e: u64) -> u64 {
    a.wrapping_add(b ^ c).wrapping_add(d ^ e)
}

/// The same, with data.
extern "C" fn mix_with((): &(), a: u64, b: u64, c: u64, d: u64, e: u64) -> u64 {
    mix(a, b, c, d, e)
}

/// An embedder that nobody asks.
struct Nobody;

impl Embedder for Nobody {}

/// The work of one round: so many calls, in nanoseconds for each.
type Work = Box<dyn FnMut(u64) -> Result<f64, Box<dyn Error>>>;

/// Times repeated calls.
fn each(mut call: impl FnMut(u64) -> Result<u64, Box<dyn Error>> + 'static) -> Work {
    Box::new(move |calls| {
        let start = Instant::now();
        for x in 0..calls {
            black_box(call(black_box(x))?);
        }
        Ok(start.elapsed().as_secs_f64() * 1e9 / calls as f64)
    })
}

/// Times one call that makes all others.
fn once(mut run: impl FnMut(u64) -> Result<u64, Box<dyn Error>> + 'static) -> Work {
    Box::new(move |calls| {
        let start = Instant::now();
        black_box(run(black_box(calls))?);
        Ok(start.elapsed().as_secs_f64() * 1e9 / calls as f64)
    })
}

fn returned(outcome: &Outcome) -> Result<u64, Box<dyn Error>> {
    match outcome {
        Outcome::Returned(values) => Ok(values[0]),
        other => Err(other.to_string().into()),
    }
}

/// A machine with native code for all functions of a text, and the last one.
fn machine(text: &str) -> Result<(Vm, Func), Box<dyn Error>> {
    let (engine, module) = (Engine::new(Config::default())?, parsed(text)?);
    let mut vm = Vm::new(&engine, &module, Limits::default(), Options::default())?;
    let func = install(&mut vm, VersionSpec::default())?;
    Ok((vm, func))
}

fn parsed(text: &str) -> Result<Arc<Module>, Box<dyn Error>> {
    Ok(Arc::new(ir::text::parse_module(text).map_err(|errors| errors[0].to_string())?))
}

/// Installs code of the one function that a module defines.
fn install(vm: &mut Vm, spec: VersionSpec<'_>) -> Result<Func, Box<dyn Error>> {
    let (engine, module) = (vm.engine().clone(), Arc::clone(vm.module()));
    let (func, body) = module.defined().next().ok_or("the text has a function")?;
    vm.install(&engine.version(&module, func, body, spec)?, Vec::new())?;
    Ok(func)
}

/// Compiles a function of one word by Cranelift alone. Returns its address, and leaks its code.
fn compiled(build: impl FnOnce(&mut FunctionBuilder<'_>)) -> Result<*const u8, Box<dyn Error>> {
    let mut flags = settings::builder();
    for (name, value) in [("opt_level", "speed"), ("is_pic", "false")] {
        flags.set(name, value)?;
    }
    let isa = cranelift_native::builder()?.finish(settings::Flags::new(flags))?;
    let mut module = JITModule::new(JITBuilder::with_isa(isa, default_libcall_names()));
    let mut context = module.make_context();
    context.func.signature = words(1);
    let id = module.declare_anonymous_function(&context.func.signature)?;
    let mut scratch = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut context.func, &mut scratch);
    build(&mut builder);
    builder.seal_all_blocks();
    builder.finalize(module.target_config());
    module.define_function(id, &mut context)?;
    module.finalize_definitions()?;
    let code = module.get_finalized_function(id);
    std::mem::forget(module);
    Ok(code)
}

/// The C signature of a function from words to a word.
fn words(params: usize) -> Signature {
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params.extend(vec![AbiParam::new(I64); params]);
    signature.returns.push(AbiParam::new(I64));
    signature
}

/// `LEAF`.
fn leaf(b: &mut FunctionBuilder<'_>) {
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let x = b.block_params(entry)[0];
    let y = b.ins().iadd_imm_s(x, 1);
    b.ins().return_(&[y]);
}

/// `LOOP`, with the address of `mix` as a constant.
fn loop_of_calls(b: &mut FunctionBuilder<'_>) {
    let [entry, head, done] = [(); 3].map(|()| b.create_block());
    b.append_block_params_for_function_params(entry);
    let [left, x] = [(); 2].map(|()| b.append_block_param(head, I64));
    b.switch_to_block(entry);
    let n = b.block_params(entry)[0];
    let zero = b.ins().iconst(I64, 0);
    b.ins().jump(head, &[BlockArg::from(n), BlockArg::from(zero)]);
    b.switch_to_block(head);
    let code = b.ins().iconst(I64, (mix as *const ()).expose_provenance() as i64);
    let signature = b.import_signature(words(5));
    let call = b.ins().call_indirect(signature, code, &[x, left, left, left, left]);
    let y = b.inst_results(call)[0];
    let rest = b.ins().iadd_imm_s(left, -1);
    b.ins().brif(rest, head, &[BlockArg::from(rest), BlockArg::from(y)], done, &[]);
    b.switch_to_block(done);
    b.ins().return_(&[y]);
}

/// The ways into a function of two instructions, Cranelift's first.
fn ways_in() -> Result<Vec<(&'static str, Work)>, Box<dyn Error>> {
    // SAFETY: `compiled` makes a function of this type, and leaks its code.
    let direct: extern "C" fn(u64) -> u64 = unsafe { std::mem::transmute(compiled(leaf)?) };
    let (mut run, func) = machine(LEAF)?;
    let (mut invoke, _) = machine(LEAF)?;
    let (mut vm, _) = machine(LEAF)?;
    let entry = vm.entry::<(u64,), u64>(func)?;
    let session = move |calls| -> Result<f64, Box<dyn Error>> {
        let start = Instant::now();
        let called = vm.session(&mut Nobody, |session| {
            (0..calls).try_for_each(|x| {
                black_box(session.call(&entry, (black_box(x),))?);
                Ok::<(), Box<SessionEnd>>(())
            })
        });
        called??;
        Ok(start.elapsed().as_secs_f64() * 1e9 / calls as f64)
    };
    Ok(vec![
        ("Cranelift's code by its address", each(move |x| Ok(direct(x)))),
        ("Session::call", Box::new(session)),
        ("Vm::run", each(move |x| returned(&run.run(func, &[x], &mut Nobody)?))),
        ("Vm::invoke", each(move |x| returned(&invoke.invoke(func, &[x], &mut NoHost)?))),
    ])
}

/// The ways out of a loop, Cranelift's first.
fn ways_out() -> Result<Vec<(&'static str, Work)>, Box<dyn Error>> {
    // SAFETY: as in `ways_in`.
    let direct: extern "C" fn(u64) -> u64 =
        unsafe { std::mem::transmute(compiled(loop_of_calls)?) };
    let with = mix_with as extern "C" fn(&(), u64, u64, u64, u64, u64) -> u64;
    let with = DirectFunction::new(Arc::new(()), with, DeclaredEffect::Any);
    let plain = mix as extern "C" fn(u64, u64, u64, u64, u64) -> u64;
    let plain = DirectFunction::plain(plain, DeclaredEffect::Any);
    let mut ways: Vec<(&'static str, Work)> =
        vec![("Cranelift's loop", once(move |n| Ok(direct(n))))];
    for (name, function, calling) in [
        ("bound, with data", &with, false),
        ("bound, without data", &plain, false),
        ("at its address, with data", &with, true),
        ("at its address, without data", &plain, true),
    ] {
        let (mut vm, func) = machine(LOOP)?;
        let mix = vm.module().func_named("mix").ok_or("the text has it")?;
        vm.bind(mix, function)?;
        if calling {
            let spec = VersionSpec::default().calling(&vm.bound());
            install(&mut vm, spec)?;
        }
        ways.push((name, once(move |n| returned(&vm.run(func, &[n], &mut Nobody)?))));
    }
    Ok(ways)
}

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo bench` adds an option.
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let rounds = arguments.next().map_or(Ok(ROUNDS), |rounds| rounds.parse())?;
    let only = arguments.next().unwrap_or_default();
    let mut out = std::io::stdout().lock();
    for (title, mut ways) in [("calls in", ways_in()?), ("calls out", ways_out()?)] {
        ways.retain(|(name, _)| name.contains(&only));
        let mut best = vec![f64::INFINITY; ways.len()];
        for _ in 0..rounds {
            for ((_, work), best) in ways.iter_mut().zip(&mut best) {
                *best = best.min(work(CALLS)?);
            }
        }
        writeln!(out, "{title}")?;
        for ((name, _), nanos) in ways.iter().zip(&best) {
            writeln!(out, "  {name:<34} {nanos:8.2} ns {:8.2}", nanos / best[0])?;
        }
    }
    Ok(())
}
