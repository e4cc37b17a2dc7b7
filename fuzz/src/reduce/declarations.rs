//! Removes single declarations from a module by way of the text form. There a declaration is one
//! line, and a function is the lines up to its closing brace. If the rest of the module uses the
//! declaration, the text no longer parses.

use ir::text::{parse_module, print_module};
use ir::{Func, Module};

/// The number of declarations of a module, functions included.
pub(super) fn count(module: &Module) -> usize {
    parts(&print_module(module)).len()
}

/// The module without the declaration of this number, and the function there with the name of
/// `entry`. `None` without such a declaration, or if the rest of the module uses the declaration.
pub(super) fn without(module: &Module, entry: Func, number: usize) -> Option<(Module, Func)> {
    let text = print_module(module);
    let mut parts = parts(&text);
    if number >= parts.len() {
        return None;
    }
    parts.remove(number);
    let smaller = parse_module(&parts.concat()).ok()?;
    let entry = smaller.func_named(&module.funcs[entry].name)?;
    Some((smaller, entry))
}

/// The text of a module, divided into declarations.
fn parts(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match parts.last_mut().filter(|_| inside) {
            Some(part) => part.push_str(line),
            None => parts.push(line.to_owned()),
        }
        parts.last_mut().expect("a line was added").push('\n');
        inside = (inside || line.ends_with('{')) && line != "}";
    }
    parts
}
