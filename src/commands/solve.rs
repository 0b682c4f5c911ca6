//! `tanren solve`: the exact value of a position, and certificates of it.

use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use indicatif::ProgressBar;
use serde_json::json;

use super::{
    Interrupted, UsageError, position_or_start, print, print_error, shipped_prior, signals,
};
use crate::agents::AgentSpec;
use crate::game::{Game, Side};
use crate::games::leaper::Leaper;
use crate::games::{AnyGame, GameVisitor, load};
use crate::lab::files::{shell_word, write_atomically};
use crate::nets::device::Compute;
use crate::search::Evaluator;
use crate::solve::{Certificate, Exact, Limits, Options, Solver, certify, verify};

/// Arguments of `tanren solve`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A built-in game or a rules file; every line of play must end by itself.
    #[arg(required_unless_present = "verify")]
    game: Option<String>,
    /// The position [default: the start of the game].
    #[arg(long, value_name = "FEN")]
    position: Option<String>,
    /// Solve the position after each legal move as well.
    #[arg(long)]
    moves: bool,
    /// Whose judgement says what to look at first: an agent such as model:PATH, or
    /// none. No value depends on it [default: the model shipped for the game, if any].
    #[arg(long, value_name = "AGENT")]
    with: Option<String>,
    /// Give up after expanding so many positions.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    nodes: Option<u64>,
    /// Give up after so many seconds.
    #[arg(long, value_name = "S", value_parser = positive_seconds)]
    seconds: Option<Duration>,
    /// The most memory for the table of positions, in MiB.
    #[arg(
        long,
        value_name = "M",
        default_value_t = Options::default().table_mib as u32,
        value_parser = clap::value_parser!(u32).range(1..=1 << 20)
    )]
    table_mib: u32,
    /// Write the proof, move by move, to this file.
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// Check the proof in this file, by the rules alone.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["game", "position", "moves", "with", "nodes", "seconds", "certificate"]
    )]
    verify: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Show no progress.
    #[arg(long)]
    quiet: bool,
}

fn positive_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|&seconds: &f64| seconds > 0.0);
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "seconds are a number above 0, such as 10 or 0.5".to_string())
}

/// Solves, or verifies, and prints what comes of it.
///
/// # Errors
/// A usage error if the game, the position or the prior is not what it should be,
/// [`Interrupted`] after a signal; a failure if a certificate cannot be written, or
/// proves nothing.
pub fn run(args: Args) -> anyhow::Result<()> {
    if let Some(path) = &args.verify {
        return run_verify(path, args.json);
    }
    let name = args.game.as_deref().expect("clap asks for it");
    match (
        &args.certificate,
        load(name).map_err(UsageError::blame_name)?,
    ) {
        (None, game) => game.visit(args),
        (Some(path), AnyGame::Leaper(game)) => {
            args.solve(&*game, |work| work.write_certificate(path).map(Some))
        }
        (Some(_), AnyGame::ConnectFour(_)) => Err(UsageError::wrap(anyhow!(
            "--certificate: {name} is coded, and certificates are checked by the rules file of \
             a game; give a game that has one"
        ))),
    }
}

fn run_verify(path: &Path, json: bool) -> anyhow::Result<()> {
    let started = Instant::now();
    let certificate = Certificate::load(path)?;
    let verified =
        verify(&certificate).with_context(|| format!("{} proves nothing", path.display()))?;
    let claim = &certificate.claim;
    let seconds = started.elapsed().as_secs_f64();
    if json {
        return print(json!({
            "verified": true,
            "game": claim.game,
            "rules_sha256": claim.rules_sha256,
            "position": claim.start,
            "value": claim.value,
            "positions": verified.positions,
            "won_at_once": verified.won_at_once,
            "plies": verified.plies,
            "seconds": seconds,
        }));
    }
    print(format_args!(
        "verified   {} for the side to move\n\
         game       {}\n\
         rules      {} (SHA-256)\n\
         position   {}\n\
         checked    {} positions with all replies, {} won at once, at most {} plies\n\
         time       {seconds:.1} s",
        claim.value,
        claim.game,
        claim.rules_sha256,
        claim.start,
        verified.positions,
        verified.won_at_once,
        verified.plies
    ))
}

impl GameVisitor for Args {
    type Output = anyhow::Result<()>;

    fn visit<G: Game>(self, game: Arc<G>) -> anyhow::Result<()> {
        self.solve(&*game, |_| Ok(None))
    }
}

