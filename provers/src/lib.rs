//! Proofs by SMT solvers of the facts that passes and checkers rely on: the rewrite rules, the
//! masks behind their guards, commutativity, the divisions that cannot trap, and constant folding.
//!
//! A [`Claim`] is one such statement at one choice of types. [`claims`] derives all claims from the
//! tables of the passes ([`ir::rules`], [`ir::Opcode`]), so no claim has a second source. [`prove`]
//! passes the negation of a claim to a solver: if no values satisfy it, the claim holds for all. A
//! [`SolverVerdict`] is three-valued; a solver that gives up proves nothing.
//!
//! *Trusted*: one of the solvers, and `meaning`, which defines the operations in the language of
//! solvers (the theories of bit-vectors and floats of SMT-LIB). `meaning` follows `docs/oir.md` and
//! shares nothing with [`ir::eval`], so that comparing the two can reveal a mistake in either. The
//! matching of rules is not proved: the tests of `simplify` apply the rules.

mod batch;
mod claim;
mod declared;
mod encoder;
mod goal;
mod masks;
mod meaning;
mod rewrite;
mod solver;
pub mod typing;

pub use batch::{FoldingCase, inputs};
pub use claim::{Claim, ClaimSubject, Statement, claims, declared_claim, rule_claims};
pub use solver::{Solver, SolverLimits, SolverVerdict, known, prove, solvers};
