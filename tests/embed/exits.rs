//! The values that an exit hands over, by either kind of exit: values of every type, constants, and
//! more values than registers.

use super::support::{Calls, Pair, engine, head, vm};
use osier::check::Checked;
use osier::interp::Outcome;
use osier::jit::{
    Action, Condition, Config, Continuation, Effort, Exits, Onward, OpenPoint, PointSpec, RunError,
    Tier, Tiering, TransitionKind, Vm,
};
use osier::transition::mapping::{Assign, Entry, Mapping, Operand};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

/// The number of 64-bit loop variables beside one of each other type.
const MORE: u64 = 20;

/// A function whose loop changes a variable of each type, and more of 64 bits, in every iteration.
/// A constant is live around the loop.
fn text() -> String {
    let list = |item: &dyn Fn(u64) -> String| {
        (0..MORE).fold(String::new(), |text, k| text + ", " + &item(k))
    };
    // The host call passes as many all-ones words as the loop has values. Its leftovers lie beside
    // the narrow values, whose upper bits an exit must not take from there.
    let mut text =
        format!("import func @mark \"env\" \"mark\" ({}) -> i64\n", vec!["i64"; 40].join(", "));
    text += "func @f(%n: i64) -> i64 {\nentry:\n  %zero = const.i64 0\n  %z8 = const.i8 0\n  %z16 = const.i16 0\n";
    writeln!(
        text,
        "  %ones = const.i64 -1\n  %marked = call @mark({})",
        vec!["%ones"; 40].join(", ")
    )
    .expect("text grows");
    text += "  %z32 = const.i32 0\n  %z5 = const.f32 0.5\n  %z25 = const.f64 0.25\n  %big = const.i64 0x1234567890abcdef\n";
    writeln!(text, "  jump head(%zero, %z8, %z16, %z32, %z5, %z25{})", list(&|_| "%n".into()))
        .expect("text grows");
    let params = list(&|k| format!("%v{k}: i64"));
    writeln!(text, "head(%i: i64, %a: i8, %b: i16, %c: i32, %d: f32, %e: f64{params}):")
        .expect("text grows");
    text += "  %more = ult.i64 %i, %n\n  br_if %more, body, done\nbody:\n";
    text += "  %k8 = const.i8 100\n  %a2 = add.i8 %a, %k8\n  %k16 = const.i16 30000\n  %b2 = add.i16 %b, %k16\n";
    text += "  %k32 = const.i32 2000000000\n  %c2 = add.i32 %c, %k32\n  %d2 = fadd.f32 %d, %d\n  %e2 = fadd.f64 %e, %e\n";
    for k in 0..MORE {
        writeln!(text, "  %w{k} = add.i64 %v{k}, %big").expect("text grows");
    }
    text += "  %one = const.i64 1\n  %j = add.i64 %i, %one\n";
    writeln!(
        text,
        "  jump head(%j, %a2, %b2, %c2, %d2, %e2{})\ndone:",
        list(&|k| format!("%w{k}"))
    )
    .expect("text grows");
    text += "  %a64 = uextend.i64 %a\n  %b64 = uextend.i64 %b\n  %c64 = uextend.i64 %c\n  %x0 = xor.i64 %a64, %b64\n";
    text += "  %x = xor.i64 %x0, %c64\n  %d32 = bitcast.i32 %d\n  %d64 = uextend.i64 %d32\n  %e64 = bitcast.i64 %e\n";
    text += "  %y = add.i64 %d64, %e64\n  %s = xor.i64 %x, %y\n";
    let last = (0..MORE).fold("%s".to_owned(), |sum, k| {
        writeln!(text, "  %s{k} = add.i64 {sum}, %v{k}").expect("text grows");
        format!("%s{k}")
    });
    text + &format!("  return {last}\n}}\n")
}

/// Records the values that each fired point hands over, and stays in the version.
struct Notes {
    stay: Arc<Continuation>,
    seen: Arc<Mutex<Vec<Vec<u64>>>>,
}

impl Tiering for Notes {
    fn open(&mut self, _tier: &mut Tier<'_>, at: OpenPoint<'_>) -> Result<Onward, RunError> {
        self.seen.lock().expect("nobody panics").push(at.values.to_vec());
        Ok(Arc::clone(&self.stay).into())
    }
}

/// The mapping from the base to itself at the loop header, for all values live there.
fn identity(pair: &Pair) -> Checked<Mapping> {
    let at = head(&pair.base);
    let requires = PointSpec::of_live(&pair.base, at, Condition::Flag).values;
    let assigns = requires
        .iter()
        .map(|value| Assign { value: *value, from: Operand::Source(*value) })
        .collect();
    let entry = Entry {
        target: at,
        steps: vec![],
        replays: vec![],
        assigns,
        requires,
        kept: vec![],
        inner: Box::default(),
    };
    let mut mapping = Mapping::new(&pair.base, &pair.base);
    mapping.insert(at, entry);
    Checked::unproved(mapping)
}