impl Args {
    /// Solves and prints. Then does what else is to be done, which may have something
    /// to say.
    fn solve<G: Game>(
        &self,
        game: &G,
        then: impl FnOnce(&mut Work<G>) -> anyhow::Result<Option<String>>,
    ) -> anyhow::Result<()> {
        let position = position_or_start(game, self.position.as_deref())?;
        let options = Options {
            table_mib: self.table_mib as usize,
            ..Options::default()
        };
        let prior = prior(game, self.with.as_deref())?;
        let solver = Solver::new(game, options, prior).map_err(UsageError::wrap)?;
        if !solver.is_exact() {
            print_error(format_args!(
                "warning: positions of {} are known by a hash of more than 100 bits, so that \
                 values are certain but for a chance of less than one in a million billion",
                game.name()
            ));
        }
        let stop = signals::stop_flag("stopping")?;
        let expanded = Arc::new(AtomicU64::new(0));
        let limits = Limits {
            nodes: self.nodes,
            time: self.seconds,
            stop: Some(stop.clone()),
            expanded: Some(expanded.clone()),
        };
        let mut work = Work {
            game,
            solver,
            position,
            limits,
        };
        let report = watched(&expanded, self.quiet, || work.report(self.moves));
        print(if self.json {
            report.json(game).to_string()
        } else {
            report.text(game)
        })?;
        let written = watched(&expanded, self.quiet, || then(&mut work));
        if stop.load(Ordering::Relaxed) {
            let why = "stopped before everything was known".to_string();
            return Err(Interrupted(why).into());
        }
        written?.map_or(Ok(()), |text| if self.json { Ok(()) } else { print(text) })
    }
}

/// A position to be solved.
struct Work<'a, G: Game> {
    game: &'a G,
    solver: Solver<'a, G>,
    position: G::Position,
    limits: Limits,
}

/// What was found out about it.
struct Report<M> {
    /// As [`Game::format_position`] writes it.
    position: String,
    drawing: String,
    to_move: Side,
    /// What ended the game, if it is over.
    ending: Option<&'static str>,
    value: Option<Exact>,
    /// Best play.
    line: Vec<M>,
    moves: Option<Vec<(M, Option<Exact>)>>,
    nodes: u64,
    seconds: f64,
}

impl<G: Game> Work<'_, G> {
    fn report(&mut self, with_moves: bool) -> Report<G::Move> {
        let started = Instant::now();
        let (game, position, limits) = (self.game, &self.position, &self.limits);
        let solution = self.solver.solve(position, limits);
        let mut nodes = solution.nodes;
        let left = |nodes: u64| Limits {
            nodes: limits.nodes.map(|limit| limit.saturating_sub(nodes)),
            time: limits
                .time
                .map(|time| time.saturating_sub(started.elapsed())),
            ..limits.clone()
        };
        let moves = with_moves.then(|| {
            let moves = self.solver.solve_moves(position, &left(nodes));
            nodes += self.solver.nodes();
            moves
        });
        let value = solution.value.or_else(|| value_of_moves(moves.as_deref()?));
        let line = match value {
            Some(_) => self.solver.line(position, &left(nodes)),
            None => Vec::new(),
        };
        nodes += if value.is_some() {
            self.solver.nodes()
        } else {
            0
        };
        Report {
            position: game.format_position(position),
            drawing: game.draw(position),
            to_move: game.side_to_move(position),
            ending: game.outcome(position).map(|_| game.ending(position)),
            value,
            line,
            moves,
            nodes,
            seconds: started.elapsed().as_secs_f64(),
        }
    }
}

impl Work<'_, Leaper> {
    /// Says what was written. The limits hold anew: what was proved before is known.
    fn write_certificate(&mut self, path: &Path) -> anyhow::Result<String> {
        let certificate = certify(self.game, &mut self.solver, &self.position, &self.limits)
            .context("cannot write a certificate")?;
        let bytes = certificate.to_bytes();
        write_atomically(path, &bytes)?;
        Ok(format!(
            "proof     {}: {} choices, {} bytes; check it with\n  tanren solve --verify {}",
            path.display(),
            certificate.choices.len(),
            bytes.len(),
            shell_word(&path.display().to_string())
        ))
    }
}

/// The value of a position whose moves have these, as far as they tell.
fn value_of_moves<M>(moves: &[(M, Option<Exact>)]) -> Option<Exact> {
    let values = moves.iter().map(|(_, value)| *value);
    match values.clone().flatten().max() {
        Some(Exact::Win) => Some(Exact::Win),
        best => best.filter(|_| values.clone().all(|value| value.is_some())),
    }
}

