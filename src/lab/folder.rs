//! A run folder: everything that one run reads and writes.
//!
//! ```text
//! config.toml      every key; a configuration file as good as any
//! about.json       seed, device, and which program worked on it when
//! metrics.jsonl    one line a step
//! checkpoints/     the last few states, by step
//! model/           what was trained
//! report.html      the result for people
//! summary.json     the result; there once the run is finished
//! lock             locked by the process that works here
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::config::{self, ConfigError, Resolved};
use super::files::{self, FileError};
use super::runner::{Ending, Options, RunError};
use super::{AnyExperiment, Setup};

/// The resolved configuration in a run folder.
pub const CONFIG: &str = "config.toml";
/// The facts about a run, see [`About`].
pub const ABOUT: &str = "about.json";
/// The numbers of a run, one line a step.
pub const METRICS: &str = "metrics.jsonl";
/// The directory of checkpoints in a run folder.
pub const CHECKPOINTS: &str = "checkpoints";
/// The model folder in a run folder.
pub const MODEL: &str = "model";
/// The result of a run for people, as a page.
pub const REPORT: &str = "report.html";
/// The result of a run. It is the last file written.
pub const SUMMARY: &str = "summary.json";
const LOCK: &str = "lock";

/// What `about.json` tells about a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The root of all randomness of the run.
    pub seed: u64,
    /// The device as the user last wrote it.
    pub device: String,
    /// Start, and each resume.
    pub sessions: Vec<Session>,
}

/// One process that worked on a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Version of the program.
    pub version: String,
    /// Commit that the program was built from, if `TANREN_COMMIT` was set then.
    pub commit: Option<String>,
    /// When it started, in UTC.
    pub started: String,
    /// Number of steps done before.
    pub from_step: u64,
    /// The device as the user wrote it.
    pub device: String,
    /// What the experiment adds, see [`Experiment::about`](super::Experiment::about).
    pub facts: BTreeMap<String, String>,
}

/// A run folder that this process works on; no other can while this value lives.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    config: Resolved,
    about: About,
    // Held for its lock.
    _lock: File,
}

/// A folder that cannot be used for a run.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// An operation failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// Another process works on the run.
    #[error("another process is at work in {}; wait for it or stop it", .0.display())]
    InUse(PathBuf),
    /// A new run was asked for where there is something.
    #[error("{} is not empty; to go on with the run in it use --resume, for a new run choose another folder",
        .0.display())]
    NotEmpty(PathBuf),
    /// There is no run to go on with.
    #[error("{} holds no run: {missing} is missing", path.display())]
    NoRun {
        /// The folder.
        path: PathBuf,
        /// The file that every run has.
        missing: &'static str,
    },
    /// `config.toml` is not accepted.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// `about.json` cannot be understood.
    #[error("{} is damaged: {reason}", file.display())]
    About {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl RunFolder {
    /// Makes the folder `path` for a new run. It may exist if it is empty.
    ///
    /// # Errors
    /// If the folder is in use or not empty, or cannot be written.
    pub fn create(path: &Path, config: Resolved, setup: Setup) -> Result<RunFolder, FolderError> {
        files::create_dirs(path)?;
        // Before locking, so as not to leave a lock in somebody's folder; after,
        // because a run may have come and gone in between.
        require_empty(path)?;
        let lock = lock(path)?;
        require_empty(path)?;
        files::create_dirs(&path.join(CHECKPOINTS))?;
        let about = About {
            seed: setup.seed,
            device: setup.device,
            sessions: Vec::new(),
        };
        let folder = RunFolder {
            path: path.to_path_buf(),
            config,
            about,
            _lock: lock,
        };
        folder.write_about()?;
        files::write_atomically(&path.join(CONFIG), folder.config.toml.as_bytes())?;
        Ok(folder)
    }

    /// Makes a folder `<name>-<n>` in `parent` for a new run, with the first `n`
    /// that is free.
    ///
    /// # Errors
    /// If the folder cannot be made or written.
    pub fn create_next(
        parent: &Path,
        config: Resolved,
        setup: Setup,
    ) -> Result<RunFolder, FolderError> {
        files::create_dirs(parent)?;
        for n in 1u64.. {
            let path = parent.join(format!("{}-{n}", config.name));
            match fs::create_dir(&path) {
                Ok(()) => return RunFolder::create(&path, config, setup),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(FileError::new("create the directory", &path)(error).into());
                }
            }
        }
        unreachable!("a directory holds fewer than 2^64 entries")
    }

    /// Opens the folder of an earlier run, finished or not.
    ///
    /// # Errors
    /// If the folder is in use, holds no run, or its configuration is not one of
    /// `experiments`.
    pub fn open(
        path: &Path,
        experiments: &'static [AnyExperiment],
    ) -> Result<RunFolder, FolderError> {
        for missing in [CONFIG, ABOUT] {
            if !path.join(missing).is_file() {
                return Err(FolderError::NoRun {
                    path: path.to_path_buf(),
                    missing,
                });
            }
        }
        let lock = lock(path)?;
        let file = path.join(ABOUT);
        let about =
            serde_json::from_slice(&files::read(&file)?).map_err(|error| FolderError::About {
                file,
                reason: error.to_string(),
            })?;
        let config = config::resolve_file(experiments, &path.join(CONFIG))?;
        files::create_dirs(&path.join(CHECKPOINTS))?;
        files::remove_leftovers(path)?;
        files::remove_leftovers(&path.join(CHECKPOINTS))?;
        Ok(RunFolder {
            path: path.to_path_buf(),
            config,
            about,
            _lock: lock,
        })
    }

    /// Starts the run, or goes on with it from its newest checkpoint, until it is
    /// finished or [`Options::stop`] is set.
    ///
    /// # Errors
    /// If the experiment fails, a file cannot be written, or no checkpoint is
    /// undamaged. The last checkpoint stays valid.
    pub fn run(&mut self, options: Options<'_>) -> Result<Ending, RunError> {
        let run = self.config.experiment.run;
        run(self, options)
    }

    /// Changes the device for the rest of the run.
    pub fn set_device(&mut self, device: String) {
        self.about.device = device;
    }

    /// Where the folder is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its resolved configuration.
    pub fn config(&self) -> &Resolved {
        &self.config
    }

    /// What is known about the run.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Whether the run has done all it had to.
    pub fn is_finished(&self) -> bool {
        self.path.join(SUMMARY).is_file()
    }

    pub(super) fn setup(&self) -> Setup {
        Setup {
            seed: self.about.seed,
            device: self.about.device.clone(),
        }
    }

    /// Writes down that this process works on the run.
    pub(super) fn add_session(
        &mut self,
        from_step: u64,
        facts: BTreeMap<String, String>,
    ) -> Result<(), FileError> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        self.about.sessions.push(Session {
            version: env!("CARGO_PKG_VERSION").to_string(),
            commit: option_env!("TANREN_COMMIT").map(String::from),
            started: utc(now.as_secs()),
            from_step,
            device: self.about.device.clone(),
            facts,
        });
        self.write_about()
    }

    fn write_about(&self) -> Result<(), FileError> {
        let mut text = serde_json::to_string_pretty(&self.about).expect("facts are always JSON");
        text.push('\n');
        files::write_atomically(&self.path.join(ABOUT), text.as_bytes())
    }
}

