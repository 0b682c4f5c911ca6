//! Test sets, grades and design reports: against a slow oracle, against counting by
//! hand, and as people use them.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value as Json;
use tanren::agents::{Agent, Judgement, NetworkAgent, RandomAgent};
use tanren::game::{Game, Outcome, Value};
use tanren::games::leaper::{Leaper, MARCH_BLITZ};
use tanren::games::{GAMES, GameVisitor, load};
use tanren::grade::{
    Grade, Recipe, SHIPPED, Source, TestPosition, TestSet, TestSetError, build, grade, references,
};
use tanren::random::{Rng, RngExt};
use tanren::search::{Evaluator, MaterialEvaluator};
use tanren::solve::Exact;

use crate::cli::{run, tanren};
use crate::games::{WANDERERS, game};

/// A small game that ends in draws now and then: pawns block each other, and nobody
/// wins by arriving.
const SMALL: &str = r#"
name = "small"
title = "Small"
start = "1k2/p1pp/4/PP1P/1K2 w"

[pieces.k]
name = "king"
move = "fWfF"
value = 0

[pieces.p]
name = "pawn"
move = "mfWcfF"
value = 1

[end]
capture = "k"
stuck = "draw"
"#;

fn small() -> Leaper {
    game(SMALL)
}

fn blitz() -> Leaper {
    game(MARCH_BLITZ)
}

/// Plain negamax that remembers positions: the definition of a value.
#[derive(Clone)]
struct Oracle<G: Game> {
    known: HashMap<G::Position, Exact>,
    /// Whether so many positions became known that its answers mean nothing.
    gave_up: bool,
}

impl<G: Game> Oracle<G> {
    const MOST_KNOWN: usize = 400_000;

    fn new() -> Oracle<G> {
        Oracle {
            known: HashMap::new(),
            gave_up: false,
        }
    }

    fn value(&mut self, game: &G, position: &G::Position) -> Exact {
        if let Some(outcome) = game.outcome(position) {
            return Exact::of(outcome, game.side_to_move(position));
        }
        if let Some(&value) = self.known.get(position) {
            return value;
        }
        self.gave_up |= self.known.len() >= Self::MOST_KNOWN;
        if self.gave_up {
            return Exact::Draw;
        }
        let mut best = Exact::Loss;
        for (_, value) in self.moves(game, position) {
            best = best.max(value);
            if best == Exact::Win {
                break;
            }
        }
        self.known.insert(position.clone(), best);
        best
    }

    /// Each move with its value for the mover, found when it is asked for.
    fn moves(
        &mut self,
        game: &G,
        position: &G::Position,
    ) -> impl Iterator<Item = (G::Move, Exact)> {
        let mut moves = Vec::new();
        game.legal_moves(position, &mut moves);
        moves.into_iter().map(|mv| {
            let mut child = position.clone();
            game.play_unchecked(&mut child, mv);
            (mv, -self.value(game, &child))
        })
    }
}

/// Judges by the oracle, or always wrongly.
#[derive(Clone)]
struct ByOracle<G: Game> {
    oracle: Oracle<G>,
    sign: f32,
}

impl<G: Game> Evaluator<G> for ByOracle<G> {
    fn evaluate(&mut self, game: &G, positions: &[G::Position], values: &mut Vec<Value>) {
        values.clear();
        values.extend(positions.iter().map(|position| {
            // Less sure than the rules are of finished games.
            let exact = Value::from(self.oracle.value(game, position)).get();
            Value::new(0.9 * self.sign * exact)
        }));
    }
}

fn no_prior<G: Game>() -> Option<Box<dyn Evaluator<G>>> {
    None
}

fn make<G: Game>(game: &G, recipe: &Recipe) -> TestSet<G> {
    let easy = || -> Box<dyn Agent<G>> { Box::new(tanren::agents::MaterialAgent::easy()) };
    let sources = [Source::semi_random(), Source::agent("easy", Box::new(easy))];
    build(game, recipe, &sources, "none", &no_prior, &|_| {})
        .unwrap()
        .set
}

fn recipe() -> Recipe {
    Recipe {
        plies: 2..=9,
        positions: 120,
        seed: 3,
        nodes: 1_000_000,
    }
}

fn in_one_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.unwrap().install(work)
}

// --- Test sets ---

