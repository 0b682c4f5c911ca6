//! The games: golden counts, the conformance laws over the table of games and over
//! files as people write them, fast against slow, and the messages for bad files.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use proptest::prelude::*;
use tanren::game::conformance::{self, Report};
use tanren::game::perft::perft;
use tanren::game::{
    Feature, FeatureChanges, Game, IllegalMove, Outcome, ParseError, PlaneShape, Side,
};
use tanren::games::connect_four::ConnectFour;
use tanren::games::leaper::{self, Leaper, MARCH_BLITZ, slow};
use tanren::games::{GAMES, GameVisitor, with_game};
use tanren::random::Seed;

/// The start in the file of March, Blitz layout.
const BLITZ_START: &str = "1k4/pppppp/6/6/PPPPPP/4K1 w";

/// Pieces that leap far and in all directions, so plies are limited.
pub(crate) const WANDERERS: &str = r#"
name = "wanderers"
title = "Knights, elephants and machines"
start = "nadkdan/7/7/7/7/NADKDAN w"

[pieces.n]
name = "knight"
move = "N"
value = 3

[pieces.a]
name = "elephant"
move = "FA"
value = 2

[pieces.d]
name = "machine"
move = "mWD"
value = 2

[pieces.k]
name = "king"
move = "WF"
value = 0

[end]
capture = "k"
goal = "k"
stuck = "draw"
max_plies = 60
"#;

/// Pieces that tell left from right, on a tall board.
pub(crate) const CRABS: &str = r#"
name = "crabs"
title = "Crabs on a tall board"
start = "cccg/4/4/4/4/4/4/4/4/4/GCCC w"

[pieces.c]
name = "crab"
move = "flNmfrFcfW"
value = 1

[pieces.g]
name = "ghost"
move = "fWrfF"
value = 0

[end]
goal = "g"
stuck = "win"
"#;

pub(crate) fn game(toml: &str) -> Leaper {
    Leaper::parse("test.toml", toml).unwrap()
}

pub(crate) fn assert_conforms<G: Game>(game: &G, games: usize) -> Report {
    let report = conformance::check(game, games, &mut Seed(1).stream("test"));
    let failures: Vec<String> = report.failures.iter().map(|f| f.to_string()).collect();
    assert!(failures.is_empty(), "{}: {failures:#?}", game.name());
    assert_eq!(report.games, games);
    report
}

// --- Golden counts ---

struct GoldenPerft<'a> {
    position: &'a str,
    counts: Vec<u64>,
}

impl GameVisitor for GoldenPerft<'_> {
    type Output = ();

    fn visit<G: Game>(self, game: Arc<G>) {
        let position = game.parse_position(self.position).unwrap();
        let counted = perft(&*game, &position, self.counts.len());
        assert_eq!(counted, self.counts, "{} {}", game.name(), self.position);
    }
}

#[test]
fn perft_gives_the_golden_counts() {
    for file in [
        include_str!("data/march.perft"),
        include_str!("data/connect-four.perft"),
    ] {
        assert!(file.contains("# Source: "));
        let (mut game, mut position) = ("", "");
        for line in file
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            match line.split_once(' ').unwrap() {
                ("game", name) => game = name,
                ("position", text) => position = text,
                ("perft", counts) => {
                    let counts = counts
                        .split(' ')
                        .map(|count| count.parse().unwrap())
                        .collect();
                    with_game(game, GoldenPerft { position, counts }).unwrap();
                }
                (other, _) => panic!("{other} in a perft file"),
            }
        }
    }
}

