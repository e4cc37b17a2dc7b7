//! The form that a solver gets a claim in.

use crate::meaning::SmtDefinitions;
use easy_smt::SExpr;
use ir::Type;
use std::io;

/// A claim in the language of a solver.
#[derive(Default)]
pub(crate) struct SolverGoal {
    /// The assumptions.
    pub(crate) given: Vec<SExpr>,
    /// The conclusion, for all values of the variables.
    pub(crate) holds: Option<SExpr>,
    /// The terms of a counterexample to show, each with its name.
    pub(crate) shown: Vec<(String, SExpr)>,
    /// For a claim about many constants: the statement of each case, by the number of the case. The
    /// last shown term is that number.
    pub(crate) cases: Vec<String>,
}

impl SolverGoal {
    /// Sets the conclusion that every term holds; a counterexample names the case.
    pub(crate) fn holds_in_each_case(
        &mut self,
        definitions: &mut SmtDefinitions<'_>,
        all: &[SExpr],
    ) -> io::Result<()> {
        let case = definitions.variable("case", Type::I32)?;
        let t = definitions.terms();
        let numbered = all.iter().zip(0u64..);
        let each: Vec<SExpr> = numbered
            .map(|(one, n)| t.app("=>", &[t.equal(case, t.of_type(n, Type::I32)), *one]))
            .collect();
        self.holds = Some(t.and(&each));
        self.shown.push(("case".to_owned(), case));
        Ok(())
    }
}
