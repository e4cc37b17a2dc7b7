//! The exact dispatch loop, which executes pre-decoded operations one instruction at a time.
//!
//! The loop is one function, so that the hot state stays in local variables. This state is the
//! operations and slots of the top activation, the bytes of memory 0, the pc and the fuel. Rare or
//! long operations are functions outside of it ([`super::calls`], [`super::bulk`]). After every
//! operation that may move the stack or a memory, the loop derives its borrowed locals again.

use super::bulk::Bulk;
use super::calls::{self, ValueList};
use super::cells::watch;
use super::decoded::FarAccess;
use super::globals::observed_digest;
use super::host::{Host, HostError};
use super::machine::Machine;
use super::memory::Memories;
use super::op::{ExactOpCode, value_result, with_value_ops};
use super::ref_roots::RefRoots;
use super::version::MachineVersion;
use super::view::{Control, Scope, View};
use super::visits::{Attention, is_asked};
use ir::entity::{Func, Inst, Memory, OsrPoint, Sig, Table};
use ir::eval;
use ir::opcode::Opcode;
use ir::trap::TrapKind;
use ir::types::Type;

/// Why the loop stopped.
pub(super) enum LoopStop {
    Paused,
    /// One instruction was executed; [`step`] executes no more.
    Stepped,
    Returned(Vec<u64>),
    /// The run called an external function.
    Called(Func, Vec<u64>),
    Trap(TrapKind),
    /// A `trap` with an operand, whose bits these are.
    TrapWith(TrapKind, u64),
    Left(OsrPoint, Vec<u64>),
    /// An assumption failed. Its instruction has not executed, and took no fuel.
    Failed(u32),
    Host(HostError),
    OutOfFuel,
    StackOverflow,
}