/// A machine with an armed point at the loop header, with the action that `lead` returns.
fn armed(
    pair: &Pair,
    config: Config,
    lead: impl FnOnce(&Arc<Continuation>, &mut Vm) -> Action,
) -> Vm {
    let engine = engine(config);
    let mut vm = vm(&engine, &pair.module);
    let (at, mapping) = (head(&pair.base), identity(pair));
    let point = PointSpec::of_entry(&mapping, at, Condition::Flag).expect("an entry");
    let version =
        engine.version(&pair.module, pair.func, &pair.base, &[point]).expect("it can be compiled");
    vm.install(&version, vec![Action::Ask]).expect("it fits");
    let entry = mapping.checked_entry(at).expect("an entry");
    let stay = engine.continuation(&pair.base, entry, &version).expect("it fits");
    let action = lead(&stay, &mut vm);
    vm.relink(&version, 0, action).expect("it fits");
    version.arm(0);
    vm
}

fn five_rounds(vm: &mut Vm, pair: &Pair) -> Outcome {
    vm.invoke(pair.func, &[5], &mut Calls(|| Ok(0))).expect("the run ends as programs do")
}

/// The values that the point at the loop header hands over at each visit, and the outcome.
fn run(pair: &Pair, config: Config) -> (Vec<Vec<u64>>, Outcome) {
    let seen: Arc<Mutex<Vec<Vec<u64>>>> = Arc::default();
    let mut vm = armed(pair, config, |stay, vm| {
        vm.set_tiering(Box::new(Notes { stay: Arc::clone(stay), seen: Arc::clone(&seen) }));
        Action::Ask
    });
    let outcome = five_rounds(&mut vm, pair);
    let seen = seen.lock().expect("nobody panics").clone();
    (seen, outcome)
}

/// The values of the loop variables at a visit, in the order of the text.
fn expected(visit: u64) -> Vec<u64> {
    let wrapped = |step: u64, bits: u32| visit.wrapping_mul(step) & ((1 << bits) - 1);
    let powers = [
        u64::from((0.5f32 * 2f32.powi(visit as i32)).to_bits()),
        (0.25 * 2f64.powi(visit as i32)).to_bits(),
    ];
    let mut values = vec![visit, wrapped(100, 8), wrapped(30000, 16), wrapped(2_000_000_000, 32)];
    values.extend(powers);
    values.extend((0..MORE).map(|_| 5u64.wrapping_add(visit.wrapping_mul(0x1234_5678_90ab_cdef))));
    values
}

#[test]
fn every_exit_hands_over_every_value_as_it_is() {
    let pair = Pair::new(&text());
    let point = PointSpec::of_live(&pair.base, head(&pair.base), Condition::Flag);
    let params = pair.base.block_params(pair.base.inst_block(head(&pair.base).inst())).to_vec();
    for exits in [Exits::Stored, Exits::Described] {
        for effort in [Effort::Least, Effort::Most] {
            let (seen, outcome) =
                run(&pair, Config { exits, effort, checked: true, ..Config::default() });
            assert_eq!(seen.len(), 6, "{exits:?}, {effort:?}: every visit");
            for (visit, values) in (0..).zip(&seen) {
                for (param, expected) in params.iter().zip(expected(visit)) {
                    let at =
                        point.values.iter().position(|value| value == param).expect("it lives");
                    assert_eq!(
                        values[at], expected,
                        "{exits:?}, {effort:?}: {param} at visit {visit}"
                    );
                }
                let others =
                    point.values.iter().zip(values).filter(|(value, _)| !params.contains(value));
                for (value, bits) in others {
                    let wanted = pair.base.constant(*value).unwrap_or(5);
                    assert_eq!(*bits, wanted, "{exits:?}, {effort:?}: {value} at visit {visit}");
                }
            }
            assert_eq!(outcome, Outcome::Returned(vec![result()]), "{exits:?}, {effort:?}");
        }
    }
}

/// The result of five iterations.
fn result() -> u64 {
    let last = expected(5);
    let ends = last[4].wrapping_add(last[5]) ^ last[1] ^ last[2] ^ last[3];
    last[6..].iter().fold(ends, |sum, value| sum.wrapping_add(*value))
}

#[test]
fn both_kinds_of_exits_hand_over_the_same_values() {
    let pair = Pair::new(&text());
    for exits in [Exits::Stored, Exits::Described] {
        for effort in [Effort::Least, Effort::Most] {
            let config = Config { exits, effort, checked: true, ..Config::default() };
            let mut across = armed(&pair, config, |stay, _| Action::Continue(Arc::clone(stay)));
            assert_eq!(
                five_rounds(&mut across, &pair),
                Outcome::Returned(vec![result()]),
                "{exits:?}, {effort:?}"
            );
            let made = across.transitions();
            assert_eq!(
                (made[0].kind, made[0].count),
                (TransitionKind::Across, 6),
                "{exits:?}, {effort:?}"
            );
            let mut down =
                armed(&pair, config, |_, _| Action::Interpret(Arc::new(identity(&pair))));
            assert_eq!(
                five_rounds(&mut down, &pair),
                Outcome::Returned(vec![result()]),
                "{exits:?}, {effort:?}"
            );
            let made = down.transitions();
            assert_eq!(
                (made[0].kind, made[0].count),
                (TransitionKind::Down, 1),
                "{exits:?}, {effort:?}"
            );
        }
    }
}
