//! Rules about single instructions, from the opcode table: immediates, operands, results and
//! targets.

use super::FunctionFindings;
use super::rules::Rule;
use super::structure::WalkedLayout;
use crate::entity::{Inst, Memory, Value};
use crate::inst::{Imm, InstData, Target};
use crate::module::Module;
use crate::opcode::{Opcode, Shape};
use crate::reference;
use crate::types::{Signature, Type};
use cranelift_entity::EntityRef;
use smallvec::{SmallVec, smallvec};
use std::fmt;

/// Checks every instruction on its own.
pub(super) fn check(report: &mut FunctionFindings<'_>, layout: &WalkedLayout) {
    for &(inst, _) in &layout.insts {
        let data = report.function.inst(inst);
        if !data.opcode.allows_type(data.ty) {
            let message =
                format!("{} does not allow the controlling type {}", data.opcode.name(), data.ty);
            report.inst(Rule::TypeControl1, inst, message);
        }
        let immediate_holds = check_immediate(report, inst, data);
        // Without a valid immediate, the types of a call are unknown.
        if immediate_holds || !data.opcode.is_call() {
            check_operands(report, inst, data);
            check_results(report, inst, data);
        }
        check_target_count(report, inst, data);
        for target in data.targets.iter().filter(|t| layout.has_block(t.block)) {
            check_target(report, inst, target);
        }
    }
}

/// Checks the immediate. Returns whether it has the right kind and refers to declared entities.
fn check_immediate(report: &mut FunctionFindings<'_>, inst: Inst, data: &InstData) -> bool {
    let kind_fits = match data.opcode.shape() {
        Shape::Const => matches!(data.imm, Imm::Bits(_)),
        Shape::Load(_) | Shape::Store(_) => data.imm.address().is_some(),
        Shape::MemorySize | Shape::MemoryGrow | Shape::MemoryFill => {
            matches!(data.imm, Imm::Memory(_))
        }
        Shape::MemoryCopy => matches!(data.imm, Imm::Memories(..)),
        Shape::MemoryInit => matches!(data.imm, Imm::MemoryData(..)),
        Shape::DataDrop => matches!(data.imm, Imm::Data(_)),
        Shape::TableGet
        | Shape::TableSet
        | Shape::TableSize
        | Shape::TableGrow
        | Shape::TableFill => {
            matches!(data.imm, Imm::Table(_))
        }
        Shape::TableCopy => matches!(data.imm, Imm::Tables(..)),
        Shape::TableInit => matches!(data.imm, Imm::TableElem(..)),
        Shape::ElemDrop => matches!(data.imm, Imm::Elem(_)),
        Shape::GlobalGet | Shape::GlobalSet => matches!(data.imm, Imm::Global(_)),
        Shape::Call | Shape::CallValue => matches!(data.imm, Imm::Func(_)),
        Shape::CallIndirect => matches!(data.imm, Imm::Indirect(..)),
        Shape::Trap => matches!(data.imm, Imm::Trap(_)),
        Shape::OsrTest | Shape::OsrExit => matches!(data.imm, Imm::Exit(_)),
        Shape::Assume => matches!(data.imm, Imm::Assumed(..)),
        _ => matches!(data.imm, Imm::None),
    };
    if !kind_fits {
        let message = format!("{:?} is not a valid immediate of {}", data.imm, data.opcode.name());
        report.inst(Rule::Imm1, inst, message);
        return false;
    }
    let module = report.module;
    let declared = match data.imm {
        Imm::None | Imm::Trap(_) | Imm::Exit(_) => true,
        Imm::Bits(bits) | Imm::Assumed(bits, _) => {
            if bits & !data.ty.mask() != 0 {
                report.inst(Rule::Imm2, inst, format!("{bits:#x} does not fit {}", data.ty));
            }
            if data.ty == Type::ExternRef && bits != reference::NULL {
                report.inst(
                    Rule::Imm2,
                    inst,
                    format!("{bits:#x} refers to something of the host's"),
                );
            }
            data.ty != Type::FuncRef || is_null_or_declared(module, bits)
        }
        Imm::Address(memory, _) | Imm::HostAddress(memory, _) | Imm::Memory(memory) => {
            module.memories.is_valid(memory)
        }
        Imm::Global(global) => module.globals.is_valid(global),
        Imm::Func(func) => module.funcs.get(func).is_some_and(|d| module.sigs.is_valid(d.sig)),
        Imm::Indirect(sig, table) => module.sigs.is_valid(sig) && module.tables.is_valid(table),
        Imm::Memories(to, from) => module.memories.is_valid(to) && module.memories.is_valid(from),
        Imm::MemoryData(memory, segment) => {
            module.memories.is_valid(memory) && segment.index() < module.data.len()
        }
        Imm::Data(segment) => segment.index() < module.data.len(),
        Imm::Table(table) => module.tables.is_valid(table),
        Imm::Tables(to, from) => module.tables.is_valid(to) && module.tables.is_valid(from),
        Imm::TableElem(table, segment) => {
            module.tables.is_valid(table) && segment.index() < module.elements.len()
        }
        Imm::Elem(segment) => segment.index() < module.elements.len(),
    };
    if !declared {
        report.inst(Rule::Imm3, inst, format!("{:?} is not declared by the module", data.imm));
        return false;
    }
    check_memories(report, inst, data);
    check_global(report, inst, data);
    check_tables(report, inst, data);
    check_effect(report, inst, data);
    true
}

