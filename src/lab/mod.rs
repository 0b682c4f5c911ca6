//! The laboratory: experiments that run in steps.
//!
//! An [`Experiment`] says what a step is and what its state is. Everything
//! around that belongs to this folder: resolving the configuration
//! ([`config`]), the run folder ([`folder`]), checkpoints ([`checkpoint`]), the
//! metrics file, progress, stopping and resuming ([`runner`]). The laboratory
//! knows no game and no network.
//!
//! ```text
//! preset or file --config::resolve--> Resolved --RunFolder::create--> RunFolder --run--> Ending
//!                                       the folder of an earlier run --RunFolder::open--^
//! ```

pub mod checkpoint;
pub mod config;
pub mod files;
pub mod folder;
pub mod progress;
pub mod runner;

mod metrics;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use folder::RunFolder;
pub use metrics::Metrics;
pub use progress::Progress;
pub use runner::{Ending, Options, RunError};

/// Work in steps. The loop, the folder, progress, stopping and resuming belong
/// to the runner.
///
/// An experiment is exact if its state after a step depends on the
/// configuration, the seed and the state before alone, and if [`save`] and
/// [`load`] keep all of the state. Its results are then the same, bit for bit,
/// however often it is stopped and resumed.
///
/// [`save`]: Experiment::save
/// [`load`]: Experiment::load
pub trait Experiment: Sized {
    /// The name that configuration files give: `experiment = "value"`.
    const NAME: &'static str;

    /// Built-in configurations. The first says which keys there are.
    const PRESETS: &'static [Preset];

    /// The configuration: a plain struct with `deny_unknown_fields` and without
    /// optional fields, so that a resolved configuration hides nothing.
    type Config: Serialize + DeserializeOwned;

    /// Checks what the types of the configuration do not.
    ///
    /// # Errors
    /// A message that starts with the key and says what would be accepted, such
    /// as `batch = 0 is out of range: accepted are 1 to 65536`.
    fn validate(config: &Self::Config) -> anyhow::Result<()>;

    /// Checks the files that the start of a run reads and a resume does not. Most
    /// experiments have none.
    ///
    /// # Errors
    /// As [`Experiment::validate`].
    fn validate_inputs(_config: &Self::Config) -> anyhow::Result<()> {
        Ok(())
    }

    /// Number of steps of a whole run.
    fn steps(config: &Self::Config) -> u64;

    /// The state before the first step.
    ///
    /// # Errors
    /// If the experiment cannot start, for example without its device.
    fn start(config: &Self::Config, setup: &Setup) -> anyhow::Result<Self>;

    /// The state that [`Experiment::save`] wrote into `directory`. The files in
    /// it have been checked against their hashes.
    ///
    /// # Errors
    /// If the experiment cannot go on from there.
    fn load(config: &Self::Config, setup: &Setup, directory: &Path) -> anyhow::Result<Self>;

    /// Writes all of the state into `directory`, which is empty: weights,
    /// optimiser, replay, generators, counters.
    ///
    /// # Errors
    /// If a file cannot be written; names it.
    fn save(&self, directory: &Path) -> anyhow::Result<()>;

    /// What the person should see before the first step, in lines: the network,
    /// the number of parameters, the device.
    fn describe(&self) -> String;

    /// Facts for `about.json` that the configuration does not tell, such as the
    /// device that `auto` became.
    fn about(&self) -> BTreeMap<String, String>;

    /// Does one step. Long work uses all cores; a panic of a worker ends the run
    /// with the worker's message.
    ///
    /// # Errors
    /// If the run cannot go on; it can be resumed from its last checkpoint.
    fn step(&mut self, metrics: &mut Metrics) -> anyhow::Result<()>;

    /// Writes the results, such as the model folder, after the last step. May be
    /// called again, after a kill, where it has already written some of them.
    ///
    /// # Errors
    /// If a result cannot be made or written.
    fn finish(self, run: &FinishedRun) -> anyhow::Result<Report>;
}

/// A built-in configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// The name by which commands know it.
    pub name: &'static str,
    /// One line for people: what it trains and how long that takes.
    pub about: &'static str,
    /// A complete configuration file: `experiment = "..."` and every key.
    pub toml: &'static str,
}

/// What an experiment is given beside its configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// The root of all randomness of the run.
    pub seed: u64,
    /// The device as the user wrote it: `auto`, `cpu`, `gpu`, `gpu:1`.
    pub device: String,
}

/// A run whose steps are all done, for [`Experiment::finish`].
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedRun {
    /// The run folder.
    pub folder: PathBuf,
    /// Wall-clock time of all steps, in seconds, over all resumes.
    pub seconds: f64,
}

impl FinishedRun {
    /// Where the model folder belongs.
    pub fn model_dir(&self) -> PathBuf {
        self.folder.join(folder::MODEL)
    }
}

/// What a finished run has to say.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// For programs: becomes `summary.json`.
    pub summary: serde_json::Value,
    /// For the person, in lines.
    pub text: String,
}

/// An experiment of any type, for tables of experiments.
#[derive(Debug)]
pub struct AnyExperiment {
    /// See [`Experiment::NAME`].
    pub name: &'static str,
    /// See [`Experiment::PRESETS`].
    pub presets: &'static [Preset],
    canonical: config::Canonical,
    validate_inputs: config::ValidateInputs,
    run: runner::Run,
}

impl AnyExperiment {
    /// Erases the type of an experiment.
    pub const fn of<E: Experiment>() -> AnyExperiment {
        AnyExperiment {
            name: E::NAME,
            presets: E::PRESETS,
            canonical: config::canonical::<E>,
            validate_inputs: config::validate_inputs::<E>,
            run: runner::run::<E>,
        }
    }
}
