//! Forgeries of files: entries across a copy that differ from the entries that the checker
//! composes.

use super::Forgery;
use super::copies::ORIGINALS;
use super::hand::parsed;
use osier::driver::NoObserver;
use osier::exchange::{self, ExportedCopy, Rechecked, WrittenCopy, recheck_copy};
use osier::inlining::inline;
use osier::inlining::{CalleeLandings, InlinePlan, LeftOut};
use osier::ir::{Func, Function, Inst, Module, Opcode, Point, Type};
use osier::passes::Callers;
use osier::transition::VersionKey;
use osier::transition::frames::FramePlace;
use osier::transition::mapping::{Assign, Entry, Operand, Replay, Step};

/// `@main` with the code of `@f`, as a file says.
struct Records {
    module: Module,
    func: Func,
    versions: [Function; 4],
    copy: ExportedCopy,
}

/// `@main` calls itself.
const RECURSIVE: &str = "\
func @first(%n: i32) -> i32 {
entry:
  return %n
}
func @main(%n: i32) -> i32 {
entry:
  br_if %n, more, done
more:
  %one = const.i32 1
  %m = sub.i32 %n, %one
  %u = call @main(%m)
  %d = mul.i32 %u, %n
  return %d
done:
  return %n
}
";

impl Records {
    fn new() -> Records {
        Records::of(ORIGINALS)
    }

    /// A file about `@main`.
    fn of(text: &str) -> Records {
        let module = parsed(text);
        let func = module.func_named("main").expect("it is declared");
        let plan = InlinePlan::o3();
        let landings = CalleeLandings::new(&module, &plan);
        let made = inline(&module, func, &plan, &landings, &mut NoObserver);
        let made = made.expect("the call is inlined");
        let mut file = exchange::header(&plan.names().join(","), "avail", 1);
        file += &exchange::landings_header(0);
        exchange::write_copy(&mut file, &module, &WrittenCopy::of(func, &made));
        // The file names entities of versions that are made again.
        let module = parsed(text);
        let callers = Callers::new(&module);
        let versions = plan
            .versions(&callers, func, &LeftOut::default(), &mut NoObserver)
            .expect("inlined again");
        let file = exchange::read(&file).expect("a written file");
        let copy = file.functions[0].copy(&module, func, versions.each_ref());
        Records { copy: copy.expect("of these versions"), module, func, versions }
    }

    fn verdicts(self) -> Rechecked {
        let Records { module, func, versions, copy } = self;
        let landings = CalleeLandings::new(&module, &InlinePlan::o3());
        let versions = versions.each_ref();
        recheck_copy(&module, func, versions, copy, &landings, &mut NoObserver)
    }

    /// The first reason for which an entry is refused. `None` if all hold.
    fn judged(self) -> Option<String> {
        self.verdicts().counts.dropped.into_keys().next()
    }

    /// The word on the claim about the copy. `None` if it holds.
    fn judged_copy(self) -> Option<String> {
        let records = self.verdicts().refused.into_iter().map(|record| record.what);
        records.into_iter().find(|what| what.starts_with("the copy"))
    }
}

/// The word on a file with an edited entry into the version.
fn into(edit: fn(&mut Entry)) -> Option<String> {
    let mut records = Records::new();
    let entries = &mut records.copy.into;
    let entry = entries.iter_mut().find(|one| !one.entry.assigns.is_empty());
    edit(&mut entry.expect("an entry with values").entry);
    records.judged()
}

/// The word on a file with an edited entry into two activations. All are inner ones there.
fn out(edit: fn(&mut Entry, &Module)) -> Option<String> {
    let mut records = Records::new();
    let entries = &mut records.copy.out;
    let framed = |entry: &Entry| {
        entry.inner.len() == 2 && entry.inner.iter().all(|frame| !frame.assigns.is_empty())
    };
    let entry = entries.iter_mut().find(|one| framed(&one.entry));
    edit(&mut entry.expect("an entry into both functions").entry, &records.module);
    records.judged()
}

/// The file claims that a value comes from a step that does not exist, or from a computed constant.
fn from_nowhere(assigns: &mut [Assign]) {
    assigns[0].from = Operand::Step(9);
}

