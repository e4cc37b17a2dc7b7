//! Pipelines that inline.

#[cfg(doc)]
use crate::driver::StatePoints;
use crate::driver::{Observer, Retry, Step, Vigilance, derive};
use crate::speculate::{Assumption, Pins, Plan};
use ir::edit::{ActionKind, ActionLog, Fuel, apply};
use ir::{FrameStates, Func, Function, Imm, Inst, Module, Opcode, Point};
use passes::{CallCounts, Callers, Inline, InlinePolicy, Pipeline};
use profile::Profile;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use transition::copy::InlinedSites;

/// The name of the pipeline of [`InlinePlan::o3`].
pub const O3: &str = "O3";

/// The calls to inline, and the optimization before and after.
#[derive(Clone, Debug)]
pub struct InlinePlan {
    /// The passes that run before.
    pub first: Pipeline,
    /// Which calls are inlined.
    pub policy: InlinePolicy,
    /// The passes that run on the version with the inlined code.
    pub last: Pipeline,
    /// By function: the assumptions, in terms of its base. Assumptions of the function itself are
    /// made before the first passes, assumptions of an inlined function behind the inlining, in
    /// each instance.
    pub assume: BTreeMap<Func, Vec<Assumption>>,
    /// The values that assumptions keep.
    pub pins: Pins,
    /// The most work of each of both searches for assumptions with exits, before the inlining and
    /// behind it: see [`Plan::work`].
    pub work: u64,
    /// How often calls were executed, if there is a profile. The policy then prefers hot calls, and
    /// inlines only executed calls.
    pub counts: Option<Arc<CallCounts>>,
    /// By function: the frame states of its base. Frames of the function land with the values that
    /// the states name there (`osr::VersionTree::arm_states`).
    pub states: BTreeMap<Func, Arc<FrameStates>>,
    /// By function: where runs change between an embedder's interpreter and code.
    pub places: BTreeMap<Func, StatePlaces>,
    /// The functions whose calls stay, whatever the policy says.
    pub kept: BTreeSet<Func>,
    /// Whether objects that nothing needs are removed ([`passes::RemoveObjects`]), unless the plan
    /// assumes.
    pub objects: bool,
    /// The bounds of the search for rewrites to give up, where the checker drops entries: rewrites
    /// of the passes before the inlining, and of the passes behind it. A function that assumes
    /// gives up no rewrite.
    pub retry: Retry,
}

/// The points of a base at which runs change between an embedder's interpreter and code, as in
/// [`StatePoints`]. Code with the base inlined enters and leaves at these points alone, and keeps
/// the values that the states of the exits name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StatePlaces {
    /// The points at which runs of the function enter a version, such as loop headers.
    pub entrances: BTreeSet<Point>,
    /// The points at which runs leave for good, such as a trap that an OSR point stands in front
    /// of. Each instruction is a terminator or an effect. In a function that is inlined, it is no
    /// return; nowhere is it a call that is inlined.
    pub exits: BTreeSet<Point>,
}

impl InlinePlan {
    /// A plan that assumes nothing and has no profile.
    pub fn new(first: Pipeline, policy: InlinePolicy, last: Pipeline) -> InlinePlan {
        let (assume, pins, retry) = (BTreeMap::new(), Pins::default(), Retry::default());
        let (counts, states, work, kept) = (None, BTreeMap::new(), Plan::WORK, BTreeSet::new());
        let (places, objects) = (BTreeMap::new(), false);
        InlinePlan {
            first,
            policy,
            last,
            assume,
            pins,
            work,
            counts,
            states,
            places,
            kept,
            objects,
            retry,
        }
    }

    /// `O2`, inlining by the default policy, and `O2` again.
    pub fn o3() -> InlinePlan {
        let passes = passes::parse("O2").expect("named pipelines are known");
        InlinePlan::new(passes.clone(), InlinePolicy::default(), passes)
    }

    /// The plan with other bounds of the retry.
    pub fn with_retry(self, retry: Retry) -> InlinePlan {
        InlinePlan { retry, ..self }
    }

    /// The plan with assumptions, by function.
    pub fn assuming(self, assume: BTreeMap<Func, Vec<Assumption>>) -> InlinePlan {
        InlinePlan { assume, ..self }
    }

    /// The plan with frame states of bases, by function.
    pub fn with_states(self, states: BTreeMap<Func, Arc<FrameStates>>) -> InlinePlan {
        InlinePlan { states, ..self }
    }

