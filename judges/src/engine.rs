//! WASI for wasmi: the host of `osier-wasm`, on the memory of a wasmi instance.

use interp::HostError;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use wasm::wasi::{GuestMemory, MODULE, Wasi};
use wasmi::{Caller, Error, Linker, Val};

/// The output of a program.
#[derive(Clone, Default)]
pub(crate) struct Printed(Arc<Mutex<Vec<u8>>>);

impl Printed {
    /// Takes all output so far.
    pub(crate) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().expect("no thread panics while printing"))
    }
}

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no thread panics while printing").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A WASI process that reads `stdin` and prints to `printed`.
pub(crate) fn process(args: &[String], stdin: &[u8], printed: &Printed) -> Wasi<'static> {
    Wasi::new(args.to_vec(), io::Cursor::new(stdin.to_vec()), printed.clone(), io::sink())
}

/// The memory of an instance, as a slice.
pub(crate) struct Slice<'a>(pub(crate) &'a mut [u8]);

impl GuestMemory for Slice<'_> {
    fn read(&self, address: u64, length: u64) -> Option<&[u8]> {
        let start = usize::try_from(address).ok()?;
        self.0.get(start..start.checked_add(usize::try_from(length).ok()?)?)
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> bool {
        let Ok(start) = usize::try_from(address) else { return false };
        let Some(end) = start.checked_add(bytes.len()) else { return false };
        self.0.get_mut(start..end).map(|to| to.copy_from_slice(bytes)).is_some()
    }
}

/// The bits of a number in the interpreter's representation; `None` for other values.
pub(crate) fn bits(value: &Val) -> Option<u64> {
    Some(match value {
        Val::I32(v) => u64::from(*v as u32),
        Val::I64(v) => *v as u64,
        Val::F32(v) => u64::from(v.to_bits()),
        Val::F64(v) => v.to_bits(),
        _ => return None,
    })
}

/// Defines the imports of a module, all of them from WASI.
pub(crate) fn link(
    linker: &mut Linker<Wasi<'static>>,
    module: &wasmi::Module,
) -> Result<(), String> {
    for import in module.imports() {
        let wasmi::ExternType::Func(ty) = import.ty() else {
            return Err(format!("{}.{} is not a function", import.module(), import.name()));
        };
        if import.module() != MODULE {
            return Err(format!("no host module {}", import.module()));
        }
        let field = import.name().to_owned();
        let call = move |caller: Caller<'_, Wasi<'static>>, args: &[Val], results: &mut [Val]| {
            answer(caller, &field, args, results)
        };
        linker.func_new(MODULE, import.name(), ty.clone(), call).map_err(|e| e.to_string())?;
    }
    Ok(())
}

fn answer(
    mut caller: Caller<'_, Wasi<'static>>,
    field: &str,
    args: &[Val],
    results: &mut [Val],
) -> Result<(), Error> {
    let memory = caller.get_export("memory").and_then(wasmi::Extern::into_memory);
    let memory = memory.ok_or_else(|| Error::new("the program exports no memory"))?;
    let args: Vec<u64> = args.iter().filter_map(bits).collect();
    let (bytes, wasi) = memory.data_and_store_mut(&mut caller);
    match wasi.call_on(&mut Slice(bytes), field, &args) {
        Ok(answer) => {
            for (result, answer) in results.iter_mut().zip(answer) {
                *result = Val::I32(answer as i32);
            }
            Ok(())
        }
        Err(HostError::Exit(status)) => Err(Error::i32_exit(status)),
        Err(HostError::Failed(error)) => Err(Error::new(error.to_string())),
        Err(HostError::Trap(kind)) => Err(Error::new(kind.to_string())),
    }
}
