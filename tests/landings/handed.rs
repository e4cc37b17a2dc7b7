//! Rows of functions with frame states: they leave to an interpreter of the embedder's own, with
//! values that the state names and nothing else reads.

use super::directed::behind;
use super::native::Watch;
use super::support::{native, policy};
use crate::speculation::support::{first, inst, parsed, value};
use interp::Outcome;
use ir::{FrameState, FrameStates, Func, Function, Module, Point, Type, Value};
use osier::jit::{
    Action, Callback, CallbackEnd, Config, DeoptFrame, Embedder, Entered, HotLoop, Slot, Vm,
};
use osier::landing::{LandingCode, handover};
use osier::profile::OwnCounts;
use osier::speculate::{Assumption, Plan, SuggestOptions};
use osier::tiers::TableUse;
use passes::parse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use transition::mapping::Mapping;

/// The sum over elements of two kinds, in phases of 2^`%odd` elements. One bytecode is in front of
/// the loop, one is its header, and one the rest of a round. The register of `%last` has the
/// previous element; no instruction reads it.
const ROUNDS: &str = "
export \"main\" @f
func @f(%n: i32, %scale: i32, %odd: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump head(%zero, %zero, %zero)
head(%i: i32, %sum: i32, %last: i32):
  %more = ult.i32 %i, %n
  br_if %more, body, done
body:
  %kind = ushr.i32 %i, %odd
  %tag = and.i32 %kind, %one
  br_if %tag, slow, fast
slow:
  %j = mul.i32 %i, %sum
  jump next(%j)
fast:
  %m = mul.i32 %i, %scale
  jump next(%m)
next(%x: i32):
  %s = add.i32 %sum, %x
  %k = add.i32 %i, %one
  jump head(%k, %s, %x)
done:
  return %sum
}";

/// The registers of the interpreter: `%i`, `%sum`, `%last`, `%n`, `%scale`, `%odd`.
type Registers = [u32; 6];

/// One round of the loop.
fn round([i, sum, _, n, scale, odd]: Registers) -> Registers {
    let x = if i >> odd & 1 == 1 { i.wrapping_mul(sum) } else { i.wrapping_mul(scale) };
    [i + 1, sum.wrapping_add(x), x, n, scale, odd]
}

fn start([n, scale, odd]: [u32; 3]) -> Registers {
    [0, 0, 0, n, scale, odd]
}

/// The registers before a round.
fn before(args: [u32; 3], rounds: u32) -> Registers {
    (0..rounds).fold(start(args), |registers, _| round(registers))
}

/// The interpreter of [`ROUNDS`], which counts a round from the header or behind it. It asks for
/// native code in front of each round.
struct Rounds {
    place: HotLoop,
    named: [Value; 6],
    args: [u32; 3],
    /// Whether it asks where native code has left, too.
    asks_again: bool,
    entered: usize,
    resumed: usize,
}

impl Rounds {
    fn new(module: &Module) -> Rounds {
        let (func, base) = first(module);
        let named = ["i", "sum", "last", "n", "scale", "odd"].map(|name| value(base, name));
        let place = HotLoop { func, at: head(base) };
        Rounds { place, named, args: [0; 3], asks_again: true, entered: 0, resumed: 0 }
    }

    fn states(&self, base: &Function) -> FrameStates {
        let mut states = FrameStates::new();
        for (pc, at) in [(0, self.place.at), (1, body(base))] {
            states.set(at, FrameState::of_values(0, pc, (0..).zip(self.named)));
        }
        let start = Point::before(base.first_inst(base.entry()));
        states.set(start, FrameState::of_values(0, 2, (3..).zip(self.named[3..].to_vec())));
        states
    }

