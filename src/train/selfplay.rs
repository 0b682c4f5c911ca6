//! Self-play: rounds of games in which the learning network meets itself and
//! others, each visited position a sample.
//!
//! Every game has a random stream of its own, named by (round, game), and games
//! enter the result in the order of their numbers, so that the number of threads
//! changes nothing, and the way of evaluating (game by game, or in large batches
//! over all games) only the last digits of values.

use std::mem;
use std::ops::Range;
use std::str::FromStr;

use rand::seq::IndexedRandom;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::replay::Samples;
use super::target::negamax;
use crate::agents::{Agent, MaterialAgent};
use crate::game::{Game, Outcome, Side, Value, children};
use crate::nets::NetEvaluator;
use crate::nets::device::Line;
use crate::random::{Rng, RngExt, Streams};
use crate::search::{Evaluator, corrected, softmax};
use crate::solve::{Limits, Options, Solver};

/// Who takes a side in a game of self-play.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Player {
    /// The network that learns, exploring.
    Net,
    /// A uniformly random mover: BabyAI.
    Random,
    /// A 3-ply material search: EasyAI.
    Easy,
}

/// First and second player of a game, written `net-random`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pairing(pub [Player; 2]);

impl Player {
    const NAMES: [(Player, &str); 3] = [
        (Player::Net, "net"),
        (Player::Random, "random"),
        (Player::Easy, "easy"),
    ];
}

impl FromStr for Player {
    type Err = String;

    fn from_str(text: &str) -> Result<Player, String> {
        let found = Player::NAMES.iter().find(|(_, name)| *name == text);
        found.map(|&(player, _)| player).ok_or_else(|| {
            format!("unknown player {text:?} in a pairing: accepted are net, random and easy")
        })
    }
}

impl TryFrom<String> for Pairing {
    type Error = String;

    fn try_from(text: String) -> Result<Pairing, String> {
        let (first, second) = text.split_once('-').ok_or_else(|| {
            format!("{text:?} is no pairing: accepted are two players such as \"net-random\"")
        })?;
        Ok(Pairing([first.parse()?, second.parse()?]))
    }
}

impl From<Pairing> for String {
    fn from(pairing: Pairing) -> String {
        let name = |player| {
            Player::NAMES
                .iter()
                .find(|(p, _)| *p == player)
                .expect("all named")
                .1
        };
        format!("{}-{}", name(pairing.0[0]), name(pairing.0[1]))
    }
}

/// How games of self-play are played.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelfPlayConfig {
    /// Who plays whom, in turn: game number n of the run is `pairings[n % len]`.
    /// Players are `net`, `random` and `easy`. The article:
    /// `["net-random", "random-net", "net-net"]`.
    pub pairings: Vec<Pairing>,
    /// Each game starts with 0 to this many uniformly random plies. The article: 0.
    pub max_opening_plies: u32,
    /// The network chooses with probability proportional to e^(value / temperature)
    /// over its moves; 0 is greedy. The article: 0.
    pub temperature: f32,
    /// Probability that the network plays a uniformly random move instead. A move
    /// that wins at once is always played. The article: 0.
    pub epsilon: f64,
    /// Exact targets. The article: none.
    #[serde(default)]
    pub exact: ExactTargets,
}

/// Where the target of a position is its exact value, and not the network's guess.
///
/// A game is solved from its end, position by position, up to the first one that the
/// budget does not suffice for: what comes before would be harder still.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExactTargets {
    /// The share of games that are solved so; 0: none.
    pub share: f64,
    /// What may be spent on each position: positions that the solver expands.
    pub nodes: u64,
}

/// What a round of games gave.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Round {
    /// Every visited position.
    pub samples: Samples,
    /// Number of games.
    pub games: u64,
    /// Number of network evaluations.
    pub evaluations: u64,
    /// Number of positions whose target is their exact value.
    pub exact: u64,
    /// Games that the first player won; draws count half.
    pub first_player_points: f64,
}

/// From how many games on they are played in halves: fewer are too little work for
/// a GPU as it is.
const MIN_GAMES_IN_HALVES: u64 = 256;

/// Plays rounds of games.
#[derive(Debug, Clone, Copy)]
pub struct Generator<'a, G: Game> {
    /// The rules.
    pub game: &'a G,
    /// How to play.
    pub config: &'a SelfPlayConfig,
    /// One stream a game, numbered by round and game.
    pub streams: Streams,
    /// Games in a round.
    pub games_per_round: u64,
}

