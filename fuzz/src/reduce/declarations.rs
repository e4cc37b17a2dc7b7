//! Modules without one of their declarations, by way of the text form: a declaration is a line
//! there, a function the lines up to its closing brace. What still needs it makes the rest no
//! module.

use ir::text::{parse_module, print_module};
use ir::{Func, Module};

/// How many declarations there are.
pub(super) fn count(module: &Module) -> usize {
    parts(&print_module(module)).len()
}

/// The module without a declaration, and the function with the name of `entry` in it.
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

/// The text of a module, a declaration each.
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
