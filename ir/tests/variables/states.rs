//! Frame states noted while a function is built.

use ir::{
    FinishedFunction, FrameState, FrameStateError, FrameStates, Function, FunctionBuilder, Local,
    LocalContent, Opcode, Point, Signature, Target, Type, Value, Variable,
};
use std::collections::BTreeSet;
use std::sync::Arc;

fn local(slot: u32, value: Value) -> Local {
    Local { slot, content: LocalContent::Value(value), representation: 7 }
}

/// A builder in the entry of a function of one argument.
fn start() -> (FunctionBuilder, Value) {
    let mut b = FunctionBuilder::new("f", Signature::new(&[Type::I32], &[Type::I32]));
    let entry = b.create_block();
    let arg = b.append_param(entry, Type::I32);
    b.switch_to(entry);
    (b, arg)
}

fn variable(b: &mut FunctionBuilder, value: Value) -> Variable {
    let made = b.declare_var(Type::I32);
    b.def_var(made, value);
    made
}

fn content(states: &FrameStates, function: &Function, pc: u32, slot: u32) -> LocalContent {
    let (point, state) = states.noted().find(|(_, state)| state.pc == pc).expect("a state");
    assert!(function.has_inst(point.inst()));
    let local = state.locals.iter().find(|local| local.slot == slot).expect("a local");
    assert_eq!(local.representation, 7);
    local.content
}

/// `count` counts down in a loop, and `last` holds its value before: only the frame state at the
/// header reads `last`.
#[test]
fn a_variable_that_only_a_state_reads_has_its_value_there() {
    let (mut b, arg) = start();
    let (count, last) = (variable(&mut b, arg), variable(&mut b, arg));
    let (head, end) = (b.reserve_block(), b.reserve_block());
    b.jump(head, &[]);
    b.place_block(head);
    b.switch_to(head);
    let (now, before) = (b.use_var(count), b.use_var(last));
    b.frame_state(FrameState::new(3, 10, vec![local(0, now), local(1, before), local(2, now)]));
    let one = b.constant(Type::I32, 1);
    let less = b.op(Opcode::Sub, Type::I32, &[now, one]);
    b.def_var(count, less);
    b.def_var(last, now);
    b.br_if(less, Target::new(head, &[]), Target::new(end, &[]));
    b.place_block(end);
    b.switch_to(end);
    let result = b.use_var(count);
    b.ret(&[result]);
    let FinishedFunction { function, states, .. } = b.finish().expect("complete");
    assert_eq!(states.check(&function), Ok(()));
    let head = function.blocks().nth(1).expect("the header");
    let params = function.block_params(head);
    assert_eq!(params.len(), 2, "one for each variable");
    let [now, before, again] = [0, 1, 2].map(|slot| content(&states, &function, 10, slot));
    assert_eq!(now, again);
    let named: BTreeSet<Value> = [now, before]
        .map(|content| match content {
            LocalContent::Value(value) => value,
            LocalContent::Constant(..) => panic!("a value"),
        })
        .into();
    assert_eq!(named, params.iter().copied().collect());
    let at = states.noted().next().expect("a state").0;
    assert_eq!(at, Point::before(function.first_inst(head)));
}

#[test]
fn a_variable_without_a_value_is_a_constant_zero_in_a_state() {
    let (mut b, arg) = start();
    let unset = b.declare_var(Type::I64);
    let lost = b.create_block();
    let nothing = b.use_var(unset);
    b.frame_state(FrameState::new(0, 1, vec![local(0, nothing)]));
    b.ret(&[arg]);
    b.switch_to(lost);
    let nothing = b.use_var(unset);
    // Control never comes here, so the state may name the argument, which no path defines.
    b.frame_state(FrameState::new(0, 2, vec![local(0, nothing), local(1, arg)]));
    let zero = b.constant(Type::I32, 0);
    b.ret(&[zero]);
    let FinishedFunction { function, states, .. } = b.finish().expect("complete");
    for pc in [1, 2] {
        let found = content(&states, &function, pc, 0);
        assert_eq!(found, LocalContent::Constant(Type::I64, 0), "{pc}");
    }
    assert_eq!(function.all_insts().count(), 3, "no instruction makes the zeros");
    assert_eq!(states.check(&function), Ok(()));
    assert_eq!(states.required(&function).count(), 1, "the reachable one");
}

