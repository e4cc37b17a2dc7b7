//! The fuzzer: random programs and their versions, judged by every oracle.
//!
//! A [`Case`] is a program, the inputs it runs on, and the passes from each of its versions to the
//! next. [`judge()`] derives the versions, makes the mappings, and runs the [`FuzzOracle`]s in
//! order. [`campaign()`] judges many cases, and [`CampaignOptions`] draw them from seeds.
//! [`Figures`] count the work and have floors: a fuzzer that never runs compensation code finds no
//! bugs in it.
//!
//! [`reduce()`] makes a failing case smaller, and [`as_test`] writes it as a test. A
//! [`FindingKey`] names findings of one cause, and a [`FindingRecord`] is the file of one.
//!
//! Nothing here reads a clock or prints. The caller decides when a campaign ends.

mod campaign;
mod case;
mod certificates;
mod composition;
mod figures;
mod guilty;
mod inlining;
mod judge;
mod junit;
mod markdown;
mod native;
mod options;
mod oracle;
mod record;
mod reduce;
mod replayed;
mod saved;
mod schema;
mod speculation;
mod states;
mod stress;
mod stressed;
mod suggested;
mod tables;
pub mod targets;
mod test_text;
mod text;
mod versions;

pub use campaign::{
    BatchJudge, BatchWatch, CampaignLimits, CaseEvent, CaseSource, CaseTime, CaseWatch, Drawn,
    FailedCase, Results, campaign, campaign_by,
};
pub use case::{Case, World};
pub use figures::{
    AddUp, CertificateFigures, CompositionFigures, Figures, InlinedFigures, NativeFigures,
    PassFigures, SpeculationFigures, StressFigures, TableFigures,
};
pub use guilty::{GuiltyRewrite, guilty};
pub use inlining::pair as inlined_pair;
pub use judge::{Judged, judge, judge_with};
pub use junit::{junit, replay_junit};
pub use markdown::{markdown, replay_markdown};
pub use native::{Clock, judge_native};
pub use options::{CampaignOptions, MAX_VERSIONS};
pub use oracle::{FuzzFinding, FuzzOracle, MAX_FINDINGS};
pub use record::{FindingKey, FindingRecord, RECORD_SCHEMA};
pub use reduce::{ATTEMPTS, reduce};
pub use replayed::{ReplayReport, ReplayVerdict, ReplayedFinding};
pub use saved::SavedCase;
pub use schema::{FuzzFailure, FuzzReport, by_oracle};
pub use stress::Stress;
pub use suggested::suggested;
pub use test_text::as_test;
pub use text::{oracles_text, text};
pub use versions::EdgeDamage;