#[test]
fn values_of_a_test_set_are_those_of_the_oracle() {
    let game = small();
    let set = make(&game, &recipe());
    assert_eq!(set.positions.len(), 120);
    let mut oracle = Oracle::new();
    for at in &set.positions {
        assert_eq!(
            at.value,
            oracle.value(&game, &at.position),
            "{:?}",
            at.position
        );
        let moves: Vec<_> = oracle.moves(&game, &at.position).collect();
        assert_eq!(at.moves, moves, "{:?}", at.position);
    }
    assert!(!oracle.gave_up);
    for value in [Exact::Loss, Exact::Draw, Exact::Win] {
        assert!(set.count(value) > 0, "no {value:?}");
    }
}

#[test]
fn positions_are_distinct_and_spread_evenly() {
    let game = small();
    let set = make(&game, &recipe());
    for ply in 2..=9 {
        let at_ply = set.positions.iter().filter(|at| at.ply == ply);
        assert_eq!(at_ply.clone().count(), 15);
        for source in [0, 1] {
            let from = at_ply.clone().filter(|at| at.source == source).count();
            assert!(
                from > 2,
                "{from} positions of ply {ply} from source {source}"
            );
        }
    }
    let mut seen = Vec::new();
    for at in &set.positions {
        assert!(!seen.contains(&at.position));
        seen.extend(game.mirrored(&at.position));
        seen.push(at.position);
    }
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let game = small();
    let (set, alone) = (
        make(&game, &recipe()),
        in_one_thread(|| make(&game, &recipe())),
    );
    assert_eq!(set.to_text(&game), alone.to_text(&game));
    let graded = || references(&game, &set);
    assert_eq!(graded(), in_one_thread(graded));
    let other_seed = Recipe {
        seed: 4,
        ..recipe()
    };
    assert!(make(&game, &other_seed).to_text(&game) != set.to_text(&game));
}

#[test]
fn what_takes_too_long_is_dropped_and_counted() {
    let game = blitz();
    let recipe = Recipe {
        plies: 10..=12,
        positions: 30,
        seed: 1,
        nodes: 200,
    };
    let set = make(&game, &recipe);
    assert!(set.provenance.dropped > 0);
    assert!(set.positions.len() <= 30);
    let alone = in_one_thread(|| make(&game, &recipe));
    assert_eq!(alone.to_text(&game), set.to_text(&game));
}

#[test]
fn where_there_are_few_positions_a_set_is_small() {
    let game = small();
    let few = Recipe {
        plies: 0..=1,
        positions: 100,
        ..recipe()
    };
    let set = make(&game, &few);
    let at = |ply| set.positions.iter().filter(|at| at.ply == ply).count();
    let mut moves = Vec::new();
    game.legal_moves(&game.start(), &mut moves);
    assert_eq!((at(0), at(1)), (1, moves.len()));
}

#[test]
fn a_test_set_is_read_back() {
    let game = small();
    let set = make(&game, &recipe());
    let text = set.to_text(&game);
    let read = TestSet::parse(&game, "set.txt", &text).unwrap();
    assert_eq!(read.provenance, set.provenance);
    assert_eq!(read.positions.len(), set.positions.len());
    for (read, at) in read.positions.iter().zip(&set.positions) {
        assert_eq!((read.position, read.ply), (at.position, at.ply));
        assert_eq!((read.value, &read.moves), (at.value, &at.moves));
        assert_eq!(read.source, at.source);
    }
    assert_eq!(read.to_text(&game), text);
    assert!(text.contains("--plies 2..9 --positions 120 --seed 3 --nodes 1000000 --from easy"));
}

