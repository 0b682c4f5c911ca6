//! Search: alpha-beta against the plain definition, on every game, with every set of
//! options; trees by hand; limits.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::seq::SliceRandom;
use tanren::game::perft::perft;
use tanren::game::playout::random_positions;
use tanren::game::{Game, Value};
use tanren::games::tree::{Tree, TreeError};
use tanren::games::{GAMES, GameVisitor, load, with_game};
use tanren::random::{Rng, RngExt, Seed};
use tanren::search::{
    AlphaBeta, Evaluator, Found, Limits, MaterialEvaluator, Options, corrected, minimax,
};

use crate::cli::{run, tanren};
use crate::games::{CRABS, WANDERERS, assert_conforms, game};

/// Hashes positions to few values, so that ties, where pruning goes wrong, are
/// frequent.
#[derive(Clone)]
pub(crate) struct Hashed {
    pub(crate) values: u64,
    pub(crate) together: bool,
}

impl<G: Game> Evaluator<G> for Hashed {
    fn evaluate(&mut self, _: &G, positions: &[G::Position], values: &mut Vec<Value>) {
        values.clear();
        values.extend(positions.iter().map(|position| {
            let mut hasher = DefaultHasher::new();
            position.hash(&mut hasher);
            let share = (hasher.finish() % self.values) as f32 / (self.values - 1) as f32;
            Value::new(2.0 * share - 1.0)
        }));
    }

    fn judges_siblings_together(&self) -> bool {
        self.together
    }
}

/// Every choice of options, and of an evaluator that wants batches.
fn all_options() -> impl Iterator<Item = (Options, bool)> {
    (0..32).map(|bits: u32| {
        let bit = |number: u32| bits >> number & 1 == 1;
        let options = Options {
            ordering: bit(0),
            table: bit(1),
            all_best: bit(2),
            prefer_sooner_wins: bit(3),
        };
        (options, bit(4))
    })
}

/// Positions of random games, some near the start and some near the end.
fn some_positions<G: Game>(game: &G, count: usize, rng: &mut Rng) -> Vec<G::Position> {
    let mut positions = random_positions(game, count, rng);
    positions.shuffle(rng);
    positions.truncate(count);
    positions
}

/// What the evaluator and the rules say at the end of a line.
fn value_of_line<G: Game>(
    game: &G,
    position: &G::Position,
    line: &[G::Move],
    evaluator: &mut impl Evaluator<G>,
) -> Value {
    let mut position = position.clone();
    for &mv in line {
        game.play(&mut position, mv).unwrap();
    }
    let mut values = Vec::new();
    evaluator.evaluate(game, std::slice::from_ref(&position), &mut values);
    let value = corrected(game, &position, values[0]);
    if line.len() % 2 == 0 { value } else { -value }
}

fn assert_equals_minimax<G: Game>(game: &G, positions: usize, max_depth: u32) {
    let mut rng = Seed(1).stream("search test");
    let positions = some_positions(game, positions, &mut rng);
    for (number, position) in positions.into_iter().enumerate() {
        let depth = rng.random_range(1..=max_depth);
        let values = [2, 3, 50][number % 3];
        for (options, together) in all_options() {
            let mut evaluator = Hashed { values, together };
            let sooner = options.prefer_sooner_wins;
            let expected = minimax(game, &position, depth, &mut evaluator, sooner);
            let mut search = AlphaBeta::new(evaluator.clone(), options);
            let found = search.search(game, &position, Limits::depth(depth));
            let what = format!(
                "{} in {} to depth {depth}, {options:?}, together: {together}, {values} values",
                game.name(),
                game.format_position(&position)
            );
            assert_eq!(found.value, expected.value, "{what}");
            assert_eq!(found.decided_in_plies, expected.decided_in_plies, "{what}");
            if options.all_best {
                assert_eq!(found.best, expected.best, "{what}");
            } else {
                assert!(expected.best.contains(&found.best[0]), "{what}");
            }
            let line = search.line(game, &position, found.depth);
            let at_end = value_of_line(game, &position, &line, &mut evaluator);
            assert_eq!(at_end, expected.value, "{what}");
        }
    }
}

struct EqualsMinimax;

impl GameVisitor for EqualsMinimax {
    type Output = ();

    fn visit<G: Game>(self, game: Arc<G>) {
        assert_equals_minimax(&*game, 24, 4);
    }
}

