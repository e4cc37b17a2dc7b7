//! The instructions that the loop of the interpreter leaves out of line.

use super::*;

impl Activation<'_> {
    /// The other instructions.
    pub(super) fn rare<const P: bool>(&mut self, op: Op) -> Result<(), Thrown> {
        match op {
            Op::Arith(arith, d, a, b) => {
                let (a, b) = (self.r[a as usize], self.r[b as usize]);
                self.saw::<P>(a, b);
                if P && is_int(a) && is_int(b) && b as i32 <= 0 {
                    self.saw_event::<P>(kind::OVERFLOW);
                }
                let small = match is_int(a) && is_int(b) {
                    true => arith.of_ints(a as i32, b as i32),
                    false => None,
                };
                self.r[d as usize] = match small {
                    Some(result) => int(result),
                    None => self.heap.arith(arith, a, b)?,
                };
            }
            Op::Negate(d, a) => {
                let word = self.r[a as usize];
                self.saw::<P>(word, NIL);
                if P && word as i32 & i32::MAX == 0 {
                    self.saw_event::<P>(kind::OVERFLOW);
                }
                let number = as_number(word).ok_or_else(|| self.heap.unfit("-", word, None))?;
                self.r[d as usize] = value::number(-number);
            }
            Op::Not(d, a) => self.r[d as usize] = boolean(!is_true(self.r[a as usize])),
            Op::Compare(kind, d, a, b) => {
                let (a, b) = (self.r[a as usize], self.r[b as usize]);
                self.saw::<P>(a, b);
                let holds = self.heap.compare(kind, a, b)?;
                self.r[d as usize] = boolean(holds);
            }
            Op::GetGlobal(d, global) => self.r[d as usize] = self.heap.word(GLOBALS + global * 8),
            Op::SetGlobal(a, global) => {
                self.heap.set_word(GLOBALS + global * 8, self.r[a as usize])
            }
            Op::NewCell(d, a) => {
                self.r[d as usize] = self.heap.cell(self.r[a as usize])?;
            }
            Op::GetCell(d, a) => self.r[d as usize] = self.heap.word(address(self.r[a as usize])),
            Op::SetCell(cell, a) => {
                self.heap.set_word(address(self.r[cell as usize]), self.r[a as usize]);
            }
            Op::GetUp(d, up) => {
                let cell = address(self.heap.word(self.closure + at::CELLS + up * 8));
                self.r[d as usize] = self.heap.word(cell);
            }
            Op::SetUp(a, up) => {
                let cell = address(self.heap.word(self.closure + at::CELLS + up * 8));
                self.heap.set_word(cell, self.r[a as usize]);
            }
            Op::Closure(d, number) => self.r[d as usize] = self.make_closure(number)?,
            Op::NewObject(d, shape) => {
                let inside = self.runtime.shapes().inside(shape);
                self.r[d as usize] = self.heap.object(shape, inside)?;
            }
            Op::InitSlot(object, a, slot) => {
                let at = address(self.r[object as usize]) + at::SLOTS + slot * 8;
                self.heap.set_word(at, self.r[a as usize]);
            }
            Op::NewArray(d, from, count) => {
                let elements = &self.r[from as usize..from as usize + count as usize];
                self.r[d as usize] = self.heap.array(elements)?;
            }
            Op::SetField(object, a, site) => {
                self.saw::<P>(self.r[object as usize], NIL);
                self.write_field(self.r[object as usize], site, self.r[a as usize])?;
            }
            Op::Builtin(which, d, from, count) => {
                self.saw::<P>(self.r[from as usize], self.r[from as usize + 1]);
                let args = &self.r[from as usize..from as usize + usize::from(count)];
                self.r[d as usize] = self.runtime.builtin(&mut self.heap, which, args)?;
            }
            frequent => unreachable!("the loop handles {frequent:?}"),
        }
        Ok(())
    }

    pub(super) fn make_closure(&mut self, number: u32) -> Result<Word, Thrown> {
        let cell = |capture: &Capture| match capture {
            Capture::Local(register) => self.r[*register as usize],
            Capture::Up(up) => self.heap.word(self.closure + at::CELLS + up * 8),
        };
        let captures = &self.program.protos[number as usize].captures;
        let cells: Vec<Word> = captures.iter().map(cell).collect();
        self.heap.closure(number, &cells)
    }

    #[cold]
    pub(super) fn read_field(&mut self, of: Word, site: u32) -> Result<Word, Thrown> {
        let name = self.proto.sites[site as usize];
        let value = self.runtime.field(&mut self.heap, of, name)?;
        self.note(of, site, name);
        Ok(value)
    }

    /// Remembers the shape of an object at an access site, and where it has the field.
    pub(super) fn note(&mut self, of: Word, site: u32, name: u32) {
        let shape = self.heap.u32(address(of));
        if let Some(place) = self.runtime.shapes().place(shape, name) {
            self.caches[site as usize] = (shape, place);
            self.profile.sites[site as usize].note((shape, place));
        } else {
            self.profile.sites[site as usize].is_many = true;
        }
    }

    pub(super) fn write_field(&mut self, of: Word, site: u32, value: Word) -> Result<(), Thrown> {
        let (shape, place) = self.caches[site as usize];
        if tag_of(of) == tag::OBJECT && self.heap.u32(address(of)) == shape {
            let slot = self.heap.slot(address(of), place);
            self.heap.set_word(slot, value);
            return Ok(());
        }
        let name = self.proto.sites[site as usize];
        if tag_of(of) == tag::OBJECT {
            // A field that is added changes the shape: no case for native code.
            self.note(of, site, name);
        }
        self.runtime.set_field(&mut self.heap, of, name, value)?;
        self.note(of, site, name);
        Ok(())
    }
}
