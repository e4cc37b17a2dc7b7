//! Findings in a folder: `osier fuzz --findings`. Each has two files, named by its key: a record
//! (`KEY.json`), and a test for `tests/oir/` (`KEY.oir`).
//!
//! Several commands may write to one folder, such as the shards of a campaign. Each file is
//! complete at any time, and a lock of the folder (`.lock`) orders the comparisons of programs.

use crate::cmd::failure::{CommandFailure, tell};
use crate::cmd::format::json;
use crate::cmd::input;
use crate::cmd::output::Output;
use fuzz::{CampaignOptions, Case, CaseSource, Drawn, FindingRecord, FuzzOracle, RECORD_SCHEMA};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A folder of findings.
pub(super) struct FindingsFolder(PathBuf);

impl FindingsFolder {
    /// Makes the folder, unless it exists, and checks that files can be written there.
    ///
    /// # Errors
    /// If the folder cannot be made, or no file can be written there.
    pub(super) fn open(path: PathBuf) -> Result<FindingsFolder, CommandFailure> {
        let folder = FindingsFolder(path);
        std::fs::create_dir_all(&folder.0)
            .and_then(|()| folder.locked().map(drop))
            .map_err(|e| CommandFailure::writing(folder.0.display(), &e))?;
        Ok(folder)
    }

    /// The lock of the folder, until it is dropped.
    fn locked(&self) -> io::Result<File> {
        // The file may be a link to another one, which keeps its contents.
        let mut options = File::options();
        let file = options.write(true).create(true).truncate(false).open(self.0.join(".lock"))?;
        file.lock()?;
        Ok(file)
    }

    fn file(&self, record: &FindingRecord, kind: &str) -> PathBuf {
        self.0.join(format!("{}.{kind}", record.key))
    }

    /// Writes a finding, unless the folder has one with this key that represents it as well, and
    /// tells the user.
    ///
    /// # Errors
    /// If a file cannot be written, or the file of this key is no record.
    pub(super) fn tell_saved(&self, record: &FindingRecord) -> Result<(), CommandFailure> {
        let path = self.file(record, "json");
        let cannot = |e: io::Error| CommandFailure::writing(self.0.display(), &e);
        let _lock = self.locked().map_err(cannot)?;
        let known = path.exists().then(|| read(&path)).transpose()?;
        if known.is_some_and(|known| !record.is_better_than(&known)) {
            tell(&format!("finding known: {}", path.display()));
            return Ok(());
        }
        // A reader takes the record for the finding, so it comes last.
        let test = self.file(record, "oir");
        match &record.test {
            Some(text) => Output::File(test).write(text)?,
            None if test.exists() => std::fs::remove_file(&test).map_err(cannot)?,
            None => {}
        }
        Output::File(path.clone()).write(&json(record))?;
        tell(&format!("finding written: {}", path.display()));
        Ok(())
    }
}

/// Reads the record of a finding.
///
/// # Errors
/// If the file cannot be read, is no record, or has another schema. Also if its key is no name for
/// a file, its options do more than select a program, or its program has no versions to compare.
/// Also if no oracle has the name of its oracle, which nothing could then judge again.
pub(super) fn read(path: &Path) -> Result<FindingRecord, CommandFailure> {
    let wrong = |why: String| CommandFailure::input(format!("{}: {why}", path.display()));
    let text = input::read_text(path)?;
    let record: FindingRecord =
        serde_json::from_str(&text).map_err(|e| wrong(format!("no record of a finding: {e}")))?;
    if record.schema != RECORD_SCHEMA {
        return Err(wrong(format!("a record of schema {}, not {RECORD_SCHEMA}", record.schema)));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if record.key.is_empty() || !record.key.chars().all(plain) {
        return Err(wrong("a record whose key is no name".to_owned()));
    }
    if FuzzOracle::from_name(&record.oracle).is_none() {
        return Err(wrong(format!("a record of an unknown oracle, `{}`", record.oracle)));
    }
    if !selects_one_program(&record) {
        return Err(wrong("a record whose options select no program".to_owned()));
    }
    if record.case.as_ref().is_some_and(|case| case.steps.is_empty()) {
        return Err(wrong("a record whose program has no steps".to_owned()));
    }
    Ok(record)
}

/// Whether the options of a record select its program and do nothing else.
fn selects_one_program(record: &FindingRecord) -> bool {
    let is_option = |name: &str| {
        record.options.iter().any(|word| word.split('=').next().is_some_and(|word| word == name))
    };
    let others = ["--findings", "--replay", "--case", "--native-case", "--native-cases"];
    is_option("--corpus") != record.case.is_some() && !others.into_iter().any(is_option)
}

/// The paths of records, sorted: the given files, and the files `.json` of the given folders.
///
/// # Errors
/// If a path names nothing, or neither a file nor a folder, or a folder cannot be read.
pub(super) fn records(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CommandFailure> {
    let mut files = Vec::new();
    for path in paths {
        let cannot =
            |e: io::Error| CommandFailure::input(format!("cannot read {}: {e}", path.display()));
        let kind = path.metadata().map_err(cannot)?.file_type();
        if kind.is_file() {
            files.push(path.clone());
            continue;
        }
        // The process of a finding reads its file again: of a pipe, it would wait for ever.
        if !kind.is_dir() {
            let why = format!("{}: neither a file nor a folder", path.display());
            return Err(CommandFailure::input(why));
        }
        for entry in std::fs::read_dir(path).map_err(cannot)? {
            let file = entry.map_err(cannot)?.path();
            if file.extension().is_some_and(|e| e == "json") {
                files.push(file);
            }
        }
    }
    files.sort();
    files.dedup();
    Ok(files)
}

/// The source of the one case that the record of a finding holds.
pub(super) struct SavedProgram(Case);

impl SavedProgram {
    /// # Errors
    /// If the file is no record, or has no case.
    pub(super) fn read(
        path: &Path,
        options: &CampaignOptions,
    ) -> Result<SavedProgram, CommandFailure> {
        let saved = read(path)?.case.and_then(|saved| saved.case(options));
        let none = || CommandFailure::input(format!("{}: it has no program", path.display()));
        Ok(SavedProgram(saved.ok_or_else(none)?))
    }
}

impl CaseSource for SavedProgram {
    fn case(&self, number: u64) -> Drawn {
        if number > 0 {
            return Drawn::End;
        }
        Drawn::Case(Box::new(self.0.clone()))
    }
}

#[cfg(test)]
pub(super) mod tests;
