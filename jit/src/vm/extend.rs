//! Extends a machine by a further module.

use super::VmError;
use super::host_memory;
use super::linear::{self, Addresses};
use super::state::VmState;
use crate::config::Bounds;
use crate::engine::Engine;
use interp::Region;
use ir::{Module, Table};
use std::sync::Arc;
use transition::VersionKey;

/// The memory regions for the memories of a module, in order, and their addresses.
pub(super) struct Provided {
    regions: std::vec::IntoIter<Option<Box<dyn Region>>>,
    pub(super) addresses: Addresses,
}

impl Provided {
    /// Reserves regions for the memories of a module except the first `has`. Makes none if bounds
    /// are checked.
    ///
    /// # Errors
    /// [`VmError::NoAddressSpace`] if a reservation fails.
    pub(super) fn new(engine: &Engine, module: &Module, has: usize) -> Result<Provided, VmError> {
        let mut addresses = Addresses::new();
        let guarded = engine.config().bounds == Bounds::Guarded;
        let mut provide = |decl| match guarded.then(|| linear::reserved(decl, &mut addresses)) {
            None => Ok(None),
            Some(Some(region)) => Ok(Some(region)),
            Some(None) => Err(VmError::NoAddressSpace { memory: decl.name.clone() }),
        };
        let regions =
            module.memories.values().skip(has).map(&mut provide).collect::<Result<Vec<_>, _>>()?;
        Ok(Provided { regions: regions.into_iter(), addresses })
    }

    /// The region for the next memory.
    pub(super) fn next(&mut self) -> Option<Box<dyn Region>> {
        self.regions.next().flatten()
    }
}

impl VmState {
    /// Replaces the module by one that begins like it (see [`super::Vm::extend`]).
    pub(super) fn extend(&mut self, module: &Arc<Module>) -> Result<(), VmError> {
        if let Some(what) = other_beginning(&self.modules.current, module) {
            return Err(VmError::OtherBeginning { what });
        }
        // The embedder has mutable access to the machine, and may have exchanged it or extended it
        // alone.
        if self.view.share(&mut self.machine, &self.modules, &self.table).is_err() {
            return Err(VmError::Exchanged);
        }
        // Every step that may fail comes before the first change. The exception is an error of a
        // segment: the machine is extended then, so the state must follow, and the error is
        // returned at the end.
        let engine = &self.modules.engine;
        let known = self.modules.current.funcs.len();
        let mut provided = Provided::new(engine, module, self.modules.current.memories.len())?;
        host_memory::require(module, self.has_host_memory)?;
        let program = self.machine.program().extended(module);
        let extended = self.machine.extend_with_regions(&program, &mut |_| provided.next());
        if let Err(error) = &extended
            && !error.is_of_segment()
        {
            return Err(VmError::Instantiate(error.clone()));
        }
        self.provide_host_memory(module);
        self.modules.extend(module, program);
        // The block has room for the new functions, or a larger one takes over its words. `lay_out`
        // fills the new words, so it comes afterwards.
        self.view.extend(module, provided.addresses);
        self.policy.watch.heed(self.view.heeded());
        self.lay_out(known);
        extended.map_err(VmError::Instantiate)
    }
}

/// Finds the first difference at which `later` does not begin like `earlier`. Returns its name.
///
/// Code for the earlier module runs beside code for the later one, and relies on all that this
/// function compares (`another_beginning_is_refused`). Names do not matter. Nor do the initial
/// sizes of memories and of tables that are not fixed, or the initial bits of globals: the existing
/// ones are initialized already. (A memory with fewer pages than the later module declares is
/// rejected by the machine.) Cost: one step per 64 functions that the later module shares as a
/// clone of the earlier one, and linear in the other declarations and segments.
fn other_beginning(earlier: &Module, later: &Module) -> Option<String> {
    // A clone of the module shares the functions before these.
    let shared = earlier.shared_functions(later);
    let (was, is) = (earlier.funcs.iter_from(shared), later.funcs.iter_from(shared));
    let func = first_other(was, is, |(func, was), (_, is)| {
        // A clone of the module shares the bodies: no digest is computed.
        let same_body = earlier.has_body_of(func, later, |was, is| {
            was.family().same_as(is.family()) && VersionKey::of(was) == VersionKey::of(is)
        });
        was.sig == is.sig && was.import == is.import && same_body
    });
    let sig = first_other(earlier.sigs.iter(), later.sigs.iter(), |was, is| was == is);
    let global = first_other(earlier.globals.values(), later.globals.values(), |was, is| {
        was.ty == is.ty && was.mutable == is.mutable
    });
    let memory = first_other(earlier.memories.values(), later.memories.values(), |was, is| {
        // Code relies on the number of pages of a host memory, too.
        let is_same_host =
            was.kind == is.kind && (!was.kind.is_host() || was.min_pages == is.min_pages);
        was.max_pages == is.max_pages && is_same_host
    });
    let table = first_other(earlier.tables.values(), later.tables.values(), |was, is| {
        // Code relies on the entries of a fixed table, and on its size.
        let is_as_fixed = was.fixed == is.fixed && (!was.fixed || was.size == is.size);
        was.ty == is.ty && was.max_size == is.max_size && is_as_fixed
    });
    let data =
        first_other(earlier.data.iter().enumerate(), later.data.iter().enumerate(), |was, is| {
            was == is
        });
    let elements = first_other(
        earlier.elements.iter().enumerate(),
        later.elements.iter().enumerate(),
        |was, is| was == is,
    );
    // A new segment would overwrite entries that code of the earlier module takes for constant.
    let is_fixed = |table: Table| earlier.tables.get(table).is_some_and(|decl| decl.fixed);
    let overwrites = later.elements.iter().enumerate().skip(earlier.elements.len());
    let mut overwrites = overwrites
        .filter(|(_, segment)| segment.active.as_ref().is_some_and(|(table, _)| is_fixed(*table)));
    let found = [
        sig.map(|(sig, _)| format!("signature {sig}")),
        func.map(|(_, decl)| format!("function @{}", decl.name)),
        global.map(|decl| format!("global @{}", decl.name)),
        memory.map(|decl| format!("memory @{}", decl.name)),
        table.map(|decl| format!("table @{}", decl.name)),
        data.map(|(at, _)| format!("data segment {at}")),
        elements.or_else(|| overwrites.next()).map(|(at, _)| format!("element segment {at}")),
    ];
    found.into_iter().flatten().next()
}

/// The first element of a list for which the other list has no equal at the same place.
fn first_other<T: Copy>(
    mut earlier: impl Iterator<Item = T>,
    mut later: impl Iterator<Item = T>,
    same: impl Fn(T, T) -> bool,
) -> Option<T> {
    earlier.find(|was| later.next().is_none_or(|is| !same(*was, is)))
}