#[test]
fn damaged_test_sets_are_refused_with_the_line() {
    let game = small();
    let text = make(&game, &recipe()).to_text(&game);
    let lines: Vec<&str> = text.lines().collect();
    let number_of = |start: &str| {
        lines
            .iter()
            .position(|line| line.starts_with(start))
            .unwrap()
    };
    let first = number_of("ply\t") + 1;
    let is_won = |line: &&str| line.contains("\twin\t");
    let won = first + 1 + lines[first + 1..].iter().position(is_won).unwrap();
    let cells: Vec<&str> = lines[won].split('\t').collect();
    let with_cell = |column: usize, cell: &str| {
        let mut cells = cells.clone();
        cells[column] = cell;
        cells.join("\t")
    };
    let mover = cells[3].split(' ').next().unwrap();
    let cases: Vec<(usize, String, &str)> = vec![
        (0, "# A shopping list".to_string(), "this is no test set"),
        (
            number_of("seed:"),
            "seed: one".to_string(),
            "seed: \"one\" is no number",
        ),
        (
            number_of("seed:"),
            "sed: 1".to_string(),
            "one of game, rules",
        ),
        (number_of("seed:"), String::new(), "one of game, rules"),
        (
            number_of("seed:"),
            "game: small".to_string(),
            "game is there twice",
        ),
        (
            number_of("plies:"),
            "plies: 9..2".to_string(),
            "is no range of plies",
        ),
        (
            number_of("positions:"),
            "positions: 121".to_string(),
            "announces 121",
        ),
        (won, with_cell(0, "10"), "the ply is none of 2..9"),
        (won, with_cell(1, "loss"), "that of the best move is win"),
        (won, with_cell(2, "99"), "moves, not 99"),
        (won, with_cell(3, "-"), "the value is given as \"win\""),
        (won, with_cell(3, "a1a5"), "a1a5 is not legal"),
        (
            won,
            with_cell(3, &format!("{mover} {mover}")),
            "is there twice",
        ),
        (won, with_cell(4, mover), "cannot both win and draw"),
        (won, with_cell(5, "hearsay"), "the source is none of those"),
        (won, with_cell(6, "1k2/pppp w"), "the position has"),
        (
            won,
            cells[1..].join("\t"),
            "has 7 columns, separated by tabs",
        ),
        (won, lines[won - 1].to_string(), "was there before"),
    ];
    for (line, with, expected) in cases {
        let mut damaged = lines.clone();
        damaged[line] = &with;
        let error = TestSet::parse(&game, "set.txt", &damaged.join("\n"))
            .err()
            .unwrap();
        let message = error.to_string();
        assert!(message.contains(expected), "{with:?}: {message}");
        // Faults of the header as a whole are known at its end.
        let known = ["announces", "no range", "no number"];
        if !known.iter().any(|word| expected.contains(word)) {
            let place = format!("set.txt, line {}: ", line + 1);
            assert!(message.starts_with(&place), "{with:?}: {message}");
        }
    }
    for (left_out, expected) in [("rules:", "no line \"rules\""), ("ply\t", "accepted are")] {
        let mut damaged = lines.clone();
        damaged.remove(number_of(left_out));
        let error = TestSet::parse(&game, "set.txt", &damaged.join("\n"))
            .err()
            .unwrap();
        assert!(error.to_string().contains(expected), "{error}");
    }
    let cut = lines[..lines.len() - 1].join("\n");
    let error = TestSet::parse(&game, "set.txt", &cut).err().unwrap();
    assert!(
        error.to_string().contains("ends after 119 positions"),
        "{error}"
    );
}

#[test]
fn a_test_set_of_another_game_is_refused() {
    let set = make(&small(), &recipe()).to_text(&small());
    let error = TestSet::parse(&blitz(), "set.txt", &set).err().unwrap();
    assert!(matches!(error, TestSetError::OtherGame { .. }), "{error}");
    let other_rules = game(&SMALL.replace("stuck = \"draw\"", "stuck = \"loss\""));
    let error = TestSet::parse(&other_rules, "set.txt", &set).err().unwrap();
    assert!(matches!(error, TestSetError::OtherRules { .. }), "{error}");
}

