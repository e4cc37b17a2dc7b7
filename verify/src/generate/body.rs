//! The state of a function body under construction, and the choices that all its parts make.

use super::feature::{Feature, Weights};
use super::memory::Ground;
use super::scope::{ScopeMark, ValueScope};
use super::statistics::Planted;
use crate::prng::Prng;
use ir::{
    Block, Data, DeclaredEffect, Elem, Func, FunctionBuilder, Global, Imm, Inst, InstSpec, Memory,
    Opcode, Sig, Signature, Table, Type, Value,
};

/// A function that a body may call, with the largest number of steps of one call.
#[derive(Clone, Debug)]
pub(super) struct Callee {
    pub(super) func: Func,
    pub(super) sig: Sig,
    pub(super) signature: Signature,
    pub(super) steps: u64,
}

/// The module around a body: everything that the body may refer to.
#[derive(Clone, Debug)]
pub(super) struct Surroundings {
    pub(super) memory: Memory,
    /// The host memories, each with the middle of its accesses.
    pub(super) hosts: Vec<(Memory, u64)>,
    pub(super) table: Table,
    /// By table entry: the index of its callee; `None` for a null entry.
    pub(super) entries: Vec<Option<usize>>,
    /// A second table of function references, of the same size. Nothing is called through it, so it
    /// may change.
    pub(super) references: Table,
    /// The passive segments: operations may use and drop them.
    pub(super) segments: (Data, Elem),
    pub(super) globals: Vec<(Global, Type, bool)>,
    /// The functions made before. A body calls only these, so no call recurses by chance.
    pub(super) callees: Vec<Callee>,
    /// A function of the host.
    pub(super) host: Option<(Func, Signature)>,
    /// Functions of the host with declared effects; empty without the feature.
    pub(super) declared: Vec<(Func, Signature, DeclaredEffect)>,
    /// Whether the body may call through the table. A function in the table may not, because it
    /// could reach itself.
    pub(super) may_call_indirect: bool,
}

/// A loop around the current place.
#[derive(Clone, Debug)]
pub(super) struct LoopFrame {
    pub(super) header: Block,
    pub(super) exit: Block,
    pub(super) exit_types: Vec<Type>,
    pub(super) counter: Value,
    pub(super) counter_ty: Type,
    pub(super) limit: Value,
    pub(super) counts_down: bool,
    pub(super) compare: Opcode,
    /// Whether the latches test for another round, instead of the header.
    pub(super) tests_at_latch: bool,
    /// The parameters of the header after the counter.
    pub(super) carried: Vec<Carried>,
    /// Whether the exit has an incoming edge besides the edge of the regular test. Then only the
    /// definitions in the header, and above, dominate the exit.
    pub(super) left_early: bool,
    /// Whether an edge from outside the loop leads to the exit. Then no definition in the loop
    /// dominates it.
    pub(super) exit_is_around: bool,
}

/// A loop parameter other than the counter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    pub(super) param: Value,
    pub(super) ty: Type,
    pub(super) next: Next,
}

/// The argument that a loop parameter receives on a back edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// Any value in scope.
    Any,
    /// The parameter itself.
    Same,
    /// Another parameter of the loop. Together they rotate, which only a parallel copy gets right.
    Sibling,
    /// A sum of the parameter and a value in scope. It has a use after the loop.
    Accumulated,
    /// An operation on itself. Nothing else uses the parameter.
    DeadCycle,
}

/// A function body under construction.
pub(super) struct GeneratedBody<'a> {
    pub(super) prng: Prng,
    pub(super) weights: Weights,
    pub(super) around: &'a Surroundings,
    pub(super) builder: FunctionBuilder,
    pub(super) scope: ValueScope,
    pub(super) loops: Vec<LoopFrame>,
    pub(super) results: Vec<Type>,
    pub(super) planted: &'a mut Planted,
    /// The effect-free instructions made so far, for repetition.
    history: Vec<Inst>,
    /// The few addresses around which accesses are made.
    addresses: [u64; 4],
    /// The addresses around which traffic was made so far.
    pub(super) grounds: Vec<Ground>,
    /// How many more instructions are wanted; negative if there are more already.
    pub(super) left: i64,
    /// The largest number of rounds of all loops around the current place together.
    pub(super) rounds: u64,
    /// The largest number of steps that the code so far takes.
    pub(super) steps: u64,
}

