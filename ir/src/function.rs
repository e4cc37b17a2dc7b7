//! One version of a function, in SSA form with block parameters.
//!
//! The builder creates a `Function` ([`crate::builder`]; the parser and the WebAssembly importer
//! use it too). After that, only the editor changes it ([`crate::edit`]): every field is private,
//! and no method returns a `&mut`. Accessors read the function. Iteration follows the layout order,
//! never a hash order.

use crate::bag::Bag;
use crate::entity::{Block, Inst, Value};
use crate::eval::is_safe_divisor;
use crate::family::Family;
use crate::inst::{Edge, InstData, Target};
use crate::layout::Layout;
use crate::rules::declared::ModuleRules;
use crate::sparse::Sparse;
use crate::types::{Signature, Type};
use cranelift_entity::packed_option::PackedOption;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// The definition of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueDef {
    /// The parameter of a block with this index.
    Param(Block, u32),
    /// The result of an instruction with this index.
    Result(Inst, u32),
}

#[derive(Clone, Debug)]
pub(crate) struct ValueData {
    pub(crate) ty: Type,
    pub(crate) def: ValueDef,
    /// The instructions that use the value, once for each operand that is this value. The order has
    /// no meaning.
    pub(crate) users: Bag<Inst>,
}

/// An instruction and its position in the instruction list of its block.
#[derive(Clone, Debug)]
pub(crate) struct InstNode {
    pub(crate) data: InstData,
    pub(crate) block: Block,
    pub(crate) prev: PackedOption<Inst>,
    pub(crate) next: PackedOption<Inst>,
    /// The number increases along the block, so one comparison decides the order of two
    /// instructions.
    pub(crate) order: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct BlockData {
    pub(crate) params: Vec<Value>,
    pub(crate) first: Option<Inst>,
    pub(crate) last: Option<Inst>,
    /// The edges that lead to this block.
    pub(crate) preds: Bag<Edge>,
}

/// One version of a function. See the module documentation.
///
/// A clone is a second copy of the version; both copies belong to the same family.
#[derive(Clone, Debug)]
pub struct Function {
    pub(crate) name: String,
    pub(crate) signature: Signature,
    pub(crate) family: Family,
    pub(crate) stamp: u64,
    pub(crate) history: u64,
    pub(crate) layout: Layout,
    pub(crate) blocks: Sparse<Block, BlockData>,
    pub(crate) insts: Sparse<Inst, InstNode>,
    pub(crate) values: Sparse<Value, ValueData>,
    pub(crate) value_names: BTreeMap<Value, Box<str>>,
    pub(crate) block_names: BTreeMap<Block, Box<str>>,
    /// The blocks marked as cold. A hint for code generation, without a meaning.
    pub(crate) cold: BTreeSet<Block>,
    /// The declared rules, if any.
    pub(crate) rules: Option<Arc<ModuleRules>>,
}

impl Function {
    /// A function without blocks, for the builder.
    pub(crate) fn empty(name: &str, signature: Signature, family: Family) -> Function {
        Function {
            name: name.to_owned(),
            signature,
            family,
            stamp: 0,
            history: 0,
            layout: Layout::default(),
            blocks: Sparse::new(),
            insts: Sparse::new(),
            values: Sparse::new(),
            value_names: BTreeMap::new(),
            block_names: BTreeMap::new(),
            cold: BTreeSet::new(),
            rules: None,
        }
    }

    /// The name, unique in its module.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The parameter types and the result types.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// The id space that all versions of this function share.
    pub fn family(&self) -> &Family {
        &self.family
    }

    /// The number of actions between the base of the family and this version. An analysis keeps the
    /// stamp of the function that it was computed on.
    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// A digest of the base of the family and of every action between the base and this version, in
    /// order. Two versions of one family with equal digests are equal. The digest is meaningful
    /// only within one build of the program.
    pub fn history(&self) -> u64 {
        self.history
    }

    /// The rules that the embedder declares for all versions of the function, beside
    /// [`crate::rules::RULES`].
    pub fn rules(&self) -> Option<&Arc<ModuleRules>> {
        self.rules.as_ref()
    }

