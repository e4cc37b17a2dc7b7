//! Certificates written by hand. A draft gives every value the obvious term, unless the test gives
//! it another.

use check::verdict::{Check, Options};
use ir::cfg::Cfg;
use ir::liveness::Liveness;
use ir::place::Place;
use ir::rules::RULES;
use ir::text::parse_module;
use ir::{Block, Effects, Function, Imm, Inst, Module, Opcode, Point, Type, Value, ValueDef};
use std::collections::{BTreeMap, BTreeSet};
use transition::certificate::{
    By, Certificate, EntryFacts, MappingFacts, NO_TERM, RangeClaim, Term, TermId, TermKind,
    VersionTerms,
};
use transition::mapping::{Assign, Entry, Mapping, Operand, Replay, Step};
use transition::{Pair, Side, VersionKey};

/// Two versions with a certificate and mappings, one of them wrong.
pub(crate) struct Wrong {
    /// The check that stops it.
    pub(crate) check: Check,
    pub(crate) what: &'static str,
    pub(crate) module: Module,
    pub(crate) versions: Pair<Function>,
    pub(crate) certificate: Certificate,
    pub(crate) mappings: Pair<Mapping>,
    pub(crate) facts: Pair<MappingFacts>,
    pub(crate) options: Options,
}

/// The versions, certificate and mappings under construction.
pub(crate) struct Draft {
    pub(crate) module: Module,
    pub(crate) versions: Pair<Function>,
    pub(crate) terms: Vec<Term>,
    named: Pair<BTreeMap<Value, TermId>>,
    memory: Pair<BTreeMap<Block, TermId>>,
    /// The terms of writes of one place, in drafts where such writes need not be anchors.
    writes: Option<Pair<BTreeMap<Inst, TermId>>>,
    leaves: BTreeMap<String, TermId>,
    pub(crate) anchors: Vec<Inst>,
    entries: Pair<Vec<(Point, Entry, EntryFacts)>>,
    /// Claims about integers of each version.
    pub(crate) ranges: Pair<Vec<RangeClaim>>,
    pub(crate) options: Options,
}

/// Declarations that every draft may use.
const DECLARATIONS: &str = r#"
import func @ask "host" "ask" (i32) -> i32
import func @tell "host" "tell" () -> ()
import func @one "host" "one" (i32) -> i32 effect(pure)
import func @other "host" "other" (i32) -> i32 effect(pure)
import func @peek "host" "peek" (i32) -> i32 effect(reads)
import func @note "host" "note" (i32) -> i32 effect(outside)
memory @m 1
memory @heap host
table @fixed 4 fixed
elem @fixed 0 [@ask, @tell, null]
table @loose 4
elem @loose 0 [@ask]
global @g: mut i32 = 0
global @h: mut i32 = 0
"#;

impl Draft {
    /// Two versions of `func @f`. Ids follow the order of the text, so an anchor has to be the
    /// instruction of the same number in both.
    pub(crate) fn new(before: &str, after: &str) -> Draft {
        let modules = Pair::new(before, after).map(|text| {
            let text = format!("{DECLARATIONS}func @f{text}");
            parse_module(&text).unwrap_or_else(|errors| panic!("{}\n{text}", errors[0]))
        });
        let defined = |m: &Module| m.defined().next().expect("@f is defined").1.clone();
        let versions = modules.as_ref().map(defined);
        let module = modules.before;
        let (named, memory, entries) = Default::default();
        let (terms, leaves, options, writes, anchors) = Default::default();
        let ranges = Pair::default();
        let mut draft = Draft {
            module,
            versions,
            terms,
            named,
            memory,
            writes,
            leaves,
            anchors,
            entries,
            ranges,
            options,
        };
        draft.anchors = draft.effects();
        draft
    }

    /// As [`Draft::new`], for the body of a function of `%x` and `%y`. Writes of one place have
    /// terms, and such writes of a single version are no anchors.
    pub(crate) fn of_writes(before: &str, after: &str) -> Draft {
        Draft::of_writes_at(Type::I32, before, after)
    }

