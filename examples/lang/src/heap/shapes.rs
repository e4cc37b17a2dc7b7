//! Shapes: which fields an object has, and where.

use super::at;
use std::collections::HashMap;

/// Where a field is in an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// At this offset from its start.
    Inside(u32),
    /// At this offset from its further slots.
    More(u32),
}

/// A shape: which fields an object has, in which slots. Also called a hidden class or map.
#[derive(Clone, Debug)]
struct Shape {
    /// The slots in the object itself. Shapes that add further fields have the same number.
    inside: u32,
    fields: HashMap<u32, u32>,
    /// By name of one more field: the shape.
    next: HashMap<u32, u32>,
}

/// The shapes of a program. Shape 0 has no field and the slots of `{}`.
#[derive(Debug, Default)]
pub struct Shapes {
    list: Vec<Shape>,
    names: Vec<String>,
    numbers: HashMap<String, u32>,
    /// By the number of slots inside: the shape without fields.
    empty: HashMap<u32, u32>,
}

/// The least slots in an object.
const LEAST_INSIDE: u32 = 4;

impl Shapes {
    /// The number of a name of fields.
    pub fn name(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    /// The name of this number.
    pub fn name_of(&self, number: u32) -> &str {
        &self.names[number as usize]
    }

    /// The shape of an object that is written with these fields.
    pub fn literal(&mut self, names: &[u32]) -> u32 {
        let inside = (names.len() as u32).max(LEAST_INSIDE);
        let known = self.empty.get(&inside).copied();
        let empty = known.unwrap_or_else(|| {
            let (fields, next) = (HashMap::new(), HashMap::new());
            self.list.push(Shape { inside, fields, next });
            self.empty.insert(inside, self.list.len() as u32 - 1);
            self.list.len() as u32 - 1
        });
        names.iter().fold(empty, |shape, name| self.with(shape, *name))
    }

    /// The shape with one more field.
    pub(crate) fn with(&mut self, shape: u32, name: u32) -> u32 {
        let of = &self.list[shape as usize];
        if let Some(next) = of.next.get(&name) {
            return *next;
        }
        let mut made = Shape { next: HashMap::new(), ..of.clone() };
        made.fields.insert(name, made.fields.len() as u32);
        self.list.push(made);
        let number = self.list.len() as u32 - 1;
        self.list[shape as usize].next.insert(name, number);
        number
    }

    /// The slots inside objects of a shape.
    pub fn inside(&self, shape: u32) -> u32 {
        self.list[shape as usize].inside
    }

    /// The slots that objects of a shape use inside and outside of the object.
    pub fn slots(&self, shape: u32) -> (u32, u32) {
        let of = &self.list[shape as usize];
        (of.inside, (of.fields.len() as u32).saturating_sub(of.inside))
    }

    /// Where objects of a shape have a field.
    pub fn place(&self, shape: u32, name: u32) -> Option<Place> {
        let of = &self.list[shape as usize];
        let slot = *of.fields.get(&name)?;
        Some(match slot.checked_sub(of.inside) {
            None => Place::Inside(at::SLOTS + slot * 8),
            Some(more) => Place::More(more * 8),
        })
    }
}
