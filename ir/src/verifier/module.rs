//! Rules about the declarations of a module.

use super::insts::is_null_or_declared;
use super::rules::Rule;
use super::{Entity, Finding, sorted};
use crate::effect::DeclaredEffect;
use crate::entity::{Func, Memory};
use crate::init::InitExpr;
use crate::module::{External, FuncDecl, MemoryKind, Module, PAGE_BYTES};
use crate::reference;
use crate::types::{Signature, Type};
use cranelift_entity::EntityRef;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The largest initial size of a table, in entries.
pub const MAX_TABLE_ENTRIES: u32 = 10_000_000;

/// The largest size of a memory in pages: 4 GiB, the range of an `i32` address.
const MAX_PAGES: u32 = 65536;

struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, rule: Rule, entity: Entity, message: impl Into<String>) {
        self.0.push(Finding { function: None, entity, rule, message: message.into(), shown: None });
    }

    /// Reports every key that occurs a second time.
    fn check_unique<K: Ord>(
        &mut self,
        rule: Rule,
        keys: impl Iterator<Item = (K, Entity)>,
        describe: impl Fn(&K) -> String,
    ) {
        let mut first: BTreeMap<K, Entity> = BTreeMap::new();
        for (key, entity) in keys {
            match first.get(&key) {
                Some(other) => {
                    let message = format!("{other} already has {}", describe(&key));
                    self.add(rule, entity, message);
                }
                None => {
                    first.insert(key, entity);
                }
            }
        }
    }
}

/// Checks the declarations of a module. It compares each body with its declaration, but leaves the
/// contents of bodies unchecked.
pub(super) fn check(module: &Module) -> Vec<Finding> {
    let mut findings = Findings(Vec::new());
    check_names(module, &mut findings);
    check_functions(module, &mut findings);
    check_storage(module, &mut findings);
    check_data(module, &mut findings);
    check_elements(module, &mut findings);
    check_exports(module, &mut findings);
    sorted(findings.0)
}

fn check_names(module: &Module, findings: &mut Findings) {
    let name = |name: &&str| format!("the name `{}`", name.escape_debug());
    let funcs = module.funcs.iter().map(|(id, d)| (d.name.as_str(), Entity::Func(id)));
    findings.check_unique(Rule::ModName1, funcs, name);
    let globals = module.globals.iter().map(|(id, d)| (d.name.as_str(), Entity::Global(id)));
    findings.check_unique(Rule::ModName1, globals, name);
    let memories = module.memories.iter().map(|(id, d)| (d.name.as_str(), Entity::Memory(id)));
    findings.check_unique(Rule::ModName1, memories, name);
    let tables = module.tables.iter().map(|(id, d)| (d.name.as_str(), Entity::Table(id)));
    findings.check_unique(Rule::ModName1, tables, name);
    let sigs = module.sigs.iter().map(|(id, s)| (s, Entity::Sig(id)));
    findings.check_unique(Rule::ModSig3, sigs, |s| format!("the signature {s}"));
}

fn check_functions(module: &Module, findings: &mut Findings) {
    for (func, decl) in module.funcs.iter() {
        let entity = Entity::Func(func);
        let signature = module.sigs.get(decl.sig);
        if signature.is_none() {
            findings.add(Rule::ModSig1, entity, format!("{} is not declared", decl.sig));
        }
        let has_body = module.body(func).is_some() || module.is_later(func);
        match (has_body, &decl.import) {
            (false, None) => {
                findings.add(Rule::ModBody1, entity, "there is neither a body nor an import")
            }
            (true, Some(_)) => {
                findings.add(Rule::ModBody2, entity, "there are both a body and an import")
            }
            _ => {}
        }
        if let Some(message) = signature.and_then(|s| wrong_effect(decl, s)) {
            findings.add(Rule::ModEffect1, entity, message);
        }
        let Some(body) = module.body(func) else {
            continue;
        };
        if body.name() != decl.name {
            let (body, decl) = (body.name().escape_debug(), decl.name.escape_debug());
            findings.add(
                Rule::ModName2,
                entity,
                format!("the body is named `{body}`, the declaration `{decl}`"),
            );
        }
        if let Some(signature) = signature.filter(|s| *s != body.signature()) {
            let message = format!("the body is {}, the declaration {signature}", body.signature());
            findings.add(Rule::ModSig2, entity, message);
        }
    }
    for func in module.bodies.functions() {
        if !module.funcs.is_valid(func) {
            findings.add(Rule::ModBody3, Entity::Func(func), "a body has no declaration");
        }
    }
}

