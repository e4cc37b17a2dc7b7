//! Random programs that make objects: versions without these objects, exits of them that make the
//! objects, and entries at all other points.

use super::programs::{Kind, RandomObjects, Recorded};
use super::{AtExits, NONE, allocate, heap, state, value};
use crate::inlining::ALL;
use interp::{
    Allocator, Host, HostError, Limits, Machine, Memories, Options, Outcome, PauseAlways, Program,
    Run, TraceLevel, VersionId,
};
use ir::module::ImportName;
use ir::{FrameStates, Func, Module, Opcode, Point};
use osier::driver::NoObserver;
use osier::inlining::{CalleeLandings, InlinePlan, Inlined, StatePlaces, inline};
use passes::{InlinePolicy, Pipeline};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use verify::prng::Prng;

/// A host that notes what each call gets, and writes into the objects that it gets.
#[derive(Debug, Default)]
struct NotingHost {
    noted: Vec<Vec<u8>>,
    made: usize,
}

/// The bytes of an object. All objects have as many.
const BYTES: usize = 32;

fn contents(memories: &Memories, address: u64) -> Vec<u8> {
    let at = address as u32 as usize;
    memories.bytes(heap())[at..at + BYTES].to_vec()
}

impl Host for NotingHost {
    fn call(
        &mut self,
        import: &ImportName,
        _: Func,
        args: &[u64],
        memories: &mut Memories,
        results: &mut [u64],
    ) -> Result<(), HostError> {
        match &*import.field {
            "new" => {
                self.made += 1;
                results[0] = allocate(args, memories);
            }
            "give" => {
                self.noted.push(contents(memories, args[0]));
                let at = args[0] as u32 as usize + 24;
                let bytes = memories.bytes_mut(heap()).expect("nothing tracks it");
                bytes[at..at + 8].copy_from_slice(&77_u64.to_le_bytes());
            }
            _ => self.noted.push(args[0].to_le_bytes().to_vec()),
        }
        Ok(())
    }
}

/// Where a run has ended, and what the state there names.
#[derive(PartialEq, Debug)]
struct RandomEnd {
    noted: Vec<Vec<u8>>,
    outcome: Option<Outcome>,
    left: Option<(Point, Vec<Vec<u8>>)>,
}

/// What runs of many programs have done.
#[derive(Default, Debug)]
struct Tally {
    programs: usize,
    without_exit: usize,
    removed: usize,
    left_with_object: usize,
    left_with_two: usize,
    fired: usize,
}

/// A random program with its states.
struct RandomCase {
    module: Arc<Module>,
    main: Func,
    states: BTreeMap<Func, Arc<FrameStates>>,
    exits: BTreeMap<(Func, Point), Recorded>,
}

impl RandomCase {
    fn new(seed: u64) -> RandomCase {
        let made = RandomObjects::new(seed);
        let module = ir::text::parse_module(&made.text)
            .unwrap_or_else(|errors| panic!("{}\n{}", errors[0], made.text));
        let mut states = BTreeMap::new();
        let mut exits = BTreeMap::new();
        for (name, recorded) in made.states {
            let func = module.func_named(name).expect("it has it");
            let f = module.body(func).expect("a body");
            let mut of_func = FrameStates::new();
            for one in recorded {
                let values: Vec<_> = one.named.iter().map(|(name, _)| value(f, name)).collect();
                let at = match &one.behind {
                    Some(result) => {
                        let call = f.defining_inst(value(f, result)).expect("a call");
                        f.next_inst(call).expect("a call is no terminator")
                    }
                    None => {
                        let block = f.blocks().find(|b| f.block_name(*b) == Some(&one.label));
                        f.first_inst(block.expect("the text has it"))
                    }
                };
                of_func.set(Point::before(at), state(&values));
                if one.behind.is_none() {
                    assert_eq!(f.inst(at).opcode, Opcode::Trap);
                    exits.insert((func, Point::before(at)), one);
                }
            }
            states.insert(func, Arc::new(of_func));
        }
        let main = module.func_named("main").expect("it has it");
        RandomCase { module: Arc::new(module), main, states, exits }
    }

    fn plan(&self, policy: InlinePolicy, at_exits: bool) -> InlinePlan {
        let last = passes::parse("O2").expect("named pipelines are known");
        let plan = InlinePlan::new(Pipeline::of(Vec::new()), policy, last).removing_objects();
        if !at_exits {
            return plan;
        }
        let all = self.states.keys().map(|func| (*func, StatePlaces::default()));
        let mut places: BTreeMap<Func, StatePlaces> = all.collect();
        for (func, at) in self.exits.keys() {
            places.entry(*func).or_default().exits.insert(*at);
        }
        plan.with_states(self.states.clone()).at_places(places)
    }

