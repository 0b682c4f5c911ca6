//! Matches between two agents, in colour-swapped pairs from random openings.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::Serialize;

use crate::agents::Agent;
use crate::game::{Game, Outcome, Side};
use crate::random::{Rng, RngExt, Streams, mix};
use crate::stats::PairResults;

/// Random plies at the start of a game of a match: enough for games to differ,
/// few enough to leave the game open.
const OPENING_PLIES: std::ops::RangeInclusive<u32> = 2..=4;

/// Makes a fresh agent: each thread plays with its own.
pub type AgentFactory<'a, G> = dyn Fn() -> Box<dyn Agent<G>> + Sync + 'a;

/// What a match gave, as the first contestant sees it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MatchResult {
    /// Points by pair.
    pub pairs: PairResults,
    /// Games won, drawn and lost by the first contestant.
    pub wins_draws_losses: [u64; 3],
    /// Number of different games, by their moves.
    pub distinct_games: u64,
    /// Games by what ended them, in the game's own words.
    pub endings: BTreeMap<String, u64>,
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
}

/// One finished game.
struct Record {
    outcome: Outcome,
    ending: &'static str,
    plies: u64,
    /// Hash of the moves, opening included.
    fingerprint: u64,
}

/// Plays `pairs` pairs on all cores. Each pair has one random opening and is
/// played with both colours; its randomness is stream (`number`, pair) of
/// `streams`, so that the number of threads does not matter.
pub fn play_match<G: Game>(
    game: &G,
    contestants: [&AgentFactory<G>; 2],
    pairs: u64,
    streams: Streams,
    number: u64,
) -> MatchResult {
    let records: Vec<[Record; 2]> = (0..pairs)
        .into_par_iter()
        .map_init(
            || contestants.map(|make| make()),
            |agents, pair| {
                let mut rng = streams.stream(number, pair);
                let opening = random_opening(game, &mut rng);
                let [first, second] = agents;
                [
                    play_game(game, &opening, [first, second], &mut rng),
                    play_game(game, &opening, [second, first], &mut rng),
                ]
            },
        )
        .collect();
    tally(&records)
}

fn tally(records: &[[Record; 2]]) -> MatchResult {
    let mut result = MatchResult::default();
    let mut fingerprints = std::collections::HashSet::new();
    for pair in records {
        let mut half_points = 0;
        for (record, own_side) in pair.iter().zip(Side::ALL) {
            let points = match record.outcome {
                Outcome::Win(side) if side == own_side => 2,
                Outcome::Draw => 1,
                Outcome::Win(_) => 0,
            };
            half_points += points;
            result.wins_draws_losses[2 - points] += 1;
            result.first_player_points += match record.outcome {
                Outcome::Win(Side::First) => 1.0,
                Outcome::Win(Side::Second) => 0.0,
                Outcome::Draw => 0.5,
            };
            *result.endings.entry(record.ending.to_string()).or_default() += 1;
            result.plies += record.plies;
            fingerprints.insert(record.fingerprint);
        }
        result.pairs.add(half_points);
    }
    result.distinct_games = fingerprints.len() as u64;
    result
}

/// Moves of a random opening after which the game is not over.
fn random_opening<G: Game>(game: &G, rng: &mut Rng) -> Vec<G::Move> {
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

fn play_game<G: Game>(
    game: &G,
    opening: &[G::Move],
    players: [&mut Box<dyn Agent<G>>; 2],
    rng: &mut Rng,
) -> Record {
    let [first, second] = players;
    first.new_game();
    second.new_game();
    let mut position = game.start();
    let mut plies = 0;
    let mut fingerprint = 0;
    let mut opening = opening.iter();
    loop {
        if let Some(outcome) = game.outcome(&position) {
            return Record {
                outcome,
                ending: game.ending(&position),
                plies,
                fingerprint,
            };
        }
        let mv = match opening.next() {
            Some(&mv) => mv,
            None => match game.side_to_move(&position) {
                Side::First => first.choose(game, &position, rng),
                Side::Second => second.choose(game, &position, rng),
            },
        };
        fingerprint = mix(fingerprint ^ hash_move(mv));
        game.play_unchecked(&mut position, mv);
        plies += 1;
    }
}

fn hash_move<M: std::hash::Hash>(mv: M) -> u64 {
    use std::hash::{DefaultHasher, Hasher};
    let mut hasher = DefaultHasher::new();
    mv.hash(&mut hasher);
    hasher.finish()
}