/// Connect Four as anyone would write it first.
fn slow_connect_four_perft(board: &mut [[char; 7]; 6], stone: char, plies: usize) -> u64 {
    if plies == 0 {
        return 1;
    }
    let other = if stone == 'X' { 'o' } else { 'X' };
    let mut lines = 0;
    for file in 0..7 {
        let Some(rank) = (0..6).find(|&rank| board[rank][file] == ' ') else {
            continue;
        };
        board[rank][file] = stone;
        let won = [(1, 0), (0, 1), (1, 1), (1, -1)]
            .iter()
            .any(|&(files, ranks)| {
                let in_line = |sign: i32| {
                    let along = (1..4).map(|i| {
                        (
                            file as i32 + sign * i * files,
                            rank as i32 + sign * i * ranks,
                        )
                    });
                    let own = |&(f, r): &(i32, i32)| {
                        (0..7).contains(&f)
                            && (0..6).contains(&r)
                            && board[r as usize][f as usize] == stone
                    };
                    along.take_while(own).count()
                };
                in_line(1) + in_line(-1) >= 3
            });
        lines += match (won, plies) {
            (_, 1) => 1,
            (true, _) => 0,
            (false, _) => slow_connect_four_perft(board, other, plies - 1),
        };
        board[rank][file] = ' ';
    }
    lines
}

#[test]
fn connect_four_agrees_with_an_array() {
    let slow: Vec<u64> = (1..=8)
        .map(|plies| slow_connect_four_perft(&mut [[' '; 7]; 6], 'X', plies))
        .collect();
    assert_eq!(perft(&ConnectFour, &ConnectFour.start(), 8), slow);
}

// --- Conformance ---

struct Conforms;

impl GameVisitor for Conforms {
    type Output = ();

    fn visit<G: Game>(self, game: Arc<G>) {
        assert_conforms(&*game, 60);
    }
}

#[test]
fn every_built_in_game_conforms() {
    for entry in GAMES {
        with_game(entry.name, Conforms).unwrap();
    }
}

#[test]
fn built_in_games_go_by_their_own_names() {
    struct Name;
    impl GameVisitor for Name {
        type Output = String;
        fn visit<G: Game>(self, game: Arc<G>) -> String {
            game.name().to_string()
        }
    }
    for entry in GAMES {
        assert_eq!(with_game(entry.name, Name).unwrap(), entry.name);
    }
}

#[test]
fn files_as_people_write_them_conform() {
    let wanderers = game(WANDERERS);
    let report = assert_conforms(&wanderers, 60);
    assert!(!wanderers.is_graded());
    assert!(
        report
            .endings
            .iter()
            .any(|(ending, _)| *ending == "max plies"),
        "{report:?}"
    );

    let crabs = game(CRABS);
    let report = assert_conforms(&crabs, 60);
    assert!(crabs.is_graded());
    assert_eq!(crabs.mirrored(&crabs.start()), None);
    assert!(
        report.endings.iter().any(|(ending, _)| *ending == "stuck"),
        "{report:?}"
    );
}

/// A fault built into an otherwise right game.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    ListsTwice,
    Miscounts,
    PlaysOn,
    ForgetsTheTurn,
    AcceptsEverything,
    OverlooksTheEnemy,
    ForgetsCaptures,
    FlipsWithoutTurning,
    MirrorsNothing,
    MirrorsFeaturesAstray,
    EndsTooLate,
    ConfusesKeys,
    KeysSeeSides,
    ForeseesTooMuch,
}

/// March with one fault, for testing the tests.
struct Faulty {
    march: Leaper,
    fault: Fault,
}

impl Faulty {
    fn has(&self, fault: Fault) -> bool {
        self.fault == fault
    }
}

impl Game for Faulty {
    type Position = leaper::Position;
    type Move = leaper::Move;

