//! The fast dispatch loop.

use super::code::{Fast, WINDOW};
use super::counted::Ops;
use super::frames::{prepare, settle, settle_values};
use super::op::FastOpCode;
use crate::activations::Activations;
use crate::calls::{self, ValueList};
use crate::exec::{self, LoopStop, step, unwatched};
use crate::host::Host;
use crate::machine::Machine;
use crate::op::{value_result, with_branch_ops, with_value_ops};
use crate::version::MachineVersion;
use crate::visits::{Attention, VersionVisits, VisitCounters, is_asked};
use ir::entity::{Func, OsrPoint};
use ir::eval;
use ir::opcode::Opcode;
use ir::trap::TrapKind;
use ir::types::Type;
use std::sync::atomic::AtomicU32;

/// Why the fast loop stopped.
enum FastStop {
    Stop(LoopStop),
    /// The exact loop must execute the instruction at the pc; the fast loop can continue after it.
    Rare,
    /// The exact loop must take over the run at the pc.
    Exact,
}

/// Whether the fast loop may execute an unobserved run. It may not if the run must stay exact, or
/// has a trace, digests or poison, because these expose states that fast code skips.
pub(crate) fn applies(machine: &Machine) -> bool {
    !machine.state.exact
        && machine.trace.is_off()
        && !machine.memories.tracked()
        && !machine.activations.poison
        && machine.collector.is_none()
}

/// Continues a run until it ends. Call it only if [`applies`] returns true for the machine.
pub(crate) fn run(machine: &mut Machine, host: &mut dyn Host) -> LoopStop {
    match machine.counting {
        true => run_in::<true, false>(machine, host, NEVER),
        false => run_in::<false, false>(machine, host, NEVER),
    }
}

/// As [`run`], but a counted visit may pause the run. The machine does not count events.
pub(crate) fn run_to_visit(
    machine: &mut Machine,
    host: &mut dyn Host,
    attention: Attention<'_>,
) -> LoopStop {
    run_in::<false, true>(machine, host, attention)
}

/// Requests no pause.
const NEVER: Attention<'static> = {
    static NOBODY: AtomicU32 = AtomicU32::new(0);
    [&NOBODY; 2]
};

/// Continues a run in the fast loop as long as that is possible, then in the exact one.
fn run_in<const COUNTED: bool, const VISITS: bool>(
    machine: &mut Machine,
    host: &mut dyn Host,
    attention: Attention<'_>,
) -> LoopStop {
    let was_asked = std::mem::take(&mut machine.state.asked);
    machine.activations.provide_window(WINDOW);
    if !machine.state.fast && !prepare(&mut machine.activations, &machine.versions) {
        machine.state.asked = VISITS && was_asked;
        return exactly::<VISITS>(machine, host, attention);
    }
    machine.state.fast = true;
    if VISITS && !was_asked && begins_late(machine, attention) {
        return LoopStop::Paused;
    }
    loop {
        let exit = run_loop::<COUNTED, VISITS>(machine, host, attention);
        // The fast loop writes globals without updating their digest.
        machine.globals.refresh();
        match exit {
            FastStop::Stop(stop) => return stop,
            FastStop::Exact => {
                leave(machine);
                return exactly::<VISITS>(machine, host, attention);
            }
            FastStop::Rare => match step(machine, host) {
                LoopStop::Stepped => {}
                stop => return stop,
            },
        }
    }
}

/// Counts the call of an activation that an engine has begun. Returns whether the run is to pause.
fn begins_late(machine: &mut Machine, attention: Attention<'_>) -> bool {
    let frame = *machine.activations.top();
    if frame.pc != 0 {
        return false;
    }
    machine.visits.is_due = machine.visits.calls[frame.version as usize].visit();
    machine.visits.is_due || is_asked(attention)
}

/// Converts frames in the layout of fast code back to the layout of exact code.
pub(crate) fn leave(machine: &mut Machine) {
    if std::mem::take(&mut machine.state.fast) {
        settle(&mut machine.activations, &machine.versions);
    }
}

/// Makes the values of the top activation readable, if fast code has executed it. The run may
/// continue in fast code.
pub(crate) fn show_top(machine: &mut Machine) {
    if machine.state.fast
        && let Some(top) = machine.activations.frames.len().checked_sub(1)
    {
        settle_values(&mut machine.activations, &machine.versions, top);
    }
}

fn exactly<const VISITS: bool>(
    machine: &mut Machine,
    host: &mut dyn Host,
    attention: Attention<'_>,
) -> LoopStop {
    machine.state.exact = true;
    match VISITS {
        true => exec::run_to_visit(machine, host, attention),
        false => unwatched(machine, host),
    }
}

