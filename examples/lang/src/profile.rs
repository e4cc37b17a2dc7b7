//! The profile: the kinds of values that the interpreter has seen, by instruction.

use crate::bytecode::Program;
use crate::heap::Place;
use crate::value::{Word, tag, tag_of};

/// Kinds of values, a bit each: a double, then the tags in order.
pub mod kind {
    /// A double.
    pub const DOUBLE: u16 = 1;
    /// An int32.
    pub const INT: u16 = 2;
    /// Both kinds of numbers.
    pub const NUMBER: u16 = 3;
    /// A string.
    pub const STRING: u16 = 16;
    /// Of arithmetic: the result of an operation on two int32 was no int32.
    pub const OVERFLOW: u16 = 256;
    /// Of a store to an element: it appended the element.
    pub const APPENDED: u16 = 512;
}

/// The kind of a value.
#[inline(always)]
pub fn kind_of(word: Word) -> u16 {
    1 << (tag_of(word).max(tag::INT - 1) - (tag::INT - 1))
}

/// The most shapes of an access site, and functions of a call, that code tests for.
pub const MOST_CASES: usize = 4;

/// Things seen at a place: at most [`MOST_CASES`], or many.
#[derive(Clone, Debug)]
pub struct Cases<T> {
    /// The things.
    pub seen: Vec<T>,
    /// Whether there were more.
    pub is_many: bool,
}

impl<T> Default for Cases<T> {
    fn default() -> Cases<T> {
        Cases { seen: Vec::new(), is_many: false }
    }
}

impl<T: PartialEq> Cases<T> {
    /// Notes a thing.
    pub fn note(&mut self, thing: T) {
        if self.seen.contains(&thing) {
        } else if self.seen.len() < MOST_CASES {
            self.seen.push(thing);
        } else {
            self.is_many = true;
        }
    }
}

/// The observations in a function.
#[derive(Clone, Debug)]
pub struct ProtoProfile {
    /// By parameter: the kinds of arguments.
    pub params: Vec<u16>,
    /// By instruction: the kinds of both operands.
    pub operands: Vec<[u16; 2]>,
    /// By instruction: the functions called.
    pub calls: Vec<Cases<u32>>,
    /// By access site: shapes, and where they have the field.
    pub sites: Vec<Cases<(u32, Place)>>,
    /// Calls by the interpreter.
    pub called: u32,
    /// Turns of loops until the interpreter requests native code.
    pub left: u32,
    /// The turns between two such questions.
    pub every: u32,
}

impl ProtoProfile {
    /// Notes the kind of an argument, where a call begins or the guard of an argument has failed.
    pub(crate) fn saw_argument(&mut self, index: usize, word: Word) {
        self.params.get_mut(index).into_iter().for_each(|seen| *seen |= kind_of(word));
    }
}

/// An empty profile for each function of a program.
pub fn empty(program: &Program) -> Vec<ProtoProfile> {
    let of = |proto: &crate::bytecode::Proto| ProtoProfile {
        params: vec![0; usize::from(proto.params)],
        operands: vec![[0; 2]; proto.code.len()],
        calls: vec![Cases::default(); proto.code.len()],
        sites: vec![Cases::default(); proto.sites.len()],
        called: 0,
        left: 1,
        every: 1,
    };
    program.protos.iter().map(of).collect()
}