#[test]
fn shipped_test_sets_are_small_even_and_true() {
    struct Check(&'static str);
    impl GameVisitor for Check {
        type Output = ();
        fn visit<G: Game>(self, game: Arc<G>) {
            let set = TestSet::shipped(&*game).unwrap();
            assert_eq!(set.to_text(&*game), self.0);
            let per_ply = set.positions.len() / set.plies().len();
            for ply in set.plies() {
                let at_ply = set.positions.iter().filter(|at| at.ply == ply).count();
                assert!(at_ply.abs_diff(per_ply) <= 1, "{at_ply} of ply {ply}");
            }
            // Those with the fewest pieces are within the oracle's reach.
            let pieces = |at: &&TestPosition<G>| {
                let text = game.format_position(&at.position);
                text.chars().filter(|c| c.is_alphabetic()).count()
            };
            let mut by_pieces: Vec<_> = set.positions.iter().collect();
            by_pieces.sort_by_key(pieces);
            let mut checked = 0;
            for at in &by_pieces[..30] {
                if checked == 10 {
                    break;
                }
                let mut oracle = Oracle::new();
                let moves: Vec<_> = oracle.moves(&*game, &at.position).collect();
                if !oracle.gave_up {
                    assert_eq!(at.moves, moves, "{:?}", at.position);
                    checked += 1;
                }
            }
            assert_eq!(checked, 10);
        }
    }
    for shipped in SHIPPED {
        assert!(shipped.text.len() < 200_000, "{} is large", shipped.file);
        load(shipped.game).unwrap().visit(Check(shipped.text));
    }
}

// --- Grades ---

#[test]
fn a_perfect_agent_makes_no_blunders_and_knows_all_signs() {
    let game = small();
    let set = make(&game, &recipe());
    let agent = |sign| {
        move || -> Box<dyn Agent<Leaper>> {
            let oracle = Oracle::new();
            Box::new(NetworkAgent::new("perfect", ByOracle { oracle, sign }))
        }
    };
    let perfect = grade(&game, &set, "perfect", &agent(1.0), true);
    assert_eq!(perfect.blunders.unwrap().share.score, 0.0);
    assert_eq!(perfect.signs.unwrap().share.score, 1.0);
    assert_eq!(perfect.agent, "perfect");
    let parts = [&perfect.blunders_by_ply, &perfect.blunders_by_winning_moves];
    for rows in parts {
        assert!(rows.len() > 2);
        assert!(rows.iter().all(|row| row.share.share.score == 0.0));
        let positions = rows.iter().map(|row| row.share.positions).sum::<u64>();
        assert_eq!(positions, set.count(Exact::Win) as u64);
    }
    // Sure at 0.9 or 1 of what is so, and at 0.5 of draws: off by 0.05 at most.
    let calibration = perfect.calibration.unwrap();
    assert!(calibration.brier < 0.051_f64.powi(2), "{calibration:?}");
    assert!(calibration.expected_error < 0.051, "{calibration:?}");

    // Who seeks what is bad errs whenever it can, unless the rules end the game.
    let perverse = grade(&game, &set, "perverse", &agent(-1.0), false);
    let errs = |at: &&TestPosition<Leaper>| {
        let ends = at.moves.iter().any(|&(mv, _)| {
            let mut child = at.position;
            game.play_unchecked(&mut child, mv);
            game.outcome(&child)
                .is_some_and(|outcome| outcome != Outcome::Draw)
        });
        !ends && at.winning_moves().count() < at.moves.len()
    };
    let won = || set.positions.iter().filter(|at| at.value == Exact::Win);
    let expected = won().filter(errs).count() as f64 / won().count() as f64;
    assert!(expected > 0.2);
    assert_eq!(perverse.blunders.unwrap().share.score, expected);
}

#[test]
fn a_random_mover_gets_the_exact_expectation() {
    let game = small();
    let set = make(&game, &recipe());
    let references = references(&game, &set);
    let random = named(&references, "a random mover");
    let won = || set.positions.iter().filter(|at| at.value == Exact::Win);
    let thrown_away = won().map(|at| {
        let losing = at.moves.iter().filter(|(_, value)| *value != Exact::Win);
        losing.count() as f64 / at.moves.len() as f64
    });
    let expected = thrown_away.sum::<f64>() / won().count() as f64;
    let blunders = random.blunders.unwrap();
    assert!((blunders.share.score - expected).abs() < 1e-12);
    assert_eq!((random.signs, random.calibration.is_none()), (None, true));

    // And that is what it does.
    let mut rng = tanren::random::Seed(1).stream("moves");
    let (mut thrown_away, mut moves) = (0.0, 0.0);
    for _ in 0..200 {
        for at in won() {
            let mv = RandomAgent.choose(&game, &at.position, &mut rng);
            let kept = at.winning_moves().any(|winning| winning == mv);
            thrown_away += f64::from(u8::from(!kept));
            moves += 1.0;
        }
    }
    let error = 4.0 * (expected * (1.0 - expected) / moves).sqrt();
    assert!((thrown_away / moves - expected).abs() < error);
}

#[test]
fn references_are_ordered_by_how_far_they_look() {
    let game = small();
    let set = make(&game, &recipe());
    let references = references(&game, &set);
    let names: Vec<&str> = references.iter().map(|grade| &*grade.agent).collect();
    assert_eq!(
        names,
        [
            "the mover always wins",
            "a random mover",
            "best of 1 ply",
            "best of 3 plies",
            "best of 5 plies"
        ]
    );
    let blunders = references.iter().filter_map(|grade| grade.blunders);
    let blunders: Vec<f64> = blunders.map(|share| share.share.score).collect();
    assert_eq!(blunders.len(), 4);
    assert!(blunders.is_sorted_by(|a, b| a > b), "{blunders:?}");
    let optimist = named(&references, "the mover always wins").signs.unwrap();
    let decided = set.count(Exact::Win) + set.count(Exact::Loss);
    assert_eq!(optimist.positions as usize, decided);
    let won = set.count(Exact::Win) as f64;
    assert_eq!(optimist.share.score, won / decided as f64);
}

fn named<'a>(grades: &'a [Grade], name: &str) -> &'a Grade {
    grades.iter().find(|grade| grade.agent == name).unwrap()
}