#[test]
fn alpha_beta_equals_minimax_on_every_game() {
    for entry in GAMES {
        with_game(entry.name, EqualsMinimax).unwrap();
    }
}

#[test]
fn alpha_beta_equals_minimax_where_positions_come_back() {
    // Pieces that wander back and forth reach the same position at several depths.
    assert_equals_minimax(&game(WANDERERS), 6, 4);
    assert_equals_minimax(&game(CRABS), 24, 4);
}

#[test]
fn alpha_beta_equals_minimax_on_random_trees() {
    let mut rng = Seed(2).stream("trees");
    for _ in 0..100 {
        let branching: usize = rng.random_range(2..=4);
        let height = rng.random_range(1..=4);
        let leaves = (0..branching.pow(height)).map(|_| rng.random_range(-3..=3));
        let tree = Tree::new(branching, leaves.collect()).unwrap();
        assert_equals_minimax(&tree, 1, height + 1);
    }
}

#[test]
fn one_searcher_may_search_again_and_again() {
    // What the table remembers of other positions, depths and games must not show.
    let blitz = load("march-blitz").unwrap().as_leaper().unwrap().clone();
    let mut rng = Seed(3).stream("again");
    let mut evaluator = Hashed {
        values: 3,
        together: true,
    };
    let mut search = AlphaBeta::new(evaluator.clone(), Options::AGENT);
    let positions = some_positions(&blitz, 200, &mut rng);
    for (round, position) in positions.into_iter().enumerate() {
        let depth = rng.random_range(1..=4);
        if round % 10 == 0 {
            search.forget();
        }
        let expected = minimax(&blitz, &position, depth, &mut evaluator, true);
        let found = search.search(&blitz, &position, Limits::depth(depth));
        assert_eq!(
            (found.value, found.decided_in_plies, found.best),
            (expected.value, expected.decided_in_plies, expected.best)
        );
    }
}

// --- Trees by hand ---

fn search_tree(branching: usize, leaves: &[i32], options: Options) -> (i32, Vec<usize>, u64) {
    let tree = Tree::new(branching, leaves.to_vec()).unwrap();
    let depth = tree.height() as u32;
    let mut search = AlphaBeta::new(MaterialEvaluator, options);
    let found = search.search(&tree, &tree.start(), Limits::depth(depth));
    let line = search.line(&tree, &tree.start(), depth);
    (
        MaterialEvaluator::count(found.value),
        line.iter().map(|branch| branch.0).collect(),
        found.nodes,
    )
}

/// As in the textbooks.
const PLAIN: Options = Options {
    ordering: false,
    table: false,
    all_best: false,
    prefer_sooner_wins: true,
};

#[test]
fn the_textbook_tree_has_value_13() {
    // Source: the tree of the seed article; by hand, of 15 nodes alpha-beta leaves out
    // the leaf -5 alone: after 24 the opponent prefers 13.
    let leaves = [13, 8, 24, -5, 23, 15, -14, -20];
    assert_eq!(search_tree(2, &leaves, PLAIN), (13, vec![0, 0, 0], 14));
    let tree = Tree::new(2, leaves.to_vec()).unwrap();
    let found = minimax(&tree, &tree.start(), 3, &mut MaterialEvaluator, true);
    assert_eq!(MaterialEvaluator::count(found.value), 13);
    assert_eq!(found.nodes, 15);
}

#[test]
fn trees_of_any_shape_that_fits() {
    // 3 branches, 2 plies: the first player gets the best of the least of each three.
    // Knuth and Moore, figure 2: 7 of 9 leaves when the second is refuted at once.
    let (value, line, nodes) = search_tree(3, &[3, 12, 8, 2, 4, 6, 14, 5, 2], PLAIN);
    assert_eq!((value, line), (3, vec![0, 0]));
    assert_eq!(nodes, 1 + 3 + 3 + 1 + 3);
    // Equal values: 5 in the right half can be no better than 5 in the left one.
    assert_eq!(search_tree(2, &[5, 5, 5, 5], PLAIN), (5, vec![0, 0], 6));
    assert_eq!(search_tree(5, &[1, -2, 9, 0, 4], PLAIN).0, 9);
    let largest = [1 << 24, -(1 << 24), (1 << 24) - 1, 0];
    assert_eq!(search_tree(2, &largest, PLAIN).0, 0);
}

