//! A pass that edits a clone and assigns it to the session's function.
use ir::Function;
use ir::edit::{Editor, Pass};

struct Replaces(Function);

impl Pass for Replaces {
    fn name(&self) -> &'static str {
        "replaces"
    }

    fn run(&self, editor: &mut Editor<'_>) {
        *editor.function = self.0.clone();
    }
}

fn main() {}
