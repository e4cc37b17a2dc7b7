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
            Output::File(path) => {
                write_file(path, result).map_err(|e| Failure::writing(path.display(), &e))
            }
        }
    }
}

/// Writes beside the file and then takes its place, so that nobody ever sees half a result. What is
/// no regular file (a pipe, a terminal) is written directly: there is nothing to replace.
fn write_file(path: &Path, result: &str) -> std::io::Result<()> {
    if path.metadata().is_ok_and(|m| !m.is_file()) {
        return std::fs::OpenOptions::new().write(true).open(path)?.write_all(result.as_bytes());
    }
    // Through a link, the file it leads to is replaced or made, not the link.
    let path = match path.canonicalize() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => end_of_links(path)?,
        found => found?,
    };
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(permissions(&path));
    let mut file = builder.prefix(".osier-").tempfile_in(folder)?;
    file.write_all(result.as_bytes())?;
    file.persist(&path)?;
    Ok(())
}

/// The file to be made: where the links that start here lead, which is nowhere yet.
fn end_of_links(path: &Path) -> std::io::Result<PathBuf> {
    let mut path = path.to_owned();
    // As many as systems follow.
    for _ in 0..40 {
        if !path.is_symlink() {
            return Ok(path);
        }
        let next = path.read_link()?;
        path = path.parent().unwrap_or(Path::new("")).join(next);
    }
    Err(std::io::Error::other("too many symbolic links"))
}

/// Those of the file replaced, or what the umask leaves of the usual ones: temporary files are
/// private.
#[cfg(unix)]
fn permissions(path: &Path) -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .map(|m| m.permissions())
        .unwrap_or_else(|_| std::fs::Permissions::from_mode(0o666))
}