#[test]
fn leaves_that_do_not_fit_are_refused_with_what_would() {
    let refused = |branching, leaves: &[i32]| Tree::new(branching, leaves.to_vec()).unwrap_err();
    for (branching, leaves, message) in [
        (
            2,
            vec![0; 9],
            "9 leaves fill no tree with 2 branches a node: 8 or 16 leaves would",
        ),
        (
            3,
            vec![0; 8],
            "8 leaves fill no tree with 3 branches a node: 3 or 9 leaves would",
        ),
        (
            2,
            vec![0],
            "1 leaf fills no tree with 2 branches a node: 2 leaves would",
        ),
        (
            2,
            vec![],
            "0 leaves fill no tree with 2 branches a node: 2 leaves would",
        ),
        (
            1,
            vec![0],
            "a node cannot have 1 branches: accepted are 2 to 1000",
        ),
        (
            2,
            vec![i32::MIN, 0],
            "the leaf -2147483648 is out of range: accepted are -16777216 to 16777216",
        ),
    ] {
        assert_eq!(refused(branching, &leaves).to_string(), message);
    }
    assert_eq!(refused(1001, &[]), TreeError::Branching(1001));
}

#[test]
fn a_tree_is_a_game_like_any_other() {
    assert_conforms(
        &Tree::new(2, vec![13, 8, 24, -5, 23, 15, -14, -20]).unwrap(),
        50,
    );
    assert_conforms(
        &Tree::new(3, vec![0, 1, -1, 0, 1, -1, 0, 1, -1]).unwrap(),
        50,
    );
}

// --- Wins, nodes, limits ---

fn in_blitz(position: &str, depth: u32, options: Options) -> Found<String> {
    let blitz = load("march-blitz").unwrap().as_leaper().unwrap().clone();
    let position = blitz.parse_position(position).unwrap();
    let mut search = AlphaBeta::new(MaterialEvaluator, options);
    let found = search.search(&blitz, &position, Limits::depth(depth));
    Found {
        value: found.value,
        decided_in_plies: found.decided_in_plies,
        best: found.best.iter().map(|&mv| blitz.format_move(mv)).collect(),
        depth: found.depth,
        nodes: found.nodes,
    }
}

#[test]
fn a_win_sooner_counts_more_unless_told_otherwise() {
    // Blue can bring its king across at once, or after capturing the pawn.
    let position = "6/1K1p1k/2P3/6/6/6 w";
    let found = in_blitz(position, 3, Options::AGENT);
    assert_eq!((found.value, found.decided_in_plies), (Value::WIN, Some(1)));
    assert_eq!(found.best, ["b5a6", "b5b6", "b5c6"]);
    assert_eq!(found.depth, 1, "nothing deeper can be better");
    let all_equal = Options {
        prefer_sooner_wins: false,
        ..Options::AGENT
    };
    let found = in_blitz(position, 3, all_equal);
    assert_eq!(found.best.len(), 5, "pawn moves win later: {found:?}");
}

#[test]
fn a_loss_later_counts_more() {
    // Red's king is two steps from home. Blue's may hold out that long by staying
    // where the pawn does not reach.
    let found = in_blitz("6/6/6/2k1p1/6/P4K w", 6, Options::AGENT);
    assert_eq!(
        (found.value, found.decided_in_plies),
        (Value::LOSS, Some(4))
    );
    assert_eq!(found.best, ["a1a2", "a1b2"]);
}

/// Minimax visits every line of play.
#[test]
fn minimax_visits_as_many_positions_as_perft_counts() {
    let blitz = load("march-blitz").unwrap().as_leaper().unwrap().clone();
    let start = blitz.start();
    let counts = perft(&blitz, &start, 4);
    let found = minimax(&blitz, &start, 4, &mut MaterialEvaluator, true);
    assert_eq!(found.nodes, 1 + counts.iter().sum::<u64>());
}

#[test]
fn alpha_beta_visits_a_twentieth_of_minimax_at_most() {
    let blitz = load("march-blitz").unwrap().as_leaper().unwrap().clone();
    let start = blitz.start();
    let minimax_nodes = 1 + perft(&blitz, &start, 6).iter().sum::<u64>();
    let options = Options {
        all_best: false,
        ..Options::AGENT
    };
    let mut search = AlphaBeta::new(MaterialEvaluator, options);
    let found = search.search(&blitz, &start, Limits::depth(6));
    println!("{} of {minimax_nodes}", found.nodes);
    assert!(20 * found.nodes <= minimax_nodes, "{found:?}");
}

