//! Assumptions that a profile suggests: contents of random values at random places.

use super::case::Case;
use interp::{Control, Machine, NoObserver, Observer, Scope, View};
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::{Func, Function, Inst, Point, Type, Value, reference};
use osier::speculate::{Assumption, Expected};
use std::collections::BTreeMap;
use verify::prng::Prng;

/// The most assumptions of a function about values that never change in the profile, beside one for
/// each two about changing values. Most assumptions about unchanging values would never fail.
const HELD: usize = 2;

/// The places at which contents are recorded, for each assumption wanted.
const PLACES: u32 = 3;

/// The places of a function at which contents are recorded, each with its value.
type Places = BTreeMap<(Func, Inst), Value>;

/// The assumptions that the profile of a case suggests for each function, at most
/// [`CampaignOptions::assumptions`](crate::CampaignOptions::assumptions) of them. Cost: one run.
///
/// # Errors
/// If the module cannot be instantiated.
pub fn suggested(case: &Case) -> Result<BTreeMap<Func, Vec<Assumption>>, String> {
    chosen(case, Prng::new(case.seed).fork(0x61_73_73_75).fork(0))
}

/// The assumptions of each function, from the profile of the first list of arguments.
///
/// # Errors
/// If the module cannot be instantiated.
pub(super) fn chosen(
    case: &Case,
    mut prng: Prng,
) -> Result<BTreeMap<Func, Vec<Assumption>>, String> {
    let mut places = Places::new();
    for (func, f) in case.module.defined() {
        let count = case.options.assumptions.saturating_mul(PLACES);
        places.extend(random_places(f, &mut prng, count).map(|(i, v)| ((func, i), v)));
    }
    let seen = profile(case, &places)?;
    let held = [1, 1, 2, 3][prng.index(4)];
    let mut chosen: BTreeMap<Func, [Vec<Assumption>; 2]> = BTreeMap::new();
    for ((func, inst), seen) in seen.iter().filter(|(_, seen)| seen.held >= held) {
        let at = Point::before(*inst);
        let value = places[&(*func, *inst)];
        // An integer may also be assumed to differ from a value that it never had.
        let ty = case.module.body(*func).map(|f| f.value_type(value));
        // A reference to an entity of the host is no constant.
        let is_constant = |ty| reference::is_constant(case.module.funcs.len(), ty, seen.bits);
        let may_be = |ty: Type| ty.is_number() || is_constant(ty);
        if !ty.is_some_and(may_be) {
            continue;
        }
        let excludes = prng.chance(15) && seen.bits != 0 && ty.is_some_and(Type::is_int);
        let expected = if excludes { Expected::IsNot(0) } else { Expected::Is(seen.bits) };
        let assumption = Assumption { at, value, expected, reason: inst.as_u32() };
        chosen.entry(*func).or_default()[usize::from(seen.broken)].push(assumption);
    }
    // Prefer, for three in four, assumptions that break later in the same run: a profile that ended
    // earlier would have chosen them.
    let most = case.options.assumptions as usize;
    let some = |[held, mut broken]: [Vec<Assumption>; 2]| {
        broken.truncate(most.saturating_mul(3).div_ceil(4));
        let rest = (most - broken.len()).min(HELD + broken.len() / 2);
        broken.extend(held.into_iter().take(rest));
        broken.sort_unstable();
        broken
    };
    Ok(chosen.into_iter().map(|(func, all)| (func, some(all))).collect())
}

/// Random places of a function, each with a value that is available there: mostly an operand of the
/// instruction, sometimes any. All places if there are no more than `count`, so that the reducer
/// finds a failing one again in a smaller program.
fn random_places(f: &Function, prng: &mut Prng, count: u32) -> impl Iterator<Item = (Inst, Value)> {
    let cfg = Cfg::new(f);
    let dom = DomTree::new(f, &cfg);
    let reached: Vec<Inst> = cfg.rpo().iter().flat_map(|b| f.block_insts(*b)).collect();
    let params = cfg.rpo().iter().flat_map(|b| f.block_params(*b).to_vec());
    let results = reached.iter().flat_map(|i| f.inst(*i).results.to_vec());
    let is_variable = |v: &Value| f.constant(*v).is_none();
    let values: Vec<Value> = params.chain(results).filter(is_variable).collect();
    let mut places = Vec::new();
    for inst in reached {
        let operands: Vec<Value> = f.inst(inst).operands().filter(is_variable).collect();
        let any = (!values.is_empty()).then(|| prng.pick(&values));
        let value = match operands.is_empty() || prng.chance(30) {
            true => any.filter(|v| dom.available_at(f, *v, Point::before(inst))),
            false => Some(prng.pick(&operands)),
        };
        places.extend(value.map(|value| (inst, value)));
    }
    while places.len() > count as usize {
        places.swap_remove(prng.index(places.len()));
    }
    places.into_iter()
}

/// The contents of a value in the first visits of a place.
struct Contents {
    bits: u64,
    /// The number of visits before the first visit with other contents.
    held: u64,
    broken: bool,
}

/// Records the contents at places.
struct Recorder<'p> {
    places: &'p Places,
    seen: BTreeMap<(Func, Inst), Contents>,
}

impl Observer for Recorder<'_> {
    const SCOPE: Scope = Scope::Marked;

    fn before(&mut self, view: &View<'_>, inst: Inst) -> Control {
        let place = (view.func(), inst);
        let Some(value) = self.places.get(&place) else { return Control::Continue };
        let bits = view.value(*value);
        let seen = self.seen.entry(place).or_insert(Contents { bits, held: 0, broken: false });
        seen.broken |= seen.bits != bits;
        seen.held += u64::from(!seen.broken);
        Control::Continue
    }
}

/// Runs the case on its first list of arguments. Returns the contents at the places that the run
/// reaches.
///
/// # Errors
/// If the module cannot be instantiated.
fn profile(case: &Case, places: &Places) -> Result<BTreeMap<(Func, Inst), Contents>, String> {
    let mut machine = Machine::new(&case.module, case.limits()).map_err(|e| e.to_string())?;
    for (func, inst) in places.keys() {
        let version = machine.current(*func).expect("a function with places is defined");
        machine.mark(version, [*inst]);
    }
    let mut recorder = Recorder { places, seen: BTreeMap::new() };
    let mut world = case.world.clone();
    let started = machine.start_function().is_none_or(|start| {
        machine.invoke(start, &[], &mut world, &mut NoObserver).returned().is_some()
    });
    if let Some(args) = case.arguments.first().filter(|_| started) {
        machine.invoke(case.entry, args, &mut world, &mut recorder);
    }
    Ok(recorder.seen)
}