/// The largest number of rounds that nested loops make together.
pub(super) const MAX_ROUNDS: u64 = 150;
/// A call is added only if the steps of the caller stay below this number.
const MAX_STEPS_WITH_CALLS: u64 = 20_000;
/// The steps of a function that code made now must not call: a recursive function whose other half
/// is being made.
pub(super) const TOO_MANY_STEPS: u64 = u32::MAX as u64;

impl<'a> GeneratedBody<'a> {
    /// A body with an open entry block and its arguments in scope.
    pub(super) fn new(
        name: &str,
        signature: &Signature,
        prng: Prng,
        weights: Weights,
        around: &'a Surroundings,
        planted: &'a mut Planted,
        size: u32,
    ) -> GeneratedBody<'a> {
        let mut body = GeneratedBody {
            addresses: [0; 4],
            grounds: Vec::new(),
            prng,
            weights,
            around,
            builder: FunctionBuilder::new(name, signature.clone()),
            scope: ValueScope::default(),
            loops: Vec::new(),
            results: signature.results.to_vec(),
            planted,
            history: Vec::new(),
            left: i64::from(size),
            rounds: 1,
            steps: 0,
        };
        body.addresses =
            std::array::from_fn(|_| u64::from(body.prng.pick(&[0u32, 1, 4, 6, 8, 12, 16, 65528])));
        let entry = body.builder.create_block();
        for ty in &signature.params {
            let argument = body.builder.append_param(entry, *ty);
            body.scope.push(argument, *ty);
        }
        body.builder.switch_to(entry);
        body
    }

    pub(super) fn weight(&self, feature: Feature) -> u32 {
        self.weights.of(feature)
    }

    /// Decides whether to plant a feature that accompanies another part: in `weight` of `weight +
    /// 10` cases.
    pub(super) fn wants(&mut self, feature: Feature) -> bool {
        let weight = self.weight(feature);
        self.prng.below(weight + 10) < weight
    }

    /// Whether to plant a fact that breaks. With weight zero it draws no number, which keeps
    /// programs without facts independent of this feature.
    pub(super) fn plants_facts(&mut self) -> bool {
        self.weight(Feature::Fact) > 0 && self.wants(Feature::Fact)
    }

    pub(super) fn plant(&mut self, feature: Feature) {
        self.planted.count(feature);
    }

    /// Adds an instruction. Its results do not come into scope.
    pub(super) fn insert(&mut self, spec: InstSpec) -> Inst {
        self.left -= 1;
        self.steps += self.rounds;
        self.builder.insert(spec)
    }

    /// Adds an instruction with one result, and leaves the result out of scope.
    pub(super) fn hidden(&mut self, spec: InstSpec) -> Value {
        let inst = self.insert(spec);
        self.builder.function().inst(inst).result().expect("the generator asked for one result")
    }

    /// Adds an effect-free instruction. Its result comes into scope, and it may be repeated later.
    pub(super) fn value(&mut self, spec: InstSpec) -> Value {
        let ty = spec.result_types[0];
        let inst = self.insert(spec);
        self.history.push(inst);
        let value = self
            .builder
            .function()
            .inst(inst)
            .result()
            .expect("the generator asked for one result");
        self.scope.push(value, ty);
        value
    }

    pub(super) fn op(&mut self, opcode: Opcode, ty: Type, args: &[Value]) -> Value {
        self.value(InstSpec::new(opcode, ty, Imm::None, args))
    }

    /// Repeats a recent instruction whose operands are in scope, with its operands swapped now and
    /// then. Returns whether there was one.
    pub(super) fn repeat(&mut self) -> bool {
        if self.history.is_empty() {
            return false;
        }
        let recent = self.history.len().min(24);
        let inst = self.history[self.history.len() - 1 - self.prng.index(recent)];
        let data = self.builder.function().inst(inst).clone();
        if !data.args.iter().all(|v| self.scope.sees(*v)) {
            return false;
        }
        let mut args = data.args.clone();
        if data.opcode.is_commutative() && self.prng.chance(40) {
            args.reverse();
        }
        let ty = self.builder.function().value_type(data.results[0]);
        let spec = InstSpec {
            result_types: [ty].into(),
            ..InstSpec::new(data.opcode, data.ty, data.imm, &args)
        };
        self.value(spec);
        self.plant(Feature::Repeat);
        true
    }

    /// A random type, by the weights of the types.
    pub(super) fn any_type(&mut self) -> Type {
        let (narrow, wide, float) =
            (self.weight(Feature::Narrow), self.weight(Feature::Wide), self.weight(Feature::Float));
        let weights = [narrow, narrow, 16, 2 * wide, float, float];
        let ty = self.prng.weighted(&weights).map_or(Type::I32, |t| Type::ALL[t]);
        match ty {
            Type::I8 | Type::I16 => self.plant(Feature::Narrow),
            Type::I64 => self.plant(Feature::Wide),
            Type::F32 | Type::F64 => self.plant(Feature::Float),
            Type::I32 | Type::FuncRef | Type::ExternRef | Type::Ref => {}
        }
        ty
    }

    pub(super) fn int_type(&mut self) -> Type {
        let ty = self.any_type();
        if ty.is_int() { ty } else { Type::I32 }
    }

    /// A value of a type: mostly a recent one, sometimes any, sometimes a new constant.
    pub(super) fn pick(&mut self, ty: Type) -> Value {
        let edge = self.weight(Feature::EdgeConstant).min(20);
        let count = self.scope.of(ty).len();
        if count == 0 || self.prng.below(100) < edge {
            return self.edge_constant(ty);
        }
        if self.prng.chance(30) {
            return self.scope.of(ty)[self.prng.index(count)];
        }
        let mut back = 0;
        while back + 1 < count && self.prng.chance(70) {
            back += 1;
        }
        self.scope.of(ty)[count - 1 - back]
    }

    /// A value of a type that was in scope at the mark; a constant without such a value.
    pub(super) fn pick_at(&mut self, ty: Type, mark: ScopeMark) -> Value {
        let count = self.scope.of_at(ty, mark).len();
        if count == 0 {
            return self.edge_constant(ty);
        }
        self.scope.of_at(ty, mark)[self.prng.index(count)]
    }

    /// A constant. Often reuses a recent constant, like code written by people.
    pub(super) fn constant(&mut self, ty: Type, bits: u64) -> Value {
        let recent = self.scope.of(ty).iter().rev().take(24).copied();
        let made = recent.into_iter().find(|v| self.builder.function().constant(*v) == Some(bits));
        if let Some(value) = made.filter(|_| self.prng.chance(70)) {
            return value;
        }
        self.value(InstSpec::constant(ty, bits))
    }

    /// A constant at the edge of its type, or a small one.
    pub(super) fn edge_constant(&mut self, ty: Type) -> Value {
        self.plant(Feature::EdgeConstant);
        let bits = edge_bits(&mut self.prng, ty);
        self.constant(ty, bits)
    }

    /// An address in a host memory, if the program is to access one here: the memory, and the
    /// middle of its accesses.
    pub(super) fn host_memory(&mut self) -> Option<(Memory, u64)> {
        let hosted = self.weights.hosted();
        if hosted == 0 || !self.prng.chance(hosted) {
            return None;
        }
        Some(self.prng.pick(&self.around.hosts))
    }

    /// An address and a constant offset. The addresses are few, so that accesses overlap.
    pub(super) fn address(&mut self) -> (Value, Imm) {
        if let Some((memory, middle)) = self.host_memory() {
            return self.host_address(memory, middle);
        }
        let (memory, near) = (self.around.memory, self.prng.pick(&self.addresses));
        let offset = u64::from(self.prng.pick(&[0u32, 0, 0, 4, 8, 1]));
        let imm = Imm::Address(memory, offset);
        let hazard = self.weight(Feature::Hazard).min(10);
        if self.prng.below(200) < hazard {
            self.plant(Feature::Hazard);
            return (self.pick(Type::I32), imm);
        }
        if self.prng.chance(30) {
            // Any of 16 words: passes do not know the word, and all are in bounds.
            let raw = self.pick(Type::I32);
            let mask = self.constant(Type::I32, 0x3c);
            return (self.op(Opcode::And, Type::I32, &[raw, mask]), imm);
        }
        (self.constant(Type::I32, near), imm)
    }

    /// As [`GeneratedBody::address`], in a host memory, on both sides of its middle.
    fn host_address(&mut self, memory: Memory, middle: u64) -> (Value, Imm) {
        let offset = u64::from(self.prng.pick(&[0u32, 0, 0, 4, 8, 1]));
        let imm = Imm::HostAddress(memory, offset);
        let hazard = self.weight(Feature::Hazard).min(10);
        if self.prng.below(200) < hazard {
            self.plant(Feature::Hazard);
            return (self.pick(Type::I64), imm);
        }
        let low = middle - 0x20;
        if self.prng.chance(30) {
            let raw = self.pick(Type::I64);
            let mask = self.constant(Type::I64, 0x3c);
            let masked = self.op(Opcode::And, Type::I64, &[raw, mask]);
            let low = self.constant(Type::I64, low);
            return (self.op(Opcode::Add, Type::I64, &[masked, low]), imm);
        }
        let near = self.prng.pick(&self.addresses) & 0x3f;
        (self.constant(Type::I64, low + near), imm)
    }

    /// The callees whose call here keeps the caller short.
    pub(super) fn affordable(&self) -> Vec<usize> {
        let affordable = |steps: u64| self.steps + self.rounds * steps < MAX_STEPS_WITH_CALLS;
        (0..self.around.callees.len())
            .filter(|c| affordable(self.around.callees[*c].steps))
            .collect()
    }
}

