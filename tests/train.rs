//! Self-play and learning: targets by hand, signs at the end of a game, and
//! exactness.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use tanren::agents::{Agent, MaterialAgent, NetworkAgent, RandomAgent};
use tanren::arena::play_match;
use tanren::game::playout::random_positions;
use tanren::game::{Game, Value};
use tanren::games::leaper::Leaper;
use tanren::games::{GameVisitor, load, with_game};
use tanren::nets::device::Compute;
use tanren::nets::{NetEvaluator, NetKind};
use tanren::random::Seed;
use tanren::search::{Evaluator, corrected};
use tanren::train::learner::Learner;
use tanren::train::replay::Samples;
use tanren::train::selfplay::{
    ExactTargets, Generator, Pairing, Player, SelfPlayConfig, SelfPlayGame,
};
use tanren::train::target::negamax;

use crate::nets::{adam, small_net};

fn blitz() -> Leaper {
    load("march-blitz").unwrap().as_leaper().unwrap().clone()
}

/// Says the same of every position.
struct Constant(f32);

impl<G: Game> Evaluator<G> for Constant {
    fn evaluate(&mut self, _: &G, positions: &[G::Position], values: &mut Vec<Value>) {
        values.clear();
        values.resize(positions.len(), Value::new(self.0));
    }
}

/// Says something different, and the same each time, of every position; unlike a
/// network it does so to the last bit, however positions come to it.
#[derive(Clone)]
struct Hashed;

impl<G: Game> Evaluator<G> for Hashed {
    fn evaluate(&mut self, _: &G, positions: &[G::Position], values: &mut Vec<Value>) {
        values.clear();
        values.extend(positions.iter().map(|position| {
            let mut hasher = DefaultHasher::new();
            position.hash(&mut hasher);
            Value::new((hasher.finish() % 2001) as f32 / 1000.0 - 1.0)
        }));
    }
}

/// The target of a position by the definition in the article, from the texts of
/// its children.
fn target(game: &Leaper, position: &str, net: impl Fn(&str) -> f32) -> f32 {
    let position = game.parse_position(position).unwrap();
    let mut moves = Vec::new();
    game.legal_moves(&position, &mut moves);
    let values: Vec<Value> = moves
        .iter()
        .map(|&mv| {
            let mut child = position;
            game.play(&mut child, mv).unwrap();
            corrected(game, &child, Value::new(net(&game.format_position(&child))))
        })
        .collect();
    negamax(&values).get()
}

#[test]
fn targets_on_a_position_computed_by_hand() {
    let game = blitz();
    // The king on d1 can go to c2, d2 and e2, the pawn on a1 to a2 and b2.
    // The network thinks the opponent's position after Kd2 worst: f~ = -0.5.
    let net = |child: &str| {
        if child == "5k/6/6/6/3K2/P5 b" {
            -0.5
        } else {
            0.25
        }
    };
    assert_eq!(target(&game, "5k/6/6/6/6/P2K2 w", net), 0.5);
    // Whatever the network says, a king that can reach the far rank has won ...
    assert_eq!(target(&game, "6/1K4/6/6/k5/6 w", |_| 0.9), 1.0);
    // ... and so has the side that can catch the other's king.
    assert_eq!(target(&game, "6/6/6/2k3/2P3/5K w", |_| 0.9), 1.0);
}

#[test]
fn decided_children_are_judged_by_the_rules_for_their_side_to_move() {
    let game = blitz();
    for (position, mv) in [
        ("6/1K4/6/6/k5/6 w", "b5b6"),
        ("6/6/6/2k3/2P3/5K w", "c2c3"),
        ("6/5K/6/6/k5/6 b", "a2b1"),
    ] {
        let mut child = game.parse_position(position).unwrap();
        game.play(&mut child, game.parse_move(mv).unwrap()).unwrap();
        assert_eq!(
            corrected(&game, &child, Value::new(0.9)),
            Value::LOSS,
            "{position} {mv}"
        );
    }
}

pub(crate) fn config(pairings: &[[Player; 2]]) -> SelfPlayConfig {
    SelfPlayConfig {
        pairings: pairings.iter().map(|&pairing| Pairing(pairing)).collect(),
        max_opening_plies: 4,
        temperature: 0.1,
        epsilon: 0.1,
        exact: ExactTargets::default(),
    }
}

pub(crate) const ALL_PAIRINGS: &[[Player; 2]] = &[
    [Player::Net, Player::Net],
    [Player::Net, Player::Random],
    [Player::Random, Player::Net],
    [Player::Easy, Player::Net],
];

