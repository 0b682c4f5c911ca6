//! The command line: one file a subcommand, each with its `Args` and a `run`
//! that calls the library and prints.
//!
//! Results go to standard output through [`print()`], progress and errors to
//! standard error. Exit codes: 0 for success, 1 for a failure, 2 for a usage
//! error, 130 for a run that was stopped by a signal.

pub mod compare;
pub mod devices;
pub mod export;
pub mod games;
pub mod grade;
pub mod r#match;
pub mod play;
pub mod presets;
pub mod report;
pub mod search;
pub mod serve;
pub mod solve;
pub mod testset;
pub mod train;
pub mod werewolf;

mod signals;

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::{Parser, Subcommand};

use crate::agents::{AgentError, AgentSpec, Effort, ModelSource, PreparedAgent};
use crate::game::Game;
use crate::games::GameError;
use crate::lab::Progress;
use crate::nets::device::Compute;

/// Train, measure and play game agents.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run an experiment, such as training a network, or go on with one.
    Train(train::Args),
    /// Train architectures at an equal budget and play them off.
    Compare(compare::Args),
    /// List the built-in configurations, or show one.
    Presets(presets::Args),
    /// Lay runs side by side: a table, and a page with learning curves.
    Report(report::Args),
    /// Write a network as a file for other programs, with a certificate.
    Export(export::Args),
    /// List, show and check games.
    Games(games::Args),
    /// Play agents against each other and measure how strong they are.
    Match(r#match::Args),
    /// Make a set of positions whose exact values are known.
    Testset(testset::Args),
    /// Measure agents against exact values: signs, blunders, calibration.
    Grade(grade::Args),
    /// Play a game against an agent, in the terminal.
    Play(play::Args),
    /// Play in the browser, see what a network sees, and watch training.
    Serve(serve::Args),
    /// Show what a search finds, and how many positions it visits.
    Search(search::Args),
    /// Find out who wins a position if nobody errs, and prove it.
    Solve(solve::Args),
    /// Simulate Werewolf, watch games, and see what players have learned.
    Werewolf(werewolf::Args),
    /// List the devices that networks can run on.
    Devices(devices::Args),
}

impl Cli {
    /// Does what the command line says.
    ///
    /// # Errors
    /// Whatever went wrong; [`report()`] tells the person.
    pub fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Train(args) => train::run(args),
            Command::Compare(args) => compare::run(args),
            Command::Presets(args) => presets::run(args),
            Command::Report(args) => report::run(args),
            Command::Export(args) => export::run(args),
            Command::Games(args) => games::run(args),
            Command::Match(args) => r#match::run(args),
            Command::Testset(args) => testset::run(args),
            Command::Grade(args) => grade::run(args),
            Command::Play(args) => play::run(args),
            Command::Serve(args) => serve::run(args),
            Command::Search(args) => search::run(args),
            Command::Solve(args) => solve::run(args),
            Command::Werewolf(args) => werewolf::run(args),
            Command::Devices(args) => devices::run(args),
        }
    }
}

/// The command line asks for something that does not exist or make sense.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct UsageError(anyhow::Error);

impl UsageError {
    /// Marks an error as the fault of the command line.
    pub fn wrap(error: impl Into<anyhow::Error>) -> anyhow::Error {
        UsageError(error.into()).into()
    }

    /// A game that does not exist is the fault of the command line; one with
    /// wrong rules is a failure.
    pub fn blame_name(error: GameError) -> anyhow::Error {
        match error {
            GameError::Unknown { .. } => UsageError::wrap(error),
            _ => error.into(),
        }
    }
}

/// The position that `--position` gives, or the start of the game.
fn position_or_start<G: Game>(game: &G, text: Option<&str>) -> anyhow::Result<G::Position> {
    match text {
        Some(text) => game
            .parse_position(text)
            .with_context(|| format!("--position {text:?}"))
            .map_err(UsageError::wrap),
        None => Ok(game.start()),
    }
}

/// Like [`position_or_start`], for those who need a move to make.
fn open_position<G: Game>(game: &G, text: Option<&str>) -> anyhow::Result<G::Position> {
    let position = position_or_start(game, text)?;
    if game.outcome(&position).is_some() {
        let ending = game.ending(&position);
        let why = anyhow!("--position: the game is over there ({ending}); give one with moves");
        return Err(UsageError::wrap(why));
    }
    Ok(position)
}

/// Loads an agent, onto the CPU: where single positions are judged, a GPU would only
/// wait.
fn prepare_agent<'a, G: Game>(
    game: &'a G,
    spec: &AgentSpec,
) -> anyhow::Result<PreparedAgent<'a, G>> {
    spec.prepare(game, &Compute::cpu())
        .with_context(|| format!("cannot play as {spec}"))
        .map_err(UsageError::wrap)
}

/// The model that is shipped for a game, for solvers to go by.
fn shipped_prior<G: Game>(game: &G) -> anyhow::Result<Option<PreparedAgent<'_, G>>> {
    let shipped = AgentSpec::Model(ModelSource::Shipped, Effort::Plies(1));
    match shipped.prepare(game, &Compute::cpu()) {
        Ok(agent) => Ok(Some(agent)),
        Err(AgentError::NotShipped { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Progress on standard error, unless somebody wants none.
fn progress(quiet: bool) -> Progress {
    if quiet {
        Progress::quiet()
    } else {
        Progress::on_stderr()
    }
}

/// The person stopped the command, which is no fault. Says how to go on.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Interrupted(pub String);

/// Prints a line of results. Unlike `println!` it does not panic when the reader
/// is gone.
///
/// # Errors
/// If the text cannot be written.
pub fn print(text: impl Display) -> anyhow::Result<()> {
    let mut output = io::stdout().lock();
    let written = writeln!(output, "{text}").and_then(|()| output.flush());
    written.context("cannot write to standard output")
}

/// Prints an error and its causes, and chooses the exit code. That the reader of
/// the results has seen enough, as after `| head`, is no error.
pub fn report(error: &anyhow::Error) -> ExitCode {
    if error.chain().any(is_broken_pipe) {
        return ExitCode::SUCCESS;
    }
    if error.is::<Interrupted>() {
        print_error(error);
        return ExitCode::from(EXIT_INTERRUPTED);
    }
    print_error(format!("error: {error}"));
    for cause in error.chain().skip(1) {
        print_error(format!("  because: {cause}"));
    }
    ExitCode::from(if error.is::<UsageError>() { 2 } else { 1 })
}

/// As shells report a program that Ctrl-C ended: 128 and the number of SIGINT.
const EXIT_INTERRUPTED: u8 = 130;

fn is_broken_pipe(cause: &(dyn std::error::Error + 'static)) -> bool {
    let cause = cause.downcast_ref::<io::Error>();
    cause.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Prints a line on standard error.
fn print_error(text: impl Display) {
    // Without a reader there is nobody to tell that there is no reader.
    let _ = writeln!(io::stderr(), "{text}");
}
