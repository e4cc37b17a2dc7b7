//! A session that clears its log.
use ir::edit::{ActionLog, Editor, Pass};

struct Forgets;

impl Pass for Forgets {
    fn name(&self) -> &'static str {
        "forgets"
    }

    fn run(&self, editor: &mut Editor<'_>) {
        editor.log = ActionLog::empty_for(editor.func());
    }
}

fn main() {}
