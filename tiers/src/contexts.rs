//! Rows for calls whose arguments are constants: versions of the callee under the assumption that
//! the arguments are these constants.
//!
//! Example: a hot loop calls `f(x, 3)`, and `f` branches on its second argument. The caller is
//! compiled with a cell for this call ([`jit::VersionSpec::dispatching`]). A row of `f` assumes
//! that the argument is 3, so passes remove the branch. The checker proves that the call makes the
//! assumption true ([`check::known_call`]), the row has no test of it, and the call jumps there
//! past all other versions of `f`. Arguments that the caller assumes to be constants are constants
//! in its optimized code.
//!
//! *Which facts.* A constant argument counts if it folds something in the callee
//! ([`MIN_WORTH`]). Contexts that agree in the facts that count share a row, and a row that is
//! nearly as long as the version that other calls run is not kept ([`ALIKE`]).
//!
//! *Limits.* The rows of a function have [`CONTEXT_BYTES`] of machine code and are [`CONTEXT_ROWS`]
//! at most. Beyond, the row goes whose calls were executed least. Its calls then lead to the
//! version that other calls run, which is never given up here. One pause of a run tries
//! [`CONTEXT_PAUSE`] rows.
//!
//! Source: contextual dispatch (Flückiger et al., *Contextual Dispatch for Function
//! Specialization*, OOPSLA 2020), there with a search at each call.

use super::speculating::{Speculations, is_testable};
use super::tables::{LandingExit, RowError, is_out_of_memory};
use super::{Compiled, CompiledKind, Observer};
use derive::speculate::{Assumption, Expected, Plan, Speculative, speculate};
use ir::eval::{is_evaluated, is_nan};
use ir::{Func, Function, Imm, Inst, Module, Opcode, Point, Value};
use jit::{Action, FailedPoint, RunError, Tier, Version, VersionSpec};
use osr::VersionTree;
use passes::Pipeline;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The most bytes of machine code of all context rows of a function.
pub const CONTEXT_BYTES: usize = 16 << 10;

/// The most context rows of a function.
pub const CONTEXT_ROWS: usize = 8;

/// The most contexts of a function for which a row is tried: a recursive function may count.
pub const CONTEXT_TRIES: usize = 32;

/// The most contexts for which rows are tried in one pause of a run. Example: `f0(x, 1)` calls
/// `f1(x, 2)`, that calls `f2(x, 3)`, and so on, and each row makes the next context. Further calls
/// lead to installed versions. `a_chain_of_contexts_is_followed_so_far_in_one_pause`
pub const CONTEXT_PAUSE: usize = 16;

/// The most instructions of a function that gets context rows.
pub const CONTEXT_SIZE: usize = 1000;

/// The least worth of a fact: an instruction that becomes constant counts 1, a branch and a
/// division by a constant 4.
pub const MIN_WORTH: usize = 4;

/// A row is kept if it has at most this share, in percent, of the instructions of the version that
/// other calls run.
pub const ALIKE: usize = 95;

/// The most uses of a value that the worth looks at.
const REACH: usize = 256;

/// The reason that assumptions about a context give.
const CONTEXT_REASON: u32 = 0xc0;

/// Whether calls with constant arguments lead to rows of their callees.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ContextUse {
    /// Yes.
    #[default]
    On,
    /// No: all calls of a function run its installed version. For comparison.
    Off,
}

/// The facts of a context: arguments by their index, and their bits.
type ContextFacts = Vec<(usize, u64)>;

/// The calls that a row is for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct ContextKey {
    func: Func,
    facts: ContextFacts,
}

/// A row for calls with these facts.
struct ContextRow {
    made: Speculative,
    version: Arc<Version>,
    /// The assumptions of the context, which its code does not test.
    untested: BTreeSet<Inst>,
    callers: Vec<RowCaller>,
}

