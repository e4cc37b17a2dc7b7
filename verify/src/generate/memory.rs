//! Traffic: reads and writes around one address, in a row, over branches, and around loops.
//!
//! The patterns are the targets of passes over memory, and patterns that must not mislead these
//! passes. There are loads after stores to the same, overlapping or neighboring bytes, with equal
//! and other widths. Some stores are overwritten on all, some or none of the later paths, with
//! reads, traps and calls in between. Globals are read and written in between. A second address
//! always equals the first, although no pass can know.

use super::body::GeneratedBody;
use super::feature::Feature;
use ir::{Block, Global, Imm, InstSpec, Memory, Opcode, Shape, Target, Type, Value};

/// An address around which accesses are made. It is unknown to passes, and has room below and
/// above. The twin is another value that always equals it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ground {
    base: Value,
    twin: Value,
    /// The type of the address: `i64` in a host memory.
    ty: Type,
    memory: Memory,
}

impl Ground {
    fn imm(self, offset: u64) -> Imm {
        let own = if self.ty == Type::I64 { Imm::HostAddress } else { Imm::Address };
        own(self.memory, offset)
    }
}

/// A place that is read and written several times.
#[derive(Clone, Copy, Debug)]
enum Spot {
    Bytes { address: Value, imm: Imm, ty: Type },
    Global(Global, Type),
}

/// Constants added to an address, for neighboring and overlapping words on both sides.
const STEPS: [i64; 8] = [0, 0, 4, 8, 2, 1, -4, -2];

