//! Background tiering with delays that the seed decides.
//!
//! [`Tiered`] compiles in a thread beside the run. Its listener blocks the thread at the end of
//! each order, so that the code comes a drawn number of visits later, however fast the thread is.
//! The run continues meanwhile, and installs the code at once or at its next pause. So a seed
//! always gives the same schedule, although two threads work.
//!
//! The listener also follows the queue: the waiting orders, and the reason of each dropped order.

use jit::{Continuation, HotLoop, RunError, Tier, Tiering, Wake};
use osier::tiers::{CodeTier, NoObserver, OrderEnd, TierEvent, Tiered, Wanted};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;
use verify::prng::Prng;

/// The time after which a thread that hands nothing over is stuck. A piece of code of a generated
/// program takes milliseconds.
const STUCK: Duration = Duration::from_secs(100);

/// The state of the listener.
#[derive(Default)]
struct GateState {
    /// The orders that the thread has not begun.
    waiting: Vec<Wanted>,
    in_work: Option<Wanted>,
    /// The order whose code was handed over last.
    last: Option<Wanted>,
    /// Whether the code in work may be handed over.
    is_open: bool,
    /// Whether the policy is gone.
    is_closed: bool,
    /// The functions whose calls run optimized code.
    optimized: Vec<ir::Func>,
    /// The first mistake in the queue.
    wrong: Option<String>,
}

impl GateState {
    fn note(&mut self, wrong: String) {
        self.wrong.get_or_insert(wrong);
    }

    /// Removes an order that waits.
    fn remove(&mut self, wanted: Wanted, what: &str) {
        match self.waiting.iter().position(|order| *order == wanted) {
            Some(at) => _ = self.waiting.remove(at),
            None => self.note(format!("{wanted:?} is {what}, and does not wait")),
        }
    }

    fn drop_order(&mut self, wanted: Wanted, why: OrderEnd) {
        if why == OrderEnd::CodeFull {
            return;
        }
        self.remove(wanted, "dropped");
        let is_alike = |other: &Wanted| other.func == wanted.func && other.tier == wanted.tier;
        let by_loop = |other: &Wanted| is_alike(other) && other.at.is_some();
        let by_last = |fits: &dyn Fn(&Wanted) -> bool| {
            self.last.as_ref().is_some_and(|last| is_alike(last) && fits(last))
        };
        let is_right = match wanted.at {
            // Superseded by another loop, in which the run is now, or by the version of the whole
            // function.
            Some(_) => self.waiting.iter().any(by_loop) || by_last(&|last| last.at.is_none()),
            None => by_last(&|_| true),
        };
        if why != OrderEnd::Superseded || !is_right {
            self.note(format!("{wanted:?} is dropped ({why:?}), and nothing takes its place"));
        }
    }

    /// Optimized code stays, when code of the base comes later.
    fn install(&mut self, wanted: Wanted) {
        if wanted.tier == CodeTier::Optimized {
            self.optimized.push(wanted.func);
        } else if self.optimized.contains(&wanted.func) {
            self.note(format!("{wanted:?} replaces optimized code"));
        }
    }

    /// Checks that at most one loop of each function waits: the loop that requested last, since the
    /// run is in it.
    fn check_loops(&mut self) {
        let loops: Vec<&Wanted> = self.waiting.iter().filter(|order| order.at.is_some()).collect();
        let is_twice = |one: &&&Wanted| {
            loops.iter().filter(|other| (other.func, other.tier) == (one.func, one.tier)).count()
                > 1
        };
        let twice = loops.iter().find(is_twice).map(|order| order.func);
        twice.into_iter().for_each(|func| self.note(format!("several loops of {func} wait")));
    }
}

/// The gate at which the compiler's thread waits with finished code.
pub(super) struct DelayGate {
    state: Mutex<GateState>,
    news: Condvar,
    /// The thread of the run, which makes code itself if the system provides no thread.
    runner: ThreadId,
}

impl DelayGate {
    pub(super) fn new() -> Arc<DelayGate> {
        let (state, news) = (Mutex::default(), Condvar::new());
        Arc::new(DelayGate { state, news, runner: std::thread::current().id() })
    }

    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while a condition holds.
    ///
    /// # Panics
    /// If the other thread is stuck.
    fn wait(&self, holds: impl FnMut(&mut GateState) -> bool) -> MutexGuard<'_, GateState> {
        let waited = self.news.wait_timeout_while(self.lock(), STUCK, holds);
        let (state, time) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!time.timed_out(), "the compiler's thread is stuck with {:?}", state.in_work);
        state
    }

    /// Handles a step of tiering, in either thread.
    pub(super) fn hear(&self, event: TierEvent) {
        let mut state = self.lock();
        match event {
            TierEvent::Asked(wanted, _) => state.waiting.push(wanted),
            TierEvent::Dropped(wanted, why) => state.drop_order(wanted, why),
            TierEvent::Begun(wanted) => {
                state.remove(wanted, "begun");
                state.in_work = Some(wanted);
            }
            TierEvent::Made { wanted, .. } => {
                if std::thread::current().id() != self.runner {
                    drop(state);
                    state = self.wait(|state| !state.is_open && !state.is_closed);
                }
                state.is_open = false;
                (state.in_work, state.last) = (None, Some(wanted));
            }
            TierEvent::Installed(wanted) => state.install(wanted),
            TierEvent::Entered(_) | TierEvent::Paused | TierEvent::Resumed => {}
        }
        drop(state);
        self.news.notify_all();
    }

    /// Waits until the thread has begun a waiting order, if there is one. Otherwise the order that
    /// it begins would depend on times.
    fn settle(&self) {
        let idle = |state: &mut GateState| state.in_work.is_none() && !state.waiting.is_empty();
        self.wait(idle).check_loops();
    }

    fn is_busy(&self) -> bool {
        self.lock().in_work.is_some()
    }

    /// Lets the thread hand over the code in work, and waits for this.
    fn release(&self, wake: &Wake) {
        wake.take();
        self.lock().is_open = true;
        self.news.notify_all();
        // The thread may have begun the next order by then.
        drop(self.wait(|state| state.is_open));
        // The thread has passed the gate, and hands over next.
        while !wake.take() {
            std::thread::yield_now();
        }
        self.settle();
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.news.notify_all();
    }

    /// The first mistake in the queue.
    pub(super) fn wrong(&self) -> Option<String> {
        self.lock().wrong.clone()
    }
}

