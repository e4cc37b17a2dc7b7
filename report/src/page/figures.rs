//! The tables of the text as tables of a page.

use super::names::{shown, shown_name};
use crate::section::Section;
use crate::table::{TableRow, TextTable};
use maud::{Markup, html};

/// Sections, each under its heading.
pub(super) fn sections(sections: &[Section]) -> Markup {
    html! {
        @for section in sections {
            @match section {
                Section::Sentences(sentences) => p { (shown(&sentences.join(" "))) },
                Section::Table(made) => (table(made)),
                Section::Words(heading, words) => {
                    h3 { (shown(heading)) }
                    p { (shown(&words.join(" "))) }
                }
                Section::Terms(terms) => dl {
                    @for (term, text) in terms { dt { (shown(term)) } dd { (shown(text)) } }
                },
                Section::Note(text) => p.note { "* " (shown(text)) },
            }
        }
    }
}

/// A table. Its first row of figures holds the headings of columns; rows before it hold headings
/// over several columns.
fn table(table: &TextTable) -> Markup {
    let rows = table.rows();
    let heads = 1 + rows.iter().take_while(|row| matches!(row, TableRow::Spans(_))).count();
    let (columns, title) = rows.iter().fold((0, None), |(columns, title), row| match row {
        TableRow::Figures(label, figures) => (columns.max(figures.len()), title.or(Some(label))),
        TableRow::Spans(_) | TableRow::Text(_) => (columns, title),
    });
    let (head, body) = rows.split_at(heads.min(rows.len()));
    html! {
        h3 { (shown(title.map_or("", String::as_str))) }
        // Focus lets the keyboard scroll it.
        div.scroll tabindex="0" role="group" aria-label=(shown(title.map_or("", String::as_str))) {
            table {
                thead { @for row in head { (head_row(row, heads > 1)) } }
                tbody { @for row in body { (body_row(row, columns + 1)) } }
            }
        }
    }
}

/// A row of headings. The heading above the table already shows the label of the first row; with
/// `labelled`, other rows stand between.
fn head_row(row: &TableRow, labelled: bool) -> Markup {
    html! {
        tr {
            @match row {
                TableRow::Figures(label, _) if labelled => th scope="col" { (shown(label)) },
                _ => td {},
            }
            @match row {
                TableRow::Spans(headings) => @for (over, text) in headings {
                    @match text.is_empty() {
                        true => td colspan=(over) {},
                        false => th colspan=(over) scope="colgroup" { (shown(text)) },
                    }
                },
                TableRow::Figures(_, figures) => @for figure in figures {
                    th scope="col" { (shown(figure)) }
                },
                TableRow::Text(text) => th { (shown(text)) },
            }
        }
    }
}

fn body_row(row: &TableRow, columns: usize) -> Markup {
    html! {
        @match row {
            TableRow::Text(text) => tr { td.text colspan=(columns) { (shown(text.trim())) } },
            TableRow::Spans(_) => (head_row(row, false)),
            TableRow::Figures(label, figures) => tr {
                th scope="row" class={ "in" (indent(label)) } { (row_heading(label)) }
                @for figure in figures { td { (shown(&unbroken(figure))) } }
            },
        }
    }
}

/// The label of a row. Invisible names are escaped, because screen readers skip empty headings
/// (`tests/browser/pages` judges modules with such names).
fn row_heading(label: &str) -> String {
    let text = label.trim_start();
    if text.chars().all(char::is_whitespace) { shown_name(text) } else { shown(text) }
}

/// The depth of a label, in steps of two blanks.
fn indent(label: &str) -> usize {
    ((label.len() - label.trim_start().len()) / 2).min(4)
}

/// A figure whose blanks do not break.
fn unbroken(figure: &str) -> String {
    figure.replace(' ', "\u{a0}")
}