/// Says a value that is on the right side in two positions of three, draws lots between
/// the first move and the last.
struct ByHand;

impl<G: Game> Agent<G> for ByHand {
    fn name(&self) -> String {
        "by hand".to_string()
    }

    fn new_game(&mut self) {}

    fn choose(&mut self, game: &G, position: &G::Position, rng: &mut Rng) -> G::Move {
        let moves = self.judge(game, position).moves;
        moves[rng.random_range(0..moves.len())]
    }

    fn judge(&mut self, game: &G, position: &G::Position) -> Judgement<G::Move> {
        let mut values = Vec::new();
        let at = std::slice::from_ref(position);
        MaterialEvaluator.evaluate(game, at, &mut values);
        let mut moves = Vec::new();
        game.legal_moves(position, &mut moves);
        Judgement {
            value: Some(values[0]),
            moves: vec![moves[0], moves[moves.len() - 1]],
        }
    }
}

#[test]
fn shares_are_what_one_counts_by_hand() {
    let game = small();
    let set = make(&game, &recipe());
    let by_hand = || -> Box<dyn Agent<Leaper>> { Box::new(ByHand) };
    let graded = grade(&game, &set, "by hand", &by_hand, false);
    let (mut right, mut decided, mut thrown_away, mut won) = (0.0, 0, 0.0, 0);
    for at in &set.positions {
        let ahead = game.material(&at.position).signum();
        right += match (at.value, ahead) {
            (Exact::Win, 1) | (Exact::Loss, -1) => 1.0,
            (Exact::Win | Exact::Loss, 0) => 0.5,
            _ => 0.0,
        };
        decided += u64::from(at.value != Exact::Draw);
        if at.value == Exact::Win {
            won += 1;
            for (_, value) in [at.moves[0], at.moves[at.moves.len() - 1]] {
                thrown_away += if value == Exact::Win { 0.0 } else { 0.5 };
            }
        }
    }
    let (signs, blunders) = (graded.signs.unwrap(), graded.blunders.unwrap());
    assert_eq!((signs.positions, blunders.positions), (decided, won));
    assert!((signs.share.score - right / decided as f64).abs() < 1e-12);
    assert!((blunders.share.score - thrown_away / won as f64).abs() < 1e-12);
    assert!(signs.share.low < signs.share.score && signs.share.score < signs.share.high);
}

// --- The commands ---

fn json(arguments: &[&str]) -> Json {
    let (stdout, _) = run(&mut tanren(arguments), 0);
    serde_json::from_str(&stdout).unwrap()
}

fn written(toml: &str, directory: &Path) -> String {
    let path = directory.join("rules.toml");
    fs::write(&path, toml).unwrap();
    path.to_str().unwrap().to_string()
}

