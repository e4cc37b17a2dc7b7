//! Rules about blocks, instruction lists and edges.

use super::rules::Rule;
use super::{Entity, FunctionFindings};
use crate::entity::{Block, Inst};
use crate::inst::Edge;
use cranelift_entity::EntityRef;
use fixedbitset::FixedBitSet;

/// The actual instructions of the function, collected by a walk of the lists that assumes no link
/// is valid. All later checks use this collection.
pub(super) struct WalkedLayout {
    /// The existing blocks of the layout, each once.
    pub(super) blocks: Vec<Block>,
    /// Every instruction on a list, with its block, in layout order.
    pub(super) insts: Vec<(Inst, Block)>,
    /// By instruction id: the index in `insts`.
    positions: Vec<Option<u32>>,
    /// The blocks of the layout, by id.
    known: FixedBitSet,
    /// Whether the function keeps all rules that make paths meaningful.
    sound: bool,
}

impl WalkedLayout {
    /// Whether the control-flow graph is well-formed enough to analyze.
    pub(super) fn is_sound(&self) -> bool {
        self.sound
    }

    /// The position of an instruction among all instructions.
    pub(super) fn position(&self, inst: Inst) -> Option<u32> {
        self.positions.get(inst.index()).copied().flatten()
    }

    /// Whether a block is in the layout.
    pub(super) fn has_block(&self, block: Block) -> bool {
        self.known.contains(block.index())
    }
}

/// Walks a function and checks its structure.
pub(super) fn check(report: &mut FunctionFindings<'_>) -> WalkedLayout {
    let function = report.function;
    let mut layout = WalkedLayout {
        blocks: Vec::new(),
        insts: Vec::new(),
        positions: vec![None; function.inst_bound()],
        known: FixedBitSet::with_capacity(function.block_bound()),
        sound: true,
    };
    check_layout(report, &mut layout);
    for index in 0..layout.blocks.len() {
        check_list(report, &mut layout, index);
    }
    check_stray_insts(report, &layout);
    check_edges(report, &mut layout);
    check_entry(report, &layout);
    check_names(report);
    // `Cfg` follows targets and lists without checks, so dominance may only be computed if these
    // rules hold.
    let graph = Rule::CfgLayout1..=Rule::CfgTarget1;
    layout.sound = report.findings.iter().all(|f| !graph.contains(&f.rule));
    layout
}

fn check_layout(report: &mut FunctionFindings<'_>, layout: &mut WalkedLayout) {
    let function = report.function;
    if function.block_count() == 0 {
        report.add(Rule::CfgLayout1, Entity::Whole, "the function has no block");
    }
    if function.blocks().count() != function.block_count() {
        report.add(Rule::CfgLayout1, Entity::Whole, "the layout has fewer blocks than its count");
    }
    // The iteration ends however damaged the links are, because it counts blocks.
    for block in function.blocks() {
        if !function.has_block(block) {
            report.add(
                Rule::CfgLayout1,
                Entity::Block(block),
                "the block is in the layout but does not exist",
            );
        } else if layout.known.put(block.index()) {
            report.add(Rule::CfgLayout1, Entity::Block(block), "the block is in the layout twice");
        } else {
            layout.blocks.push(block);
        }
    }
    for block in function.blocks.keys().filter(|b| !layout.known.contains(b.index())) {
        report.add(Rule::CfgLayout1, Entity::Block(block), "the block is not in the layout");
    }
}

