//! Pipelines by name.

use ir::edit::Pass;
use std::fmt;
use std::str::FromStr;

/// A list of passes, in the order they run.
#[derive(Clone)]
pub struct Pipeline {
    passes: Vec<&'static (dyn Pass + Sync)>,
}

impl Pipeline {
    /// The name of the pipeline commands use unless told otherwise.
    pub const DEFAULT: &'static str = "O1";

    /// The passes.
    pub fn passes(&self) -> &[&'static (dyn Pass + Sync)] {
        &self.passes
    }

    /// The names of the passes.
    pub fn names(&self) -> Vec<String> {
        self.passes.iter().map(|pass| pass.name().to_owned()).collect()
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pipeline").field(&self.names()).finish()
    }
}

/// Neither a pipeline nor a pass has this name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownPass {
    name: String,
}

impl fmt::Display for UnknownPass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no pass or pipeline {:?}", self.name)
    }
}

impl std::error::Error for UnknownPass {}

impl FromStr for Pipeline {
    type Err = UnknownPass;

    /// The name of a pipeline, or names of passes and pipelines with commas between them. No name at all
    /// is the pipeline without passes.
    fn from_str(text: &str) -> Result<Pipeline, UnknownPass> {
        let passes = Vec::new();
        // There are no passes yet.
        if let Some(name) = text.split(',').map(str::trim).find(|name| !name.is_empty()) {
            return Err(UnknownPass { name: name.to_owned() });
        }
        Ok(Pipeline { passes })
    }
}
