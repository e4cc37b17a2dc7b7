//! Canonical NaNs for operations that `wasm-smith` leaves out.
//!
//! WebAssembly does not determine the NaN that an operation on floats gives. `wasm-smith` adds code
//! after such operations that makes the NaN canonical, as the interpreter does. It omits the two
//! conversions between float types, which this module handles.

use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{CodeSection, Function, Ieee32, Ieee64, Instruction, Module, ValType};
use wasmparser::{FunctionBody, Parser, Payload};

/// The bits of the canonical NaNs.
const NAN32: u32 = 0x7fc0_0000;
const NAN64: u64 = 0x7ff8_0000_0000_0000;

/// The module with every float that is converted from another float type made canonical; `None` if
/// the bytes are not a module.
pub(super) fn canonical(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut rewriter = NanCanonicalizer { params: params(bytes)?.into_iter() };
    let mut module = Module::new();
    rewriter.parse_core_module(&mut module, Parser::new(0), bytes).ok()?;
    Some(module.finish())
}

/// The number of parameters of each function that has a body.
fn params(bytes: &[u8]) -> Option<Vec<u32>> {
    let (mut types, mut params) = (Vec::new(), Vec::new());
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.ok()? {
            Payload::TypeSection(section) => {
                for ty in section.into_iter_err_on_gc_types() {
                    types.push(ty.ok()?.params().len() as u32);
                }
            }
            Payload::FunctionSection(section) => {
                for ty in section {
                    params.push(*types.get(ty.ok()? as usize)?);
                }
            }
            _ => {}
        }
    }
    Some(params)
}

struct NanCanonicalizer {
    /// The numbers of parameters for the bodies still to come.
    params: std::vec::IntoIter<u32>,
}

impl Reencode for NanCanonicalizer {
    type Error = std::convert::Infallible;

    fn parse_function_body(
        &mut self,
        code: &mut CodeSection,
        body: FunctionBody<'_>,
    ) -> Result<(), Error<Self::Error>> {
        let mut locals = Vec::new();
        for group in body.get_locals_reader()? {
            let (count, ty) = group?;
            locals.push((count, self.val_type(ty)?));
        }
        let first: u32 =
            self.params.next().unwrap_or(0) + locals.iter().map(|(count, _)| count).sum::<u32>();
        locals.extend([(1, ValType::F32), (1, ValType::F64)]);
        let mut function = Function::new(locals);
        let mut reader = body.get_operators_reader()?;
        while !reader.eof() {
            let instruction = utils::parse_instruction(self, &mut reader)?;
            function.instruction(&instruction);
            match instruction {
                Instruction::F32DemoteF64 => {
                    let nan = Instruction::F32Const(Ieee32::new(NAN32));
                    choose(&mut function, first, nan, Instruction::F32Eq);
                }
                Instruction::F64PromoteF32 => {
                    let nan = Instruction::F64Const(Ieee64::new(NAN64));
                    choose(&mut function, first + 1, nan, Instruction::F64Eq);
                }
                _ => {}
            }
        }
        code.function(&function);
        Ok(())
    }
}

/// Replaces the value on the stack by the NaN unless it equals itself.
fn choose(function: &mut Function, local: u32, nan: Instruction<'_>, equal: Instruction<'_>) {
    function.instruction(&Instruction::LocalTee(local));
    function.instruction(&nan);
    function.instruction(&Instruction::LocalGet(local));
    function.instruction(&Instruction::LocalGet(local));
    function.instruction(&equal);
    function.instruction(&Instruction::Select);
}
