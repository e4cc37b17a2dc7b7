//! Writes results to standard output or to a file.

use super::failure::CommandFailure;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The destination of a result.
#[derive(Clone, Debug)]
pub(super) enum Output {
    /// Standard output.
    Stdout,
    /// A file. After a write it holds the whole result; after a failed write it holds its former
    /// contents.
    File(PathBuf),
}

impl Output {
    /// A file if a path is given, else standard output. `-` is standard output, as it is standard
    /// input where a command reads a file.
    pub(super) fn to(path: Option<PathBuf>) -> Output {
        path.filter(|path| path != Path::new("-")).map_or(Output::Stdout, Output::File)
    }

    /// Checks that results can be written to these paths, before the work of a command. Creates the
    /// temporary file of each path, and removes it.
    ///
    /// # Errors
    /// If a path has no folder, or the folder takes no file.
    pub(super) fn check<'p>(
        paths: impl IntoIterator<Item = &'p PathBuf>,
    ) -> Result<(), CommandFailure> {
        for path in paths {
            let Output::File(path) = Output::to(Some(path.clone())) else { continue };
            check_file(&path).map_err(|e| CommandFailure::writing(path.display(), &e))?;
        }
        Ok(())
    }

    /// Whether the destination shows colors. Only a terminal as standard output does, unless
    /// `NO_COLOR` forbids it.
    pub(super) fn is_colored(&self) -> bool {
        let stdout = std::io::stdout();
        matches!(self, Output::Stdout)
            && anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never
    }

    /// Writes a whole result in which labels stand behind `indent` blanks, with colors where the
    /// destination has them.
    ///
    /// # Errors
    /// As [`Output::write`].
    pub(super) fn write_labeled(&self, result: &str, indent: usize) -> Result<(), CommandFailure> {
        match self.is_colored() {
            true => self.write(&osier::report::colored_labels(result, indent)),
            false => self.write(result),
        }
    }

    /// Writes a whole result.
    ///
    /// # Errors
    /// If the destination cannot be written. A closed pipe is [`CommandFailure::ClosedOutput`].
    pub(super) fn write(&self, result: &str) -> Result<(), CommandFailure> {
        match self {
            Output::Stdout => {
                let mut out = std::io::stdout().lock();
                let written = out.write_all(result.as_bytes()).and_then(|()| out.flush());
                written.map_err(|e| CommandFailure::writing("standard output", &e))
            }
            Output::File(path) => {
                write_file(path, result).map_err(|e| CommandFailure::writing(path.display(), &e))
            }
        }
    }
}

/// Writes a temporary file beside the destination and renames it into place, so that no reader sees
/// half a result. A destination that is not a regular file (a pipe, a terminal) cannot be replaced
/// and is written directly.
///
/// # Errors
/// If a file cannot be created, written or renamed, or a chain of links does not end.
fn write_file(path: &Path, result: &str) -> std::io::Result<()> {
    if path.metadata().is_ok_and(|m| !m.is_file()) {
        return std::fs::OpenOptions::new().write(true).open(path)?.write_all(result.as_bytes());
    }
    let path = destination(path)?;
    let mut file = temporary(&path)?;
    file.write_all(result.as_bytes())?;
    file.persist(&path)?;
    Ok(())
}

/// Fails as [`write_file`] would before it writes.
///
/// # Errors
/// If the path is a folder, or no file can be created beside it.
fn check_file(path: &Path) -> std::io::Result<()> {
    match path.metadata() {
        Ok(found) if found.is_dir() => Err(std::io::ErrorKind::IsADirectory.into()),
        Ok(found) if !found.is_file() => Ok(()),
        _ => temporary(&destination(path)?).map(drop),
    }
}

/// The file that a path means. A rename onto a symbolic link would replace the link, so this is the
/// file that it points to.
fn destination(path: &Path) -> std::io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => end_of_links(path),
        found => found,
    }
}

/// A temporary file beside the destination, with the permissions for it.
fn temporary(path: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(permissions(path));
    builder.prefix(".osier-").tempfile_in(folder)
}

/// Follows symbolic links from `path` to a file that does not exist yet. `canonicalize` fails on
/// such links.
fn end_of_links(path: &Path) -> std::io::Result<PathBuf> {
    let mut path = path.to_owned();
    // Linux follows at most 40 links.
    for _ in 0..40 {
        if !path.is_symlink() {
            return Ok(path);
        }
        let next = path.read_link()?;
        path = path.parent().unwrap_or(Path::new("")).join(next);
    }
    Err(std::io::Error::other("too many symbolic links"))
}

/// The permissions for the new file: the permissions of the replaced file, or else the default
/// permissions within the umask. Temporary files would otherwise be private to the user.
#[cfg(unix)]
fn permissions(path: &Path) -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .map(|m| m.permissions())
        .unwrap_or_else(|_| std::fs::Permissions::from_mode(0o666))
}
