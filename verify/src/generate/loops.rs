//! Loops that a counter bounds, with the test in the header or at the latches, and one or more
//! exits and latches.

use super::body::{Carried, GeneratedBody, LoopFrame, MAX_ROUNDS, Next};
use super::feature::Feature;
use super::scope::ScopeMark;
use ir::{Block, Imm, InstSpec, Opcode, Target, Type, Value};

impl GeneratedBody<'_> {
    /// A loop of at most four rounds.
    ///
    /// Its counter runs from zero to a limit, or from the limit to zero. The limit is a constant or
    /// `x & 3`. A loop with the test at its latches runs at least once, so its limit is not zero.
    pub(super) fn counted_loop(&mut self, depth: u32) {
        let rounds = self.prng.between(2, 4);
        if self.rounds * u64::from(rounds.max(3) + 1) > MAX_ROUNDS {
            return;
        }
        self.plant(Feature::Loop);
        let counter_ty = self.prng.pick(&[Type::I32, Type::I32, Type::I32, Type::I64, Type::I8]);
        let tests_at_latch = self.prng.chance(50);
        let limit = self.limit(counter_ty, rounds, tests_at_latch);
        let outside = self.scope.mark();
        let mut frame = self.open_loop(counter_ty, limit, tests_at_latch);
        let outer_rounds = self.rounds;
        self.rounds *= u64::from(rounds.max(3) + 1);

        self.fill_header(&frame, outside);
        let header_mark = self.scope.mark();
        let exit = frame.exit;
        if !tests_at_latch {
            self.test_at_header(&frame);
        }
        self.loops.push(frame);
        self.loop_body(depth);
        self.latch(self.loops.len() - 1, true);
        frame = self.loops.pop().expect("pushed above");

        self.rounds = outer_rounds;
        // Three cases by the definitions that dominate the exit: no definition of the loop, the
        // definitions of the header, or all.
        if frame.exit_is_around {
            self.scope.rewind(outside);
        } else if !tests_at_latch || frame.left_early {
            self.scope.rewind(header_mark);
        }
        self.builder.switch_to(exit);
        let params = self.builder.function().block_params(exit).to_vec();
        for (param, ty) in params.into_iter().zip(frame.exit_types) {
            self.scope.push(param, ty);
        }
    }

    fn limit(&mut self, ty: Type, rounds: u32, at_least_one: bool) -> Value {
        if self.prng.chance(65) {
            return self.constant(ty, rounds.into());
        }
        let (raw, mask) = (self.pick(ty), self.constant(ty, 3));
        let limit = self.op(Opcode::And, ty, &[raw, mask]);
        if !at_least_one {
            return limit;
        }
        let one = self.constant(ty, 1);
        self.op(Opcode::Or, ty, &[limit, one])
    }

    /// Makes header and exit, and enters the header over one edge, or over two edges of one branch.
    fn open_loop(&mut self, counter_ty: Type, limit: Value, tests_at_latch: bool) -> LoopFrame {
        let counts_down = self.prng.chance(30);
        let start = if counts_down { limit } else { self.constant(counter_ty, 0) };
        let plan = self.plan_carried();
        let initial: Vec<Vec<Value>> = (0..2)
            .map(|_| {
                std::iter::once(start).chain(plan.iter().map(|(ty, _)| self.pick(*ty))).collect()
            })
            .collect();
        let (header, exit) = (self.builder.create_block(), self.builder.create_block());
        let counter = self.builder.append_param(header, counter_ty);
        let mut carried = Vec::new();
        for (ty, next) in plan {
            carried.push(Carried { param: self.builder.append_param(header, ty), ty, next });
        }
        let exit_types: Vec<Type> = (0..self.prng.below(3)).map(|_| self.any_type()).collect();
        for ty in &exit_types {
            self.builder.append_param(exit, *ty);
        }
        let exit_is_around = self.enter_loop(header, &initial, exit, &exit_types);
        let compare = self.prng.pick(&[Opcode::Ult, Opcode::Slt, Opcode::Ne]);
        LoopFrame {
            header,
            exit,
            exit_types,
            counter,
            counter_ty,
            limit,
            counts_down,
            compare,
            tests_at_latch,
            carried,
            left_early: false,
            exit_is_around,
        }
    }

    /// Enters a loop in one of the forms that front ends and passes make. The loop is entered by a
    /// jump, or by a branch without a preheader. The header is on one or both edges of the branch,
    /// and perhaps the exit is on the other edge. Returns whether the exit is reachable without the
    /// header.
    fn enter_loop(
        &mut self,
        header: Block,
        initial: &[Vec<Value>],
        exit: Block,
        exit_types: &[Type],
    ) -> bool {
        let way = self.prng.below(100);
        if way < 15 {
            self.terminate(jump(header, &initial[0]));
            return false;
        }
        let condition = self.comparison();
        if way < 30 {
            let around: Vec<Value> = exit_types.iter().map(|ty| self.pick(*ty)).collect();
            self.br_if(condition, Target::new(header, &initial[0]), Target::new(exit, &around));
            return true;
        }
        if way < 60 {
            self.br_if(
                condition,
                Target::new(header, &initial[0]),
                Target::new(header, &initial[1]),
            );
            return false;
        }
        let before = self.builder.create_block();
        self.br_if(condition, Target::new(header, &initial[0]), Target::new(before, &[]));
        self.builder.switch_to(before);
        self.terminate(jump(header, &initial[1]));
        false
    }

    /// The types of the loop parameters, and the arguments they receive on back edges.
    fn plan_carried(&mut self) -> Vec<(Type, Next)> {
        let mut plan = Vec::new();
        let shared = self.any_type();
        for _ in 0..self.prng.between(1, 3) {
            let ty = if self.prng.chance(50) { shared } else { self.any_type() };
            let next = if self.wants(Feature::DeadCycle) && self.prng.chance(60) {
                self.plant(Feature::DeadCycle);
                Next::DeadCycle
            } else if self.wants(Feature::MergeOne) && self.prng.chance(60) {
                self.plant(Feature::MergeOne);
                Next::Same
            } else {
                self.prng.pick(&[Next::Any, Next::Any, Next::Sibling, Next::Accumulated])
            };
            plan.push((ty, next));
        }
        plan
    }

    /// Brings the parameters into scope, and computes loop-invariant values.
    fn fill_header(&mut self, frame: &LoopFrame, outside: ScopeMark) {
        self.builder.switch_to(frame.header);
        self.scope.push(frame.counter, frame.counter_ty);
        for item in &frame.carried {
            if item.next != Next::DeadCycle {
                self.scope.push(item.param, item.ty);
            }
        }
        for _ in 0..4 {
            if self.wants(Feature::Invariant) {
                self.invariant(outside);
            }
        }
        if self.wants(Feature::Traffic) {
            self.standing_reads();
        }
        let count = self.prng.below(4);
        self.straight(count);
    }

    /// A computation on values that were in scope outside the loop.
    fn invariant(&mut self, outside: ScopeMark) {
        self.plant(Feature::Invariant);
        match self.prng.below(10) {
            0 | 1 => {
                self.division(Some(outside));
            }
            2 | 3 => {
                self.load();
            }
            4 if self.wants(Feature::Hazard) => {
                self.plant(Feature::Hazard);
                let ty = self.int_type();
                let (a, b) = (self.pick_at(ty, outside), self.pick_at(ty, outside));
                self.op(Opcode::Udiv, ty, &[a, b]);
            }
            _ => {
                let ty = self.int_type();
                let (a, b) = (self.pick_at(ty, outside), self.pick_at(ty, outside));
                let opcode = self.prng.pick(&[Opcode::Add, Opcode::Mul, Opcode::Sub, Opcode::Xor]);
                self.op(opcode, ty, &[a, b]);
            }
        }
    }

    /// A condition that is true if another round follows, given the value of the counter.
    fn goes_on(&mut self, frame: &LoopFrame, counter: Value) -> Value {
        if frame.counts_down {
            let zero = self.constant(frame.counter_ty, 0);
            self.op(Opcode::Ne, frame.counter_ty, &[counter, zero])
        } else {
            self.op(frame.compare, frame.counter_ty, &[counter, frame.limit])
        }
    }

    fn exit_args(&mut self, frame: &LoopFrame) -> Vec<Value> {
        frame.exit_types.iter().map(|ty| self.pick(*ty)).collect()
    }

    /// Ends the header with a branch to the body or to the exit.
    fn test_at_header(&mut self, frame: &LoopFrame) {
        let condition = self.goes_on(frame, frame.counter);
        let body = self.builder.create_block();
        let exit = self.exit_args(frame);
        self.br_if(condition, Target::new(body, &[]), Target::new(frame.exit, &exit));
        self.builder.switch_to(body);
    }

    fn loop_body(&mut self, depth: u32) {
        if self.plants_facts() {
            self.breaking_fact();
        }
        self.segment(depth - 1);
        // Real loop bodies without memory accesses are rare.
        if self.prng.chance(25) {
            self.load();
        }
        if self.wants(Feature::Traffic) {
            self.traffic();
        }
        if self.prng.chance(15) {
            self.extra_latch();
        }
    }

    /// Splits off an arm that goes to the next round. Code continues in the other arm.
    fn extra_latch(&mut self) {
        let condition = self.condition();
        let (latch, on) = (self.builder.create_block(), self.builder.create_block());
        self.br_if(condition, Target::new(latch, &[]), Target::new(on, &[]));
        let mark = self.scope.mark();
        self.builder.switch_to(latch);
        let count = self.prng.between(1, 2);
        self.straight(count);
        self.latch(self.loops.len() - 1, false);
        self.scope.rewind(mark);
        self.builder.switch_to(on);
    }

    /// Ends the open block with a back edge of the loop with this index, taken if its counter
    /// allows another round. `regular` is `true` for the latch at the end of the body, and `false`
    /// for additional latches.
    pub(super) fn latch(&mut self, index: usize, regular: bool) {
        let frame = self.loops[index].clone();
        let one = self.constant(frame.counter_ty, 1);
        let step = if frame.counts_down { Opcode::Sub } else { Opcode::Add };
        let counter = self.op(step, frame.counter_ty, &[frame.counter, one]);
        let again = self.next_round(&frame, counter);
        if frame.tests_at_latch {
            self.loops[index].left_early |= !regular;
            let condition = self.goes_on(&frame, counter);
            let exit = self.exit_args(&frame);
            self.br_if(condition, again, Target::new(frame.exit, &exit));
        } else if regular && self.prng.chance(25) {
            // Two back edges from one block.
            let condition = self.condition();
            let other = self.next_round(&frame, counter);
            self.br_if(condition, again, other);
        } else {
            self.terminate(jump(frame.header, &again.args));
        }
    }

    /// The target of a back edge, with its arguments.
    fn next_round(&mut self, frame: &LoopFrame, counter: Value) -> Target {
        let mut args = vec![counter];
        for item in &frame.carried {
            let siblings =
                frame.carried.iter().filter(|c| c.ty == item.ty && c.next != Next::DeadCycle);
            let siblings: Vec<Value> = siblings.map(|c| c.param).collect();
            args.push(match item.next {
                Next::Any => self.pick(item.ty),
                Next::Same => item.param,
                Next::Sibling => self.prng.pick(&siblings),
                Next::Accumulated => {
                    let term = self.pick(item.ty);
                    let opcode = if item.ty.is_int() { Opcode::Add } else { Opcode::Fadd };
                    self.op(opcode, item.ty, &[item.param, term])
                }
                Next::DeadCycle => {
                    let opcode = if item.ty.is_int() { Opcode::Xor } else { Opcode::Fmul };
                    self.hidden(InstSpec::new(
                        opcode,
                        item.ty,
                        Imm::None,
                        &[item.param, item.param],
                    ))
                }
            });
        }
        Target::new(frame.header, &args)
    }
}

fn jump(block: Block, args: &[Value]) -> InstSpec {
    InstSpec::terminator(Opcode::Jump, &[], vec![Target::new(block, args)])
}