#[test]
fn a_state_keeps_an_empty_block() {
    let made = |is_noted: bool| {
        let (mut b, arg) = start();
        let (empty, end) = (b.reserve_block(), b.reserve_block());
        b.jump(empty, &[]);
        b.place_block(empty);
        b.switch_to(empty);
        if is_noted {
            let caller = FrameState::new(1, 4, vec![local(0, arg)]);
            let inner = FrameState::new(2, 5, Vec::new());
            b.frame_state(FrameState { caller: Some(Arc::new(caller)), ..inner });
        }
        b.jump(end, &[]);
        b.place_block(end);
        b.switch_to(end);
        b.ret(&[arg]);
        b.skip_empty_blocks(BTreeSet::new());
        let FinishedFunction { function, states, .. } = b.finish().expect("complete");
        (function, states)
    };
    assert_eq!(made(false).0.blocks().count(), 2);
    let (function, states) = made(true);
    assert_eq!(function.blocks().count(), 3);
    assert_eq!(states.check(&function), Ok(()));
    let (_, state) = states.noted().next().expect("a state");
    assert_eq!(state.activations().map(|one| one.pc).collect::<Vec<_>>(), [5, 4]);
    assert_eq!(state.all_values().collect::<Vec<_>>(), [function.arguments()[0]]);
}

/// A builder that gives ids once and for all keeps the ids in the states.
#[test]
fn states_without_variables_keep_their_ids() {
    let (mut b, arg) = start();
    b.frame_state(FrameState::new(0, 1, Vec::new()));
    b.frame_state(FrameState::new(0, 2, vec![local(0, arg)]));
    let ret = b.ret(&[arg]);
    let FinishedFunction { function, states, .. } = b.finish().expect("complete");
    assert_eq!(states.len(), 1, "the last state in front of an instruction counts");
    assert_eq!(states.get(Point::before(ret)).map(|state| state.pc), Some(2));
    assert_eq!(states.check(&function), Ok(()));
}

#[test]
fn states_that_do_not_fit_are_refused() {
    let (mut b, arg) = start();
    let one = b.constant(Type::I32, 1);
    let first = Point::before(b.function().first_inst(b.function().entry()));
    let end = Point::before(b.ret(&[arg]));
    let function = b.finish().expect("complete").function;
    let checked = |at: Point, locals: Vec<Local>| {
        let mut states = FrameStates::new();
        states.set(at, FrameState::new(0, 0, locals));
        states.check(&function)
    };
    assert_eq!(checked(end, vec![local(0, one), local(1, one)]), Ok(()));
    let none = Value::from_u32(99);
    let cases = [
        (checked(first, vec![local(0, one)]), FrameStateError::NotAvailable(first, one)),
        (checked(end, vec![local(0, none)]), FrameStateError::NoSuchValue(end, none)),
        (checked(end, vec![local(4, arg), local(4, one)]), FrameStateError::SlotTwice(end, 4)),
    ];
    for (found, expected) in cases {
        assert_eq!(found, Err(expected));
    }
    let beyond = Point::before(ir::Inst::from_u32(99));
    assert_eq!(checked(beyond, Vec::new()), Err(FrameStateError::NoSuchPoint(beyond)));
    let says = FrameStateError::NotAvailable(first, one).to_string();
    assert!(says.contains(&format!("{}", first.inst())) && says.contains(&format!("%{one}")));
}

