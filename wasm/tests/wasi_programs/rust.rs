//! Code for which rustc uses parts of WebAssembly that came after its first version, with its
//! default set of features. Without the standard library, which is 100 KB.
#![no_std]

use core::hint::black_box;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

#[inline(never)]
fn conversions(x: f64) -> (i32, u64, i8, u16) {
    (x as i32, x as u64, x as i8, (x * 3.0) as u16)
}

#[inline(never)]
fn wide(a: i64, b: i64) -> i128 {
    (i128::from(a) << 9) - i128::from(b)
}

static TABLE: [fn(i64) -> i64; 3] =
    [i64::abs, |x| x >> 3, |x| i64::from(x as i8) - i64::from(x as i16)];

/// Moves ranges of memory.
#[inline(never)]
fn sum(length: usize) -> u64 {
    let mut bytes = [1u8; 3000];
    bytes[..length].fill(7);
    bytes.copy_within(length / 4..length + 500, 900);
    let copy = black_box(bytes);
    copy.iter().zip(0u64..).map(|(byte, at)| u64::from(*byte) * at).sum()
}

/// The result of a conversion, an operation on integers, or a call.
#[no_mangle]
pub extern "C" fn result(number: u32, x: f64) -> u64 {
    let (a, b, c, d) = conversions(x);
    let w = wide(black_box(i64::MAX), b as i64);
    match number {
        0 => a as u32 as u64,
        1 => b,
        2 => c as u8 as u64,
        3 => d.into(),
        4 => w as u64,
        5 => (w >> 64) as u64,
        6 => sum(d.into()),
        7..10 => TABLE[number as usize - 7](b as i64) as u64,
        _ => 0,
    }
}