/// A learner that has seen a few rounds, so that its values differ.
fn learner<G: Game>(game: &G, kind: NetKind) -> Learner {
    Learner::new(
        game,
        &small_net(kind),
        &adam(0.003),
        Compute::cpu(),
        Seed(4),
    )
}

#[test]
fn games_apart_equal_games_together_and_in_halves() {
    struct Check;
    impl GameVisitor for Check {
        type Output = ();
        fn visit<G: Game>(self, game: Arc<G>) {
            let config = config(ALL_PAIRINGS);
            let generator = Generator {
                game: &*game,
                config: &config,
                streams: Seed(2).purpose("selfplay"),
                games_per_round: 12,
            };
            let apart = generator.play_apart(3, 12, &Hashed);
            let together = generator.play_together(3, 0..12, &mut Hashed);
            let halves = generator.play_in_halves(3, 12, &Hashed);
            let samples = |games: &[SelfPlayGame<G>]| -> Vec<Samples> {
                games.iter().map(|game| game.samples.clone()).collect()
            };
            assert!(samples(&apart) == samples(&together));
            assert!(samples(&apart) == samples(&halves));
        }
    }
    for game in ["march-blitz", "breakthrough-6", "connect-four"] {
        with_game(game, Check).unwrap();
    }
}

#[test]
fn convolutions_play_the_same_games_apart_and_together() {
    let game = blitz();
    let config = config(ALL_PAIRINGS);
    let generator = Generator {
        game: &game,
        config: &config,
        streams: Seed(2).purpose("selfplay"),
        games_per_round: 12,
    };
    for kind in [NetKind::Conv, NetKind::Residual] {
        let mut evaluator = learner(&game, kind).evaluator();
        let apart = generator.play_apart(3, 12, &evaluator);
        let together = generator.play_together(3, 0..12, &mut evaluator);
        for (apart, together) in apart.iter().zip(&together) {
            assert!(apart.samples == together.samples);
        }
    }
}

#[test]
fn exact_targets_are_exact_and_everything_else_stays() {
    let game = blitz();
    let usual = config(ALL_PAIRINGS);
    let some = SelfPlayConfig {
        exact: ExactTargets {
            share: 0.5,
            nodes: 300,
        },
        ..usual.clone()
    };
    let all = SelfPlayConfig {
        exact: ExactTargets {
            share: 1.0,
            nodes: 300,
        },
        ..usual.clone()
    };
    let play = |config: &SelfPlayConfig| -> Vec<(Samples, u64)> {
        let generator = Generator {
            game: &game,
            config,
            streams: Seed(2).purpose("selfplay"),
            games_per_round: 24,
        };
        let apart = generator.play_apart(1, 24, &Hashed);
        let together = generator.play_together(1, 0..24, &mut Hashed);
        for (a, b) in apart.iter().zip(&together) {
            assert!(a.samples == b.samples && a.exact == b.exact);
        }
        let results = apart.into_iter();
        results.map(|game| (game.samples, game.exact)).collect()
    };
    let solved =
        |games: &[(Samples, u64)]| -> Vec<u64> { games.iter().map(|(_, exact)| *exact).collect() };
    assert_eq!(solved(&play(&usual)), [0; 24]);
    let shares = solved(&play(&some));
    assert!(
        shares.contains(&0) && shares.iter().any(|&exact| exact > 3),
        "{shares:?}"
    );

    // The last positions of each game are the solved ones, whoever plays.
    for (samples, exact) in play(&all) {
        let exact = exact as usize;
        assert!(
            exact > 0,
            "a position before the end is solved by looking at its moves"
        );
        let targets = &samples.targets;
        let (guessed, known) = targets.split_at(targets.len() - exact);
        assert!(known.iter().all(|target| target.abs() == 1.0));
        assert!(guessed.iter().any(|target| target.abs() < 1.0) || guessed.len() < 2);
    }
}

