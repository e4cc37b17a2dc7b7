//! Compiles in another thread than the run.
//!
//! The run orders code and continues. The worker makes one order after another and calls the
//! [`Wake`] of the run, which then collects the code. The queue holds each goal once, and at most
//! [`MOST_ORDERS`] orders: it drops the order that saves least.

use super::compiler::{CodeTier, Goal, Made};
use super::events::{OrderEnd, TierEvent, TierListener, Wanted};
use ir::Module;
use jit::{Engine, RunError, Wake};
use std::any::Any;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Stack of the worker in bytes.
const STACK: usize = 16 << 20;

/// The most orders that wait. A run repeats the request for code that it still needs.
pub(super) const MOST_ORDERS: usize = 1024;

/// The code made for a goal. `None` if the function has no body.
pub(super) type Result = std::result::Result<Option<Made>, RunError>;

/// A goal at a tier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct TierGoal {
    pub(super) tier: CodeTier,
    pub(super) goal: Goal,
}

/// Makes goals.
type Maker = Box<dyn FnMut(&Engine, &Arc<Module>, TierGoal) -> Result + Send>;

/// A goal that waits.
struct Order {
    engine: Engine,
    module: Arc<Module>,
    /// The savings per unit of price.
    worth: u64,
}

/// The queue that both threads share.
#[derive(Default)]
struct Desk {
    orders: BTreeMap<TierGoal, Order>,
    /// The order that the worker makes at the moment.
    in_work: Option<TierGoal>,
    done: Vec<(TierGoal, std::thread::Result<Result>)>,
    /// Whether the policy is gone.
    is_closed: bool,
}

/// The rank of an order: code of the base comes before optimized code, which native code waits for
/// already. Then comes the code that saves most. Of one function, loops come first, since the run
/// is in them.
fn rank(key: &TierGoal, order: &Order) -> impl Ord + use<> {
    let TierGoal { tier, goal } = *key;
    (Reverse(tier), order.worth, matches!(goal, Goal::Loop(..)), Reverse(goal))
}

impl Desk {
    /// Takes the order to make next.
    fn take(&mut self) -> Option<(TierGoal, Order)> {
        let key = *self.orders.iter().max_by_key(|(key, order)| rank(key, order))?.0;
        let order = self.orders.remove(&key)?;
        self.in_work = Some(key);
        Some((key, order))
    }

    /// Removes the order of another loop of the same function, if one waits: the run is in the loop
    /// that has asked last. Code of it comes by all later loops, and an earlier loop that is
    /// visited again asks again.
    fn leave_other_loops(&mut self, wanted: TierGoal) -> Option<TierGoal> {
        let Goal::Loop(func, _) = wanted.goal else { return None };
        let is_other = |key: &&TierGoal| {
            let is_loop = matches!(key.goal, Goal::Loop(of, _) if of == func);
            is_loop && key.tier == wanted.tier && key.goal != wanted.goal
        };
        let other = *self.orders.keys().find(is_other)?;
        self.orders.remove(&other).map(|_| other)
    }

    /// Removes the order that saves least, if too many wait.
    fn shorten(&mut self) -> Option<TierGoal> {
        if self.orders.len() <= MOST_ORDERS {
            return None;
        }
        let key = *self.orders.iter().min_by_key(|(key, order)| rank(key, order))?.0;
        self.orders.remove(&key).map(|_| key)
    }

    /// Notes the code of a goal. With a version, nobody needs it alone any more; nor a loop of its
    /// function, since the run will mostly enter by calls. A loop that it stays in asks again.
    /// Returns the orders that this makes useless.
    fn finish(&mut self, key: TierGoal, made: std::thread::Result<Result>) -> Vec<TierGoal> {
        let has_version = matches!(&made, Ok(Ok(Some(Made { version: Some(_), .. }))));
        let is_loop = |key: &TierGoal| matches!(key.goal, Goal::Loop(..));
        let is_useless = |other: &TierGoal| {
            let is_of_function = other.tier == key.tier && other.goal.func() == key.goal.func();
            has_version && is_of_function && is_loop(other) != is_loop(&key)
        };
        let useless: Vec<TierGoal> = self.orders.keys().copied().filter(is_useless).collect();
        useless.iter().for_each(|key| drop(self.orders.remove(key)));
        self.in_work = None;
        self.done.push((key, made));
        useless
    }
}

/// An order, as observers hear of it.
pub(super) fn wanted(TierGoal { tier, goal }: TierGoal) -> Wanted {
    Wanted { func: goal.func(), at: goal.point(), tier }
}

struct Office {
    desk: Mutex<Desk>,
    /// Notified when there is an order, and when the policy is gone.
    news: Condvar,
    wake: Wake,
    listener: Option<TierListener>,
}

impl Office {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        // A panic in a maker is caught outside the lock, so the desk is whole.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes orders until the policy is gone.
    fn work(&self, make: &mut Maker) {
        while let Some((key, order)) = self.next() {
            self.tell(TierEvent::Begun(wanted(key)));
            let made = catch_unwind(AssertUnwindSafe(|| make(&order.engine, &order.module, key)));
            self.finish(key, made);
        }
    }

    fn tell(&self, event: TierEvent) {
        if let Some(listener) = &self.listener {
            listener(event);
        }
    }

