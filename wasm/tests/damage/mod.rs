//! A generator of damaged modules. Equal seeds give equal bytes.
//!
//! Bytes changed anywhere mostly break the frame of a module, and the first check rejects it. Most
//! changes here are therefore inside a section or a function body, and the sizes around it are
//! corrected, so that the damage reaches the code behind the frame.

use std::ops::Range;

/// A generator of random numbers (xorshift).
pub(crate) struct Random(u64);

impl Random {
    /// The generator of a seed.
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }
}

/// Numbers at the edges of the ranges that importers know, in the binary form.
const EXTREMES: [&[u8]; 12] = [
    &[0],
    &[1],
    &[0x7f],
    &[0xff, 0x00],
    &[0x80, 0x80, 0x04],             // 65,536
    &[0xd0, 0x86, 0x03],             // 50,000
    &[0xc0, 0x84, 0x3d],             // 1,000,000
    &[0x80, 0xad, 0xe2, 0x04],       // 10,000,000
    &[0xff, 0xff, 0xff, 0xff, 0x07], // 2^31 - 1
    &[0x80, 0x80, 0x80, 0x80, 0x08], // 2^31
    &[0xff, 0xff, 0xff, 0xff, 0x0f], // 2^32 - 1
    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
];

/// Operators, control and prefixes among them.
const OPERATORS: [u8; 24] = [
    0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x1a, 0x1b, 0x20,
    0x21, 0x22, 0x28, 0x36, 0x40, 0x41, 0x6a, 0xfc,
];

fn leb(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// The number at a position, and the position behind it.
fn number(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let (mut value, mut at) = (0, at);
    for shift in (0..35).step_by(7) {
        let byte = *bytes.get(at)?;
        value |= usize::from(byte & 0x7f) << shift;
        at += 1;
        if byte < 0x80 {
            return Some((value, at));
        }
    }
    None
}

/// A part of a module behind its own size: the contents of a section, or a function body.
struct Part {
    /// The position of the size.
    size: usize,
    range: Range<usize>,
}

impl Part {
    /// The part whose size is at a position.
    fn at(bytes: &[u8], size: usize) -> Option<Part> {
        let (length, start) = number(bytes, size)?;
        (start + length <= bytes.len()).then_some(Part { size, range: start..start + length })
    }

    /// The bytes with other contents of the part, and with the size of these contents.
    fn replaced(&self, bytes: &[u8], with: &[u8]) -> Vec<u8> {
        [&bytes[..self.size], &leb(with.len()), with, &bytes[self.range.end..]].concat()
    }
}

/// The sections of a module: the number of each, and its contents.
fn sections(bytes: &[u8]) -> Vec<(u8, Part)> {
    let (mut found, mut at) = (Vec::new(), 8);
    while let Some(part) = Part::at(bytes, at + 1) {
        let end = part.range.end;
        found.push((bytes[at], part));
        at = end;
    }
    found
}

/// The function bodies in the contents of a code section.
fn bodies(code: &[u8]) -> Vec<Part> {
    let Some((count, mut at)) = number(code, 0) else { return Vec::new() };
    let mut found = Vec::new();
    while let Some(part) = Part::at(code, at).filter(|_| found.len() < count) {
        at = part.range.end;
        found.push(part);
    }
    found
}

/// Changes bytes at a few places. `other` gives bytes for splices.
fn changed(bytes: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len() + 1);
        let end = (at + 1 + random.below(8)).min(bytes.len());
        match random.below(8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => bytes[at] = random.below(256) as u8,
            2 | 3 if at < bytes.len() => bytes[at] = OPERATORS[random.below(OPERATORS.len())],
            4 => drop(bytes.splice(at..at, EXTREMES[random.below(EXTREMES.len())].to_vec())),
            // In place of a number.
            5 if at < bytes.len() => {
                let end = number(&bytes, at).map_or(at + 1, |(_, end)| end);
                bytes.splice(at..end, EXTREMES[random.below(EXTREMES.len())].to_vec());
            }
            6 => drop(bytes.drain(at..end.max(at))),
            _ if !other.is_empty() => {
                let from = random.below(other.len());
                let to = (from + 1 + random.below(40)).min(other.len());
                bytes.splice(at..end.max(at), other[from..to].to_vec());
            }
            _ => {}
        }
    }
    bytes
}

/// A damaged copy of a module. Most damage is in a function body, some in another section, some
/// anywhere, and some modules end early.
pub(crate) fn damaged(module: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let sections = sections(module);
    if sections.is_empty() {
        return changed(module, other, random);
    }
    let code = sections.iter().find(|(id, _)| *id == 10);
    match (random.below(16), code) {
        (0, _) => module[..random.below(module.len())].to_vec(),
        (1, _) => changed(module, other, random),
        (2..=7, _) | (_, None) => {
            let (_, section) = &sections[random.below(sections.len())];
            section.replaced(module, &changed(&module[section.range.clone()], other, random))
        }
        (_, Some((_, section))) => {
            let contents = &module[section.range.clone()];
            let bodies = bodies(contents);
            if bodies.is_empty() {
                return changed(module, other, random);
            }
            let body = &bodies[random.below(bodies.len())];
            let with = changed(&contents[body.range.clone()], other, random);
            section.replaced(module, &body.replaced(contents, &with))
        }
    }
}
