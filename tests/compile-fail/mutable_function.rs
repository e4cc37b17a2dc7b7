//! A pass that asks the editor for a function it can change without a record.
use ir::Function;
use ir::edit::{Editor, Pass};

struct Replaces(Function);

impl Pass for Replaces {
    fn name(&self) -> &'static str {
        "replaces"
    }

    fn run(&self, editor: &mut Editor<'_>) {
        let function: &mut Function = editor.func();
        *function = self.0.clone();
    }
}

fn main() {}
