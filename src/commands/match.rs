//! `tanren match`: agents play each other, and how strong they are comes out.

use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use serde_json::json;

use super::{UsageError, prepare_agent, print, progress};
use crate::agents::{AGENTS, AgentSpec, PreparedAgent};
use crate::arena::{AgentFactory, Match, MatchResult, round_robin};
use crate::game::Game;
use crate::games::{GameVisitor, with_game};
use crate::lab::Progress;
use crate::random::Seed;
use crate::stats::{Elo, Hypothesis, PairResults, Pairing, Sprt, ratings};

/// Arguments of `tanren match`.
#[derive(Debug, clap::Args)]
#[command(after_help = agents_help())]
pub struct Args {
    /// Two agents for a match, more for a round robin that rates them together.
    #[arg(required = true, num_args = 2.., value_name = "AGENT")]
    agents: Vec<String>,
    /// A built-in game or a rules file.
    #[arg(long, default_value = "march-blitz")]
    game: String,
    /// Pairs of games: one random opening each, played with both colours. In a round
    /// robin, of each match [default: 1000, with --sprt at most 100000].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pairs: Option<u64>,
    /// Seed of openings and choices among equal moves.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Stop as soon as it is known (5% error) which of these Elo differences is nearer.
    #[arg(
        long,
        num_args = 2,
        value_names = ["ELO0", "ELO1"],
        allow_negative_numbers = true
    )]
    sprt: Option<Vec<f64>>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Show no progress.
    #[arg(long)]
    quiet: bool,
}

pub(super) fn agents_help() -> String {
    let mut text = "Agents:\n".to_string();
    for entry in AGENTS {
        text += &format!("  {:<12}{}\n", entry.form, entry.about);
    }
    text + "Behind material or a model, @ says how hard it searches: @5 plies, @20000n positions, \
            @100ms or @2s a move."
}

/// Plays and prints the result.
///
/// # Errors
/// If the game or an agent is not what it should be.
pub fn run(args: Args) -> anyhow::Result<()> {
    let test = match args.sprt.as_deref() {
        Some(&[elo0, elo1]) => {
            let test = Sprt::new(elo0, elo1).map_err(|why| UsageError::wrap(anyhow!(why)))?;
            Some(test)
        }
        _ => None,
    };
    if test.is_some() && args.agents.len() > 2 {
        let why = anyhow!(
            "--sprt compares two agents; {} are given",
            args.agents.len()
        );
        return Err(UsageError::wrap(why));
    }
    let specs = args.agents.iter().map(|agent| agent.parse());
    let contest = Contest {
        specs: specs.collect::<Result<_, _>>().map_err(UsageError::wrap)?,
        names: args.agents,
        pairs: args
            .pairs
            .unwrap_or(if test.is_some() { 100_000 } else { 1000 }),
        test,
        seed: Seed(args.seed),
        json: args.json,
        progress: progress(args.quiet),
    };
    with_game(&args.game, contest).map_err(UsageError::blame_name)?
}

struct Contest {
    specs: Vec<AgentSpec>,
    /// As the person wrote them.
    names: Vec<String>,
    pairs: u64,
    test: Option<Sprt>,
    seed: Seed,
    json: bool,
    progress: Progress,
}

impl GameVisitor for Contest {
    type Output = anyhow::Result<()>;

    fn visit<G: Game>(self, game: Arc<G>) -> anyhow::Result<()> {
        let specs = self.specs.iter();
        let prepared = specs
            .map(|spec| prepare_agent(&*game, spec))
            .collect::<anyhow::Result<Vec<PreparedAgent<G>>>>()?;
        let makers: Vec<_> = prepared.iter().map(|agent| || agent.agent()).collect();
        let factories: Vec<&AgentFactory<G>> =
            makers.iter().map(|make| make as &AgentFactory<G>).collect();
        match factories[..] {
            [first, second] => self.play_match(&*game, [first, second]),
            _ => self.play_round_robin(&*game, &factories),
        }
    }
}