#[test]
fn from_test_set_to_grade_on_the_command_line() {
    let directory = tempfile::tempdir().unwrap();
    let rules = written(SMALL, directory.path());
    let file = |threads: &str| {
        let out = directory.path().join(format!("{threads}.txt"));
        let out = out.to_str().unwrap().to_string();
        let making = [
            "testset",
            &rules,
            "--plies",
            "3..8",
            "--positions",
            "60",
            "--threads",
        ];
        let more = [threads, "--out", &out, "--from", "easy", "material@2"];
        let (stdout, stderr) = run(&mut tanren(&[&making[..], &more[..]].concat()), 0);
        assert!(stdout.starts_with("60 positions: "), "{stdout}");
        assert!(stdout.contains("0 dropped"), "{stdout}");
        assert!(stderr.contains("60/60"), "{stderr}");
        out
    };
    let (one, two) = (file("1"), file("2"));
    assert_eq!(fs::read(&one).unwrap(), fs::read(&two).unwrap());

    let grading = ["grade", "easy", "baby", "--game", &rules, "--testset", &one];
    let (stdout, _) = run(&mut tanren(&grading), 0);
    for part in [
        "small: 60 exactly solved positions of plies 3 to 8, ",
        "| easy ",
        "| best of 5 plies ",
        "Wins thrown away, by ply",
        "by number of moves that keep the win",
    ] {
        assert!(stdout.contains(part), "{part:?} is missing in\n{stdout}");
    }
    let result = json(&[&grading[..], &["--json"]].concat());
    assert_eq!(result["game"], "small");
    assert_eq!(result["test_set"]["plies"], "3..8");
    assert_eq!(result["grades"][0]["agent"], "easy");
    assert!(result["grades"][0]["blunders"]["score"].is_f64());
    let baby = &result["grades"][1];
    let random = &result["references"][1];
    assert_eq!(baby["blunders"], random["blunders"]);
    assert_eq!(baby["signs"], Json::Null);
    assert_eq!(result["references"].as_array().unwrap().len(), 5);
}

#[test]
fn networks_are_graded_on_the_shipped_test_set() {
    let result = json(&["grade", "normal", "model@2", "--json"]);
    let grade = |number: usize| &result["grades"][number];
    let blunders = |grade: &Json| grade["blunders"]["score"].as_f64().unwrap();
    assert!(blunders(grade(1)) < blunders(grade(0)), "{result}");
    assert!(
        blunders(grade(0)) < blunders(&result["references"][2]),
        "{result}"
    );
    assert!(grade(0)["calibration"]["bins"].as_array().unwrap().len() > 5);
    let (stdout, _) = run(&mut tanren(&["grade", "normal"]), 0);
    assert!(
        stdout.contains("Calibration of normal: Brier score 0."),
        "{stdout}"
    );
}

#[test]
fn senseless_grades_and_test_sets_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let rules = written(WANDERERS, directory.path());
    let out = directory.path().join("set.txt");
    let out = out.to_str().unwrap();
    let shipped = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/models/march-blitz/testset.txt"
    );
    let cases: &[(&[&str], i32, &str)] = &[
        (&["grade"], 2, "<AGENT>"),
        (&["grade", "eazy"], 2, "did you mean easy?"),
        (
            &["grade", "easy", "--game", "connect-four"],
            2,
            "tanren testset connect-four --out FILE",
        ),
        (
            &["grade", "easy", "--testset", "/nowhere"],
            2,
            "cannot read /nowhere",
        ),
        (
            &["grade", "easy", "--testset", &rules],
            2,
            "line 1: this is no test set",
        ),
        (
            &[
                "grade",
                "easy",
                "--game",
                "march-grand",
                "--testset",
                shipped,
            ],
            2,
            "is for march-blitz, not for march-grand",
        ),
        (&["testset", "march-blitz"], 2, "--out <FILE>"),
        (&["testset", "march-blits", "--out", out], 2, "march-blitz"),
        (
            &[
                "testset",
                "march-blitz",
                "--plies",
                "9",
                "--positions",
                "0",
                "--out",
                out,
            ],
            2,
            "0 is not in 1..",
        ),
        (
            &["testset", "march-blitz", "--plies", "9..2", "--out", out],
            2,
            "such as 4..14",
        ),
        (
            &["testset", "march-blitz", "--from", "eazy", "--out", out],
            2,
            "did you mean easy?",
        ),
        (
            &[
                "testset",
                "march-blitz",
                "--plies",
                "90",
                "--positions",
                "1",
                "--out",
                out,
            ],
            1,
            "no game lasts so long",
        ),
        (
            &["testset", &rules, "--out", out],
            1,
            "there are no exact values",
        ),
    ];
    for (arguments, code, expected) in cases {
        let (_, stderr) = run(&mut tanren(arguments), *code);
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    }
    assert!(!Path::new(out).exists());
}

