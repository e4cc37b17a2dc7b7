//! Reading files.

use super::failure::Failure;
use ir::Module;
use osier::driver::{self, Format};
use std::io::Read;
use std::path::Path;

/// The largest file that is read, in bytes: more is refused rather than held in memory.
const MAX_BYTES: u64 = 256 << 20;

/// The path that means standard input.
const STDIN: &str = "-";

/// What a file holds.
#[derive(Debug)]
pub(super) struct Input {
    /// The path, as diagnostics and reports show it.
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

/// Reads a file, or standard input.
pub(super) fn read(path: &Path) -> Result<Input, Failure> {
    let (name, bytes) = if path == Path::new(STDIN) {
        ("standard input".to_owned(), read_all(std::io::stdin().lock()))
    } else {
        let opened = std::fs::File::open(path).and_then(|file| match file.metadata()?.is_dir() {
            true => Err(std::io::Error::other("it is a directory")),
            false => Ok(file),
        });
        (path.display().to_string(), opened.and_then(read_all))
    };
    let bytes = bytes.map_err(|e| Failure::input(format!("cannot read {name}: {e}")))?;
    if bytes.is_empty() {
        return Err(Failure::input(format!("{name} is empty")));
    }
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Failure::input(format!("{name} is larger than {} MiB", MAX_BYTES >> 20)));
    }
    Ok(Input { name, bytes })
}

fn read_all(from: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a module. The name is that of the input, for diagnostics and reports.
pub(super) fn load(path: &Path) -> Result<Loaded, Failure> {
    let input = read(path)?;
    let extension = path.extension().and_then(|e| e.to_str());
    match driver::load(Format::of(extension, &input.bytes), &input.bytes) {
        Ok(module) => Ok(Loaded { name: input.name, module }),
        Err(error) => Err(Failure::Input(error.in_file(&input.name))),
    }
}

/// A module that was read.
#[derive(Debug)]
pub(super) struct Loaded {
    /// The path as it was given.
    pub(super) name: String,
    pub(super) module: Module,
}

/// Reads a file that must be text.
pub(super) fn read_text(path: &Path) -> Result<String, Failure> {
    let input = read(path)?;
    String::from_utf8(input.bytes).map_err(|_| Failure::input(format!("{} is not UTF-8", input.name)))
}

/// Reads a list of names, one a line; blank lines are left out.
pub(super) fn read_names(path: &Path) -> Result<Vec<String>, Failure> {
    let text = read_text(path)?;
    Ok(text.lines().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect())
}