/// The fast code of a version, with polls if the loop counts visits.
#[inline(always)]
fn code_of<'a, const VISITS: bool>(
    versions: &'a [MachineVersion],
    visited: &'a [VersionVisits],
    version: u32,
) -> Option<&'a Fast> {
    if VISITS && let Some(polled) = &visited[version as usize].fast {
        return Some(polled);
    }
    versions[version as usize].code.fast.as_ref()
}

/// The slots of the frame at `base`, and the slots above it up to the size of the window.
#[inline(always)]
fn window(activations: &mut Activations, base: usize) -> &mut [u64; WINDOW] {
    activations.stack[base..].first_chunk_mut().expect("interp: a frame has its window")
}

/// Loads `N` bytes at `address + offset`. Addresses are clean i32 values, because the fast loop
/// never runs with poison.
#[inline(always)]
fn load<const N: usize>(bytes: &[u8], address: u64, offset: u32) -> Option<[u8; N]> {
    let at = (u64::from(address as u32) + u64::from(offset)) as usize;
    bytes.get(at..at + N)?.try_into().ok()
}

/// Stores `N` bytes at `address + offset`; `None`, and no write, when they are out of bounds.
#[inline(always)]
fn store<const N: usize>(
    bytes: &mut [u8],
    address: u64,
    offset: u32,
    value: [u8; N],
) -> Option<()> {
    let at = (u64::from(address as u32) + u64::from(offset)) as usize;
    bytes.get_mut(at..at + N)?.copy_from_slice(&value);
    Some(())
}

/// Begins an activation, copies its arguments from the slots of the caller, fills its constants,
/// and returns the base of its slots. Returns `None` when a limit is reached.
#[inline(always)]
fn enter(
    activations: &mut Activations,
    version: u32,
    callee: &MachineVersion,
    fast: &Fast,
    base: usize,
    args: &[u16],
) -> Option<usize> {
    let start = activations.push(version, &callee.code, 0)?;
    let (below, above) = activations.stack.split_at_mut(start);
    for (to, from) in above.iter_mut().zip(args) {
        *to = below[base + usize::from(*from)];
    }
    fast.fill_consts(&mut activations.stack, start);
    Some(start)
}

