//! Values: words of 64 bits, in which everything that is no double is a NaN with a tag.
//!
//! ```text
//! 0x0000_0000_0000_0000 ..= 0xfff8_0000_0000_0000   a double, as it is
//! 0xfff9_0000_iiii_iiii                             an int32
//! 0xfffa .. 0xfffd, 0000, 32 bits of address        object, array, string, closure
//! 0xfffe_0000_0000_000n                             nil, false, true
//! 0xffff_0000, 32 bits of address                   the cell of a captured variable
//! ```
//!
//! An int32 and a double are one type of the language, `number`. No operation tells them apart: `1`
//! is equal to `1.0`, prints alike, and divides alike. So the compiler may keep a number in either
//! way. The only double that an int32 cannot stand for is `-0`.
//!
//! All that turns words into bits and back is in this file, so a moving collector would need to
//! change this place alone.

/// A value of the language.
pub type Word = u64;

/// The tags, which are the upper 16 bits.
pub mod tag {
    /// An int32.
    pub const INT: u64 = 0xfff9;
    /// An object with a shape.
    pub const OBJECT: u64 = 0xfffa;
    /// An array.
    pub const ARRAY: u64 = 0xfffb;
    /// A string.
    pub const STRING: u64 = 0xfffc;
    /// A closure.
    pub const CLOSURE: u64 = 0xfffd;
    /// `nil`, `false`, `true`.
    pub const SPECIAL: u64 = 0xfffe;
    /// A cell. No value of the language.
    pub const CELL: u64 = 0xffff;
}

/// Nothing.
pub const NIL: Word = tag::SPECIAL << 48;
/// False.
pub const FALSE: Word = NIL + 1;
/// True.
pub const TRUE: Word = NIL + 2;
/// The first word that is no double.
pub const FIRST_TAGGED: Word = tag::INT << 48;

/// The tag of a word. Words of doubles have tags below [`tag::INT`].
#[inline(always)]
pub fn tag_of(word: Word) -> u64 {
    word >> 48
}

/// The word of a reference.
#[inline(always)]
pub fn reference(tag: u64, address: u32) -> Word {
    tag << 48 | u64::from(address)
}

/// The address of a reference.
#[inline(always)]
pub fn address(word: Word) -> u32 {
    word as u32
}

/// The word of an int32.
#[inline(always)]
pub fn int(value: i32) -> Word {
    FIRST_TAGGED | u64::from(value as u32)
}

/// Whether a word is an int32.
#[inline(always)]
pub fn is_int(word: Word) -> bool {
    word >> 48 == tag::INT
}

/// Whether a word is a double.
#[inline(always)]
pub fn is_double(word: Word) -> bool {
    word < FIRST_TAGGED
}

/// The word of a double. A NaN of the processor has one of two patterns, which are both below the
/// tags.
#[inline(always)]
pub fn double(value: f64) -> Word {
    value.to_bits()
}

/// The word of a number: an int32 where it can be.
pub fn number(value: f64) -> Word {
    let whole = value as i32;
    match f64::from(whole).to_bits() == value.to_bits() {
        true => int(whole),
        false => double(value),
    }
}

/// The number in a word, if it is one.
#[inline(always)]
pub fn as_number(word: Word) -> Option<f64> {
    if is_double(word) {
        Some(f64::from_bits(word))
    } else if is_int(word) {
        Some(f64::from(word as i32))
    } else {
        None
    }
}

/// The word of a truth value.
#[inline(always)]
pub fn boolean(value: bool) -> Word {
    FALSE + u64::from(value)
}

/// Whether a condition holds: for all values but `nil` and `false`.
#[inline(always)]
pub fn is_true(word: Word) -> bool {
    word != NIL && word != FALSE
}

/// The name of the type of a value.
pub fn type_name(word: Word) -> &'static str {
    match tag_of(word) {
        tag::OBJECT => "object",
        tag::ARRAY => "array",
        tag::STRING => "string",
        tag::CLOSURE => "function",
        tag::SPECIAL if word == NIL => "nil",
        tag::SPECIAL => "boolean",
        _ => "number",
    }
}