/// Walks the list of a block. It stops at the first bad link, and so never visits an instruction
/// twice.
fn check_list(report: &mut FunctionFindings<'_>, layout: &mut WalkedLayout, index: usize) {
    let (function, block) = (report.function, layout.blocks[index]);
    let data = function.blocks.get(block).expect("the layout has blocks that exist");
    let (mut prev, mut next, mut order) = (None, data.first, None);
    while let Some(inst) = next {
        let Some(node) = function.insts.get(inst) else {
            let message = format!("{inst} is in the list of {block} but does not exist");
            return report.add(Rule::CfgList1, Entity::Block(block), message);
        };
        // Without this check the walk of a cyclic list would not end, and two lists with a common
        // tail would both count the tail.
        if layout.positions[inst.index()].is_some() {
            return report.inst(Rule::CfgList1, inst, "the instruction is on a list twice");
        }
        if node.block != block
            || node.prev.expand() != prev
            || order.is_some_and(|o| node.order <= o)
        {
            report.inst(
                Rule::CfgList1,
                inst,
                format!("its links or its order number do not match its position in {block}"),
            );
        }
        layout.positions[inst.index()] = Some(layout.insts.len() as u32);
        layout.insts.push((inst, block));
        if node.data.opcode.is_terminator() && node.next.is_some() {
            report.inst(Rule::CfgTerm2, inst, "another instruction follows it");
        }
        (prev, next, order) = (Some(inst), node.next.expand(), Some(node.order));
    }
    if data.last != prev {
        report.add(
            Rule::CfgList1,
            Entity::Block(block),
            "the recorded last instruction of the block is not the end of its list",
        );
    }
    let terminated = prev.is_some_and(|i| function.inst(i).opcode.is_terminator());
    if !terminated {
        let name = report.block_name(block);
        report.add(
            Rule::CfgTerm1,
            Entity::Block(block),
            format!("{name} does not end in a terminator"),
        );
    }
}

fn check_stray_insts(report: &mut FunctionFindings<'_>, layout: &WalkedLayout) {
    let function = report.function;
    for inst in function.insts.keys().filter(|i| layout.position(*i).is_none()) {
        report.inst(Rule::CfgList1, inst, "the instruction is in no block");
    }
}

/// Checks targets, and compares the lists of predecessors with the actual edges, both sorted.
fn check_edges(report: &mut FunctionFindings<'_>, layout: &mut WalkedLayout) {
    let function = report.function;
    let mut edges = Vec::new();
    for &(inst, _) in &layout.insts {
        for (index, target) in function.inst(inst).targets.iter().enumerate() {
            if layout.has_block(target.block) {
                edges.push((target.block, Edge { inst, index: index as u32 }));
            } else {
                report.inst(
                    Rule::CfgTarget1,
                    inst,
                    format!("its target {} does not exist", target.block),
                );
            }
        }
    }
    edges.sort_unstable();
    let mut rest = edges.as_slice();
    let mut blocks = layout.blocks.clone();
    blocks.sort_unstable();
    for block in blocks {
        let count = rest.partition_point(|(b, _)| *b <= block);
        let (expected, after) = rest.split_at(count);
        rest = after;
        let mut listed = function.predecessors(block).to_vec();
        listed.sort_unstable();
        if !listed.iter().eq(expected.iter().map(|(_, e)| e)) {
            let name = report.block_name(block);
            let (listed, expected) = (listed.len(), expected.len());
            let message = format!(
                "{name} lists {listed} predecessor edges other than the {expected} that lead to it"
            );
            report.add(Rule::CfgEdge1, Entity::Block(block), message);
        }
    }
    if let Some(&entry) = layout.blocks.first() {
        let leads_to_entry = |edge: &&(Block, Edge)| edge.0 == entry;
        let mut insts: Vec<Inst> =
            edges.iter().filter(leads_to_entry).map(|(_, e)| e.inst).collect();
        insts.dedup();
        for inst in insts {
            report.inst(Rule::CfgEntry1, inst, "an edge leads to the entry block");
        }
    }
}

fn check_entry(report: &mut FunctionFindings<'_>, layout: &WalkedLayout) {
    let function = report.function;
    let Some(&entry) = layout.blocks.first() else {
        return;
    };
    let params = function.block_params(entry);
    let types = params.iter().filter_map(|v| function.values.get(*v)).map(|d| d.ty);
    if !types.eq(function.signature().params.iter().copied()) {
        let message = format!("the parameters do not match the signature {}", function.signature());
        report.add(Rule::CfgEntry2, Entity::Block(entry), message);
    }
}

fn check_names(report: &mut FunctionFindings<'_>) {
    let function = report.function;
    for value in function.value_names.keys().filter(|v| !function.has_value(**v)) {
        report.add(Rule::Name1, Entity::Value(*value), "a value that does not exist has a name");
    }
    for block in function.block_names.keys().filter(|b| !function.has_block(**b)) {
        report.add(Rule::Name1, Entity::Block(*block), "a block that does not exist has a name");
    }
    for block in function.cold.iter().filter(|b| !function.has_block(**b)) {
        report.add(Rule::Name1, Entity::Block(*block), "a block that does not exist is cold");
    }
}