impl<G: Game> Generator<'_, G> {
    /// Plays the games of a round on all cores.
    pub fn play_round(&self, round: u64, games: u64, evaluator: &NetEvaluator) -> Round {
        let played = if !evaluator.computes_elsewhere() {
            self.play_apart(round, games, evaluator)
        } else if games >= MIN_GAMES_IN_HALVES {
            self.play_in_halves(round, games, evaluator)
        } else {
            Line::FirstHalf.run(|| self.play_together(round, 0..games, &mut evaluator.clone()))
        };
        let mut result = Round {
            games,
            ..Round::default()
        };
        for record in played {
            result.samples.append(&record.samples);
            result.evaluations += record.evaluations;
            result.exact += record.exact;
            result.first_player_points += match self.game.outcome(&record.position) {
                Some(Outcome::Win(Side::First)) => 1.0,
                Some(Outcome::Win(Side::Second)) => 0.0,
                _ => 0.5,
            };
        }
        result
    }

    /// One game after the other on each core: for an evaluator that is fast on
    /// the children of a single position.
    pub fn play_apart<E>(&self, round: u64, games: u64, evaluator: &E) -> Vec<SelfPlayGame<'_, G>>
    where
        E: Evaluator<G> + Clone + Sync,
    {
        (0..games)
            .into_par_iter()
            .map_init(
                || (evaluator.clone(), Vec::new()),
                |(evaluator, values), number| {
                    let mut game = self.start(round, number);
                    while game.expand() {
                        evaluator.evaluate_children(self.game, &game.position, &game.moves, values);
                        game.advance(values);
                    }
                    game.solve();
                    game
                },
            )
            .collect()
    }

    /// Half of the games beside the other: while a GPU judges the positions of one
    /// half, the cores make the moves of the other.
    pub fn play_in_halves<E>(
        &self,
        round: u64,
        games: u64,
        evaluator: &E,
    ) -> Vec<SelfPlayGame<'_, G>>
    where
        E: Evaluator<G> + Clone + Sync,
    {
        let play = |line: Line, numbers| {
            line.run(|| self.play_together(round, numbers, &mut evaluator.clone()))
        };
        let middle = games / 2;
        let (mut all, rest) = rayon::join(
            || play(Line::FirstHalf, 0..middle),
            || play(Line::SecondHalf, middle..games),
        );
        all.extend(rest);
        all
    }

    /// These games of the round at the same pace: for an evaluator that wants large
    /// batches.
    pub fn play_together(
        &self,
        round: u64,
        numbers: Range<u64>,
        evaluator: &mut impl Evaluator<G>,
    ) -> Vec<SelfPlayGame<'_, G>> {
        let mut all: Vec<_> = numbers.map(|number| self.start(round, number)).collect();
        let (mut batch, mut values) = (Vec::new(), Vec::new());
        loop {
            let active: Vec<_> = all
                .par_iter_mut()
                .filter_map(|game| game.expand().then_some(game))
                .collect();
            if active.is_empty() {
                all.par_iter_mut().for_each(SelfPlayGame::solve);
                return all;
            }
            batch.clear();
            for game in &active {
                batch.extend_from_slice(&game.children);
            }
            evaluator.evaluate(self.game, &batch, &mut values);
            let mut rest = &values[..];
            let own: Vec<&[Value]> = active
                .iter()
                .map(|game| rest.split_off(..game.children.len()))
                .map(|own| own.expect("there is one value a child"))
                .collect();
            active
                .into_par_iter()
                .zip(own)
                .for_each(|(game, own)| game.advance(own));
        }
    }

    fn start(&self, round: u64, number: u64) -> SelfPlayGame<'_, G> {
        let mut rng = self.streams.stream(round, number);
        let SelfPlayConfig {
            pairings, exact, ..
        } = self.config;
        let in_run = round * self.games_per_round + number;
        SelfPlayGame {
            game: self.game,
            config: self.config,
            players: pairings[(in_run % pairings.len() as u64) as usize].0,
            opening_plies_left: rng.random_range(0..=self.config.max_opening_plies),
            is_solved: exact.share > 0.0 && rng.random_bool(exact.share),
            rng,
            position: self.game.start(),
            moves: Vec::new(),
            children: Vec::new(),
            corrected: Vec::new(),
            visited: Vec::new(),
            samples: Samples::default(),
            evaluations: 0,
            exact: 0,
        }
    }
}

