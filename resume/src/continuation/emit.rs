//! Emits the function of a continuation: compensation code, followed by the copied region.

use super::entry::PlannedEntry;
use super::region::CopiedRegion;
use super::{Continuation, ContinuationError};
use crate::claim::Draft;
use crate::copy::Origins;
use cranelift_entity::EntityRef;
use cranelift_entity::packed_option::PackedOption;
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::{
    Block, FinishedFunction, FrameState, FrameStates, Function, FunctionBuilder, Imm, Inst,
    InstSpec, Opcode, Point, Signature, Target, Value, Variable,
};
use smallvec::SmallVec;
use transition::mapping::{Operand, Replay, Step};

/// Emits the function of a region.
///
/// # Errors
/// [`ContinuationError::NotProvided`] if the entry does not provide a value that some path from the
/// landing point reads before a definition.
pub(super) fn emit(
    name: &str,
    plan: &PlannedEntry<'_>,
    region: &CopiedRegion<'_>,
) -> Result<Continuation, ContinuationError> {
    let mut emitter = ContinuationEmitter::new(name, plan, region);
    emitter.lay_out();
    emitter.compensate();
    // Before the copies: they read the values that compensation code and the code behind the
    // landing point define.
    emitter.land()?;
    for &block in &region.order {
        emitter.switch_to(block);
        emitter.copy(Some(block))?;
    }
    let continuation = emitter.finish();
    check_definitions(&continuation)?;
    Ok(continuation)
}

/// Checks that definitions dominate uses, as they do in the reachable code of the version. In the
/// continuation, a path from the landing point may reach a use before a loop reaches the definition
/// above it. In unreachable code of the version, definitions need not dominate uses, so an entry
/// that lands there may be rejected.
fn check_definitions(continuation: &Continuation) -> Result<(), ContinuationError> {
    let Continuation { function, origins, taken_out, .. } = continuation;
    let dom = DomTree::new(function, &Cfg::new(function));
    for inst in function.all_insts() {
        let state = taken_out.get(Point::before(inst));
        let named = state.into_iter().flat_map(FrameState::values);
        for value in function.inst(inst).operands().chain(named) {
            let origin = origins
                .value(value)
                .filter(|_| !dom.available_at(function, value, Point::before(inst)));
            if let Some(origin) = origin {
                return Err(ContinuationError::NotProvided(origin));
            }
        }
    }
    Ok(())
}

struct ContinuationEmitter<'r> {
    plan: &'r PlannedEntry<'r>,
    region: &'r CopiedRegion<'r>,
    target: &'r Function,
    builder: FunctionBuilder,
    /// The parameters, followed by the results of the steps that are needed.
    computed: Vec<Value>,
    /// By step: its index in `computed`, if the step is needed.
    steps: Vec<Option<usize>>,
    /// The block for the code behind the landing point, if that code needs a block of its own.
    rest: Option<Block>,
    /// By block of the version: its copy.
    blocks: Vec<PackedOption<Block>>,
    /// By value of the version with one definition: the copy.
    values: Vec<PackedOption<Value>>,
    /// By value of the version with two definitions: the builder's variable for it.
    variables: Vec<PackedOption<Variable>>,
    /// By variable: the value of the version.
    variable_of: Vec<Value>,
    /// By instruction of the function, in the order of creation: its source.
    insts: Vec<PackedOption<Inst>>,
    /// Each value provided that is needed, with its index in `computed`.
    provided: Vec<(Value, usize)>,
}