/// The fault of the declared effect of a function.
fn wrong_effect(decl: &FuncDecl, signature: &Signature) -> Option<String> {
    let effect = decl.effect;
    if effect.is_allocator() {
        let makes_objects = signature.params.starts_with(&[Type::I32, Type::I64])
            && signature.results[..] == [Type::Ref];
        return (!makes_objects)
            .then(|| format!("it is declared `{effect}`, and is not (i32, i64, ...) -> (ref)"));
    }
    if effect != DeclaredEffect::Any && decl.import.is_none() {
        return Some(format!("it is declared `{effect}`, and is not imported"));
    }
    let returns_number = matches!(signature.results[..], [ty] if ty.is_number());
    if effect.is_none() && !returns_number {
        return Some(format!("it is declared `{effect}`, and does not return one number"));
    }
    // The word of a reference changes when a collector moves the object.
    let takes_ref = signature.params.contains(&Type::Ref);
    (effect == DeclaredEffect::Pure && takes_ref)
        .then(|| format!("it is declared `{effect}`, and takes a `ref`"))
}

fn check_storage(module: &Module, findings: &mut Findings) {
    for (global, decl) in &module.globals {
        let entity = Entity::Global(global);
        check_init(module, &decl.init, decl.ty, global.index(), entity, findings);
        let Some(init) = decl.init.known() else { continue };
        if init & !decl.ty.mask() != 0 {
            let message = format!("{init:#x} does not fit {}", decl.ty);
            findings.add(Rule::ModGlobal1, entity, message);
        }
        if decl.ty == Type::FuncRef && !is_null_or_declared(module, init) {
            findings.add(Rule::ModGlobal1, entity, format!("{init:#x} refers to no function"));
        }
    }
    for (memory, decl) in &module.memories {
        let max = decl.max_pages.unwrap_or(MAX_PAGES);
        if decl.min_pages > max || max > MAX_PAGES {
            let message = format!(
                "{} pages at the start, at most {max}, of {MAX_PAGES} possible",
                decl.min_pages
            );
            findings.add(Rule::ModMemory1, Entity::Memory(memory), message);
        }
    }
    check_host_memories(module, findings);
    // Modules without a fixed table, such as most that people write, need no look at their code.
    let has_fixed = module.tables.values().any(|decl| decl.fixed);
    let exposed = if has_fixed { module.exposed_tables() } else { BTreeSet::new() };
    for (table, decl) in &module.tables {
        if decl.size > MAX_TABLE_ENTRIES.min(decl.max_size.unwrap_or(MAX_TABLE_ENTRIES)) {
            findings.add(Rule::ModTable1, Entity::Table(table), format!("{} entries", decl.size));
        }
        if !decl.ty.is_ref() {
            findings.add(Rule::ModTable2, Entity::Table(table), format!("it holds {}", decl.ty));
        }
        if decl.fixed && exposed.contains(&table) {
            let message = "it is fixed, and is imported, exported or written";
            findings.add(Rule::ModTable3, Entity::Table(table), message);
        }
    }
}

/// Checks an expression of a type that may read the first `readable` globals.
fn check_init(
    module: &Module,
    init: &InitExpr,
    ty: Type,
    readable: usize,
    entity: Entity,
    findings: &mut Findings,
) {
    if let Some(fault) = init.fault(module, ty, readable) {
        findings.add(Rule::ModInit1, entity, fault);
    }
}

fn check_host_memories(module: &Module, findings: &mut Findings) {
    let mut ranges: Vec<(Range<u128>, Memory)> = Vec::new();
    for (memory, decl) in module.memories.iter().filter(|(_, decl)| decl.kind.is_host()) {
        let entity = Entity::Memory(memory);
        let exported = module.exports.iter().any(|export| export.item == External::Memory(memory));
        let sized = decl.kind == MemoryKind::Host && decl.min_pages > 0;
        if decl.import.is_some() || exported || decl.max_pages.is_some() || sized {
            let message = "it is imported, exported, or has a size that it cannot have";
            findings.add(Rule::ModHost1, entity, message);
        }
        let MemoryKind::HostFrom(first) = decl.kind else { continue };
        let end = u128::from(first) + u128::from(decl.min_pages) * u128::from(PAGE_BYTES);
        if first % PAGE_BYTES != 0 || end > 1 << 64 {
            let message = format!("{} pages from {first:#x} on", decl.min_pages);
            findings.add(Rule::ModHost2, entity, message);
        }
        ranges.push((u128::from(first)..end, memory));
    }
    // The range before another range in this order is the range to reach into it.
    ranges.sort_by_key(|(range, _)| range.start);
    for pair in ranges.windows(2) {
        let [(below, one), (above, other)] = pair else { continue };
        if below.end > above.start && !above.is_empty() {
            findings.add(Rule::ModHost2, Entity::Memory(*other), format!("{one} reaches into it"));
        }
    }
}

