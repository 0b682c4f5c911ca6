//! `tanren grade`: agents measured against exact values.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use serde_json::json;

use super::r#match::agents_help;
use super::{UsageError, prepare_agent, print};
use crate::agents::AgentSpec;
use crate::game::Game;
use crate::games::{GameVisitor, with_game};
use crate::grade::{Grade, TestSet, grade, references};
use crate::lab::files;
use crate::report::grades_text;
use crate::solve::Exact;

/// Arguments of `tanren grade`.
#[derive(Debug, clap::Args)]
#[command(after_help = agents_help())]
pub struct Args {
    /// Whom to measure.
    #[arg(required = true, value_name = "AGENT")]
    agents: Vec<String>,

    /// A built-in game or a rules file.
    #[arg(long, default_value = "march-blitz")]
    game: String,

    /// Positions from `tanren testset` [default: the set that is shipped for the game].
    #[arg(long, value_name = "FILE")]
    testset: Option<PathBuf>,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Measures the agents and prints what came of it.
///
/// # Errors
/// A usage error if the game, an agent or the test set is not what it should be.
pub fn run(args: Args) -> anyhow::Result<()> {
    let specs = args.agents.iter().map(|agent| agent.parse());
    let specs: Vec<AgentSpec> = specs.collect::<Result<_, _>>().map_err(UsageError::wrap)?;
    let game = args.game.clone();
    with_game(&game, Measure { args, specs }).map_err(UsageError::blame_name)?
}

struct Measure {
    args: Args,
    specs: Vec<AgentSpec>,
}

impl GameVisitor for Measure {
    type Output = anyhow::Result<()>;

    fn visit<G: Game>(self, game: Arc<G>) -> anyhow::Result<()> {
        let Measure { args, specs } = self;
        let game = &*game;
        let set = read_set(game, &args)?;
        let grades = args.agents.iter().zip(&specs).map(|(name, spec)| {
            let agent = prepare_agent(game, spec)?;
            let forecasts = matches!(spec, AgentSpec::Model(..));
            Ok(grade(game, &set, name, &|| agent.agent(), forecasts))
        });
        let grades: Vec<Grade> = grades.collect::<anyhow::Result<_>>()?;
        let references = references(game, &set);
        if args.json {
            return print(json!({
                "game": game.name(),
                "test_set": set.provenance,
                "positions": set.positions.len(),
                "won": set.count(Exact::Win),
                "drawn": set.count(Exact::Draw),
                "lost": set.count(Exact::Loss),
                "grades": grades,
                "references": references,
            }));
        }
        let all: Vec<Grade> = grades.into_iter().chain(references).collect();
        print(format_args!(
            "{}: {} exactly solved positions of plies {}, {} of them won for the side to move\n",
            game.name(),
            set.positions.len(),
            plies(&set),
            set.count(Exact::Win),
        ))?;
        print(grades_text(&all).trim_end())
    }
}

fn read_set<G: Game>(game: &G, args: &Args) -> anyhow::Result<TestSet<G>> {
    let Some(path) = &args.testset else {
        return TestSet::shipped(game).ok_or_else(|| {
            UsageError::wrap(anyhow!(
                "no test set is shipped for {}; make one with\n  tanren testset {} --out FILE\n\
                 and give it with --testset FILE",
                game.name(),
                files::shell_word(&args.game)
            ))
        });
    };
    let text = files::read_text(path).map_err(UsageError::wrap)?;
    let set = TestSet::parse(game, &path.display().to_string(), &text);
    set.map_err(UsageError::wrap)
}

/// The plies at which there are positions, as a range.
fn plies<G: Game>(set: &TestSet<G>) -> String {
    let plies = set.plies();
    match (plies.first(), plies.last()) {
        (Some(first), Some(last)) => format!("{first} to {last}"),
        _ => "none".to_string(),
    }
}
