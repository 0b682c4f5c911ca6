//! The run folders under a directory, read while their runs go on. Nothing here
//! writes, and what is half written or just being replaced is left for the next look.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use crate::experiments::train_value::Snapshot;
use crate::lab::files::{self, FileError};
use crate::lab::folder::{ABOUT, About, CONFIG, METRICS, SUMMARY, is_in_use};

/// The directory of run folders.
#[derive(Debug)]
pub struct Runs {
    directory: PathBuf,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// A process is at work on it.
    Running,
    /// All its steps are done and its results are written.
    Finished,
    /// Neither: it was stopped, and can be resumed.
    Stopped,
}

/// A run, in a list of runs.
#[derive(Debug, Clone, Serialize)]
pub struct RunView {
    /// Name of the folder.
    pub name: String,
    /// How far it is.
    pub state: State,
    /// What it does: `value` trains a value network.
    pub experiment: Option<String>,
    /// What it trains on: a name, or the path of a rules file.
    pub game: Option<String>,
    /// The architecture.
    pub net: Option<String>,
    /// Games of self-play in all.
    pub games: Option<u64>,
    /// The root of its randomness.
    pub seed: Option<u64>,
    /// When it was last taken up, in UTC.
    pub started: Option<String>,
    /// SHA-256 of the rules that it trains on.
    #[serde(skip)]
    pub rules_sha256: Option<String>,
    /// Whether there is a network to play against.
    #[serde(skip)]
    pub has_checkpoint: bool,
}

/// Lines of a run's metrics.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricsView {
    /// Where the lines begin, in bytes: 0 if what came before is no longer so.
    pub from: u64,
    /// Where to go on.
    pub next: u64,
    /// Whether there are more lines by now.
    pub more: bool,
    /// One a step; see [`Metrics`](crate::lab::Metrics).
    pub lines: Vec<Value>,
}

impl Runs {
    /// The runs in a directory, which need not exist yet.
    pub fn new(directory: PathBuf) -> Runs {
        Runs { directory }
    }

    /// Where they are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// All runs, those that are going on first, and the newest first among equals.
    ///
    /// # Errors
    /// If the directory cannot be listed.
    pub fn list(&self) -> Result<Vec<RunView>, FileError> {
        let folders = self.folders()?.into_iter();
        let mut runs: Vec<RunView> = folders.map(|(name, folder)| view(name, &folder)).collect();
        runs.sort_by(|a, b| {
            let is_idle = |run: &RunView| run.state != State::Running;
            let started = b.started.cmp(&a.started);
            is_idle(a).cmp(&is_idle(b)).then(started)
        });
        Ok(runs)
    }

    /// The folder of the run with this name.
    ///
    /// # Errors
    /// If the directory cannot be listed.
    pub fn find(&self, name: &str) -> Result<Option<PathBuf>, FileError> {
        let found = self.folders()?.into_iter().find(|(known, _)| known == name);
        Ok(found.map(|(_, folder)| folder))
    }

    fn folders(&self) -> Result<Vec<(String, PathBuf)>, FileError> {
        if !self.directory.is_dir() {
            return Ok(Vec::new());
        }
        let folders = files::entries(&self.directory)?.into_iter();
        let runs = folders.filter(|folder| folder.join(CONFIG).is_file());
        let named = runs.filter_map(|folder| {
            let name = folder.file_name()?.to_string_lossy().into_owned();
            Some((name, folder))
        });
        Ok(named.collect())
    }
}

/// What can be read is shown; a run that is just being made has little to show yet.
fn view(name: String, folder: &Path) -> RunView {
    let config: Option<toml::Table> = readable(folder, CONFIG, |text| text.parse().ok());
    let about: Option<About> = readable(folder, ABOUT, |text| serde_json::from_str(text).ok());
    let config = |path: &[&str]| {
        let mut keys = path.iter();
        let value = config.as_ref()?.get(*keys.next()?)?;
        keys.try_fold(value, |value, key| value.get(key)).cloned()
    };
    let text = |path: &[&str]| config(path)?.as_str().map(String::from);
    let session = about.as_ref().and_then(|about| about.sessions.last());
    RunView {
        state: state(folder),
        experiment: text(&["experiment"]),
        game: text(&["game"]),
        net: text(&["net", "kind"]),
        games: config(&["games"]).and_then(|games| games.as_integer()?.try_into().ok()),
        seed: about.as_ref().map(|about| about.seed),
        started: session.map(|session| session.started.clone()),
        rules_sha256: session.and_then(|session| session.facts.get("rules_sha256").cloned()),
        has_checkpoint: matches!(Snapshot::newest_hash(folder), Ok(Some(_))),
        name,
    }
}

fn readable<T>(folder: &Path, name: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
    match files::read_text(&folder.join(name)) {
        Ok(text) => parse(&text),
        Err(_) => None,
    }
}

fn state(folder: &Path) -> State {
    if folder.join(SUMMARY).is_file() {
        State::Finished
    } else if matches!(is_in_use(folder), Ok(true)) {
        State::Running
    } else {
        State::Stopped
    }
}

/// The most of a metrics file that is read at once.
const MAX_BYTES: u64 = 1 << 20;

/// Reads the complete lines of a run's metrics from the byte `from` on. Where that is
/// not the beginning of a line, because a resumed run has cut its metrics, it reads
/// from the beginning.
///
/// # Errors
/// If the file cannot be read.
pub fn metrics(folder: &Path, from: u64) -> io::Result<MetricsView> {
    let mut file = match File::open(folder.join(METRICS)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(MetricsView {
                from: 0,
                next: 0,
                more: false,
                lines: Vec::new(),
            });
        }
        Err(error) => return Err(error),
    };
    let from = if starts_line(&mut file, from)? {
        from
    } else {
        0
    };
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.by_ref().take(MAX_BYTES).read_to_end(&mut bytes)?;
    let more = bytes.len() as u64 == MAX_BYTES;
    let complete = bytes
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |end| end + 1);
    let lines = bytes[..complete].split(|&byte| byte == b'\n');
    // A line that is no JSON is of a file that someone has edited; the others help.
    let lines = lines.filter_map(|line| serde_json::from_slice(line).ok());
    Ok(MetricsView {
        from,
        next: from + complete as u64,
        more,
        lines: lines.collect(),
    })
}

fn starts_line(file: &mut File, from: u64) -> io::Result<bool> {
    if from == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::Start(from - 1))?;
    let mut before = [0];
    Ok(file.read(&mut before)? == 1 && before[0] == b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_read_line_by_line() {
        let folder = tempfile::tempdir().unwrap();
        let read = |from| {
            let view = metrics(folder.path(), from).unwrap();
            let steps: Vec<_> = view
                .lines
                .iter()
                .map(|l| l["step"].as_u64().unwrap())
                .collect();
            (view.from, view.next, steps)
        };
        let write = |text: &str| std::fs::write(folder.path().join(METRICS), text).unwrap();
        assert_eq!(read(0), (0, 0, vec![]));
        write("{\"step\":1}\n{\"step\":2}\n{\"ste");
        assert_eq!(read(0), (0, 22, vec![1, 2]));
        assert_eq!(read(22), (22, 22, vec![]));
        write("{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n");
        assert_eq!(read(22), (22, 33, vec![3]));
        // Resumed from step 1: the file is shorter, then as long as before, but with
        // other lines.
        write("{\"step\":1}\n");
        assert_eq!(read(33), (0, 11, vec![1]));
        write("{\"step\":1}\n{\"step\":2, \"loss\":1}\n");
        assert_eq!(read(22), (0, 32, vec![1, 2]));
    }
}
