//! Where frames of inlined functions land: their bases, with the values live there.

use super::InlinePlan;
use certify::Certifier;
use check::verdict::Options;
use check::{Checked, FrameLanding, LivePoints, relate};
use ir::edit::ActionLog;
use ir::{FrameStates, Func, Function, Module, Point};
use osr::VersionPair;
use passes::Callers;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use transition::certificate::Certificate;
use transition::mapping::Mapping;
use transition::{Pair, Side, VersionKey};

/// The bases of the functions of a module as landing versions. Nothing is armed in them but the
/// frame states of the plan: a run that has landed there may take entries that require live values
/// alone.
#[derive(Debug)]
pub struct CalleeLandings<'m> {
    callers: Callers<'m>,
    /// By function: the values live at all points of its base. Absent are functions that the plan
    /// does not inline.
    live: BTreeMap<Func, CalleeLive>,
}

/// The values live at all points of a base, proved at the first question.
#[derive(Debug, Default)]
struct CalleeLive {
    /// The frame states of the base.
    states: Option<Arc<FrameStates>>,
    /// `None` if no certificate relates the base to itself, or if the states do not fit the base.
    proved: OnceLock<Option<Checked<LivePoints>>>,
}

impl CalleeLive {
    fn get(&self, module: &Module, func: Func) -> Option<&Checked<LivePoints>> {
        let prove = || {
            let base = module.body(func)?;
            if self.states.as_ref().is_some_and(|states| states.check(base).is_err()) {
                return None;
            }
            let armed = self.states.as_ref().map(|states| osr::required(base, states));
            proved(module, base, &CalleeLandings::certificate(base)?, armed.as_ref())
        };
        self.proved.get_or_init(prove).as_ref()
    }
}

impl<'m> CalleeLandings<'m> {
    /// The landings of a module, for the functions that a plan may inline
    /// ([`InlinePlan::may_inline`]). Cost: linear in the module. The first question about a
    /// function costs a pair of versions of its size.
    pub fn new(module: &'m Module, plan: &InlinePlan) -> CalleeLandings<'m> {
        let callers = Callers::new(module);
        let wanted = module.defined().filter(|(func, _)| plan.may_inline(&callers, *func));
        let live = wanted.map(|(func, _)| {
            (func, CalleeLive { states: plan.states.get(&func).cloned(), ..CalleeLive::default() })
        });
        let live = live.collect();
        CalleeLandings { callers, live }
    }

    /// The landings that certificates prove ([`CalleeLandings::certificate`]), by the checker
    /// alone. Functions without a body are left out. Cost: checking the certificates.
    pub fn proved_by(
        callers: Callers<'m>,
        certificates: impl IntoIterator<Item = (Func, Certificate)>,
    ) -> CalleeLandings<'m> {
        let module = callers.module();
        let live = certificates.into_iter().filter_map(|(func, certificate)| {
            let live = proved(module, module.body(func)?, &certificate, None)?;
            Some((func, CalleeLive { states: None, proved: OnceLock::from(Some(live)) }))
        });
        let live = live.collect();
        CalleeLandings { callers, live }
    }

    /// The callers in the module.
    pub fn callers(&self) -> &Callers<'m> {
        &self.callers
    }

    /// The certificate that a base corresponds to itself. `None` without a certificate: a bug of
    /// ours. Cost: one certificate.
    pub fn certificate(base: &Function) -> Option<Certificate> {
        let pair = VersionPair::new(base, base, &ActionLog::empty_for(base)).ok()?;
        let common = pair.correspondence();
        Some(Certifier::new(&common).into_certificate())
    }

    /// Whether frames of a function may land in its base. Cost: as [`CalleeLandings::of`].
    pub fn has(&self, func: Func) -> bool {
        self.live(func).is_some()
    }

    fn live(&self, func: Func) -> Option<&Checked<LivePoints>> {
        self.live.get(&func)?.get(self.callers.module(), func)
    }

    /// The landing of a function whose original is its base; `None` for another original, and for a
    /// function that the plan does not inline. Cost: logarithmic, behind the first question about
    /// the function.
    pub fn of(&self, func: Func, key: VersionKey) -> Option<FrameLanding<'_>> {
        let version =
            self.callers.module().body(func).filter(|base| VersionKey::of(base) == key)?;
        Some(FrameLanding { on: None, version, live: self.live(func)? })
    }
}

/// The values live at all points of a base in which a mapping may be armed, if its certificate
/// proves the pair of the base with itself.
fn proved(
    module: &Module,
    base: &Function,
    certificate: &Certificate,
    armed: Option<&Mapping>,
) -> Option<Checked<LivePoints>> {
    let relation = relate(module, Pair::new(base, base), certificate, Options::default());
    let points = base.all_insts().map(Point::before);
    relation.ok()?.live_at(Side::Before, points, armed.as_slice()).ok()
}