    /// As [`Draft::of_writes`], with `%x`, `%y` and the result of another type.
    pub(crate) fn of_writes_at(ty: Type, before: &str, after: &str) -> Draft {
        let [before, after] = [before, after]
            .map(|body| format!("(%x: {ty}, %y: {ty}) -> {ty} {{\nentry:\n{body}}}\n"));
        let mut draft = Draft::new(&before, &after);
        draft.writes = Some(Default::default());
        draft
    }

    /// The effects and branches that both versions have.
    fn effects(&self) -> Vec<Inst> {
        let Pair { before: a, after: b } = &self.versions;
        let is_branch = |opcode| matches!(opcode, Opcode::Jump | Opcode::BrIf | Opcode::Switch);
        let is_call = |opcode: Opcode| opcode.is_call();
        let is_anchor = |inst: &Inst| {
            b.has_inst(*inst) && {
                let [x, y] = [a, b].map(|f| f.inst(*inst).opcode);
                !x.is_effect_free()
                    && (x == y || (is_branch(x) && is_branch(y)) || (is_call(x) && is_call(y)))
                    && (x, y) != (Opcode::Jump, Opcode::Jump)
            }
        };
        a.all_insts().filter(is_anchor).collect()
    }

    /// The value with this name.
    pub(crate) fn value(&self, side: Side, name: &str) -> Value {
        let f = &self.versions[side];
        let mut all = (0..f.value_bound() as u32).map(Value::from_u32).filter(|v| f.has_value(*v));
        all.find(|v| f.value_name(*v) == Some(name))
            .unwrap_or_else(|| panic!("there is no %{name}"))
    }

    pub(crate) fn block(&self, side: Side, name: &str) -> Block {
        let f = &self.versions[side];
        f.blocks()
            .find(|b| f.block_name(*b) == Some(name))
            .unwrap_or_else(|| panic!("there is no block {name}"))
    }

    /// The point before the instruction with this index in a block.
    pub(crate) fn at(&self, side: Side, block: &str, index: usize) -> Point {
        let f = &self.versions[side];
        let mut insts = f.block_insts(self.block(side, block));
        Point::before(insts.nth(index).expect("the block is that long"))
    }

    /// Adds a term.
    pub(crate) fn add(
        &mut self,
        kind: TermKind,
        ty: Option<Type>,
        class: Option<TermId>,
        by: By,
    ) -> TermId {
        let id = self.terms.len() as TermId;
        self.terms.push(Term { kind, ty, class: class.unwrap_or(id), by });
        id
    }

    /// The leaf with this name, added at the first use.
    pub(crate) fn leaf(&mut self, name: &str, kind: TermKind, ty: Option<Type>) -> TermId {
        if let Some(id) = self.leaves.get(name) {
            return *id;
        }
        let id = self.add(kind, ty, None, By::Itself);
        self.leaves.insert(name.to_owned(), id);
        id
    }

    /// The term of an operation on classes that is the first of its class, added at the first use.
    pub(crate) fn op(&mut self, opcode: Opcode, ty: Type, imm: Imm, args: &[TermId]) -> TermId {
        let kind = TermKind::Op { opcode, ty, imm, args: args.into() };
        let known = self.terms.iter().position(|t| t.kind == kind && t.by == By::Itself);
        known.map_or_else(
            || self.add(kind, opcode.result_type(ty), None, By::Itself),
            |id| id as TermId,
        )
    }

    pub(crate) fn constant(&mut self, ty: Type, bits: u64) -> TermId {
        self.op(Opcode::Const, ty, Imm::Bits(bits), &[])
    }

    /// A copy of a term that belongs to a class by a rule.
    pub(crate) fn by_rule(
        &mut self,
        rule: &str,
        of: TermId,
        inner: &[TermId],
        class: TermId,
        result: TermId,
    ) -> TermId {
        let rule = RULES.iter().position(|r| r.name == rule).expect("a rule") as u32;
        let (kind, ty) = (self.terms[of as usize].kind.clone(), self.terms[of as usize].ty);
        self.add(kind, ty, Some(class), By::Rule { rule, swapped: 0, inner: inner.into(), result })
    }

    /// A copy of a read or write on another memory, with the reason why it belongs to a class.
    pub(crate) fn like(&mut self, of: TermId, memory: TermId, class: TermId, by: By) -> TermId {
        let Term { mut kind, ty, .. } = self.terms[of as usize].clone();
        if let TermKind::Op { args, .. } = &mut kind {
            *args.last_mut().expect("a read or a write has the memory as its last operand") =
                memory;
        }
        self.add(kind, ty, Some(class), by)
    }

