//! What an inventor wants to know of a game: who wins, how, after how long, and what
//! the start is worth, at several strengths of play.

use std::collections::{BTreeMap, HashSet};

use rayon::prelude::*;
use serde::Serialize;

use crate::arena::{AgentFactory, PlayedGame, play_game, random_opening};
use crate::game::{Game, Side, children};
use crate::random::Streams;
use crate::search::Evaluator;
use crate::solve::{Exact, Limits, Options, Solver};
use crate::stats::Proportion;

/// What a reader must know before drawing conclusions.
///
/// Source: found for March, see the README: random play and EasyAI score near 50% on
/// layouts of which strong play scores 65-75% for one side.
pub const WHERE_BALANCE_SHOWS: &str = "Balance shows only in strong play: random play and EasyAI score near 50% even on layouts that \
     are decided, so go by the network's row and by exact values.";

/// A report on the design of a game.
#[derive(Debug, Clone, Serialize)]
pub struct DesignReport {
    /// Name of the game.
    pub game: String,
    /// Its name for people.
    pub title: String,
    /// Where it starts.
    pub start: String,
    /// Seed of the games.
    pub seed: u64,
    /// Self-play, from weak to strong.
    pub play: Vec<PlayReport>,
    /// Why there is no row of a network.
    pub no_network: Option<String>,
    /// The exact value of the start.
    pub exact: StartValue,
    /// The first player's moves.
    pub first_moves: Vec<FirstMove>,
}

/// What games of an agent against itself look like.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlayReport {
    /// The agent.
    pub agent: String,
    /// Games played.
    pub games: u64,
    /// Of these, different ones; fewer than games mean too narrow intervals.
    pub distinct_games: u64,
    /// The first player's share of the points; draws count half.
    pub first_player: Proportion,
    /// How games ended: won, drawn and lost by the first player.
    pub endings: BTreeMap<String, [u64; 3]>,
    /// How long they were.
    pub lengths: Lengths,
    /// Mean number of legal moves, over all positions.
    pub mean_branching: f64,
    /// The same by ply, from the start on, over the games that were still going on.
    pub branching: Vec<f64>,
    /// Games in which one side had more material half-way.
    pub ahead_games: u64,
    /// Share of these that this side did not win; draws count half. `None` if there
    /// were none.
    pub ahead_loses: Option<Proportion>,
}

/// Lengths of games, in plies.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lengths {
    /// Mean.
    pub mean: f64,
    /// Shortest game, quartiles (the second is the median), longest game.
    pub quartiles: [u64; 5],
    /// Number of games by plies.
    pub histogram: Vec<u64>,
}

/// The exact value of the start, for the first player.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StartValue {
    /// The value, if it was found.
    pub value: Option<Exact>,
    /// Positions that the solver visited.
    pub nodes: u64,
    /// Why the value is unknown.
    pub unknown_because: Option<String>,
}

/// A move of the first player at the start.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FirstMove {
    /// The move.
    #[serde(rename = "move")]
    pub mv: String,
    /// What the network thinks of it, in [-1, 1] for the first player.
    pub network: Option<f32>,
    /// Its exact value for the first player.
    pub exact: Option<Exact>,
}

/// Has an agent play itself, from random openings, so that games differ. The games'
/// randomness is the streams (`number`, game).
///
/// # Panics
/// If `games` is 0.
pub fn measure_play<G: Game>(
    game: &G,
    name: &str,
    agent: &AgentFactory<G>,
    games: u64,
    streams: Streams,
    number: u64,
) -> PlayReport {
    assert!(games > 0, "a report needs games");
    let records = (0..games).into_par_iter().map_init(
        || [agent(), agent()],
        |[first, second], index| {
            let mut rng = streams.stream(number, index);
            let opening = random_opening(game, &mut rng);
            let played = play_game(game, &opening, [first, second], &mut rng);
            Record::of(game, &played)
        },
    );
    let records: Vec<Record> = records.collect();
    summarize(name, &records)
}

/// What is kept of a game.
struct Record {
    /// Of the first player.
    points: f64,
    ending: &'static str,
    fingerprint: u64,
    /// Legal moves at every ply.
    branching: Vec<u64>,
    /// Points lost by the side with more material half-way, if there was one.
    lost_from_ahead: Option<f64>,
}

impl Record {
    fn of<G: Game>(game: &G, played: &PlayedGame<G::Move>) -> Record {
        let points = played.first_player_points();
        let half_way = played.moves.len() / 2;
        let mut lost_from_ahead = None;
        let mut branching = Vec::with_capacity(played.moves.len());
        let mut position = game.start();
        for (ply, &mv) in played.moves.iter().enumerate() {
            branching.push(game.count_legal_moves(&position));
            if ply == half_way {
                let first_player_ahead = match game.side_to_move(&position) {
                    Side::First => game.material(&position),
                    Side::Second => -game.material(&position),
                };
                lost_from_ahead = match first_player_ahead {
                    0 => None,
                    1.. => Some(1.0 - points),
                    _ => Some(points),
                };
            }
            game.play_unchecked(&mut position, mv);
        }
        Record {
            points,
            ending: played.ending,
            fingerprint: played.fingerprint(),
            branching,
            lost_from_ahead,
        }
    }

    fn plies(&self) -> usize {
        self.branching.len()
    }
}

