//! Forgeries of continuations.

use super::Forgery;
use super::hand::{block, parsed, value};
use osier::check::{self, LandedVersion};
use osier::ir::{self, Block, Function, Inst, Opcode, Point, Type};
use osier::transition::VersionKey;
use osier::transition::copy::{ContinuationClaim, Environment, FrameBlock};
use osier::transition::frames::{Frame, FramePlace};
use osier::transition::mapping::{Assign, Entry, Operand, Replay, Step};

/// An entry lands in the loop of `@looping` before `global_set`, and provides the values that
/// `head` defines.
const LOOP: &str = "\
global @g: mut i32 = 0
func @from(%a: i32, %b: i32, %m: i32) -> i32 {
entry:
  return %a
}
func @looping(%n: i32, %m: i32) -> i32 {
entry:
  %one = const.i32 1
  jump head(%n, %m)
head(%i: i32, %s: i32):
  %x = mul.i32 %i, %s
  %y = add.i32 %s, %one
  global_set.i32 @g, %x
  %j = sub.i32 %i, %one
  br_if %j, head(%j, %x), done
done:
  %r = sub.i32 %x, %m
  br_if %r, left, right
left:
  return %x
right:
  return %m
}
";

/// The code behind that entry: `%c` are steps, and digits number the values that hold a value.
const LOOP_REST: &str = "\
global @g: mut i32 = 0
func @from(%a: i32, %b: i32, %m: i32) -> i32 {
entry:
  %c0 = const.i32 1
  %c1 = add.i32 %a, %b
  global_set.i32 @g, %a
  jump rest(%a, %c1)
rest(%i1: i32, %x1: i32):
  global_set.i32 @g, %x1
  %j1 = sub.i32 %i1, %c0
  br_if %j1, head(%j1, %x1), done
head(%i2: i32, %s2: i32):
  %x2 = mul.i32 %i2, %s2
  jump rest(%i2, %x2)
done:
  %r1 = sub.i32 %x1, %m
  br_if %r1, left, right
left:
  return %x1
right:
  return %m
}
";

/// Where the blocks of [`LOOP_REST`] begin, and their environments.
const LOOP_BLOCKS: &[Begins] = &[
    ("entry", 0, "head", 2, ""),
    ("rest", 0, "head", 2, "i=i1 x=x1 one=c0 m=m"),
    ("head", 0, "head", 0, "i=i2 s=s2 one=c0 m=m"),
    ("done", 0, "done", 0, "x=x1 m=m"),
    ("left", 0, "left", 0, "x=x1 m=m"),
    ("right", 0, "right", 0, "x=x1 m=m"),
];

/// An entry lands in `@two` before its `return`, and in `@outer` within the call.
const CALL: &str = "\
func @from(%a: i32, %b: i32) -> i32 {
entry:
  return %a
}
func @two(%q: i32) -> (i32, i32) {
entry:
  %k = add.i32 %q, %q
  return %q, %k
}
func @outer(%p: i32) -> i32 {
entry:
  %u, %v = call @two(%p)
  %w = sub.i32 %u, %v
  return %w
}
";

/// The code behind that entry.
const CALL_REST: &str = "\
func @from(%a: i32, %b: i32) -> i32 {
entry:
  jump behind(%a, %b)
behind(%u1: i32, %v1: i32):
  %w1 = sub.i32 %u1, %v1
  jump end(%w1)
end(%z: i32):
  return %z
}
";

const CALL_BLOCKS: &[Begins] = &[
    ("entry", 0, "entry", 1, ""),
    ("behind", 1, "entry", 1, "1.u=u1 1.v=v1"),
    ("end", 2, "entry", 0, ""),
];

