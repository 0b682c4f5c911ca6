//! Games and matches between agents, the matches in colour-swapped pairs from random
//! openings.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::{Range, RangeInclusive};

use rayon::prelude::*;
use serde::Serialize;

use crate::agents::Agent;
use crate::game::{Game, Outcome, Side};
use crate::random::{Rng, RngExt, Streams, mix};
use crate::stats::{PairResults, Pairing, Sprt};

/// Random plies at the start of a game of a match: enough for games to differ,
/// few enough to leave the game open.
pub const OPENING_PLIES: RangeInclusive<u32> = 2..=4;

/// Pairs played between two looks at the result: enough to keep many cores busy.
const PAIRS_AT_ONCE: u64 = 64;

/// Makes a fresh agent: each thread plays with its own.
pub type AgentFactory<'a, G> = dyn Fn() -> Box<dyn Agent<G>> + Sync + 'a;

/// What a match gave, as the first contestant sees it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MatchResult {
    /// Points by pair.
    pub pairs: PairResults,
    /// Games won, drawn and lost by the first contestant.
    pub wins_draws_losses: [u64; 3],
    /// The same, by what ended the games, in the game's own words.
    pub endings: BTreeMap<String, [u64; 3]>,
    /// Number of different games, by their moves.
    pub distinct_games: u64,
    /// Games won by the player who moved first; draws count half.
    pub first_player_points: f64,
    /// Plies of all games.
    pub plies: u64,
}

impl MatchResult {
    /// Number of games.
    pub fn games(&self) -> u64 {
        2 * self.pairs.pairs()
    }

    /// Whether so many games repeat others that intervals, which take games to be
    /// independent, are too narrow.
    pub fn repeats_itself(&self) -> bool {
        10 * self.distinct_games < 9 * self.games()
    }
}

/// One finished game.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayedGame<M> {
    /// Every move, the opening's included.
    pub moves: Vec<M>,
    /// Who won.
    pub outcome: Outcome,
    /// How, in the game's own words.
    pub ending: &'static str,
}

impl<M: Copy + Hash> PlayedGame<M> {
    /// A hash of the moves: equal games are counted once.
    pub fn fingerprint(&self) -> u64 {
        let moves = self.moves.iter();
        moves.fold(0, |hash, &mv| mix(hash ^ hash_move(mv)))
    }

    /// The first player's points.
    pub fn first_player_points(&self) -> f64 {
        match self.outcome {
            Outcome::Win(Side::First) => 1.0,
            Outcome::Win(Side::Second) => 0.0,
            Outcome::Draw => 0.5,
        }
    }
}

/// A match that can be played on and on. Each pair of games has one random opening
/// and is played with both colours; its randomness is the stream (`number`, pair) of
/// the match's streams, so that the number of threads does not matter, nor in how
/// many goes it is played.
pub struct Match<'a, G: Game> {
    game: &'a G,
    contestants: [&'a AgentFactory<'a, G>; 2],
    streams: Streams,
    number: u64,
    result: MatchResult,
    fingerprints: HashSet<u64>,
}

impl<'a, G: Game> Match<'a, G> {
    /// A match of which nothing has been played.
    pub fn new(
        game: &'a G,
        contestants: [&'a AgentFactory<'a, G>; 2],
        streams: Streams,
        number: u64,
    ) -> Match<'a, G> {
        Match {
            game,
            contestants,
            streams,
            number,
            result: MatchResult::default(),
            fingerprints: HashSet::new(),
        }
    }

    /// Plays until there are `pairs` pairs, or until the test has an answer. Shows
    /// the result so far now and then.
    pub fn play(
        mut self,
        pairs: u64,
        test: Option<&Sprt>,
        mut watch: impl FnMut(&MatchResult),
    ) -> MatchResult {
        let mut played = 0;
        let has_answer =
            |results: &PairResults| test.is_some_and(|test| test.decision(results).is_some());
        while played < pairs && !has_answer(&self.result.pairs) {
            let next = pairs.min(played + PAIRS_AT_ONCE);
            self.play_pairs(played..next);
            played = next;
            watch(&self.result);
        }
        self.result
    }

    /// Plays these pairs on all cores.
    fn play_pairs(&mut self, pairs: Range<u64>) {
        let games: Vec<[PlayedGame<G::Move>; 2]> = pairs
            .into_par_iter()
            .map_init(
                || self.contestants.map(|make| make()),
                |agents, pair| {
                    let mut rng = self.streams.stream(self.number, pair);
                    let opening = random_opening(self.game, &mut rng);
                    let [first, second] = agents;
                    [
                        play_game(self.game, &opening, [first, second], &mut rng),
                        play_game(self.game, &opening, [second, first], &mut rng),
                    ]
                },
            )
            .collect();
        for pair in &games {
            self.add_pair(pair);
        }
        self.result.distinct_games = self.fingerprints.len() as u64;
    }

    fn add_pair(&mut self, pair: &[PlayedGame<G::Move>; 2]) {
        let result = &mut self.result;
        let mut half_points = 0;
        for (game, own_side) in pair.iter().zip(Side::ALL) {
            let points = match game.outcome {
                Outcome::Win(side) if side == own_side => 2,
                Outcome::Draw => 1,
                Outcome::Win(_) => 0,
            };
            half_points += points;
            let ending = result.endings.entry(game.ending.to_string());
            ending.or_default()[2 - points] += 1;
            result.wins_draws_losses[2 - points] += 1;
            result.first_player_points += game.first_player_points();
            result.plies += game.moves.len() as u64;
            self.fingerprints.insert(game.fingerprint());
        }
        result.pairs.add(half_points);
    }
}

