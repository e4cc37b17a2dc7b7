//! Rules about values: one definition, exact uses, dominance.

use super::rules::Rule;
use super::structure::WalkedLayout;
use super::{Entity, FunctionFindings};
use crate::cfg::Cfg;
use crate::dom::DomTree;
use crate::entity::{Block, Inst, Value};
use crate::function::ValueDef;
use cranelift_entity::EntityRef;
use fixedbitset::FixedBitSet;

/// The values with exactly one definition, at the recorded place, by id.
pub(super) type SingleDefinitions = FixedBitSet;

/// Checks that every value has exactly one definition, the recorded one.
pub(super) fn check_definitions(
    report: &mut FunctionFindings<'_>,
    layout: &WalkedLayout,
) -> SingleDefinitions {
    let function = report.function;
    let mut defined = FixedBitSet::with_capacity(function.value_bound());
    for &block in &layout.blocks {
        for (index, &value) in function.block_params(block).iter().enumerate() {
            check_definition(report, &mut defined, value, ValueDef::Param(block, index as u32));
        }
    }
    for &(inst, _) in &layout.insts {
        for (index, &value) in function.inst(inst).results.iter().enumerate() {
            check_definition(report, &mut defined, value, ValueDef::Result(inst, index as u32));
        }
    }
    for value in function.values.keys().filter(|v| !defined.contains(v.index())) {
        report.add(Rule::SsaOne2, Entity::Value(value), "nothing defines the value");
    }
    defined
}

fn check_definition(
    report: &mut FunctionFindings<'_>,
    defined: &mut SingleDefinitions,
    value: Value,
    place: ValueDef,
) {
    let recorded = report.function.values.get(value).map(|d| d.def);
    if recorded == Some(place) && !defined.put(value.index()) {
        return;
    }
    let entity = match place {
        ValueDef::Param(block, _) => Entity::Block(block),
        ValueDef::Result(inst, _) => Entity::Inst(inst),
    };
    let name = report.value_name(value);
    let elsewhere = match recorded {
        Some(ValueDef::Param(block, index)) => format!("parameter {index} of {block}"),
        Some(ValueDef::Result(inst, index)) => format!("result {index} of {inst}"),
        None => "not a value of the function".to_owned(),
    };
    report.add(
        Rule::SsaOne1,
        entity,
        format!("{name} is defined here, but its record says {elsewhere}"),
    );
}

/// Checks that operands exist, and that the lists of users contain exactly the actual uses.
pub(super) fn check_uses(report: &mut FunctionFindings<'_>, layout: &WalkedLayout) {
    let function = report.function;
    let mut uses: Vec<(Value, Inst)> = Vec::new();
    // By value id: the number of uses, then the end of the uses of all values up to this one.
    let mut ends: Vec<u32> = vec![0; function.value_bound()];
    for &(inst, _) in &layout.insts {
        for value in function.inst(inst).operands() {
            if function.has_value(value) {
                uses.push((value, inst));
                ends[value.index()] += 1;
            } else {
                report.inst(Rule::SsaDef1, inst, format!("{value} is not a value of the function"));
            }
        }
    }
    let mut sum = 0;
    for end in &mut ends {
        (*end, sum) = (sum, sum + *end);
    }
    // Each end begins as the start of the uses, and moves past each use that is put in its place.
    let mut by_value: Vec<Inst> = vec![Inst::from_u32(0); uses.len()];
    for (value, inst) in uses {
        let end = &mut ends[value.index()];
        by_value[*end as usize] = inst;
        *end += 1;
    }
    let (mut start, mut sorted) = (0, [Vec::new(), Vec::new()]);
    for (index, end) in ends.into_iter().enumerate() {
        let expected = &by_value[start..end as usize];
        start = end as usize;
        let value = Value::from_u32(index as u32);
        if !function.has_value(value) {
            continue;
        }
        let listed = function.users(value);
        // Lists in the order of the layout need no sorting.
        if listed != expected && !are_alike(&mut sorted, [listed, expected]) {
            let count = expected.len();
            let (listed, name) = (listed.len(), report.value_name(value));
            let message =
                format!("{name} lists {listed} uses that differ from its {count} actual uses");
            report.add(Rule::UseList1, Entity::Value(value), message);
        }
    }
}

/// Whether two lists have the same instructions, each as often. `sorted` is room for copies.
fn are_alike(sorted: &mut [Vec<Inst>; 2], lists: [&[Inst]; 2]) -> bool {
    for (copy, list) in sorted.iter_mut().zip(lists) {
        copy.clear();
        copy.extend_from_slice(list);
        copy.sort_unstable();
    }
    sorted[0] == sorted[1]
}

/// Checks that definitions dominate uses, in reachable blocks. Values with a bad definition already
/// have a finding.
pub(super) fn check_dominance(
    report: &mut FunctionFindings<'_>,
    layout: &WalkedLayout,
    definitions: &SingleDefinitions,
) {
    let function = report.function;
    let cfg = Cfg::new(function);
    let tree = DomTree::new(function, &cfg);
    for (at, &(inst, block)) in layout.insts.iter().enumerate() {
        if !cfg.is_reachable(block) {
            continue;
        }
        let mut reported: Vec<Value> = Vec::new();
        for value in function.inst(inst).operands().filter(|v| definitions.contains(v.index())) {
            if !is_available(report, layout, &tree, value, at as u32, block) {
                reported.push(value);
            }
        }
        // A switch may use one value 10^5 times. One finding is enough.
        reported.sort_unstable();
        reported.dedup();
        for value in reported {
            let name = report.value_name(value);
            report.inst(
                Rule::SsaDom1,
                inst,
                format!("the definition of {name} does not dominate this use"),
            );
        }
    }
}

fn is_available(
    report: &FunctionFindings<'_>,
    layout: &WalkedLayout,
    tree: &DomTree,
    value: Value,
    at: u32,
    block: Block,
) -> bool {
    match report.function.value_def(value) {
        ValueDef::Param(defined_in, _) => tree.dominates(defined_in, block),
        ValueDef::Result(inst, _) => {
            let position = layout
                .position(inst)
                .expect("a defined value is defined by an instruction in place");
            let defined_in = layout.insts[position as usize].1;
            // The recorded order of instructions may be damaged. The walk of the lists found this
            // position.
            if defined_in == block { position < at } else { tree.dominates(defined_in, block) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_one_length_that_repeat_other_uses_are_not_alike() {
        let list = |ids: &[u32]| ids.iter().map(|id| Inst::from_u32(*id)).collect::<Vec<_>>();
        let mut room = [Vec::new(), Vec::new()];
        assert!(are_alike(&mut room, [&list(&[3, 1, 3]), &list(&[1, 3, 3])]));
        assert!(!are_alike(&mut room, [&list(&[3, 1, 3]), &list(&[1, 3, 1])]));
        assert!(!are_alike(&mut room, [&list(&[3]), &list(&[3, 3])]));
    }
}