/// A call that leads to a row.
struct RowCaller {
    version: Arc<Version>,
    call: Inst,
    /// The number of the call in [`Version::calls`].
    number: usize,
}

impl ContextRow {
    /// How often its calls were executed.
    fn hits(&self) -> u64 {
        let counts = self.callers.iter().filter_map(|of| of.version.call_count(of.number));
        counts.sum()
    }
}

/// The context rows of all functions.
pub(super) struct ContextRows {
    /// Whether any calls lead to rows.
    pub(super) is_on: bool,
    /// The versions whose calls were linked, by address.
    linked: BTreeMap<usize, Arc<Version>>,
    /// `None` for a context whose row was not worth its code, or has gone.
    rows: BTreeMap<ContextKey, Option<ContextRow>>,
    /// The bytes of machine code of all rows.
    pub(super) bytes: usize,
    /// Whether the engine has had no room for code.
    pub(super) is_out_of_memory: bool,
}

impl Default for ContextRows {
    fn default() -> ContextRows {
        let (linked, rows) = (BTreeMap::new(), BTreeMap::new());
        ContextRows { is_on: true, linked, rows, bytes: 0, is_out_of_memory: false }
    }
}

impl std::fmt::Debug for ContextRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContextRows").field("rows", &self.rows.len()).finish_non_exhaustive()
    }
}

/// What context rows are made with.
pub(super) struct ContextMaker<'a, O> {
    pub(super) speculations: &'a mut Speculations,
    pub(super) pipeline: &'a Pipeline,
    pub(super) observer: &'a mut O,
    /// The contexts that may still be tried in this pause.
    pub(super) left: usize,
}

/// The direct calls of a function that may lead to context rows. Linear in the function, and in the
/// uses of the parameters that get constants.
pub(super) fn calls_in_context(module: &Module, function: &Function) -> BTreeSet<Inst> {
    let calls = function.all_insts().filter(|inst| function.inst(*inst).opcode == Opcode::Call);
    calls.filter(|inst| facts_of(module, function, *inst).is_some()).collect()
}

/// The callee of a call, with the facts about its arguments that count. `None` without such a fact,
/// and for a callee that gets no rows.
fn facts_of(module: &Module, caller: &Function, call: Inst) -> Option<ContextKey> {
    let data = caller.inst(call);
    let Imm::Func(func) = data.imm else { return None };
    let base = module.body(func).filter(|base| base.inst_count() <= CONTEXT_SIZE)?;
    let known = data.args.iter().enumerate().filter_map(|(index, arg)| {
        let (param, bits) = (*base.arguments().get(index)?, caller.constant(*arg)?);
        let ty = base.value_type(param);
        let counts = ty.is_number() && !is_nan(ty, bits) && worth(base, param) >= MIN_WORTH;
        counts.then_some((index, bits))
    });
    let facts: ContextFacts = known.collect();
    (!facts.is_empty()).then_some(ContextKey { func, facts })
}

/// What becomes constant with a value: an instruction counts 1, a branch and a division by it 4.
fn worth(base: &Function, value: Value) -> usize {
    let mut known = BTreeSet::from([value]);
    let (mut open, mut worth, mut left) = (vec![value], 0, REACH);
    while let Some(value) = open.pop() {
        for user in base.users(value) {
            left -= 1;
            if left == 0 {
                return worth;
            }
            let data = base.inst(*user);
            let is_branch = matches!(data.opcode, Opcode::BrIf | Opcode::Switch);
            let divides = is_division(data.opcode) && data.args.last() == Some(&value);
            if (is_branch && data.args[0] == value) || divides {
                worth += 4;
                continue;
            }
            let is_known = |arg: &Value| known.contains(arg) || base.constant(*arg).is_some();
            if !is_evaluated(data.opcode) || !data.args.iter().all(is_known) {
                continue;
            }
            if let Some(result) = data.result().filter(|result| known.insert(*result)) {
                worth += 1;
                open.push(result);
            }
        }
    }
    worth
}