/// An entry where the checker composes no entry.
fn not_composed() -> Option<String> {
    let mut records = Records::new();
    let last = records.copy.into.last_mut().expect("an entry");
    last.point = Point::before(Inst::from_u32(4_000_000));
    records.judged()
}

/// `@first` calls `@main`, and the code of `@first` is claimed to be the code of `@main`: the copy
/// is made for recursive calls, in a module with another `@main`.
fn other_original() -> Option<String> {
    assert_eq!(Records::of(RECURSIVE).judged_copy(), None, "before the forgery");
    let mut records = Records::of(RECURSIVE);
    let func = records.func;
    let (_, main) = RECURSIVE.split_once("func @main").expect("it is declared");
    let text = format!("func @first{main}func @main(%n: i32) -> i32 {{\nentry:\n  return %n\n}}\n");
    records.module = parsed(&text);
    records.func = records.module.func_named("first").expect("it is declared");
    let instances = &mut records.copy.claim.instances;
    assert_eq!((instances[0].func, instances[1].func), (func, func));
    assert_eq!(instances[0].version, instances[1].version);
    instances[0].func = records.func;
    records.judged_copy()
}

fn one() -> Step {
    let (opcode, ty) = (Opcode::Const, Type::I32);
    Step { opcode, ty, operand_ty: ty, bits: 1, args: Default::default() }
}

fn replay(inst: Inst) -> Replay {
    let (opcode, ty) = (Opcode::GlobalSet, Type::I32);
    let imm = osier::ir::Imm::Global(osier::ir::Global::from_u32(0));
    Replay { inst, opcode, ty, imm, args: [Operand::Step(0)].into_iter().collect() }
}

type Row = (&'static str, &'static str, &'static str, fn() -> Option<String>);

const ROWS: [Row; 13] = [
    ("RecordOtherOriginal", "the code of another function", "the copy: the inst", other_original),
    ("RecordAnyTarget", "an entry that lands elsewhere", "composed-target", || {
        into(|entry| entry.target = Point::before(Inst::from_u32(4_000_000)))
    }),
    ("RecordAnyAssigns", "an entry with a value from elsewhere", "composed-assigns", || {
        into(|entry| from_nowhere(&mut entry.assigns))
    }),
    ("RecordNotComposed", "an entry where none is composed", "not-composed", not_composed),
    ("RecordFewerFrames", "no outermost frame", "frame-count", || {
        out(|entry, _| entry.inner = entry.inner[..1].into())
    }),
    ("RecordAnyFunction", "a frame of a function alike", "frame-function", || {
        out(|entry, module| entry.inner[0].func = module.func_named("same").expect("declared"))
    }),
    ("RecordAnyVersion", "a frame in another version", "frame-version", || {
        out(|entry, module| {
            let again = module.func_named("again").and_then(|func| module.body(func));
            entry.inner[1].version = VersionKey::of(again.expect("a body"));
        })
    }),
    ("RecordAnyPlace", "a frame that is before its call again", "frame-place", || {
        out(|entry, _| {
            let call = entry.inner[1].at.inst();
            entry.inner[1].at = FramePlace::Before(Point::before(call));
        })
    }),
    ("RecordAnyFrameAssigns", "a frame with a value from elsewhere", "frame-assigns", || {
        out(|entry, _| from_nowhere(&mut entry.inner[0].assigns))
    }),
    ("RecordAnyFrameAssigns", "a waiting frame without values", "frame-assigns", || {
        out(|entry, _| entry.inner[1].assigns.clear())
    }),
    ("RecordAnySteps", "a step more", "composed-steps", || out(|entry, _| entry.steps.push(one()))),
    ("RecordAnyReplays", "a write more", "composed-replays", || {
        out(|entry, _| entry.replays.push(replay(entry.inner[1].at.inst())))
    }),
    ("RecordAnyRequires", "a required value less", "composed-requires", || {
        out(|entry, _| entry.requires.clear())
    }),
];

pub(super) fn all() -> Vec<Forgery> {
    let of = |(demand, what, refusal, judge): Row| Forgery {
        demand,
        what,
        judge: Box::new(judge),
        refusal,
    };
    ROWS.into_iter().map(of).collect()
}
