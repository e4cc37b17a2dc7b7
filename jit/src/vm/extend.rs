//! Taking up modules behind the one there is.

use super::VmError;
use super::block::Block;
use super::region::{self, Addresses};
use super::state::{State, lazy_stubs};
use crate::config::Bounds;
use crate::engine::Engine;
use interp::Region;
use ir::Module;
use std::sync::Arc;
use transition::VersionKey;

/// What the memories of a module are given, one each, and where that is.
pub(super) struct Provided {
    regions: std::vec::IntoIter<Option<Box<dyn Region>>>,
    pub(super) addresses: Addresses,
}

impl Provided {
    /// Room for the memories of a module but the first `has`; nothing where bounds are checked.
    pub(super) fn new(engine: &Engine, module: &Module, has: usize) -> Result<Provided, VmError> {
        let mut addresses = Addresses::new();
        let guarded = engine.config().bounds == Bounds::Guarded;
        let mut provide = |decl| match guarded.then(|| region::reserved(decl, &mut addresses)) {
            None => Ok(None),
            Some(Some(region)) => Ok(Some(region)),
            Some(None) => Err(VmError::NoAddressSpace { memory: decl.name.clone() }),
        };
        let regions =
            module.memories.values().skip(has).map(&mut provide).collect::<Result<Vec<_>, _>>()?;
        Ok(Provided { regions: regions.into_iter(), addresses })
    }

    /// What the next memory is given.
    pub(super) fn next(&mut self) -> Option<Box<dyn Region>> {
        self.regions.next().flatten()
    }
}

impl State {
    /// Takes up a module that begins like the one there is.
    pub(super) fn extend(&mut self, module: &Arc<Module>) -> Result<(), VmError> {
        if let Some(what) = other_beginning(&self.module, module) {
            return Err(VmError::OtherBeginning { what });
        }
        // Whoever has the machine may have exchanged it, or extended it alone.
        if self.share().is_err() {
            return Err(VmError::Exchanged);
        }
        // Everything that may fail comes before everything that changes.
        let mut provided = Provided::new(&self.engine, module, self.module.memories.len())?;
        let stubs = lazy_stubs(&self.engine, module, self.lazy.len()).map_err(VmError::Compile)?;
        let program = self.machine.program().extended(module);
        let extended = self.machine.extend_with_regions(&program, &mut |_| provided.next());
        if let Err(error) = &extended
            && !error.is_of_segment()
        {
            return Err(VmError::Instantiate(error.clone()));
        }
        let known = self.module.funcs.len();
        self.earlier.push(Arc::downgrade(&self.module));
        self.module = Arc::clone(module);
        self.program = program;
        self.guarded.append(&mut provided.addresses);
        self.block = self.interrupts.move_to(Block::new(module.funcs.len()));
        self.profile.heed(self.heeded());
        self.lay_out(stubs);
        self.mark_loops(known);
        extended.map_err(VmError::Instantiate)
    }
}

/// In which a module does not begin like an earlier one, if it does not. Code for the one runs
/// beside code for the other, and relies on what is compared here (`another_beginning_is_refused`).
/// Names do not matter, nor do sizes of memories and tables and bits of globals at the start: what
/// is there has them already. Cost: linear in declarations and segments.
fn other_beginning(earlier: &Module, later: &Module) -> Option<String> {
    let func = first_other(earlier.funcs.iter(), later.funcs.iter(), |(func, was), (_, is)| {
        let same_body = match (earlier.body(func), later.body(func)) {
            (Some(was), Some(is)) => {
                was.family().same_as(is.family()) && VersionKey::of(was) == VersionKey::of(is)
            }
            (was, is) => was.is_none() && is.is_none(),
        };
        was.sig == is.sig && was.import == is.import && same_body
    });
    let sig = first_other(earlier.sigs.iter(), later.sigs.iter(), |was, is| was == is);
    let global = first_other(earlier.globals.values(), later.globals.values(), |was, is| {
        was.ty == is.ty && was.mutable == is.mutable
    });
    let memory = first_other(earlier.memories.values(), later.memories.values(), |was, is| {
        was.max_pages == is.max_pages
    });
    let table = first_other(earlier.tables.values(), later.tables.values(), |was, is| {
        was.ty == is.ty && was.max_size == is.max_size
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
    let found = [
        sig.map(|(sig, _)| format!("signature {sig}")),
        func.map(|(_, decl)| format!("function @{}", decl.name)),
        global.map(|decl| format!("global @{}", decl.name)),
        memory.map(|decl| format!("memory @{}", decl.name)),
        table.map(|decl| format!("table @{}", decl.name)),
        data.map(|(at, _)| format!("data segment {at}")),
        elements.map(|(at, _)| format!("element segment {at}")),
    ];
    found.into_iter().flatten().next()
}

/// The first of a list that another list does not have in its place.
fn first_other<T: Copy>(
    mut earlier: impl Iterator<Item = T>,
    mut later: impl Iterator<Item = T>,
    same: impl Fn(T, T) -> bool,
) -> Option<T> {
    earlier.find(|was| later.next().is_none_or(|is| !same(*was, is)))
}
