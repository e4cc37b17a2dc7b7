//! Profiles of native code that counts.

use interp::CallTargets;
use ir::{Inst, Module};
use jit::{NativeCounts, Vm};
use profile::{Counted, Profile};
use transition::VersionKey;

/// The profile of the native code that a machine has run. It covers each function whose installed
/// version is the base and counts ([`Eager::counting`](crate::Eager::counting)). Empty without such
/// versions. Cost: linear in the module.
pub fn native_profile(module: &Module, vm: &Vm) -> Profile {
    Profile::of_counts(module, |func, base| {
        let version = vm.installed(func)?;
        let counts = version.counters()?;
        (version.key() == VersionKey::of(base)).then_some(NativeVersion(counts))
    })
}

/// The counters of a version.
struct NativeVersion<'a>(&'a NativeCounts);

impl Counted for NativeVersion<'_> {
    fn calls(&self) -> u64 {
        self.0.calls()
    }

    fn arguments(&self) -> Vec<Option<u64>> {
        self.0.arguments()
    }

    fn sides(&self, inst: Inst) -> Option<Vec<u64>> {
        self.0.sides(inst)
    }

    fn targets(&self, inst: Inst) -> Option<CallTargets> {
        self.0.targets(inst)
    }

    fn steady_value(&self, inst: Inst) -> Option<u64> {
        self.0.steady_value(inst)
    }
}