    fn name(&self) -> &str {
        self.march.name()
    }
    fn title(&self) -> &str {
        self.march.title()
    }
    fn rules_text(&self) -> String {
        self.march.rules_text()
    }
    fn start(&self) -> Self::Position {
        self.march.start()
    }
    fn side_to_move(&self, position: &Self::Position) -> Side {
        self.march.side_to_move(position)
    }
    fn legal_moves(&self, position: &Self::Position, moves: &mut Vec<Self::Move>) {
        self.march.legal_moves(position, moves);
        if self.has(Fault::ListsTwice) {
            moves.extend(moves.first().copied());
        }
    }
    fn count_legal_moves(&self, position: &Self::Position) -> u64 {
        self.march.count_legal_moves(position) + u64::from(self.has(Fault::Miscounts))
    }
    fn play_unchecked(&self, position: &mut Self::Position, mv: Self::Move) {
        self.march.play_unchecked(position, mv);
    }
    fn play(&self, position: &mut Self::Position, mv: Self::Move) -> Result<(), IllegalMove> {
        if self.has(Fault::AcceptsEverything) {
            return Ok(());
        }
        self.march.play(position, mv)
    }
    fn outcome(&self, position: &Self::Position) -> Option<Outcome> {
        self.march
            .outcome(position)
            .filter(|_| !self.has(Fault::PlaysOn))
    }
    fn ending(&self, position: &Self::Position) -> &'static str {
        self.march.ending(position)
    }
    fn material(&self, position: &Self::Position) -> i32 {
        self.march.material(position)
    }
    fn max_plies(&self) -> usize {
        if self.has(Fault::EndsTooLate) {
            5
        } else {
            self.march.max_plies()
        }
    }
    fn why_endless(&self) -> Option<String> {
        self.march.why_endless()
    }
    fn foresee(&self, position: &Self::Position) -> Option<Side> {
        match self.has(Fault::ForeseesTooMuch) {
            true => Some(self.march.side_to_move(position)),
            false => self.march.foresee(position),
        }
    }
    fn key(&self, position: &Self::Position) -> u128 {
        match self.fault {
            Fault::ConfusesKeys => self.march.key(position) % 5u128.pow(18),
            Fault::KeysSeeSides => {
                let mut hasher = DefaultHasher::new();
                position.hash(&mut hasher);
                hasher.finish().into()
            }
            _ => self.march.key(position),
        }
    }
    fn key_bits(&self) -> Option<u32> {
        self.march.key_bits()
    }
    fn format_position(&self, position: &Self::Position) -> String {
        let text = self.march.format_position(position);
        if self.has(Fault::ForgetsTheTurn) {
            text.replace(" b", " w")
        } else {
            text
        }
    }
    fn parse_position(&self, text: &str) -> Result<Self::Position, ParseError> {
        self.march.parse_position(text)
    }
    fn format_move(&self, mv: Self::Move) -> String {
        self.march.format_move(mv)
    }
    fn parse_move(&self, text: &str) -> Result<Self::Move, ParseError> {
        self.march.parse_move(text)
    }
    fn draw(&self, position: &Self::Position) -> String {
        self.march.draw(position)
    }
    fn plane_shape(&self) -> PlaneShape {
        self.march.plane_shape()
    }
    fn features(&self, position: &Self::Position, side: Side, features: &mut Vec<Feature>) {
        self.march.features(position, side, features);
        if self.has(Fault::OverlooksTheEnemy) {
            // The enemy's are the last two of the four planes of 64.
            features.retain(|&feature| feature < 128);
        }
    }
    fn feature_changes(
        &self,
        position: &Self::Position,
        mv: Self::Move,
        side: Side,
        changes: &mut FeatureChanges,
    ) {
        self.march.feature_changes(position, mv, side, changes);
        if self.has(Fault::ForgetsCaptures) {
            changes.removed.truncate(1);
        }
    }
    fn flipped(&self, position: &Self::Position) -> Option<Self::Position> {
        if self.has(Fault::FlipsWithoutTurning) {
            return self.march.mirrored(position);
        }
        self.march.flipped(position)
    }
    fn mirrored(&self, position: &Self::Position) -> Option<Self::Position> {
        if self.has(Fault::MirrorsNothing) {
            Some(*position)
        } else {
            self.march.mirrored(position)
        }
    }
    fn mirrored_feature(&self, feature: Feature) -> Feature {
        if self.has(Fault::MirrorsFeaturesAstray) {
            feature
        } else {
            self.march.mirrored_feature(feature)
        }
    }
}