/// A client finds its own values, instructions and blocks again: what it guesses about is the value
/// that the state names.
#[test]
fn own_ids_are_found_again() {
    let (mut b, arg) = start();
    let (count, unread) = (variable(&mut b, arg), variable(&mut b, arg));
    let unset = b.declare_var(Type::I32);
    let (head, dropped, end) = (b.reserve_block(), b.reserve_block(), b.reserve_block());
    let enters = b.jump(head, &[]);
    b.place_block(end);
    b.switch_to(end);
    let (last, zero) = (b.use_var(count), b.use_var(unset));
    let ret = b.ret(&[last]);
    b.place_block(head);
    b.switch_to(head);
    let (now, ignored) = (b.use_var(count), b.use_var(unread));
    b.frame_state(FrameState::of_values(0, 1, [(4, now)]));
    let one = b.constant(Type::I32, 1);
    let less = b.op(Opcode::Sub, Type::I32, &[now, one]);
    b.def_var(count, less);
    b.def_var(unread, less);
    let branch = b.br_if(less, head, dropped);
    b.place_block(dropped);
    b.switch_to(dropped);
    let skipped = b.jump(end, &[]);
    b.skip_empty_blocks(BTreeSet::new());
    let FinishedFunction { function, states, params, ids } = b.finish().expect("complete");
    let found = |value| ids.value(value).expect("it stays");
    let [param] = function.block_params(ids.block(head).expect("it stays")) else { panic!() };
    assert_eq!(params, [(*param, count)]);
    assert_eq!([found(arg), found(now)], [function.arguments()[0], *param]);
    // The block at the end has one predecessor, so it reads the result of its branch's block.
    assert_eq!(found(last), found(less));
    let sub = ids.inst(branch).and_then(|inst| function.prev_inst(inst)).expect("it subtracts");
    assert_eq!(function.inst(sub).results[0], found(less));
    assert_eq!(function.inst(sub).args[..], [found(now), found(one)]);
    assert_eq!(function.inst(ids.inst(ret).expect("it stays")).args[..], [found(last)]);
    assert_eq!(function.inst(ids.inst(enters).expect("it stays")).opcode, Opcode::Jump);
    // The read has no user, so its parameter is dropped; no instruction makes the zero.
    assert_eq!([ids.value(ignored), ids.value(zero)], [None, None]);
    assert_eq!((ids.inst(skipped), ids.block(dropped)), (None, None));
    let at = Point::before(sub);
    assert_eq!(states.content(&function, at, 4), Some(LocalContent::Value(found(now))));
    assert_eq!(states.not_named(&function, at, found(now)), None);
    // Defined behind the state.
    assert_eq!(states.not_named(&function, at, found(one)), None);
    let (state, _) = states.covering(&function, at).expect("the header has one");
    assert_eq!(states.not_named(&function, at, found(arg)), Some(state));
    let end = Point::before(ids.inst(ret).expect("it stays"));
    assert_eq!(states.covering(&function, end), None);
}

/// The header has a state, and the jumps in front of it have none: one falls through, one comes
/// back, and one stands alone in a block that another jump leads to.
#[test]
fn a_jump_repeats_the_state_it_leads_to() {
    let (mut b, arg) = start();
    let count = variable(&mut b, arg);
    let (lone, head, body) = (b.reserve_block(), b.reserve_block(), b.reserve_block());
    let falls = b.jump(lone, &[]);
    b.place_block(lone);
    b.switch_to(lone);
    let alone = b.jump(head, &[]);
    b.place_block(head);
    b.switch_to(head);
    let now = b.use_var(count);
    let constant =
        Local { slot: 1, content: LocalContent::Constant(Type::I64, 3), representation: 7 };
    b.frame_state(FrameState::new(0, 10, vec![local(0, now), constant, local(2, arg)]));
    let branch = b.br_if(now, body, body);
    b.place_block(body);
    b.switch_to(body);
    let less = b.op(Opcode::Sub, Type::I32, &[now, arg]);
    b.def_var(count, less);
    let back = b.jump(head, &[]);
    let FinishedFunction { function, states, ids, .. } = b.finish().expect("complete");
    assert_eq!(states.check(&function), Ok(()));
    let point = |inst| Point::before(ids.inst(inst).expect("it stays"));
    let noted: Vec<Point> = states.noted().map(|(point, _)| point).collect();
    assert_eq!(noted, [point(branch)]);
    let [arg, now, less] = [arg, now, less].map(|value| ids.value(value).expect("it stays"));
    for (inst, first) in [(falls, arg), (alone, arg), (branch, now), (back, less)] {
        let state = states.get(point(inst)).expect("a state");
        let expected = FrameState::new(0, 10, vec![local(0, first), constant, local(2, arg)]);
        assert_eq!(*state, expected, "{inst}");
    }
    assert_eq!(states.len(), 4);
}

