//! Measurements of processes, and the file that they are appended to.

use super::contender::Contender;
use crate::figures::Series;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;

/// A measure.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lowercase")]
pub enum Measure {
    /// Whole processes, from start to end
    Process,
    /// The first call of one long loop, beside later calls
    First,
    /// First, worst and average of twenty calls, as JetStream 3 scores them
    Iterations,
}

/// The measure of a sample.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(super) struct Key {
    /// The measure.
    pub(super) measure: Measure,
    /// The label of the program or function.
    pub(super) program: String,
    /// The number of cores that the process could use.
    pub(super) cores: u32,
    /// The engine.
    pub(super) contender: Contender,
    /// The round. Ratios are of the same round.
    pub(super) round: u32,
}

/// One process.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct EngineSample {
    /// The measure of a sample.
    #[serde(flatten)]
    pub(super) key: Key,
    /// Seconds from start to end.
    pub(super) wall: f64,
    /// Seconds of processor time.
    pub(super) processor: f64,
    /// Whether the process was ended at the limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_over: bool,
    /// Seconds of each call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) calls: Vec<f64>,
}

/// All samples.
#[derive(Clone, Default, Debug)]
pub(super) struct Samples(BTreeMap<Key, EngineSample>);

impl Samples {
    /// Reads a file of samples; a missing file counts as empty. Of two samples of the same key, the
    /// later counts.
    ///
    /// # Errors
    /// If the file cannot be read, or a line is no sample.
    pub(super) fn read(file: &Path) -> Result<Samples, String> {
        let mut samples = Samples::default();
        if !file.exists() {
            return Ok(samples);
        }
        let shown = file.display();
        let text = std::fs::read_to_string(file).map_err(|error| format!("{shown}: {error}"))?;
        for (number, line) in text.lines().enumerate() {
            let sample = serde_json::from_str(line)
                .map_err(|error| format!("{shown}:{}: no sample: {error}", number + 1))?;
            samples.insert(sample);
        }
        Ok(samples)
    }

    /// Adds a sample.
    pub(super) fn insert(&mut self, sample: EngineSample) {
        self.0.insert(sample.key.clone(), sample);
    }

    /// The sample of a key.
    pub(super) fn get(&self, key: &Key) -> Option<&EngineSample> {
        self.0.get(key)
    }

    /// The samples of a measure, of a program in an engine on a number of cores, by round.
    pub(super) fn of(
        &self,
        measure: Measure,
        program: &str,
        cores: u32,
        contender: Contender,
    ) -> impl Iterator<Item = &EngineSample> {
        let key = |round| Key { measure, program: program.to_owned(), cores, contender, round };
        self.0.range(key(0)..=key(u32::MAX)).map(|(_, sample)| sample)
    }

    /// A figure of these samples, by round.
    pub(super) fn series(
        &self,
        measure: Measure,
        program: &str,
        cores: u32,
        contender: Contender,
        figure: impl Fn(&EngineSample) -> Option<f64>,
    ) -> Series {
        let samples = self.of(measure, program, cores, contender);
        samples.filter_map(|sample| Some((sample.key.round, figure(sample)?))).collect()
    }

    /// The numbers of cores that a measure has samples of.
    pub(super) fn cores(&self, measure: Measure) -> BTreeSet<u32> {
        self.0.keys().filter(|key| key.measure == measure).map(|key| key.cores).collect()
    }

    /// Appends samples to a file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn append(file: &Path, samples: &[EngineSample]) -> Result<(), String> {
        let text = |error: std::io::Error| format!("{}: {error}", file.display());
        let mut lines = String::new();
        for sample in samples {
            lines += &serde_json::to_string(sample).map_err(|error| error.to_string())?;
            lines.push('\n');
        }
        let mut opened =
            std::fs::OpenOptions::new().create(true).append(true).open(file).map_err(text)?;
        opened.write_all(lines.as_bytes()).map_err(text)
    }
}

#[cfg(test)]
mod tests;