/// Whether the bits are a null reference, or refer to a function that the module declares.
pub(super) fn is_null_or_declared(module: &Module, bits: u64) -> bool {
    bits == reference::NULL || reference::func(bits).is_some_and(|func| module.funcs.is_valid(func))
}

fn check_memories(report: &mut FunctionFindings<'_>, inst: Inst, data: &InstData) {
    let is_host = |memory: Memory| report.module.memories[memory].kind.is_host();
    let (rule, message) = match data.imm {
        Imm::Address(memory, _) if is_host(memory) => {
            (Rule::Imm7, format!("{memory} is a host memory"))
        }
        Imm::HostAddress(memory, _) if !is_host(memory) => {
            (Rule::Imm7, format!("{memory} is no host memory"))
        }
        Imm::Memory(memory) | Imm::MemoryData(memory, _) if is_host(memory) => {
            (Rule::Imm8, format!("{memory} is a host memory"))
        }
        Imm::Memories(to, from) if is_host(to) || is_host(from) => {
            let host = if is_host(to) { to } else { from };
            (Rule::Imm8, format!("{host} is a host memory"))
        }
        _ => return,
    };
    report.inst(rule, inst, message);
}

fn check_tables(report: &mut FunctionFindings<'_>, inst: Inst, data: &InstData) {
    let module = report.module;
    let (table, given) = match data.imm {
        Imm::Table(table) if data.opcode.has_type_suffix() => (table, data.ty),
        Imm::Tables(to, from) => (to, module.tables[from].ty),
        Imm::TableElem(table, segment) => (table, module.elements[segment.index()].ty),
        Imm::Indirect(_, table) => (table, Type::FuncRef),
        _ => return,
    };
    let held = module.tables[table].ty;
    if held != given {
        let rule = if matches!(data.imm, Imm::Table(_)) { Rule::Imm5 } else { Rule::Imm6 };
        report.inst(rule, inst, format!("{table} holds {held}, not {given}"));
    }
}

/// Checks that the declaration of the called function allows the instruction.
fn check_effect(report: &mut FunctionFindings<'_>, inst: Inst, data: &InstData) {
    let Imm::Func(func) = data.imm else { return };
    let declared = report.module.funcs[func].effect;
    if data.opcode.is_call() && !declared.allows(data.opcode) {
        report.inst(Rule::Imm9, inst, format!("{func} is declared `{declared}`"));
    }
}

fn check_global(report: &mut FunctionFindings<'_>, inst: Inst, data: &InstData) {
    let Imm::Global(global) = data.imm else {
        return;
    };
    let decl = &report.module.globals[global];
    if data.opcode == Opcode::GlobalSet && !decl.mutable {
        report.inst(Rule::Imm4, inst, "the global is not mutable");
    }
    if data.ty != decl.ty {
        report.inst(Rule::Imm5, inst, format!("the global is {}", decl.ty));
    }
}

/// The types that the type rule allows for an operand.
#[derive(Clone, Copy)]
enum AllowedTypes {
    Exactly(Type),
    Int,
    IntNarrowerThan(Type),
    IntWiderThan(Type),
    Int32Or64,
    Float,
    Any,
    /// The type of the same width and the opposite kind: integer for float, float for integer.
    TwinOf(Type),
}

