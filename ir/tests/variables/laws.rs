//! The law of parameters for variables, checked by a slow and simple method.

use ir::{Block, Edge, Function, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The violations of the law in a function: dead parameters, and sets of parameters that receive a
/// single value from outside the set. The first `explicit(block)` parameters of a block were not
/// created for variables and do not count. Empty if the law holds. Cost: the number of parameters
/// times the number of arguments.
pub(crate) fn violations(function: &Function, explicit: impl Fn(Block) -> usize) -> Vec<String> {
    let mut args: BTreeMap<Value, Vec<Value>> = BTreeMap::new();
    for block in function.blocks() {
        for (index, param) in function.block_params(block).iter().enumerate().skip(explicit(block))
        {
            let incoming =
                function.predecessors(block).iter().map(|e| function.target(*e).args[index]);
            args.insert(*param, incoming.collect());
        }
    }
    let mut found = dead(function, &args);
    found.extend(redundant(&args));
    found
}

fn dead(function: &Function, args: &BTreeMap<Value, Vec<Value>>) -> Vec<String> {
    let mut work: Vec<Value> = Vec::new();
    for inst in function.all_insts() {
        let data = function.inst(inst);
        work.extend(data.args.iter().copied());
        for (index, target) in data.targets.iter().enumerate() {
            let edge = Edge { inst, index: index as u32 };
            for (param, arg) in
                function.block_params(target.block).iter().zip(&function.target(edge).args)
            {
                if !args.contains_key(param) {
                    work.push(*arg);
                }
            }
        }
    }
    let mut live = BTreeSet::new();
    while let Some(value) = work.pop() {
        if live.insert(value) {
            work.extend(args.get(&value).into_iter().flatten());
        }
    }
    let dead = args.keys().filter(|p| !live.contains(p));
    dead.map(|p| format!("{}: {p} is dead", function.name())).collect()
}

fn redundant(args: &BTreeMap<Value, Vec<Value>>) -> Option<String> {
    let mut users: BTreeMap<Value, Vec<Value>> = BTreeMap::new();
    for (param, incoming) in args {
        for arg in incoming {
            users.entry(*arg).or_default().push(*param);
        }
    }
    // For each value: the largest set of parameters that receive only this value and each other.
    for value in users.keys() {
        let mut out: BTreeSet<Value> = BTreeSet::new();
        let mut work: Vec<Value> =
            users.keys().copied().filter(|v| v != value && !args.contains_key(v)).collect();
        // The value itself is not in the set, even if it is a parameter.
        out.insert(*value);
        while let Some(outside) = work.pop() {
            for param in users.get(&outside).into_iter().flatten() {
                if out.insert(*param) {
                    work.push(*param);
                }
            }
        }
        if let Some(param) = args.keys().find(|p| !out.contains(p)) {
            return Some(format!("{param} and others receive only {value}"));
        }
    }
    None
}