/// The bits of a special constant of a type.
pub(super) fn edge_bits(prng: &mut Prng, ty: Type) -> u64 {
    if prng.chance(35) {
        let small = prng.below(6);
        return match ty {
            Type::F32 => u64::from((small as f32).to_bits()),
            Type::F64 => f64::from(small).to_bits(),
            Type::FuncRef | Type::ExternRef | Type::Ref => 0,
            _ => u64::from(small),
        };
    }
    let edges: &[u64] = match ty {
        // Null is the only reference that is a constant in every module.
        Type::FuncRef | Type::ExternRef | Type::Ref => &[0],
        Type::I8 => &[0, 1, 7, 8, 9, 0x7f, 0x80, 0xff],
        Type::I16 => &[0, 1, 15, 16, 17, 0xff, 0x7fff, 0x8000, 0xffff],
        Type::I32 => {
            &[0, 1, 2, 31, 32, 33, 0xff, 0xffff, 65535, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff]
        }
        Type::I64 => {
            &[0, 1, 63, 64, 65, 1 << 32, u32::MAX as u64, i64::MAX as u64, 1 << 63, u64::MAX]
        }
        // Zeros, one, extremes, the bounds of integer conversions, infinities and NaNs.
        Type::F32 => &[
            0,
            0x8000_0000,
            0x3f80_0000,
            0x0000_0001,
            0x7f7f_ffff,
            0x4f00_0000,
            0x4f80_0000,
            0x7f80_0000,
            0xff80_0000,
            0x7fc0_0000,
            0x7fa0_0001,
        ],
        Type::F64 => &[
            0,
            1 << 63,
            0x3ff0_0000_0000_0000,
            1,
            0x7fef_ffff_ffff_ffff,
            0x41e0_0000_0000_0000,
            0x43f0_0000_0000_0000,
            0x7ff0_0000_0000_0000,
            0xfff0_0000_0000_0000,
            0x7ff8_0000_0000_0000,
            0x7ff4_0000_0000_0001,
        ],
    };
    prng.pick(edges)
}
