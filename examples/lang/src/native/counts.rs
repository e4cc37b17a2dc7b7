//! Counts of the events of native code.

/// The events of rows of landing tables.
#[derive(Clone, Copy, Default, Debug)]
pub struct RowEvents {
    /// Rows made that assume.
    pub made: u32,
    /// Rows made that assume nothing, at loops without an entry.
    pub plain: u32,
    /// Runs that have entered a loop in the middle, whose table has a row that assumes.
    pub entered: u32,
    /// Failures of assumptions in rows. A failure at an exit that leads to a row is not counted.
    pub left: u32,
    /// Exits that lead to a row.
    pub linked: u32,
}

/// The events of native code.
#[derive(Clone, Default, Debug)]
pub struct Counts {
    /// The bytes that the program has allocated, in the interpreter too.
    pub bytes: u64,
    /// Functions compiled.
    pub compiled: u32,
    /// Functions that no code could be made for, each with the reason.
    pub refused: Vec<String>,
    /// Functions whose optimized code lacks an exit, with the reason. They run without passes.
    pub plain: Vec<String>,
    /// Times that native code has left.
    pub exits: u32,
    /// Calls left out that make objects.
    pub objects: u32,
    /// Functions with calls that could be left out, and were not, each with the reason.
    pub kept: Vec<String>,
    /// Objects that such calls would have made, and exits made.
    pub objects_made: u64,
    /// Calls of small functions inlined, one for each function that a call may lead to.
    pub inlined: u32,
    /// Loops entered in the middle.
    pub entered: u32,
    /// Rows of landing tables.
    pub rows: RowEvents,
    /// The time that compiling took, in microseconds, without rows.
    pub micros: u64,
}

impl Counts {
    /// Adds the events of another run.
    pub fn add(&mut self, other: Counts) {
        self.bytes += other.bytes;
        self.compiled += other.compiled;
        self.refused.extend(other.refused);
        self.plain.extend(other.plain);
        self.exits += other.exits;
        self.inlined += other.inlined;
        self.objects += other.objects;
        self.kept.extend(other.kept);
        self.objects_made += other.objects_made;
        self.entered += other.entered;
        self.micros += other.micros;
        let RowEvents { made, plain, entered, left, linked } = other.rows;
        self.rows.made += made;
        self.rows.plain += plain;
        self.rows.entered += entered;
        self.rows.left += left;
        self.rows.linked += linked;
    }
}
