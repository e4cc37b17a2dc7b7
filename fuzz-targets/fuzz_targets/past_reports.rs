//! The target `past_reports` for libFuzzer.

#![no_main]

use fuzz_targets as target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::run("past_reports", data));