impl GeneratedBody<'_> {
    /// An address to make accesses around; mostly an existing one.
    fn ground(&mut self) -> Ground {
        let seen = |body: &Self, g: &Ground| body.scope.sees(g.base) && body.scope.sees(g.twin);
        let known: Vec<Ground> = self.grounds.iter().copied().filter(|g| seen(self, g)).collect();
        if !known.is_empty() && self.prng.chance(75) {
            return self.prng.pick(&known);
        }
        let host = self.host_memory();
        let (memory, low) =
            host.map_or((self.around.memory, 0x40), |(memory, middle)| (memory, middle - 0x40));
        let ty = if host.is_some() { Type::I64 } else { Type::I32 };
        let (raw, mask, room) = (self.pick(ty), self.constant(ty, 0x3c), self.constant(ty, low));
        let masked = self.op(Opcode::And, ty, &[raw, mask]);
        let base = self.op(Opcode::Or, ty, &[masked, room]);
        // Two rotations by 7 and 25 bits (57 in a wider address) give the same value again. No rule
        // of the passes sees that.
        let back = u64::from(ty.bits()) - 7;
        let (there, back) = (self.constant(ty, 7), self.constant(ty, back));
        let turned = self.op(Opcode::Rotl, ty, &[base, there]);
        let twin = self.op(Opcode::Rotl, ty, &[turned, back]);
        let ground = Ground { base, twin, ty, memory };
        self.grounds.push(ground);
        ground
    }

    /// A place near an address, or a global.
    fn spot(&mut self, ground: Ground) -> Spot {
        if self.prng.chance(25) {
            let mutable: Vec<(Global, Type)> = self
                .around
                .globals
                .iter()
                .filter(|(.., mutable)| *mutable)
                .map(|(g, ty, _)| (*g, *ty))
                .collect();
            let (global, ty) = self.prng.pick(&mutable);
            return Spot::Global(global, ty);
        }
        let base = if self.prng.chance(85) { ground.base } else { ground.twin };
        let address = if self.prng.chance(50) {
            base
        } else {
            let bits = self.prng.pick(&STEPS) as u64 & ground.ty.mask();
            let step = self.constant(ground.ty, bits);
            self.op(Opcode::Add, ground.ty, &[base, step])
        };
        let offset = u64::from(self.prng.pick(&[0u32, 0, 0, 4, 8, 2]));
        let ty = if self.prng.chance(60) { Type::I32 } else { self.any_type() };
        Spot::Bytes { address, imm: ground.imm(offset), ty }
    }

    /// A place that every pass can tell from `spot`. A write of it leaves `spot` unchanged. It
    /// stays in both versions where a pass removes a write of `spot` in one.
    fn apart(&mut self, ground: Ground, spot: Spot) -> Spot {
        match spot {
            Spot::Bytes { address, imm: Imm::Address(memory, offset), ty } => {
                Spot::Bytes { address, imm: Imm::Address(memory, offset + 16), ty }
            }
            Spot::Bytes { address, imm: Imm::HostAddress(memory, offset), ty } => {
                Spot::Bytes { address, imm: Imm::HostAddress(memory, offset + 16), ty }
            }
            _ => Spot::Bytes { address: ground.base, imm: ground.imm(0), ty: Type::I32 },
        }
    }

    /// Writes a place or a part of a place.
    fn write(&mut self, spot: Spot) {
        let (Spot::Bytes { ty, .. } | Spot::Global(_, ty)) = spot;
        let value = self.pick(ty);
        let spec = match spot {
            Spot::Global(global, ty) => {
                InstSpec::new(Opcode::GlobalSet, ty, Imm::Global(global), &[value])
            }
            Spot::Bytes { address, imm, ty } => {
                let opcode = self.row(Opcode::Store, ty);
                InstSpec::new(opcode, ty, imm, &[address, value])
            }
        };
        self.insert(spec);
    }

    /// Reads a place or a part of a place.
    fn read(&mut self, spot: Spot) {
        let spec = match spot {
            Spot::Global(global, ty) => {
                InstSpec::new(Opcode::GlobalGet, ty, Imm::Global(global), &[])
            }
            Spot::Bytes { address, imm, ty } => {
                let opcode = self.row(Opcode::Load, ty);
                InstSpec::new(opcode, ty, imm, &[address])
            }
        };
        self.value(spec);
    }

    /// The opcode that accesses all of a type, or sometimes a narrow one of the same kind.
    fn row(&mut self, whole: Opcode, ty: Type) -> Opcode {
        if self.prng.chance(80) {
            return whole;
        }
        let is_alike = |op: &Opcode| match (op.shape(), whole) {
            (Shape::Load(_), Opcode::Load) | (Shape::Store(_), Opcode::Store) => op.allows_type(ty),
            _ => false,
        };
        let rows: Vec<Opcode> = Opcode::ALL.iter().copied().filter(is_alike).collect();
        self.prng.pick(&rows)
    }

    /// Accesses of a few neighboring places in a row.
    pub(super) fn traffic(&mut self) {
        self.plant(Feature::Traffic);
        let ground = self.ground();
        let spots = [self.spot(ground), self.spot(ground), self.spot(ground)];
        for _ in 0..self.prng.between(3, 6) {
            let spot = self.prng.pick(&spots);
            match self.prng.below(10) {
                0..=3 => self.write(spot),
                4..=7 => self.read(spot),
                8 => self.write(spots[0]),
                _ => self.straight(1),
            }
        }
        if self.prng.chance(50) {
            self.write_twice(ground, spots[0]);
        }
    }

    /// A write that a later write overwrites, with writes of another place in between. Both
    /// versions have the writes in between. An entry that lands in between has to replay the first
    /// write.
    fn write_twice(&mut self, ground: Ground, spot: Spot) {
        let apart = self.apart(ground, spot);
        self.write(spot);
        for _ in 0..self.prng.between(1, 3) {
            self.write(apart);
        }
        self.write(spot);
    }

    /// A write that is overwritten after a loop, or on both arms, one arm or no arm of a branch.
    pub(super) fn overwrite(&mut self, depth: u32) {
        self.plant(Feature::Overwrite);
        let ground = self.ground();
        let (spot, other) = (self.spot(ground), self.spot(ground));
        let apart = self.apart(ground, spot);
        if self.prng.chance(50) {
            self.read(spot);
        }
        self.write(spot);
        if self.prng.chance(20) {
            self.read(other);
        }
        for _ in 0..self.prng.below(3) {
            self.write(apart);
        }
        if self.wants(Feature::Loop) && self.prng.chance(30) {
            self.counted_loop(depth);
            self.write(spot);
        } else {
            self.overwriting_arms(spot, other, apart);
        }
        self.read(spot);
    }

    /// A branch whose arms overwrite a place at once, or after an instruction that may read it or
    /// end the run. Both arms compute the same operation.
    fn overwriting_arms(&mut self, spot: Spot, other: Spot, apart: Spot) {
        let condition = self.condition();
        let shared = [self.pick(Type::I32), self.pick(Type::I32)];
        let opcode = self.prng.pick(&[Opcode::Add, Opcode::Xor, Opcode::Ult]);
        let mark = self.scope.mark();
        let arms: [Block; 2] = [self.builder.create_block(), self.builder.create_block()];
        let join = self.builder.create_block();
        self.br_if(condition, Target::new(arms[0], &[]), Target::new(arms[1], &[]));
        let covered = self.prng.pick(&[[true, true], [true, true], [true, false], [false, false]]);
        for (arm, covered) in arms.into_iter().zip(covered) {
            self.enter_arm(arm, mark);
            self.op(opcode, Type::I32, &shared);
            match self.prng.below(10) {
                0 => self.read(other),
                1 => self.write(other),
                2 => self.straight(1),
                3..6 => self.write(apart),
                6 if self.wants(Feature::Hazard) => self.hazard(),
                _ => {}
            }
            if covered {
                self.write(spot);
            }
            self.jump(join, &[]);
        }
        self.enter_arm(join, mark);
    }

    /// In a loop header: reads of places from before the loop.
    pub(super) fn standing_reads(&mut self) {
        let ground = self.ground();
        let spot = self.spot(ground);
        self.read(spot);
        self.plant(Feature::Traffic);
    }
}