    /// The base with declared rules: the versions made from it have them, too. The rules are part
    /// of the history, so a mapping between versions with them fits no versions without them.
    /// [`crate::Module::use_rules`] gives them to all functions of a module. Cost: linear in the
    /// function and the text of the rules.
    ///
    /// # Errors
    /// The function, if it is no base: its log would not lead to the result.
    pub fn with_rules(mut self, rules: &Arc<ModuleRules>) -> Result<Function, Box<Function>> {
        if self.stamp != 0 {
            return Err(Box::new(self));
        }
        self.rules = Some(Arc::clone(rules));
        self.start_history();
        Ok(self)
    }

    /// Starts the history: the builder calls it on a finished base. Cost: linear in the function.
    pub(crate) fn start_history(&mut self) {
        let mut hasher = DefaultHasher::new();
        (&self.name, &self.signature).hash(&mut hasher);
        for block in self.layout.iter() {
            block.hash(&mut hasher);
            for param in self.block_params(block) {
                (param, self.value_type(*param)).hash(&mut hasher);
            }
            for inst in self.block_insts(block) {
                (inst, self.inst(inst)).hash(&mut hasher);
                // An instruction does not contain the result types of a call. The module declares
                // them, and two modules may differ (`versions_are_told_apart_by_what_they_call`).
                for result in &self.inst(inst).results {
                    self.value_type(*result).hash(&mut hasher);
                }
            }
        }
        for content in self.rules.iter().flat_map(|rules| rules.contents()) {
            content.hash(&mut hasher);
        }
        self.history = hasher.finish();
    }

    /// The block where execution starts. Its parameters are the arguments; no edge leads to it.
    ///
    /// # Panics
    /// When the function has no block. Only a function still in the builder has no block.
    pub fn entry(&self) -> Block {
        self.layout.first().expect("a built function has an entry block")
    }

    /// The blocks in layout order, the entry first.
    pub fn blocks(&self) -> impl DoubleEndedIterator<Item = Block> + ExactSizeIterator + '_ {
        self.layout.iter()
    }

    /// The number of blocks.
    pub fn block_count(&self) -> usize {
        self.layout.len()
    }

    /// The number of instructions, terminators included. Cost: linear in the bound of instruction
    /// ids.
    pub fn inst_count(&self) -> usize {
        self.insts.keys().count()
    }

