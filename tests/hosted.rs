//! Random programs with host memories: all oracles, in the interpreter and natively.

use fuzz::{CampaignLimits, CampaignOptions, CaseSource, Drawn, Judged, campaign, judge_native};
use std::sync::Arc;
use std::time::Duration;

/// Generated programs, one for each seed.
struct Seeds(CampaignOptions);

impl CaseSource for Seeds {
    fn case(&self, number: u64) -> Drawn {
        Drawn::Case(Box::new(self.0.generated(self.0.seed + number)))
    }
}

fn options() -> CampaignOptions {
    CampaignOptions { host_memory: true, inputs: 4, ..CampaignOptions::default() }
}

#[test]
fn accesses_of_host_memories_change_no_run() {
    let limits = CampaignLimits { cases: 60, failures: 10, ..CampaignLimits::default() };
    let results = campaign(std::sync::Arc::new(Seeds(options())), 2, &limits, &|_| {});
    if let Some(failure) = results.failures.first() {
        panic!("case {}: {}", failure.number, failure.findings[0]);
    }
}

#[test]
fn accesses_of_host_memories_change_no_native_run() {
    let clock = Arc::new(|| Duration::ZERO) as fuzz::Clock;
    for seed in 0..12 {
        let Judged { findings, .. } = judge_native(&options().generated(seed), &clock);
        assert!(findings.is_empty(), "seed {seed}: {}", findings[0]);
    }
}
