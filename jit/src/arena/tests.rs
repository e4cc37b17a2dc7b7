//! Tests of code memory: its size, its reuse, its access rights, and processes that share it.

use super::{CHUNK, CodeArena, CodeSpace, LINE, TRAP};
use crate::sys::maps::{MappedRange, mappings};
use crate::sys::reservation::page_size;
use proptest::collection::vec;
use proptest::prelude::*;
use std::ops::Range;

/// `mov eax, N; ret`.
fn returning(number: u32) -> Vec<u8> {
    let [a, b, c, d] = number.to_le_bytes();
    vec![0xb8, a, b, c, d, 0xc3]
}

/// The bytes at addresses of an arena.
fn bytes(range: Range<usize>) -> Vec<u8> {
    let start = std::ptr::with_exposed_provenance::<u8>(range.start);
    // SAFETY: tests pass ranges in chunks, which are readable. No thread writes them meanwhile.
    unsafe { std::slice::from_raw_parts(start, range.len()) }.to_vec()
}

/// Calls code without parameters that returns a number.
fn call(address: usize) -> u32 {
    let code = std::ptr::with_exposed_provenance::<u8>(address);
    // SAFETY: tests pass the address of live code of this type.
    unsafe { std::mem::transmute::<*const u8, extern "C" fn() -> u32>(code)() }
}

/// Frees a piece that no thread executes.
fn free(space: CodeSpace) {
    // SAFETY: a test calls code in its own threads alone, and these calls have returned.
    unsafe { space.free() }
}

/// The mappings in the windows of an arena.
fn mapped(arena: &CodeArena) -> Vec<MappedRange> {
    let chunks = arena.lock();
    let windows: Vec<Range<usize>> = chunks.windows.values().map(|w| w.addresses()).collect();
    let within = |map: &MappedRange| windows.iter().any(|w| map.start < w.end && w.start < map.end);
    mappings().expect("there is /proc").into_iter().filter(within).collect()
}

/// The executable bytes of an arena.
fn executable(arena: &CodeArena) -> usize {
    mapped(arena).iter().filter(|map| map.executable).map(|map| map.end - map.start).sum()
}

fn both() -> [CodeArena; 2] {
    [CodeArena::new(), CodeArena::with_packing(false)]
}

/// The memory grows with the code, and the mappings do not.
#[test]
fn pieces_are_packed_and_mappings_few() {
    let arena = CodeArena::new();
    let (mut spaces, mut bytes) = (Vec::new(), 0);
    for doubling in 0..6 {
        while spaces.len() < 500 << doubling {
            let code = returning(spaces.len() as u32).repeat(1 + spaces.len() % 40);
            bytes += code.len().next_multiple_of(LINE);
            spaces.push(arena.place(&code).expect("there is memory"));
        }
        let executable = executable(&arena);
        assert!(executable < bytes + CHUNK, "{executable} bytes for {bytes}");
        // The executable beginning, the rest of the window, and perhaps a neighbour of the window.
        let maps = mapped(&arena);
        assert!(maps.len() <= 3, "{maps:?}");
    }
    for (number, space) in spaces.iter().enumerate() {
        assert_eq!(space.range().start % LINE, 0);
        assert_eq!(call(space.range().start), number as u32);
    }
    spaces.into_iter().for_each(free);
    assert_eq!(executable(&arena), 0, "no chunk is left");
}

/// Freed memory traps, and the next piece that fits gets it.
#[test]
fn freed_memory_traps_and_is_used_again() {
    for arena in both() {
        let placed = |code: &[u8]| arena.place(code).expect("there is memory");
        let [first, second, third] = [1, 2, 3].map(|number| placed(&returning(number)));
        let range = second.range();
        free(second);
        assert!(bytes(range.clone()).iter().all(|byte| *byte == TRAP));
        let fourth = placed(&returning(4));
        assert_eq!(fourth.range(), range);
        let called = [&first, &third, &fourth].map(|space| call(space.range().start));
        assert_eq!(called, [1, 3, 4]);
    }
}

/// A piece may be longer than a chunk, and ends as others do.
#[test]
fn a_piece_longer_than_a_chunk_has_one_of_its_own() {
    for arena in both() {
        let small = arena.place(&returning(1)).expect("there is memory");
        let mut code = vec![0x90; 3 * CHUNK + 5];
        code.extend(returning(2));
        let large = arena.place(&code).expect("there is memory");
        assert_eq!(bytes(large.range()), code);
        assert_eq!([call(small.range().start), call(large.range().start)], [1, 2]);
        let before = executable(&arena);
        free(large);
        assert_eq!(before - executable(&arena), 4 * CHUNK);
        assert_eq!(call(small.range().start), 1);
    }
}

