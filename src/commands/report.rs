//! `tanren report`: runs laid side by side.

use std::path::PathBuf;

use super::{UsageError, print};
use crate::lab::files;
use crate::report::{RunData, markdown_table, runs_page, strength_table};

/// Arguments of `tanren report`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Run folders, finished or not. Those of a comparison are under its `entrants`.
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,

    /// Write a page with learning curves.
    #[arg(long, value_name = "FILE.html")]
    out: Option<PathBuf>,
}

/// Prints the table of the runs, and writes the page.
///
/// # Errors
/// A usage error if a folder is not that of a run that trains a value network;
/// otherwise if the page cannot be written.
pub fn run(args: Args) -> anyhow::Result<()> {
    let runs: Result<Vec<RunData>, _> = args.runs.iter().map(|run| RunData::load(run)).collect();
    let runs = runs.map_err(UsageError::wrap)?;
    let (header, rows) = strength_table(&runs);
    print(markdown_table(&header, &rows).trim_end())?;
    if let Some(path) = args.out {
        let page = runs_page("Runs", &runs);
        files::write_atomically(&path, page.html().as_bytes())?;
        print(format_args!("report  {}", path.display()))?;
    }
    Ok(())
}