/// Whether `length` items that start at `offset` end within `size`.
fn lies_below(offset: u64, length: usize, size: u64) -> bool {
    offset.checked_add(length as u64).is_some_and(|end| end <= size)
}

fn check_data(module: &Module, findings: &mut Findings) {
    for (index, segment) in module.data.iter().enumerate() {
        let entity = Entity::Data(index);
        let Some((memory, place)) = &segment.active else { continue };
        check_init(module, place, Type::I32, module.globals.len(), entity, findings);
        let Some(decl) = module.memories.get(*memory) else {
            findings.add(Rule::ModData1, entity, format!("{memory} is not declared"));
            continue;
        };
        if decl.kind.is_host() {
            findings.add(Rule::ModData3, entity, format!("{memory} is a host memory"));
            continue;
        }
        let size = u64::from(decl.min_pages) * PAGE_BYTES;
        // A place that is not known yet is checked when the segment is written.
        let Some(offset) = place.known() else { continue };
        if decl.import.is_none() && !lies_below(offset, segment.bytes.len(), size) {
            let message =
                format!("{} bytes at {offset} in a memory of {size}", segment.bytes.len());
            findings.add(Rule::ModData2, entity, message);
        }
    }
}

fn check_elements(module: &Module, findings: &mut Findings) {
    for (index, segment) in module.elements.iter().enumerate() {
        let entity = Entity::Elem(index);
        if !segment.ty.is_ref() {
            findings.add(Rule::ModElem4, entity, format!("it holds {}", segment.ty));
        }
        let is_func = segment.ty == Type::FuncRef;
        for bits in
            segment.entries.iter().filter(|bits| is_func && !is_null_or_declared(module, **bits))
        {
            let func = reference::func(*bits).map_or(format!("{bits:#x}"), |func| func.to_string());
            findings.add(Rule::ModElem3, entity, format!("{func} is not declared"));
        }
        if !segment.from_globals.is_sorted_by(|(one, _), (next, _)| one < next) {
            findings.add(Rule::ModInit1, entity, "its entries of globals are not in order");
        }
        for (index, global) in &segment.from_globals {
            if segment.entries.get(*index as usize) != Some(&reference::NULL) {
                let message = format!("entry {index} is not null, for {global}");
                findings.add(Rule::ModInit1, entity, message);
            }
            let read = InitExpr::of_global(*global);
            check_init(module, &read, segment.ty, module.globals.len(), entity, findings);
        }
        let Some((table, place)) = &segment.active else { continue };
        check_init(module, place, Type::I32, module.globals.len(), entity, findings);
        let Some(decl) = module.tables.get(*table) else {
            findings.add(Rule::ModElem1, entity, format!("{table} is not declared"));
            continue;
        };
        if decl.ty != segment.ty {
            findings.add(
                Rule::ModElem4,
                entity,
                format!("{} in a table of {}", segment.ty, decl.ty),
            );
        }
        let Some(offset) = place.known() else { continue };
        if decl.import.is_none() && !lies_below(offset, segment.entries.len(), u64::from(decl.size))
        {
            let count = segment.entries.len();
            let message = format!("{count} entries at {offset} in a table of {}", decl.size);
            findings.add(Rule::ModElem2, entity, message);
        }
    }
}

fn check_exports(module: &Module, findings: &mut Findings) {
    let names =
        module.exports.iter().enumerate().map(|(i, e)| (e.name.as_str(), Entity::Export(i)));
    findings.check_unique(Rule::ModExport2, names, |name| {
        format!("the name `{}`", name.escape_debug())
    });
    for (index, export) in module.exports.iter().enumerate() {
        let (is_valid, name) = match export.item {
            External::Func(func) => (module.funcs.is_valid(func), func.to_string()),
            External::Global(global) => (module.globals.is_valid(global), global.to_string()),
            External::Memory(memory) => (module.memories.is_valid(memory), memory.to_string()),
            External::Table(table) => (module.tables.is_valid(table), table.to_string()),
        };
        if !is_valid {
            findings.add(
                Rule::ModExport1,
                Entity::Export(index),
                format!("{name} is not declared"),
            );
        }
    }
    if let Some(start) = module.start {
        check_start(module, start, findings);
    }
}

fn check_start(module: &Module, start: Func, findings: &mut Findings) {
    let Some(decl) = module.funcs.get(start) else {
        findings.add(Rule::ModStart1, Entity::Func(start), "the start function is not declared");
        return;
    };
    let signature = module.sigs.get(decl.sig);
    if let Some(signature) = signature.filter(|s| !s.params.is_empty() || !s.results.is_empty()) {
        findings.add(
            Rule::ModStart2,
            Entity::Func(start),
            format!("the start function is {signature}"),
        );
    }
}