#[test]
fn the_conformance_check_finds_every_fault() {
    for (fault, law) in [
        (Fault::ListsTwice, "no move is listed twice"),
        (Fault::Miscounts, "count_legal_moves counts the legal moves"),
        (
            Fault::PlaysOn,
            "there is no move exactly when the game is over",
        ),
        (Fault::ForgetsTheTurn, "a position's text reads back"),
        (Fault::AcceptsEverything, "play refuses illegal moves"),
        (
            Fault::OverlooksTheEnemy,
            "different positions have different inputs",
        ),
        (
            Fault::ForgetsCaptures,
            "feature_changes is what a move changes",
        ),
        (Fault::FlipsWithoutTurning, "a flip passes the turn"),
        (Fault::MirrorsNothing, "mirrored_feature follows the mirror"),
        (
            Fault::MirrorsFeaturesAstray,
            "mirrored_feature follows the mirror",
        ),
        (Fault::EndsTooLate, "every game ends within max_plies"),
        (
            Fault::ConfusesKeys,
            "different positions have different keys",
        ),
        (Fault::KeysSeeSides, "a mirror keeps the key"),
        (Fault::ForeseesTooMuch, "a foreseen win stays in sight"),
    ] {
        let faulty = Faulty {
            march: game(MARCH_BLITZ),
            fault,
        };
        let report = conformance::check(&faulty, 20, &mut Seed(1).stream("test"));
        let found = report.failures.iter().any(|failure| failure.law == law);
        assert!(found, "{fault:?}: {:#?}", report.failures);
    }
}

// --- Fast against slow ---

#[test]
fn built_in_files_agree_with_the_slow_twin() {
    for toml in [
        MARCH_BLITZ,
        leaper::MARCH_GRAND,
        leaper::BREAKTHROUGH_6,
        WANDERERS,
        CRABS,
    ] {
        let game = game(toml);
        let difference = slow::compare(&game, 3, 50, &mut Seed(1).stream("test"));
        assert_eq!(difference, None, "{}", game.name());
    }
}

/// Rules files with up to four kinds of piece and two random rows a side, an `a` in
/// the corner.
fn rules_file() -> impl Strategy<Value = String> {
    let modality = prop::sample::select(vec!["mc", "m", "c"]);
    let direction = prop::sample::select(vec!["", "f", "b", "s", "v", "fl", "fs", "lf", "r", "fr"]);
    let atom = prop::sample::select(vec!["W", "F", "D", "N", "A", "H", "C", "Z", "G"]);
    let part = (modality, direction, atom).prop_map(|(m, d, a)| format!("{m}{d}{a}"));
    let notation = prop::collection::vec(part, 1..4).prop_map(|parts| parts.concat() + "fW");
    let kinds = prop::collection::vec(notation, 1..=4);
    let squares = prop::collection::vec(0..8usize, 16);
    let end = prop::sample::select(vec![
        "capture = 'a'",
        "goal = 'a'",
        "capture = 'a'\ngoal = 'a'",
    ]);
    let stuck = prop::sample::select(vec!["loss", "draw", "win"]);
    (kinds, squares, 2..=8usize, 4..=8usize, end, stuck).prop_map(
        |(kinds, squares, width, height, end, stuck)| {
            let letters = &["a", "b", "c", "d"][..kinds.len()];
            let row = |row: usize| -> String {
                let letter = |file| match (row, file) {
                    (0, 0) => Some(&"a"),
                    _ => letters.get(squares[row * width + file]),
                };
                format_row(&(0..width).map(letter).collect::<Vec<_>>())
            };
            let (back, front) = (row(0), row(1));
            let mut rows = vec![back.clone(), front.clone()];
            rows.resize(height - 2, width.to_string());
            rows.extend([front.to_uppercase(), back.to_uppercase()]);
            let pieces: String = letters
                .iter()
                .zip(&kinds)
                .map(|(letter, notation)| {
                    format!("[pieces.{letter}]\nname = 'p'\nmove = '{notation}'\nvalue = 1\n")
                })
                .collect();
            format!(
                "name = 'random'\ntitle = 'Random'\nstart = '{} w'\n{pieces}\
                 [end]\n{end}\nstuck = '{stuck}'\nmax_plies = 400\n",
                rows.join("/")
            )
        },
    )
}

fn format_row(squares: &[Option<&&str>]) -> String {
    let runs = squares.chunk_by(|a, b| a.is_none() && b.is_none());
    runs.map(|run| run[0].map_or(run.len().to_string(), |letter| letter.to_string()))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 100,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_files_conform_and_agree_with_the_slow_twin(toml in rules_file()) {
        // A start without a move is refused; nothing else can be wrong with these.
        let game = match Leaper::parse("random.toml", &toml) {
            Ok(game) => game,
            Err(error) => {
                let message = error.to_string();
                prop_assert!(message.contains("over before it begins"), "{message}\n{toml}");
                return Err(TestCaseError::reject(message));
            }
        };
        let mut rng = Seed(1).stream("test");
        let report = conformance::check(&game, 2, &mut rng);
        prop_assert!(report.failures.is_empty(), "{:#?}\n{toml}", report.failures);
        let difference = slow::compare(&game, 2, 3, &mut rng);
        prop_assert!(difference.is_none(), "{difference:#?}\n{toml}");
    }
}