/// Plays `pairs` pairs, see [`Match`].
pub fn play_match<G: Game>(
    game: &G,
    contestants: [&AgentFactory<G>; 2],
    pairs: u64,
    streams: Streams,
    number: u64,
) -> MatchResult {
    Match::new(game, contestants, streams, number).play(pairs, None, |_| {})
}

/// Lets everybody play everybody. Returns the matches in the order (0, 1), (0, 2),
/// ..., each with what it gave. Shows the number of pairs played in all now and then.
pub fn round_robin<G: Game>(
    game: &G,
    contestants: &[&AgentFactory<G>],
    pairs: u64,
    streams: Streams,
    mut watch: impl FnMut(u64),
) -> Vec<(Pairing, MatchResult)> {
    let count = contestants.len();
    let schedule = (0..count).flat_map(|a| (a + 1..count).map(move |b| [a, b]));
    (0..)
        .zip(schedule)
        .map(|(number, pairing)| {
            let both = pairing.map(|contestant| contestants[contestant]);
            let result = Match::new(game, both, streams, number).play(pairs, None, |so_far| {
                watch(number * pairs + so_far.pairs.pairs())
            });
            let pairing = Pairing {
                contestants: pairing,
                results: result.pairs,
            };
            (pairing, result)
        })
        .collect()
}

/// Moves of a random opening of 2 to 4 plies after which the game is not over.
pub fn random_opening<G: Game>(game: &G, rng: &mut Rng) -> Vec<G::Move> {
    loop {
        let plies = rng.random_range(OPENING_PLIES);
        let mut position = game.start();
        let mut opening = Vec::new();
        let mut moves = Vec::new();
        for _ in 0..plies {
            moves.clear();
            game.legal_moves(&position, &mut moves);
            if moves.is_empty() {
                break;
            }
            let mv = moves[rng.random_range(0..moves.len())];
            game.play_unchecked(&mut position, mv);
            opening.push(mv);
        }
        if game.outcome(&position).is_none() {
            return opening;
        }
    }
}

/// Plays one game from the end of an opening on, the first player's agent first.
pub fn play_game<G: Game>(
    game: &G,
    opening: &[G::Move],
    players: [&mut Box<dyn Agent<G>>; 2],
    rng: &mut Rng,
) -> PlayedGame<G::Move> {
    let [first, second] = players;
    first.new_game();
    second.new_game();
    let mut position = game.start();
    let mut moves = Vec::new();
    loop {
        if let Some(outcome) = game.outcome(&position) {
            let ending = game.ending(&position);
            return PlayedGame {
                moves,
                outcome,
                ending,
            };
        }
        let mv = match opening.get(moves.len()) {
            Some(&mv) => mv,
            None => match game.side_to_move(&position) {
                Side::First => first.choose(game, &position, rng),
                Side::Second => second.choose(game, &position, rng),
            },
        };
        game.play_unchecked(&mut position, mv);
        moves.push(mv);
    }
}

fn hash_move<M: Hash>(mv: M) -> u64 {
    let mut hasher = DefaultHasher::new();
    mv.hash(&mut hasher);
    hasher.finish()
}
