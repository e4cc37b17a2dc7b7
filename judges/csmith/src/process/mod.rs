//! Runs processes, and takes their time.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs::File;
use std::io::{Read, Seek};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;
use wait4::Wait4;

/// A process that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Seconds from before its start to after its end.
    pub wall: f64,
    /// Seconds of processor time, in and out of the kernel, of all its threads.
    pub processor: f64,
    /// Its status. `None` if it took longer than the limit, and was killed.
    pub status: Option<ExitStatus>,
    /// Its standard output.
    pub output: Vec<u8>,
    /// Its error output.
    pub errors: Vec<u8>,
}

impl Ended {
    /// Whether it ended by itself, with status 0.
    pub fn is_well(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// How it ended, with the last lines of its error output.
    pub fn how(&self) -> String {
        let status = self.status.map_or("over the time limit".to_owned(), |s| s.to_string());
        let errors = String::from_utf8_lossy(&self.errors);
        let lines: Vec<&str> = errors.trim_end().lines().collect();
        let last = &lines[lines.len().saturating_sub(3)..];
        [&[status.as_str()], last].concat().join("\n")
    }
}

/// Runs a process to its end, or to a limit in seconds. Output goes to a file, so that no reader
/// competes with the process for the core.
///
/// # Errors
/// If the process cannot be started.
pub fn run(mut command: Command, stdin: Option<&File>, limit: f64) -> Result<Ended, String> {
    let shown = format!("{command:?}");
    let text = |error: std::io::Error| format!("{shown}: {error}");
    let (mut stdout, mut stderr) =
        (tempfile::tempfile().map_err(text)?, tempfile::tempfile().map_err(text)?);
    command.stdout(stdout.try_clone().map_err(text)?).stderr(stderr.try_clone().map_err(text)?);
    match stdin {
        Some(file) => command.stdin(file.try_clone().map_err(text)?),
        None => command.stdin(Stdio::null()),
    };
    let begun = Instant::now();
    let mut child = command.spawn().map_err(text)?;
    let is_over = !ends_within(child.id(), limit).map_err(|error| format!("{shown}: {error}"))?;
    if is_over {
        child.kill().map_err(text)?;
    }
    let used = child.wait4().map_err(text)?;
    Ok(Ended {
        wall: begun.elapsed().as_secs_f64(),
        processor: (used.rusage.utime + used.rusage.stime).as_secs_f64(),
        status: (!is_over).then_some(used.status),
        output: contents(&mut stdout).map_err(text)?,
        errors: contents(&mut stderr).map_err(text)?,
    })
}

/// Like [`run`], for a process that has to end with status 0, or at the limit.
///
/// # Errors
/// If the process cannot be started, or ends with another status.
pub fn run_well(command: Command, stdin: Option<&File>, limit: f64) -> Result<Ended, String> {
    let shown = format!("{command:?}");
    let ended = run(command, stdin, limit)?;
    match ended.status {
        Some(status) if !status.success() => Err(format!("{shown}: {}", ended.how())),
        _ => Ok(ended),
    }
}

fn contents(file: &mut File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Waits for the end of a child, at most `limit` seconds. The child stays to be waited for.
fn ends_within(child: u32, limit: f64) -> rustix::io::Result<bool> {
    let pid = i32::try_from(child).ok().and_then(Pid::from_raw).ok_or(rustix::io::Errno::SRCH)?;
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    let limit = Timespec { tv_sec: limit as i64, tv_nsec: (limit.fract() * 1e9) as _ };
    loop {
        match poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&limit)) {
            Err(rustix::io::Errno::INTR) => {}
            ready => return Ok(ready? > 0),
        }
    }
}

#[cfg(test)]
mod tests;
