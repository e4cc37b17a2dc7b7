//! Runs processes, and takes their time.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs::File;
use std::io::{Read, Seek};
use std::process::{Command, Stdio};
use std::time::Instant;
use wait4::Wait4;

/// A process that has ended.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    /// Seconds from before its start to after its end.
    pub(super) wall: f64,
    /// Seconds of processor time, in and out of the kernel, of all its threads.
    pub(super) processor: f64,
    /// Its standard output. `None` if it took longer than the limit, and was killed.
    pub(super) output: Option<Vec<u8>>,
}

/// Runs a process to its end, or to a limit in seconds. Output goes to a file, so that no reader
/// competes with the process for the core.
///
/// # Errors
/// If the process cannot be started, or ends with a status other than 0; the message has the end of
/// its error output.
pub(super) fn run(mut command: Command, stdin: Option<&File>, limit: f64) -> Result<Ended, String> {
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
    let wall = begun.elapsed().as_secs_f64();
    if !is_over && !used.status.success() {
        let told = contents(&mut stderr).map_err(text)?;
        let told = String::from_utf8_lossy(&told);
        return Err(format!("{shown}: {}\n{}", used.status, told.trim_end()));
    }
    let output = match is_over {
        true => None,
        false => Some(contents(&mut stdout).map_err(text)?),
    };
    let processor = (used.rusage.utime + used.rusage.stime).as_secs_f64();
    Ok(Ended { wall, processor, output })
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

/// The cores that this thread may use; restored when dropped.
#[derive(Debug)]
pub(super) struct Cores(CpuSet);

impl Cores {
    /// Restricts this thread, and the processes that it starts, to some of its cores.
    ///
    /// # Errors
    /// If it may use fewer.
    pub(super) fn restrict(count: u32) -> Result<Cores, String> {
        let text = |error: rustix::io::Errno| format!("cores: {error}");
        let all = sched_getaffinity(None).map_err(text)?;
        if all.count() < count {
            return Err(format!("{count} cores wanted, {} available", all.count()));
        }
        let mut some = CpuSet::new();
        // The last ones: interrupts mostly go to the first.
        let usable = (0..CpuSet::MAX_CPU).rev().filter(|core| all.is_set(*core));
        usable.take(count as usize).for_each(|core| some.set(core));
        sched_setaffinity(None, &some).map_err(text)?;
        Ok(Cores(all))
    }
}

impl Drop for Cores {
    fn drop(&mut self) {
        // The thread could use these cores before, so only a change from outside makes this fail.
        let _ = sched_setaffinity(None, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::{Cores, run};
    use std::process::Command;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_process_has_output_and_times() {
        let ended = run(shell("echo one; echo two >&2"), None, 60.0).expect("it ends");
        assert_eq!(ended.output.as_deref(), Some(b"one\n".as_slice()));
        assert!(ended.wall > 0.0 && ended.processor < 60.0);
    }

    #[test]
    fn a_process_that_fails_or_does_not_end_is_told_apart() {
        let error = run(shell("echo why >&2; exit 3"), None, 60.0).expect_err("it fails");
        assert!(error.contains("exit status: 3") && error.ends_with("why"), "{error}");
        let over = run(shell("exec sleep 100"), None, 0.05).expect("it is killed");
        assert_eq!(over.output, None);
        assert!(run(Command::new("/no such command"), None, 1.0).is_err());
    }

    #[test]
    fn cores_are_restricted_and_restored() {
        let count = || rustix::thread::sched_getaffinity(None).expect("a thread").count();
        let before = count();
        {
            let _cores = Cores::restrict(1).expect("there is a core");
            assert_eq!(count(), 1);
        }
        assert_eq!(count(), before);
        assert!(Cores::restrict(before + 1).is_err());
    }
}
