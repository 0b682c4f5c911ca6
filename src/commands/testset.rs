//! `tanren testset`: positions whose exact values are known, for `tanren grade`.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::{UsageError, prepare_agent, print, progress, shipped_prior};
use crate::agents::AgentSpec;
use crate::game::Game;
use crate::games::{GameVisitor, with_game};
use crate::grade::{Built, Recipe, Source, build, parse_plies};
use crate::lab::{Progress, files};
use crate::solve::Exact;

/// Arguments of `tanren testset`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A built-in game or a rules file, of a game that always ends.
    game: String,

    /// Plies of the positions, first and last; each gets its even share.
    #[arg(long, value_name = "FIRST..LAST", default_value = "4..14", value_parser = parse_plies)]
    plies: RangeInclusive<u32>,

    /// How many positions.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    positions: u64,

    /// The file to write.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Take positions also from games of these agents against themselves, in turn with
    /// semi-random play.
    #[arg(long, value_name = "AGENT", num_args = 1..)]
    from: Vec<String>,

    /// Seed of all games.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Drop positions of which a value takes more nodes than this.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    nodes: u64,

    /// Number of threads [default: one a core]. Does not influence results.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,

    /// Show no progress.
    #[arg(long)]
    quiet: bool,
}

/// Makes the test set, writes it, and prints what it holds.
///
/// # Errors
/// A usage error if the game or an agent is not what it should be; otherwise if the
/// game cannot be solved or the file not be written.
pub fn run(args: Args) -> anyhow::Result<()> {
    if let Some(threads) = args.threads {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads.into())
            .build_global()?;
    }
    let game = args.game.clone();
    with_game(&game, Make(args)).map_err(UsageError::blame_name)?
}

struct Make(Args);

impl GameVisitor for Make {
    type Output = anyhow::Result<()>;

    fn visit<G: Game>(self, game: Arc<G>) -> anyhow::Result<()> {
        let Make(args) = self;
        let game = &*game;
        let specs = args.from.iter().map(|agent| {
            // The file separates columns by tabs, and sources by commas.
            ensure!(
                !agent.contains(['\t', '\n', ',']),
                "{agent:?}: a test set cannot name an agent with a tab, a line break or a comma"
            );
            Ok(agent.parse::<AgentSpec>()?)
        });
        let specs: Vec<AgentSpec> = specs
            .collect::<anyhow::Result<_>>()
            .map_err(UsageError::wrap)?;
        let agents = specs.iter().map(|spec| prepare_agent(game, spec));
        let agents = agents.collect::<anyhow::Result<Vec<_>>>()?;
        let from_agents = args
            .from
            .iter()
            .zip(&agents)
            .map(|(name, agent)| Source::agent(name, Box::new(|| agent.agent())));
        let sources: Vec<Source<G>> = [Source::semi_random()]
            .into_iter()
            .chain(from_agents)
            .collect();
        let prior = shipped_prior(game)?;
        let prior_name = if prior.is_some() { "model" } else { "none" };
        let prior = || prior.as_ref().map(|prior| prior.evaluator());

        let recipe = Recipe {
            plies: args.plies,
            positions: args.positions,
            seed: args.seed,
            nodes: args.nodes,
        };
        let mut bar = progress(args.quiet);
        bar.begin(0, args.positions, Duration::ZERO);
        let bar = Mutex::new(bar);
        let started = Instant::now();
        let built = build(game, &recipe, &sources, prior_name, &prior, &|solved| {
            show(&bar, solved.min(args.positions));
        });
        let built = built.context("there are no exact values to be had")?;
        drop(bar);
        ensure!(
            !built.set.positions.is_empty(),
            "no position was found and solved: no game lasts so long, or --nodes is too small"
        );
        files::write_atomically(&args.out, built.set.to_text(game).as_bytes())?;
        print(describe(&built, started.elapsed()))?;
        print(format_args!("test set  {}", args.out.display()))
    }
}

fn show(progress: &Mutex<Progress>, solved: u64) {
    let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
    progress.update(solved, None);
}

fn describe<G: Game>(built: &Built<G>, time: Duration) -> String {
    let Built { set, values, moves } = built;
    let count = |value| set.count(value);
    let mut text = format!(
        "{} positions: {} won, {} drawn, {} lost for the side to move\n\
         {} dropped because a value took more than {} nodes\n\
         {:.1} s; summed over the threads, values {:.1} s and {} nodes, those of the moves \
         {:.1} s and {} nodes on top",
        set.positions.len(),
        count(Exact::Win),
        count(Exact::Draw),
        count(Exact::Loss),
        set.provenance.dropped,
        set.provenance.nodes,
        time.as_secs_f64(),
        values.time.as_secs_f64(),
        values.nodes,
        moves.time.as_secs_f64(),
        moves.nodes
    );
    let asked = set.provenance.asked;
    if (set.positions.len() as u64) < asked {
        text += &format!(
            "\n{asked} were asked for: games do not lead to enough different positions of these plies"
        );
    }
    text
}
