//! Reads the names of functions.

use super::Notes;
use super::sections::DebugSections;
use crate::offsets::CodeOffsets;
use std::collections::BTreeMap;

/// Names by the offset at which the body of the function starts.
#[derive(Default, Debug)]
pub(super) struct FunctionNames {
    names: BTreeMap<u32, Box<str>>,
    pub(super) notes: Notes,
}

impl FunctionNames {
    pub(super) fn read(_sections: &DebugSections, _offsets: &CodeOffsets) -> FunctionNames {
        FunctionNames::default()
    }

    /// The name of the function whose body starts at an offset.
    pub(super) fn at(&self, start: u32) -> Option<&str> {
        self.names.get(&start).map(|name| &**name)
    }
}