/// A block of a continuation, its frame, and the block of the version and the number of its first
/// instruction there. Then its environment: values of versions, with their frames unless it is the
/// innermost, and the values that hold them.
type Begins = (&'static str, usize, &'static str, usize, &'static str);

/// A continuation written by hand. Its claim follows from names. An instruction stands for the
/// instruction whose result has the same name but for digits. An instruction without a result
/// stands for the next instruction without a result.
pub(super) struct Rest {
    pub(super) source: Function,
    pub(super) versions: Vec<Function>,
    pub(super) function: Function,
    pub(super) entry: Entry,
    pub(super) claim: ContinuationClaim,
}

fn body(module: &ir::Module, name: &str) -> Function {
    module.func_named(name).and_then(|func| module.body(func)).expect("a body").clone()
}

pub(super) fn nth(f: &Function, label: &str, number: usize) -> Inst {
    let block = block(f, label).expect("the block");
    f.block_insts(block).nth(number).expect("the instruction")
}

impl Rest {
    /// The continuation into the loop.
    fn looping(version: &str, rest: &str, blocks: &[Begins]) -> Rest {
        let (versions, rest) = (parsed(version), parsed(rest));
        let source = body(&versions, "from");
        let at = |name| value(&source, name).expect("the value");
        let operand_ty = Type::I32;
        let step = |opcode, bits, args: &[Operand]| Step {
            opcode,
            ty: Type::I32,
            operand_ty,
            bits,
            args: args.iter().copied().collect(),
        };
        let [a, b] = ["a", "b"].map(|name| Operand::Source(at(name)));
        let target = body(&versions, "looping");
        let set = nth(&target, "head", 2);
        let replay = Replay {
            inst: set,
            opcode: Opcode::GlobalSet,
            ty: Type::I32,
            imm: target.inst(set).imm,
            args: [a].into_iter().collect(),
        };
        let given = [
            ("i", a),
            ("x", Operand::Step(1)),
            ("one", Operand::Step(0)),
            ("m", Operand::Source(at("m"))),
        ];
        let assigns = given
            .map(|(name, from)| Assign { value: value(&target, name).expect("the value"), from });
        let entry = Entry {
            target: Point::before(set),
            steps: vec![step(Opcode::Const, 1, &[]), step(Opcode::Add, 0, &[a, b])],
            replays: vec![replay],
            assigns: assigns.to_vec(),
            requires: ["a", "b", "m"].map(at).to_vec(),
            kept: Vec::new(),
            inner: Box::default(),
        };
        Rest {
            function: body(&rest, "from"),
            entry,
            claim: ContinuationClaim { steps: vec![0, 1], ..ContinuationClaim::default() },
            source,
            versions: vec![target],
        }
        .claiming(blocks)
    }

    /// The continuation of two frames.
    fn calling(version: &str, rest: &str, blocks: &[Begins]) -> Rest {
        let (versions, rest) = (parsed(version), parsed(rest));
        let source = body(&versions, "from");
        let at = |name| value(&source, name).expect("the value");
        let [two, outer] = ["two", "outer"].map(|name| body(&versions, name));
        let assign = |f: &Function, name, from| Assign {
            value: value(f, name).expect("the value"),
            from: Operand::Source(at(from)),
        };
        let inner = Frame {
            func: versions.func_named("two").expect("declared"),
            version: VersionKey::of(&two),
            at: FramePlace::Before(Point::before(nth(&two, "entry", 1))),
            assigns: vec![assign(&two, "q", "a"), assign(&two, "k", "b")],
        };
        let entry = Entry {
            target: Point::before(nth(&outer, "entry", 0)),
            steps: Vec::new(),
            replays: Vec::new(),
            assigns: vec![assign(&outer, "p", "a")],
            requires: ["a", "b"].map(at).to_vec(),
            kept: Vec::new(),
            inner: [inner].into(),
        };
        Rest {
            function: body(&rest, "from"),
            entry,
            claim: ContinuationClaim::default(),
            source,
            versions: vec![two, outer],
        }
        .claiming(blocks)
    }

    fn claiming(mut self, blocks: &[Begins]) -> Rest {
        for (label, frame, place, number, values) in blocks {
            let copy = block(&self.function, label).expect("the block");
            let is_end = *frame == self.versions.len();
            let version = self.versions[if is_end { 0 } else { *frame }].clone();
            let at = nth(&version, place, *number);
            if !is_end {
                self.pair(copy, &version, at);
            }
            if *label != "entry" {
                let values = self.environment(values);
                self.claim.blocks.insert(copy, FrameBlock { frame: *frame, at, values });
            }
        }
        self
    }

    /// What the instructions of a block stand for.
    fn pair(&mut self, copy: Block, version: &Function, at: Inst) {
        let named = |f: &Function, inst: Inst| {
            let name = f.inst(inst).results.first().and_then(|v| f.value_name(*v));
            name.unwrap_or("").trim_end_matches(|c: char| c.is_ascii_digit()).to_owned()
        };
        let mut from = Some(at);
        for inst in self.function.block_insts(copy).collect::<Vec<_>>() {
            let mut originals = std::iter::successors(from, |at| version.next_inst(*at));
            let is_end = self.function.inst(inst).opcode.is_terminator();
            let found = originals.find(|of| {
                named(version, *of) == named(&self.function, inst)
                    && version.inst(*of).opcode.is_terminator() == is_end
            });
            if let Some(of) = found {
                self.claim.insts.insert(inst, of);
                from = version.next_inst(of);
            }
        }
    }

    fn environment(&self, text: &str) -> Environment {
        let pair = |token: &str| {
            let (of, held) = token.split_once('=').expect("an equals sign");
            let (frame, of) = of.split_once('.').unwrap_or(("0", of));
            let frame: usize = frame.parse().expect("a number");
            let of = value(&self.versions[frame], of).expect("a value of the version");
            ((frame, of), value(&self.function, held).expect("a value of the continuation"))
        };
        text.split_whitespace().map(pair).collect()
    }

    /// The jump that ends a block, which is said to stand for nothing.
    fn idle(mut self, label: &str) -> Rest {
        let at = block(&self.function, label).expect("the block");
        self.claim.insts.remove(&self.function.terminator(at));
        self
    }

    pub(super) fn judged(&self) -> Option<String> {
        let landed = |version| LandedVersion { version, without_points: None };
        let versions: Vec<LandedVersion> = self.versions.iter().map(landed).collect();
        let Rest { function, source, entry, claim, .. } = self;
        let judged = check::continuation(function, source, &versions, entry, claim);
        judged.err().map(|error| error.to_string())
    }
}

/// The right continuation into the loop.
pub(super) fn right_loop() -> Rest {
    let rest = Rest::looping(LOOP, LOOP_REST, LOOP_BLOCKS).idle("entry").idle("head");
    assert_eq!(rest.judged(), None, "before the forgery");
    rest
}

/// The right continuation of two frames.
fn right_call() -> Rest {
    let rest = Rest::calling(CALL, CALL_REST, CALL_BLOCKS);
    assert_eq!(rest.judged(), None, "before the forgery");
    rest
}

fn replaced(text: &str, of: &str, by: &str) -> String {
    assert_eq!(text.matches(of).count(), 1, "{of} occurs once");
    text.replace(of, by)
}

/// The continuation into the loop with another text in one place.
pub(super) fn edited_loop(of: &str, by: &str) -> Rest {
    right_loop();
    let text = replaced(LOOP_REST, of, by);
    Rest::looping(LOOP, &text, LOOP_BLOCKS).idle("entry").idle("head")
}

fn edited_call(of: &str, by: &str) -> Rest {
    right_call();
    Rest::calling(CALL, &replaced(CALL_REST, of, by), CALL_BLOCKS)
}

pub(super) fn forgery(
    demand: &'static str,
    what: &'static str,
    refusal: &'static str,
    judge: fn() -> Option<String>,
) -> Forgery {
    Forgery { demand, what, judge: Box::new(judge), refusal }
}

pub(super) fn all() -> Vec<Forgery> {
    [compensation(), code(), edges(), frames()].into_iter().flatten().collect()
}

fn compensation() -> Vec<Forgery> {
    vec![
        forgery(
            "RestOtherParams",
            "a value required that is no parameter",
            "it has another",
            || {
                let mut rest = right_loop();
                rest.entry.requires.push(rest.entry.requires[0]);
                rest.judged()
            },
        ),
        forgery("RestOtherTypes", "a parameter of another type", "it has another", || {
            right_loop();
            let more = |text, param| replaced(text, "(%a: i32, %b: i32, %m: i32", param);
            let version = more(LOOP, "(%a: i32, %b: i32, %m: i32, %e: i32");
            let text = more(LOOP_REST, "(%a: i32, %b: i32, %m: i32, %e: i64");
            let mut rest = Rest::looping(&version, &text, LOOP_BLOCKS).idle("entry").idle("head");
            rest.entry.requires.extend(value(&rest.source, "e"));
            rest.judged()
        }),
        forgery("RestOtherStep", "a step with another constant", "inst0 is no part", || {
            edited_loop("%c0 = const.i32 1", "%c0 = const.i32 2").judged()
        }),
        forgery("RestStepReads", "a step on other operands", "inst1 is no part", || {
            edited_loop("add.i32 %a, %b", "add.i32 %a, %a").judged()
        }),
        forgery("RestOtherReplay", "a replay of another value", "inst2 is no part", || {
            edited_loop("global_set.i32 @g, %a", "global_set.i32 @g, %b").judged()
        }),
    ]
}

fn code() -> Vec<Forgery> {
    vec![
        forgery("RestOtherCode", "another operation", "inst5 differs", || {
            edited_loop("%j1 = sub.i32", "%j1 = add.i32").judged()
        }),
        forgery("RestOtherOperands", "another operand", "inst9 differs", || {
            edited_loop("%r1 = sub.i32 %x1, %m", "%r1 = sub.i32 %m, %x1").judged()
        }),
        forgery("RestSkipsEffects", "a write left out", "inst4 differs", || {
            edited_loop("  global_set.i32 @g, %x1\n", "").judged()
        }),
        forgery("RestSkipsTraps", "a division left out", "inst8 differs", || {
            let version = replaced(LOOP, "%y = add.i32 %s, %one", "%y = sdiv.i32 %s, %i");
            Rest::looping(&version, LOOP_REST, LOOP_BLOCKS).idle("entry").idle("head").judged()
        }),
        forgery("RestKeepsSkipped", "a value of the last iteration", "inst7 leads", || {
            let text = replaced(LOOP_REST, "  %x2 = mul.i32 %i2, %s2\n", "");
            let text = replaced(&text, "jump rest(%i2, %x2)", "jump rest(%i2, %x1)");
            let blocks = LOOP_BLOCKS.iter().map(|begins| match begins.0 {
                "head" => ("head", 0, "head", 0, "i=i2 s=s2 one=c0 m=m x=x1"),
                _ => *begins,
            });
            let blocks: Vec<Begins> = blocks.collect();
            Rest::looping(LOOP, &text, &blocks).idle("entry").idle("head").judged()
        }),
        forgery("RestOtherEnd", "a branch on another value", "inst6 differs", || {
            edited_loop("br_if %j1,", "br_if %i1,").judged()
        }),
        forgery("RestMoreTargets", "a branch with one more target", "inst10 differs", || {
            let branch = "br_if %r, left, right";
            let version = replaced(LOOP, branch, "switch %r, [left], default left");
            let more = "switch %r1, [left, left], default right";
            let text = replaced(LOOP_REST, "br_if %r1, left, right", more);
            Rest::looping(&version, &text, LOOP_BLOCKS).idle("entry").idle("head").judged()
        }),
    ]
}

fn edges() -> Vec<Forgery> {
    vec![
        forgery(
            "RestEdgeValues",
            "the value of the last iteration on a back edge",
            "inst6 leads",
            || edited_loop("head(%j1, %x1), done", "head(%i1, %x1), done").judged(),
        ),
        forgery("RestLeadsElsewhere", "targets exchanged", "inst10 leads", || {
            edited_loop("br_if %r1, left, right", "br_if %r1, right, left").judged()
        }),
        forgery(
            "RestDecidesAnything",
            "a jump for a branch that either way may take",
            "inst10 differs",
            || edited_loop("br_if %r1, left, right", "jump left").judged(),
        ),
        forgery("RestIdleBranch", "a switch that stands for nothing", "inst8 differs", || {
            edited_loop("jump rest(%i2, %x2)", "switch %x2, [], default rest(%i2, %x2)").judged()
        }),
        forgery("RestStuck", "jumps in a circle", "jumps lead", || {
            let text = replaced(LOOP_REST, "done:\n", "done:\n  jump again\nagain:\n  jump done\n");
            let (text, _) = text.split_once("  %r1").expect("the code behind");
            let blocks = [&LOOP_BLOCKS[..4], &[("again", 0, "done", 0, "x=x1 m=m")]].concat();
            let rest = Rest::looping(LOOP, &format!("{text}}}\n"), &blocks);
            rest.idle("entry").idle("head").idle("done").idle("again").judged()
        }),
    ]
}

/// As [`CALL`], but the code behind the call reads no results.
fn unread() -> String {
    replaced(CALL, "%w = sub.i32 %u, %v", "%w = sub.i32 %p, %p")
}

fn frames() -> Vec<Forgery> {
    vec![
        forgery("RestEdgeValues", "results permuted", "inst0 leads", || {
            edited_call("jump behind(%a, %b)", "jump behind(%b, %a)").judged()
        }),
        forgery("RestIdleFrame", "a jump to the caller that is no return", "inst0 differs", || {
            let text = replaced(CALL_REST, "jump behind(%a, %b)", "jump behind");
            let text = replaced(&text, "behind(%u1: i32, %v1: i32)", "behind");
            let text = replaced(&text, "sub.i32 %u1, %v1", "sub.i32 %a, %a");
            let blocks = [CALL_BLOCKS[0], ("behind", 1, "entry", 1, "1.p=a"), CALL_BLOCKS[2]];
            Rest::calling(&unread(), &text, &blocks).idle("entry").judged()
        }),
        forgery("RestJumpsByBranch", "a branch for a return", "inst0 differs", || {
            edited_call("jump behind(%a, %b)", "br_if %a, behind(%a, %b), end(%a)").judged()
        }),
        forgery("RestLeaves", "an assumption where callers wait", "inst0 differs", || {
            let version =
                replaced(CALL, "  return %q, %k", "  %e = assume.i32 %q, 7, 0\n  return %q, %k");
            let text =
                replaced(CALL_REST, "  jump behind", "  %e1 = assume.i32 %a, 7, 0\n  jump behind");
            Rest::calling(&version, &text, CALL_BLOCKS).judged()
        }),
        forgery("RestReturnsElsewhere", "a return that jumps back", "inst2 leads", || {
            right_call();
            let blocks = [CALL_BLOCKS[0], CALL_BLOCKS[1], ("end", 1, "entry", 2, "1.w=z")];
            Rest::calling(CALL, CALL_REST, &blocks).judged()
        }),
        forgery("RestOtherResults", "other results, and no return", "it has another", || {
            right_call();
            let version = replaced(CALL, "  return %w", "  trap unreachable");
            let (text, _) = CALL_REST.split_once("  jump end").expect("the jump to the end");
            let text = replaced(text, "-> i32", "-> i64") + "  trap unreachable\n}\n";
            Rest::calling(&version, &text, &CALL_BLOCKS[..2]).judged()
        }),
        forgery("RestReturnsOther", "another result", "inst2 leads", || {
            edited_call("jump end(%w1)", "jump end(%u1)").judged()
        }),
        forgery("RestEndsWithMore", "code behind the last return", "nothing", || {
            edited_call("  return %z", "  %y = add.i32 %z, %z\n  return %y").judged()
        }),
    ]
}