#[test]
fn every_game_has_a_design_report() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html");
    let page = page.to_str().unwrap();
    for entry in GAMES {
        let report = json(&[
            "games", "report", entry.name, "--games", "20", "--nodes", "2000", "--json", "--html",
            page,
        ]);
        assert_eq!(report["game"], entry.name);
        let play = report["play"].as_array().unwrap();
        let has_network = report["no_network"].is_null();
        assert_eq!(play.len(), if has_network { 3 } else { 2 }, "{report}");
        for row in play {
            assert_eq!(row["games"], 20);
            let endings = row["endings"].as_object().unwrap().values();
            let games = endings.flat_map(|counts| counts.as_array().unwrap());
            assert_eq!(games.map(|count| count.as_u64().unwrap()).sum::<u64>(), 20);
        }
        let moves = report["first_moves"].as_array().unwrap();
        assert_eq!(moves[0]["network"].is_null(), !has_network);
        assert!(report["exact"]["nodes"].as_u64().unwrap() > 0, "{report}");
        let page = fs::read_to_string(page).unwrap();
        assert!(page.matches("<svg").count() >= 3 && page.contains("strong play"));
    }
}

#[test]
fn design_reports_say_what_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let small = written(SMALL, directory.path());
    let few = ["--games", "20", "--nodes", "300000"];
    let (stdout, stderr) = run(tanren(&["games", "report", &small]).args(few), 0);
    for part in [
        "Balance shows only in strong play",
        "Exact value of the start: a ",
        "No network is shipped for small",
        "tanren train --set game=",
        "| random ",
        "| easy ",
        "Catch",
    ] {
        assert!(stdout.contains(part), "{part:?} is missing in\n{stdout}");
    }
    assert!(stderr.contains(", done"), "{stderr}");
    // The exact values are the oracle's.
    let report = json(&[&["games", "report", &small, "--json"][..], &few].concat());
    let game = self::small();
    let mut oracle = Oracle::new();
    let start = oracle.value(&game, &game.start());
    assert_eq!(report["exact"]["value"], start.name());
    for (mv, value) in oracle.moves(&game, &game.start()) {
        let moves = report["first_moves"].as_array().unwrap();
        let found = moves
            .iter()
            .find(|found| found["move"] == *game.format_move(mv));
        assert_eq!(found.unwrap()["exact"], value.name());
    }

    let wanderers = written(WANDERERS, directory.path());
    let (stdout, _) = run(tanren(&["games", "report", &wanderers]).args(few), 0);
    assert!(!stdout.contains("Exact value of the start: a "), "{stdout}");
    let (_, stderr) = run(
        &mut tanren(&["games", "report", "march-blitz", "--with", "easy"]),
        2,
    );
    assert!(stderr.contains("--with takes a network"), "{stderr}");
}

#[test]
fn training_is_measured_against_the_truth_and_not_changed_by_it() {
    let directory = tempfile::tempdir().unwrap();
    let train = |name: &str, more: &[&str]| {
        let out = directory.path().join(name);
        let mut command = tanren(&["train", "smoke", "--device", "cpu", "--out"]);
        let output = run(command.arg(&out).args(more), 0);
        (out, output)
    };
    let (measured, (stdout, stderr)) = train("measured", &[]);
    assert!(
        stderr.contains("signs right") && stderr.contains("blunders"),
        "{stderr}"
    );
    assert!(stdout.contains("blunders"), "{stdout}");
    let metrics = fs::read_to_string(measured.join("metrics.jsonl")).unwrap();
    let lines = metrics
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<Json> = lines.collect();
    let with = |key: &str| lines.iter().filter(|line| line[key].is_f64()).count();
    assert_eq!((with("blunder_rate"), with("signs_right_low")), (2, 2));
    assert_eq!(with("score_easy"), 2);
    let text = fs::read(measured.join("summary.json")).unwrap();
    let mut summary: Json = serde_json::from_slice(&text).unwrap();
    assert!(summary["grade"]["blunders"]["score"].is_f64(), "{summary}");
    let page = fs::read_to_string(measured.join("report.html")).unwrap();
    assert!(page.contains("Wins thrown away over games"));

    let (unmeasured, _) = train("unmeasured", &["--set", "evaluation.every_games=1000000"]);
    let weights = |run: &Path| fs::read(run.join("model/weights.safetensors")).unwrap();
    assert!(weights(&measured) == weights(&unmeasured));

    // A run from before there were grades is reported all the same.
    summary.as_object_mut().unwrap().remove("grade");
    fs::write(measured.join("summary.json"), summary.to_string()).unwrap();
    let (stdout, _) = run(tanren(&["report"]).args([&measured, &unmeasured]), 0);
    assert!(
        stdout.contains("| measured ") && stdout.contains("| unmeasured "),
        "{stdout}"
    );
}
