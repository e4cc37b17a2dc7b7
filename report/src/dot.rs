//! Graphs of both versions of a function, in the language of Graphviz.

use crate::listing::NamedVersion;
use derive::driver::{Derived, Proved};
use derive::inlining::Inlined;
use ir::loops::{Loop, LoopForest};
use ir::{Block, Function, Module};
use osr::VersionTree;
use std::collections::BTreeMap;
use std::fmt::Write;
use transition::mapping::Mapping;

/// The graph of a base and its derived version: blocks with their numbers of instructions, loops as
/// boxes around their blocks, edges of control flow, and dashed edges for the entries between the
/// versions at the highest level. An edge of entries stands for all points of a block that land in
/// the same block; its label is their number, with the number of all points of the block. Cost:
/// linear in the versions and their entries.
pub fn versions(module: &Module, base: &Function, derived: &Derived, proved: &Proved) -> String {
    let pair = NamedVersion::pair(module, [base, &derived.function], &derived.log, None);
    let maps = proved.highest();
    graph(&pair, [&maps.before.mapping, &maps.after.mapping])
}

/// The same of a function with inlined code. An entry that lands in several activations leads to
/// the call in which the activation of the function waits.
pub fn inlined(module: &Module, made: &Inlined) -> String {
    let pair = [VersionTree::BASE, made.optimized]
        .map(|version| NamedVersion::of_inlined(module, made, version, None));
    graph(&pair, [&made.up, &made.down])
}

/// Both versions, and the entries from each to the other.
fn graph([base, optimized]: &[NamedVersion<'_>; 2], [up, down]: [&Mapping; 2]) -> String {
    let mut out = format!("digraph {} {{\n", quoted(base.version.name()));
    out += "  node [shape=box, fontname=monospace]; edge [fontname=monospace];\n";
    let sides = [("base", base), ("optimized", optimized)];
    for (side, version) in sides {
        cluster(&mut out, side, version);
    }
    entries(&mut out, up, sides, "blue");
    entries(&mut out, down, [sides[1], sides[0]], "red");
    out + "}\n"
}

/// One version: its blocks and loops, then its edges.
fn cluster(out: &mut String, side: &str, version: &NamedVersion<'_>) {
    let function = version.version;
    let _ = writeln!(out, "  subgraph {} {{", quoted(&format!("cluster {side}")));
    let _ = writeln!(out, "    label={};", quoted(side));
    blocks(out, side, version, &LoopForest::of(function));
    for block in function.blocks() {
        let last = function.block_insts(block).last();
        for target in last.iter().flat_map(|inst| function.inst(*inst).targets.iter()) {
            let [from, to] = [block, target.block].map(|block| node(side, version, block));
            let _ = writeln!(out, "    {from} -> {to};");
        }
    }
    *out += "  }\n";
}

/// The blocks, within a box for each loop. Without recursion: loops of a module may be nested
/// without bound.
fn blocks(out: &mut String, side: &str, version: &NamedVersion<'_>, loops: &LoopForest) {
    let mut within: BTreeMap<Option<Loop>, Vec<Block>> = BTreeMap::new();
    for block in version.version.blocks() {
        within.entry(loops.innermost(block)).or_default().push(block);
    }
    let mut inner: BTreeMap<Option<Loop>, Vec<Loop>> = BTreeMap::new();
    for id in loops.loops() {
        inner.entry(loops.parent(id)).or_default().push(id);
    }
    // What is left to print: the inside of a loop or of the function, or the end of a box.
    let mut left = vec![Some(None)];
    while let Some(next) = left.pop() {
        let Some(of) = next else {
            *out += "    }\n";
            continue;
        };
        if let Some(id) = of {
            let header = version.text.block(loops.header(id));
            let _ =
                writeln!(out, "    subgraph {} {{", quoted(&format!("cluster {side} {header}")));
            let _ =
                writeln!(out, "    label={}; style=rounded;", quoted(&format!("loop {header}")));
            left.push(None);
        }
        for block in within.get(&of).into_iter().flatten() {
            let count = version.version.block_insts(*block).count();
            let label = quoted(&format!("{}: {count}", version.text.block(*block)));
            let _ = writeln!(out, "    {} [label={label}];", node(side, version, *block));
        }
        left.extend(inner.get(&of).into_iter().flatten().rev().map(|id| Some(Some(*id))));
    }
}

/// The entries of one direction.
fn entries(
    out: &mut String,
    mapping: &Mapping,
    [(from, source), (to, target)]: [(&str, &NamedVersion<'_>); 2],
    color: &str,
) {
    let mut counts: BTreeMap<(Block, Block), usize> = BTreeMap::new();
    for (point, entry) in mapping.entries() {
        let ends = [(source, point), (target, entry.target)];
        let [from, to] = ends.map(|(version, at)| version.version.inst_block(at.inst()));
        *counts.entry((from, to)).or_default() += 1;
    }
    for ((start, end), count) in counts {
        let all = source.version.block_insts(start).count();
        let [start, end] = [node(from, source, start), node(to, target, end)];
        let _ = writeln!(
            out,
            "  {start} -> {end} [style=dashed, color={color}, constraint=false, label=\"{count}/{all}\"];"
        );
    }
}

fn node(side: &str, version: &NamedVersion<'_>, block: Block) -> String {
    quoted(&format!("{side} {}", version.text.block(block)))
}

/// A text as an identifier of the language. Names come from the input, and may have any characters;
/// control characters are escaped for readers of the text.
fn quoted(text: &str) -> String {
    let mut shown = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => shown.extend(['\\', c]),
            c if c.is_control() => shown.extend(c.escape_unicode().flat_map(|c| match c {
                '\\' => vec!['\\', '\\'],
                c => vec![c],
            })),
            c => shown.push(c),
        }
    }
    shown + "\""
}
