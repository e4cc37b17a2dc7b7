//! `osier report --format html`: one page that needs nothing else. Its views agree with
//! `osier explain`. `tests/browser` opens pages in a browser.

use crate::harness::{file, kernel, osier, scratch};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use serde_json::Value;
use std::io::Read;

const WINDOW: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/window.oir");

fn page(args: &[&str]) -> String {
    osier(&[&["report", "--format", "html"], args].concat()).with_status(0).stdout
}

/// The text of a page: the parts between tags, with character references replaced.
fn text_of(page: &str) -> String {
    let body = &page[page.find("<body>").expect("a body")..];
    let pieces = body.split('<').map(|piece| piece.split_once('>').map_or("", |(_, text)| text));
    let text = pieces.collect::<Vec<_>>().join(" ").replace("&lt;", "<").replace("&gt;", ">");
    let text = text.replace("&quot;", "\"").replace("&#39;", "'").replace("&amp;", "&");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The views of a page, in order: for each function its listings and its figures.
fn views(page: &str) -> Vec<[Value; 2]> {
    let blocks = page.split("<script type=\"application/octet-stream\" id=\"view-0-").skip(1);
    let unpacked = blocks.map(|block| {
        let (_, data) = block.split_once('>').expect("the tag ends");
        let (data, _) = data.split_once('<').expect("the block ends");
        let packed = STANDARD.decode(data).expect("base 64");
        let mut json = String::new();
        ZlibDecoder::new(&*packed).read_to_string(&mut json).expect("a zlib stream");
        serde_json::from_str(&json).expect("JSON")
    });
    unpacked.collect()
}

#[test]
fn the_page_loads_nothing_and_has_every_line_of_the_text() {
    let path = kernel("vm", "");
    let page = page(&[&path, "--level", "live"]);
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
    for loaded in ["<img", "<iframe", "<object", "<embed", " src=", "url(", "@import", "fetch("] {
        assert!(!page.contains(loaded), "{loaded}");
    }
    for link in page.split(" href=\"").skip(1) {
        assert!(link.starts_with('#') || link.starts_with("data:,\""), "{}", &link[..40]);
    }
    let shown = text_of(&page);
    let text = osier(&["report", "--verbose", &path, "--level", "live"]).with_status(0).stdout;
    // Lists and explanations have other line breaks.
    let tables =
        text.split("\n\n").filter(|part| !part.starts_with("levels:") && !part.starts_with('*'));
    let lines: Vec<&str> = tables.skip(2).flat_map(str::lines).collect();
    assert!(lines.len() > 60, "{text}");
    for line in lines {
        let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains(&words), "{line}");
    }
}

#[test]
fn no_name_becomes_markup_or_steers_the_text() {
    let folder = scratch();
    let text = "func @\"<b>&\\u{202e}x\\u{1b}\"(%\"</script><i>\": i32) -> i32 {\nentry:\n  \
                %z = const.i32 0\n  \
                %s = add.i32 %\"</script><i>\", %z\n  return %s\n}\n";
    let path = file(&folder, "<i>.oir", text);
    let page = page(&[&path]);
    assert!(page.contains("&lt;b&gt;&amp;\\u{202e}x\\u{1b}") && page.contains("&lt;i&gt;.oir"));
    assert!(!page.contains("<b>") && !page.contains("<i>"));
    assert!(!page.contains(['\u{202e}', '\u{1b}']));
    assert_eq!(page.matches("</script>").count(), 2, "one view and the script of the page");
}

/// The part of a view about one point of one version.
struct Told<'v> {
    view: &'v Value,
    other: &'v Value,
    point: &'v Value,
}

