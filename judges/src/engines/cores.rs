//! The cores on which processes run.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The cores that this thread may use; restored when dropped.
#[derive(Debug)]
pub(super) struct Cores(CpuSet);

impl Cores {
    /// Restricts this thread, and the processes that it starts, to a subset of its cores.
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
        // The last cores: interrupts mostly go to the first cores.
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
    use super::Cores;

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
