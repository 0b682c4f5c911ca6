//! What a run folder tells about its run.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Curve, CurvePoint, Page, learning_curves};
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
}

impl Summary {
    /// The summary of a training that has ended with this model.
    pub fn of(card: &ModelCard) -> Summary {
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

    /// Score against an opponent (`baby` or `easy`) over a metric such as `games`
    /// or `seconds`.
    pub fn curve(&self, opponent: &str, x: &str) -> Curve {
        let points = self.metrics.iter().filter_map(|line| {
            let number = |key: &str| line.get(key)?.as_f64();
            Some(CurvePoint {
                x: number(x)?,
                score: number(&format!("score_{opponent}"))?,
                low: number(&format!("score_{opponent}_low"))?,
                high: number(&format!("score_{opponent}_high"))?,
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
    page.text("Scores are shares of the points at 1 ply, with 95% intervals.");
    for (opponent, name) in [("easy", "EasyAI"), ("baby", "BabyAI")] {
        for (x, label) in [
            ("games", "games of self-play"),
            ("seconds", "seconds of the run"),
        ] {
            let curves: Vec<_> = runs.iter().map(|run| run.curve(opponent, x)).collect();
            page.heading(&format!("Score against {name} over {label}"))
                .chart(&learning_curves(label, "score", &curves));
        }
    }
    page
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
        ]
    };
    let rows = runs.iter().map(row).collect();
    (header, rows)
}
