//! Translates the bodies of a module, with the threads that the limits allow.
//!
//! Threads take the next body in turn, each with an equal share of the budget. If a body fails on
//! any thread, all are translated again on one thread. The error is then the first in the order of
//! the module, and no share of the budget was too small for a body that the whole suffices for. So
//! the number of threads does not show in the result.

use crate::budget::ImportBudget;
use crate::error::{ImportError, Location};
use crate::function::{ModuleContext, translate};
use crate::offsets::BodyOffsets;
use crate::unsupported::UnsupportedBody;
use ir::{Func, Function};
use std::sync::atomic::{AtomicUsize, Ordering};
use wasmparser::{
    FuncToValidate, FuncValidator, FuncValidatorAllocations, FunctionBody, ValidatorResources,
};

/// Bytes of bodies for which a thread pays: it takes 0.1 ms to start one, and about as long to
/// translate a kilobyte.
const SEVERAL: usize = 2048;

/// A body with its validation.
pub(crate) struct Pending<'a> {
    /// The function in the module of the IR.
    pub(crate) id: Func,
    pub(crate) func: FuncToValidate<ValidatorResources>,
    pub(crate) body: FunctionBody<'a>,
}

/// What became of a body.
pub(crate) enum Translated {
    /// It was translated, with the offsets of its instructions if they are noted.
    Body { id: Func, function: Box<Function>, offsets: Option<BodyOffsets> },
    /// It is left out.
    LeftOut(UnsupportedBody),
}

impl Pending<'_> {
    pub(crate) fn translate(
        &self,
        context: ModuleContext<'_>,
        allocations: &mut FuncValidatorAllocations,
        budget: &mut ImportBudget,
    ) -> Result<Translated, ImportError> {
        let left = budget.left();
        let mut validator = self.validator(allocations);
        let error = match translate(context, self.id, &self.body, &mut validator, budget) {
            Ok((function, offsets)) => {
                *allocations = validator.into_allocations();
                let function = Box::new(function);
                return Ok(Translated::Body { id: self.id, function, offsets });
            }
            Err(error) => error,
        };
        let (Some(feature), Some(_), Location::Offset(offset)) =
            (error.feature(), context.unsupported, error.location())
        else {
            return Err(error);
        };
        // Nothing of the function is left, and the rest of the body must be valid as well.
        *budget = ImportBudget::of(left);
        let mut validator = self.validator(&mut validator.into_allocations());
        validator.validate(&self.body)?;
        *allocations = validator.into_allocations();
        Ok(Translated::LeftOut(UnsupportedBody { func: self.id, feature, offset }))
    }

    fn validator(
        &self,
        allocations: &mut FuncValidatorAllocations,
    ) -> FuncValidator<ValidatorResources> {
        let FuncToValidate { resources, index, ty, features } = &self.func;
        let (resources, index, ty, features) = (resources.clone(), *index, *ty, *features);
        let func = FuncToValidate { resources, index, ty, features };
        func.into_validator(std::mem::take(allocations))
    }
}

/// Translates bodies.
///
/// # Errors
/// The first in the order of the bodies.
pub(crate) fn translate_all(
    context: ModuleContext<'_>,
    pending: &[Pending<'_>],
    threads: usize,
    budget: &mut ImportBudget,
) -> Result<Vec<Translated>, ImportError> {
    let bytes: u64 = pending.iter().map(|one| one.body.range().end - one.body.range().start).sum();
    let threads = threads.min(bytes as usize / SEVERAL).min(pending.len());
    if threads > 1
        && let Some(done) = on_threads(context, pending, threads, budget)
    {
        return Ok(done);
    }
    let mut allocations = FuncValidatorAllocations::default();
    pending.iter().map(|one| one.translate(context, &mut allocations, budget)).collect()
}

/// Translates bodies on several threads. `None`, with the budget as it was, if one fails.
fn on_threads(
    context: ModuleContext<'_>,
    pending: &[Pending<'_>],
    threads: usize,
    budget: &mut ImportBudget,
) -> Option<Vec<Translated>> {
    let (next, share) = (AtomicUsize::new(0), budget.left() / threads as u64);
    let work = || {
        let mut budget = ImportBudget::of(share);
        let (mut allocations, mut done) = (FuncValidatorAllocations::default(), Vec::new());
        while let Some(one) = pending.get(next.fetch_add(1, Ordering::Relaxed)) {
            match one.translate(context, &mut allocations, &mut budget) {
                Ok(translated) => done.push(translated),
                Err(_) => {
                    // The other threads need not continue.
                    next.store(pending.len(), Ordering::Relaxed);
                    return None;
                }
            }
        }
        Some((done, share - budget.left()))
    };
    let ended: Vec<Option<(Vec<Translated>, u64)>> = std::thread::scope(|scope| {
        let named = || std::thread::Builder::new().name("importer".to_owned());
        // Without another thread, this one does all the work.
        let others: Vec<_> =
            (1..threads).filter_map(|_| named().spawn_scoped(scope, work).ok()).collect();
        let mine = work();
        let joined = others
            .into_iter()
            .map(|other| other.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload)));
        joined.chain([mine]).collect()
    });
    let (mut all, mut used) = (Vec::with_capacity(pending.len()), 0);
    for part in ended {
        let (done, bytes) = part?;
        all.extend(done);
        used += bytes;
    }
    budget.take(used);
    Some(all)
}