// --- Known results ---

/// Whether the side to move wins, by trying everything. For games without draws.
fn wins(
    game: &Leaper,
    position: &leaper::Position,
    known: &mut HashMap<leaper::Position, bool>,
) -> bool {
    if let Some(outcome) = game.outcome(position) {
        return outcome == Outcome::Win(game.side_to_move(position));
    }
    if let Some(&wins) = known.get(position) {
        return wins;
    }
    let mut moves = Vec::new();
    game.legal_moves(position, &mut moves);
    let result = moves.iter().any(|&mv| {
        let mut child = *position;
        game.play_unchecked(&mut child, mv);
        !wins(game, &child, known)
    });
    known.insert(*position, result);
    result
}

#[test]
fn a_small_march_has_its_known_winner() {
    let march = game(&MARCH_BLITZ.replace(BLITZ_START, "2k3/1p2p1/6/6/1P2P1/3K2 w"));
    assert!(wins(&march, &march.start(), &mut HashMap::new()));
}

// --- Positions and moves ---

#[test]
fn march_ends_by_catch_try_and_stuck() {
    let march = game(MARCH_BLITZ);
    for (text, ending, winner) in [
        ("6/pppppp/6/6/PPPPPP/4K1 b", "Catch", Side::First),
        ("1k4/pppppp/6/6/PPPPPP/6 w", "Catch", Side::Second),
        ("K1k3/6/6/6/6/6 b", "Try", Side::First),
        ("6/6/6/6/6/3K1k w", "Try", Side::Second),
        // The last move captured the king on the far rank: both at once.
        ("6/6/6/6/6/3k2 w", "Catch", Side::Second),
        ("PPP3/PK4/6/6/4k1/6 w", "stuck", Side::Second),
    ] {
        let position = march.parse_position(text).unwrap();
        assert_eq!(
            march.outcome(&position),
            Some(Outcome::Win(winner)),
            "{text}"
        );
        assert_eq!(march.ending(&position), ending, "{text}");
    }
}

#[test]
fn equal_positions_are_equal_however_they_came_about() {
    let march = game(MARCH_BLITZ);
    let play = |moves: [&str; 4]| {
        let mut position = march.start();
        for text in moves {
            march
                .play(&mut position, march.parse_move(text).unwrap())
                .unwrap();
        }
        position
    };
    let one_way = play(["a2a3", "a5a4", "c2c3", "f5f4"]);
    assert_eq!(one_way, play(["c2c3", "f5f4", "a2a3", "a5a4"]));
    assert_eq!(
        march.format_position(&one_way),
        "1k4/1pppp1/p4p/P1P3/1P1PPP/4K1 w"
    );
}

#[test]
fn plies_count_where_they_are_limited() {
    let wanderers = game(WANDERERS);
    let mut position = wanderers.start();
    assert_eq!(
        wanderers.format_position(&position),
        "nadkdan/7/7/7/7/NADKDAN w 0"
    );
    wanderers
        .play(&mut position, wanderers.parse_move("a1b3").unwrap())
        .unwrap();
    assert_eq!(
        wanderers.format_position(&position),
        "nadkdan/7/7/1N5/7/1ADKDAN b 1"
    );
    let last = wanderers
        .parse_position("nadkdan/7/7/7/7/NADKDAN w 60")
        .unwrap();
    assert_eq!(wanderers.outcome(&last), Some(Outcome::Draw));
    assert_eq!(wanderers.ending(&last), "max plies");
}

