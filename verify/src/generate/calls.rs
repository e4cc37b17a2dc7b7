//! Trees of calls: functions that call others and themselves, with several returns, traps inside,
//! and calls of the host. They become versions with inlined code.

use super::body::GeneratedBody;
use super::feature::Feature;
use interp::{Host, HostError, Memories};
use ir::module::ImportName;
use ir::{
    DeclaredEffect, Func, Imm, InstSpec, Memory, Opcode, Signature, Target, TrapKind, Type, Value,
};

/// The largest depth that a recursive function takes from its first argument. A power of two less
/// one.
const RECURSION: u64 = 3;

/// The activations of a recursive function, or of two that call each other, within one call.
pub(super) const RECURSIVE_ACTIVATIONS: u64 = RECURSION + 1;

/// The host of generated programs: its functions return the sum of the arguments plus the number of
/// earlier calls. A function with a declared effect is named after the effect, and returns 31 times
/// a sum:
///
/// - `pure`: of the arguments alone;
/// - `reads`: of the arguments, the first bytes of the first memory, and its size;
/// - `outside`: as other functions. It traps for one sum of 64.
#[derive(Clone, Debug, Default)]
pub struct CountingHost {
    calls: u64,
}

impl CountingHost {
    /// The number of calls so far.
    pub fn calls(&self) -> u64 {
        self.calls
    }
}

impl Host for CountingHost {
    fn call(
        &mut self,
        import: &ImportName,
        _func: Func,
        args: &[u64],
        memories: &mut Memories,
        results: &mut [u64],
    ) -> Result<(), HostError> {
        let effect = DeclaredEffect::from_name(&import.field).unwrap_or_default();
        let state = match effect {
            DeclaredEffect::Pure => 0,
            DeclaredEffect::Reads => state_of(memories),
            DeclaredEffect::Outside | DeclaredEffect::Allocates | DeclaredEffect::Any => self.calls,
        };
        // A factor, so that no function with a declared effect is the identity.
        let factor = if effect == DeclaredEffect::Any { 1 } else { 31 };
        let sum = args.iter().fold(state, |sum, arg| sum.wrapping_add(*arg).wrapping_mul(factor));
        results.fill(sum);
        if !effect.is_none() {
            self.calls += 1;
        }
        match effect == DeclaredEffect::Outside && sum % 64 == 42 {
            true => Err(HostError::Trap(TrapKind::User(9))),
            false => Ok(()),
        }
    }
}

/// A number that depends on the first memory.
fn state_of(memories: &Memories) -> u64 {
    if memories.count() == 0 {
        return 0;
    }
    let memory = Memory::from_u32(0);
    let bytes = memories.bytes(memory);
    let read = bytes
        .iter()
        .take(96)
        .fold(0u64, |sum, byte| sum.rotate_left(5).wrapping_add(u64::from(*byte)));
    read.wrapping_add(bytes.len() as u64)
}

