//! The views of functions inside the page, compressed.

use crate::explain::FunctionView;
use crate::schema::FunctionReport;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use maud::{Markup, PreEscaped, html};
use serde::Serialize;
use serde_json::Value;
use std::io::Write;

/// The view of one function: both listings, and the answer for each point.
#[derive(Clone, Debug)]
pub struct FunctionPage {
    /// The place of the function in the report.
    number: usize,
    /// The view and the figures of the function as JSON, compressed by zlib, in base 64: the
    /// characters are no markup.
    data: String,
}

impl FunctionPage {
    pub(crate) fn new(view: &FunctionView, figures: &FunctionReport) -> FunctionPage {
        FunctionPage { number: 0, data: packed(&(view, figures)) }
    }

    /// The view with new figures of the function, which a test of blame may have corrected. Cost:
    /// linear in the view.
    #[must_use]
    pub fn with_figures(&self, figures: &FunctionReport) -> FunctionPage {
        let bytes = STANDARD.decode(&self.data).expect("it was encoded here");
        let read = serde_json::from_reader(ZlibDecoder::new(&*bytes));
        let (view, _): (Value, Value) = read.expect("it was written here");
        FunctionPage { number: self.number, data: packed(&(view, figures)) }
    }

    /// The view of the function with this place in the report.
    #[must_use]
    pub fn at(self, number: usize) -> FunctionPage {
        FunctionPage { number, ..self }
    }

    /// A block of data, which the browser does not run. `pipeline` is the place of the report.
    pub(super) fn data(&self, pipeline: usize) -> Markup {
        let id = format!("view-{pipeline}-{}", self.number);
        html! { script type="application/octet-stream" id=(id) { (PreEscaped(&self.data)) } }
    }
}

fn packed(document: &impl Serialize) -> String {
    let json = serde_json::to_vec(document).expect("a view has a JSON form");
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(&json).and_then(|()| encoder.finish());
    STANDARD.encode(written.expect("writing to memory cannot fail"))
}