impl AllowedTypes {
    fn accepts(self, ty: Type) -> bool {
        match self {
            AllowedTypes::Exactly(wanted) => ty == wanted,
            AllowedTypes::Int => ty.is_int(),
            AllowedTypes::IntNarrowerThan(wide) => ty.is_int() && ty.bits() < wide.bits(),
            AllowedTypes::IntWiderThan(narrow) => ty.is_int() && ty.bits() > narrow.bits(),
            AllowedTypes::Int32Or64 => matches!(ty, Type::I32 | Type::I64),
            AllowedTypes::Float => ty.is_float(),
            AllowedTypes::Any => true,
            AllowedTypes::TwinOf(other) => {
                ty.is_number() && ty.is_int() != other.is_int() && ty.bits() == other.bits()
            }
        }
    }
}

impl fmt::Display for AllowedTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AllowedTypes::Exactly(ty) => write!(f, "{ty}"),
            AllowedTypes::Int => f.write_str("an integer"),
            AllowedTypes::IntNarrowerThan(ty) => write!(f, "an integer narrower than {ty}"),
            AllowedTypes::IntWiderThan(ty) => write!(f, "an integer wider than {ty}"),
            AllowedTypes::Int32Or64 => f.write_str("i32 or i64"),
            AllowedTypes::Float => f.write_str("a float"),
            AllowedTypes::Any => f.write_str("any type"),
            AllowedTypes::TwinOf(ty) if ty.is_int() => write!(f, "a float of {} bits", ty.bits()),
            AllowedTypes::TwinOf(ty) => write!(f, "an integer of {} bits", ty.bits()),
        }
    }
}

/// One entry for each operand; few instructions have more than three.
type AllowedOperands = SmallVec<[AllowedTypes; 3]>;

/// The types that the type rule requires of the value operands.
fn wanted_operands(report: &FunctionFindings<'_>, data: &InstData) -> AllowedOperands {
    let ty = data.ty;
    let own = AllowedTypes::Exactly(ty);
    let address = AllowedTypes::Exactly(Type::I32);
    let accessed = AllowedTypes::Exactly(data.imm.address_type().unwrap_or(Type::I32));
    match data.opcode.shape() {
        Shape::Const | Shape::MemorySize | Shape::GlobalGet | Shape::Jump => smallvec![],
        Shape::TableSize | Shape::DataDrop | Shape::ElemDrop | Shape::OsrTest => smallvec![],
        Shape::IntUnary
        | Shape::IntTest
        | Shape::FloatUnary
        | Shape::RefTest
        | Shape::GlobalSet => smallvec![own],
        Shape::IntBinary | Shape::IntCompare | Shape::FloatBinary | Shape::FloatCompare => {
            smallvec![own, own]
        }
        Shape::RefCompare => smallvec![AllowedTypes::Exactly(Type::Ref); 2],
        Shape::RefBits => smallvec![AllowedTypes::Exactly(Type::Ref)],
        Shape::RefOf => smallvec![AllowedTypes::Exactly(Type::I64)],
        Shape::Extend => smallvec![AllowedTypes::IntNarrowerThan(ty)],
        Shape::Wrap => smallvec![AllowedTypes::IntWiderThan(ty)],
        Shape::IntToFloat => smallvec![AllowedTypes::Int32Or64],
        Shape::FloatToInt => smallvec![AllowedTypes::Float],
        Shape::Promote => smallvec![AllowedTypes::Exactly(Type::F32)],
        Shape::Demote => smallvec![AllowedTypes::Exactly(Type::F64)],
        Shape::Bitcast => smallvec![AllowedTypes::TwinOf(ty)],
        Shape::Select => smallvec![AllowedTypes::Int, own, own],
        Shape::Load(_) => smallvec![accessed],
        Shape::Store(_) => smallvec![accessed, own],
        Shape::MemoryGrow | Shape::TableGet | Shape::Switch => smallvec![address],
        Shape::TableSet => smallvec![address, own],
        Shape::TableGrow => smallvec![own, address],
        Shape::TableFill => smallvec![address, own, address],
        Shape::MemoryCopy
        | Shape::MemoryFill
        | Shape::MemoryInit
        | Shape::TableCopy
        | Shape::TableInit => {
            smallvec![address; 3]
        }
        Shape::BrIf => smallvec![AllowedTypes::Int],
        Shape::OsrExit => smallvec![AllowedTypes::Any; data.args.len()],
        Shape::Trap => smallvec![AllowedTypes::Int32Or64; data.args.len().min(1)],
        // Kept values may have any type.
        Shape::Assume => {
            let kept = data.args.len().saturating_sub(1);
            [own].into_iter().chain(std::iter::repeat_n(AllowedTypes::Any, kept)).collect()
        }
        Shape::Return => exactly(&report.function.signature().results),
        Shape::Call | Shape::CallIndirect | Shape::CallValue => {
            let mut wanted = called_signature(report, data)
                .map_or(AllowedOperands::new(), |s| exactly(&s.params));
            if data.opcode.shape() == Shape::CallIndirect {
                wanted.push(AllowedTypes::Exactly(Type::I32));
            }
            wanted
        }
    }
}