    /// Runs the whole program in this interpreter, as far as it gets no code.
    fn run(&mut self, vm: &mut Vm, args: [u32; 3]) -> u32 {
        self.args = args;
        let mut registers = start(args);
        while registers[0] < registers[3] {
            let (named, place) = (self.named, self.place);
            let contents = move |value: Value| {
                let at = named.iter().position(|named| *named == value)?;
                Some(registers[at].into())
            };
            match vm.enter(place, &contents, self).expect("it goes on or not") {
                Entered::NotYet => registers = round(registers),
                Entered::Ended(Outcome::Returned(results)) => {
                    self.entered += 1;
                    return results[0] as u32;
                }
                Entered::Ended(other) => panic!("{other}"),
            }
        }
        registers[1]
    }

    /// The interpreter continues where native code has left.
    fn rest(
        &mut self,
        back: &mut Callback<'_>,
        mut registers: Registers,
    ) -> Result<u32, CallbackEnd> {
        while registers[0] < registers[3] {
            // The round that native code has left, first.
            registers = round(registers);
            let (named, place) = (self.named, self.place);
            let contents = move |value: Value| {
                let at = named.iter().position(|named| *named == value)?;
                Some(registers[at].into())
            };
            if self.asks_again
                && back.depth() < 50
                && let Some(results) = back.enter(self, place, &contents)?
            {
                self.entered += 1;
                return Ok(results[0] as u32);
            }
        }
        Ok(registers[1])
    }
}

impl Embedder for Rounds {
    fn resume(&mut self, frame: &mut DeoptFrame<'_>) -> Result<Vec<Slot>, CallbackEnd> {
        self.resumed += 1;
        let activation = &frame.activations[0];
        let slot = |slot| activation.slot(slot).expect("the state names it").bits as u32;
        let registers: Registers = match activation.pc {
            2 => start([3, 4, 5].map(slot)),
            _ => [0, 1, 2, 3, 4, 5].map(slot),
        };
        assert_eq!(registers, before(self.args, registers[0]), "all registers, the dead one too");
        let result = self.rest(&mut frame.back(), registers)?;
        Ok(vec![Slot { ty: Type::I32, bits: result.into() }])
    }
}

fn head(base: &Function) -> Point {
    super::directed::head(base)
}

/// Behind the branch of the header.
fn body(base: &Function) -> Point {
    Point::before(inst(base, "kind"))
}

/// A machine whose rows leave to [`Rounds`], the interpreter, and the events.
fn scene(places: TableUse, assume: &[Assumption]) -> (Vm, Rounds, Watch) {
    let module = Arc::new(parsed(ROUNDS));
    let rounds = Rounds::new(&module);
    let mut vm = native(&module, Config::default());
    let watch = Watch::default();
    let states = BTreeMap::from([(rounds.place.func, Arc::new(rounds.states(first(&module).1)))]);
    let assume: BTreeMap<Func, Vec<Assumption>> =
        BTreeMap::from([(rounds.place.func, assume.to_vec())]);
    let policy = policy(watch.clone());
    vm.set_tiering(Box::new(policy.speculating(assume).handing(states).entering(places)));
    (vm, rounds, watch)
}

fn the_tag_is_0() -> Vec<Assumption> {
    let module = parsed(ROUNDS);
    vec![behind(first(&module).1, "tag", 0)]
}

/// All elements but the last ones are of kind 0: the interpreter enters the loop once, and gets it
/// back with all registers. `%last` is live for the state alone.
#[test]
fn a_row_keeps_the_values_that_a_frame_state_names() {
    let (mut vm, mut rounds, watch) = scene(TableUse::AtLoops, &the_tag_is_0());
    rounds.asks_again = false;
    // Elements from 512 on are of kind 1.
    let args = [700, 3, 9];
    assert_eq!(rounds.run(&mut vm, args), before(args, 700)[1]);
    assert_eq!((rounds.entered, rounds.resumed), (1, 1));
    let made = watch.seen();
    assert_eq!(made.rows.values().collect::<Vec<_>>(), [&vec![1]], "{made:?}");
    assert!(made.linked.is_empty(), "{made:?}");
}

