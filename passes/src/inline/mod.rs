//! Replaces calls by the code of the called functions.
//!
//! *Does*: replaces direct calls, also in inlined code, by the rules of [`InlinePolicy`]: calls of
//! small functions, of larger functions without other callers, and, with counts of a profile, hot
//! calls of larger functions. A function may be inlined into itself, directly or through others, a
//! bounded number of times.
//!
//! *Does not*: inline functions that assume or have OSR points, or, with counts, calls that were
//! never executed; or every call of a long row whose code may vanish (`rows`). Inline through
//! tables: [`crate::ResolveCalls`] makes such calls direct.
//!
//! *Needs on entry*: the module of the function, with its callers. Counts are in terms of the
//! bases, and the version has calls of its base alone.
//!
//! *Holds on exit*: nothing that later passes rely on.
//!
//! *Actions emitted*: `inline`.
//!
//! *Effect on mappings*: no entry leads from or to points behind an inlined call, since the effects
//! of the callee take its place. The version is a copy of the functions that it is made of
//! (`check::copy`). The inlined code comes from base versions, also in a function inlined into
//! itself.
//!
//! *Why correct*: a run of the copy executes the instructions that the callee would, on copies of
//! its values.
//!
//! *Cost*: linear in the code of the version after it, with logarithmic factors.

mod callers;
mod counts;
mod rows;

pub use callers::Callers;
pub use counts::CallCounts;

use ir::edit::{Editor, Pass};
use ir::{Func, Function, Imm, Inst, Opcode};
use rows::Rows;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Which calls are inlined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InlinePolicy {
    /// The most instructions of a callee.
    pub size: usize,
    /// The most instructions of a callee that is called at one place alone
    /// ([`Callers::is_single`]), if the code around the call stands nowhere else. This means that
    /// its functions are called at one place alone, too, and its outermost is no such callee
    /// itself.
    pub single_size: usize,
    /// The most instructions of the callee of a hot call.
    pub hot_size: usize,
    /// The executions in a profile from which on a call is hot.
    pub hot: u64,
    /// The largest depth of inlined calls.
    pub depth: usize,
    /// How often a function may occur among nested calls and the function around them, besides the
    /// first time. With 0, no function is inlined into itself.
    pub recursion: usize,
    /// The most instructions that a function gains, in hundredths of its own. Callees with one
    /// caller do not count: their code moves. The original stays for frames to land in, but is
    /// compiled only if a run lands there.
    pub growth: usize,
    /// The instructions that each function may gain besides.
    pub allowance: usize,
}

impl Default for InlinePolicy {
    /// Measured after `O3` beside `O2`. Of bzip2, Lua, SQLite and zlib, Lua as `mem2reg` leaves it
    /// grows most: with callees of 30, 45, 60 and 80 instructions that have one caller by 22, 25,
    /// 29 and 31 %, at the same speed but for noise. The bar is 30 %. On the 15 kernels of
    /// `tests/corpus/`, moving such callees shrinks the code that runs can reach. A second level of
    /// recursion found no room.
    fn default() -> InlinePolicy {
        InlinePolicy {
            size: 30,
            single_size: 60,
            hot_size: 100,
            hot: 1000,
            depth: 3,
            recursion: 1,
            growth: 30,
            allowance: 20,
        }
    }
}

impl InlinePolicy {
    /// Whether a function is small enough for some call of it to be inlined. A caller may lack the
    /// room, and other reasons forbid it as well. Cost: logarithmic.
    pub fn may_inline(
        &self,
        callers: &Callers<'_>,
        counts: Option<&CallCounts>,
        callee: Func,
    ) -> bool {
        let is_hot = counts.is_some_and(|counts| counts.largest(callee) >= self.hot);
        let most = self.most(callers.is_single(callee), is_hot);
        callers.inlinable(callee).is_some_and(|body| body.inst_count() <= most)
    }

    fn most(&self, is_single: bool, is_hot: bool) -> usize {
        let single = if is_single { self.single_size } else { 0 };
        let hot = if is_hot { self.hot_size } else { 0 };
        self.size.max(single).max(hot)
    }
}

/// The pass. See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct Inline<'m> {
    /// The module that declares the functions, and their callers.
    pub callers: &'m Callers<'m>,
    /// The function that is changed.
    pub func: Func,
    /// Which calls are inlined.
    pub policy: InlinePolicy,
    /// How often calls were executed, if there is a profile.
    pub counts: Option<&'m CallCounts>,
}