/// A game of self-play on its way.
pub struct SelfPlayGame<'a, G: Game> {
    game: &'a G,
    config: &'a SelfPlayConfig,
    players: [Player; 2],
    opening_plies_left: u32,
    /// Whether exact targets are sought when it is over.
    is_solved: bool,
    rng: Rng,
    position: G::Position,
    /// Those before `position`, if they are to be solved.
    visited: Vec<G::Position>,
    moves: Vec<G::Move>,
    children: Vec<G::Position>,
    corrected: Vec<Value>,
    /// The positions visited so far.
    pub samples: Samples,
    /// Positions that the network judged so far.
    pub evaluations: u64,
    /// Positions whose target is exact.
    pub exact: u64,
}

impl<G: Game> SelfPlayGame<'_, G> {
    /// Lists the moves and the positions after them. False: the game is over.
    fn expand(&mut self) -> bool {
        self.moves.clear();
        self.children.clear();
        self.game.legal_moves(&self.position, &mut self.moves);
        children(self.game, &self.position, &self.moves, &mut self.children);
        !self.moves.is_empty()
    }

    /// Records the position and plays a move, given the network's values of the
    /// children.
    fn advance(&mut self, values: &[Value]) {
        self.evaluations += values.len() as u64;
        self.corrected.clear();
        self.corrected.extend(
            self.children
                .iter()
                .zip(values)
                .map(|(child, &v)| corrected(self.game, child, v)),
        );
        self.samples.features.push(self.game, &self.position);
        self.samples.targets.push(negamax(&self.corrected).get());
        let choice = self.choose();
        let position = mem::replace(&mut self.position, self.children.swap_remove(choice));
        if self.is_solved {
            self.visited.push(position);
        }
    }

    /// Puts exact values in the place of the targets of a finished game, as far as the
    /// budget allows, if this game is one of those.
    fn solve(&mut self) {
        if !self.is_solved {
            return;
        }
        let options = Options {
            table_mib: 1,
            ..Options::default()
        };
        let mut solver =
            Solver::new(self.game, options, None).expect("configurations are validated");
        let limits = Limits {
            nodes: Some(self.config.exact.nodes),
            ..Limits::default()
        };
        for (position, target) in self.visited.iter().zip(&mut self.samples.targets).rev() {
            let Some(exact) = solver.solve(position, &limits).value else {
                break;
            };
            *target = Value::from(exact).get();
            self.exact += 1;
        }
    }

    /// Index of the move to play.
    fn choose(&mut self) -> usize {
        let count = self.moves.len();
        let uniform = |rng: &mut Rng| rng.random_range(0..count);
        if self.opening_plies_left > 0 {
            self.opening_plies_left -= 1;
            return uniform(&mut self.rng);
        }
        match self.players[self.game.side_to_move(&self.position).index()] {
            Player::Random => uniform(&mut self.rng),
            Player::Easy => {
                let mv = MaterialAgent::easy().choose(self.game, &self.position, &mut self.rng);
                self.moves
                    .iter()
                    .position(|&other| other == mv)
                    .expect("agents play legal moves")
            }
            Player::Net => {
                if let Some(win) = self.winning_move() {
                    return win;
                }
                if self.config.epsilon > 0.0 && self.rng.random_bool(self.config.epsilon) {
                    return uniform(&mut self.rng);
                }
                let preferences: Vec<f32> = self.corrected.iter().map(|v| -v.get()).collect();
                softmax(&preferences, self.config.temperature, &mut self.rng)
            }
        }
    }

    /// A uniformly random one of the moves that win at once.
    fn winning_move(&mut self) -> Option<usize> {
        let wins: Vec<usize> = (0..self.children.len())
            .filter(|&index| {
                self.corrected[index] == Value::LOSS
                    && self.game.outcome(&self.children[index]).is_some()
            })
            .collect();
        wins.choose(&mut self.rng).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairings_are_read_and_written() {
        let pairing = Pairing::try_from("net-easy".to_string()).unwrap();
        assert_eq!(pairing.0, [Player::Net, Player::Easy]);
        assert_eq!(String::from(pairing), "net-easy");
        for wrong in ["", "net", "net-", "net-hard", "net-net-net"] {
            assert!(Pairing::try_from(wrong.to_string()).is_err(), "{wrong}");
        }
    }
}