/// The kinds come in phases. Two exits lead to the interpreter, and later ones to rows of their
/// landing.
#[test]
fn exits_of_rows_lead_to_rows_or_to_the_interpreter_of_the_embedder() {
    for odd in [0, 3, 6] {
        let (mut vm, mut rounds, watch) = scene(TableUse::Everywhere, &the_tag_is_0());
        let args = [2_000, 3, odd];
        for _ in 0..3 {
            assert_eq!(rounds.run(&mut vm, args), before(args, 2_000)[1], "{odd}");
        }
        let made = watch.seen();
        assert!(!made.linked.is_empty(), "{odd}: {made:?}");
        assert!(rounds.resumed >= 1 && rounds.resumed <= 8, "{odd}: {}, {made:?}", rounds.resumed);
    }
}

/// Calls run the version of the whole function. Its exits lead to rows, too.
#[test]
fn exits_of_a_version_with_frame_states_lead_to_rows() {
    let (mut vm, mut rounds, watch) = scene(TableUse::Everywhere, &the_tag_is_0());
    let func = rounds.place.func;
    for [n, odd] in [[40, 9], [40, 1], [40, 9], [40, 1]].iter().flat_map(|phase| [*phase; 40]) {
        rounds.args = [n, 3, odd];
        let args = rounds.args.map(u64::from);
        let ended = vm.run(func, &args, &mut rounds);
        let wanted = before(rounds.args, n)[1].into();
        assert_eq!(ended, Ok(Outcome::Returned(vec![wanted])), "{args:?}");
    }
    let made = watch.seen();
    assert!(!made.linked.is_empty() && made.failures < 16, "{made:?}");
    assert!(rounds.resumed <= 8, "{} exits to the interpreter", rounds.resumed);
}

/// A context that does not hold leads to the next row, and from the last row that assumes to the
/// interpreter, with the registers as they were.
#[test]
fn a_context_of_a_row_with_frame_states_leads_to_the_next_row() {
    let base = parsed(ROUNDS);
    let base = first(&base).1;
    let at_start = Point::before(base.first_inst(base.entry()));
    let scale = Assumption::is(at_start, value(base, "scale"), 3);
    let (mut vm, mut rounds, watch) = scene(TableUse::Everywhere, &[scale]);
    for scale in [3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 3, 4] {
        let args = [50, scale, 31];
        assert_eq!(rounds.run(&mut vm, args), before(args, 50)[1], "{scale}");
    }
    let made = watch.seen();
    let rows: Vec<&Vec<usize>> = made.rows.values().collect();
    assert!(matches!(rows[..], [table] if table.len() >= 2), "{made:?}");
    assert!(rounds.resumed <= 4, "{} exits to the interpreter", rounds.resumed);
}

/// No frame state stands where pure code leads, so no row assumes anything there.
#[test]
fn an_assumption_without_a_way_to_a_state_is_left_out_of_rows() {
    let text = ROUNDS.replace(
        "  br_if %tag, slow, fast\n",
        "  store.i32 @mem[%zero + 8], %i\n  br_if %tag, slow, fast\n",
    );
    let module = parsed(&format!("memory @mem 1\n{text}"));
    let (_, base) = first(&module);
    let rounds = Rounds::new(&module);
    let of = behind(base, "tag", 0);
    let branch = base.terminator(base.inst_block(inst(base, "tag")));
    let behind_store = Assumption { at: Point::before(branch), ..of };
    let places = BTreeSet::from([of.at, behind_store.at, head(base)]);
    let out = handover(&module, base, &rounds.states(base), &places).expect("the states fit");
    assert!(out.has_entry(of.at) && out.has_entry(head(base)));
    assert!(!out.has_entry(behind_store.at), "the store must not run twice");
    let code = LandingCode::leaving(&module, base, head(base), Arc::new(out));
    let code = code.expect("a loop header is a landing");
    let pipeline = parse("O2").expect("a pipeline");
    for (assume, is_made) in [(of, true), (behind_store, false)] {
        let row = code.row(&module, base, &Plan::new(&[assume], &pipeline)).expect("it is legal");
        assert_eq!(row.exits.len(), usize::from(is_made), "{assume:?}");
        assert_eq!(row.left_out.is_empty(), is_made);
        let hand = row.hand.as_ref().expect("it leaves to states");
        let exits = row.exits.iter().map(|exit| Point::before(exit.inst));
        let landings: Vec<Option<Point>> =
            exits.map(|at| hand.entry(at).map(|entry| entry.target)).collect();
        assert!(landings.iter().all(|at| *at == Some(body(base))), "{landings:?}");
    }
}

