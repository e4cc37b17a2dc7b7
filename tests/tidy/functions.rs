//! The functions of the sources, their lengths, and their parameters that are tuples.

use crate::parameters::{PackedParameter, packed};
use crate::tree::{Source, sources};
use std::sync::LazyLock;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

pub(crate) struct Function {
    pub(crate) name: String,
    /// The number of lines from the signature to the closing brace.
    pub(crate) lines: usize,
}

/// The facts about the syntax of a source that tests ask for.
pub(crate) struct SyntaxFacts {
    pub(crate) source: Source,
    /// Every function with a body, except functions of test modules.
    pub(crate) functions: Vec<Function>,
    pub(crate) packed: Vec<PackedParameter>,
}

/// The facts about all sources, each of which is parsed once.
pub(crate) static SYNTAX: LazyLock<Vec<SyntaxFacts>> =
    LazyLock::new(|| sources().into_iter().map(facts).collect());

fn facts(source: Source) -> SyntaxFacts {
    let file = parsed(&source);
    let mut collector = Collector { found: Vec::new() };
    collector.visit_file(&file);
    SyntaxFacts { functions: collector.found, packed: packed(&file), source }
}

pub(crate) fn parsed(source: &Source) -> syn::File {
    syn::parse_file(&source.text).unwrap_or_else(|e| panic!("{} is not Rust: {e}", source.path))
}

struct Collector {
    found: Vec<Function>,
}

impl Collector {
    fn add(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let (first, last) = (signature.span().start().line, body.span().end().line);
        self.found.push(Function { name: signature.ident.to_string(), lines: last - first + 1 });
    }
}

/// Whether an item is compiled for tests only.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|a| {
        a.path().is_ident("cfg") && a.parse_args::<syn::Ident>().is_ok_and(|i| i == "test")
    })
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(body) = &function.default {
            self.add(&function.sig, body);
        }
        visit::visit_trait_item_fn(self, function);
    }
}