fn is_division(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Sdiv | Opcode::Udiv | Opcode::Srem | Opcode::Urem)
}

impl ContextRows {
    /// Lets the calls of an adopted version lead to rows, once, and makes the rows. Then does the
    /// same for the calls of these rows. Tries no context once none is left for this pause, or the
    /// engine has no room. Cost: as [`speculate`] for each context tried.
    ///
    /// # Errors
    /// If a call cannot be linked. A bug of ours.
    pub(super) fn link<O: Observer>(
        &mut self,
        tier: &mut Tier<'_>,
        version: &Arc<Version>,
        maker: &mut ContextMaker<'_, O>,
    ) -> Result<(), RunError> {
        let mut open = vec![Arc::clone(version)];
        while let Some(version) = open.pop() {
            let address = Arc::as_ptr(&version).addr();
            if version.calls().is_empty() || self.linked.contains_key(&address) {
                continue;
            }
            self.linked.insert(address, Arc::clone(&version));
            let module = Arc::clone(tier.module());
            for (number, (call, _)) in version.calls().iter().enumerate() {
                let Some(key) = facts_of(&module, version.function(), *call) else { continue };
                let may_try = maker.left > 0 && !self.is_out_of_memory;
                let is_new = !self.rows.contains_key(&key);
                if may_try && is_new && self.tried(key.func) < CONTEXT_TRIES {
                    maker.left -= 1;
                    let row = self.make(tier, &module, &key, maker);
                    open.extend(row.iter().map(|row| Arc::clone(&row.version)));
                    self.rows.insert(key.clone(), row);
                    self.keep_within(tier, key.func, maker.observer)?;
                }
                let caller = RowCaller { version: Arc::clone(&version), call: *call, number };
                self.lead(tier, caller, &key, maker.observer)?;
            }
        }
        Ok(())
    }

    /// The contexts of a function for which a row was made, or found not to be worth its code.
    fn tried(&self, func: Func) -> usize {
        self.of(func).count()
    }

    /// The contexts of a function.
    fn of(&self, func: Func) -> impl Iterator<Item = (&ContextKey, &Option<ContextRow>)> {
        let first = ContextKey { func, facts: ContextFacts::new() };
        self.rows.range(first..).take_while(move |(key, _)| key.func == func)
    }

    /// Lets a call lead to a row, if there is one.
    fn lead<O: Observer>(
        &mut self,
        tier: &mut Tier<'_>,
        caller: RowCaller,
        key: &ContextKey,
        observer: &mut O,
    ) -> Result<(), RunError> {
        let Some(Some(row)) = self.rows.get_mut(key) else { return Ok(()) };
        let from = caller.version.function();
        let proved = check::known_call(from, caller.call, row.version.function(), &row.untested);
        // The facts are the constants of this call, so the checker refuses none. A refused call
        // runs the installed version.
        let proved = match proved {
            Ok(proved) => proved,
            Err(fault) => {
                observer.without_link(caller.version.func(), caller.call, fault);
                return Ok(());
            }
        };
        tier.link_call(&caller.version, &proved, &row.version).map_err(RunError::Link)?;
        row.callers.push(caller);
        Ok(())
    }

