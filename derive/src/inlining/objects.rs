//! Objects that a copy does not make: the copy without them, and the claim about it.

use super::InlinePlan;
use super::exits::taken_out;
use super::row::InliningRow;
use check::Copies;
use ir::edit::{ActionKind, ActionLog, Fuel, apply};
use ir::{Block, Function, Inst, Module, Value};
use passes::objects::{RemovedForm, RemovedObject, RemovedObjects};
use passes::{ObjectPlaces, ObjectPlan, RemoveObjects};
use std::collections::{BTreeMap, BTreeSet};
use transition::copy::{CopyClaim, InstanceId, ObjectForm, ObjectState};

impl InliningRow {
    /// Removes the objects of the copy that nothing needs. Returns their number.
    pub(super) fn remove_objects(
        &mut self,
        module: &Module,
        copies: &Copies,
        plan: &InlinePlan,
    ) -> usize {
        let places = self.object_places(module, copies, plan);
        let objects = ObjectPlan::new(module, self.copy(), &places);
        let pass = RemoveObjects { plan: &objects };
        let (version, log) = apply(self.copy(), &pass, &mut Fuel::UNLIMITED.clone()).into_parts();
        if log.is_empty() {
            return 0;
        }
        let original = self.inlined_into();
        let bodies = self.claim.instances[1..].iter().filter_map(|one| module.body(one.func));
        let originals: Vec<&Function> = std::iter::once(original).chain(bodies).collect();
        let lighter = Lighter::new(self.copy(), &self.claim, &originals, &log);
        let is_call = |inst: &&Inst| self.copy().inst(**inst).opcode.is_call();
        let count = objects.removed.iter().filter(is_call).count();
        self.claim = lighter.claim(&self.claim, &objects);
        self.copy = self.tree.add(self.copy, version, log).expect("the log leads to the version");
        count
    }

    fn object_places(&self, module: &Module, copies: &Copies, plan: &InlinePlan) -> ObjectPlaces {
        let Some(places) = plan.places.get(&self.func) else { return ObjectPlaces::default() };
        let own = |inst: &Inst| copies.place(*inst);
        let entered = places.entrances.iter().map(|at| at.inst());
        ObjectPlaces {
            entered: entered.filter_map(|inst| own(&inst)).collect(),
            taken: taken_out(module, self, copies, plan),
        }
    }
}

/// The claim about a copy without objects, in terms of the claim about the copy.
struct Lighter {
    /// By instruction of the copy: its original.
    places: BTreeMap<Inst, (InstanceId, Inst)>,
    /// By value of the copy: its original.
    values: BTreeMap<Value, (InstanceId, Value)>,
    /// The values that the copy without objects lacks.
    gone: BTreeSet<Value>,
    /// The values that others took the place of.
    replaced: BTreeMap<Value, Value>,
    added: Vec<Inst>,
}

impl Lighter {
    fn new(
        copy: &Function,
        claim: &CopyClaim,
        originals: &[&Function],
        log: &ActionLog,
    ) -> Lighter {
        let of = claim.instances.iter().enumerate();
        let values =
            of.flat_map(|(id, one)| one.values.iter().map(move |(of, name)| (id, of, name)));
        let values = values.map(|(id, of, name)| (*name, (id, *of))).collect();
        let places = osr::places_of_copy(copy, claim, originals);
        let (gone, replaced, added) = (BTreeSet::new(), BTreeMap::new(), Vec::new());
        let mut lighter = Lighter { places, values, gone, replaced, added };
        for action in log.actions() {
            match action.kind() {
                ActionKind::Add { inst, .. } => lighter.added.push(*inst),
                ActionKind::ReplaceAll { before, after } => {
                    lighter.replaced.insert(*before, *after);
                }
                ActionKind::Delete { inst, .. } => lighter.gone.extend(&copy.inst(*inst).results),
                _ => {}
            }
        }
        lighter
    }

    fn claim(&self, claim: &CopyClaim, plan: &ObjectPlan) -> CopyClaim {
        let mut claim = claim.clone();
        for instance in &mut claim.instances {
            // A form has no name. Another value that is gone has the name of the value in its
            // place.
            instance.values.values_mut().for_each(|name| *name = self.known_as(*name));
            instance.values.retain(|_, name| !self.gone.contains(name));
        }
        claim.objects.removed = plan.removed.iter().map(|inst| self.places[inst]).collect();
        claim.objects.added = self.added.iter().copied().collect();
        let at_start = |(block, objects): (&Block, &RemovedObjects)| (*block, self.states(objects));
        claim.objects.at_start = plan.at_start.iter().map(at_start).collect();
        claim
    }

    fn known_as(&self, value: Value) -> Value {
        std::iter::successors(Some(value), |value| self.replaced.get(value).copied())
            .last()
            .expect("the first value is there")
    }

    fn states(&self, objects: &RemovedObjects) -> Vec<ObjectState> {
        objects.values().map(|object| self.state(object)).collect()
    }

    fn state(&self, object: &RemovedObject) -> ObjectState {
        let form = |(value, form): (&Value, &RemovedForm)| {
            let form = match form {
                RemovedForm::Reference => ObjectForm::Reference,
                RemovedForm::Word => ObjectForm::Word,
                RemovedForm::Address => ObjectForm::Address,
            };
            (self.values[value], form)
        };
        ObjectState {
            site: self.places[&object.site],
            forms: object.forms.iter().map(form).collect(),
            fields: object.fields.iter().map(|(at, of)| (*at, self.known_as(*of))).collect(),
            is_lost: object.is_lost,
        }
    }
}