#[test]
fn inputs_are_those_of_the_article() {
    let march = game(MARCH_BLITZ);
    assert_eq!(
        march.plane_shape(),
        PlaneShape {
            planes: 4,
            rows: 8,
            columns: 8
        }
    );
    let mut first = Vec::new();
    march.features(&march.start(), Side::First, &mut first);
    // Own king on e1: plane 0, row 6, column 5. Enemy king on b6: plane 2, row 1, column 2.
    assert!(first.contains(&(6 * 8 + 5)));
    assert!(first.contains(&(2 * 64 + 8 + 2)));
    let mut second = Vec::new();
    march.features(&march.start(), Side::Second, &mut second);
    first.sort_unstable();
    second.sort_unstable();
    assert_eq!(first, second, "the layout is point-symmetric");
}

#[test]
fn rules_text_is_about_the_rules_alone() {
    let text = game(MARCH_BLITZ).rules_text();
    assert_eq!(
        text,
        "leaper game\n\
         start 1k4/pppppp/6/6/PPPPPP/4K1 w\n\
         piece k -1,1mc 0,1mc 1,1mc\n\
         piece p -1,1mc 0,1mc 1,1mc\n\
         capture k\n\
         goal k\n\
         stuck loss"
    );
    let renamed = MARCH_BLITZ
        .replace("Blitz layout", "my layout")
        .replace("\"fWfF\"", "\"fFfW\"");
    assert_eq!(game(&renamed).rules_text(), text);
    let changed = MARCH_BLITZ.replace("stuck = \"loss\"", "stuck = \"draw\"");
    assert_ne!(game(&changed).rules_text(), text);
}

fn position_error<G: Game>(game: &G, text: &str) -> String {
    game.parse_position(text).unwrap_err().to_string()
}

#[test]
fn impossible_positions_are_refused_with_the_reason() {
    let march = game(MARCH_BLITZ);
    for (text, message) in [
        (
            "1k4/pppppp/6/6/PPPPPP/4K1",
            "a position is rows, a blank and the side to move, such as \
             \"1k4/pppppp/6/6/PPPPPP/4K1 w\"; \"1k4/pppppp/6/6/PPPPPP/4K1\" has 1 fields",
        ),
        (
            "1k3/ppppp/5/PPPPP/3K1 w",
            "the board of march-blitz has 6 files and 6 ranks, the position has 5 and 5",
        ),
        (
            "1k4/pppppp/6/5/PPPPPP/4K1 w",
            "rank 3 has 5 squares, the top rank has 6",
        ),
        (
            "1k4/pppppp/6/6/PPPQPP/4K1 w",
            "no piece is written 'Q'; the pieces are k, p",
        ),
        (
            "1k4/pppppp/6/6/PPPPPP/4K1 x",
            "the side to move is w (first player) or b (second player), not \"x\"",
        ),
        (
            "1k4/pppppp/6/6/PPPPPP/4K1 w 3",
            "march-blitz counts no plies: a position ends with the side to move",
        ),
        (
            "6/pppppp/6/6/PPPPPP/4K1 w",
            "it is the turn of the first player (upper case), but the second player (lower case) \
             has no king left: the game ended before",
        ),
        (
            "K1k3/6/6/6/6/6 w",
            "it is the turn of the first player (upper case), whose king is on the far rank \
             already: the game ended before",
        ),
        (
            "K1kK2/6/6/6/6/6 b",
            "the first player (upper case) has more than one king on the far rank: the first one \
             ended the game",
        ),
    ] {
        assert_eq!(position_error(&march, text), message);
    }
    let wanderers = game(WANDERERS);
    assert_eq!(
        position_error(&wanderers, "nadkdan/7/7/7/7/NADKDAN w 61"),
        "61 plies played, but games of wanderers end after 60"
    );
    assert_eq!(
        position_error(&wanderers, "nadkdan/7/7/7/7/NADKDAN w many"),
        "the third field counts the plies played so far; \"many\" is no count"
    );
    for (text, message) in [
        (
            "7/7/7/7/7/7",
            "a position is rows, a blank and the side to move, such as \"7/7/7/7/7/3X3 b\"; \
             \"7/7/7/7/7/7\" is not",
        ),
        ("7/7/7/7/7 w", "the board has 7 files and 6 ranks"),
        (
            "7/7/7/7/7/3O3 b",
            "stones are X (first player) and o, not 'O'",
        ),
        ("7/7/7/7/3X3/7 b", "a stone hangs in the air in file d"),
        (
            "7/7/7/7/7/3XX2 b",
            "the side to move has 0 stones and the other 2; it must have as many or one fewer",
        ),
        ("7/7/7/7/ooo4/XXXXo2 w", "the side to move has won already"),
    ] {
        assert_eq!(position_error(&ConnectFour, text), message);
    }
}