    /// A copy of a write on another memory, as the first of its class.
    #[allow(dead_code)] // the trial has no use for it, the tests do
    pub(crate) fn on(&mut self, of: TermId, memory: TermId) -> TermId {
        let TermKind::Op { opcode, ty, imm, mut args } = self.terms[of as usize].kind.clone()
        else {
            panic!("term {of} is an operation")
        };
        *args.last_mut().expect("a write has the memory as its last operand") = memory;
        self.op(opcode, ty, imm, &args)
    }

    /// Gives a value a term.
    pub(crate) fn is(&mut self, side: Side, name: &str, term: TermId) {
        let value = self.value(side, name);
        self.named[side].insert(value, term);
    }

    /// Gives the memory at the start of a block a term.
    #[allow(dead_code)] // the trial has no use for it, the tests do
    pub(crate) fn memory_is(&mut self, side: Side, block: &str, term: TermId) {
        let block = self.block(side, block);
        self.memory[side].insert(block, term);
    }

    /// Gives the write at a point a term.
    pub(crate) fn write_is(&mut self, side: Side, at: Point, term: TermId) {
        self.writes.as_mut().expect("writes are terms")[side].insert(at.inst(), term);
    }

    /// The term of the write at a point.
    pub(crate) fn write(&mut self, side: Side, at: Point) -> TermId {
        self.written(side, at.inst())
    }

    /// The term of the memory after a writing instruction.
    fn written(&mut self, side: Side, inst: Inst) -> TermId {
        let data = self.versions[side].inst(inst).clone();
        let Some(writes) = self
            .writes
            .as_ref()
            .filter(|_| Place::written(data.opcode, data.ty, &data.imm).is_some())
        else {
            return self.leaf(&format!("memory after {inst}"), TermKind::MemoryAfter(inst), None);
        };
        if let Some(term) = writes[side].get(&inst) {
            return *term;
        }
        let memory = self.memory_before(side, inst);
        let args = data.args.iter().map(|v| self.term_of(side, *v)).collect::<Vec<_>>();
        let classes =
            args.iter().chain([&memory]).map(|t| self.terms[*t as usize].class).collect::<Vec<_>>();
        let term = self.op(data.opcode, data.ty, data.imm, &classes);
        self.write_is(side, Point::before(inst), term);
        term
    }

    /// The term of the value with this name.
    pub(crate) fn term(&mut self, side: Side, name: &str) -> TermId {
        let value = self.value(side, name);
        self.term_of(side, value)
    }

    fn term_of(&mut self, side: Side, value: Value) -> TermId {
        if let Some(term) = self.named[side].get(&value) {
            return *term;
        }
        let f = &self.versions[side];
        let ty = f.value_type(value);
        let term = match f.value_def(value) {
            ValueDef::Param(block, index) if block == f.entry() => {
                self.leaf(&format!("argument {index}"), TermKind::Argument(index), Some(ty))
            }
            // Parameters with the same name share a leaf.
            ValueDef::Param(..) => {
                let name = f.value_name(value).expect("parameters are named").to_owned();
                self.leaf(&name, TermKind::Param, Some(ty))
            }
            ValueDef::Result(inst, index) => {
                let data = f.inst(inst).clone();
                if data.opcode.is_effect_free() {
                    let memory = data
                        .opcode
                        .effects()
                        .has(Effects::READS)
                        .then(|| self.memory_before(side, inst));
                    let args = data.args.iter().map(|v| self.term_of(side, *v)).collect::<Vec<_>>();
                    let classes = args.iter().map(|t| self.terms[*t as usize].class).chain(memory);
                    let classes: Vec<TermId> = classes.collect();
                    self.op(data.opcode, data.ty, data.imm, &classes)
                } else if let Imm::Assumed(bits, _) = data.imm {
                    if self.anchors.contains(&inst) {
                        self.constant(ty, bits)
                    } else {
                        self.term_of(side, data.args[0])
                    }
                } else {
                    self.leaf(
                        &format!("result {inst} {index}"),
                        TermKind::Result(inst, index),
                        Some(ty),
                    )
                }
            }
        };
        self.named[side].insert(value, term);
        term
    }

