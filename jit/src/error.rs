//! The errors of compilation: of versions, and of transitions between them.

use std::fmt;

/// The reason why a version could not be compiled. A failed compilation leaves no code behind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CompileError {
    /// No memory for code is left, or the limit of the engine is reached.
    OutOfMemory,
    /// The function has more values at one place than the buffer or a call can hold.
    TooManyValues {
        /// The name of the function.
        function: String,
        /// The number of words needed.
        needed: usize,
        /// The number of words available.
        limit: usize,
    },
    /// The verifier rejects the function, or its signature differs from the declared function's.
    Invalid {
        /// The name of the function.
        function: String,
        /// The finding.
        what: String,
    },
    /// Cranelift rejects the function, or the system rejects its code.
    Codegen {
        /// The name of the function.
        function: String,
        /// The message of Cranelift or of the system.
        what: String,
    },
    /// The function cannot have an OSR point of the list.
    Point {
        /// The name of the function.
        function: String,
        /// The reason.
        what: String,
    },
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompileError::OutOfMemory => f.write_str("no memory for code is left"),
            CompileError::TooManyValues { function, needed, limit } => {
                write!(
                    f,
                    "@{function} passes {needed} values at once; native code passes at most {limit}"
                )
            }
            CompileError::Invalid { function, what } => {
                write!(f, "@{function} is not a valid version: {what}")
            }
            CompileError::Codegen { function, what } => {
                write!(f, "@{function} cannot be compiled: {what}")
            }
            CompileError::Point { function, what } => {
                write!(f, "@{function} cannot have this OSR point: {what}")
            }
        }
    }
}

impl std::error::Error for CompileError {}

/// The reason why a transition could not be compiled. A failed compilation leaves no code behind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ContinueError {
    /// The mapping or continuation has another source version than the version that runs. It may be
    /// stale.
    OtherSource {
        /// The name of the function.
        function: String,
    },
    /// The mapping has another target version than the version given.
    OtherTarget {
        /// The name of the function.
        function: String,
    },
    /// Another engine compiled the target version.
    OtherEngine {
        /// The name of the function.
        function: String,
    },
    /// The continuation reads values that are dead where the run is, and the fast loop of the
    /// interpreter has lost them. Entries at levels below `avail` mostly read no dead
    /// values; [`crate::Continuation::keeps_values`] tells.
    NotKept {
        /// The name of the function.
        function: String,
    },
    /// The entry does not fit the versions, or its compensation code cannot run.
    NotBuilt {
        /// The name of the function.
        function: String,
        /// The reason.
        what: String,
    },
    /// The compiler rejects the function of the continuation.
    Compile(CompileError),
}

impl fmt::Display for ContinueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ContinueError::OtherSource { function } => {
                write!(
                    f,
                    "the transition has another source version of @{function} than the version \
                     that runs"
                )
            }
            ContinueError::OtherTarget { function } => {
                write!(
                    f,
                    "the mapping has another target version of @{function} than the version given"
                )
            }
            ContinueError::OtherEngine { function } => {
                write!(f, "another engine compiled the target version of @{function}")
            }
            ContinueError::NotKept { function } => {
                write!(
                    f,
                    "the continuation of @{function} reads dead values, which the interpreter has \
                     lost"
                )
            }
            ContinueError::NotBuilt { function, what } => {
                write!(f, "a transition of @{function} cannot be compiled: {what}")
            }
            ContinueError::Compile(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for ContinueError {}
