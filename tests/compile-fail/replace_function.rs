//! A pass that edits a clone and puts it in the place of the function under the session.
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