#[test]
fn moves_that_are_none_are_refused() {
    let march = game(MARCH_BLITZ);
    for text in ["", "a2", "a2a3a", "a2a7", "g2g3", "a0a1", "A2A3"] {
        assert_eq!(
            march.parse_move(text).unwrap_err().to_string(),
            format!(
                "a move is the square left and the square entered, such as a1a2, between a1 and \
                 f6; {text:?} is not"
            )
        );
    }
    let mut position = march.start();
    let error = march
        .play(&mut position, march.parse_move("a2a4").unwrap())
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("a2a4 is not legal in 1k4/pppppp/6/6/PPPPPP/4K1 w; legal")
    );
    assert_eq!(
        ConnectFour.parse_move("h").unwrap_err().to_string(),
        "a move is the letter of a file, a to g; \"h\" is not"
    );
}

// --- Bad files and names ---

#[test]
fn bad_rules_files_are_told_line_and_reason() {
    // Each case replaces one text in the file of March, Blitz layout.
    let start = BLITZ_START;
    for (good, bad, message) in [
        ("[end]", "[end", "15: unclosed table, expected `]`"),
        (
            "value = 1",
            "valeu = 1",
            "13: unknown key `valeu`, did you mean `value`?; known here: name, move, value",
        ),
        (
            "title = ",
            "colour = ",
            "2: unknown key `colour`; known here: name, title, start, pieces, end",
        ),
        (
            "\"loss\"",
            "\"lose\"",
            "18: unknown value `lose`, did you mean `loss`?; known here: loss, draw, win",
        ),
        ("value = 1\n", "", "10: missing field `value`"),
        (
            "value = 1",
            "value = \"one\"",
            "13: invalid type: string \"one\", expected i64",
        ),
        (
            "value = 1",
            "value = -1",
            "13: value = -1: a piece is worth between 0 and 1000",
        ),
        (
            "march-blitz",
            "March Blitz",
            "1: name = \"March Blitz\": use small letters, digits and dashes, such as \"my-game\"",
        ),
        (
            "[pieces.p]",
            "[pieces.pawn]",
            "10: [pieces.pawn]: name the table by the one small letter that stands for the \
             piece, such as [pieces.k]",
        ),
        (
            "[end]",
            "[pieces.a]\nname = 'a'\nmove = 'fW'\nvalue = 1\n\
             [pieces.b]\nname = 'b'\nmove = 'fW'\nvalue = 1\n\
             [pieces.c]\nname = 'c'\nmove = 'fW'\nvalue = 1\n[end]",
            "10: 5 kinds of piece, but at most 4 are supported",
        ),
        (
            "\"fWfF\" #",
            "\"fWfQ\" #",
            "7: move = \"fWfQ\": column 4: Q makes the piece slide, but only single leaps are \
             supported",
        ),
        (
            start,
            "1k4/pppppp/6/5/PPPPPP/4K1 w",
            "3: start: rank 3 has 5 squares, the top rank has 6",
        ),
        (
            start,
            "k7/8/8/8/8/8/8/8/K7 w",
            "3: start: 8 files and 9 ranks are 72 squares, but at most 64 are supported",
        ),
        (
            start,
            "kK w",
            "3: start: 2 files and 1 ranks; a board has at most 26 files and at least 2 ranks",
        ),
        (
            start,
            "1k4/6/6/4K1 w 7",
            "3: start: it needs no count of plies, games begin at 0",
        ),
        (
            "capture = \"k\" # a side that has lost its last k loses (\"Catch\")\ngoal = \"k\"",
            "",
            "15: [end] needs `capture`, `goal` or both: the letter of the piece that must not be \
             lost, or that wins on the far rank",
        ),
        (
            "capture = \"k\"",
            "capture = \"q\"",
            "16: capture = \"q\" is none of the pieces (k, p)",
        ),
        (
            start,
            "6/pppppp/6/6/PPPPPP/4K1 w",
            "16: unreachable end: the second player (lower case) starts without a king, so there \
             is none to capture",
        ),
        (
            "fWfF",
            "mfWmfF",
            "16: unreachable end: no piece at the start can capture",
        ),
        (
            "\"fWfF\" # one step forward, straight or diagonal, moving or capturing",
            "\"sW\"",
            "15: max_plies is missing: king can move sideways or backwards, so games need not \
             end; add, for example, max_plies = 200",
        ),
        (
            "stuck =",
            "max_plies = 20\nstuck =",
            "18: max_plies = 20 would cut games short that end by themselves after at most 58 \
             plies, since every move goes forward; leave it out",
        ),
        (
            "stuck =",
            "max_plies = 0\nstuck =",
            "18: max_plies = 0: between 1 and 10000",
        ),
        (
            start,
            "1k3K/pppppp/6/6/PPPPPP/6 b",
            "3: start: the game is over before it begins: the first player (upper case) has a \
             king on the far rank",
        ),
    ] {
        let toml = MARCH_BLITZ.replace(good, bad);
        assert_ne!(toml, MARCH_BLITZ, "{good} is in the file");
        let error = Leaper::parse("my.toml", &toml).unwrap_err();
        assert_eq!(error.to_string(), format!("my.toml:{message}"));
    }
}