#[test]
fn limits_keep_the_last_depth_that_was_completed() {
    let blitz = load("march-blitz").unwrap().as_leaper().unwrap().clone();
    let start = blitz.start();
    let mut search = AlphaBeta::new(MaterialEvaluator, Options::AGENT);
    for nodes in [1, 100, 10_000] {
        search.forget();
        let limits = Limits {
            nodes: Some(nodes),
            ..Limits::depth(30)
        };
        let found = search.search(&blitz, &start, limits);
        assert!(found.nodes < nodes + 100, "{found:?}");
        let expected = minimax(&blitz, &start, found.depth, &mut MaterialEvaluator, true);
        assert_eq!((found.value, found.best), (expected.value, expected.best));
    }
    let limits = Limits {
        time: Some(Duration::from_millis(50)),
        ..Limits::depth(30)
    };
    let started = Instant::now();
    let found = search.search(&blitz, &start, limits);
    assert!(found.depth < 30);
    assert!(started.elapsed() < Duration::from_secs(5), "{found:?}");
}

// --- The commands ---

fn json(arguments: &[&str]) -> serde_json::Value {
    let (stdout, _) = run(tanren(arguments).arg("--json"), 0);
    serde_json::from_str(&stdout).unwrap()
}

#[test]
fn trees_on_the_command_line() {
    let leaves = ["13", "8", "24", "-5", "23", "15", "-14", "-20"];
    let tree = json(&[&["search", "tree"], &leaves[..]].concat());
    assert_eq!(tree["value"], 13);
    assert_eq!(tree["line"], serde_json::json!(["1", "1", "1"]));
    assert_eq!(tree["nodes"]["minimax"], 15);
    assert_eq!(tree["nodes"]["alpha_beta"], 14);
    let (stdout, _) = run(
        &mut tanren(&["search", "tree", "-3", "-1", "-2", "--branching", "3"]),
        0,
    );
    assert!(stdout.contains("value  -1\nline   2"), "{stdout}");
    for (arguments, part) in [
        (
            &["search", "tree", "1", "2", "3"][..],
            "2 or 4 leaves would",
        ),
        (
            &["search", "tree", "1", "--branching", "1"],
            "accepted are 2 to 1000",
        ),
        (&["search", "tree", "1", "x"], "invalid value 'x'"),
        (&["search", "tree"], "<LEAVES>..."),
    ] {
        let (_, stderr) = run(&mut tanren(arguments), 2);
        assert!(stderr.contains(part), "{arguments:?}: {stderr}");
    }
}

#[test]
fn positions_on_the_command_line() {
    let found = json(&["search", "position", "--depth", "4"]);
    let depths = found["depths"].as_array().unwrap();
    assert_eq!(depths.len(), 4);
    assert_eq!(depths[3]["nodes"], found["nodes"]);
    assert_eq!(found["nodes"]["minimax"], 1 + 16 + 256 + 3776 + 55574);
    assert_eq!(found["line"].as_array().unwrap().len(), 4);
    let count = |name: &str| found["nodes"][name].as_u64().unwrap();
    assert!(count("ordering") < count("alpha_beta") && count("alpha_beta") < count("minimax"));

    let position = "6/1K4/6/6/k5/6 w";
    let (stdout, _) = run(
        &mut tanren(&["search", "position", "--depth", "2", "--position", position]),
        0,
    );
    assert_eq!(stdout.matches("won in 1").count(), 2, "{stdout}");

    let search = ["search", "position", "--depth"];
    for (more, part) in [
        (&["0"][..], "0 is not in 1..=255"),
        (&["2", "--game", "chess"], "there is no game \"chess\""),
        (&["2", "--with", "nobody"], "there is no agent \"nobody\""),
        (&["2", "--position", "6/6"], "--position \"6/6\""),
        (
            &["2", "--position", "1k4/pppppp/6/6/PPPPPP/6 w"],
            "the game is over there (Catch)",
        ),
        (
            &["2", "--position", "6/pppppp/6/6/PPPPPP/4K1 w"],
            "has no king left",
        ),
        (
            &["2", "--game", "connect-four", "--with", "hard"],
            "no model is shipped for connect-four",
        ),
    ] {
        let (_, stderr) = run(&mut tanren(&[&search[..], more].concat()), 2);
        assert!(stderr.contains(part), "{more:?}: {stderr}");
    }
}