/// The loop, with or without counting of events, and of visits. Call it with `COUNTED` exactly if
/// the machine counts events, and with `VISITS` only if it counts visits.
fn run_loop<const COUNTED: bool, const VISITS: bool>(
    machine: &mut Machine,
    host: &mut dyn Host,
    attention: Attention<'_>,
) -> FastStop {
    let Machine { program, versions, entered, activations, memories, globals, .. } = machine;
    let (counts, counted) = (&mut machine.counts, &mut machine.counted);
    let VisitCounters { is_due, calls, blocks, versions: visited, .. } = &mut machine.visits;
    let visited: &[VersionVisits] = visited;
    let versions: &[MachineVersion] = versions;
    let mut fuel = machine.fuel;
    let frame = *activations.top();
    let (mut pc, mut base) = (frame.pc as usize, frame.base);
    let code = code_of::<VISITS>(versions, visited, frame.version);
    let mut fast = code.expect("interp: the frame was prepared");
    let mut ops = Ops::<COUNTED>::new(fast, counted, frame.version);
    let mut slots = window(activations, base);
    let mut bytes = memories.first_mut();
    let mut version = frame.version;

    let exit = 'run: loop {
        // By reference, because a copy would load every field, including fields that the operation
        // does not need.
        let op = ops.get(pc);
        let length = u64::from(op.length);
        if fuel < length {
            // The remaining fuel pays only for the first instructions of a fused operation. They
            // compute values that no observer sees, so skipping them is enough.
            pc += fuel as usize;
            fuel = 0;
            break FastStop::Stop(LoopStop::OutOfFuel);
        }
        fuel -= length;

        macro_rules! get {
            ($slot:expr) => {
                slots[usize::from($slot as u16)]
            };
        }
        macro_rules! set {
            ($slot:expr, $bits:expr) => {
                slots[usize::from($slot)] = $bits
            };
        }
        // The pc of the last instruction that the operation executes. The earlier instructions only
        // compute values.
        macro_rules! last {
            () => {
                pc + length as usize - 1
            };
        }
        macro_rules! stop {
            ($stop:expr) => {{
                pc = last!();
                break 'run FastStop::Stop($stop);
            }};
        }
        // Exits the loop before the last instruction, and refunds its fuel.
        macro_rules! leave {
            ($exit:expr) => {{
                pc = last!();
                fuel += 1;
                break 'run $exit;
            }};
        }
        macro_rules! in_bounds {
            ($option:expr) => {
                match $option {
                    Some(value) => value,
                    None => stop!(LoopStop::Trap(TrapKind::MemoryOutOfBounds)),
                }
            };
        }
        // The sum of two slots as an address.
        macro_rules! sum {
            ($base:expr, $index:expr) => {
                get!($base).wrapping_add(get!($index))
            };
        }
        // Sets the result of a load or of a read of a global.
        macro_rules! loaded {
            ($bits:expr) => {{
                let bits: u64 = $bits;
                set!(op.a, bits);
                ops.watch(pc, bits)
            }};
        }
        macro_rules! load {
            ($address:expr, $uint:ty) => {
                loaded!(<$uint>::from_le_bytes(in_bounds!(load(bytes, $address, op.x))).into())
            };
            ($address:expr, $uint:ty, $bits:expr, $ty:expr) => {{
                let raw = <$uint>::from_le_bytes(in_bounds!(load(bytes, $address, op.x)));
                loaded!(eval::sign_extend(raw.into(), $bits) as u64 & $ty.mask())
            }};
        }
        macro_rules! store {
            ($address:expr, $uint:ty) => {{
                let value = (get!(op.b) as $uint).to_le_bytes();
                in_bounds!(store(bytes, $address, op.x, value))
            }};
        }
        macro_rules! jump {
            ($pc:expr) => {{
                pc = $pc as usize;
                continue;
            }};
        }
        // A conditional branch that the processor predicts. The compiler would turn this into a
        // conditional move, and then the next operation could not be fetched before the condition
        // is known. That costs a third of the speed of loops; `black_box` prevents it.
        macro_rules! branch {
            ($condition:expr, $otherwise:expr) => {{
                if $condition {
                    std::hint::black_box(());
                    let target = op.x as usize;
                    ops.side(pc, 0);
                    pc = target;
                } else {
                    let target = $otherwise;
                    ops.side(pc, 1);
                    pc = target;
                }
                continue;
            }};
        }
        macro_rules! add {
            () => {
                set!(op.a, (get!(op.a) as u32).wrapping_add(get!(op.b) as u32).into())
            };
        }
        macro_rules! move_one {
            () => {
                set!(op.a, get!(op.b))
            };
        }
        macro_rules! move_two {
            () => {{
                move_one!();
                set!((op.y >> 16) as u16, get!(op.y));
            }};
        }
        macro_rules! move_many {
            () => {
                for pair in fast.pool[op.y as usize..][..2 * usize::from(op.b)].as_chunks::<2>().0 {
                    set!(pair[0], get!(pair[1]));
                }
            };
        }
        // Calls a function; `$index` is the table index of an indirect call. The counter of that
        // call comes behind the exit to the exact loop, which executes the call again and counts it
        // (test `calls_of_functions_without_fast_code_count_once`).
        macro_rules! call {
            ($func:expr, $index:expr) => {{
                let func: Func = $func;
                let index: Option<u64> = $index;
                macro_rules! count {
                    () => {
                        if COUNTED && let Some(index) = index {
                            counts[version as usize].call(last!(), index, func);
                        }
                    };
                }
                let entered = entered[func.as_u32() as usize];
                let Some(callee) = versions.get(entered as usize) else {
                    count!();
                    let args = &fast.pool[op.y as usize..][..usize::from(op.b)];
                    stop!(
                        calls::arguments(activations, base, args)
                            .map_or(LoopStop::StackOverflow, |args| LoopStop::Called(func, args))
                    )
                };
                let Some(code) = code_of::<VISITS>(versions, visited, entered) else {
                    leave!(FastStop::Exact)
                };
                count!();
                activations.top_mut().pc = last!() as u32;
                let args = &fast.pool[op.y as usize..][..usize::from(op.b)];
                let Some(start) = enter(activations, entered, callee, code, base, args) else {
                    stop!(LoopStop::StackOverflow)
                };
                slots = window(activations, start);
                if COUNTED {
                    counts[entered as usize].enter(&slots[..args.len()]);
                    version = entered;
                }
                (fast, base, ops) = (code, start, Ops::new(code, counted, entered));
                if VISITS {
                    *is_due = calls[entered as usize].visit();
                    if *is_due || is_asked(attention) {
                        pc = 0;
                        break 'run FastStop::Stop(LoopStop::Paused);
                    }
                }
                jump!(0)
            }};
        }
        macro_rules! call_host {
            ($func:expr) => {{
                let (args, results) = fast.pool[op.y as usize..].split_at(usize::from(op.b));
                let args: ValueList = args.iter().map(|slot| get!(*slot)).collect();
                if machine.stops_at_imports {
                    stop!(LoopStop::Called($func, args.into_vec()));
                }
                let returned = match calls::call_host(program, $func, &args, host, memories) {
                    Ok(returned) => returned,
                    Err(error) => stop!(LoopStop::Host(error)),
                };
                for (slot, value) in results.iter().zip(&returned) {
                    set!(*slot, *value);
                }
                bytes = memories.first_mut();
            }};
        }
        macro_rules! dispatch {
            ($($values:tt)*) => { with_branch_ops! { dispatch_both { $($values)* } } };
        }
        macro_rules! dispatch_both {
            (
                { $($shape:ident {
                    $($opcode:ident: $($name:ident($ty:ident $($source:ident)?))+;)+
                })+ }
                $($compare:ident { $($tested:ident: $($branch:ident($width:ident))+;)+ })+
                [$($stepped:ident: $plain:ident $step:ident $flipped:ident;)+]
            ) => {
                match op.code {
                    $($($(FastOpCode::$name => {
                        let result =
                            value_result!(
                                $shape, Opcode::$opcode, Type::$ty, get!(op.b), get!(op.x)
                                $(, Type::$source)?
                            );
                        match result {
                            Ok(bits) => set!(op.a, bits),
                            Err(kind) => stop!(LoopStop::Trap(kind)),
                        }
                    })+)+)+
                    $($($(FastOpCode::$branch => {
                        let result: Result<u64, TrapKind> =
                            value_result!(
                                $compare, Opcode::$tested, Type::$width, get!(op.a), get!(op.b)
                            );
                        branch!(result != Ok(0), op.y as usize)
                    })+)+)+
                    $(FastOpCode::$step => {
                        add!();
                        let result: Result<u64, TrapKind> =
                            value_result!(
                                IntCompare, Opcode::$stepped, Type::I32, get!(op.a), get!(op.y)
                            );
                        branch!(result != Ok(0), pc + length as usize)
                    })+
                    FastOpCode::Step => {
                        add!();
                        branch!(get!(op.a) != 0, op.y as usize)
                    }
                    FastOpCode::Const => set!(op.a, u64::from(op.x) | u64::from(op.y) << 32),
                    FastOpCode::Copy => set!(op.a, get!(op.b)),
                    FastOpCode::Select => {
                        set!(op.a, eval::select(get!(op.b), get!(op.x), get!(op.y)));
                    }
                    FastOpCode::Load1 => load!(get!(op.b), u8),
                    FastOpCode::Load2 => load!(get!(op.b), u16),
                    FastOpCode::Load4 => load!(get!(op.b), u32),
                    FastOpCode::Load8 => load!(get!(op.b), u64),
                    FastOpCode::Load1I32 => load!(get!(op.b), u8, 8, Type::I32),
                    FastOpCode::Load1I64 => load!(get!(op.b), u8, 8, Type::I64),
                    FastOpCode::Load2I32 => load!(get!(op.b), u16, 16, Type::I32),
                    FastOpCode::Load2I64 => load!(get!(op.b), u16, 16, Type::I64),
                    FastOpCode::Load4I64 => load!(get!(op.b), u32, 32, Type::I64),
                    FastOpCode::Store1 => store!(get!(op.a), u8),
                    FastOpCode::Store2 => store!(get!(op.a), u16),
                    FastOpCode::Store4 => store!(get!(op.a), u32),
                    FastOpCode::Store8 => store!(get!(op.a), u64),
                    FastOpCode::Load1At => load!(sum!(op.b, op.y), u8),
                    FastOpCode::Load2At => load!(sum!(op.b, op.y), u16),
                    FastOpCode::Load4At => load!(sum!(op.b, op.y), u32),
                    FastOpCode::Load8At => load!(sum!(op.b, op.y), u64),
                    FastOpCode::Load1I32At => load!(sum!(op.b, op.y), u8, 8, Type::I32),
                    FastOpCode::Load2I32At => load!(sum!(op.b, op.y), u16, 16, Type::I32),
                    FastOpCode::Store1At => store!(sum!(op.a, op.y), u8),
                    FastOpCode::Store2At => store!(sum!(op.a, op.y), u16),
                    FastOpCode::Store4At => store!(sum!(op.a, op.y), u32),
                    FastOpCode::Store8At => store!(sum!(op.a, op.y), u64),
                    FastOpCode::GlobalGet => loaded!(globals.get(op.x as usize)),
                    FastOpCode::GlobalSet => globals.set_raw(op.x as usize, get!(op.a)),
                    FastOpCode::Call => call!(Func::from_u32(op.x), None),
                    FastOpCode::CallHost => call_host!(Func::from_u32(op.x)),
                    FastOpCode::CallIndirect => {
                        let (sig, table) = fast.indirect[op.x as usize];
                        let index = get!(op.a);
                        match calls::indirect_callee(program, &globals.tables, sig, table, index) {
                            Ok(func) if !program.is_imported(func) => call!(func, Some(index)),
                            Ok(func) => {
                                if COUNTED {
                                    counts[version as usize].call(last!(), index, func);
                                }
                                call_host!(func)
                            }
                            Err(kind) => stop!(LoopStop::Trap(kind)),
                        }
                    }
                    FastOpCode::Return => {
                        let from = &fast.pool[op.x as usize..][..op.y as usize];
                        let callee = activations.pop();
                        let Some(caller) = activations.of_run().last().copied() else {
                            let values = from
                                .iter()
                                .map(|slot| activations.stack[base + usize::from(*slot)]);
                            break 'run FastStop::Stop(LoopStop::Returned(values.collect()));
                        };
                        (pc, base) = (caller.pc as usize, caller.base);
                        let code = code_of::<VISITS>(versions, visited, caller.version);
                        fast = code.expect("interp: the frame was prepared");
                        ops = Ops::new(fast, counted, caller.version);
                        version = caller.version;
                        let to = fast.results_of(pc, from.len());
                        for (to, from) in to.iter().zip(from) {
                            let value = activations.stack[callee.base + usize::from(*from)];
                            activations.stack[base + usize::from(*to)] = value;
                        }
                        slots = window(activations, base);
                        pc += 1;
                        continue;
                    }
                    FastOpCode::Jump => jump!(op.x),
                    FastOpCode::Jump1 => {
                        move_one!();
                        jump!(op.x)
                    }
                    FastOpCode::Jump2 => {
                        move_two!();
                        jump!(op.x)
                    }
                    FastOpCode::JumpN => {
                        move_many!();
                        jump!(op.x)
                    }
                    // The branch has paid for the moves on its edges: see the exact loop.
                    FastOpCode::Edge1 => {
                        move_one!();
                        fuel += 1;
                        jump!(op.x)
                    }
                    FastOpCode::Edge2 => {
                        move_two!();
                        fuel += 1;
                        jump!(op.x)
                    }
                    FastOpCode::EdgeN => {
                        move_many!();
                        fuel += 1;
                        jump!(op.x)
                    }
                    FastOpCode::BrIf => branch!(get!(op.a) != 0, op.y as usize),
                    FastOpCode::Switch => {
                        let choice = get!(op.a).min(op.y.into()) as usize;
                        if COUNTED {
                            counts[version as usize].switch(last!(), choice);
                        }
                        jump!(fast.targets[op.x as usize + choice])
                    }
                    FastOpCode::Leave => {
                        let slots = fast.pool[op.x as usize..][..op.y as usize].iter();
                        let values = slots.map(|slot| get!(*slot));
                        let values = values.collect();
                        let exact = &versions[activations.top().version as usize].code;
                        stop!(LoopStop::Left(OsrPoint::from_u32(exact.ops[last!()].a), values))
                    }
                    FastOpCode::Assume => {
                        let bits = u64::from(op.x) | u64::from(op.y) << 32;
                        // The exact loop looks again, and ends the run.
                        if get!(op.b) != bits {
                            leave!(FastStop::Exact)
                        }
                        set!(op.a, bits)
                    }
                    FastOpCode::Rare => leave!(FastStop::Rare),
                    FastOpCode::Poll => {
                        pc = op.x as usize;
                        if VISITS {
                            *is_due = blocks[op.y as usize].visit();
                            if *is_due || is_asked(attention) {
                                break 'run FastStop::Stop(LoopStop::Paused);
                            }
                        }
                        continue;
                    }
                }
            };
        }
        with_value_ops!(dispatch);
        // Counting leaves no register for the length, and a copy on the stack would delay each
        // operation.
        pc += if COUNTED { usize::from(ops.get(pc).length) } else { length as usize };
    };
    machine.fuel = fuel;
    if let Some(frame) = machine.activations.of_run_mut().last_mut() {
        frame.pc = pc as u32;
    }
    exit
}