    /// The class of the memory before an instruction.
    pub(crate) fn memory_before(&mut self, side: Side, inst: Inst) -> TermId {
        let f = &self.versions[side];
        let mut at = f.prev_inst(inst);
        while let Some(before) = at {
            if f.inst(before).opcode.effects().has(Effects::WRITES) {
                let term = self.written(side, before);
                return self.terms[term as usize].class;
            }
            at = f.prev_inst(before);
        }
        let block = f.inst_block(inst);
        self.memory_at_start(side, block)
    }

    /// The memory at the start of a block: that at the end of its only predecessor, or a leaf.
    fn memory_at_start(&mut self, side: Side, block: Block) -> TermId {
        if let Some(term) = self.memory[side].get(&block) {
            return *term;
        }
        let f = &self.versions[side];
        let writes = f.all_insts().any(|i| f.inst(i).opcode.effects().has(Effects::WRITES));
        let term = match f.predecessors(block) {
            _ if block == f.entry() || !writes => {
                self.leaf("memory", TermKind::MemoryAtEntry, None)
            }
            [edge] => self.memory_before(side, edge.inst),
            _ => {
                let name = format!("memory at {}", f.block_name(block).expect("blocks are named"));
                self.leaf(&name, TermKind::MemoryParam, None)
            }
        };
        self.memory[side].insert(block, term);
        term
    }

    /// Adds an entry. Each step comes with its two terms, for the leaves at the source point and at
    /// the anchor.
    pub(crate) fn entry(
        &mut self,
        side: Side,
        [source, target]: [Point; 2],
        steps: Vec<(Step, [TermId; 2])>,
        assigns: &[(&str, Operand)],
    ) {
        let mut assigns: Vec<Assign> = assigns
            .iter()
            .map(|(name, from)| Assign { value: self.value(side.other(), name), from: *from })
            .collect();
        assigns.sort_unstable();
        let reads = steps
            .iter()
            .flat_map(|(s, _)| s.args.iter().copied())
            .chain(assigns.iter().map(|a| a.from));
        let mut requires: Vec<Value> = reads
            .filter_map(|o| if let Operand::Source(value) = o { Some(value) } else { None })
            .collect();
        requires.sort_unstable();
        requires.dedup();
        let live = live_before(&self.versions[side], source);
        let kept = requires.iter().copied().filter(|v| !live.contains(v)).collect();
        let here = steps.iter().map(|(_, [here, _])| *here).collect();
        let far = steps.iter().map(|(_, [_, far])| *far).filter(|far| *far != NO_TERM).collect();
        let steps = steps.into_iter().map(|(step, _)| step).collect();
        self.entries[side].push((
            source,
            Entry {
                target,
                steps,
                replays: Vec::new(),
                assigns,
                requires,
                kept,
                inner: Box::default(),
            },
            EntryFacts { here, far, replays: Box::default() },
        ));
    }

    /// Makes the last entry replay a write, and names its term in the facts.
    pub(crate) fn replay(&mut self, side: Side, at: Point, args: &[Operand], term: TermId) {
        let (source, entry, facts) = self.entries[side].last_mut().expect("an entry was added");
        let data = self.versions[side.other()].inst(at.inst());
        let (opcode, ty, imm) = (data.opcode, data.ty, data.imm);
        entry.replays.push(Replay { inst: at.inst(), opcode, ty, imm, args: args.into() });
        let read = args
            .iter()
            .filter_map(|o| if let Operand::Source(value) = o { Some(*value) } else { None });
        entry.requires = read
            .chain(entry.requires.iter().copied())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let live = live_before(&self.versions[side], *source);
        entry.kept = entry.requires.iter().copied().filter(|v| !live.contains(v)).collect();
        facts.replays = facts.replays.iter().copied().chain([term]).collect();
    }

    /// The operand that reads the value with this name.
    pub(crate) fn from(&self, side: Side, name: &str) -> Operand {
        Operand::Source(self.value(side, name))
    }

    pub(crate) fn change_entry(&mut self, side: Side, change: impl FnOnce(&mut Entry)) {
        change(&mut self.entries[side].last_mut().expect("an entry was added").1);
    }

