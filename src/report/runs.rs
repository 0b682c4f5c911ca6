//! What a run folder tells about its run.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Curve, CurvePoint, Line, Page, error_curves, learning_curves, line_chart};
use crate::grade::{Grade, Share};
use crate::lab::folder::{METRICS, SUMMARY};
use crate::nets::model::{ModelCard, Strength};

/// A run, as far as it has come.
#[derive(Debug, Clone, PartialEq)]
pub struct RunData {
    /// Name of the folder.
    pub name: String,
    /// Lines of `metrics.jsonl`.
    pub metrics: Vec<Value>,
    /// What `summary.json` says; a run that is not finished has none.
    pub summary: Option<Summary>,
}

/// `summary.json` of a run that trained a value network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Name of the game.
    pub game: String,
    /// Architecture.
    pub net: String,
    /// The run's seed.
    pub seed: u64,
    /// Games of self-play.
    pub games: u64,
    /// Positions that the games visited.
    pub positions: u64,
    /// Network evaluations by the generator.
    pub evaluations: u64,
    /// Wall-clock time of training, matches aside.
    pub seconds: f64,
    /// Measured strength.
    pub strength: Vec<Strength>,
    /// How the network does where the truth is known. Runs from before there were
    /// grades have none, nor have games without a test set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grade: Option<Grade>,
}

impl Summary {
    /// The summary of a training that has ended with this model, and its grade.
    pub fn of(card: &ModelCard, grade: Option<Grade>) -> Summary {
        let training = &card.training;
        Summary {
            game: card.game.clone(),
            net: card.net.kind.name().to_string(),
            seed: training.seed,
            games: training.games,
            positions: training.positions,
            evaluations: training.evaluations,
            seconds: training.seconds,
            strength: card.strength.clone(),
            grade,
        }
    }
}