/// An observer, as the loop calls it.
pub(super) type InstWatcher<'a> = &'a mut dyn FnMut(&View<'_>, Inst) -> Control;

const NOTHING: u8 = Scope::Nothing as u8;
const MARKED: u8 = Scope::Marked as u8;
const EVERYTHING: u8 = Scope::Everything as u8;
/// Not a scope: the loop runs unobserved and stops after one instruction.
const STEP: u8 = 3;
/// Not a scope: the loop counts visits, and calls the observer at counted visits alone.
const VISITS: u8 = 4;
const _: () = assert!(NOTHING < STEP && MARKED < STEP && EVERYTHING < STEP);

/// Runs the exact loop with an observer of a scope until the run ends or pauses.
///
/// The loop is compiled once per scope rather than once per observer. A loop that is generic over
/// the observer would be compiled in the crate that calls it, which a debug build does not
/// optimize.
pub(super) fn run_observed(
    machine: &mut Machine,
    host: &mut dyn Host,
    scope: Scope,
    watcher: InstWatcher<'_>,
) -> LoopStop {
    match (scope, machine.counting) {
        (Scope::Nothing, _) => unwatched(machine, host),
        (Scope::Marked, false) => run_loop::<MARKED, false>(machine, host, watcher),
        (Scope::Marked, true) => run_loop::<MARKED, true>(machine, host, watcher),
        (Scope::Everything, false) => run_loop::<EVERYTHING, false>(machine, host, watcher),
        (Scope::Everything, true) => run_loop::<EVERYTHING, true>(machine, host, watcher),
    }
}

/// Runs the exact loop without an observer until the run ends.
pub(super) fn unwatched(machine: &mut Machine, host: &mut dyn Host) -> LoopStop {
    let run = if machine.counting { run_loop::<NOTHING, true> } else { run_loop::<NOTHING, false> };
    run(machine, host, &mut |_, _| Control::Continue)
}

/// Runs the exact loop until the run ends, or a counted visit pauses it.
pub(super) fn run_to_visit(
    machine: &mut Machine,
    host: &mut dyn Host,
    attention: Attention<'_>,
) -> LoopStop {
    let counting = machine.counting;
    let run = if counting { run_loop::<VISITS, true> } else { run_loop::<VISITS, false> };
    run(machine, host, &mut |_, _| match is_asked(attention) {
        true => Control::Pause,
        false => Control::Continue,
    })
}

/// Executes one instruction in the exact loop.
pub(super) fn step(machine: &mut Machine, host: &mut dyn Host) -> LoopStop {
    let run = if machine.counting { run_loop::<STEP, true> } else { run_loop::<STEP, false> };
    run(machine, host, &mut |_, _| Control::Continue)
}

/// Loads `N` bytes at `address + offset`; `None` when they are out of bounds.
#[inline(always)]
fn load<const N: usize>(bytes: &[u8], address: u64, offset: u32) -> Option<[u8; N]> {
    // An i32 with clean upper bits plus 32 bits cannot wrap. A poisoned address may wrap, but must
    // not panic.
    let at = address.wrapping_add(offset.into()) as usize;
    bytes.get(at..)?.first_chunk().copied()
}

/// Stores `N` bytes at `address + offset`; `None`, and no write, when they are out of bounds.
#[inline(always)]
fn store<const N: usize>(
    bytes: &mut [u8],
    address: u64,
    offset: u32,
    value: [u8; N],
) -> Option<()> {
    let at = address.wrapping_add(offset.into()) as usize;
    *bytes.get_mut(at..)?.first_chunk_mut()? = value;
    Some(())
}

fn load_far(memories: &Memories, access: FarAccess, address: u64) -> Option<u64> {
    let mut word = [0; 8];
    let at = address.checked_add(access.offset)?;
    memories.read_into(access.memory, at, &mut word[..access.bytes as usize]).ok()?;
    let word = u64::from_le_bytes(word);
    let signed = || eval::sign_extend(word, access.bytes * 8) as u64 & access.ty.mask();
    Some(if access.signed { signed() } else { word })
}

fn store_far(memories: &mut Memories, access: FarAccess, address: u64, value: u64) -> Option<()> {
    let at = address.checked_add(access.offset)?;
    memories.write(access.memory, at, &value.to_le_bytes()[..access.bytes as usize]).ok()
}

/// The loop, for one scope, with or without counting. Call it with `COUNTED` exactly if the machine
/// counts.
fn run_loop<const SCOPE: u8, const COUNTED: bool>(
    machine: &mut Machine,
    host: &mut dyn Host,
    watcher: InstWatcher<'_>,
) -> LoopStop {
    let nested = machine.is_nested();
    let Machine {
        program,
        versions,
        entered,
        activations,
        memories,
        globals,
        trace,
        counts,
        visits,
        ..
    } = machine;
    let stops_at_imports = machine.stops_at_imports;
    let versions: &[MachineVersion] = versions;
    // Whether the observer already saw the first instruction, because the run paused there.
    let mut asked = std::mem::take(&mut machine.state.asked);
    let mut fuel = machine.fuel;
    let frame = *activations.top();
    let (mut pc, mut base) = (frame.pc as usize, frame.base);
    let mut code = versions[frame.version as usize].code.decoded();
    let mut ops = code.ops.as_slice();
    let mut slots = &mut activations.stack[base..][..code.frame_size as usize];
    let tracked = memories.tracked();
    let mut bytes = memories.first_mut();
    let mut version = frame.version as usize;

    let mut stepped = false;
    let stop = 'run: loop {
        if SCOPE == STEP && std::mem::replace(&mut stepped, true) {
            break LoopStop::Stepped;
        }
        let op = ops[pc];
        if fuel == 0 {
            break LoopStop::OutOfFuel;
        }
        let watched = match SCOPE {
            NOTHING | STEP => false,
            MARKED => op.marked,
            VISITS => visits.is_counted(version, pc),
            _ => true,
        };
        if watched
            && !asked
            && let Some(inst) = code.inst_at(pc as u32)
        {
            activations.top_mut().pc = pc as u32;
            let control = match SCOPE == VISITS && visits.visit(version, pc) {
                true => Control::Pause,
                false => {
                    watcher(&View { versions, activations, memories, globals, trace, fuel }, inst)
                }
            };
            if control == Control::Pause {
                asked = true;
                break LoopStop::Paused;
            }
            slots = &mut activations.stack[base..][..code.frame_size as usize];
            bytes = memories.first_mut();
        }
        asked = false;
        fuel -= 1;

        macro_rules! get {
            ($slot:expr) => {
                slots[$slot as usize]
            };
        }
        macro_rules! set {
            ($slot:expr, $bits:expr) => {
                slots[$slot as usize] = $bits
            };
        }
        // Unwraps the `Option` of an access, or traps.
        macro_rules! in_bounds {
            ($option:expr) => {
                match $option {
                    Some(value) => value,
                    None => break 'run LoopStop::Trap(TrapKind::MemoryOutOfBounds),
                }
            };
        }
        // Sets the result of a load or of a read of a global.
        macro_rules! loaded {
            ($bits:expr) => {{
                let bits: u64 = $bits;
                if COUNTED {
                    watch(&mut counts[version].cells[pc], bits);
                }
                set!(op.a, bits)
            }};
        }
        macro_rules! load {
            ($uint:ty, $bits:expr, $ty:expr) => {{
                let raw = <$uint>::from_le_bytes(in_bounds!(load(bytes, get!(op.b), op.c)));
                loaded!(eval::sign_extend(raw.into(), $bits) as u64 & $ty.mask())
            }};
            ($uint:ty) => {
                loaded!(<$uint>::from_le_bytes(in_bounds!(load(bytes, get!(op.b), op.c))).into())
            };
        }
        macro_rules! store {
            ($uint:ty) => {{
                let (address, value) = (get!(op.a), (get!(op.b) as $uint).to_le_bytes());
                if tracked {
                    let at = address.wrapping_add(op.c.into());
                    in_bounds!(memories.write(Memory::from_u32(0), at, &value).ok());
                    bytes = memories.first_mut();
                } else {
                    in_bounds!(store(bytes, address, op.c, value));
                }
            }};
        }
        macro_rules! jump {
            ($pc:expr) => {{
                pc = $pc as usize;
                continue;
            }};
        }
        macro_rules! moves {
            () => {
                for pair in code.pool[op.a as usize..][..2 * op.b as usize].as_chunks::<2>().0 {
                    set!(pair[0], get!(pair[1]));
                }
            };
        }
        // Calls a function, whose argument slots are listed at `$args_at` in the pool: pushes its
        // activation and continues at pc 0. A function without an entered version is external.
        macro_rules! call {
            ($func:expr, $args_at:expr) => {{
                let func: Func = $func;
                let (at, count) = ($args_at as usize, op.c as usize);
                activations.top_mut().pc = pc as u32;
                let entered = entered[func.as_u32() as usize];
                let args = &code.pool[at..][..count];
                let Some(callee) = versions.get(entered as usize) else {
                    let Some(args) = calls::arguments(activations, base, args) else {
                        break 'run LoopStop::StackOverflow;
                    };
                    trace.call(func, &args, observed_digest(memories, globals));
                    break 'run LoopStop::Called(func, args);
                };
                let callee = callee.code.decoded();
                let Some(start) =
                    calls::enter(activations, entered, callee, args, (at + count) as u32)
                else {
                    break 'run LoopStop::StackOverflow;
                };
                (code, base, ops) = (callee, start, &callee.ops);
                slots = &mut activations.stack[base..][..code.frame_size as usize];
                version = entered as usize;
                if COUNTED {
                    counts[version].enter(&slots[..count]);
                }
                if !trace.is_off() {
                    trace.call(func, &slots[..count], observed_digest(memories, globals));
                    bytes = memories.first_mut();
                }
                jump!(0)
            }};
        }
        // Calls the host; the pool lists the argument and result slots as for `call`.
        macro_rules! call_host {
            ($func:expr, $args_at:expr) => {{
                let func: Func = $func;
                let (args, results) = code.pool[$args_at as usize..].split_at(op.c as usize);
                let args: ValueList = args.iter().map(|slot| get!(*slot)).collect();
                if stops_at_imports {
                    activations.top_mut().pc = pc as u32;
                    break 'run LoopStop::Called(func, args.into_vec());
                }
                let effect = program.effect(func);
                if effect.is_traced() {
                    trace.call_host(func, &args, observed_digest(memories, globals));
                }
                let returned = match calls::call_host(program, func, &args, host, memories) {
                    Ok(returned) => returned,
                    Err(error) => break 'run LoopStop::Host(error),
                };
                for (slot, value) in results.iter().zip(&returned) {
                    set!(*slot, *value);
                }
                if effect.is_traced() {
                    trace.ret_host(&returned, observed_digest(memories, globals));
                }
                if let Some(collector) = &mut machine.collector
                    && !effect.is_bounded()
                {
                    activations.top_mut().pc = pc as u32;
                    collector.collect(RefRoots {
                        activations,
                        versions,
                        suspended: &machine.suspended,
                        is_fast: false,
                        globals,
                        declarations: program.declarations(),
                    });
                    slots = &mut activations.stack[base..][..code.frame_size as usize];
                }
                bytes = memories.first_mut();
            }};
        }
        macro_rules! dispatch {
            ($($shape:ident {
                $($opcode:ident: $($name:ident($ty:ident $($source:ident)?))+;)+
            })+) => {
                match op.code {
                    $($($(ExactOpCode::$name => {
                        let result =
                            value_result!(
                                $shape, Opcode::$opcode, Type::$ty, get!(op.b), get!(op.c)
                                $(, Type::$source)?
                            );
                        match result {
                            Ok(bits) => set!(op.a, bits),
                            Err(kind) => break 'run LoopStop::Trap(kind),
                        }
                    })+)+)+
                    ExactOpCode::Const => set!(op.a, u64::from(op.b) | u64::from(op.c) << 32),
                    ExactOpCode::Copy => set!(op.a, get!(op.b)),
                    ExactOpCode::Select => {
                        let &[condition, then, otherwise] =
                            code.pool[op.b as usize..].first_chunk().expect("interp: a select has three operands");
                        set!(op.a, eval::select(get!(condition), get!(then), get!(otherwise)));
                    }
                    ExactOpCode::Load1 => load!(u8),
                    ExactOpCode::Load2 => load!(u16),
                    ExactOpCode::Load4 => load!(u32),
                    ExactOpCode::Load8 => load!(u64),
                    ExactOpCode::Load1I16 => load!(u8, 8, Type::I16),
                    ExactOpCode::Load1I32 => load!(u8, 8, Type::I32),
                    ExactOpCode::Load1I64 => load!(u8, 8, Type::I64),
                    ExactOpCode::Load2I32 => load!(u16, 16, Type::I32),
                    ExactOpCode::Load2I64 => load!(u16, 16, Type::I64),
                    ExactOpCode::Load4I64 => load!(u32, 32, Type::I64),
                    ExactOpCode::Store1 => store!(u8),
                    ExactOpCode::Store2 => store!(u16),
                    ExactOpCode::Store4 => store!(u32),
                    ExactOpCode::Store8 => store!(u64),
                    ExactOpCode::LoadFar => {
                        let far = code.far[op.c as usize];
                        let value = in_bounds!(load_far(memories, far, get!(op.b)));
                        bytes = memories.first_mut();
                        loaded!(value);
                    }
                    ExactOpCode::StoreFar => {
                        let access = code.far[op.c as usize];
                        in_bounds!(store_far(memories, access, get!(op.a), get!(op.b)));
                        bytes = memories.first_mut();
                    }
                    ExactOpCode::MemorySize => {
                        set!(op.a, memories.pages(Memory::from_u32(op.b)).into());
                        bytes = memories.first_mut();
                    }
                    ExactOpCode::MemoryGrow => {
                        let (memory, pages) = (Memory::from_u32(op.b), get!(op.c) as u32);
                        let declarations = program.declarations();
                        let result =
                            Bulk { declarations, memories, globals, trace }
                                .grow_memory(memory, pages);
                        bytes = memories.first_mut();
                        set!(op.a, result.into());
                    }
                    ExactOpCode::Bulk => {
                        let bulk = code.bulk[op.a as usize];
                        let operation = bulk.on(slots);
                        let extra = operation.extra_fuel(memories, &globals.tables);
                        if extra > fuel {
                            fuel += 1; // the operation was not executed
                            break 'run LoopStop::OutOfFuel;
                        }
                        fuel -= extra;
                        let declarations = program.declarations();
                        match (Bulk { declarations, memories, globals, trace }).perform(operation) {
                            Ok(bits) => bulk.result.into_iter().for_each(|slot| set!(slot, bits)),
                            Err(kind) => break 'run LoopStop::Trap(kind),
                        }
                        bytes = memories.first_mut();
                    }
                    ExactOpCode::GlobalGet => loaded!(globals.get(op.b as usize)),
                    ExactOpCode::GlobalSet => globals.set(op.b as usize, get!(op.a)),
                    ExactOpCode::Call => call!(Func::from_u32(op.a), op.b),
                    ExactOpCode::CallHost => call_host!(Func::from_u32(op.a), op.b),
                    ExactOpCode::CallIndirect => {
                        let table = code.pool[op.b as usize];
                        let index = get!(code.pool[op.b as usize + 1]);
                        let (sig, table) = (Sig::from_u32(op.a), Table::from_u32(table));
                        let callee =
                            calls::indirect_callee(program, &globals.tables, sig, table, index);
                        if COUNTED && let Ok(func) = callee {
                            counts[version].call(pc, index, func);
                        }
                        match callee {
                            Ok(func) if !program.is_imported(func) => call!(func, op.b + 2),
                            Ok(func) => call_host!(func, op.b + 2),
                            Err(kind) => break 'run LoopStop::Trap(kind),
                        }
                    }
                    ExactOpCode::Return => {
                        let from = &code.pool[op.a as usize..][..op.b as usize];
                        if !trace.is_off() {
                            let values: ValueList = from.iter().map(|slot| get!(*slot)).collect();
                            // The engine that began a nested run records the return of its first
                            // activation.
                            if !nested || activations.of_run().len() > 1 {
                                trace.ret(&values, observed_digest(memories, globals));
                            }
                            bytes = memories.first_mut();
                        }
                        if !calls::leave(activations, versions, from) {
                            let values =
                                from.iter().map(|slot| activations.stack[base + *slot as usize]);
                            break 'run LoopStop::Returned(values.collect());
                        }
                        let caller = activations.top();
                        (pc, base) = (caller.pc as usize, caller.base);
                        version = caller.version as usize;
                        code = versions[version].code.decoded();
                        ops = &code.ops;
                        slots = &mut activations.stack[base..][..code.frame_size as usize];
                    }
                    ExactOpCode::Jump => jump!(op.c),
                    ExactOpCode::Jump1 => {
                        set!(op.a, get!(op.b));
                        jump!(op.c)
                    }
                    ExactOpCode::JumpN => {
                        moves!();
                        jump!(op.c)
                    }
                    // The branch has paid for the moves on its edges. A run out of fuel at such
                    // moves stops before the instruction they lead to (`Code::inst_near`; test
                    // `moves_on_edges_cost_no_fuel`).
                    ExactOpCode::Edge1 => {
                        set!(op.a, get!(op.b));
                        fuel += 1;
                        jump!(op.c)
                    }
                    ExactOpCode::EdgeN => {
                        moves!();
                        fuel += 1;
                        jump!(op.c)
                    }
                    ExactOpCode::BrIf => {
                        // Forces a branch instead of a conditional move: see `branch!` in the fast
                        // loop.
                        let taken = get!(op.a) != 0;
                        if COUNTED {
                            counts[version].cells[pc][usize::from(!taken)] += 1;
                        }
                        if taken {
                            std::hint::black_box(());
                            pc = op.b as usize;
                        } else {
                            pc = op.c as usize;
                        }
                        continue;
                    }
                    ExactOpCode::Switch => {
                        let choice = get!(op.a).min(op.c.into()) as usize;
                        if COUNTED {
                            counts[version].switch(pc, choice);
                        }
                        jump!(code.pool[op.b as usize + choice])
                    }
                    ExactOpCode::Assume => {
                        let assumption = code.assumptions[op.c as usize];
                        if get!(op.b) != assumption.bits {
                            fuel += 1; // the instruction was not executed
                            break 'run LoopStop::Failed(assumption.reason);
                        }
                        set!(op.a, assumption.bits)
                    }
                    ExactOpCode::Trap => break 'run LoopStop::Trap(code.traps[op.a as usize]),
                    ExactOpCode::TrapWith => {
                        let kind = code.traps[op.a as usize];
                        break 'run LoopStop::TrapWith(kind, get!(op.b));
                    }
                    ExactOpCode::Leave => {
                        let slots = code.pool[op.b as usize..][..op.c as usize].iter();
                        let values = slots.map(|slot| get!(*slot));
                        break 'run LoopStop::Left(OsrPoint::from_u32(op.a), values.collect());
                    }
                }
            };
        }
        with_value_ops!(dispatch);
        pc += 1;
    };
    machine.fuel = fuel;
    machine.state.asked = asked;
    if let Some(frame) = machine.activations.of_run_mut().last_mut() {
        frame.pc = pc as u32;
    }
    stop
}
