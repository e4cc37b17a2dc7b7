//! Compiles in a thread beside the run.
//!
//! The run orders what it wants and goes on. The worker makes one goal after another and calls the
//! [`Wake`] of the run, which then collects what is done. Orders wait in one place: the same goal
//! waits once, so no more goals wait than a module has functions and loops.

use super::compiler::{Goal, Made};
use ir::Module;
use jit::{Engine, RunError, Wake};
use std::any::Any;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Stack of the worker in bytes.
const STACK: usize = 16 << 20;

/// What is made for a goal. `None` if the function has no body.
type Result = std::result::Result<Option<Made>, RunError>;

/// Makes goals.
type Maker = Box<dyn FnMut(&Engine, &Arc<Module>, Goal) -> Result + Send>;

/// A goal that waits.
struct Order {
    engine: Engine,
    module: Arc<Module>,
    /// How often the run has asked for it.
    asked: u64,
    /// The instructions of the base.
    size: usize,
}

/// What the two threads share.
#[derive(Default)]
struct Desk {
    orders: BTreeMap<Goal, Order>,
    /// The goal that the worker makes at the moment.
    in_work: Option<Goal>,
    done: Vec<(Goal, std::thread::Result<Result>)>,
    /// Whether the policy is gone.
    is_closed: bool,
}

impl Desk {
    /// Takes the order to make next. Loops come first, since the run is in them. Then comes what
    /// was asked for most often, by the instructions that it costs.
    fn take(&mut self) -> Option<(Goal, Order)> {
        let rank = |(goal, order): &(&Goal, &Order)| {
            let worth = order.asked.saturating_mul(1 << 20) / (order.size as u64).max(1);
            (matches!(goal, Goal::Loop(..)), worth, Reverse(**goal))
        };
        let goal = *self.orders.iter().max_by_key(rank)?.0;
        let order = self.orders.remove(&goal)?;
        self.in_work = Some(goal);
        Some((goal, order))
    }

    /// Notes what a goal has led to. A version comes with each loop of its function, so nobody
    /// needs it alone any more.
    fn finish(&mut self, goal: Goal, made: std::thread::Result<Result>) {
        self.orders.remove(&Goal::Version(goal.func()));
        self.in_work = None;
        self.done.push((goal, made));
    }
}

#[derive(Default)]
struct Office {
    desk: Mutex<Desk>,
    /// Notified when there is an order, and when the policy is gone.
    news: Condvar,
    wake: Wake,
}

impl Office {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        // A panic in a maker is caught outside the lock, so the desk is whole.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes orders until the policy is gone.
    fn work(&self, make: &mut Maker) {
        while let Some((goal, order)) = self.next() {
            let made = catch_unwind(AssertUnwindSafe(|| make(&order.engine, &order.module, goal)));
            self.desk().finish(goal, made);
            self.wake.call();
        }
    }

    /// Waits for the next order. `None` when the policy is gone.
    fn next(&self) -> Option<(Goal, Order)> {
        let waits = |desk: &mut Desk| desk.orders.is_empty() && !desk.is_closed;
        let desk = self.news.wait_while(self.desk(), waits);
        let mut desk = desk.unwrap_or_else(PoisonError::into_inner);
        if desk.is_closed { None } else { desk.take() }
    }
}

/// A thread that compiles. It starts with the first order, and ends by itself after the worker is
/// dropped: with the goal that it makes then, for which nobody waits.
pub(super) struct Worker {
    office: Arc<Office>,
    /// Until the thread has started. If it cannot be started, the run makes its goals itself.
    maker: Option<Maker>,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("in_work", &self.office.desk().in_work).finish()
    }
}

impl Worker {
    pub(super) fn new(maker: Maker) -> Worker {
        Worker { office: Arc::default(), maker: Some(maker) }
    }

    /// What the worker calls when something is done.
    pub(super) fn wake(&self) -> Wake {
        self.office.wake.clone()
    }

    /// Orders a goal, or notes that it was asked for again.
    pub(super) fn order(&mut self, engine: &Engine, module: &Arc<Module>, goal: Goal) {
        let Some(base) = module.body(goal.func()) else { return };
        let mut desk = self.office.desk();
        if desk.in_work == Some(goal) {
            return;
        }
        let order = desk.orders.entry(goal).or_insert_with(|| Order {
            engine: engine.clone(),
            module: Arc::clone(module),
            asked: 0,
            size: base.inst_count(),
        });
        order.asked += 1;
        drop(desk);
        if self.maker.is_some() {
            self.start();
        }
        self.office.news.notify_one();
    }

    /// Starts the thread, or makes what is ordered at once if the system has no thread.
    fn start(&mut self) {
        let (office, slot) = (Arc::clone(&self.office), Arc::new(Mutex::new(self.maker.take())));
        let theirs = Arc::clone(&slot);
        let taken = |slot: &Mutex<Option<Maker>>| {
            slot.lock().unwrap_or_else(PoisonError::into_inner).take()
        };
        let body = move || {
            let maker = taken(&theirs);
            maker.into_iter().for_each(|mut make| office.work(&mut make));
        };
        let named = std::thread::Builder::new().name("compiler".to_owned()).stack_size(STACK);
        if named.spawn(body).is_ok() {
            return;
        }
        // The closure is gone, and the maker still lies in the slot.
        self.maker = taken(&slot);
        let Some(make) = &mut self.maker else { return };
        while let Some((goal, order)) = { self.office.desk().take() } {
            let made = make(&order.engine, &order.module, goal);
            self.office.desk().finish(goal, Ok(made));
            self.office.wake.call();
        }
    }

    /// What was done since the last question. A panic of the compiler is one of the run.
    ///
    /// # Errors
    /// The first error of the compiler.
    pub(super) fn collect(&self) -> std::result::Result<Vec<(Goal, Option<Made>)>, RunError> {
        let done = std::mem::take(&mut self.office.desk().done);
        let done = done.into_iter().map(|(goal, made)| {
            let made = made.unwrap_or_else(|payload: Box<dyn Any + Send>| resume_unwind(payload));
            Ok((goal, made?))
        });
        done.collect()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.office.desk().is_closed = true;
        self.office.news.notify_all();
    }
}
