//! Copies of code in functions that are built anew, and the map from copies to their sources.

use cranelift_entity::EntityRef;
use cranelift_entity::packed_option::PackedOption;
use ir::{Function, Inst, InstSpec, Target, Value};
use smallvec::SmallVec;

/// Maps the instructions and values of a new function to the instructions and values of the copied
/// version.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Origins {
    insts: Vec<PackedOption<Inst>>,
    values: Vec<PackedOption<Value>>,
}

impl Origins {
    /// The source instruction of a copy. `None` if the copier created the instruction, or if the
    /// function lacks it. Cost: constant.
    pub fn inst(&self, inst: Inst) -> Option<Inst> {
        self.insts.get(inst.index()).and_then(|i| i.expand())
    }

    /// The source value whose contents a value has. `None` if the copier created the value, or if
    /// the function lacks it. Cost: constant.
    pub fn value(&self, value: Value) -> Option<Value> {
        self.values.get(value.index()).and_then(|v| v.expand())
    }

    pub(crate) fn set_inst(&mut self, copy: Inst, of: Inst) {
        put(&mut self.insts, copy.index(), of.into());
    }

    /// Records the source of a copied instruction, and of its results.
    pub(crate) fn set(&mut self, function: &Function, copy: Inst, version: &Function, of: Inst) {
        self.set_inst(copy, of);
        for (copy, of) in function.inst(copy).results.iter().zip(&version.inst(of).results) {
            self.set_value(*copy, *of);
        }
    }

    pub(crate) fn set_value(&mut self, copy: Value, of: Value) {
        put(&mut self.values, copy.index(), of.into());
    }
}

fn put<T: Copy + Default>(table: &mut Vec<T>, index: usize, item: T) {
    if table.len() <= index {
        table.resize(index + 1, T::default());
    }
    table[index] = item;
}

/// The specification of a copy of an instruction. `operand` maps its operands, `target` its
/// targets.
pub(crate) fn spec(
    function: &Function,
    inst: Inst,
    mut operand: impl FnMut(Value) -> Value,
    target: impl FnMut(&Target) -> Target,
) -> InstSpec {
    let data = function.inst(inst);
    InstSpec {
        opcode: data.opcode,
        ty: data.ty,
        imm: data.imm,
        args: data.args.iter().map(|v| operand(*v)).collect(),
        result_types: data.results.iter().map(|v| function.value_type(*v)).collect::<SmallVec<_>>(),
        targets: data.targets.iter().map(target).collect(),
    }
}
