//! Grades of agents as text.

use super::{cell, markdown_table};
use crate::grade::{Calibration, Grade, Row};

/// Grades side by side: signs and blunders, blunders by ply and by number of winning
/// moves, and the calibration of those whose values are forecasts.
pub fn grades_text(grades: &[Grade]) -> String {
    let summary = grades
        .iter()
        .map(|grade| vec![grade.agent.clone(), cell(grade.signs), cell(grade.blunders)]);
    let header = ["agent", "signs right", "wins thrown away"];
    let mut text = markdown_table(&header, &summary.collect::<Vec<_>>());
    text += "\nIntervals are 95%. A value of exactly 0 is half right; agents that draw lots among \
             moves count with the probability that they throw the win away.\n";
    for (title, of, rows) in [
        (
            "Wins thrown away, by ply",
            "ply",
            (|grade| &grade.blunders_by_ply) as fn(&Grade) -> &Vec<Row>,
        ),
        (
            "Wins thrown away, by number of moves that keep the win",
            "moves",
            |grade| &grade.blunders_by_winning_moves,
        ),
    ] {
        text += &format!("\n{title}\n\n{}", parts_table(grades, of, rows));
    }
    for grade in grades {
        if let Some(calibration) = &grade.calibration {
            text += &format!("\n{}", calibration_text(&grade.agent, calibration));
        }
    }
    text
}

/// A line for each part of the positions, a column for each agent that chose moves.
fn parts_table(grades: &[Grade], of: &str, rows: fn(&Grade) -> &Vec<Row>) -> String {
    let choosing: Vec<&Grade> = grades.iter().filter(|g| !rows(g).is_empty()).collect();
    let Some(first) = choosing.first() else {
        return "no position is won\n".to_string();
    };
    let mut header = vec![of, "positions"];
    header.extend(choosing.iter().map(|grade| &*grade.agent));
    let lines = rows(first).iter().enumerate().map(|(number, part)| {
        let mut line = vec![part.of.clone(), part.share.positions.to_string()];
        // All were asked about the same positions.
        line.extend(
            choosing
                .iter()
                .map(|grade| rows(grade)[number].share.to_string()),
        );
        line
    });
    markdown_table(&header, &lines.collect::<Vec<_>>())
}

fn calibration_text(agent: &str, calibration: &Calibration) -> String {
    let lines = calibration.bins.iter().map(|bin| {
        vec![
            format!("{:.0}-{:.0}%", 100.0 * bin.from, 100.0 * bin.to),
            bin.exact.positions.to_string(),
            format!("{:.1}%", 100.0 * bin.forecast),
            bin.exact.to_string(),
        ]
    });
    let header = ["forecast", "positions", "mean forecast", "exact"];
    format!(
        "Calibration of {agent}: Brier score {:.4}, expected calibration error {:.1}%\n\n{}",
        calibration.brier,
        100.0 * calibration.expected_error,
        markdown_table(&header, &lines.collect::<Vec<_>>())
    )
}