fn exactly(types: &[Type]) -> AllowedOperands {
    types.iter().map(|ty| AllowedTypes::Exactly(*ty)).collect()
}

/// The signature in the immediate of a call.
fn called_signature<'a>(report: &FunctionFindings<'a>, data: &InstData) -> Option<&'a Signature> {
    match data.imm {
        Imm::Func(func) => report.module.sigs.get(report.module.funcs.get(func)?.sig),
        Imm::Indirect(sig, _) => report.module.sigs.get(sig),
        _ => None,
    }
}

fn check_operands(report: &mut FunctionFindings<'_>, inst: Inst, data: &InstData) {
    let wanted = wanted_operands(report, data);
    if wanted.len() != data.args.len() {
        let message = format!("{} operands instead of {}", data.args.len(), wanted.len());
        return report.inst(Rule::TypeOperand1, inst, message);
    }
    for (&value, wanted) in data.args.iter().zip(wanted) {
        if let Some(ty) = type_of(report, value).filter(|ty| !wanted.accepts(*ty)) {
            let name = report.value_name(value);
            report.inst(
                Rule::TypeOperand2,
                inst,
                format!("{name} has type {ty} instead of {wanted}"),
            );
        }
    }
}

fn check_results(report: &mut FunctionFindings<'_>, inst: Inst, data: &InstData) {
    let by_opcode = data.opcode.result_type(data.ty);
    let wanted = match called_signature(report, data) {
        Some(signature) => signature.results.as_slice(),
        None => by_opcode.as_slice(),
    };
    if data.opcode.shape() == Shape::CallValue && wanted != by_opcode.as_slice() {
        let message = format!("the function does not return one {}", data.ty);
        return report.inst(Rule::TypeControl1, inst, message);
    }
    if wanted.len() != data.results.len() {
        let message = format!("{} results instead of {}", data.results.len(), wanted.len());
        return report.inst(Rule::TypeResult1, inst, message);
    }
    for (&value, wanted) in data.results.iter().zip(wanted) {
        if let Some(ty) = type_of(report, value).filter(|ty| ty != wanted) {
            let name = report.value_name(value);
            report.inst(
                Rule::TypeResult2,
                inst,
                format!("{name} has type {ty} instead of {wanted}"),
            );
        }
    }
}

fn check_target_count(report: &mut FunctionFindings<'_>, inst: Inst, data: &InstData) {
    let count = data.targets.len();
    let fits = match data.opcode.shape() {
        Shape::Jump => count == 1,
        Shape::BrIf => count == 2,
        Shape::Switch => count >= 1,
        _ => count == 0,
    };
    if !fits {
        report.inst(
            Rule::CfgTarget2,
            inst,
            format!("{} does not have {count} targets", data.opcode.name()),
        );
    }
}

fn check_target(report: &mut FunctionFindings<'_>, inst: Inst, target: &Target) {
    let params = report.function.block_params(target.block);
    if params.len() != target.args.len() {
        let name = report.block_name(target.block);
        let message = format!(
            "{} arguments for the {} parameters of {name}",
            target.args.len(),
            params.len()
        );
        return report.inst(Rule::CfgArgs1, inst, message);
    }
    for (&arg, &param) in target.args.iter().zip(params) {
        let (Some(given), Some(wanted)) = (type_of(report, arg), type_of(report, param)) else {
            // A missing value has a finding of its own.
            continue;
        };
        if given != wanted {
            let (arg, param) = (report.value_name(arg), report.value_name(param));
            report.inst(
                Rule::CfgArgs2,
                inst,
                format!("{arg} has type {given}, but the parameter {param} has type {wanted}"),
            );
        }
    }
}

fn type_of(report: &FunctionFindings<'_>, value: Value) -> Option<Type> {
    report.function.values.get(value).map(|d| d.ty)
}
