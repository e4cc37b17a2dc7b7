//! Runs one program in one engine, as a process that `engines` takes the time of: the commands of
//! other engines have other hosts, options and caches.
//!
//! All engines here have the host for WASI of `osier run`, and their own default options, but for
//! the cache of wasmtime, which is off.

mod literal;
mod ours;
mod wasmi;
mod wasmtime;

use crate::arguments::{ExecArguments, ExecEngine};
use std::io::Write;
use std::time::Instant;
use wasm::wasi::{Process, Wasi};

/// An instance of a module in an engine.
trait ProgramInstance {
    /// Runs the program from its start. Returns its exit status.
    fn start(&mut self) -> Result<i32, String>;

    /// Calls an exported function with arguments as bits. Returns the bits of its results.
    fn call(&mut self, name: &str, args: &[u64]) -> Result<Vec<literal::Scalar>, String>;
}

/// Bytes of stack of the thread that runs programs; `osier run` has the same number. Pages are
/// committed when used.
const STACK: usize = 512 << 20;

/// Runs a program, or calls one of its functions and prints for each call the result and its
/// seconds. Returns whether the program exits with 0.
///
/// # Errors
/// If the module cannot be read or run, or has no such function.
pub fn run(arguments: &ExecArguments, out: &mut (dyn Write + Send)) -> Result<bool, String> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, || execute(arguments, out));
        let thread = thread.map_err(|error| format!("no thread for the program: {error}"))?;
        thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
    })
}

fn execute(arguments: &ExecArguments, out: &mut dyn Write) -> Result<bool, String> {
    let file = arguments.file.display();
    let bytes = std::fs::read(&arguments.file).map_err(|error| format!("{file}: {error}"))?;
    let mut instance = instance(arguments, &bytes).map_err(|error| format!("{file}: {error}"))?;
    let Some(name) = &arguments.invoke else { return Ok(instance.start()? == 0) };
    let args: Vec<u64> =
        arguments.args.iter().map(|text| literal::bits(text)).collect::<Result<_, _>>()?;
    for _ in 0..arguments.calls {
        let begun = Instant::now();
        let results = instance.call(name, &args)?;
        let seconds = begun.elapsed().as_secs_f64();
        let results: Vec<String> = results.iter().map(ToString::to_string).collect();
        let line = format!("{} {seconds:.9}", results.join(" "));
        writeln!(out, "{line}").map_err(|error| error.to_string())?;
    }
    Ok(true)
}

fn instance(arguments: &ExecArguments, bytes: &[u8]) -> Result<Box<dyn ProgramInstance>, String> {
    Ok(match arguments.engine {
        ExecEngine::Wasmtime | ExecEngine::Winch => {
            let is_winch = arguments.engine == ExecEngine::Winch;
            Box::new(wasmtime::WasmtimeInstance::new(bytes, is_winch, host(arguments))?)
        }
        ExecEngine::Wasmi => Box::new(wasmi::WasmiInstance::new(bytes, host(arguments))?),
        engine => {
            if arguments.invoke.is_none() {
                return Err("osier run runs whole programs in engines of Osier".to_owned());
            }
            Box::new(ours::OsierInstance::new(bytes, engine, host(arguments))?)
        }
    })
}

/// The host of a program, on the streams of this process.
fn host(arguments: &ExecArguments) -> Wasi<'static> {
    let name = arguments.file.display().to_string();
    let args = std::iter::once(name).chain(arguments.args.iter().cloned()).collect();
    Wasi::with_process(
        Process::new(args),
        std::io::stdin().lock(),
        std::io::stdout(),
        std::io::stderr(),
    )
}
