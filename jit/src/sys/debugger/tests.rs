//! Tests of `jit::sys::debugger`.

use super::super::host;
use super::{DebuggerFile, lock};

/// The files of the list, read as a debugger reads it.
fn files() -> Vec<Vec<u8>> {
    let _lock = lock();
    let mut files = Vec::new();
    let descriptor = host::debugger_list();
    // SAFETY: the lock keeps other threads from the list, whose entries and files are valid.
    unsafe {
        let mut entry = (*descriptor).first;
        while let Some(here) = entry.as_ref() {
            let file = std::slice::from_raw_parts(here.file, here.bytes as usize);
            files.push(file.to_vec());
            entry = here.next;
        }
    }
    files
}

#[test]
fn files_are_listed_until_they_are_dropped() {
    // Other tests may register code of their own at the same time.
    let ours = |files: Vec<Vec<u8>>| -> Vec<u8> {
        let ours = files.into_iter().filter(|file| file.starts_with(b"list test "));
        ours.map(|file| file[10]).collect()
    };
    let file = |number: u8| DebuggerFile::new([&b"list test "[..], &[number]].concat());
    let [first, second, third] = [1, 2, 3].map(file);
    assert_eq!(ours(files()), [3, 2, 1]);
    drop(second);
    assert_eq!(ours(files()), [3, 1]);
    drop(third);
    assert_eq!(ours(files()), [1]);
    let fourth = file(4);
    drop(first);
    assert_eq!(ours(files()), [4]);
    drop(fourth);
    assert_eq!(ours(files()), [0; 0]);
}
