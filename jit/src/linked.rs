//! The bytes of compiled code, with the addresses of the functions that the code names.
//!
//! Code of ours names no other code: calls go through the context, and through words beside the
//! code. Cranelift names library functions where the processor lacks an instruction. Their
//! addresses are absolute, so the bytes fit every place.

use crate::arena::LINE;
use cranelift_codegen::binemit::Reloc;
use cranelift_codegen::ir::{ExternalName, LibCall};
use cranelift_codegen::{CompiledCode, FinalizedMachReloc, FinalizedRelocTarget};

/// The code with all relocations applied. Linear in the code.
///
/// # Errors
/// A message that names a relocation of another kind, or an alignment above
/// [`LINE`](crate::arena::LINE).
pub(crate) fn linked(compiled: &CompiledCode) -> Result<Vec<u8>, String> {
    let buffer = &compiled.buffer;
    if buffer.alignment as usize > LINE {
        return Err(format!("the code must begin at a multiple of {} bytes", buffer.alignment));
    }
    let mut bytes = buffer.data().to_vec();
    for reloc in buffer.relocs() {
        let address = address(reloc)?;
        let at = reloc.offset as usize;
        let word = bytes.get_mut(at..at + 8);
        let word =
            word.ok_or_else(|| format!("the relocation at {at:#x} is outside of the code"))?;
        word.copy_from_slice(&address.to_le_bytes());
    }
    Ok(bytes)
}

/// The address that a relocation refers to.
fn address(reloc: &FinalizedMachReloc) -> Result<u64, String> {
    let function = match (&reloc.target, reloc.kind) {
        (FinalizedRelocTarget::ExternalName(ExternalName::LibCall(call)), Reloc::Abs8) => {
            function(*call)
        }
        _ => None,
    };
    let found = function.and_then(|function| function.checked_add_signed(reloc.addend));
    found.ok_or_else(|| {
        let (kind, target) = (reloc.kind, reloc.target.display(None));
        format!("the code has a relocation {kind} of {target}, which this crate does not know")
    })
}

/// The address of a library function.
fn function(call: LibCall) -> Option<u64> {
    extern "C" fn ceil_f32(x: f32) -> f32 {
        x.ceil()
    }
    extern "C" fn ceil_f64(x: f64) -> f64 {
        x.ceil()
    }
    extern "C" fn floor_f32(x: f32) -> f32 {
        x.floor()
    }
    extern "C" fn floor_f64(x: f64) -> f64 {
        x.floor()
    }
    extern "C" fn trunc_f32(x: f32) -> f32 {
        x.trunc()
    }
    extern "C" fn trunc_f64(x: f64) -> f64 {
        x.trunc()
    }
    extern "C" fn nearest_f32(x: f32) -> f32 {
        x.round_ties_even()
    }
    extern "C" fn nearest_f64(x: f64) -> f64 {
        x.round_ties_even()
    }
    let single: extern "C" fn(f32) -> f32 = match call {
        LibCall::CeilF32 => ceil_f32,
        LibCall::FloorF32 => floor_f32,
        LibCall::TruncF32 => trunc_f32,
        LibCall::NearestF32 => nearest_f32,
        _ => {
            let double: extern "C" fn(f64) -> f64 = match call {
                LibCall::CeilF64 => ceil_f64,
                LibCall::FloorF64 => floor_f64,
                LibCall::TruncF64 => trunc_f64,
                LibCall::NearestF64 => nearest_f64,
                _ => return None,
            };
            return Some(double as usize as u64);
        }
    };
    Some(single as usize as u64)
}

#[cfg(test)]
mod tests;
