//! Regions: code with one entry and one way on, nested to a fixed depth.

use super::body::GeneratedBody;
use super::feature::Feature;
use super::scope::ScopeMark;
use ir::{Block, Imm, InstSpec, Opcode, Target, TrapKind, Type, Value};

/// The largest depth of nested regions.
const MAX_DEPTH: u32 = 4;

/// The features that are regions.
const REGIONS: [Feature; 11] = [
    Feature::Branch,
    Feature::Switch,
    Feature::Loop,
    Feature::CrossEdge,
    Feature::Decided,
    Feature::Irreducible,
    Feature::EarlyExit,
    Feature::GuardedDivision,
    Feature::Overwrite,
    Feature::Returns,
    Feature::CalleeTrap,
];

/// A block where several edges meet, with the arguments they pass.
pub(super) struct Join {
    block: Block,
    /// Its parameters.
    incoming: Vec<(Value, Incoming)>,
}

/// The argument that a block parameter receives.
#[derive(Clone, Copy)]
enum Incoming {
    /// Any value in scope at the end of the predecessor.
    Any(Type),
    /// One value, the same on every edge.
    Same(Value, Type),
    /// A constant that every predecessor makes anew.
    Constant(Type, u64),
}

impl Incoming {
    fn ty(self) -> Type {
        match self {
            Incoming::Any(ty) | Incoming::Same(_, ty) | Incoming::Constant(ty, _) => ty,
        }
    }
}