    fn made(&self, plan: &InlinePlan) -> Option<Inlined> {
        let landings = CalleeLandings::new(&self.module, plan);
        match inline(&self.module, self.main, plan, &landings, &mut NoObserver) {
            Ok(made) => Some(made),
            Err(osier::inlining::NotInlined::NoCall) => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// What a state names where a base is about to leave: numbers, and the contents of objects.
    fn left(&self, machine: &Machine, recorded: &Recorded) -> Vec<Vec<u8>> {
        let view = machine.view().expect("it is paused");
        let f = self.module.body(view.func()).expect("a body");
        let mut places: BTreeMap<usize, u32> = BTreeMap::new();
        let named = recorded.named.iter().map(|(name, kind)| {
            let bits = view.value(value(f, name));
            let Kind::Object(number, tag) = kind else { return bits.to_le_bytes().to_vec() };
            assert!(name.starts_with("at") || bits & !0xffff_ffff == *tag, "{name}: {bits:#x}");
            // All names of an object are of the same object, and of no other.
            assert_eq!(*places.entry(*number).or_insert(bits as u32), bits as u32, "{name}");
            contents(machine.memories(), bits)
        });
        let named = named.collect();
        let different: BTreeSet<u32> = places.values().copied().collect();
        assert_eq!(different.len(), places.len(), "two objects are one");
        named
    }

    /// Runs a version, and fires the entry of a point if `fires` says so. With states, a base that
    /// is about to leave ends the run.
    fn run(
        &self,
        made: Option<&Inlined>,
        args: &[u64],
        with_states: bool,
        mut fires: impl FnMut() -> bool,
        tally: &mut Tally,
    ) -> RandomEnd {
        let options = Options { trace: TraceLevel::Full, poison: true, track_memory: false };
        let program = Program::new(&self.module);
        let mut machine =
            Machine::with_options(&program, Limits::default(), options).expect("instantiated");
        let at_exits = Arc::new(AtExits::default());
        machine.make_objects_by(Arc::clone(&at_exits) as Arc<dyn Allocator>);
        let bases = self.module.defined().map(|(func, _)| (func, machine.current(func)));
        let bases: BTreeMap<Func, VersionId> =
            bases.map(|(func, base)| (func, base.expect("a base"))).collect();
        let optimized = made.map(|made| {
            let version = made.tree.function(made.optimized);
            let id = machine.add_version(&self.module, self.main, version);
            machine.set_current(self.main, id);
            machine.set_sites(id, Arc::new(made.copies.sites()));
            id
        });
        let mut host = NotingHost::default();
        let mut end = RandomEnd { noted: Vec::new(), outcome: None, left: None };
        machine.start(self.main, args);
        loop {
            match machine.run(&mut host, &mut PauseAlways) {
                Run::Done(outcome) => {
                    end.outcome = Some(outcome);
                    break;
                }
                Run::Paused => {}
                other => panic!("{other:?}"),
            }
            let view = machine.view().expect("it is paused");
            let (at, version) = (Point::before(view.inst()), view.version());
            let mut before = at_exits.0.load(Relaxed);
            if let Some(made) = made.filter(|_| Some(version) == optimized)
                && let Some(entry) = made.down.checked_entry(at).filter(|_| fires())
            {
                let to = entry.landings(self.main).map(|landing| bases[&landing.func]);
                let to: Vec<VersionId> = to.collect();
                machine.fire(&to, entry).expect("the entry fits");
                tally.fired += 1;
                before = at_exits.0.load(Relaxed) - before;
                tally.left_with_object += usize::from(before > 0);
                tally.left_with_two += usize::from(before > 1);
            }
            let view = machine.view().expect("it is paused");
            let at = (view.func(), Point::before(view.inst()));
            if bases.get(&at.0) == Some(&view.version())
                && let Some(recorded) = self.exits.get(&at).filter(|_| with_states)
            {
                end.left = Some((at.1, self.left(&machine, recorded)));
                break;
            }
        }
        end.noted = host.noted;
        end
    }
}

/// Compares versions of programs with their bases.
fn compare(seeds: std::ops::Range<u64>, policy: InlinePolicy, at_exits: bool) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds {
        let case = RandomCase::new(seed);
        let Some(made) = case.made(&case.plan(policy, at_exits)) else { continue };
        // Such a version is not to be installed.
        if at_exits && made.exits.iter().any(|at| made.down.checked_entry(*at).is_none()) {
            tally.without_exit += 1;
            continue;
        }
        tally.programs += 1;
        tally.removed += made.removed_objects;
        let mut prng = Prng::new(seed ^ 0x0b1e_c750);
        for _ in 0..8 {
            let x = f64::from(prng.below(64)) / 4.0;
            let args = [u64::from(prng.below(9)), prng.next_u64(), x.to_bits()];
            let expected = case.run(None, &args, at_exits, || false, &mut tally);
            let percent = prng.pick(&[0, 2, 20, 100]);
            let percent = if at_exits { 100 } else { percent };
            let fires = || prng.chance(percent);
            let end = case.run(Some(&made), &args, at_exits, fires, &mut tally);
            assert_eq!(end, expected, "seed {seed}, {args:x?}, fired in {percent} %");
        }
    }
    tally
}

/// The floors keep the generator from becoming easy.
#[track_caller]
fn assert_floors(tally: &Tally, removed: usize, with_object: usize, with_two: usize) {
    let is_enough = tally.removed >= removed
        && tally.left_with_object >= with_object
        && tally.left_with_two >= with_two
        && 40 * tally.without_exit <= tally.programs;
    assert!(is_enough, "{tally:?}");
}

#[test]
fn exits_of_random_programs_make_the_objects_of_states() {
    assert_floors(&compare(0..200, NONE, true), 400, 60, 20);
}

#[test]
fn entries_at_all_points_make_objects() {
    assert_floors(&compare(200..400, NONE, false), 400, 20, 3);
}

#[test]
fn objects_of_inlined_code_are_made_at_exits() {
    assert_floors(&compare(400..550, ALL, true), 400, 30, 10);
}

#[test]
fn objects_of_inlined_code_are_made_at_all_points() {
    assert_floors(&compare(600..750, ALL, false), 400, 15, 2);
}