    /// Hands an order over to the run.
    fn finish(&self, key: TierGoal, made: std::thread::Result<Result>) {
        let is_entry = matches!(&made, Ok(Ok(Some(Made { entry: Some(_), .. }))));
        self.tell(TierEvent::Made { wanted: wanted(key), is_entry });
        let useless = self.desk().finish(key, made);
        self.wake.call();
        for useless in useless {
            self.tell(TierEvent::Dropped(wanted(useless), OrderEnd::Superseded));
        }
    }

    /// Waits for the next order. `None` when the policy is gone.
    fn next(&self) -> Option<(TierGoal, Order)> {
        let waits = |desk: &mut Desk| desk.orders.is_empty() && !desk.is_closed;
        let desk = self.news.wait_while(self.desk(), waits);
        let mut desk = desk.unwrap_or_else(PoisonError::into_inner);
        if desk.is_closed { None } else { desk.take() }
    }
}

/// A thread that compiles. It starts with the first order. After the worker is dropped, it ends
/// with the goal in progress; no thread waits for that.
pub(super) struct Worker {
    office: Arc<Office>,
    /// `Some` until the thread has started. If the system provides no thread, the run itself makes
    /// its goals.
    maker: Option<Maker>,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("in_work", &self.office.desk().in_work).finish()
    }
}

impl Worker {
    pub(super) fn new(maker: Maker, listener: Option<TierListener>) -> Worker {
        let (desk, news, wake) = (Mutex::default(), Condvar::new(), Wake::new());
        Worker { office: Arc::new(Office { desk, news, wake, listener }), maker: Some(maker) }
    }

    /// The wake that the worker calls after each finished goal.
    pub(super) fn wake(&self) -> Wake {
        self.office.wake.clone()
    }

    /// Orders a goal, or updates the worth of a waiting order: the savings so far by the price.
    /// Reports a new order with `visits` to the listener.
    pub(super) fn order(
        &mut self,
        engine: &Engine,
        module: &Arc<Module>,
        key: TierGoal,
        worth: u64,
        visits: u64,
    ) {
        let mut desk = self.office.desk();
        let is_done = desk.done.iter().any(|(done, _)| *done == key);
        if desk.in_work == Some(key) || is_done {
            return;
        }
        // Report under the lock, before the worker can begin.
        if !desk.orders.contains_key(&key) {
            self.office.tell(TierEvent::Asked(wanted(key), visits));
        }
        let order = desk.orders.entry(key).or_insert_with(|| Order {
            engine: engine.clone(),
            module: Arc::clone(module),
            worth,
        });
        order.worth = order.worth.max(worth);
        let useless = [
            (desk.leave_other_loops(key), OrderEnd::Superseded),
            (desk.shorten(), OrderEnd::QueueFull),
        ];
        drop(desk);
        for (key, why) in useless {
            key.into_iter().for_each(|key| self.office.tell(TierEvent::Dropped(wanted(key), why)));
        }
        if self.maker.is_some() {
            self.start();
        }
        self.office.news.notify_one();
    }

    /// Starts the thread, or makes the orders at once if the system has no thread.
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
        while let Some((key, order)) = { self.office.desk().take() } {
            let made = make(&order.engine, &order.module, key);
            self.office.finish(key, Ok(made));
        }
    }

    /// What was done since the last question, or why it could not be done. A panic of the compiler
    /// is one of the run.
    pub(super) fn collect(&self) -> Vec<(TierGoal, Result)> {
        let done = std::mem::take(&mut self.office.desk().done);
        let done = done.into_iter().map(|(key, made)| {
            let made = made.unwrap_or_else(|payload: Box<dyn Any + Send>| resume_unwind(payload));
            (key, made)
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

#[cfg(test)]
mod tests {
    use super::{Desk, Order, TierGoal};
    use crate::compiler::{CodeTier, Goal, Made};
    use ir::{Func, Inst, Point};
    use std::sync::Arc;

    /// Calls enter an installed function, so its loops no longer wait for code.
    #[test]
    fn a_version_makes_orders_for_loops_of_its_function_useless() {
        let text = "func @f() {\nentry:\n  return\n}\n";
        let module = Arc::new(ir::text::parse_module(text).expect("well-formed"));
        let engine = jit::Engine::new(jit::Config::default()).expect("native code runs here");
        let (func, body) = module.defined().next().expect("one function");
        let version = engine.version(&module, func, body, &[]).expect("it compiles");
        let order = || Order { engine: engine.clone(), module: Arc::clone(&module), worth: 1 };
        let at = |index| Point::before(Inst::from_u32(index));
        let key = |goal| TierGoal { tier: CodeTier::Base, goal };
        let (mine, other) = (Goal::Loop(func, at(1)), Goal::Loop(Func::from_u32(7), at(1)));
        let mut desk = Desk::default();
        desk.orders.extend([mine, other].map(|goal| (key(goal), order())));
        let made = Made { version: Some(version), entry: None };
        let useless = desk.finish(key(Goal::Version(func)), Ok(Ok(Some(made))));
        assert_eq!(useless, [key(mine)]);
        assert!(desk.orders.keys().copied().eq([key(other)]));
    }
}