    /// Makes the row of a context and adopts it. `None` if it is not worth its code.
    fn make<O: Observer>(
        &mut self,
        tier: &mut Tier<'_>,
        module: &Arc<Module>,
        ContextKey { func, facts }: &ContextKey,
        maker: &mut ContextMaker<'_, O>,
    ) -> Option<ContextRow> {
        let base = module.body(*func)?;
        let mut assume = assumptions(base, facts);
        if !assume.iter().all(|of| is_testable(tier, base, of)) {
            return None;
        }
        let mut tree = VersionTree::new(base.clone());
        tree.land_in_place(VersionTree::BASE);
        let fact_count = assume.len();
        let mut plan = Plan::new(&[], maker.pipeline);
        maker.speculations.choose(tier, *func);
        // Asked for assumptions, the embedder has said whether its interpreter takes over.
        if maker.speculations.hands(*func) {
            return None;
        }
        let of_rows = maker.speculations.of_rows(tier, *func, maker.pipeline, maker.observer);
        if let Some((listed, of_rows, _)) = of_rows {
            let is_about =
                |of: &&Assumption| facts.iter().all(|(k, _)| base.arguments()[*k] != of.value);
            assume.extend(listed.iter().filter(is_about));
            plan = of_rows;
        }
        let plan = Plan { assume: &assume, ..plan };
        let made = match speculate(module, &mut tree, VersionTree::BASE, &plan) {
            Ok(made) => made,
            Err(error) => {
                maker.observer.refused(*func, &error);
                return None;
            }
        };
        let optimized = tree.function(made.optimized);
        let others = tier.installed(*func).map(|version| version.function().inst_count());
        // A division by a constant is as long, and faster.
        let is_divisor = |(index, _): &(usize, u64)| {
            let param = base.arguments()[*index];
            let mut users = base.users(param).iter().map(|user| base.inst(*user));
            users.any(|data| is_division(data.opcode) && data.args.last() == Some(&param))
        };
        let is_alike = others.is_some_and(|n| optimized.inst_count() * 100 > n * ALIKE)
            && !facts.iter().any(is_divisor);
        let untested = tests(base, &made, facts);
        if is_alike || untested.is_empty() {
            return None;
        }
        maker.observer.begin();
        match compile(tier, module, *func, optimized, &made, untested.clone()) {
            Ok(version) => {
                let (kind, of) = (CompiledKind::Row, version.key());
                let (instructions, bytes) = (optimized.inst_count(), version.code_size());
                let func = *func;
                let compiled = Compiled { func, version: of, kind, instructions, bytes };
                maker.observer.compiled(compiled);
                maker.observer.in_context(func, &assume[..fact_count], &made);
                self.bytes += bytes;
                Some(ContextRow { made, version, untested, callers: Vec::new() })
            }
            Err(error) => {
                self.is_out_of_memory |= is_out_of_memory(&error);
                let at = Point::before(base.first_inst(base.entry()));
                maker.observer.without_row(*func, at, &RowError::Code(error));
                None
            }
        }
    }

    /// Lets rows of a function go until the rest keeps to the limits: the row first whose calls
    /// were executed least.
    fn keep_within<O: Observer>(
        &mut self,
        tier: &mut Tier<'_>,
        func: Func,
        observer: &mut O,
    ) -> Result<(), RunError> {
        loop {
            let kept: Vec<(&ContextKey, &ContextRow)> =
                self.of(func).filter_map(|(key, row)| Some((key, row.as_ref()?))).collect();
            let bytes: usize = kept.iter().map(|(_, row)| row.version.code_size()).sum();
            if bytes <= CONTEXT_BYTES && kept.len() <= CONTEXT_ROWS {
                return Ok(());
            }
            // The newest row has no calls yet, and no hits.
            let old = kept.iter().filter(|(_, row)| !row.callers.is_empty());
            let least = old.min_by_key(|(_, row)| row.hits()).or(kept.first());
            let Some(key) = least.map(|(key, _)| (*key).clone()) else { return Ok(()) };
            self.let_go(tier, &key, observer)?;
        }
    }

    /// Lets a row go: its calls lead to the version that other calls run.
    ///
    /// # Errors
    /// If a call cannot lead back. A bug of ours.
    fn let_go<O: Observer>(
        &mut self,
        tier: &mut Tier<'_>,
        key: &ContextKey,
        observer: &mut O,
    ) -> Result<(), RunError> {
        let Some(row) = self.rows.get_mut(key).and_then(Option::take) else { return Ok(()) };
        if let Some(base) = tier.module().body(key.func) {
            observer.out_of_context(key.func, &assumptions(base, &key.facts));
        }
        self.bytes = self.bytes.saturating_sub(row.version.code_size());
        // A frame may be in the row, and leave it by a point. Released, it would end the run.
        for RowCaller { version, call, .. } in &row.callers {
            tier.unlink_call(version, *call).map_err(RunError::Link)?;
        }
        Ok(())
    }

