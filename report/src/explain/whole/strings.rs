//! A table of strings, each stored once.

use std::collections::BTreeMap;

/// The index of a string in the table.
pub(super) type Text = u32;

/// The strings of a view. Names of values and places of points occur often.
#[derive(Debug, Default)]
pub(super) struct Strings {
    ids: BTreeMap<String, Text>,
    all: Vec<String>,
}

impl Strings {
    /// The index of a string, which the table then holds.
    pub(super) fn id(&mut self, text: impl Into<String>) -> Text {
        let text = text.into();
        if let Some(id) = self.ids.get(&text) {
            return *id;
        }
        let id = self.all.len() as Text;
        self.all.push(text.clone());
        self.ids.insert(text, id);
        id
    }

    /// The strings in the order of their indices.
    pub(super) fn into_all(self) -> Vec<String> {
        self.all
    }
}