impl GeneratedBody<'_> {
    /// Calls of earlier functions, the latest first, and of one of them with other arguments.
    pub(super) fn call_tree(&mut self) {
        let mut affordable = self.affordable();
        affordable.reverse();
        affordable.truncate(2);
        for callee in &affordable {
            self.call_one(*callee);
        }
        if affordable.is_empty() {
            return;
        }
        let again = self.prng.pick(&affordable);
        if self.affordable().contains(&again) {
            self.straight(1);
            self.call_one(again);
            self.plant(Feature::CallTree);
        }
    }

    /// The start of a recursive function, with the code behind its call open. The first parameter
    /// bounds the depth. `func` is the function itself, or its partner in mutual recursion.
    pub(super) fn recurse(&mut self, func: Func, signature: &Signature) {
        self.plant(Feature::Recursion);
        let entry = self.builder.function().entry();
        let bound = self.builder.function().block_params(entry)[0];
        let mask = self.constant(Type::I32, RECURSION);
        let left = self.op(Opcode::And, Type::I32, &[bound, mask]);
        let (leaf, again) = (self.builder.create_block(), self.builder.create_block());
        self.br_if(left, Target::new(again, &[]), Target::new(leaf, &[]));
        let mark = self.scope.mark();
        self.enter_arm(leaf, mark);
        self.straight(2);
        let values = self.results_to_hand();
        self.return_all(&values);
        self.enter_arm(again, mark);
        let one = self.constant(Type::I32, 1);
        let mut args = vec![self.op(Opcode::Sub, Type::I32, &[left, one])];
        args.extend(signature.params[1..].iter().map(|ty| self.pick(*ty)));
        self.finish_call(InstSpec::call(func, &args, &signature.results), 0);
    }

    /// A switch to two returns of the same values, where possible in different orders. The
    /// generator continues behind it, with all values in scope.
    pub(super) fn returns(&mut self) {
        self.plant(Feature::Returns);
        let values = self.results_to_hand();
        let turned = self.turned(&values);
        let (raw, mask) = (self.pick(Type::I32), self.constant(Type::I32, 7));
        let selector = self.op(Opcode::And, Type::I32, &[raw, mask]);
        let [first, second, on] = std::array::from_fn(|_| self.builder.create_block());
        let targets = [first, second, on].map(|block| Target::new(block, &[])).to_vec();
        self.terminate(InstSpec::terminator(Opcode::Switch, &[selector], targets));
        for (block, values) in [(first, values), (second, turned)] {
            self.builder.switch_to(block);
            self.return_all(&values);
        }
        self.builder.switch_to(on);
    }

    /// A value for each result. Results of one type differ.
    fn results_to_hand(&mut self) -> Vec<Value> {
        let results = self.results.clone();
        let mut values = Vec::new();
        for (number, ty) in results.into_iter().enumerate() {
            let value = self.pick(ty);
            let bits = number as u64 + 1;
            let (opcode, bits) = match ty {
                Type::F32 => (Opcode::Fadd, u64::from((bits as f32).to_bits())),
                Type::F64 => (Opcode::Fadd, (bits as f64).to_bits()),
                _ => (Opcode::Add, bits),
            };
            let number = self.constant(ty, bits);
            values.push(self.op(opcode, ty, &[value, number]));
        }
        values
    }

    /// The same values, with the values of each type in another order.
    fn turned(&self, values: &[Value]) -> Vec<Value> {
        let of = |at: usize| self.results[at];
        let turn = |at: usize| {
            let later = (at + 1..values.len()).chain(0..=at);
            later.into_iter().find(|other| of(*other) == of(at)).expect("itself at the latest")
        };
        (0..values.len()).map(|at| values[turn(at)]).collect()
    }

    fn return_all(&mut self, values: &[Value]) {
        self.terminate(InstSpec::terminator(Opcode::Return, values, Vec::new()));
    }

    /// A trap for one value of the lower six bits.
    pub(super) fn callee_trap(&mut self) {
        if self.around.may_call_indirect {
            // The main function, which nothing calls.
            return;
        }
        self.plant(Feature::CalleeTrap);
        let (raw, mask) = (self.pick(Type::I32), self.constant(Type::I32, 63));
        let low = self.op(Opcode::And, Type::I32, &[raw, mask]);
        let most = if self.prng.chance(30) { 9 } else { 64 };
        let which = u64::from(self.prng.below(most));
        let which = self.constant(Type::I32, which);
        let is_it = self.op(Opcode::Eq, Type::I32, &[low, which]);
        match self.prng.below(4) {
            0 | 1 => {
                let (stop, on) = (self.builder.create_block(), self.builder.create_block());
                self.br_if(is_it, Target::new(stop, &[]), Target::new(on, &[]));
                self.builder.switch_to(stop);
                let kind = self.prng.pick(&[TrapKind::Unreachable, TrapKind::User(3)]);
                self.trap(kind, Some(raw));
                self.builder.switch_to(on);
            }
            2 => {
                let divisor = self.op(Opcode::Eqz, Type::I32, &[is_it]);
                let dividend = self.pick(Type::I32);
                let opcode = self.prng.pick(&[Opcode::Udiv, Opcode::Srem]);
                self.op(opcode, Type::I32, &[dividend, divisor]);
            }
            _ => {
                let far = self.constant(Type::I32, 0xffff_fff0);
                let address = self.op(Opcode::Mul, Type::I32, &[is_it, far]);
                let imm = Imm::Address(self.around.memory, 0);
                self.value(InstSpec::new(Opcode::Load, Type::I32, imm, &[address]));
            }
        }
    }

    /// A call of a function with a declared effect, mostly by the opcode that assumes the most.
    pub(super) fn declared_call(&mut self) {
        let declared = &self.around.declared;
        let (func, signature, effect) = declared[self.prng.index(declared.len())].clone();
        let args: Vec<Value> = signature.params.iter().map(|ty| self.pick(*ty)).collect();
        let opcodes = [Opcode::CallPure, Opcode::CallReads, Opcode::CallOutside, Opcode::Call];
        let mut opcodes = opcodes.into_iter().filter(|opcode| effect.allows(*opcode));
        let opcode = if self.prng.chance(80) { opcodes.next() } else { opcodes.next_back() };
        match (opcode, &signature.results[..]) {
            (Some(opcode @ (Opcode::CallPure | Opcode::CallReads)), [ty]) => {
                self.value(InstSpec::call_value(opcode, func, &args, *ty));
                // Random operands are rarely equal, and passes merge equal calls alone.
                if self.prng.chance(40) {
                    self.value(InstSpec::call_value(opcode, func, &args, *ty));
                }
            }
            (opcode, results) => {
                let opcode = opcode.unwrap_or(Opcode::Call);
                let spec = InstSpec { opcode, ..InstSpec::call(func, &args, results) };
                self.finish_call(spec, 0);
            }
        }
    }

    /// A call of the host, with two values.
    pub(super) fn host_call(&mut self) {
        let Some((func, signature)) = self.around.host.clone() else {
            self.arithmetic();
            return;
        };
        self.plant(Feature::HostCall);
        let args: Vec<Value> = signature.params.iter().map(|ty| self.pick(*ty)).collect();
        self.finish_call(InstSpec::call(func, &args, &signature.results), 0);
    }
}