/// A call that may be inlined.
struct CallSite {
    call: Inst,
    callee: Func,
    /// The functions whose code the call is in, outermost first.
    within: Vec<Func>,
    /// How often it was executed, if there is a profile.
    count: Option<u64>,
    /// Whether nothing else calls the callee, and the call stands nowhere else.
    is_single: bool,
}

/// The calls that are open, the most often executed first. Without a profile, in the order in which
/// they were met: outer calls first, so that the growth is spread over all.
#[derive(Default)]
struct OpenCalls {
    calls: BTreeMap<(Reverse<u64>, usize), CallSite>,
    met: usize,
}

impl OpenCalls {
    fn push(&mut self, site: Option<CallSite>) {
        if let Some(site) = site {
            self.calls.insert((Reverse(site.count.unwrap_or(0)), self.met), site);
            self.met += 1;
        }
    }

    fn pop(&mut self) -> Option<CallSite> {
        self.calls.pop_first().map(|(_, site)| site)
    }
}

impl Pass for Inline<'_> {
    fn name(&self) -> &'static str {
        "inline"
    }

    fn run(&self, ed: &mut Editor<'_>) {
        let size = ed.func().inst_count();
        let mut left = (size * self.policy.growth / 100).saturating_add(self.policy.allowance);
        let mut open = OpenCalls::default();
        let is_alone = !self.moves();
        let staying = Rows::new(self.callers.module(), self.policy.depth).staying(ed.func());
        for call in ed.func().all_insts().filter(|call| !staying.contains(call)) {
            let count = self.counts.map(|counts| counts.of(self.func, call));
            open.push(self.met(ed.func(), call, &[self.func], count, is_alone));
        }
        while let Some(site) = open.pop() {
            let Some(body) = self.callers.inlinable(site.callee) else { continue };
            let gained = if site.is_single { 0 } else { body.inst_count() };
            if gained > left || !self.wants(&site, body) || !ed.plan("call") {
                continue;
            }
            left -= gained;
            let made = ed.inline(site.call, body);
            if site.within.len() >= self.policy.depth {
                continue;
            }
            let within = [&site.within[..], &[site.callee]].concat();
            for (of, call) in &made.insts {
                let share = |(counts, all): (&CallCounts, u64)| counts.share(site.callee, *of, all);
                let count = self.counts.zip(site.count).map(share);
                open.push(self.met(ed.func(), *call, &within, count, site.is_single));
            }
        }
    }
}

impl Inline<'_> {
    /// Whether the function is likely to be inlined where it is called, and nowhere else. Code that
    /// moved into it would stand in both: 15 kernels grew by 46 % instead of 41 %, with callees of
    /// 100 instructions.
    fn moves(&self) -> bool {
        let body = self.callers.module().body(self.func);
        let is_small = body.is_some_and(|body| body.inst_count() <= self.policy.single_size);
        is_small && self.callers.is_single(self.func)
    }

    /// The direct call that an instruction is. `is_alone` says whether the code around it stands
    /// nowhere else.
    fn met(
        &self,
        f: &Function,
        call: Inst,
        within: &[Func],
        count: Option<u64>,
        is_alone: bool,
    ) -> Option<CallSite> {
        let callee = callee(f, call)?;
        let is_single = is_alone && self.callers.is_single(callee);
        Some(CallSite { call, callee, within: within.to_vec(), count, is_single })
    }

    fn wants(&self, site: &CallSite, body: &Function) -> bool {
        let is_plain = |inst: Inst| {
            !matches!(body.inst(inst).opcode, Opcode::Assume | Opcode::OsrTest | Opcode::OsrExit)
        };
        let is_hot = site.count.is_some_and(|count| count >= self.policy.hot);
        let before = site.within.iter().filter(|func| **func == site.callee).count();
        site.count != Some(0)
            && body.inst_count() <= self.policy.most(site.is_single, is_hot)
            && before <= self.policy.recursion
            && body.all_insts().all(is_plain)
    }
}

/// The function that a direct call calls.
fn callee(f: &Function, call: Inst) -> Option<Func> {
    let data = f.inst(call);
    match (data.opcode, data.imm) {
        (Opcode::Call, Imm::Func(func)) => Some(func),
        _ => None,
    }
}