#[test]
fn games_that_cannot_be_played_are_refused() {
    let sideways = WANDERERS.replace("move = \"WF\"", "move = \"sW\"");
    assert_eq!(
        Leaper::parse("my.toml", &sideways).unwrap_err().to_string(),
        "my.toml:28: unreachable end: no king at the start can ever reach its far rank"
    );
    let no_pieces = "name = 'a'\ntitle = 'A'\nstart = '2/2 w'\npieces = {}\n\
                     [end]\ngoal = 'k'\nstuck = 'loss'\n";
    assert_eq!(
        Leaper::parse("my.toml", no_pieces).unwrap_err().to_string(),
        "my.toml:4: there are no pieces: describe each kind in a table such as [pieces.k]"
    );
    let no_move = "name = 'a'\ntitle = 'A'\nstart = 'k/K w'\n[pieces.k]\nname = 'king'\n\
                   move = 'mfWcfF'\nvalue = 0\n[end]\ngoal = 'k'\nstuck = 'loss'\n";
    assert_eq!(
        Leaper::parse("my.toml", no_move).unwrap_err().to_string(),
        "my.toml:3: start: the game is over before it begins: the first player (upper case) has \
         no move"
    );
}

#[test]
fn a_limit_that_no_game_reaches_changes_nothing() {
    let limited = game(&MARCH_BLITZ.replace("stuck =", "max_plies = 200\nstuck ="));
    let march = game(MARCH_BLITZ);
    assert_eq!(limited.start(), march.start());
    assert_eq!(limited.rules_text(), march.rules_text());
}

#[test]
fn unknown_games_are_named_with_the_nearest() {
    let error = |spec| with_game(spec, Conforms).unwrap_err();
    assert_eq!(
        error("march-blits").to_string(),
        "there is no game \"march-blits\", did you mean march-blitz?; built-in games are \
         march-blitz, march-grand, breakthrough-6, connect-four, and a rules file ends in .toml"
    );
    assert_eq!(
        error("go").to_string(),
        "there is no game \"go\"; built-in games are march-blitz, march-grand, breakthrough-6, \
         connect-four, and a rules file ends in .toml"
    );
    assert_eq!(
        error("no/such.toml").to_string(),
        "cannot read the rules file \"no/such.toml\""
    );
}

#[test]
fn a_rules_file_is_a_game() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wanderers.toml");
    std::fs::write(&path, WANDERERS).unwrap();
    with_game(path.to_str().unwrap(), Conforms).unwrap();
    std::fs::write(&path, WANDERERS.replace("max_plies", "plies")).unwrap();
    let error = with_game(path.to_str().unwrap(), Conforms)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("wanderers.toml:30: unknown key `plies`"),
        "{error}"
    );
}