impl GeneratedBody<'_> {
    /// The whole body, from the open entry block to a return.
    pub(super) fn generate(&mut self) {
        if self.weight(Feature::Loop) > 0 {
            // A loop first, where nothing has returned or trapped yet. Later code may never run.
            let count = self.prng.between(1, 4);
            self.straight(count);
            self.counted_loop(MAX_DEPTH);
        }
        while self.left > 0 {
            let count = self.prng.between(1, 4);
            self.straight(count);
            self.region(MAX_DEPTH);
        }
        self.finish();
    }

    /// Some straight-line code and regions.
    pub(super) fn segment(&mut self, depth: u32) {
        for _ in 0..self.prng.between(1, 2) {
            let count = self.prng.between(1, 4);
            self.straight(count);
            if depth > 0 && self.left > 0 {
                self.region(depth);
            }
        }
    }

    /// One region, or nothing if all weights are zero. `depth` is above 0.
    fn region(&mut self, depth: u32) {
        // Outside loops, an early exit leaves little to run. Inside, it makes additional exits and
        // latches.
        let pressed =
            |f: Feature| if f == Feature::EarlyExit && !self.loops.is_empty() { 3 } else { 1 };
        let weights = REGIONS.map(|f| self.weight(f) * pressed(f));
        let Some(choice) = self.prng.weighted(&weights) else { return };
        self.region_of(REGIONS[choice], depth);
    }

    pub(super) fn region_of(&mut self, feature: Feature, depth: u32) {
        match feature {
            Feature::Branch => self.branch(depth),
            Feature::Switch => self.switch(depth),
            Feature::Loop => self.counted_loop(depth),
            Feature::CrossEdge => self.cross_edge(depth),
            Feature::Decided => self.decided(depth),
            Feature::Irreducible => self.irreducible(),
            Feature::EarlyExit => self.early_exit(),
            Feature::Overwrite => self.overwrite(depth),
            Feature::Returns => self.returns(),
            Feature::CalleeTrap => self.callee_trap(),
            _ => self.guarded_division(depth),
        }
    }

    /// Returns results that mix several values, so that much of the body matters.
    fn finish(&mut self) {
        let results = self.results.clone();
        let mut values = Vec::new();
        for ty in results {
            let mut mixed = self.pick(ty);
            for _ in 0..self.prng.between(1, 3) {
                let other = self.pick(ty);
                let opcode = if ty.is_int() {
                    self.prng.pick(&[Opcode::Xor, Opcode::Add])
                } else {
                    Opcode::Fadd
                };
                mixed = self.op(opcode, ty, &[mixed, other]);
            }
            values.push(mixed);
        }
        self.terminate(InstSpec::terminator(Opcode::Return, &values, Vec::new()));
    }

    pub(super) fn terminate(&mut self, spec: InstSpec) {
        self.insert(spec);
    }

    pub(super) fn jump(&mut self, block: Block, args: &[Value]) {
        self.terminate(InstSpec::terminator(Opcode::Jump, &[], vec![Target::new(block, args)]));
    }

    /// A two-way branch, sometimes with its test inverted.
    pub(super) fn br_if(&mut self, condition: Value, then: Target, otherwise: Target) {
        let ty = self.builder.function().value_type(condition);
        if self.prng.chance(20) {
            let inverted = self.op(Opcode::Eqz, ty, &[condition]);
            self.terminate(InstSpec::terminator(Opcode::BrIf, &[inverted], vec![otherwise, then]));
        } else {
            self.terminate(InstSpec::terminator(Opcode::BrIf, &[condition], vec![then, otherwise]));
        }
    }

    /// A condition: a comparison, any integer, or a value that is always the same.
    pub(super) fn condition(&mut self) -> Value {
        if self.wants(Feature::KnownCondition) && self.prng.chance(40) {
            self.plant(Feature::KnownCondition);
            let (a, b) = (self.prng.below(3), self.prng.below(3));
            let (a, b) = (self.constant(Type::I32, a.into()), self.constant(Type::I32, b.into()));
            let opcode = self.prng.pick(&[Opcode::Eq, Opcode::Ult, Opcode::Sge]);
            return self.op(opcode, Type::I32, &[a, b]);
        }
        if self.prng.chance(25) {
            let ty = self.int_type();
            return self.pick(ty);
        }
        self.comparison()
    }

    pub(super) fn new_join(&mut self) -> Join {
        let block = self.builder.create_block();
        let mut incoming = Vec::new();
        for _ in 0..self.prng.below(4) {
            let ty = self.any_type();
            let in_scope = self.scope.of(ty).len();
            let item = if in_scope > 0 && self.wants(Feature::MergeOne) {
                self.plant(Feature::MergeOne);
                Incoming::Same(self.scope.of(ty)[self.prng.index(in_scope)], ty)
            } else if ty.is_int() && self.wants(Feature::KnownCondition) && self.prng.chance(40) {
                Incoming::Constant(ty, u64::from(self.prng.below(4)))
            } else {
                Incoming::Any(ty)
            };
            incoming.push((self.builder.append_param(block, ty), item));
        }
        Join { block, incoming }
    }

    /// The target of an edge from the open block to a join, with its arguments.
    pub(super) fn join_target(&mut self, join: &Join) -> Target {
        let mut args = Vec::new();
        for (_, item) in &join.incoming {
            args.push(match *item {
                Incoming::Any(ty) => self.pick(ty),
                Incoming::Same(value, _) => value,
                Incoming::Constant(ty, bits) => self.constant(ty, bits),
            });
        }
        Target::new(join.block, &args)
    }

    /// One edge to the join, or two edges with different arguments.
    pub(super) fn jump_to_join(&mut self, join: &Join) {
        if self.prng.chance(10) {
            let condition = self.condition();
            let (then, otherwise) = (self.join_target(join), self.join_target(join));
            self.br_if(condition, then, otherwise);
            return;
        }
        let target = self.join_target(join);
        self.jump(join.block, &target.args);
    }

    /// Continues in a join, with the values in scope at the mark and the parameters of the join.
    pub(super) fn enter_join(&mut self, join: &Join, mark: ScopeMark) {
        self.scope.rewind(mark);
        self.builder.switch_to(join.block);
        for (param, item) in &join.incoming {
            self.scope.push(*param, item.ty());
        }
    }

    /// Continues in a block without parameters, with the values in scope at the mark.
    pub(super) fn enter_arm(&mut self, block: Block, mark: ScopeMark) {
        self.scope.rewind(mark);
        self.builder.switch_to(block);
    }

    /// A value that is computed now, and that only one of the following arms uses.
    fn partially_dead(&mut self) -> Option<(Value, Type)> {
        if !self.wants(Feature::PartiallyDead) {
            return None;
        }
        self.plant(Feature::PartiallyDead);
        let ty = self.int_type();
        let (a, b) = (self.pick(ty), self.pick(ty));
        let opcode = self.prng.pick(&[Opcode::Add, Opcode::Mul, Opcode::Xor, Opcode::Sub]);
        Some((self.hidden(InstSpec::new(opcode, ty, Imm::None, &[a, b])), ty))
    }

    /// Uses a value of [`GeneratedBody::partially_dead`].
    fn use_partially_dead(&mut self, made: Option<(Value, Type)>) {
        if let Some((value, ty)) = made {
            self.scope.push(value, ty);
            let other = self.pick(ty);
            self.op(Opcode::Add, ty, &[value, other]);
        }
    }

    /// An operation that all following arms are to compute.
    fn for_both_arms(&mut self) -> Option<(Opcode, Type, [Value; 2])> {
        if !self.wants(Feature::BothArms) {
            return None;
        }
        self.plant(Feature::BothArms);
        let ty = self.int_type();
        let opcode =
            self.prng.pick(&[Opcode::Add, Opcode::Mul, Opcode::Xor, Opcode::Sub, Opcode::Ult]);
        Some((opcode, ty, [self.pick(ty), self.pick(ty)]))
    }

    /// Computes the operation of [`GeneratedBody::for_both_arms`] in an arm.
    fn compute(&mut self, both: Option<(Opcode, Type, [Value; 2])>) {
        if let Some((opcode, ty, args)) = both {
            self.op(opcode, ty, &args);
        }
    }

    fn branch(&mut self, depth: u32) {
        self.plant(Feature::Branch);
        let both = self.for_both_arms();
        let made = self.partially_dead();
        let condition = self.condition();
        let mark = self.scope.mark();
        let (then, join) = (self.builder.create_block(), self.new_join());
        let one_armed = both.is_none() && self.prng.chance(30);
        if one_armed {
            let around = self.join_target(&join);
            self.br_if(condition, Target::new(then, &[]), around);
        } else {
            let otherwise = self.builder.create_block();
            self.br_if(condition, Target::new(then, &[]), Target::new(otherwise, &[]));
            self.enter_arm(otherwise, mark);
            self.compute(both);
            self.segment(depth - 1);
            self.jump_to_join(&join);
        }
        self.enter_arm(then, mark);
        self.compute(both);
        self.use_partially_dead(made);
        self.segment(depth - 1);
        self.jump_to_join(&join);
        self.enter_join(&join, mark);
    }

    /// A branch on a parameter where two edges join; on one of them it is a constant.
    fn decided(&mut self, depth: u32) {
        self.plant(Feature::Decided);
        let condition = self.condition();
        let bits = self.prng.below(3);
        let known = self.constant(Type::I32, bits.into());
        let mark = self.scope.mark();
        let (other, test) = (self.builder.create_block(), self.builder.create_block());
        let param = self.builder.append_param(test, Type::I32);
        self.br_if(condition, Target::new(test, &[known]), Target::new(other, &[]));
        self.enter_arm(other, mark);
        let unknown = self.comparison();
        self.jump(test, &[unknown]);
        self.enter_arm(test, mark);
        let (then, join) = (self.builder.create_block(), self.new_join());
        let around = self.join_target(&join);
        // The parameter does not come into scope, like the test of a short circuit. Other uses
        // would keep it.
        self.terminate(InstSpec::terminator(
            Opcode::BrIf,
            &[param],
            vec![Target::new(then, &[]), around],
        ));
        self.enter_arm(then, mark);
        self.segment(depth - 1);
        self.jump_to_join(&join);
        self.enter_join(&join, mark);
    }

    fn switch(&mut self, depth: u32) {
        self.plant(Feature::Switch);
        let (both, made) = (self.for_both_arms(), self.partially_dead());
        let selector = if self.wants(Feature::KnownCondition) && self.prng.chance(30) {
            self.plant(Feature::KnownCondition);
            let known = self.prng.below(5);
            self.constant(Type::I32, known.into())
        } else if self.prng.chance(60) {
            let (raw, mask) = (self.pick(Type::I32), self.constant(Type::I32, 3));
            self.op(Opcode::And, Type::I32, &[raw, mask])
        } else {
            self.pick(Type::I32)
        };
        let (mark, join) = (self.scope.mark(), self.new_join());
        let arms: Vec<Block> =
            (0..self.prng.between(1, 3)).map(|_| self.builder.create_block()).collect();
        let mut targets: Vec<Target> = arms.iter().map(|a| Target::new(*a, &[])).collect();
        for _ in 0..self.prng.below(4) {
            let target = if self.prng.chance(50) {
                self.join_target(&join)
            } else {
                Target::new(self.prng.pick(&arms), &[])
            };
            let at = self.prng.index(targets.len() + 1);
            targets.insert(at, target);
        }
        self.terminate(InstSpec::terminator(Opcode::Switch, &[selector], targets));
        for (index, arm) in arms.iter().enumerate() {
            self.enter_arm(*arm, mark);
            self.compute(both);
            self.use_partially_dead(made.filter(|_| index == 0));
            self.segment(depth - 1);
            self.jump_to_join(&join);
        }
        self.enter_join(&join, mark);
    }

    /// Two arms, each with an edge to a middle block and one to the join.
    fn cross_edge(&mut self, depth: u32) {
        self.plant(Feature::CrossEdge);
        let (both, made) = (self.for_both_arms(), self.partially_dead());
        let condition = self.condition();
        let mark = self.scope.mark();
        let (middle, join) = (self.new_join(), self.new_join());
        // Without the right arm, this is a short circuit.
        let short_circuit = self.prng.chance(40);
        let arms: Vec<Block> =
            (0..2 - u32::from(short_circuit)).map(|_| self.builder.create_block()).collect();
        let past_left =
            if short_circuit { self.join_target(&join) } else { Target::new(arms[1], &[]) };
        self.br_if(condition, Target::new(arms[0], &[]), past_left);
        for (index, arm) in arms.into_iter().enumerate() {
            self.enter_arm(arm, mark);
            self.compute(both);
            self.use_partially_dead(made.filter(|_| index == 0));
            let count = self.prng.between(1, 4);
            self.straight(count);
            let condition = self.condition();
            let (to_middle, to_join) = (self.join_target(&middle), self.join_target(&join));
            self.br_if(condition, to_middle, to_join);
        }
        self.enter_join(&middle, mark);
        self.segment(depth - 1);
        self.jump_to_join(&join);
        self.enter_join(&join, mark);
    }

    /// A division in an arm, after a branch on its divisor.
    fn guarded_division(&mut self, depth: u32) {
        self.plant(Feature::GuardedDivision);
        let ty = self.int_type();
        let (dividend, divisor) = (self.pick(ty), self.pick(ty));
        let (mark, then, join) = (self.scope.mark(), self.builder.create_block(), self.new_join());
        let around = self.join_target(&join);
        self.br_if(divisor, Target::new(then, &[]), around);
        self.enter_arm(then, mark);
        let opcode = self.prng.pick(&[Opcode::Udiv, Opcode::Urem, Opcode::Srem]);
        self.op(opcode, ty, &[dividend, divisor]);
        if self.prng.chance(30) {
            self.segment(depth - 1);
        }
        self.jump_to_join(&join);
        self.enter_join(&join, mark);
    }

    /// A branch to a block that may leave the loop, start its next round, return or trap. Code
    /// continues on the other edge, with all values in scope.
    fn early_exit(&mut self) {
        self.plant(Feature::EarlyExit);
        let ty = self.int_type();
        let (value, edge) = (self.pick(ty), self.edge_constant(ty));
        let opcode = self.prng.pick(&[Opcode::Eq, Opcode::Eq, Opcode::Ult, Opcode::Sgt]);
        let condition = self.op(opcode, ty, &[value, edge]);
        let both = self.for_both_arms();
        let (leave, on) = (self.builder.create_block(), self.builder.create_block());
        self.br_if(condition, Target::new(leave, &[]), Target::new(on, &[]));
        let mark = self.scope.mark();
        self.builder.switch_to(leave);
        self.compute(both);
        let count = self.prng.below(3);
        self.straight(count);
        self.leave();
        self.scope.rewind(mark);
        self.builder.switch_to(on);
        self.compute(both);
    }

    /// Ends the open block with an edge out of the region.
    fn leave(&mut self) {
        let depth = self.loops.len();
        if depth > 0 && self.prng.chance(85) {
            // Mostly the innermost loop, sometimes one around it.
            let out = if self.prng.chance(75) { 0 } else { self.prng.index(depth) };
            let index = depth - 1 - out;
            if self.prng.chance(50) {
                self.loops[index].left_early = true;
                let frame = self.loops[index].clone();
                let args: Vec<Value> = frame.exit_types.iter().map(|ty| self.pick(*ty)).collect();
                self.jump(frame.exit, &args);
            } else {
                self.latch(index, false);
            }
        } else if self.prng.chance(25) {
            let kind = self.prng.pick(&[TrapKind::Unreachable, TrapKind::User(7)]);
            // No number is drawn, so that the rest of the program stays.
            let latest = |ty: Type| self.scope.of(ty).last().copied();
            self.trap(kind, latest(Type::I64).or(latest(Type::I32)));
        } else {
            let results = self.results.clone();
            let values: Vec<Value> = results.into_iter().map(|ty| self.pick(ty)).collect();
            self.terminate(InstSpec::terminator(Opcode::Return, &values, Vec::new()));
        }
    }

    /// Ends the open block with a trap. A trap of the embedder has the operand, which passes must
    /// preserve like a result.
    pub(super) fn trap(&mut self, kind: TrapKind, operand: Option<Value>) {
        let operand = operand.filter(|_| matches!(kind, TrapKind::User(_)));
        self.terminate(InstSpec::trap(kind, operand));
    }

    /// A cycle with two entries. Passes do not treat it as a loop, but must preserve its meaning.
    fn irreducible(&mut self) {
        let rounds = self.prng.between(1, 4);
        if self.rounds * u64::from(rounds + 1) > super::body::MAX_ROUNDS {
            return;
        }
        self.plant(Feature::Irreducible);
        let condition = self.condition();
        let (zero, limit) = (self.constant(Type::I32, 0), self.constant(Type::I32, rounds.into()));
        let ty = self.any_type();
        let (first, second) = (self.pick(ty), self.pick(ty));
        let mark = self.scope.mark();
        let blocks = [self.builder.create_block(), self.builder.create_block()];
        let params = blocks
            .map(|b| (self.builder.append_param(b, Type::I32), self.builder.append_param(b, ty)));
        let join = self.new_join();
        self.br_if(
            condition,
            Target::new(blocks[0], &[zero, first]),
            Target::new(blocks[1], &[zero, second]),
        );
        let outer = self.rounds;
        self.rounds *= u64::from(rounds + 1);
        for (block, (counter, carried)) in [(0, params[0]), (1, params[1])] {
            self.enter_arm(blocks[block], mark);
            self.scope.push(counter, Type::I32);
            self.scope.push(carried, ty);
            let count = self.prng.between(1, 4);
            self.straight(count);
            let one = self.constant(Type::I32, 1);
            let next = self.op(Opcode::Add, Type::I32, &[counter, one]);
            let again = self.op(Opcode::Ult, Type::I32, &[next, limit]);
            let value = self.pick(ty);
            let on = self.join_target(&join);
            self.br_if(again, Target::new(blocks[1 - block], &[next, value]), on);
        }
        self.rounds = outer;
        self.enter_join(&join, mark);
    }
}