impl Contest {
    fn play_match<G: Game>(
        mut self,
        game: &G,
        contestants: [&AgentFactory<G>; 2],
    ) -> anyhow::Result<()> {
        self.progress.begin(0, self.pairs, Duration::ZERO);
        let streams = self.seed.purpose("match");
        let test = self.test.as_ref();
        let result = Match::new(game, contestants, streams, 0).play(self.pairs, test, |so_far| {
            let mut status = format!("score {}", so_far.pairs.score());
            if let Some(test) = test {
                let ratio = test.log_likelihood_ratio(&so_far.pairs);
                status += &format!(", SPRT {ratio:+.2} of {:.2}", Sprt::BOUND);
            }
            self.progress.update(so_far.pairs.pairs(), Some(status));
        });
        self.warn(&self.names[0], &self.names[1], &result);
        let report = MatchReport {
            game: game.name(),
            names: &self.names,
            result: &result,
            test,
        };
        print(if self.json {
            report.json().to_string()
        } else {
            report.text()
        })
    }

    fn play_round_robin<G: Game>(
        mut self,
        game: &G,
        contestants: &[&AgentFactory<G>],
    ) -> anyhow::Result<()> {
        let count = contestants.len() as u64;
        let total = count * (count - 1) / 2 * self.pairs;
        self.progress.begin(0, total, Duration::ZERO);
        let streams = self.seed.purpose("match");
        let matches = round_robin(game, contestants, self.pairs, streams, |played| {
            self.progress.update(played, None);
        });
        for (Pairing { contestants, .. }, result) in &matches {
            let [a, b] = contestants.map(|number| &self.names[number]);
            self.warn(a, b, result);
        }
        // BabyAI, or whoever is named first if it does not take part.
        let baby = self
            .specs
            .iter()
            .position(|spec| *spec == AgentSpec::Random);
        let report = RoundRobinReport::new(game.name(), &self.names, baby.unwrap_or(0), &matches);
        print(if self.json {
            report.json().to_string()
        } else {
            report.text()
        })
    }

    fn warn(&self, first: &str, second: &str, result: &MatchResult) {
        if result.repeats_itself() {
            self.progress.warn(&format!(
                "{first} against {second}: only {} of {} games differ, so the intervals are too \
                 narrow; play fewer pairs, or agents that break ties at random",
                result.distinct_games,
                result.games()
            ));
        }
    }
}

/// A finished match, ready to be printed.
struct MatchReport<'a> {
    game: &'a str,
    names: &'a [String],
    result: &'a MatchResult,
    test: Option<&'a Sprt>,
}

impl MatchReport<'_> {
    fn mean_plies(&self) -> f64 {
        self.result.plies as f64 / self.result.games() as f64
    }

    /// Share of the points made by whoever moved first.
    fn first_player_score(&self) -> f64 {
        self.result.first_player_points / self.result.games() as f64
    }

    fn json(&self) -> serde_json::Value {
        let MatchResult {
            pairs,
            wins_draws_losses: [wins, draws, losses],
            endings,
            distinct_games,
            ..
        } = self.result;
        let (score, elo) = (pairs.score(), pairs.elo());
        json!({
            "game": self.game,
            "agents": self.names,
            "pairs": pairs.pairs(),
            // By half points of the first agent, 0 to 4.
            "pair_counts": pairs.counts,
            "games": self.result.games(),
            "wins": wins,
            "draws": draws,
            "losses": losses,
            "score": score.score,
            "score_low": score.low,
            "score_high": score.high,
            "elo": elo.elo,
            "elo_low": elo.low,
            "elo_high": elo.high,
            "distinct_games": distinct_games,
            // Won, drawn and lost by the first agent.
            "endings": endings,
            "mean_plies": self.mean_plies(),
            "first_player_score": self.first_player_score(),
            "sprt": self.test.map(|test| json!({
                "log_likelihood_ratio": test.log_likelihood_ratio(pairs),
                "bound": Sprt::BOUND,
                "accepted": test.decision(pairs),
            })),
        })
    }

    fn text(&self) -> String {
        let MatchResult {
            pairs,
            wins_draws_losses,
            endings,
            distinct_games,
            ..
        } = self.result;
        let (games, [first, second]) = (self.result.games(), [&self.names[0], &self.names[1]]);
        let mut lines = vec![
            format!("{first} against {second} on {}: {games} games\n", self.game),
            format!("{:<16}{:>8}{:>8}{:>8}", "", "won", "drawn", "lost"),
        ];
        let counts = |name: &str, [won, drawn, lost]: &[u64; 3]| {
            format!("{name:<16}{won:>8}{drawn:>8}{lost:>8}")
        };
        lines.extend(endings.iter().map(|(ending, games)| counts(ending, games)));
        lines.push(counts("all games", wins_draws_losses));
        lines.push(format!("\nscore           {}", pairs.score()));
        lines.push(format!("Elo difference  {}", pairs.elo()));
        lines.push(format!("distinct games  {distinct_games} of {games}"));
        lines.push(format!("mean length     {:.1} plies", self.mean_plies()));
        let first_player = 100.0 * self.first_player_score();
        lines.push(format!("first player    {first_player:.1}% of the points"));
        lines.extend(self.test.map(|test| sprt_text(test, pairs)));
        lines.join("\n")
    }
}