impl Told<'_> {
    fn string(&self, id: &Value) -> &str {
        let id = id.as_u64().expect("the index of a string") as usize;
        self.view["strings"][id].as_str().expect("a string")
    }

    /// Asserts that the view agrees with an answer of `osier explain --format json`.
    fn agrees(&self, answer: &Value) {
        let place = self.string(&self.point["place"]);
        assert_eq!(answer["point"]["at"], place);
        let first = answer["levels"].as_object().expect("levels").iter();
        let chain = ["empty", "live", "live_e", "alias", "avail"];
        let has = |level: &str| answer["levels"][level] == true;
        assert!(first.count() >= chain.len());
        let level = chain.iter().position(|level| has(level));
        match (&answer["entry"], level) {
            (Value::Null, None) => self.agrees_why(answer),
            (entry, Some(level)) => {
                assert_eq!(self.point["level"], level, "{place}");
                self.agrees_entry(entry);
            }
            (_, None) => panic!("{place}: an entry without a level"),
        }
    }

    fn agrees_entry(&self, entry: &Value) {
        let mine = &self.point["entry"];
        let landing = &self.other["lines"][mine["to"].as_u64().expect("a line") as usize];
        assert_eq!(entry["target"]["at"], self.string(&landing["place"]));
        let sets: Vec<String> = mine["set"]
            .as_array()
            .expect("assignments")
            .iter()
            .map(|set| format!("{} = {}", self.string(&set["value"]), self.string(&set["from"])))
            .collect();
        let theirs: Vec<String> = entry["set"]
            .as_array()
            .expect("assignments")
            .iter()
            .map(|set| {
                format!(
                    "{} = {}",
                    set["value"].as_str().unwrap_or("?"),
                    set["from"].as_str().unwrap_or("?")
                )
            })
            .collect();
        assert_eq!(sets, theirs);
        for set in mine["set"].as_array().expect("assignments") {
            assert!(set["because"].is_u64(), "the certificate has a reason for {set}");
        }
        let steps = |list: &Value| list.as_array().expect("a list").len();
        let price =
            &self.point["prices"].as_array().expect("prices").last().expect("one for the level");
        assert_eq!(price[0], steps(&entry["compute"]) + steps(&entry["replay"]));
        assert_eq!(price[1], steps(&entry["set"]));
        assert_eq!(steps(&mine["kept"]), steps(&entry["kept"]));
    }

    fn agrees_why(&self, answer: &Value) {
        let mine = &self.point["why"];
        assert_eq!(answer["why"]["text"], self.string(&mine["text"]));
        assert_eq!(answer["why"]["blame"]["number"], mine["blame"]);
    }
}

#[test]
fn a_view_says_of_every_point_what_explain_says() {
    let page = page(&[WINDOW]);
    let [view, figures] = &views(&page)[0];
    let (mut entries, mut reasons) = (0, 0);
    for (side, direction) in [(0, "forward"), (1, "backward")] {
        let lines = view["versions"][side]["lines"].as_array().expect("lines");
        for point in lines.iter().filter(|line| line["place"].is_u64()) {
            let told = Told { view, other: &view["versions"][1 - side], point };
            let place = told.string(&point["place"]);
            let question =
                ["explain", WINDOW, "--func", "window", "--point", place, "--direction", direction];
            let answer = osier(&[&question[..], &["--format", "json"]].concat()).with_status(0);
            let answer: Value = serde_json::from_str(&answer.stdout).expect("JSON");
            told.agrees(&answer["answers"][0]);
            entries += usize::from(point["entry"].is_object());
            reasons += usize::from(point["why"].is_object());
        }
        assert_eq!(
            figures[direction]["points"],
            lines.iter().filter(|l| l["place"].is_u64()).count()
        );
    }
    assert!(entries > 10 && reasons > 0, "{entries} entries, {reasons} reasons");
}

/// Every line of a listing stands in one row, in order. Lines of one instruction stand together.
#[test]
fn both_listings_are_whole() {
    let page = page(&[&kernel("sort", "")]);
    let views = views(&page);
    assert!(views.len() > 5);
    for [view, _] in &views {
        let rows = view["rows"].as_array().expect("rows");
        let mut together = 0;
        for side in 0..2 {
            let lines: Vec<u64> = rows.iter().filter_map(|row| row[side].as_u64()).collect();
            let all = view["versions"][side]["lines"].as_array().expect("lines").len() as u64;
            assert_eq!(lines, (0..all).collect::<Vec<_>>());
        }
        for row in rows {
            let line = |side: usize| {
                row[side].as_u64().map(|at| &view["versions"][side]["lines"][at as usize])
            };
            let (Some(left), Some(right)) = (line(0), line(1)) else { continue };
            together += usize::from(left["inst"] == right["inst"]);
        }
        assert!(together > 0, "most instructions survive the passes");
    }
}

#[test]
fn a_view_counts_points_at_the_passes_that_a_test_of_blame_finds() {
    let path = kernel("words", "");
    let tested = [&path, "--level", "live", "--blame-check", "100000"];
    let run = osier(&[&["report", "--format", "json"], &tested[..]].concat()).with_status(0);
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let functions = report["functions"].as_array().expect("a list");
    let blame =
        |figures: &Value| [&figures["forward"], &figures["backward"]].map(|s| s["blame"].clone());
    let views = views(&page(&tested));
    assert!(!views.is_empty());
    for [_, figures] in &views {
        let listed = functions.iter().find(|function| function["name"] == figures["name"]);
        assert_eq!(blame(figures), blame(listed.expect("a function of the report")));
    }
    let untested = self::views(&page(&[&path, "--level", "live"]));
    let is_other = |(a, b): (&[Value; 2], &[Value; 2])| blame(&a[1]) != blame(&b[1]);
    assert!(views.iter().zip(&untested).any(is_other), "the test blames other passes");
}
