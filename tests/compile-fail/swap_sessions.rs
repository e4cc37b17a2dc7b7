//! A pass that applies another pass to a clone and passes its own session in, so that this pass
//! swaps the two sessions. Each log would then describe the changes to the other function.
use ir::edit::{Editor, Fuel, Pass, apply};
use std::cell::RefCell;

struct Outer;

impl Pass for Outer {
    fn name(&self) -> &'static str {
        "outer"
    }

    fn run(&self, editor: &mut Editor<'_>) {
        let leaked = editor.func().clone();
        let inner = Inner { session: RefCell::new(editor) };
        apply(&leaked, &inner, &mut Fuel::rewrites(9));
    }
}

struct Inner<'a, 'e> {
    session: RefCell<&'a mut Editor<'e>>,
}

impl Pass for Inner<'_, '_> {
    fn name(&self) -> &'static str {
        "inner"
    }

    fn run(&self, editor: &mut Editor<'_>) {
        std::mem::swap(*self.session.borrow_mut(), editor);
    }
}

fn main() {}