fn sprt_text(test: &Sprt, results: &PairResults) -> String {
    let answer = match test.decision(results) {
        Some(Hypothesis::Elo0) => "ELO0 is accepted",
        Some(Hypothesis::Elo1) => "ELO1 is accepted",
        None => "undecided, it takes more pairs",
    };
    let ratio = test.log_likelihood_ratio(results);
    let bound = Sprt::BOUND;
    format!("SPRT            {ratio:+.2} within {bound:.2} either way: {answer}")
}

/// A finished round robin, ready to be printed.
struct RoundRobinReport<'a> {
    game: &'a str,
    names: &'a [String],
    /// Whose rating is 0.
    anchor: usize,
    /// Contestants by number with their ratings, the strongest first.
    ratings: Vec<(usize, Elo)>,
    matches: &'a [(Pairing, MatchResult)],
}

impl<'a> RoundRobinReport<'a> {
    fn new(
        game: &'a str,
        names: &'a [String],
        anchor: usize,
        matches: &'a [(Pairing, MatchResult)],
    ) -> RoundRobinReport<'a> {
        let pairings: Vec<Pairing> = matches.iter().map(|(pairing, _)| *pairing).collect();
        let rated = ratings(names.len(), &pairings, anchor);
        let mut ratings: Vec<(usize, Elo)> = rated.into_iter().enumerate().collect();
        ratings.sort_by(|(_, a), (_, b)| b.elo.total_cmp(&a.elo));
        RoundRobinReport {
            game,
            names,
            anchor,
            ratings,
            matches,
        }
    }

    fn json(&self) -> serde_json::Value {
        let ratings = self.ratings.iter().map(|&(number, elo)| {
            json!({
                "agent": self.names[number],
                "elo": elo.elo,
                "elo_low": elo.low,
                "elo_high": elo.high,
            })
        });
        let matches = self.matches.iter().map(|(pairing, result)| {
            let names = pairing.contestants.map(|number| self.names[number].clone());
            MatchReport {
                game: self.game,
                names: &names,
                result,
                test: None,
            }
            .json()
        });
        json!({
            "game": self.game,
            "anchor": self.names[self.anchor],
            "ratings": ratings.collect::<Vec<_>>(),
            "matches": matches.collect::<Vec<_>>(),
        })
    }

    fn text(&self) -> String {
        let width = self.names.iter().map(String::len).max().unwrap_or(0);
        let anchor = &self.names[self.anchor];
        let mut lines = vec![format!("Elo on {}, {anchor} = 0", self.game)];
        for &(number, elo) in &self.ratings {
            let elo = if number == self.anchor {
                "0".to_string()
            } else {
                elo.to_string()
            };
            lines.push(format!("  {:<width$}  {elo}", self.names[number]));
        }
        lines.push("\nScores".to_string());
        for (pairing, result) in self.matches {
            let [first, second] = pairing.contestants.map(|number| &self.names[number]);
            lines.push(format!(
                "  {first:<width$}  {} against {second}, {} of {} games distinct",
                result.pairs.score(),
                result.distinct_games,
                result.games()
            ));
        }
        lines.join("\n")
    }
}