    /// The plan with the places of bases at which runs enter and leave, by function. A function
    /// with places needs states ([`InlinePlan::with_states`]): a state at each exit, and a state
    /// behind each call that may be inlined, because a frame waits there. If a call lacks its
    /// state, the exits of the callee have no entry, and stand in [`Inlined::missing`]. [`inline`]
    /// refuses places that do not fit ([`NotInlined::Places`]).
    ///
    /// [`Inlined::missing`]: super::Inlined::missing
    /// [`inline`]: super::inline
    /// [`NotInlined::Places`]: super::NotInlined::Places
    pub fn at_places(self, places: BTreeMap<Func, StatePlaces>) -> InlinePlan {
        InlinePlan { places, ..self }
    }

    /// The plan with functions whose calls stay, whatever the policy says.
    pub fn keeping(self, kept: BTreeSet<Func>) -> InlinePlan {
        InlinePlan { kept, ..self }
    }

    /// The plan, and the objects that nothing needs are not made: a call of a function that
    /// allocates ([`ir::DeclaredEffect::is_allocator`]) goes with all accesses of its object. Where
    /// a run leaves and a frame reads the object, the entry makes it.
    pub fn removing_objects(self) -> InlinePlan {
        InlinePlan { objects: true, ..self }
    }

    /// Whether the plan removes objects.
    pub(super) fn removes_objects(&self) -> bool {
        self.objects && self.assume.is_empty()
    }

    /// The plan with the calls that a profile of the module counts. Cost: linear in the functions
    /// of the profile.
    ///
    /// # Panics
    /// If the profile is of another module (`Profile::read` rejects one).
    pub fn profiled(self, module: &Module, profile: &Profile) -> InlinePlan {
        InlinePlan { counts: Some(Arc::new(profile.call_counts(module))), ..self }
    }

    /// Whether a function is small enough for the plan to inline a call of the function, and none
    /// of those whose calls stay. Cost: logarithmic.
    pub fn may_inline(&self, callers: &Callers<'_>, callee: Func) -> bool {
        !self.kept.contains(&callee)
            && self.policy.may_inline(callers, self.counts.as_deref(), callee)
    }

    /// Whether a function has a call that the plan may inline, or one that passes may turn into
    /// such a call. The assumptions of a plan are always looked at. Cost: linear in the function.
    pub(super) fn may_inline_in(&self, callers: &Callers<'_>, func: Func, base: &Function) -> bool {
        let may = |inst: Inst| match base.inst(inst).imm {
            Imm::Func(callee) => self.may_inline(callers, callee),
            _ => base.inst(inst).opcode == Opcode::CallIndirect,
        };
        self.assume.contains_key(&func) || base.all_insts().any(may)
    }

    /// The callers, with the functions of the plan whose calls stay.
    pub(super) fn callers<'m>(&self, callers: &Callers<'m>) -> Callers<'m> {
        callers.clone().keeping(self.kept.clone())
    }

    /// The pass that inlines in a function.
    pub(super) fn pass<'a>(&'a self, callers: &'a Callers<'a>, func: Func) -> Inline<'a> {
        Inline { callers, func, policy: self.policy, counts: self.counts.as_deref() }
    }

    /// The names of the passes, in order.
    pub fn names(&self) -> Vec<&'static str> {
        let inline = std::iter::once("inline");
        self.first.names().into_iter().chain(inline).chain(self.last.names()).collect()
    }
}

/// Passes over one function at a time, or passes around inlining.
#[derive(Clone, Debug)]
pub enum PassPlan {
    /// Passes alone.
    Passes(Pipeline),
    /// Inlining, and the passes before and after.
    Inlining(Box<InlinePlan>),
}

impl PassPlan {
    /// Reads a list as [`passes::parse`] does. `inline` may stand in it once, and `O3` for the list
    /// of [`InlinePlan::o3`].
    ///
    /// # Errors
    /// A message about an unknown name, or about `inline` or `O3` when they stand there twice.
    pub fn parse(text: &str) -> Result<PassPlan, String> {
        let names = text.split([',', ' ']).filter(|name| !name.is_empty());
        let names = names.flat_map(|name| match name {
            O3 => vec!["O2", "inline", "O2"],
            name => vec![name],
        });
        let names: Vec<&str> = names.collect();
        // Here `inline` and `O3` are known, too, which `passes` has no word of.
        let unknown = |error: passes::UnknownPass| format!("{error}; to inline: inline, {O3}");
        let parsed = |names: &[&str]| passes::parse(&names.join(",")).map_err(unknown);
        let parts: Vec<&[&str]> = names.split(|name| *name == "inline").collect();
        match parts[..] {
            [all] => Ok(PassPlan::Passes(parsed(all)?)),
            [first, last] => Ok(PassPlan::Inlining(Box::new(InlinePlan::new(
                parsed(first)?,
                InlinePolicy::default(),
                parsed(last)?,
            )))),
            _ => Err("a pipeline inlines once at most; `O3` inlines, too".to_owned()),
        }
    }

