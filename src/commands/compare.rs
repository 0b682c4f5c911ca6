//! `tanren compare`: architectures trained at an equal budget and played off.

use super::train::{RunArgs, run_experiment};

/// Arguments of `tanren compare`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Architectures: mlp, conv, residual.
    #[arg(required = true, value_name = "NET")]
    nets: Vec<String>,

    /// The game: a built-in one or a rules file [default: march-blitz].
    #[arg(long)]
    game: Option<String>,

    /// Games of self-play for each network [default: 20000].
    #[arg(long, conflicts_with = "minutes", value_parser = clap::value_parser!(u64).range(1..))]
    games: Option<u64>,

    /// Training time of each network, instead of a number of games.
    #[arg(long, value_parser = positive)]
    minutes: Option<f64>,

    /// Train each network this often, from different seeds [default: 1].
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..=1000))]
    repeats: Option<u64>,

    #[command(flatten)]
    run: RunArgs,
}

fn positive(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text
        .parse()
        .ok()
        .filter(|&number| number > 0.0 && number <= 1e5);
    number.ok_or_else(|| "accepted are numbers above 0, up to 100000".to_string())
}

/// Runs the experiment `compare`; `tanren train --resume` goes on with it.
///
/// # Errors
/// Like those of `tanren train`.
pub fn run(args: Args) -> anyhow::Result<()> {
    let Args {
        nets,
        game,
        games,
        minutes,
        repeats,
        mut run,
    } = args;
    let mut set = vec![format!("nets={nets:?}")];
    set.extend(game.map(|game| format!("training.game={game:?}")));
    set.extend(games.map(|games| format!("training.games={games}")));
    set.extend(minutes.map(|minutes| format!("minutes={minutes:?}")));
    set.extend(repeats.map(|repeats| format!("repeats={repeats}")));
    // What the person sets by key comes last, and wins.
    set.append(&mut run.set);
    run.set = set;
    run_experiment("compare", None, run)
}
