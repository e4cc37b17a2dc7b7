//! The fuzzer: random programs and versions of them, put to every oracle there is.
//!
//! A [`Case`] is a program, the inputs it runs on, and the passes that lead from each of its
//! versions to the next. [`judge()`] derives the versions, makes the mappings and asks the
//! [`Oracle`]s in order. [`campaign()`] does that for many cases, [`Options`] draw them from seeds.
//! What was done is counted in [`Figures`], which have floors: a fuzzer that sees no compensation
//! code finds nothing wrong with it.
//!
//! A case that fails is made smaller ([`reduce()`]) and written down as a test ([`as_test`]).
//!
//! Nothing here reads a clock or prints: a campaign ends when it is told to.

mod campaign;
mod case;
mod certificates;
mod composition;
mod figures;
mod judge;
mod native;
mod options;
mod oracle;
mod reduce;
mod schema;
mod stress;
mod test_text;
mod text;
mod versions;

pub use campaign::{Batch, Budget, Drawn, Failure, Results, Source, campaign, campaign_by};
pub use case::{Case, World};
pub use figures::{Figures, PassFigures};
pub use judge::{Judged, MAX_FINDINGS, judge, judge_with};
pub use native::{Clock, NativeFigures, judge_native};
pub use options::{MAX_VERSIONS, Options};
pub use oracle::{Finding, Oracle};
pub use reduce::{ATTEMPTS, reduce};
pub use schema::{FuzzFailure, FuzzFigures, FuzzPass, FuzzReport, by_oracle};
pub use stress::Stress;
pub use test_text::as_test;
pub use text::{oracles_text, text};
pub use versions::Damage;
