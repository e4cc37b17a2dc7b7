//! A pass that keeps its session for changes after the log is taken.
use ir::edit::{Editor, Pass};
use std::cell::RefCell;

struct Keeps<'a> {
    session: RefCell<Option<&'a mut Editor<'a>>>,
}

impl<'a> Pass for Keeps<'a> {
    fn name(&self) -> &'static str {
        "keeps"
    }

    fn run(&self, editor: &mut Editor<'_>) {
        self.session.replace(Some(editor));
    }
}

fn main() {}