    /// The exit of a row that a run takes. `None` if the version is no row.
    pub(super) fn exit(&self, at: FailedPoint<'_>) -> Option<LandingExit<'_>> {
        let (_, row) = self.row(at)?;
        let inst = at.version.points()[at.number].at.inst();
        let exit = row.made.exits.iter().find(|exit| exit.inst == inst)?;
        let back = row.made.backward.get(&VersionTree::BASE)?;
        Some(LandingExit::of_version(back, exit.assumption?))
    }

    fn row(&self, at: FailedPoint<'_>) -> Option<(&ContextKey, &ContextRow)> {
        let all = self.rows.iter().filter_map(|(key, row)| Some((key, row.as_ref()?)));
        all.into_iter().find(|(_, row)| Arc::ptr_eq(&row.version, at.version))
    }

    /// Lets the row of a failed assumption go, if the version is a row.
    ///
    /// # Errors
    /// If a call cannot lead back. A bug of ours.
    pub(super) fn give_up<O: Observer>(
        &mut self,
        tier: &mut Tier<'_>,
        at: FailedPoint<'_>,
        observer: &mut O,
    ) -> Result<(), RunError> {
        match self.row(at).map(|(key, _)| key.clone()) {
            Some(key) => self.let_go(tier, &key, observer),
            None => Ok(()),
        }
    }
}

/// The facts of a context, as assumptions about the base.
fn assumptions(base: &Function, facts: &ContextFacts) -> Vec<Assumption> {
    let at = Point::before(base.first_inst(base.entry()));
    let about = |(index, bits): &(usize, u64)| {
        let (value, expected) = (base.arguments()[*index], Expected::Is(*bits));
        Assumption { at, value, expected, reason: CONTEXT_REASON }
    };
    facts.iter().map(about).collect()
}

/// The assumptions of a row that are facts of its context: about the argument, with its bits. An
/// assumption of an embedder may have the same reason
/// (`an_assumption_of_the_embedder_is_no_fact_of_a_context`).
fn tests(base: &Function, made: &Speculative, facts: &ContextFacts) -> BTreeSet<Inst> {
    let is_fact = |of: &Assumption| {
        let about = |(index, bits): &(usize, u64)| {
            base.arguments()[*index] == of.value && of.expected == Expected::Is(*bits)
        };
        facts.iter().any(about)
    };
    let own = made.exits.iter().filter(|exit| exit.assumption.as_ref().is_some_and(is_fact));
    own.map(|exit| exit.inst).collect()
}

/// Compiles a row and adopts it.
///
/// # Errors
/// If the engine makes no code of it.
fn compile(
    tier: &mut Tier<'_>,
    module: &Arc<Module>,
    func: Func,
    function: &Function,
    made: &Speculative,
    untested: BTreeSet<Inst>,
) -> Result<Arc<Version>, RunError> {
    let back = Arc::new(made.backward[&VersionTree::BASE].clone());
    let spec = VersionSpec::leaving(function, |_| Some(&**back));
    let calls = calls_in_context(module, function);
    let spec = spec.map(|spec| spec.untested(untested).dispatching(calls));
    let version = spec.and_then(|spec| tier.engine().version(module, func, function, spec));
    let version = version.map_err(RunError::Compile)?;
    let actions = vec![Action::Interpret(back); version.points().len()];
    tier.adopt(&version, actions).map_err(RunError::Link)?;
    Ok(version)
}

#[cfg(test)]
mod tests;
