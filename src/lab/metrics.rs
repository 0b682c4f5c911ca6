//! What a step measured: numbers for `metrics.jsonl`, lines and a status for
//! the person who watches.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::files::FileError;

/// The numbers and texts of one step, filled by the experiment.
#[derive(Debug, Default)]
pub struct Metrics {
    values: BTreeMap<String, f64>,
    notes: Vec<String>,
    status: Option<String>,
}

impl Metrics {
    /// Records a number of this step. One that is not finite is written as
    /// `null`, and the person is warned.
    ///
    /// # Panics
    /// If `name` is `step` or `seconds`, which every line has anyway.
    pub fn set(&mut self, name: impl Into<String>, value: f64) {
        let name = name.into();
        assert!(
            !["step", "seconds"].contains(&&*name),
            "the runner itself records `{name}`"
        );
        self.values.insert(name, value);
    }

    /// Prints a line above the progress bar, for example a measured strength.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Sets what the progress bar says next to the step, for example games a
    /// second. It stays until it is set again.
    pub fn status(&mut self, text: impl Into<String>) {
        self.status = Some(text.into());
    }

    /// The numbers by name.
    pub fn values(&self) -> &BTreeMap<String, f64> {
        &self.values
    }

    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }

    pub(super) fn take_status(&mut self) -> Option<String> {
        self.status.take()
    }
}

/// The file `metrics.jsonl` of a run: one line of JSON a step.
#[derive(Debug)]
pub(super) struct MetricsLog {
    file: File,
    path: PathBuf,
    bytes: u64,
}

#[derive(Serialize)]
struct Line<'a> {
    step: u64,
    seconds: f64,
    // serde_json writes numbers that are not finite as null.
    #[serde(flatten)]
    values: &'a BTreeMap<String, f64>,
}

impl MetricsLog {
    /// Opens the file and cuts off what follows its first `bytes` bytes: lines
    /// of steps after the checkpoint, which will be done again.
    pub fn open(path: &Path, bytes: u64) -> Result<MetricsLog, FileError> {
        let opened = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path);
        let file = opened.and_then(|mut file| {
            file.set_len(bytes)?;
            file.seek(SeekFrom::End(0))?;
            Ok(file)
        });
        let file = file.map_err(FileError::new("write", path))?;
        Ok(MetricsLog {
            file,
            path: path.to_path_buf(),
            bytes,
        })
    }

    /// Appends the line of one step; `seconds` is the wall-clock time of the run.
    pub fn append(&mut self, step: u64, seconds: f64, metrics: &Metrics) -> Result<(), FileError> {
        let line = Line {
            step,
            seconds,
            values: metrics.values(),
        };
        let mut text = serde_json::to_string(&line).expect("names and numbers are always JSON");
        text.push('\n');
        self.file
            .write_all(text.as_bytes())
            .map_err(FileError::new("write", &self.path))?;
        self.bytes += text.len() as u64;
        Ok(())
    }

    /// Forces the lines to the disk and returns their length in bytes.
    pub fn sync(&mut self) -> Result<u64, FileError> {
        self.file
            .sync_data()
            .map_err(FileError::new("write", &self.path))?;
        Ok(self.bytes)
    }
}
