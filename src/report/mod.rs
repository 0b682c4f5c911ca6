//! Run folders laid side by side: tables in Markdown, charts in SVG, and one
//! HTML page that needs nothing else. Reads what runs have written and nothing
//! else, so it can be made again at any time.

mod charts;
mod design;
mod grades;
mod page;
mod runs;

pub use charts::{
    Curve, CurvePoint, Line, Rated, elo_chart, error_curves, histograms, learning_curves,
    line_chart, share_chart,
};
pub use design::{design_page, design_text};
pub use grades::grades_text;
pub use page::Page;
pub use runs::{RunData, RunDataError, Summary, blunder_chart, cell, runs_page, strength_table};

/// A table in Markdown, its columns as wide as they have to be.
pub fn markdown_table(header: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells
            .chain([header[column].chars().count()])
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: &[&str]| {
        let padded = cells
            .iter()
            .zip(&widths)
            .map(|(cell, &width)| format!("{cell:width$}"));
        format!("| {} |\n", padded.collect::<Vec<_>>().join(" | "))
    };
    let rule: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
    let mut table = line(header);
    table += &line(&rule.iter().map(String::as_str).collect::<Vec<_>>());
    for row in rows {
        table += &line(&row.iter().map(String::as_str).collect::<Vec<_>>());
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_aligned() {
        let rows = [
            vec!["mlp".to_string(), "1".to_string()],
            vec!["é".to_string(), String::new()],
        ];
        assert_eq!(
            markdown_table(&["net", "Elo"], &rows),
            "| net | Elo |\n| --- | --- |\n| mlp | 1   |\n| é   |     |\n"
        );
    }
}
