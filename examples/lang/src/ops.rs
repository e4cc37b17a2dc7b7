//! Operations on any values, for the interpreter and for native code.

use crate::bytecode::{Arith, Compare};
use crate::heap::{Heap, Thrown, at};
use crate::value::{self, Word, address, as_number, double, int, is_int, tag, tag_of};

impl Heap<'_> {
    #[cold]
    pub(crate) fn unfit(&mut self, what: &str, a: Word, b: Option<Word>) -> Thrown {
        let and = b.map_or(String::new(), |b| format!(" and {}", value::type_name(b)));
        self.raise(&format!("{what} does not take {}{and}", value::type_name(a)))
    }

    /// An operation on any two values. A number that an int32 can stand for becomes one.
    ///
    /// # Errors
    /// If the values are of other types than the operation takes.
    #[cold]
    pub fn arith(&mut self, arith: Arith, a: Word, b: Word) -> Result<Word, Thrown> {
        let (Some(x), Some(y)) = (as_number(a), as_number(b)) else {
            return match tag_of(a) == tag::STRING && tag_of(b) == tag::STRING {
                true if arith == Arith::Add => self.concat(a, b),
                _ => Err(self.unfit(&format!("{arith:?}"), a, Some(b))),
            };
        };
        Ok(match arith {
            Arith::Add => double(x + y),
            Arith::Sub => double(x - y),
            Arith::Mul => double(x * y),
            Arith::Div => double(x / y),
            Arith::FloorDiv => value::number((x / y).floor()),
            Arith::Mod => value::number(x - (x / y).floor() * y),
            _ => {
                let (Some(x), Some(y)) = (low_bits(x), low_bits(y)) else {
                    return Err(self.raise("an operation on bits needs whole numbers"));
                };
                int(arith.of_ints(x, y).expect("it is one on bits"))
            }
        })
    }

    /// A comparison of any two values.
    ///
    /// # Errors
    /// If the values are of other types than the comparison takes.
    pub fn compare(&mut self, kind: Compare, a: Word, b: Word) -> Result<bool, Thrown> {
        if kind == Compare::Eq {
            return Ok(self.equal(a, b));
        }
        match (as_number(a), as_number(b)) {
            (Some(a), Some(b)) if kind == Compare::Lt => Ok(a < b),
            (Some(a), Some(b)) => Ok(a <= b),
            _ => Err(self.unfit("a comparison", a, Some(b))),
        }
    }

    /// The address of an element.
    ///
    /// # Errors
    /// If the array lacks the element.
    #[inline]
    pub fn element(&mut self, array: Word, index: Word) -> Result<u32, Thrown> {
        let at = if is_int(index) { Some(index as i32 as u32) } else { whole(index) };
        if tag_of(array) == tag::ARRAY
            && let Some(at) = at
            && at < self.u32(address(array))
        {
            return Ok(self.u32(address(array) + at::ELEMENTS) + at * 8);
        }
        Err(self.no_element(array, index))
    }

    #[cold]
    fn no_element(&mut self, array: Word, index: Word) -> Thrown {
        if tag_of(array) != tag::ARRAY {
            return self.unfit("an index", array, None);
        }
        let (index, length) = (self.show(index), self.u32(address(array)));
        self.raise(&format!("index {index} of an array of {length}"))
    }

    /// Sets an element. An index just behind the last element appends. Returns whether it does.
    ///
    /// # Errors
    /// If there is neither, or `out of memory`.
    pub fn set_index(&mut self, array: Word, index: Word, value: Word) -> Result<bool, Thrown> {
        let at = if is_int(index) { Some(index as i32 as u32) } else { whole(index) };
        if tag_of(array) == tag::ARRAY && at == Some(self.u32(address(array))) {
            return self.push(address(array), value).map(|()| true);
        }
        let element = self.element(array, index)?;
        self.set_word(element, value);
        Ok(false)
    }
}

/// The product of two int32, unless it overflows or is `-0`, which is no int32.
pub(crate) trait Product: Sized {
    fn product(self, other: Self) -> Option<Self>;
}

impl Product for i32 {
    #[inline(always)]
    fn product(self, other: i32) -> Option<i32> {
        let product = self.checked_mul(other)?;
        (product != 0 || (self | other) >= 0).then_some(product)
    }
}

impl Arith {
    /// The result of the rarer operations on two int32, if it is one for sure.
    pub(crate) fn of_ints(self, a: i32, b: i32) -> Option<i32> {
        match self {
            Arith::FloorDiv if b > 0 => Some(a.div_euclid(b)),
            Arith::Mod if b > 0 => Some(a.rem_euclid(b)),
            Arith::And => Some(a & b),
            Arith::Or => Some(a | b),
            Arith::Xor => Some(a ^ b),
            Arith::Shl => Some(a.wrapping_shl(b as u32)),
            Arith::Shr => Some(a.wrapping_shr(b as u32)),
            _ => None,
        }
    }
}

/// The low 32 bits of a whole number.
fn low_bits(number: f64) -> Option<i32> {
    (number == number.trunc() && number.abs() < 9e15).then_some(number as i64 as i32)
}

/// The index that a double stands for, if it is one.
fn whole(index: Word) -> Option<u32> {
    let number = as_number(index)?;
    (number == number.trunc() && (0.0..4e9).contains(&number)).then_some(number as u32)
}