/// `unknown` where a limit was hit.
fn name(value: Option<Exact>) -> &'static str {
    value.map_or("unknown", Exact::name)
}

impl<M: Copy> Report<M> {
    fn json<G: Game<Move = M>>(&self, game: &G) -> serde_json::Value {
        let text = |&mv: &M| game.format_move(mv);
        let mut object = json!({
            "game": game.name(),
            "position": self.position,
            "value": name(self.value),
            "nodes": self.nodes,
            "seconds": self.seconds,
            "line": self.line.iter().map(text).collect::<Vec<_>>(),
        });
        if let Some(moves) = &self.moves {
            object["moves"] = moves
                .iter()
                .map(|(mv, value)| (text(mv), name(*value)))
                .collect();
        }
        object
    }

    fn text<G: Game<Move = M>>(&self, game: &G) -> String {
        let who = match self.to_move {
            Side::First => "the first player, to move",
            Side::Second => "the second player, to move",
        };
        let mut text = format!("{}\nposition  {}\n", self.drawing, self.position);
        let _ = match (self.value, self.ending) {
            (Some(value), Some(ending)) => {
                writeln!(
                    text,
                    "value     {value} for {who}: the game is over ({ending})"
                )
            }
            (Some(value), None) => writeln!(text, "value     {value} for {who}"),
            (None, _) => writeln!(text, "value     unknown: the search was not finished"),
        };
        if !self.line.is_empty() {
            let line = self.line.iter().map(|&mv| game.format_move(mv));
            let _ = writeln!(text, "line      {}", line.collect::<Vec<_>>().join(" "));
        }
        for (heading, value) in [
            ("winning", Some(Exact::Win)),
            ("drawing", Some(Exact::Draw)),
            ("losing", Some(Exact::Loss)),
            ("unknown", None),
        ] {
            let moves = self.moves.iter().flatten();
            let moves: Vec<String> = moves
                .filter(|(_, other)| *other == value)
                .map(|(mv, _)| game.format_move(*mv))
                .collect();
            if !moves.is_empty() {
                let _ = writeln!(text, "{heading:<8}  {}", moves.join(" "));
            }
        }
        let _ = write!(
            text,
            "searched  {} positions in {:.1} s",
            self.nodes, self.seconds
        );
        text
    }
}

/// How often progress is shown, on a terminal and in a log.
const SHOW_EVERY: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(10)];

/// Works, and meanwhile shows how many positions were expanded.
fn watched<T>(expanded: &AtomicU64, quiet: bool, work: impl FnOnce() -> T) -> T {
    if quiet {
        return work();
    }
    thread::scope(|scope| {
        let (done, is_done) = mpsc::channel();
        scope.spawn(move || show_progress(expanded, &is_done));
        let result = work();
        drop::<mpsc::Sender<()>>(done);
        result
    })
}

fn show_progress(expanded: &AtomicU64, is_done: &mpsc::Receiver<()>) {
    let [often, seldom] = SHOW_EVERY;
    let spinner = io::stderr().is_terminal().then(ProgressBar::new_spinner);
    let every = if spinner.is_some() { often } else { seldom };
    let started = Instant::now();
    while is_done.recv_timeout(every) == Err(mpsc::RecvTimeoutError::Timeout) {
        let nodes = expanded.load(Ordering::Relaxed);
        let seconds = started.elapsed().as_secs_f64();
        let status = format!(
            "{nodes} positions, {:.0} a second, {seconds:.0} s",
            nodes as f64 / seconds
        );
        match &spinner {
            Some(spinner) => spinner.set_message(status),
            None => print_error(status),
        }
    }
    if let Some(spinner) = spinner {
        spinner.finish_and_clear();
    }
}

/// What says what to look at first.
fn prior<G: Game>(game: &G, with: Option<&str>) -> anyhow::Result<Option<Box<dyn Evaluator<G>>>> {
    let prepared = match with {
        Some("none") => Ok(None),
        Some(text) => {
            let spec: AgentSpec = text.parse().map_err(UsageError::wrap)?;
            spec.prepare(game, &Compute::cpu())
                .with_context(|| format!("cannot judge by {spec}"))
                .map(Some)
        }
        None => shipped_prior(game).context("cannot judge by the shipped model"),
    };
    let prepared = prepared.map_err(UsageError::wrap)?;
    Ok(prepared.map(|agent| agent.evaluator()))
}
