//! The floors that the figures of generated programs must reach.

use super::{Figures, TableFigures};

impl Figures {
    /// The floors that these figures fall below, as sentences. Floors apply to campaigns over many
    /// generated programs: oracles find no bugs in transitions that never happen.
    pub fn below_floors(&self) -> Vec<String> {
        if self.native.runs > 0 {
            return self.below_native_floors();
        }
        let total = self.state.total();
        let mut below = Vec::new();
        let mut floor = |what: &str, found: f64, least: f64| {
            below.extend(below_floor(what, found, least));
        };
        if !self.is_only_one() {
            floor("transitions that run code", share(total.with_code, total.transitions), 0.30);
            floor("transitions inside loops", share(total.in_loops, total.transitions), 0.50);
            floor("values compared in a transition", share(total.compared, total.transitions), 6.0);
        }
        let made = self.speculation.made;
        let failing = if made == 0 { 1.0 } else { share(self.speculation.failing, made) };
        floor("assumptions seen failing", failing, 0.30);
        let TableFigures { tables, runs, .. } = &self.speculation.tables;
        if *tables > 0 {
            let a_table = |part: u64| share(part, *tables);
            floor("entries into rows of a table", a_table(runs.entered), 2.0);
            floor("rows of a table refused, since a fact does not hold", a_table(runs.lies), 0.1);
            floor("exits of a table to other rows", a_table(runs.to_rows), 0.05);
            floor("states of a table compared", a_table(runs.states), 50.0);
            floor("states of a table at failing assumptions", a_table(runs.failing), 0.5);
            floor("hand-overs of a table", a_table(runs.handed), 0.02);
            floor("states of a table compared at hand-overs", a_table(runs.handed_states), 1.0);
        }
        for (name, pass) in &self.passes {
            floor(&format!("programs that {name} acts on"), share(pass.acted, pass.programs), 0.50);
        }
        below
    }

    /// The floor for NaNs of the processor, if these figures fall below it: programs whose values
    /// all have the interpreter's bits test nothing.
    pub fn below_nan_floor(&self) -> Option<String> {
        let found = share(self.native.nans, self.programs);
        below_floor("values of a program that agree but for the bits of NaNs", found, 2.0)
    }

    /// Like [`Figures::below_floors`], for campaigns of the native oracle: it finds no bug of
    /// tiering in programs that never enter late code.
    fn below_native_floors(&self) -> Vec<String> {
        let native = &self.native;
        let mut floors = Vec::new();
        if native.assumptions > 0 {
            floors.push(("exits of an assumption", share(native.exits, native.assumptions), 5.0));
        }
        // Otherwise another judge ran alone.
        if !self.passes.is_empty() {
            let tiered = |part: u64| share(part, native.tiered);
            floors.extend([
                ("transitions of a program", share(native.transitions, self.programs), 500.0),
                ("programs in tiers", share(native.tiered, self.programs), 0.6),
                ("late pieces of code of a program in tiers", tiered(native.late), 1.5),
                ("visits by which code came late", share(native.delays, native.late), 1.5),
                ("entries of a program in tiers", tiered(native.entered), 1.0),
                ("exits at flags of other threads", tiered(native.flagged), 2.0),
            ]);
        }
        if native.tabled > 0 {
            let tabled = |part: u64| share(part, native.tabled);
            floors.extend([
                ("rows of a program with tables", tabled(native.rows), 1.0),
                ("exits to rows of such a program", tabled(native.linked_to_rows), 0.5),
                ("transitions to rows of such a program", tabled(native.to_rows), 20.0),
            ]);
        }
        let below =
            floors.into_iter().filter_map(|(what, found, least)| below_floor(what, found, least));
        below.collect()
    }
}

fn share(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { part as f64 / all as f64 }
}

/// The sentence about a figure below its floor.
fn below_floor(what: &str, found: f64, least: f64) -> Option<String> {
    (found < least).then(|| format!("{what}: {found:.3}, the floor is {least}"))
}
