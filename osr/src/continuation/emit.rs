//! Making the function: compensation code, and behind it the copies.

use super::entry::Plan;
use super::region::Region;
use super::{Continuation, ContinuationError};
use crate::copy::Origins;
use cranelift_entity::EntityRef;
use cranelift_entity::packed_option::PackedOption;
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::mapping::{Operand, Replay, Step};
use ir::{
    Block, Function, FunctionBuilder, Imm, Inst, InstSpec, Opcode, Point, Signature, Target, Value,
    Variable,
};
use smallvec::SmallVec;

/// Makes the function of a region.
///
/// # Errors
/// A value that is read on a way from the landing that does not define it, and not provided.
pub(super) fn emit(
    name: &str,
    plan: &Plan<'_>,
    region: &Region<'_>,
) -> Result<Continuation, ContinuationError> {
    let mut emitter = Emitter::new(name, plan, region);
    emitter.lay_out();
    emitter.compensate();
    emitter.land()?;
    for &block in &region.order {
        emitter.switch_to(block);
        emitter.copy(Some(block))?;
    }
    let continuation = emitter.finish();
    check_definitions(&continuation)?;
    Ok(continuation)
}

/// Checks that definitions dominate uses: in the version they do, but where control comes back to a
/// definition above the landing it may have come to a use before; and in code that nothing leads to
/// anything goes.
fn check_definitions(continuation: &Continuation) -> Result<(), ContinuationError> {
    let Continuation { function, origins, .. } = continuation;
    let dom = DomTree::new(function, &Cfg::new(function));
    for inst in function.all_insts() {
        for value in function.inst(inst).operands() {
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

struct Emitter<'r> {
    plan: &'r Plan<'r>,
    region: &'r Region<'r>,
    target: &'r Function,
    builder: FunctionBuilder,
    /// The parameters, and then the results of the steps that are needed.
    computed: Vec<Value>,
    /// By step: its place in `computed`, if it is needed.
    steps: Vec<Option<usize>>,
    /// What stands behind the landing, where that is a block of its own.
    rest: Option<Block>,
    /// By block of the version.
    blocks: Vec<PackedOption<Block>>,
    /// By value of the version, if it has one definition.
    values: Vec<PackedOption<Value>>,
    /// By value of the version, if it has two.
    variables: Vec<PackedOption<Variable>>,
    /// By variable.
    variable_of: Vec<Value>,
    /// By instruction, in the order they are made.
    insts: Vec<PackedOption<Inst>>,
    /// Each value provided that is needed, with its place in `computed`.
    provided: Vec<(Value, usize)>,
}

impl<'r> Emitter<'r> {
    fn new(name: &str, plan: &'r Plan<'r>, region: &'r Region<'r>) -> Emitter<'r> {
        let target = plan.target;
        let signature = Signature {
            params: plan.params.iter().copied().collect(),
            ..target.signature().clone()
        };
        Emitter {
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

    /// Makes all blocks, and those of their parameters that are needed.
    fn lay_out(&mut self) {
        let entry = self.builder.create_block();
        for ty in &self.plan.params {
            self.computed.push(self.builder.append_param(entry, *ty));
        }
        self.builder.switch_to(entry);
        if self.region.comes_back() && !self.region.lands_at_start() {
            self.rest = Some(self.builder.create_block());
        }
        for &block in &self.region.order {
            let copy = self.builder.create_block();
            self.blocks[block.index()] = copy.into();
            for &param in
                self.target.block_params(block).iter().filter(|p| self.region.is_needed(**p))
            {
                self.builder.append_param(copy, self.target.value_type(param));
            }
        }
    }

    /// Emits what compensation code computes that is needed, and its stores; gives what is provided
    /// its contents.
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
        for Replay { opcode, ty, imm, args, .. } in &entry.replays {
            let args = self.operands(args);
            self.builder.insert(InstSpec::new(*opcode, *ty, *imm, &args));
            self.insts.push(None.into());
        }
        for assign in entry.assigns.iter().filter(|a| self.region.is_provided(a.value)) {
            let place = self.place(assign.from);
            self.provided.push((assign.value, place));
            if self.region.has_two_definitions(assign.value) {
                let variable = self.builder.declare_var(self.target.value_type(assign.value));
                self.variables[assign.value.index()] = variable.into();
                self.variable_of.push(assign.value);
            }
            self.define(assign.value, self.computed[place]);
        }
    }

    /// Gives every step that is needed some place. Steps read earlier ones.
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

    /// The place of an operand in `computed`.
    fn place(&self, operand: Operand) -> usize {
        match operand {
            Operand::Source(value) => self.plan.param(value).expect("the entry was checked"),
            Operand::Step(index) => {
                self.steps[index as usize].expect("what a needed step reads is needed")
            }
        }
    }

    fn operands(&self, operands: &[Operand]) -> SmallVec<[Value; 3]> {
        operands.iter().map(|operand| self.computed[self.place(*operand)]).collect()
    }

    /// Goes on where the entry lands.
    fn land(&mut self) -> Result<(), ContinuationError> {
        let region = self.region;
        if region.lands_at_start() {
            let params =
                self.target.block_params(region.block).iter().filter(|p| region.is_needed(**p));
            let args: SmallVec<[Value; 8]> =
                params.map(|p| self.read(*p)).collect::<Result<_, _>>()?;
            let block = self.blocks[region.block.index()].expect("control comes back to it");
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

    /// Goes on with a block of the version, its parameters bound.
    fn switch_to(&mut self, block: Block) {
        let copy = self.blocks[block.index()].expect("it was laid out");
        self.builder.switch_to(copy);
        let params = self.target.block_params(block).iter().filter(|p| self.region.is_needed(**p));
        for (index, &param) in params.enumerate() {
            let value = self.builder.function().block_params(copy)[index];
            self.define(param, value);
        }
    }

    /// Copies what is needed of a block, or of what stands behind the landing.
    fn copy(&mut self, block: Option<Block>) -> Result<(), ContinuationError> {
        for inst in self.region.insts(block).filter(|i| self.region.is_kept(*i)) {
            let spec = match self.region.only_edge(inst) {
                Some(index) => {
                    let target = self.target_of(&self.target.inst(inst).targets[index])?;
                    InstSpec::terminator(Opcode::Jump, &[], vec![target])
                }
                None => self.spec(inst)?,
            };
            let copy = self.builder.insert(spec);
            self.insts.push(inst.into());
            for (index, &result) in self.target.inst(inst).results.iter().enumerate() {
                let value = self.builder.function().inst(copy).results[index];
                self.define(result, value);
            }
        }
        if let Some(block) =
            block.filter(|b| *b == self.region.block && !self.region.lands_at_start())
        {
            let rest = self
                .rest
                .unwrap_or_else(|| panic!("continuation: {block} is come back to, and not split"));
            self.builder.jump(rest, &[]);
            self.insts.push(None.into());
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
        Ok(Target { block: self.blocks[target.block.index()].expect("control comes there"), args })
    }

    fn define(&mut self, value: Value, copy: Value) {
        match self.variables[value.index()].expand() {
            Some(variable) => self.builder.def_var(variable, copy),
            None => self.values[value.index()] = copy.into(),
        }
    }

    /// What holds a value of the version where code is added.
    ///
    /// # Errors
    /// When nothing does yet: its definition, which comes first in reverse postorder, does not
    /// dominate the use.
    fn read(&mut self, value: Value) -> Result<Value, ContinuationError> {
        match self.variables[value.index()].expand() {
            Some(variable) => Ok(self.builder.use_var(variable)),
            None => {
                self.values[value.index()].expand().ok_or(ContinuationError::NotProvided(value))
            }
        }
    }

    /// Finishes the function, and finds out what its ids are copies of: they may all be new.
    fn finish(self) -> Continuation {
        let steps = self.computed.len() - self.plan.params.len();
        let (function, made) = self
            .builder
            .finish_with_params()
            .expect("every block of a version ends in a terminator");
        let entry = function.entry();
        let results = function
            .block_insts(entry)
            .take(steps)
            .flat_map(|i| function.inst(i).results.iter().copied());
        let computed: Vec<Value> =
            function.block_params(entry).iter().copied().chain(results).collect();
        let mut origins = Origins::default();
        for (copy, of) in function.all_insts().zip(&self.insts) {
            if let Some(of) = of.expand() {
                origins.set(&function, copy, (self.target, of));
            }
        }
        let blocks = function.blocks().skip(1 + usize::from(self.rest.is_some()));
        for (copy, block) in blocks.zip(&self.region.order) {
            let params =
                self.target.block_params(*block).iter().filter(|p| self.region.is_needed(**p));
            // Those made for variables come behind the others.
            for (copy, of) in function.block_params(copy).iter().zip(params) {
                origins.set_value(*copy, *of);
            }
        }
        for (param, variable) in made {
            origins.set_value(param, self.variable_of[variable.index()]);
        }
        let provided: Vec<(Value, Value)> =
            self.provided.iter().map(|(of, place)| (*of, computed[*place])).collect();
        Continuation { function, origins, provided }
    }
}