    /// The names of the passes, in order.
    pub fn names(&self) -> Vec<&'static str> {
        match self {
            PassPlan::Passes(pipeline) => pipeline.names(),
            PassPlan::Inlining(plan) => plan.names(),
        }
    }

    /// The module with each function as the passes make it, and the sites of inlined code. Inlined
    /// code comes from the given module. Cost: the passes, without any mapping.
    ///
    /// # Panics
    /// As [`derive()`].
    pub fn optimize(
        &self,
        module: &Module,
        vigilance: Vigilance,
        observer: &mut dyn Observer,
    ) -> InlinedModule {
        let plan = match self {
            PassPlan::Passes(pipeline) => {
                let module = crate::driver::optimize(module, pipeline, vigilance, observer);
                return InlinedModule { module, sites: ModuleSites::new() };
            }
            PassPlan::Inlining(plan) => plan,
        };
        let callers = Callers::new(module);
        let mut made = InlinedModule { module: module.clone(), sites: ModuleSites::new() };
        for (func, base) in module.defined() {
            let (version, sites) = plan.version(&callers, func, base, vigilance, observer);
            made.module.define(func, version);
            if !sites.is_empty() {
                made.sites.insert(func, Arc::new(sites));
            }
        }
        made
    }
}

/// The sites of inlined code, by function.
pub type ModuleSites = BTreeMap<Func, Arc<InlinedSites>>;

/// A module whose functions have inlined code.
#[derive(Clone, Debug)]
pub struct InlinedModule {
    /// The module.
    pub module: Module,
    /// Where inlined code comes from. Functions without any are absent.
    pub sites: ModuleSites,
}

/// The sites of the code that a log inlines into a version.
fn sites(first: &Function, log: &ActionLog) -> InlinedSites {
    let mut sites = InlinedSites::new();
    // By copy of a call: the function that it calls. Calls outside inlined code name it themselves.
    let mut callees: BTreeMap<Inst, Func> = BTreeMap::new();
    for action in log.actions() {
        let ActionKind::Inline { call, body } = action.kind() else { continue };
        let own = || first.has_inst(*call).then(|| first.inst(*call).imm);
        let callee = callees.get(call).copied().or_else(|| match own()? {
            Imm::Func(func) => Some(func),
            _ => None,
        });
        let Some(func) = callee else { continue };
        for (of, copy) in &body.insts {
            sites.insert(*copy, (func, *of));
            if let Imm::Func(inner) = body.callee.function().inst(*of).imm {
                callees.insert(*copy, inner);
            }
        }
    }
    sites
}

impl InlinePlan {
    /// Whether the plan inlines a call of a function. The ids that versions draw later do not
    /// depend on whether this was asked. Cost: the passes before the inlining.
    ///
    /// # Panics
    /// As [`derive()`], and if the function has no body.
    pub fn inlines(&self, callers: &Callers<'_>, func: Func, observer: &mut dyn Observer) -> bool {
        let callers = &self.callers(callers);
        let module = callers.module();
        let base = module.body(func).expect("the function has a body");
        if !self.may_inline_in(callers, func, base) {
            return false;
        }
        let base = base.fork();
        let first = derive(module, &base, &self.first, Vigilance::Off, observer).function;
        observer.begin(Some(Step::Optimize));
        let pass = self.pass(callers, func);
        let (_, log) = apply(&first, &pass, &mut Fuel::UNLIMITED.clone()).into_parts();
        observer.begin(None);
        !log.is_empty()
    }

    /// The version of a function that the plan makes, without mappings and thus without
    /// assumptions, and the sites of its inlined code.
    ///
    /// # Panics
    /// As [`derive()`].
    pub fn version(
        &self,
        callers: &Callers<'_>,
        func: Func,
        base: &Function,
        vigilance: Vigilance,
        observer: &mut dyn Observer,
    ) -> (Function, InlinedSites) {
        let callers = &self.callers(callers);
        let module = callers.module();
        let first = derive(module, base, &self.first, vigilance, observer).function;
        observer.begin(Some(Step::Optimize));
        let pass = self.pass(callers, func);
        let (copy, log) = apply(&first, &pass, &mut Fuel::UNLIMITED.clone()).into_parts();
        observer.begin(None);
        match log.is_empty() {
            true => (first, InlinedSites::new()),
            false => {
                let last = derive(module, &copy, &self.last, vigilance, observer).function;
                (last, sites(&first, &log))
            }
        }
    }
}
