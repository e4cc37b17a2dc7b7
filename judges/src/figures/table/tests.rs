//! Tests of `judges::figures::table`.

use super::{FigureTable, FigureUnit, Series, wrapped};

fn series(values: &[f64]) -> Series {
    (0..).zip(values.iter().copied()).collect()
}

#[test]
fn a_table_shows_medians_means_and_losers() {
    let columns =
        vec![("a".to_owned(), FigureUnit::Seconds), ("a/b".to_owned(), FigureUnit::Ratio)];
    let mut table = FigureTable::new("times", columns);
    table.push("start", vec![series(&[0.001]), series(&[9.0])]);
    let slow = [2.0, 2.1, 1.9, 2.2, 2.0, 2.0];
    table.push("one.o2 5", vec![series(&[0.5; 6]), series(&slow)]);
    table.push("two.o2 5", vec![series(&[0.1; 6]), series(&[0.5; 6])]);
    table.push("no ratio", vec![series(&[0.1]), Series::new()]);
    table.push("not measured", vec![Series::new(), Series::new()]);
    table.mean("geometric mean", |name| name != "start");
    table.worst(1.0, |name| name != "start");
    let text = table.to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "times",
            "                           a               a/b",
            "start                    1.0             ~9.00",
            "one.o2 5               500.0    2.00 1.90-2.20",
            "two.o2 5               100.0    0.50 0.50-0.50",
            "no ratio               100.0                 -",
            "",
            "geometric mean             -    1.00 0.97-1.05",
            "worst                      -    2.00 1.90-2.20",
            "behind in a/b: one.o2 5 (2.00)",
        ]
    );
    let json = serde_json::to_value(&table).expect("data");
    assert_eq!(json["rows"][1]["cells"][1]["median"], 2.0);
    assert_eq!(json["behind"][0][1][0], "one.o2 5 (2.00)");
}

#[test]
fn the_mean_of_programs_without_a_common_round_has_no_interval() {
    let mut table = FigureTable::new("", vec![("r".to_owned(), FigureUnit::Ratio)]);
    table.push("one", vec![[(0, 0.5)].into()]);
    table.push("two", vec![[(1, 2.0)].into()]);
    table.mean("mean", |_| true);
    let mean = table.summary[0].cells[0].expect("a mean");
    assert_eq!((mean.median, mean.interval), (1.0, None));
}

#[test]
fn long_lines_are_wrapped() {
    let text = wrapped(&["word"; 38].join(" "));
    assert!(text.lines().all(|line| line.len() <= 100) && text.lines().count() == 2, "{text}");
}
