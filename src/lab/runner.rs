//! The loop around an [`Experiment`]: start or resume, step, record, save, finish.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::checkpoint::{self, Checkpoint, Damage, Standing};
use super::config;
use super::files::{self, FileError};
use super::folder::{CHECKPOINTS, METRICS, RunFolder, SUMMARY};
use super::metrics::MetricsLog;
use super::{Experiment, FinishedRun, Metrics, Progress};
use crate::hash::sha256_hex;

/// How to run. Nothing here influences results.
#[derive(Debug)]
pub struct Options<'a> {
    /// A checkpoint is written after the first step that ends this long after
    /// the checkpoint before.
    pub checkpoint_every: Duration,
    /// Once true, the run writes a checkpoint after the current step and ends.
    pub stop: &'a AtomicBool,
    /// Where progress is shown.
    pub progress: Progress,
}

/// How a run ended that did not fail.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// All steps are done and the results are written.
    Finished {
        /// For the person, see [`Report::text`](super::Report::text).
        text: String,
    },
    /// It was told to stop, and has written a checkpoint.
    Stopped {
        /// Number of steps done.
        step: u64,
        /// Number of steps of the whole run.
        steps: u64,
    },
}

/// Why a run ended early. Its last checkpoint is valid.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An operation on a file of the runner failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The experiment returned an error.
    #[error("{doing} failed")]
    Experiment {
        /// What it was doing.
        doing: String,
        /// Its error.
        source: anyhow::Error,
    },
    /// The experiment or one of its workers panicked.
    #[error("{doing} panicked: {message}")]
    Panic {
        /// What it was doing.
        doing: String,
        /// What the panic said.
        message: String,
    },
    /// There are checkpoints, and all of them are damaged.
    #[error("no checkpoint is usable, so the run has to start anew in another folder:\n  {}", lines(.0))]
    AllDamaged(Vec<Damage>),
    /// `config.toml` is not the one that the checkpoint was made with.
    #[error("{} has changed since step {step}; undo the change, or start a new run with this configuration", config.display())]
    ConfigChanged {
        /// The configuration file.
        config: PathBuf,
        /// The step of the checkpoint.
        step: u64,
    },
}

fn lines(damaged: &[Damage]) -> String {
    damaged
        .iter()
        .map(Damage::to_string)
        .collect::<Vec<_>>()
        .join("\n  ")
}

/// [`run`] for some experiment.
pub(super) type Run = fn(&mut RunFolder, Options<'_>) -> Result<Ending, RunError>;

/// Runs `E` in `folder`, see [`RunFolder::run`].
pub(super) fn run<E: Experiment>(
    folder: &mut RunFolder,
    options: Options<'_>,
) -> Result<Ending, RunError> {
    let mut session = Session::<E>::open(folder, options)?;
    while session.step < session.steps && !session.options.stop.load(Ordering::Relaxed) {
        session.advance()?;
    }
    session.save()?;
    if session.options.stop.load(Ordering::Relaxed) {
        return Ok(Ending::Stopped {
            step: session.step,
            steps: session.steps,
        });
    }
    session.finish()
}

/// The work of one process on a run.
struct Session<'a, E> {
    experiment: E,
    step: u64,
    steps: u64,
    clock: Clock,
    log: MetricsLog,
    /// Names of metrics about which the person has been warned.
    not_finite: BTreeSet<String>,
    last_save: Instant,
    /// The step of the newest checkpoint.
    saved_step: Option<u64>,
    folder: PathBuf,
    config_sha256: String,
    options: Options<'a>,
}

