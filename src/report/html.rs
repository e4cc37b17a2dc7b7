//! Prints the report as one self-contained page without scripts, fonts or pictures.

use super::section::Section;
use super::text::sections;
use super::{comparison, inlining, pipeline_name, several, speculation};
use crate::schema::{InliningReport, Report, SpeculationReport};
use crate::table::{TableRow, TextTable};
use std::fmt::Write;

/// The style of the page, for light and dark color schemes.
const STYLE: &str = "\
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; }
body { padding: 0 1rem; }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 2rem 0 .4rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; min-width: 32rem; }
th, td { padding: .15rem .7rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal; overflow-wrap: anywhere; }
tr.head th { border-bottom: 1px solid; }
td.text { font-weight: 600; padding-top: .7rem; text-align: left; }
tr:nth-child(even) td { background: color-mix(in srgb, currentColor 5%, transparent); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; }
dt { font-weight: 600; } dd { margin: 0; overflow-wrap: anywhere; }
.note { font-size: .85rem; margin-top: 2rem; }
";

/// The report as a page. It has the tables of the text, but does not shorten names.
pub fn html(report: &Report) -> String {
    page(&title(report), &with_comparison(report))
}

/// Reports on several pipelines as one page: the table beside each other, then each report.
pub fn several_html(reports: &[Report]) -> String {
    let mut all = several::sections(reports);
    for report in reports {
        let name = pipeline_name(&report.pipeline);
        all.push(Section::Words(format!("Pipeline {name}"), Vec::new()));
        all.extend(with_comparison(report));
    }
    page(&reports.first().map(title).unwrap_or_default(), &all)
}

fn title(report: &Report) -> String {
    format!("OSR report on {}", report.program.path)
}

/// The sections of a report, behind the changes since an older one.
fn with_comparison(report: &Report) -> Vec<Section> {
    report.against.iter().flat_map(comparison::sections).chain(sections(report)).collect()
}

/// The report on assumptions as a page, with the tables of its text.
pub fn speculation_html(report: &SpeculationReport) -> String {
    let title = format!("Speculation report on {}", report.program.path);
    page(&title, &speculation::sections(report))
}

/// The report on inlining as a page, with the tables of its text.
pub fn inlining_html(report: &InliningReport) -> String {
    let title = format!("Inlining report on {}", report.program.path);
    page(&title, &inlining::sections(report))
}

/// A page with a title and sections.
fn page(title: &str, sections: &[Section]) -> String {
    let title = escaped(title);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    sections.iter().for_each(|section| write_section(&mut page, section));
    page + "</body>\n</html>\n"
}

fn write_section(page: &mut String, section: &Section) {
    let written = match section {
        Section::Sentences(sentences) => {
            writeln!(page, "<p>{}</p>", escaped(&sentences.join(" ")))
        }
        Section::Table(table) => write_table(page, table),
        Section::Words(heading, words) => {
            writeln!(page, "<h2>{}</h2>\n<p>{}</p>", escaped(heading), escaped(&words.join(" ")))
        }
        Section::Terms(terms) => {
            let each = |(term, text): &(String, String)| {
                format!("<dt>{}</dt><dd>{}</dd>\n", escaped(term), escaped(text))
            };
            writeln!(page, "<dl>\n{}</dl>", terms.iter().map(each).collect::<String>())
        }
        Section::Note(text) => writeln!(page, "<p class=\"note\">* {}</p>", escaped(text)),
    };
    written.expect("writing to a string cannot fail");
}

/// Writes a table. Its first row of figures holds the headings of columns; rows before it hold
/// headings over several columns.
fn write_table(page: &mut String, table: &TextTable) -> std::fmt::Result {
    let heads = 1 + table.rows().iter().take_while(|row| matches!(row, TableRow::Spans(_))).count();
    let title = table.rows().iter().find_map(|row| match row {
        TableRow::Figures(label, _) => Some(label.as_str()),
        TableRow::Spans(_) | TableRow::Text(_) => None,
    });
    writeln!(
        page,
        "<h2>{}</h2>\n<div class=\"scroll\"><table>",
        escaped(title.unwrap_or_default())
    )?;
    let columns = table.rows().iter().map(|row| match row {
        TableRow::Figures(_, figures) => figures.len(),
        TableRow::Spans(_) | TableRow::Text(_) => 0,
    });
    let columns = 1 + columns.max().unwrap_or(0);
    for (number, row) in table.rows().iter().enumerate() {
        match row {
            TableRow::Spans(headings) => {
                let each = headings
                    .iter()
                    .map(|(over, text)| format!("<th colspan=\"{over}\">{}</th>", escaped(text)));
                writeln!(page, "<tr><th></th>{}</tr>", each.collect::<String>())?;
            }
            TableRow::Text(text) => {
                writeln!(
                    page,
                    "<tr><td class=\"text\" colspan=\"{columns}\">{}</td></tr>",
                    escaped(text.trim())
                )?;
            }
            // The heading above the table already shows this label as the title.
            TableRow::Figures(_, figures) if number == 0 => write_figures(page, true, "", figures)?,
            TableRow::Figures(label, figures) => {
                write_figures(page, number < heads, label, figures)?
            }
        }
    }
    writeln!(page, "</table></div>")
}

fn write_figures(
    page: &mut String,
    is_head: bool,
    label: &str,
    figures: &[String],
) -> std::fmt::Result {
    let (row, cell) = if is_head { ("<tr class=\"head\">", "th") } else { ("<tr>", "td") };
    let bare = label.trim_start();
    let indent = (label.len() - bare.len()) as f64 * 0.6;
    write!(page, "{row}<{cell} style=\"padding-left:{indent:.1}em\">{}</{cell}>", escaped(bare))?;
    figures.iter().try_for_each(|figure| write!(page, "<{cell}>{}</{cell}>", escaped(figure)))?;
    writeln!(page, "</tr>")
}

/// Escapes a text for HTML. Names come from the input, so no character may act as markup, and
/// control characters become `?`. Blanks inside numbers become non-breaking.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.chars().peekable();
    let mut before = ' ';
    while let Some(c) = rest.next() {
        let is_in_number = before.is_ascii_digit() && rest.peek().is_some_and(char::is_ascii_digit);
        before = c;
        match c {
            ' ' if is_in_number => out.push('\u{a0}'),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_markup() {
        assert_eq!(
            escaped("<b a='x' c=\"y\">&\u{1b}"),
            "&lt;b a=&#39;x&#39; c=&quot;y&quot;&gt;&amp;?"
        );
    }
}