    /// Gives a term to every value without one, and finishes. A draft without entries gets one from
    /// each anchor to the same anchor of the version after, which copies values of equal class.
    pub(crate) fn done(mut self, check: Check, what: &'static str) -> Wrong {
        for side in Side::BOTH {
            let f = self.versions[side].clone();
            for block in f.blocks() {
                self.memory_at_start(side, block);
                let results = f.block_insts(block).flat_map(|i| f.inst(i).results.to_vec());
                let values: Vec<Value> =
                    f.block_params(block).iter().copied().chain(results).collect();
                values.into_iter().for_each(|v| drop_id(self.term_of(side, v)));
                f.block_insts(block).for_each(|i| {
                    if f.inst(i).opcode.effects().has(Effects::WRITES) {
                        drop_id(self.written(side, i));
                    }
                });
            }
        }
        if self.entries.iter().all(Vec::is_empty) {
            self.entries_at_anchors();
        }
        let writes = self.writes.unwrap_or_default();
        let sides = Side::BOTH.map(|side| VersionTerms {
            values: self.named[side].iter().map(|(v, t)| (*v, *t)).collect(),
            memory: self.memory[side].iter().map(|(b, t)| (*b, *t)).collect(),
            writes: writes[side].iter().map(|(i, t)| (*i, *t)).collect(),
            ranges: self.ranges[side].clone(),
        });
        let versions = Side::BOTH.map(|side| VersionKey::of(&self.versions[side]));
        let certificate = Certificate { versions, terms: self.terms, sides, anchors: self.anchors };
        let between = |side: Side| Mapping::new(&self.versions[side], &self.versions[side.other()]);
        let mut mappings = Pair::from_fn(between);
        let mut facts = Pair::<MappingFacts>::default();
        for (side, mut entries) in Side::BOTH.into_iter().zip(self.entries) {
            entries.sort_by_key(|(point, ..)| *point);
            for (point, entry, fact) in entries {
                mappings[side].insert(point, entry);
                facts[side].push(fact);
            }
        }
        let (module, versions, options) = (self.module, self.versions, self.options);
        Wrong { check, what, module, versions, certificate, mappings, facts, options }
    }

    fn entries_at_anchors(&mut self) {
        let class = |draft: &Draft, side: Side, value: Value| {
            draft.named[side]
                .get(&value)
                .and_then(|t| draft.terms.get(*t as usize))
                .map(|t| t.class)
        };
        for inst in self.anchors.clone() {
            let point = Point::before(inst);
            let sources: Vec<Value> = self.named.before.keys().copied().collect();
            let dom =
                ir::dom::DomTree::new(&self.versions.before, &Cfg::new(&self.versions.before));
            let sources =
                sources.into_iter().filter(|v| dom.available_at(&self.versions.before, *v, point));
            let sources: Vec<Value> = sources.collect();
            let mut assigns = Vec::new();
            for value in live_before(&self.versions.after, point) {
                let wanted = class(self, Side::After, value);
                let from = sources.iter().find(|v| class(self, Side::Before, **v) == wanted);
                let name =
                    self.versions.after.value_name(value).expect("values are named").to_owned();
                assigns.extend(from.map(|v| (name, Operand::Source(*v))));
            }
            let assigns: Vec<(&str, Operand)> =
                assigns.iter().map(|(n, o)| (n.as_str(), *o)).collect();
            self.entry(Side::Before, [point; 2], Vec::new(), &assigns);
        }
    }
}

fn drop_id(_: TermId) {}

/// The values needed before an instruction.
fn live_before(f: &Function, point: Point) -> Vec<Value> {
    let liveness = Liveness::of_needed(f, &Cfg::new(f), &BTreeMap::new());
    let mut found = Vec::new();
    liveness.for_each_point(f, f.inst_block(point.inst()), |at, live| {
        if at == point {
            found = live.as_slice().to_vec();
        }
    });
    found
}

/// A step whose operands have the type of its result.
pub(crate) fn step(opcode: Opcode, ty: Type, args: &[Operand]) -> Step {
    Step { opcode, ty, operand_ty: ty, bits: 0, args: args.into() }
}
