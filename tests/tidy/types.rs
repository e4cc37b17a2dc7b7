//! Names of types, and which of them several types share.

use crate::tree::Source;
use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeMap;

/// The files that declare each type name, outside tests and examples.
pub(crate) fn declared(sources: &[Source]) -> BTreeMap<String, Vec<String>> {
    let mut declared: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let is_product = |s: &&Source| !s.is_test() && !s.path.starts_with("examples/");
    for source in sources.iter().filter(is_product) {
        let tokens: TokenStream = source.text.parse().expect("a source is Rust");
        let mut names = Vec::new();
        note(tokens, &mut names);
        for name in names {
            declared.entry(name).or_default().push(source.path.clone());
        }
    }
    declared
}

/// Adds the names behind `struct`, `enum`, `trait` and `union`, in modules of any depth except
/// tests.
fn note(tokens: TokenStream, names: &mut Vec<String>) {
    let mut tokens = tokens.into_iter().peekable();
    let mut is_test = false;
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(word) if is_declaration(&word.to_string()) => {
                if let Some(TokenTree::Ident(name)) = tokens.peek()
                    && name.to_string().starts_with(char::is_uppercase)
                    && !is_test
                {
                    names.push(name.to_string());
                }
            }
            TokenTree::Group(group) => {
                let text = group.to_string();
                match group.delimiter() {
                    // `#[cfg(test)]` holds for the item that follows, up to its body.
                    proc_macro2::Delimiter::Bracket => is_test |= text == "[cfg (test)]",
                    proc_macro2::Delimiter::Brace if !std::mem::take(&mut is_test) => {
                        note(group.stream(), names);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

fn is_declaration(word: &str) -> bool {
    matches!(word, "struct" | "enum" | "trait" | "union")
}