/// A loop whose header and whose body have a state each; the body ends in a jump that repeats the
/// state of the header. Has the function, its states, the points of both states and of the
/// jump, and the test of the body, which no state names.
struct Looped {
    function: Function,
    states: FrameStates,
    head: Point,
    body: Point,
    jump: Point,
    odd: Value,
}

fn looped() -> Looped {
    let (mut b, arg) = start();
    let count = variable(&mut b, arg);
    let (head, body, end) = (b.reserve_block(), b.reserve_block(), b.reserve_block());
    b.jump(head, &[]);
    b.place_block(head);
    b.switch_to(head);
    let now = b.use_var(count);
    b.frame_state(FrameState::new(0, 10, vec![local(0, now)]));
    let branch = b.br_if(now, body, end);
    b.place_block(body);
    b.switch_to(body);
    b.frame_state(FrameState::new(0, 11, vec![local(0, now)]));
    let one = b.constant(Type::I32, 1);
    let odd = b.op(Opcode::And, Type::I32, &[now, one]);
    let less = b.op(Opcode::Sub, Type::I32, &[now, odd]);
    b.def_var(count, less);
    let jump = b.jump(head, &[]);
    b.place_block(end);
    b.switch_to(end);
    b.ret(&[arg]);
    let FinishedFunction { function, states, ids, .. } = b.finish().expect("complete");
    let point = |inst| Point::before(ids.inst(inst).expect("it stays"));
    let (head, jump) = (point(branch), point(jump));
    let body = Point::before(function.first_inst(function.inst_block(jump.inst())));
    assert!([head, body, jump].iter().all(|point| states.get(*point).is_some()));
    let odd = ids.value(odd).expect("it stays");
    Looped { function, states, head, body, jump, odd }
}

/// The test is a result of the bytecode in front of the jump, whose state names what follows.
#[test]
fn a_guess_at_a_jump_is_about_its_bytecode() {
    let Looped { function, states, body, jump, odd, .. } = looped();
    assert_eq!(states.not_named(&function, jump, odd), None);
    // The state that the jump repeats names its argument alone.
    let arg = function.arguments()[0];
    assert_eq!(states.not_named(&function, jump, arg), Some(body));
}

#[test]
fn a_jump_belongs_to_the_bytecode_in_front_of_it() {
    let Looped { function, states, head, jump, .. } = looped();
    let pcs: Vec<_> = states.by_inst(&function).map(|(inst, state)| (inst, state.pc)).collect();
    assert!(pcs.contains(&(head.inst(), 10)) && pcs.contains(&(jump.inst(), 11)), "{pcs:?}");
    assert_eq!(pcs.len(), 5, "the jump in the entry belongs to none: {pcs:?}");
}

#[test]
fn a_new_state_drops_the_repeats_of_the_former() {
    let Looped { mut states, head, body, jump, .. } = looped();
    states.set(body, FrameState::new(0, 12, Vec::new()));
    assert_eq!(states.len(), 4);
    states.set(head, FrameState::new(0, 13, Vec::new()));
    let left: Vec<(Point, u32)> = states.iter().map(|(point, state)| (point, state.pc)).collect();
    assert_eq!(left, [(head, 13), (body, 12)]);
    assert_eq!(states.get(jump), None);
}
