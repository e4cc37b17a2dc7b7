//! Where results go.

use super::failure::Failure;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Where a result goes.
#[derive(Clone, Debug)]
pub(super) enum Output {
    /// Standard output.
    Stdout,
    /// A file, which then holds all of the result or what it held before.
    File(PathBuf),
}

impl Output {
    /// The file, or standard output without one.
    pub(super) fn to(path: Option<PathBuf>) -> Output {
        path.map_or(Output::Stdout, Output::File)
    }

    /// Writes a whole result.
    pub(super) fn write(&self, result: &str) -> Result<(), Failure> {
        match self {
            Output::Stdout => {
                let mut out = std::io::stdout().lock();
                let written = out.write_all(result.as_bytes()).and_then(|()| out.flush());
                written.map_err(|e| Failure::writing("standard output", &e))
            }
            Output::File(path) => write_file(path, result).map_err(|e| Failure::writing(path.display(), &e)),
        }
    }
}

/// Writes beside the file and then takes its place, so that nobody ever sees half a result. What is no
/// regular file (a pipe, a terminal) is written directly: there is nothing to replace.
fn write_file(path: &Path, result: &str) -> std::io::Result<()> {
    if path.metadata().is_ok_and(|m| !m.is_file()) {
        return std::fs::OpenOptions::new().write(true).open(path)?.write_all(result.as_bytes());
    }
    // Through a link, the file it leads to is replaced, not the link.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(permissions(&path));
    let mut file = builder.prefix(".osier-").tempfile_in(folder)?;
    file.write_all(result.as_bytes())?;
    file.persist(&path)?;
    Ok(())
}

/// Those of the file replaced, or what the umask leaves of the usual ones: temporary files are private.
#[cfg(unix)]
fn permissions(path: &Path) -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().map(|m| m.permissions()).unwrap_or_else(|_| std::fs::Permissions::from_mode(0o666))
}