/// The delay of each piece of code that was handed over, in visits.
pub(super) type Delays = Arc<Mutex<Vec<u32>>>;

/// The policy of `Tiered`, in the background, with delays.
pub(super) struct DelayedTiers {
    tiered: Tiered<NoObserver>,
    gate: Arc<DelayGate>,
    wake: Wake,
    prng: Prng,
    /// The visits after which the code in work is handed over, once drawn.
    left: Option<u32>,
    delays: Delays,
}

impl DelayedTiers {
    /// Lets `tiered` compile in a thread whose code comes late. `tiered` must have no listener.
    pub(super) fn new(
        tiered: Tiered<NoObserver>,
        gate: &Arc<DelayGate>,
        prng: Prng,
        delays: &Delays,
    ) -> DelayedTiers {
        let heard = Arc::clone(gate);
        let listener = Arc::new(move |event| heard.hear(event));
        let tiered = tiered.listening(listener).in_background();
        let wake = tiered.wake().expect("the policy has a thread beside the run");
        let (gate, delays) = (Arc::clone(gate), Arc::clone(delays));
        DelayedTiers { tiered, gate, wake, prng, left: None, delays }
    }

    /// Counts a visit. Returns false if code was handed over and the run must not install it before
    /// its next pause.
    fn visit(&mut self, tier: &mut Tier<'_>) -> Result<bool, RunError> {
        if !self.gate.is_busy() {
            return Ok(true);
        }
        let left = self.left.take().unwrap_or_else(|| self.draw());
        if left > 0 {
            self.left = Some(left - 1);
            return Ok(true);
        }
        self.gate.release(&self.wake);
        if self.prng.chance(50) {
            self.woken(tier)?;
            return Ok(true);
        }
        self.wake.call();
        Ok(false)
    }

    /// Draws the delay of the code in work.
    fn draw(&mut self) -> u32 {
        let delay = match self.prng.below(4) {
            0 => 0,
            1 => 1,
            2 => self.prng.below(4),
            _ => self.prng.below(16),
        };
        self.delays.lock().unwrap_or_else(PoisonError::into_inner).push(delay);
        delay
    }

    /// Schedules the next request soon, as long as code is in work.
    fn again(&mut self, tier: &mut Tier<'_>, func: ir::Func, header: Option<ir::Inst>) {
        self.gate.settle();
        if self.gate.is_busy() {
            let visits = 1 + self.prng.below(3);
            tier.ask_after(func, header, visits);
        }
    }
}

impl Drop for DelayedTiers {
    fn drop(&mut self) {
        self.gate.close();
    }
}

impl Tiering for DelayedTiers {
    fn threshold(&self) -> Option<u32> {
        self.tiered.threshold()
    }

    fn hot_after(&mut self, place: jit::CountedPlace<'_>) -> u32 {
        self.tiered.hot_after(place)
    }

    fn wake(&self) -> Option<Wake> {
        Some(self.wake.clone())
    }

    fn woken(&mut self, tier: &mut Tier<'_>) -> Result<(), RunError> {
        self.tiered.woken(tier)?;
        self.gate.settle();
        Ok(())
    }

    fn demanded(&mut self, tier: &mut Tier<'_>, func: ir::Func) -> Result<(), RunError> {
        if self.visit(tier)? {
            self.tiered.demanded(tier, func)?;
        }
        self.gate.settle();
        Ok(())
    }

    fn called(&mut self, tier: &mut Tier<'_>, func: ir::Func) -> Result<(), RunError> {
        if !self.visit(tier)? {
            tier.ask_after(func, None, 1);
            return Ok(());
        }
        self.tiered.called(tier, func)?;
        self.again(tier, func, None);
        Ok(())
    }

    fn hot(
        &mut self,
        tier: &mut Tier<'_>,
        at: HotLoop,
    ) -> Result<Option<Arc<Continuation>>, RunError> {
        if !self.visit(tier)? {
            tier.ask_again(at);
            return Ok(None);
        }
        let made = self.tiered.hot(tier, at)?;
        match made {
            // Another activation may reach the loop.
            Some(_) => tier.ask_again(at),
            None => self.again(tier, at.func, Some(at.at.inst())),
        }
        Ok(made)
    }
}
