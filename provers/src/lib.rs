//! Proofs by SMT solvers of what passes and checkers take for granted: the rewrite rules, the masks
//! behind their guards, commutativity, which divisions cannot trap, and constant folding.
//!
//! A [`Claim`] is one such statement at one choice of types. [`claims`] lists all of them; none is
//! written down twice, as they are made from the data that the passes use ([`ir::rules`],
//! [`ir::Opcode`]). [`prove`] hands the denial of a claim to a solver: if no values satisfy it, the
//! claim holds for all. A [`Verdict`] is three-valued; a solver that gives up proves nothing.
//!
//! *Trusted*: one of the solvers, and `meaning`, where operations are written in the language of
//! solvers (the theories of bit-vectors and floats of SMT-LIB). That is written from `docs/oir.md`,
//! and shares nothing with [`ir::eval`], which is compared with it. How rules are matched is not
//! proved: the tests of `simplify` apply them.

mod batch;
mod claim;
mod encoder;
mod masks;
mod meaning;
mod rewrite;
mod solver;
pub mod typing;

pub use batch::{Case, inputs};
pub use claim::{Body, Claim, Subject, claims, rule_claims};
pub use solver::{Limits, Solver, Verdict, known, prove, solvers};
