//! Copies written by hand, as text.

use ir::text::parse_module;
use ir::{Block, Func, Function, Inst, Module, Value};
use osier::check::{self, Checked, Copies, CopyError};
use osier::ir;
use osier::transition::VersionKey;
use osier::transition::copy::{CopyClaim, CopyInstance};
use std::collections::BTreeMap;

/// An inlined call: the prefix of the names of its copy, its function, and the call, by the number
/// of its instance and the number among the calls there.
pub(crate) type Inlined = (&'static str, &'static str, usize, usize);

/// A version of `@main`, and the claim that it is a copy.
///
/// The claim follows from names. A value or block of the version is the copy of the value or block
/// with this name in an original. In inlined code the version's name is a prefix and the original's
/// name; in `@main` itself names are unchanged. A block `behind` after a prefix stands behind that
/// call.
pub(crate) struct Hand {
    pub(crate) module: Module,
    pub(crate) version: Function,
    pub(crate) claim: CopyClaim,
}

pub(crate) fn parsed(text: &str) -> Module {
    parse_module(text).unwrap_or_else(|errors| panic!("{}\n{text}", errors[0]))
}

impl Hand {
    /// `originals` declares all functions; `version` is another text of `@main`, which comes last.
    pub(crate) fn new(originals: &str, version: &str, inlined: &[Inlined]) -> Hand {
        let module = parsed(originals);
        let (others, _) = originals.split_once("func @main(").expect("`@main` comes last");
        let version = parsed(&format!("{others}{version}"));
        let version = body(&version, "main").clone();
        let mut hand = Hand { module, version, claim: CopyClaim::default() };
        hand.add("", "main", None);
        for (prefix, name, caller, number) in inlined {
            hand.add(prefix, name, Some((*caller, *number)));
        }
        hand
    }

    fn add(&mut self, prefix: &str, name: &str, call: Option<(usize, usize)>) {
        let id = self.claim.instances.len();
        let original = body(&self.module, name);
        let caller = call.map(|(caller, number)| {
            let func = self.claim.instances[caller].func;
            let f = self.module.body(func).expect("a body");
            (caller, calls(f)[number])
        });
        let values = named_values(original)
            .filter_map(|(name, of)| Some((of, value(&self.version, &format!("{prefix}{name}"))?)));
        let values: BTreeMap<Value, Value> = values.collect();
        for of in original.blocks() {
            let label = original.block_name(of).expect("blocks have names");
            if let Some(copy) = block(&self.version, &format!("{prefix}{label}")) {
                self.claim.blocks.insert(copy, (id, original.first_inst(of)));
            }
        }
        if let Some((caller, call)) = caller
            && let Some(copy) = block(&self.version, &format!("{prefix}behind"))
        {
            let f = self.module.body(self.claim.instances[caller].func).expect("a body");
            let next = f.next_inst(call).expect("a call is no terminator");
            self.claim.blocks.insert(copy, (caller, next));
        }
        let func = self.module.func_named(name).expect("the function");
        let version = VersionKey::of(original);
        self.claim.instances.push(CopyInstance { func, version, caller, values });
    }

    pub(crate) fn main(&self) -> Func {
        self.module.func_named("main").expect("`@main`")
    }

    /// The body of a function.
    pub(crate) fn body(&self, name: &str) -> &Function {
        body(&self.module, name)
    }

    pub(crate) fn copy(&self) -> Result<Checked<Copies>, CopyError> {
        let findings = ir::verifier::verify_function(&self.module, &self.version);
        assert!(findings.is_empty(), "{}", findings[0]);
        let original = |func, _| self.module.body(func);
        check::copy(&self.version, self.main(), original, self.claim.clone())
    }

    /// The word of the checker. `None` if it accepts the claim.
    pub(crate) fn judged(&self) -> Option<String> {
        self.copy().err().map(|error| error.to_string())
    }
}

fn body<'m>(module: &'m Module, name: &str) -> &'m Function {
    module.func_named(name).and_then(|func| module.body(func)).expect("a body of this name")
}

pub(crate) fn calls(f: &Function) -> Vec<Inst> {
    insts_of(f, ir::Opcode::Call)
}

/// The instructions of an opcode.
pub(crate) fn insts_of(f: &Function, opcode: ir::Opcode) -> Vec<Inst> {
    f.all_insts().filter(|inst| f.inst(*inst).opcode == opcode).collect()
}

fn named_values(f: &Function) -> impl Iterator<Item = (String, Value)> {
    let all = (0..f.value_bound() as u32).map(Value::from_u32).filter(|v| f.has_value(*v));
    all.filter_map(|v| Some((f.value_name(v)?.to_owned(), v)))
}

/// The value with this name.
pub(crate) fn value(f: &Function, name: &str) -> Option<Value> {
    named_values(f).find(|(other, _)| other == name).map(|(_, value)| value)
}

/// The block with this name.
pub(crate) fn block(f: &Function, name: &str) -> Option<Block> {
    f.blocks().find(|block| f.block_name(*block) == Some(name))
}