    /// Every instruction, block by block in layout order.
    pub fn all_insts(&self) -> impl Iterator<Item = Inst> + '_ {
        self.blocks().flat_map(move |b| self.block_insts(b))
    }

    /// An exclusive upper bound of the instruction indices in this version, for dense tables.
    #[inline]
    pub fn inst_bound(&self) -> usize {
        self.insts.bound()
    }

    /// An exclusive upper bound of the value indices in this version, for dense tables.
    #[inline]
    pub fn value_bound(&self) -> usize {
        self.values.bound()
    }

    /// An exclusive upper bound of the block indices in this version, for dense tables.
    #[inline]
    pub fn block_bound(&self) -> usize {
        self.blocks.bound()
    }

    /// Whether this version has the instruction.
    #[inline]
    pub fn has_inst(&self, inst: Inst) -> bool {
        self.insts.get(inst).is_some()
    }

    /// Whether this version has the value.
    #[inline]
    pub fn has_value(&self, value: Value) -> bool {
        self.values.get(value).is_some()
    }

    /// Whether this version has the block.
    #[inline]
    pub fn has_block(&self, block: Block) -> bool {
        self.blocks.get(block).is_some()
    }

    /// The opcode, operands, results and targets of an instruction.
    ///
    /// # Panics
    /// When this version lacks the instruction.
    #[inline]
    pub fn inst(&self, inst: Inst) -> &InstData {
        &self.node(inst).data
    }

    /// The block that contains an instruction.
    ///
    /// # Panics
    /// When this version lacks the instruction.
    #[inline]
    pub fn inst_block(&self, inst: Inst) -> Block {
        self.node(inst).block
    }

    /// The next instruction in the same block; `None` for the terminator.
    ///
    /// # Panics
    /// When this version lacks the instruction.
    #[inline]
    pub fn next_inst(&self, inst: Inst) -> Option<Inst> {
        self.node(inst).next.expand()
    }

    /// The previous instruction in the same block; `None` for the first.
    ///
    /// # Panics
    /// When this version lacks the instruction.
    #[inline]
    pub fn prev_inst(&self, inst: Inst) -> Option<Inst> {
        self.node(inst).prev.expand()
    }

    /// Whether `first` stands strictly before `second` in their common block. Cost: constant.
    ///
    /// # Panics
    /// When this version lacks one of the instructions, or they stand in different blocks.
    #[inline]
    pub fn stands_before(&self, first: Inst, second: Inst) -> bool {
        let (a, b) = (self.node(first), self.node(second));
        assert!(a.block == b.block, "{first} and {second} are in different blocks");
        a.order < b.order
    }

    /// The instructions of a block, the terminator last.
    ///
    /// # Panics
    /// When this version lacks the block.
    #[inline]
    pub fn block_insts(&self, block: Block) -> BlockInsts<'_> {
        BlockInsts { function: self, next: self.block(block).first }
    }

    /// The first instruction of a block. It is the terminator if the block has no other
    /// instruction.
    ///
    /// # Panics
    /// When this version lacks the block.
    #[inline]
    pub fn first_inst(&self, block: Block) -> Inst {
        self.block(block).first.expect("a built block has a terminator")
    }

    /// The terminator of a block.
    ///
    /// # Panics
    /// When this version lacks the block.
    #[inline]
    pub fn terminator(&self, block: Block) -> Inst {
        self.block(block).last.expect("a built block has a terminator")
    }

    /// The parameters of a block.
    ///
    /// # Panics
    /// When this version lacks the block.
    #[inline]
    pub fn block_params(&self, block: Block) -> &[Value] {
        &self.block(block).params
    }

    /// The function's arguments: the parameters of the entry block.
    #[inline]
    pub fn arguments(&self) -> &[Value] {
        self.block_params(self.entry())
    }

    /// The edges that lead to a block. Their order is deterministic but has no meaning.
    ///
    /// # Panics
    /// When this version lacks the block.
    #[inline]
    pub fn predecessors(&self, block: Block) -> &[Edge] {
        self.block(block).preds.as_slice()
    }

    /// The targets of a block's terminator.
    ///
    /// # Panics
    /// When this version lacks the block.
    #[inline]
    pub fn successors(&self, block: Block) -> &[Target] {
        &self.inst(self.terminator(block)).targets
    }

    /// The target of an edge.
    ///
    /// # Panics
    /// When this version lacks the edge.
    #[inline]
    pub fn target(&self, edge: Edge) -> &Target {
        &self.inst(edge.inst).targets[edge.index as usize]
    }

    /// The type of a value.
    ///
    /// # Panics
    /// When this version lacks the value.
    #[inline]
    pub fn value_type(&self, value: Value) -> Type {
        self.value(value).ty
    }

    /// The definition of a value.
    ///
    /// # Panics
    /// When this version lacks the value.
    #[inline]
    pub fn value_def(&self, value: Value) -> ValueDef {
        self.value(value).def
    }

    /// The instruction that computes a value; `None` for a block parameter.
    ///
    /// # Panics
    /// When this version lacks the value.
    #[inline]
    pub fn defining_inst(&self, value: Value) -> Option<Inst> {
        match self.value_def(value) {
            ValueDef::Result(inst, _) => Some(inst),
            ValueDef::Param(..) => None,
        }
    }

    /// The block that contains the definition of a value.
    ///
    /// # Panics
    /// When this version lacks the value.
    #[inline]
    pub fn value_block(&self, value: Value) -> Block {
        match self.value_def(value) {
            ValueDef::Result(inst, _) => self.inst_block(inst),
            ValueDef::Param(block, _) => block,
        }
    }

    /// The bits of a value that a constant instruction defines; `None` for any other value.
    ///
    /// # Panics
    /// When this version lacks the value.
    pub fn constant(&self, value: Value) -> Option<u64> {
        self.inst(self.defining_inst(value)?).constant()
    }

    /// The instructions that use a value, once for each operand that is this value. The order has
    /// no meaning.
    ///
    /// # Panics
    /// When this version lacks the value.
    pub fn users(&self, value: Value) -> &[Inst] {
        self.value(value).users.as_slice()
    }

    /// The given name of a value in the text form, if any.
    pub fn value_name(&self, value: Value) -> Option<&str> {
        self.value_names.get(&value).map(|n| &**n)
    }

    /// The given name of a block in the text form, if any.
    pub fn block_name(&self, block: Block) -> Option<&str> {
        self.block_names.get(&block).map(|n| &**n)
    }

    /// Whether a block is marked as cold ([`crate::FunctionBuilder::mark_cold`]). Cost:
    /// logarithmic.
    pub fn is_cold(&self, block: Block) -> bool {
        self.cold.contains(&block)
    }

    /// Whether the instruction may trap with its current operands. It may if its opcode can trap
    /// and no constant operand excludes the trap. A constant divisor excludes it unless the divisor
    /// is zero; the signed quotient also needs a divisor other than -1.
    ///
    /// # Panics
    /// When this version lacks the instruction.
    pub fn may_trap(&self, inst: Inst) -> bool {
        let data = self.inst(inst);
        let divisor = data.args.get(1).and_then(|v| self.constant(*v));
        data.opcode.can_trap() && !is_safe_divisor(data.opcode, data.ty, divisor)
    }

    /// Whether two versions are the same: equal declared rules, equal blocks in equal order, with
    /// equal instructions and equal ids, and equal marks of cold blocks. Names do not count: they
    /// only affect printing.
    ///
    /// # Errors
    /// A sentence that names the first difference found.
    pub fn same_as(&self, other: &Function) -> Result<(), String> {
        if self.signature != other.signature {
            return Err("the signatures differ".to_owned());
        }
        if self.rules != other.rules {
            return Err("the declared rules differ".to_owned());
        }
        if !self.blocks().eq(other.blocks()) {
            return Err("the block layouts differ".to_owned());
        }
        for block in self.blocks() {
            if self.block_params(block) != other.block_params(block) {
                return Err(format!("the parameters of {block} differ"));
            }
            if self.is_cold(block) != other.is_cold(block) {
                return Err(format!("{block} is marked as cold in one version only"));
            }
            if !self.block_insts(block).eq(other.block_insts(block)) {
                return Err(format!("the instruction lists of {block} differ"));
            }
            for inst in self.block_insts(block) {
                if self.inst(inst) != other.inst(inst) {
                    return Err(format!("{inst} differs"));
                }
            }
            let values = self.block_params(block).iter().copied();
            let values = values
                .chain(self.block_insts(block).flat_map(|i| self.inst(i).results.iter().copied()));
            for value in values {
                if self.value_type(value) != other.value_type(value) {
                    return Err(format!("the type of {value} differs"));
                }
            }
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn node(&self, inst: Inst) -> &InstNode {
        self.insts.get(inst).unwrap_or_else(|| panic!("{} has no {inst}", self.name))
    }

    #[inline]
    fn block(&self, block: Block) -> &BlockData {
        self.blocks.get(block).unwrap_or_else(|| panic!("{} has no {block}", self.name))
    }

    #[inline]
    fn value(&self, value: Value) -> &ValueData {
        self.values.get(value).unwrap_or_else(|| panic!("{} has no {value}", self.name))
    }
}

/// The instructions of a block, in order.
#[derive(Clone, Debug)]
pub struct BlockInsts<'a> {
    function: &'a Function,
    next: Option<Inst>,
}

impl Iterator for BlockInsts<'_> {
    type Item = Inst;

    #[inline]
    fn next(&mut self) -> Option<Inst> {
        let inst = self.next?;
        self.next = self.function.node(inst).next.expand();
        Some(inst)
    }
}
