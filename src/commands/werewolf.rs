//! `tanren werewolf`: simulate and watch games, and look at what was learned.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use clap::Subcommand;
use serde_json::json;

use super::{UsageError, print};
use crate::experiments::werewolf_q::TrainedPlayers;
use crate::lab::files;
use crate::random::{Rng, Seed};
use crate::stats::Proportion;
use crate::werewolf::company::{Company, Scratch, Seat};
use crate::werewolf::evaluation::uniform_village_wins;
use crate::werewolf::explain::explain;
use crate::werewolf::log::CsvLog;
use crate::werewolf::rules::{MAX_PLAYERS, Role, Rules};
use crate::werewolf::simulator::{Event, Game, Observer, Simulator, Uniform};
use crate::werewolf::story::Story;

/// Arguments of `tanren werewolf`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Play games in which every choice is uniform, and count who wins.
    Simulate {
        /// Number of games.
        #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
        games: u64,
        /// Number of players: 5, 11 or 15.
        #[arg(long, default_value_t = 11)]
        players: usize,
        /// Seed of the games.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Tell one game as a story.
    Watch {
        /// Seed of the game.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Number of players: 5, 11 or 15; a run brings its own.
        #[arg(long, default_value_t = 11, conflicts_with = "run")]
        players: usize,
        /// A run whose player O plays every role; otherwise all play at random.
        #[arg(long)]
        run: Option<PathBuf>,
        /// Also write the game as an AIWolf log.
        #[arg(long, value_name = "FILE")]
        log: Option<PathBuf>,
    },
    /// Print the paper's table 3 for the players of a run.
    Table {
        /// A run folder of the experiment `werewolf`, or its model folder.
        run: PathBuf,
        /// Games for each figure.
        #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
        games: u64,
        /// Seed of the games.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Leave out the reference players, which take most of the time.
        #[arg(long)]
        no_references: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print what player O of a run has learned for a role.
    Explain {
        /// A run folder of the experiment `werewolf`, or its model folder.
        run: PathBuf,
        /// villager, seer, medium, bodyguard, possessed or werewolf.
        #[arg(long)]
        role: Role,
        /// How many states to show of each decision, the most frequent first.
        #[arg(long, default_value_t = 5)]
        states: usize,
    },
}

/// Runs `tanren werewolf`; results go to stdout.
///
/// # Errors
/// If there are no such rules, or a run cannot be read.
pub fn run(args: Args) -> anyhow::Result<()> {
    match args.action {
        Action::Simulate {
            games,
            players,
            seed,
            json,
        } => simulate(games, players, seed, json),
        Action::Watch {
            seed,
            players,
            run,
            log,
        } => watch(seed, players, run.as_deref(), log.as_deref()),
        Action::Table {
            run,
            games,
            seed,
            no_references,
            json,
        } => {
            let table = TrainedPlayers::read(&run)?.table(Seed(seed), games, !no_references);
            if json {
                print(serde_json::to_string_pretty(&table)?)
            } else {
                print(table)
            }
        }
        Action::Explain { run, role, states } => {
            let players = TrainedPlayers::read(&run)?;
            let key = players.config.state_key(&players.simulator.rules);
            print(explain(&players.player_o, &key, role, states))
        }
    }
}

fn rules(players: usize) -> anyhow::Result<Rules> {
    Rules::for_players(players)
        .map_err(|message| UsageError::wrap(anyhow::anyhow!("--players: {message}")))
}

fn simulate(games: u64, players: usize, seed: u64, json: bool) -> anyhow::Result<()> {
    let simulator = Simulator::new(rules(players)?);
    let start = Instant::now();
    let village = uniform_village_wins(&simulator, games, Seed(seed));
    let games_per_second = games as f64 / start.elapsed().as_secs_f64();
    let share = Proportion::wilson(village as f64, games as f64);
    if json {
        return print(json!({
            "games": games,
            "village": share.score,
            "low": share.low,
            "high": share.high,
            "games_per_second": games_per_second,
        }));
    }
    let percent = |share: f64| 100.0 * share;
    let mut text = String::new();
    writeln!(
        text,
        "{games} games of {players} players, every choice uniform"
    )?;
    for (side, score, low, high) in [
        ("village", share.score, share.low, share.high),
        (
            "werewolves",
            1.0 - share.score,
            1.0 - share.high,
            1.0 - share.low,
        ),
    ] {
        let (score, low, high) = (percent(score), percent(low), percent(high));
        writeln!(text, "{side:<11} {score:.3}% ({low:.3}-{high:.3})")?;
    }
    write!(text, "{games_per_second:.0} games/s")?;
    print(text)
}

/// A story and a log of the same game.
struct Both {
    story: Story,
    log: CsvLog,
}

impl Observer for Both {
    fn notice(&mut self, game: &Game, event: Event) {
        self.story.notice(game, event);
        self.log.notice(game, event);
    }
}

fn watch(seed: u64, players: usize, run: Option<&Path>, log: Option<&Path>) -> anyhow::Result<()> {
    let seed = Seed(seed);
    let order = seed.stream("werewolf talk order");
    let mut both = Both {
        story: Story::default(),
        log: CsvLog::new(order),
    };
    let mut rng = seed.stream("werewolf watch");
    match run {
        Some(run) => watch_trained(&TrainedPlayers::read(run)?, &mut rng, &mut both),
        None => {
            let simulator = Simulator::new(rules(players)?);
            let deal = simulator.rules.deal(&mut rng);
            simulator.play_deal(deal, &mut Uniform::<true>, &mut rng, &mut both);
        }
    }
    if let Some(path) = log {
        let text = both.log.lines.join("\n") + "\n";
        files::write_atomically(path, text.as_bytes()).context("the log was not written")?;
    }
    print(both.story.lines.join("\n"))
}

fn watch_trained(trained: &TrainedPlayers, rng: &mut Rng, observer: &mut impl Observer) {
    let deal = trained.simulator.rules.deal(rng);
    let mut scratch = Scratch::default();
    let seats = [Seat::Learned(&trained.player_o); MAX_PLAYERS];
    let mut company = Company::playing(trained.policy(), seats, &mut scratch);
    trained
        .simulator
        .play_deal(deal, &mut company, rng, observer);
}
