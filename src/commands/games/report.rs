//! `tanren games report`: what an inventor wants to know of a game.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;

use crate::agents::{Agent, AgentSpec, MaterialAgent, NetworkAgent, PreparedAgent, RandomAgent};
use crate::arena::AgentFactory;
use crate::commands::{UsageError, prepare_agent, progress, shipped_prior};
use crate::game::Game;
use crate::games::{GameVisitor, with_game};
use crate::grade::{DesignReport, FirstMove, PlayReport, measure_play, solve_start};
use crate::lab::{Progress, files};
use crate::random::Seed;
use crate::report::{design_page, design_text};

/// Arguments of `tanren games report`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A built-in game or a rules file.
    game: String,

    /// The network that plays: `model:PATH`, or `model:PATH@3` for 3 plies [default: the
    /// one shipped for the game].
    #[arg(long, value_name = "MODEL")]
    with: Option<String>,

    /// Games of each agent against itself.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    games: u64,

    /// Seed of the games.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Nodes that the exact value of the start may take, and that of each first move.
    #[arg(long, value_name = "N", default_value_t = 5_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    nodes: u64,

    /// Write a page with plots.
    #[arg(long, value_name = "FILE.html")]
    html: Option<PathBuf>,

    /// Print JSON.
    #[arg(long)]
    json: bool,

    /// Show no progress.
    #[arg(long)]
    quiet: bool,
}

/// Plays, solves, and prints the report.
///
/// # Errors
/// A usage error if the game or the network is not what it should be; otherwise if the
/// page cannot be written.
pub fn run(args: Args, out: &mut impl Write) -> anyhow::Result<()> {
    let with = args.with.as_deref().map(str::parse::<AgentSpec>);
    let with = with.transpose().map_err(UsageError::wrap)?;
    if with
        .as_ref()
        .is_some_and(|spec| !matches!(spec, AgentSpec::Model(..)))
    {
        let why = anyhow!("--with takes a network: model:PATH, with its model folder");
        return Err(UsageError::wrap(why));
    }
    let game = args.game.clone();
    let (text, page) =
        with_game(&game, Measure { args: &args, with }).map_err(UsageError::blame_name)??;
    writeln!(out, "{}", text.trim_end())?;
    if let Some(path) = &args.html {
        files::write_atomically(path, page.as_bytes())?;
        if !args.json {
            writeln!(out, "\nreport  {}", path.display())?;
        }
    }
    Ok(())
}

struct Measure<'a> {
    args: &'a Args,
    with: Option<AgentSpec>,
}

impl GameVisitor for Measure<'_> {
    /// What to print, and the page.
    type Output = anyhow::Result<(String, String)>;

    fn visit<G: Game>(self, game: Arc<G>) -> anyhow::Result<(String, String)> {
        let Measure { args, with } = self;
        let game = &*game;
        let network = match &with {
            Some(spec) => Some(prepare_agent(game, spec)?),
            None => shipped_prior(game)?,
        };
        let mut moves = Vec::new();
        game.legal_moves(&game.start(), &mut moves);
        let mut bar = progress(args.quiet);
        let play = measure_all(game, network.as_ref(), args, &mut bar);
        let prior = network.as_ref().map(|network| network.evaluator());
        let played = play.len() as u64;
        let (exact, exact_moves) = solve_start(game, args.nodes, prior, |sought| {
            bar.update(played + sought, Some("solving".to_string()));
        });
        let solved = moves.len() as u64 + 1;
        bar.update(played + solved, Some("done".to_string()));
        drop(bar);
        let judged = network.as_ref().map(|network| {
            let mut agent = NetworkAgent::new("network", network.evaluator());
            agent.move_values(game, &game.start())
        });
        // All of them are in the order of the rules.
        let first_moves = moves.iter().zip(exact_moves).enumerate();
        let first_moves = first_moves.map(|(number, (&mv, exact))| FirstMove {
            mv: game.format_move(mv),
            network: judged.as_ref().map(|judged| judged[number].1.get()),
            exact,
        });
        let report = DesignReport {
            game: game.name().to_string(),
            title: game.title().to_string(),
            start: game.format_position(&game.start()),
            seed: args.seed,
            play,
            no_network: network.is_none().then(|| {
                format!(
                    "No network is shipped for {}, so strong play is missing here: train one with \
                     tanren train --set game={}, and give its model folder with --with model:PATH.",
                    game.name(),
                    files::shell_word(&args.game)
                )
            }),
            exact,
            first_moves: first_moves.collect(),
        };
        let text = if args.json {
            serde_json::to_string(&report)?
        } else {
            design_text(&report)
        };
        Ok((text, design_page(&report).html()))
    }
}

/// Self-play of BabyAI, EasyAI and the network, in this order.
fn measure_all<G: Game>(
    game: &G,
    network: Option<&PreparedAgent<G>>,
    args: &Args,
    bar: &mut Progress,
) -> Vec<PlayReport> {
    let random = || -> Box<dyn Agent<G>> { Box::new(RandomAgent) };
    let easy = || -> Box<dyn Agent<G>> { Box::new(MaterialAgent::easy()) };
    let net = network.map(|network| move || network.agent());
    let name = args.with.as_deref().unwrap_or("model");
    let mut agents: Vec<(&str, &AgentFactory<G>)> = vec![("random", &random), ("easy", &easy)];
    agents.extend(net.as_ref().map(|net| (name, net as &AgentFactory<G>)));
    let streams = Seed(args.seed).purpose("games report");
    // The solver's steps follow: the start, and each first move.
    let solved = 1 + game.count_legal_moves(&game.start());
    bar.begin(0, agents.len() as u64 + solved, Duration::ZERO);
    let play = (0..).zip(agents).map(|(number, (name, agent))| {
        let report = measure_play(game, name, agent, args.games, streams, number);
        bar.update(number + 1, Some(format!("{name} has played")));
        report
    });
    play.collect()
}
