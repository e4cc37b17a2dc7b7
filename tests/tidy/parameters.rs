//! The parameters of functions: none is a tuple of strangers.

use crate::functions::{SYNTAX, SyntaxFacts, parsed};
use crate::report;
use crate::tree::Source;
use std::collections::BTreeSet;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// A parameter whose type is a tuple, or a reference to one.
pub(crate) struct PackedParameter {
    line: usize,
    /// The name of the function; `fn` for a type of functions.
    function: String,
}

/// The tuple parameters of a source. The parts of a tuple have no names at a call, and belong
/// together by nothing but the wish for a shorter list of parameters: the remedy is a record with
/// names, a parameter less, or parameters of their own. An alias of a tuple is a tuple.
///
/// These are no such parameters:
/// - items: of a slice, a map, or an iterator of pairs the parameter is the collection;
/// - arrays, whose parts are alike, as the versions of a pair;
/// - parameters of closures, since the caller of the closure decides on them;
/// - parameters of a method that implements a trait, since the trait decides on them: the check
///   judges the declaration, and a trait from outside forces them.
pub(crate) fn packed(file: &syn::File) -> Vec<PackedParameter> {
    let mut aliases = AliasNames::default();
    aliases.visit_file(file);
    let mut search = PackedSearch { aliases: aliases.0, found: Vec::new() };
    search.visit_file(file);
    search.found
}

/// The names that a source gives to tuples.
#[derive(Default)]
struct AliasNames(BTreeSet<String>);

impl<'ast> Visit<'ast> for AliasNames {
    fn visit_item_type(&mut self, alias: &'ast syn::ItemType) {
        if matches!(&*alias.ty, syn::Type::Tuple(tuple) if tuple.elems.len() > 1) {
            self.0.insert(alias.ident.to_string());
        }
    }
}

struct PackedSearch {
    aliases: BTreeSet<String>,
    found: Vec<PackedParameter>,
}

impl PackedSearch {
    fn is_tuple(&self, ty: &syn::Type) -> bool {
        match ty {
            syn::Type::Tuple(tuple) => tuple.elems.len() > 1,
            syn::Type::Reference(reference) => self.is_tuple(&reference.elem),
            syn::Type::Paren(paren) => self.is_tuple(&paren.elem),
            syn::Type::Path(path) => {
                path.path.get_ident().is_some_and(|name| self.aliases.contains(&name.to_string()))
            }
            _ => false,
        }
    }

    fn judge(&mut self, signature: &syn::Signature) {
        for input in &signature.inputs {
            if let syn::FnArg::Typed(parameter) = input
                && self.is_tuple(&parameter.ty)
            {
                let line = parameter.span().start().line;
                let function = signature.ident.to_string();
                self.found.push(PackedParameter { line, function });
            }
        }
    }
}

impl<'ast> Visit<'ast> for PackedSearch {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.judge(&function.sig);
        visit::visit_item_fn(self, function);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if item.trait_.is_none() {
            let methods = item.items.iter().filter_map(|item| match item {
                syn::ImplItem::Fn(method) => Some(&method.sig),
                _ => None,
            });
            methods.for_each(|signature| self.judge(signature));
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        self.judge(&function.sig);
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_type_bare_fn(&mut self, function: &'ast syn::TypeBareFn) {
        for input in &function.inputs {
            if self.is_tuple(&input.ty) {
                let line = input.span().start().line;
                self.found.push(PackedParameter { line, function: "fn".to_owned() });
            }
        }
        visit::visit_type_bare_fn(self, function);
    }
}

#[test]
fn no_parameter_is_a_tuple() {
    let found = |facts: &SyntaxFacts| {
        let named = |PackedParameter { line, function }: &PackedParameter| {
            format!("{}:{line}: a parameter of {function}", facts.source.path)
        };
        facts.packed.iter().map(named).collect::<Vec<_>>()
    };
    report(SYNTAX.len(), SYNTAX.iter().flat_map(found).collect());
}

#[test]
fn packed_parameters_are_found() {
    let found = |text: &str| -> Vec<String> {
        let source = Source { path: String::new(), text: text.to_owned() };
        packed(&parsed(&source)).into_iter().map(|one| one.function).collect()
    };
    assert_eq!(found("fn f((a, b): (u8, u16)) {}"), ["f"]);
    assert_eq!(found("fn f(a: &(u8, u16), b: (&u8, &u8)) {}"), ["f", "f"]);
    assert_eq!(found("impl A { fn g(&self, a: &mut (u8, u16)) {} }"), ["g"]);
    assert_eq!(found("trait A { fn g(&self, a: (u8, u16)); }"), ["g"]);
    assert_eq!(found("type A = (u8, u16); mod b { fn f(a: &A) {} }"), ["f"]);
    assert_eq!(found("struct A { b: fn((u8, u16)) -> u8 }"), ["fn"]);
    assert_eq!(found("fn f() { fn g(a: (u8, u16)) {} }"), ["g"]);
    assert_eq!(found("impl B for A { fn g(&self, a: (u8, u16)) {} }"), [""; 0]);
    assert_eq!(found("fn f(a: &[(u8, u16)], b: [u8; 2], c: ()) { |(d, e): (u8, u8)| d }"), [""; 0]);
    assert_eq!(found("fn f(a: impl Fn((u8, u16)), b: Option<(u8, u16)>) {}"), [""; 0]);
}
