//! The sections with debug info.

use std::borrow::Cow;
use wasmparser::{Parser, Payload};

/// A string longer than this is no path and no name. Reading stops at this length, which bounds the
/// cost of strings with a shared long tail.
pub(super) const LONGEST: usize = 4096;

macro_rules! sections {
    ($($field:ident $name:literal,)*) => {
        /// Copies of the sections that are read; empty where the module lacks one.
        #[derive(Default, Debug)]
        pub(super) struct DebugSections {
            $(pub(super) $field: Box<[u8]>,)*
        }

        impl DebugSections {
            fn named(&mut self, name: &str) -> Option<&mut Box<[u8]>> {
                match name {
                    $($name => Some(&mut self.$field),)*
                    _ => None,
                }
            }

            /// The bytes of all sections.
            pub(super) fn len(&self) -> usize {
                [$(self.$field.len()),*].iter().sum()
            }
        }
    };
}

sections! {
    abbrev ".debug_abbrev",
    addr ".debug_addr",
    info ".debug_info",
    line ".debug_line",
    line_str ".debug_line_str",
    str ".debug_str",
    str_offsets ".debug_str_offsets",
}

impl DebugSections {
    /// The sections of a module. Of two with one name, the first counts.
    pub(super) fn of(bytes: &[u8]) -> DebugSections {
        let mut sections = DebugSections::default();
        for payload in Parser::new(0).parse_all(bytes).map_while(Result::ok) {
            if let Payload::CustomSection(section) = payload
                && let Some(copy) = sections.named(section.name())
                && copy.is_empty()
            {
                *copy = section.data().into();
            }
        }
        sections
    }
}

pub(super) fn has_lines(bytes: &[u8]) -> bool {
    let mut payloads = Parser::new(0).parse_all(bytes).map_while(Result::ok);
    payloads.any(|payload| match payload {
        Payload::CustomSection(section) => section.name() == ".debug_line",
        _ => false,
    })
}

/// The string at an offset of a section, which a zero ends. `None` if it is longer than
/// [`LONGEST`], or the section ends before.
pub(super) fn string_at(section: &[u8], offset: usize) -> Option<Cow<'_, str>> {
    let rest = section.get(offset..)?;
    let rest = &rest[..rest.len().min(LONGEST + 1)];
    let end = rest.iter().position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(&rest[..end]))
}
