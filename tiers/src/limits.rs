//! Where landing tables are, and their limits. Each ends a table with a row that assumes nothing.

/// The most rows of a table. The last assumes nothing, and stands behind so many tests at most.
pub const TABLE_ROWS: usize = 8;

/// The bytes of machine code of a table behind which its last row comes.
pub const TABLE_BYTES: usize = 32 << 10;

/// The bytes of machine code of all tables of a function, behind which each gets its last row.
pub const FUNCTION_BYTES: usize = 64 << 10;

/// The limits of the landing tables of a policy ([`super::Tiered::table_limits`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableLimits {
    /// The most rows of a table, with the last. With 1, each table has the last alone.
    pub rows: usize,
    /// The bytes of machine code of a table behind which its last row comes.
    pub table_bytes: usize,
    /// The bytes of machine code of all tables of a function, behind which each gets its last row.
    pub function_bytes: usize,
}

impl Default for TableLimits {
    /// [`TABLE_ROWS`], [`TABLE_BYTES`] and [`FUNCTION_BYTES`].
    fn default() -> TableLimits {
        TableLimits { rows: TABLE_ROWS, table_bytes: TABLE_BYTES, function_bytes: FUNCTION_BYTES }
    }
}

/// Where runs enter rows of landing tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TableUse {
    /// At hot loops, and where assumptions fail.
    #[default]
    Everywhere,
    /// At hot loops. An assumption that fails leads to the interpreter.
    AtLoops,
    /// Nowhere: code that assumes is entered by calls alone. For comparison.
    Nowhere,
}