fn summarize(name: &str, records: &[Record]) -> PlayReport {
    let games = records.len() as u64;
    let mut endings: BTreeMap<String, [u64; 3]> = BTreeMap::new();
    for record in records {
        let column = [1.0, 0.5, 0.0].iter().position(|&of| of == record.points);
        let column = column.expect("a game gives 1, 1/2 or no point");
        endings.entry(record.ending.to_string()).or_default()[column] += 1;
    }
    let distinct: HashSet<u64> = records.iter().map(|record| record.fingerprint).collect();
    let ahead: Vec<f64> = records.iter().filter_map(|r| r.lost_from_ahead).collect();
    let longest = records.iter().map(Record::plies).max().unwrap_or(0);
    let branching_at = |ply| {
        let going_on = records.iter().filter_map(|r| r.branching.get(ply));
        mean(going_on)
    };
    PlayReport {
        agent: name.to_string(),
        games,
        distinct_games: distinct.len() as u64,
        first_player: Proportion::wilson(records.iter().map(|r| r.points).sum(), games as f64),
        endings,
        lengths: Lengths::of(records.iter().map(Record::plies).collect()),
        mean_branching: mean(records.iter().flat_map(|r| &r.branching)),
        branching: (0..longest).map(branching_at).collect(),
        ahead_games: ahead.len() as u64,
        ahead_loses: (!ahead.is_empty())
            .then(|| Proportion::wilson(ahead.iter().sum(), ahead.len() as f64)),
    }
}

fn mean<'a>(numbers: impl Iterator<Item = &'a u64>) -> f64 {
    let (mut sum, mut count) = (0, 0_u64);
    for number in numbers {
        sum += number;
        count += 1;
    }
    sum as f64 / count.max(1) as f64
}

impl Lengths {
    /// Of the games' plies, at least one.
    fn of(mut plies: Vec<usize>) -> Lengths {
        plies.sort_unstable();
        let last = plies.len() - 1;
        let mut histogram = vec![0; plies[last] + 1];
        for &plies in &plies {
            histogram[plies] += 1;
        }
        Lengths {
            mean: plies.iter().sum::<usize>() as f64 / plies.len() as f64,
            quartiles: [0, 1, 2, 3, 4].map(|quarter| plies[quarter * last / 4] as u64),
            histogram,
        }
    }
}

/// The exact value of the start, and of each first move in the order of the rules, as
/// far as `nodes` visited positions for each of these values go. `prior` helps the
/// solver. Shows the number of values that were sought now and then.
pub fn solve_start<G: Game>(
    game: &G,
    nodes: u64,
    prior: Option<Box<dyn Evaluator<G>>>,
    mut watch: impl FnMut(u64),
) -> (StartValue, Vec<Option<Exact>>) {
    let start = game.start();
    let (mut moves, mut after) = (Vec::new(), Vec::new());
    game.legal_moves(&start, &mut moves);
    children(game, &start, &moves, &mut after);
    let mut solver = match Solver::new(game, Options::default(), prior) {
        Ok(solver) => solver,
        Err(unsolvable) => {
            let value = StartValue {
                value: None,
                nodes: 0,
                unknown_because: Some(unsolvable.to_string()),
            };
            return (value, vec![None; moves.len()]);
        }
    };
    let limits = Limits {
        nodes: Some(nodes),
        ..Limits::default()
    };
    let solution = solver.solve(&start, &limits);
    let value = StartValue {
        value: solution.value,
        nodes: solution.nodes,
        unknown_because: match solution.value {
            Some(_) => None,
            None => Some(format!("unknown after {} nodes", solution.nodes)),
        },
    };
    let moves = (1..).zip(&after).map(|(sought, child)| {
        watch(sought);
        match solution.value {
            // Of a lost position all moves lose. Where the start is not solved, what is
            // one ply less deep hardly is.
            None | Some(Exact::Loss) => solution.value,
            Some(_) => solver.solve(child, &limits).value.map(|value| -value),
        }
    });
    let moves = moves.collect();
    (value, moves)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::{Agent, RandomAgent};
    use crate::game::Outcome;
    use crate::games::leaper::{Leaper, MARCH_BLITZ};
    use crate::random::Seed;

    #[test]
    fn quartiles_of_known_lengths() {
        let lengths = Lengths::of(vec![9, 5, 7, 6, 8]);
        assert_eq!(lengths.quartiles, [5, 6, 7, 8, 9]);
        assert_eq!(lengths.mean, 7.0);
        assert_eq!(lengths.histogram, [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]);
        assert_eq!(Lengths::of(vec![3]).quartiles, [3; 5]);
    }

    #[test]
    fn a_record_is_read_off_the_game() {
        let game = Leaper::parse("test.toml", MARCH_BLITZ).unwrap();
        let moves: Vec<_> = "a2a3 a5a4 a3a4 b5a4 b2b3 a4b3"
            .split(' ')
            .map(|mv| game.parse_move(mv).unwrap())
            .collect();
        let played = PlayedGame {
            moves,
            outcome: Outcome::Win(Side::Second),
            ending: "Catch",
        };
        let record = Record::of(&game, &played);
        assert_eq!(record.plies(), 6);
        assert_eq!(record.branching[0], 16);
        // Half-way, after a3xa4, the first player is a pawn ahead, and loses.
        assert_eq!(record.lost_from_ahead, Some(1.0));
    }

    #[test]
    fn play_reports_add_up_and_do_not_depend_on_threads() {
        let game = Leaper::parse("test.toml", MARCH_BLITZ).unwrap();
        let agent = || -> Box<dyn Agent<Leaper>> { Box::new(RandomAgent) };
        let measure = || measure_play(&game, "random", &agent, 60, Seed(1).purpose("test"), 0);
        let report = measure();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        assert_eq!(pool.unwrap().install(measure), report);
        assert_eq!(report.endings.values().flatten().sum::<u64>(), 60);
        assert_eq!(report.lengths.histogram.iter().sum::<u64>(), 60);
        assert_eq!(report.branching.len() as u64, report.lengths.quartiles[4]);
        assert_eq!(report.branching[0], 16.0);
        assert!(report.ahead_games > 0 && report.ahead_games <= 60);
    }
}
