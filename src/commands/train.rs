//! `tanren train`: starts the run of an experiment, or goes on with one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::experiments::EXPERIMENTS;
use crate::lab::files::shell_word;
use crate::lab::folder::{FolderError, MODEL, REPORT, SUMMARY};
use crate::lab::{Ending, Options, RunError, RunFolder, Setup, config};
use crate::nets::device::DeviceRequest;

use super::{Interrupted, UsageError, print, progress, signals};

/// Where run folders go that are not given a place.
const RUNS: &str = "runs";

/// Arguments of `tanren train`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A preset (see `tanren presets`) or a TOML file.
    #[arg(default_value = "march-blitz")]
    config: String,

    /// Go on with the run in this folder.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["config", "set", "seed", "out"])]
    resume: Option<PathBuf>,

    #[command(flatten)]
    run: RunArgs,
}

/// Arguments of every command that runs an experiment.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// Override a key of the configuration, for example `--set net.kind=conv`.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) set: Vec<String>,

    /// cpu, gpu, gpu:N for the N-th of `tanren devices`, or auto: the fastest of
    /// them that computes rightly [default: auto; with --resume the same as before].
    #[arg(long)]
    device: Option<String>,

    /// The root of all randomness: the same configuration and seed give the same run.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// The run folder [default: runs/CONFIG-1, or the next number that is free].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Save at least this often. Does not influence results.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    checkpoint_seconds: u64,

    /// Number of threads [default: one a core]. Does not influence results.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,

    /// Show no progress.
    #[arg(long)]
    quiet: bool,
}

/// Runs the experiment to its end or until a signal.
///
/// # Errors
/// A usage error if the configuration or a folder is not what it should be,
/// [`Interrupted`] after a signal, otherwise what made the run fail.
pub fn run(args: Args) -> anyhow::Result<()> {
    run_experiment(&args.config, args.resume, args.run)
}

/// Starts the run of a configuration, or goes on with the one in `resume`, and
/// prints what comes of it.
pub(super) fn run_experiment(
    config: &str,
    resume: Option<PathBuf>,
    args: RunArgs,
) -> anyhow::Result<()> {
    let stop = signals::stop_flag("stopping after this step")?;
    if let Some(threads) = args.threads {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads.into())
            .build_global()?;
    }
    let checkpoint_every = Duration::from_secs(args.checkpoint_seconds);
    let progress = progress(args.quiet);
    let mut folder = open(config, resume, args)?;
    if folder.is_finished() {
        print(format_args!(
            "{} is finished already",
            folder.path().display()
        ))?;
        return print_places(folder.path());
    }
    let options = Options {
        checkpoint_every,
        stop: &stop,
        progress,
    };
    let resume = format!(
        "tanren train --resume {}",
        shell_word(&folder.path().display().to_string())
    );
    let ending = folder.run(options).map_err(|error| match error {
        // These say themselves what to do.
        RunError::AllDamaged(_) | RunError::ConfigChanged { .. } => error.into(),
        _ => anyhow::Error::from(error).context(format!(
            "the run ended early; when the cause is removed, go on with\n  {resume}"
        )),
    })?;
    match ending {
        Ending::Stopped { step, steps } => {
            let text =
                format!("stopped and saved after step {step} of {steps}; go on with\n  {resume}");
            Err(Interrupted(text).into())
        }
        Ending::Finished { text } => {
            print(text.trim_end())?;
            print_places(folder.path())
        }
    }
}

/// The folder of the new run, or of the one to go on with.
fn open(config: &str, resume: Option<PathBuf>, args: RunArgs) -> anyhow::Result<RunFolder> {
    if let Some(device) = &args.device {
        // Before there is a run folder: a missing device should leave nothing behind.
        device
            .parse::<DeviceRequest>()
            .map_err(UsageError::wrap)?
            .check_exists()?;
    }
    if let Some(path) = resume {
        let mut folder = RunFolder::open(&path, EXPERIMENTS).map_err(blame)?;
        if let Some(device) = args.device {
            folder.set_device(device);
        }
        return Ok(folder);
    }
    let config = config::resolve(EXPERIMENTS, config, &args.set).map_err(UsageError::wrap)?;
    let device = args.device.unwrap_or_else(|| "auto".to_string());
    let setup = Setup {
        seed: args.seed,
        device,
    };
    match args.out {
        Some(path) => RunFolder::create(&path, config, setup),
        None => RunFolder::create_next(Path::new(RUNS), config, setup),
    }
    .map_err(blame)
}

/// A folder that is not what the person took it for is a usage error.
fn blame(error: FolderError) -> anyhow::Error {
    match error {
        FolderError::NotEmpty(_) | FolderError::NoRun { .. } => UsageError::wrap(error),
        _ => error.into(),
    }
}

fn print_places(folder: &Path) -> anyhow::Result<()> {
    print(format_args!("run      {}", folder.display()))?;
    for (what, name) in [("model", MODEL), ("report", REPORT), ("summary", SUMMARY)] {
        let path = folder.join(name);
        if path.exists() {
            print(format_args!("{what:7}  {}", path.display()))?;
        }
    }
    Ok(())
}