impl<'r> ContinuationEmitter<'r> {
    fn new(
        name: &str,
        plan: &'r PlannedEntry<'r>,
        region: &'r CopiedRegion<'r>,
    ) -> ContinuationEmitter<'r> {
        let target = plan.target;
        let signature = Signature {
            params: plan.params.iter().copied().collect(),
            ..target.signature().clone()
        };
        ContinuationEmitter {
            plan,
            region,
            target,
            builder: FunctionBuilder::new(name, signature),
            computed: Vec::new(),
            steps: vec![None; plan.entry.steps.len()],
            rest: None,
            blocks: vec![None.into(); target.block_bound()],
            values: vec![None.into(); target.value_bound()],
            variables: vec![None.into(); target.value_bound()],
            variable_of: Vec::new(),
            insts: Vec::new(),
            provided: Vec::new(),
        }
    }

    /// Creates all blocks, and their parameters that are needed.
    fn lay_out(&mut self) {
        let entry = self.builder.create_block();
        for ty in &self.plan.params {
            self.computed.push(self.builder.append_param(entry, *ty));
        }
        self.builder.switch_to(entry);
        // The entry block jumps to this block, and so does the copy of the upper part. If control
        // does not come back, the entry block itself continues behind the landing point.
        if self.region.comes_back() && !self.region.lands_at_start() {
            let rest = self.builder.create_block();
            if self.target.is_cold(self.region.block) {
                self.builder.mark_cold(rest);
            }
            self.rest = Some(rest);
        }
        for &block in &self.region.order {
            let copy = self.builder.create_block();
            self.blocks[block.index()] = copy.into();
            if self.target.is_cold(block) {
                self.builder.mark_cold(copy);
            }
            for &param in
                self.target.block_params(block).iter().filter(|p| self.region.is_needed(**p))
            {
                self.builder.append_param(copy, self.target.value_type(param));
            }
        }
    }

    /// Emits the steps that are needed and the replayed stores, and defines the values provided.
    fn compensate(&mut self) {
        let entry = self.plan.entry;
        self.mark_steps();
        for (index, step) in entry.steps.iter().enumerate() {
            if self.steps[index].is_none() {
                continue;
            }
            let args = self.operands(&step.args);
            let Step { opcode, ty, .. } = *step;
            let imm = if opcode == Opcode::Const { Imm::Bits(step.bits) } else { Imm::None };
            let result = self.builder.insert_value(InstSpec::new(opcode, ty, imm, &args));
            self.insts.push(None.into());
            self.steps[index] = Some(self.computed.len());
            self.computed.push(result);
        }
        // Replayed stores read the results of steps, so they stand behind them. Copied code may
        // load the stored values, so the stores precede it.
        for Replay { opcode, ty, imm, args, .. } in &entry.replays {
            let args = self.operands(args);
            self.builder.insert(InstSpec::new(*opcode, *ty, *imm, &args));
            self.insts.push(None.into());
        }
        for assign in entry.assigns.iter().filter(|a| self.region.is_provided(a.value)) {
            let place = self.place(assign.from);
            self.provided.push((assign.value, place));
            // The copied code defines the value again. The builder joins the two definitions with
            // parameters, at loop headers and wherever else they meet.
            if self.region.has_two_definitions(assign.value) {
                let variable = self.builder.declare_var(self.target.value_type(assign.value));
                self.variables[assign.value.index()] = variable.into();
                self.variable_of.push(assign.value);
            }
            self.define(assign.value, self.computed[place]);
        }
    }

    /// Marks the steps that are needed with a preliminary index. Steps read earlier steps, so one
    /// walk from the last to the first finds all.
    fn mark_steps(&mut self) {
        let entry = self.plan.entry;
        let read = entry.replays.iter().flat_map(|r| &r.args).copied();
        let provided =
            entry.assigns.iter().filter(|a| self.region.is_provided(a.value)).map(|a| a.from);
        for operand in read.chain(provided) {
            if let Operand::Step(index) = operand {
                self.steps[index as usize] = Some(0);
            }
        }
        for (index, step) in entry.steps.iter().enumerate().rev() {
            if self.steps[index].is_none() {
                continue;
            }
            for arg in &step.args {
                if let Operand::Step(index) = arg {
                    self.steps[*index as usize] = Some(0);
                }
            }
        }
    }

    /// The index of an operand in `computed`.
    fn place(&self, operand: Operand) -> usize {
        match operand {
            Operand::Source(value) => self.plan.param(value).expect("the entry was checked"),
            Operand::Step(index) => {
                self.steps[index as usize].expect("operands of needed steps are needed")
            }
        }
    }

    fn operands(&self, operands: &[Operand]) -> SmallVec<[Value; 3]> {
        operands.iter().map(|operand| self.computed[self.place(*operand)]).collect()
    }

    /// Continues at the landing point.
    fn land(&mut self) -> Result<(), ContinuationError> {
        let region = self.region;
        self.note_taken_out(region.landing)?;
        // The landing point is one more edge into a block that has a copy as a whole; its
        // parameters receive the values provided.
        if region.lands_at_start() {
            let params =
                self.target.block_params(region.block).iter().filter(|p| region.is_needed(**p));
            let args: SmallVec<[Value; 8]> =
                params.map(|p| self.read(*p)).collect::<Result<_, _>>()?;
            let block = self.blocks[region.block.index()].expect("control returns to it");
            self.builder.jump(block, &args);
            self.insts.push(None.into());
            return Ok(());
        }
        if let Some(rest) = self.rest {
            self.builder.jump(rest, &[]);
            self.insts.push(None.into());
            self.builder.switch_to(rest);
        }
        self.copy(None)
    }

    /// Continues with the copy of a block, whose parameters define values.
    fn switch_to(&mut self, block: Block) {
        let copy = self.blocks[block.index()].expect("it was laid out");
        self.builder.switch_to(copy);
        let params = self.target.block_params(block).iter().filter(|p| self.region.is_needed(**p));
        for (index, &param) in params.enumerate() {
            let value = self.builder.function().block_params(copy)[index];
            self.define(param, value);
        }
    }

    /// Copies the instructions of a block that are needed. `None` stands for the code behind the
    /// landing point.
    fn copy(&mut self, block: Option<Block>) -> Result<(), ContinuationError> {
        for inst in self.region.insts(block).filter(|i| self.region.is_kept(*i)) {
            // A branch that constants decide becomes a jump: the other edge leads to code that is
            // not copied.
            let spec = match self.region.only_edge(inst) {
                Some(index) => {
                    let target = self.target_of(&self.target.inst(inst).targets[index])?;
                    InstSpec::terminator(Opcode::Jump, &[], vec![target])
                }
                None => self.spec(inst)?,
            };
            self.note_taken_out(inst)?;
            let copy = self.builder.insert(spec);
            self.insts.push(inst.into());
            for (index, &result) in self.target.inst(inst).results.iter().enumerate() {
                let value = self.builder.function().inst(copy).results[index];
                self.define(result, value);
            }
        }
        // The block was split at the landing point. Its upper part ends here and continues in the
        // lower part, which `land` has copied.
        if let Some(block) =
            block.filter(|b| *b == self.region.block && !self.region.lands_at_start())
        {
            let rest = self
                .rest
                .unwrap_or_else(|| panic!("continuation: the landing block {block} is not split"));
            self.builder.jump(rest, &[]);
            self.insts.push(None.into());
        }
        Ok(())
    }

    /// Notes which values hold those that runs take out of the code before an instruction of the
    /// version. Without the note, the builder would drop parameters that nothing else reads
    /// (`a_row_keeps_the_values_that_a_frame_state_names`).
    fn note_taken_out(&mut self, inst: Inst) -> Result<(), ContinuationError> {
        if let Some(values) = self.region.taken_out(inst) {
            let held: Vec<Value> =
                values.into_iter().map(|value| self.read(value)).collect::<Result<_, _>>()?;
            self.builder.frame_state(FrameState::of_values(0, inst.as_u32(), (0..).zip(held)));
        }
        Ok(())
    }

    fn spec(&mut self, inst: Inst) -> Result<InstSpec, ContinuationError> {
        let data = self.target.inst(inst);
        let args = data.args.iter().map(|v| self.read(*v)).collect::<Result<_, _>>()?;
        let targets = data.targets.iter().map(|t| self.target_of(t)).collect::<Result<_, _>>()?;
        let result_types = data.results.iter().map(|v| self.target.value_type(*v)).collect();
        Ok(InstSpec {
            opcode: data.opcode,
            ty: data.ty,
            imm: data.imm,
            args,
            result_types,
            targets,
        })
    }

    fn target_of(&mut self, target: &Target) -> Result<Target, ContinuationError> {
        let params = self.target.block_params(target.block);
        let needed = target.args.iter().zip(params).filter(|(_, p)| self.region.is_needed(**p));
        let args = needed.map(|(arg, _)| self.read(*arg)).collect::<Result<_, _>>()?;
        Ok(Target { block: self.blocks[target.block.index()].expect("the block is copied"), args })
    }

    fn define(&mut self, value: Value, copy: Value) {
        match self.variables[value.index()].expand() {
            Some(variable) => self.builder.def_var(variable, copy),
            None => self.values[value.index()] = copy.into(),
        }
    }

    /// The value that holds a value of the version where code is added now.
    ///
    /// # Errors
    /// When no definition has been emitted yet. Definitions come first in reverse postorder, so in
    /// this case no definition dominates the use.
    fn read(&mut self, value: Value) -> Result<Value, ContinuationError> {
        match self.variables[value.index()].expand() {
            Some(variable) => Ok(self.builder.use_var(variable)),
            None => {
                self.values[value.index()].expand().ok_or(ContinuationError::NotProvided(value))
            }
        }
    }

    /// Finishes the function and finds the sources of its instructions and values.
    /// The builder may give all of them new ids, so instructions are matched by the order
    /// of creation, which is the layout order.
    fn finish(self) -> Continuation {
        let steps = self.computed.len() - self.plan.params.len();
        let FinishedFunction { function, params: made, states, .. } =
            self.builder.finish().expect("every block of a version ends in a terminator");
        let entry = function.entry();
        // Steps are the first instructions of the entry block, and have one result each.
        let results = function
            .block_insts(entry)
            .take(steps)
            .flat_map(|i| function.inst(i).results.iter().copied());
        let computed: Vec<Value> =
            function.block_params(entry).iter().copied().chain(results).collect();
        let mut origins = Origins::default();
        let steps = (0..).zip(&self.steps).filter(|(_, s)| s.is_some()).map(|(i, _)| i);
        let mut draft = Draft { steps: steps.collect(), ..Draft::default() };
        for (copy, of) in function.all_insts().zip(&self.insts) {
            if let Some(of) = of.expand() {
                origins.set(&function, copy, self.target, of);
                draft.insts.insert(copy, of);
            }
        }
        let mut blocks = function.blocks().skip(1);
        if self.rest.is_some() {
            let rest = blocks.next().expect("it was laid out");
            draft.blocks.insert(rest, (0, self.region.landing));
        }
        for (copy, block) in blocks.zip(&self.region.order) {
            draft.blocks.insert(copy, (0, self.target.first_inst(*block)));
            let params =
                self.target.block_params(*block).iter().filter(|p| self.region.is_needed(**p));
            // Parameters made for variables come behind the others.
            for (copy, of) in function.block_params(copy).iter().zip(params) {
                origins.set_value(*copy, *of);
                draft.params.insert(*copy, (0, *of));
            }
        }
        for (param, variable) in made {
            let of = self.variable_of[variable.index()];
            origins.set_value(param, of);
            draft.params.insert(param, (0, of));
        }
        let provided: Vec<(Value, Value)> =
            self.provided.iter().map(|(of, place)| (*of, computed[*place])).collect();
        let start = provided.iter().map(|(of, value)| ((0, *of), *value)).collect();
        // Without the states that the builder has repeated in front of jumps.
        let mut taken_out = FrameStates::new();
        states.noted().for_each(|(at, state)| taken_out.set(at, state.clone()));
        let claim = draft.clone().claim(&function, &[self.target], start, &taken_out);
        let copied = Default::default();
        Continuation { function, origins, copied, claim, draft, provided, taken_out }
    }
}