/// A relative call reaches the code of another chunk.
#[test]
fn a_near_call_reaches_another_chunk() {
    let arena = CodeArena::new();
    let callee = arena.place(&returning(7)).expect("there is memory");
    let filler: Vec<_> =
        (0..4).map(|_| arena.place(&vec![TRAP; CHUNK]).expect("there is memory")).collect();
    // `call rel32` ends 5 bytes behind its beginning. Every piece is in reach of every other. The
    // distance must be known before the code is placed: a spare piece of the same length gives the
    // place.
    let spare = arena.place(&[TRAP; 6]).expect("there is memory");
    let start = spare.range().start;
    free(spare);
    let distance = callee.range().start as i64 - (start as i64 + 5);
    let mut code = vec![0xe8];
    code.extend(i32::try_from(distance).expect("a near call").to_le_bytes());
    code.push(0xc3);
    let caller = arena.place(&code).expect("there is memory");
    assert_eq!(caller.range().start, start);
    assert!(filler.iter().all(|space| space.range().len() == CHUNK));
    assert_eq!(call(start), 7);
}

/// Threads execute code of a page while others write to it, and no page is ever writable and
/// executable.
#[test]
fn code_runs_while_its_page_is_written() {
    let arena = CodeArena::new();
    let runs = arena.place(&returning(5)).expect("there is memory");
    let address = runs.range().start;
    std::thread::scope(|scope| {
        let running = scope.spawn(move || (0..200_000).all(|_| call(address) == 5));
        for number in 0..2000 {
            let space = arena.place(&returning(number)).expect("there is memory");
            assert_eq!(space.range().start / page_size(), address / page_size());
            assert_eq!(call(space.range().start), number);
            free(space);
            if number % 100 == 0 {
                assert!(mapped(&arena).iter().all(|map| !map.writable), "{number}");
            }
        }
        assert!(running.join().expect("the thread ends"), "another number");
    });
}

/// A forked process keeps its code, whatever its parent frees and writes afterwards.
#[test]
fn a_forked_process_has_its_own_code() {
    for arena in both() {
        let space = arena.place(&returning(41)).expect("there is memory");
        let address = space.range().start;
        // Another piece, so that the chunk stays.
        let _other = arena.place(&returning(1)).expect("there is memory");
        let mut pipe = [0; 2];
        // SAFETY: `pipe` has room for the two descriptors.
        let made = unsafe { libc::pipe(pipe.as_mut_ptr()) };
        assert_eq!(made, 0);
        // SAFETY: the child makes system calls and calls the code, which allocate nothing.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: the child waits until the parent has written; then it ends.
            unsafe {
                libc::read(pipe[0], (&raw mut pipe[1]).cast(), 1);
                libc::_exit(call(address) as i32);
            }
        }
        free(space);
        let again = arena.place(&returning(42)).expect("there is memory");
        assert_eq!(again.range().start, address);
        let mut status = 0;
        // SAFETY: the descriptors are open, and `status` is a live number.
        let ended = unsafe {
            let written = libc::write(pipe[1], [0u8].as_ptr().cast(), 1);
            let waited = libc::waitpid(child, &mut status, 0);
            libc::close(pipe[0]);
            libc::close(pipe[1]);
            (written, waited)
        };
        assert_eq!(ended, (1, child));
        assert!(libc::WIFEXITED(status), "{status}");
        assert_eq!(libc::WEXITSTATUS(status), 41);
        assert_eq!(call(address), 42);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// After any series of steps, the pieces are disjoint and have their bytes.
    #[test]
    fn pieces_keep_their_bytes(
        packs in any::<bool>(),
        steps in vec((any::<u8>(), 0..3 * 4096usize, any::<bool>()), 0..80),
    ) {
        let arena = CodeArena::with_packing(packs);
        let mut live: Vec<(CodeSpace, Vec<u8>)> = Vec::new();
        for (byte, length, places) in steps {
            if places || live.is_empty() {
                let code = vec![byte; length];
                live.push((arena.place(&code).expect("there is memory"), code));
            } else {
                free(live.swap_remove(usize::from(byte) % live.len()).0);
            }
            for (space, code) in &live {
                prop_assert_eq!(&bytes(space.range()), code);
            }
        }
        live.sort_by_key(|(space, _)| space.range().start);
        for pair in live.windows(2) {
            let [(first, _), (second, _)] = pair else { unreachable!("two") };
            prop_assert!(first.range().start + first.taken <= second.range().start);
        }
        live.into_iter().for_each(|(space, _)| free(space));
        prop_assert_eq!(executable(&arena), 0);
    }
}