#[test]
fn every_visited_position_is_a_sample_with_its_target() {
    let game = blitz();
    let config = config(&[[Player::Net, Player::Net]]);
    let generator = Generator {
        game: &game,
        config: &config,
        streams: Seed(2).purpose("selfplay"),
        games_per_round: 8,
    };
    let mut evaluator = learner(&game, NetKind::Mlp).evaluator();
    let round = generator.play_round(0, 8, &evaluator);
    // The start is visited by every game, and its target is known beforehand.
    let mut start = Samples::default();
    start.features.push(&game, &game.start());
    let NetEvaluator::Sparse(_) = evaluator else {
        panic!("an MLP on the CPU is sparse")
    };
    let mut moves = Vec::new();
    game.legal_moves(&game.start(), &mut moves);
    let mut values = Vec::new();
    evaluator.evaluate_children(&game, &game.start(), &moves, &mut values);
    let expected = negamax(&values).get();
    let starts: Vec<usize> = (0..round.samples.len())
        .filter(|&index| round.samples.features.get(index) == start.features.get(0))
        .collect();
    assert_eq!(starts.len(), 8, "each game begins at the start");
    assert!(
        starts
            .iter()
            .all(|&index| round.samples.targets[index] == expected)
    );
    assert!(
        round.samples.targets.contains(&1.0),
        "games end with a win that was seen"
    );
}

#[test]
fn easy_prefers_material_and_decided_games() {
    let game = blitz();
    let best = |position: &str| -> Vec<String> {
        let position = game.parse_position(position).unwrap();
        let moves = MaterialAgent::easy().best_moves(&game, &position);
        moves.into_iter().map(|mv| game.format_move(mv)).collect()
    };
    // The pawn on c3 can take on b4 or d4; nothing takes back.
    assert_eq!(best("5k/6/1p1p2/2P3/6/K5 w"), ["c3b4", "c3d4"]);
    // It takes the king rather than a pawn.
    assert_eq!(best("6/6/1p1k2/2P3/6/K5 w"), ["c3d4"]);
}

#[test]
fn easy_equals_plain_negamax() {
    fn plain<G: Game>(game: &G, position: &G::Position, plies: u32) -> i32 {
        if let Some(outcome) = game.outcome(position) {
            return 1_000_000 * outcome.value_for(game.side_to_move(position)).get() as i32;
        }
        if plies == 0 {
            return game.material(position);
        }
        let mut moves = Vec::new();
        game.legal_moves(position, &mut moves);
        let value = |&mv: &G::Move| {
            let mut child = position.clone();
            game.play_unchecked(&mut child, mv);
            -plain(game, &child, plies - 1)
        };
        moves.iter().map(value).max().unwrap()
    }
    struct Check;
    impl GameVisitor for Check {
        type Output = ();
        fn visit<G: Game>(self, game: Arc<G>) {
            let game = &*game;
            for position in random_positions(game, 3, &mut Seed(8).stream("positions")) {
                let mut moves = Vec::new();
                game.legal_moves(&position, &mut moves);
                let counts: Vec<i32> = moves
                    .iter()
                    .map(|&mv| {
                        let mut child = position.clone();
                        game.play_unchecked(&mut child, mv);
                        -plain(game, &child, 2)
                    })
                    .collect();
                let best = counts.iter().max().unwrap();
                let expected: Vec<_> = moves
                    .iter()
                    .zip(&counts)
                    .filter(|(_, c)| *c == best)
                    .map(|(&mv, _)| mv)
                    .collect();
                assert_eq!(MaterialAgent::easy().best_moves(game, &position), expected);
            }
        }
    }
    for game in ["march-blitz", "breakthrough-6", "connect-four"] {
        with_game(game, Check).unwrap();
    }
}

#[test]
fn matches_have_the_right_signs_and_do_not_depend_on_threads() {
    let game = blitz();
    let baby = || -> Box<dyn Agent<Leaper>> { Box::new(RandomAgent) };
    let easy = || -> Box<dyn Agent<Leaper>> { Box::new(MaterialAgent::easy()) };
    // All positions alike: a player that wins at once where it can, else random.
    let winner =
        || -> Box<dyn Agent<Leaper>> { Box::new(NetworkAgent::new("constant", Constant(0.0))) };
    let streams = Seed(1).purpose("match");
    let result = play_match(&game, [&easy, &baby], 100, streams, 0);
    assert!(result.pairs.score().low > 0.9, "{result:?}");
    let reversed = play_match(&game, [&baby, &easy], 100, streams, 0);
    assert!(reversed.pairs.score().high < 0.1, "{reversed:?}");
    assert!(
        play_match(&game, [&winner, &baby], 200, streams, 0)
            .pairs
            .score()
            .low
            > 0.5
    );

    let one_thread = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .unwrap();
    let again = one_thread.install(|| play_match(&game, [&easy, &baby], 100, streams, 0));
    assert_eq!(result, again);
    assert_eq!(result.wins_draws_losses.iter().sum::<u64>(), 200);
    assert_eq!(result.endings.values().flatten().sum::<u64>(), 200);
    assert!(result.distinct_games > 190, "{result:?}");
}