/// Why a folder cannot be reported on.
#[derive(Debug, thiserror::Error)]
pub enum RunDataError {
    /// It is not there, or not readable.
    #[error("{} is no run folder: cannot read {}", folder.display(), file.display())]
    Unreadable {
        /// The folder.
        folder: PathBuf,
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is damaged, or of another kind of experiment.
    #[error("{} does not belong to a run that trains a value network", file.display())]
    Other {
        /// The file.
        file: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
}

impl RunData {
    /// Reads a run folder. A last line that is still being written is left out.
    ///
    /// # Errors
    /// If the folder is not that of a run that trains a value network.
    pub fn load(folder: &Path) -> Result<RunData, RunDataError> {
        let file = folder.join(SUMMARY);
        let summary = match fs::read(&file) {
            Ok(bytes) => Some(
                serde_json::from_slice(&bytes)
                    .map_err(|source| RunDataError::Other { file, source })?,
            ),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(source) => return Err(unreadable(folder, &file)(source)),
        };
        RunData::with_summary(folder, summary)
    }

    /// Reads a run folder whose summary is known, but perhaps not yet written.
    ///
    /// # Errors
    /// If the folder is not that of a run that trains a value network.
    pub fn with_summary(folder: &Path, summary: Option<Summary>) -> Result<RunData, RunDataError> {
        let file = folder.join(METRICS);
        let text = fs::read_to_string(&file).map_err(unreadable(folder, &file))?;
        let complete = text.rfind('\n').map_or("", |end| &text[..end]);
        let metrics: Result<_, _> = complete.lines().map(serde_json::from_str).collect();
        let metrics = metrics.map_err(|source| RunDataError::Other { file, source })?;
        let name = folder.file_name().unwrap_or(folder.as_os_str());
        Ok(RunData {
            name: name.to_string_lossy().into_owned(),
            metrics,
            summary,
        })
    }

    /// A share that was measured now and then (`score_baby`, `score_easy`,
    /// `blunder_rate`) over a metric such as `games` or `seconds`.
    pub fn curve(&self, share: &str, x: &str) -> Curve {
        let points = self.metrics.iter().filter_map(|line| {
            let number = |key: &str| line.get(key)?.as_f64();
            Some(CurvePoint {
                x: number(x)?,
                score: number(share)?,
                low: number(&format!("{share}_low"))?,
                high: number(&format!("{share}_high"))?,
            })
        });
        Curve {
            name: self.name.clone(),
            points: points.collect(),
        }
    }
}

fn unreadable(folder: &Path, file: &Path) -> impl FnOnce(std::io::Error) -> RunDataError {
    let (folder, file) = (folder.to_path_buf(), file.to_path_buf());
    move |source| RunDataError::Unreadable {
        folder,
        file,
        source,
    }
}

/// A page with the table of the runs and their learning curves.
pub fn runs_page(title: &str, runs: &[RunData]) -> Page {
    let mut page = Page::new(title);
    let (header, rows) = strength_table(runs);
    page.table(&header, &rows);
    page.text(
        "Scores are shares of the points at 1 ply, with 95% intervals. Signs and blunders are \
         measured on exactly solved positions: for how many the network is on the right side, and \
         how many of its moves at 1 ply throw a win away.",
    );
    for (x, label) in [
        ("games", "games of self-play"),
        ("seconds", "seconds of the run"),
    ] {
        for (opponent, name) in [("easy", "EasyAI"), ("baby", "BabyAI")] {
            let curves = curves(runs, &format!("score_{opponent}"), x);
            page.heading(&format!("Score against {name} over {label}"))
                .chart(&learning_curves(label, "score", &curves));
        }
        blunder_chart(&mut page, runs, x, label);
    }
    calibration_chart(&mut page, runs);
    page
}

/// Adds how the finished networks' values hold as probabilities, if that was measured.
fn calibration_chart(page: &mut Page, runs: &[RunData]) {
    let lines = runs.iter().filter_map(|run| {
        let grade = run.summary.as_ref()?.grade.as_ref()?;
        let bins = grade.calibration.as_ref()?.bins.iter();
        Some(Line {
            name: run.name.clone(),
            points: bins
                .map(|bin| (bin.forecast, bin.exact.share.score))
                .collect(),
        })
    });
    let mut lines: Vec<Line> = lines.collect();
    if lines.is_empty() {
        return;
    }
    lines.push(Line {
        name: "exactly as forecast".to_string(),
        points: vec![(0.0, 0.0), (1.0, 1.0)],
    });
    page.heading("Forecasts held against exact values")
        .chart(&line_chart("forecast of a win", "share of wins", &lines));
}

/// Adds the blunder rate over games or seconds, if it was measured.
pub fn blunder_chart(page: &mut Page, runs: &[RunData], x: &str, label: &str) {
    let curves = curves(runs, "blunder_rate", x);
    if curves.iter().any(|curve| !curve.points.is_empty()) {
        page.heading(&format!("Wins thrown away over {label}"))
            .chart(&error_curves(label, "blunder rate", &curves));
    }
}

fn curves(runs: &[RunData], share: &str, x: &str) -> Vec<Curve> {
    runs.iter().map(|run| run.curve(share, x)).collect()
}

/// Header and rows of a table of runs: what was trained, and how strong it is.
pub fn strength_table(runs: &[RunData]) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let header = vec![
        "run",
        "game",
        "network",
        "seed",
        "games",
        "seconds",
        "against BabyAI",
        "against EasyAI",
        "signs right",
        "blunders",
    ];
    let row = |run: &RunData| {
        let Some(summary) = &run.summary else {
            let mut row = vec![run.name.clone(), "not finished".to_string()];
            row.resize(header.len(), String::new());
            return row;
        };
        let against = |opponent: &str| {
            let found = summary.strength.iter().find(|s| s.opponent == opponent);
            found.map_or(String::new(), |s| s.score.to_string())
        };
        vec![
            run.name.clone(),
            summary.game.clone(),
            summary.net.clone(),
            summary.seed.to_string(),
            summary.games.to_string(),
            format!("{:.1}", summary.seconds),
            against("baby"),
            against("easy"),
            cell(summary.grade.as_ref().and_then(|grade| grade.signs)),
            cell(summary.grade.as_ref().and_then(|grade| grade.blunders)),
        ]
    };
    let rows = runs.iter().map(row).collect();
    (header, rows)
}

/// A share as a table shows it: nothing if it was not measured.
pub fn cell(share: Option<Share>) -> String {
    share.map_or(String::new(), |share| share.to_string())
}