impl<'a, E: Experiment> Session<'a, E> {
    /// Takes up the run at its newest checkpoint, or at its start.
    fn open(folder: &mut RunFolder, mut options: Options<'a>) -> Result<Session<'a, E>, RunError> {
        let started = Instant::now();
        let config = config::parse_canonical::<E>(&folder.config().toml);
        let config_sha256 = sha256_hex(folder.config().toml.as_bytes());
        let checkpoint = find_checkpoint(folder, &config_sha256, &options.progress)?;
        let setup = folder.setup();
        let (experiment, standing) = match checkpoint {
            Some(Checkpoint { standing, state }) => {
                let doing = format!("going on from {}", state.display());
                (
                    guarded(doing, || E::load(&config, &setup, &state))?,
                    Some(standing),
                )
            }
            None => (guarded("the start", || E::start(&config, &setup))?, None),
        };
        let (saved_step, before, metrics_bytes) = match &standing {
            Some(standing) => (
                Some(standing.step),
                standing.seconds,
                standing.metrics_bytes,
            ),
            None => (None, 0.0, 0),
        };
        let step = saved_step.unwrap_or(0);
        let log = MetricsLog::open(&folder.path().join(METRICS), metrics_bytes)?;
        folder.add_session(step, experiment.about())?;
        options.progress.note(&experiment.describe());
        let (steps, clock) = (E::steps(&config), Clock { before, started });
        options
            .progress
            .begin(step, steps, Duration::from_secs_f64(clock.seconds()));
        Ok(Session {
            experiment,
            step,
            steps,
            clock,
            log,
            not_finite: BTreeSet::new(),
            last_save: Instant::now(),
            saved_step,
            folder: folder.path().to_path_buf(),
            config_sha256,
            options,
        })
    }

    /// Does one step, records it, and saves if it is time to.
    fn advance(&mut self) -> Result<(), RunError> {
        let mut metrics = Metrics::default();
        let doing = format!("step {}", self.step + 1);
        guarded(doing, || self.experiment.step(&mut metrics))?;
        self.step += 1;
        self.log.append(self.step, self.clock.seconds(), &metrics)?;
        self.show(metrics);
        if self.last_save.elapsed() >= self.options.checkpoint_every {
            self.save()?;
        }
        Ok(())
    }

    fn show(&mut self, mut metrics: Metrics) {
        for (name, value) in metrics.values() {
            if !value.is_finite() && self.not_finite.insert(name.clone()) {
                let text = format!(
                    "`{name}` is {value} at step {}; {METRICS} has null there",
                    self.step
                );
                self.options.progress.warn(&text);
            }
        }
        for note in metrics.notes() {
            self.options.progress.note(note);
        }
        self.options
            .progress
            .update(self.step, metrics.take_status());
    }

    /// Writes a checkpoint, unless this step has one.
    fn save(&mut self) -> Result<(), RunError> {
        if self.saved_step == Some(self.step) {
            return Ok(());
        }
        let standing = Standing {
            step: self.step,
            seconds: self.clock.seconds(),
            metrics_bytes: self.log.sync()?,
            config_sha256: self.config_sha256.clone(),
        };
        guarded(format!("saving step {}", self.step), || {
            let save = |directory: &_| self.experiment.save(directory);
            checkpoint::write(&self.folder.join(CHECKPOINTS), &standing, save)
        })?;
        self.saved_step = Some(self.step);
        self.last_save = Instant::now();
        Ok(())
    }

    /// Writes the results. The summary is last: where it is, all else is.
    fn finish(self) -> Result<Ending, RunError> {
        let run = FinishedRun {
            folder: self.folder,
            seconds: self.clock.seconds(),
        };
        let report = guarded("writing the results", || self.experiment.finish(&run))?;
        let summary = format!("{:#}\n", report.summary);
        files::write_atomically(&run.folder.join(SUMMARY), summary.as_bytes())?;
        Ok(Ending::Finished { text: report.text })
    }
}

/// Wall-clock time of a run, over all its sessions.
struct Clock {
    /// Of the sessions before, in seconds.
    before: f64,
    started: Instant,
}

impl Clock {
    fn seconds(&self) -> f64 {
        self.before + self.started.elapsed().as_secs_f64()
    }
}

/// The newest usable checkpoint, with a warning about each newer one.
fn find_checkpoint(
    folder: &RunFolder,
    config_sha256: &str,
    progress: &Progress,
) -> Result<Option<Checkpoint>, RunError> {
    let metrics = folder.path().join(METRICS);
    let found = checkpoint::newest(&folder.path().join(CHECKPOINTS), &metrics)?;
    let Some(checkpoint) = found.checkpoint else {
        return if found.damaged.is_empty() {
            Ok(None)
        } else {
            Err(RunError::AllDamaged(found.damaged))
        };
    };
    let step = checkpoint.standing.step;
    if checkpoint.standing.config_sha256 != config_sha256 {
        let config = folder.path().join(super::folder::CONFIG);
        return Err(RunError::ConfigChanged { config, step });
    }
    for damage in found.damaged {
        progress.warn(&format!("{damage}; going on from step {step} instead"));
    }
    Ok(Some(checkpoint))
}

/// Calls the experiment so that a panic, in it or in a worker of its, becomes an
/// error like any other. The experiment must not be used after one.
fn guarded<T>(
    doing: impl Display,
    work: impl FnOnce() -> anyhow::Result<T>,
) -> Result<T, RunError> {
    // The state may be broken after a panic; every caller gives it up then.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(|source| RunError::Experiment {
            doing: doing.to_string(),
            source,
        }),
        Err(panic) => Err(RunError::Panic {
            doing: doing.to_string(),
            message: message(&*panic),
        }),
    }
}

/// The text of a panic.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_string())
}