fn require_empty(path: &Path) -> Result<(), FolderError> {
    let is_lock = |entry: &PathBuf| entry.file_name().is_some_and(|name| name == LOCK);
    if files::entries(path)?.iter().all(is_lock) {
        return Ok(());
    }
    Err(FolderError::NotEmpty(path.to_path_buf()))
}

/// Locks the folder. The system lifts the lock when the process ends, however it
/// ends; the file stays, since removing it could remove another's lock.
fn lock(path: &Path) -> Result<File, FolderError> {
    /// [`is_in_use`] holds the lock for an instant; it must not pass for a run.
    const TRIES: usize = 5;
    const PAUSE: Duration = Duration::from_millis(10);
    let file = path.join(LOCK);
    let lock = File::create(&file).map_err(FileError::new("write", &file))?;
    for _ in 0..TRIES {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) => {
                return Err(FileError::new("lock", &file)(error).into());
            }
        }
    }
    Err(FolderError::InUse(path.to_path_buf()))
}

/// Whether a process is at work in the run folder `path`.
///
/// # Errors
/// If the folder's lock cannot be opened or tried.
pub fn is_in_use(path: &Path) -> Result<bool, FileError> {
    let file = path.join(LOCK);
    let lock = match File::open(&file) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(FileError::new("read", &file)(error)),
    };
    match lock.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(FileError::new("lock", &file)(error)),
    }
}

/// A time in seconds since 1970 as `2025-03-01T12:00:00Z`.
///
/// Source: H. Hinnant, "chrono-compatible low-level date algorithms",
/// `civil_from_days`; years begin in March, so that leap days come last.
fn utc(unix_seconds: u64) -> String {
    let (days, second) = (unix_seconds / 86_400, unix_seconds % 86_400);
    let day = days + 719_468; // since 0000-03-01
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153; // 0 is March
    let day = day - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year + u64::from(month >= 10);
    let month = if month < 10 { month + 3 } else { month - 9 };
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn utc_knows_leap_years() {
        // Values of GNU `date -u -d @N +%FT%TZ`.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_735_689_600, "2025-01-01T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds), text);
        }
    }
}