/// An exit of a row is linked by the way to the states; the way to the base itself does not do.
#[test]
fn a_row_hands_over_where_a_state_is() {
    let module = Arc::new(parsed(ROUNDS));
    let (func, base) = first(&module);
    let rounds = Rounds::new(&module);
    let of = behind(base, "tag", 0);
    let states = rounds.states(base);
    let out = handover(&module, base, &states, &BTreeSet::from([of.at])).expect("they fit");
    let code = LandingCode::leaving(&module, base, head(base), Arc::new(out)).expect("a landing");
    let pipeline = parse("O2").expect("a pipeline");
    let row = code.row(&module, base, &Plan::new(&[of], &pipeline)).expect("it is legal");
    let mut vm = native(&module, Config::default());
    let spec = osier::jit::VersionSpec::leaving(&row.function, |_| Some(&*row.back));
    let spec = spec.expect("each exit has an entry").behind_landing();
    let version = vm.engine().version(&module, func, &row.function, spec).expect("it is compiled");
    let states = Arc::new(BTreeMap::from([(func, Arc::new(states))]));
    let hand = |mapping: &check::Checked<Mapping>| {
        Action::Hand(Arc::new(mapping.clone()), Arc::clone(&states))
    };
    let refused = vm.adopt(&version, vec![hand(&row.back)]).expect_err("no state is there");
    assert!(refused.to_string().contains("no frame state"), "{refused}");
    vm.adopt(&version, vec![hand(row.hand.as_ref().expect("a way"))]).expect("it fits");
}

/// The embedder has no profile when the policy first asks. The ways to its states are made once its
/// profile leads to assumptions.
#[test]
fn a_function_assumes_when_its_profile_comes_late() {
    let module = Arc::new(parsed(ROUNDS));
    let mut rounds = Rounds::new(&module);
    let (func, base) = first(&module);
    let mut counts = OwnCounts::new(Arc::new(base.clone()));
    counts.call(&[1_000, 3, 31]);
    let branches = ["more", "tag"].map(|name| base.terminator(base.inst_block(inst(base, name))));
    for _ in 0..1_000 {
        counts.branch(branches[0], 0);
        counts.branch(branches[1], 1);
    }
    counts.branch(branches[0], 1);
    let (profile, is_known) = (counts.profile().clone(), Arc::new(AtomicBool::new(false)));
    let knows = Arc::clone(&is_known);
    let source = move |_| knows.load(Ordering::Relaxed).then(|| profile.clone());
    let options = SuggestOptions { visits: 100, by_worth: false, ..SuggestOptions::default() };
    let states = BTreeMap::from([(func, Arc::new(rounds.states(base)))]);
    let watch = Watch::default();
    let policy = policy(watch.clone()).profiling_own(options, source);
    let mut vm = native(&module, Config::default());
    vm.set_tiering(Box::new(policy.handing(states)));
    for (knows, rows) in [(false, 0), (true, 1)] {
        is_known.store(knows, Ordering::Relaxed);
        let args = [1_000, 3, 31];
        assert_eq!(rounds.run(&mut vm, args), before(args, 1_000)[1]);
        let made = watch.seen();
        assert_eq!(made.rows.values().flatten().sum::<usize>(), rows, "{made:?}");
    }
}
