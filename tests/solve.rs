//! The solver: against plain negamax on small positions of every kind of game, with
//! every choice of options; what it foresees against a table of all small positions;
//! certificates, sound and tampered with; limits; the command.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tanren::agents::AgentSpec;
use tanren::game::playout::random_positions;
use tanren::game::{Game, Outcome, Side};
use tanren::games::connect_four::ConnectFour;
use tanren::games::leaper::{BREAKTHROUGH_6, Leaper, MARCH_BLITZ};
use tanren::games::tree::Tree;
use tanren::hash::sha256_hex;
use tanren::nets::device::Compute;
use tanren::random::{Rng, RngExt, Seed};
use tanren::search::Evaluator;
use tanren::solve::{
    Certificate, Exact, Limits, Options, Refusal, Solver, VerifyError, certify, verify,
};

use crate::cli::{run, tanren};
use crate::games::{CRABS, WANDERERS, game};
use crate::search::Hashed;

/// The plain definition: the best of the moves, each worth what it leaves the opponent.
fn negamax<G: Game>(
    game: &G,
    position: &G::Position,
    memo: &mut HashMap<G::Position, Exact>,
) -> Exact {
    if let Some(&known) = memo.get(position) {
        return known;
    }
    let value = match game.outcome(position) {
        Some(outcome) => Exact::of(outcome, game.side_to_move(position)),
        None => {
            let values = children(game, position).map(|(_, child)| -negamax(game, &child, memo));
            values.max().expect("the game is not over")
        }
    };
    memo.insert(position.clone(), value);
    value
}

/// Each legal move with what it leads to.
fn children<'a, G: Game>(
    game: &'a G,
    position: &'a G::Position,
) -> impl Iterator<Item = (G::Move, G::Position)> + 'a {
    let mut moves = Vec::new();
    game.legal_moves(position, &mut moves);
    moves.into_iter().map(move |mv| {
        let mut child = position.clone();
        game.play_unchecked(&mut child, mv);
        (mv, child)
    })
}

fn march(start: &str, stuck: &str) -> Leaper {
    let rules = MARCH_BLITZ
        .replace("1k4/pppppp/6/6/PPPPPP/4K1 w", start)
        .replace("stuck = \"loss\"", &format!("stuck = \"{stuck}\""));
    game(&rules)
}

/// Pawns that meet head on block each other: being stuck is common.
fn columns(start: &str, stuck: &str) -> Leaper {
    game(&format!(
        "name = \"columns\"\ntitle = \"Columns\"\nstart = \"{start}\"\n\
         [pieces.p]\nname = \"pawn\"\nmove = \"fmWfcF\"\nvalue = 1\n\
         [end]\ngoal = \"p\"\nstuck = \"{stuck}\"\n"
    ))
}

/// Pieces scattered at random, as far as the rules accept them: one king each where
/// there are kings, and up to `pawns` others.
fn scattered(game: &Leaper, pawns: usize, rng: &mut Rng) -> <Leaper as Game>::Position {
    let rules = game.rules();
    let (width, height) = (rules.width, rules.height);
    loop {
        let mut board = vec![vec!['1'; width]; height];
        let mut put = |letter: char, rng: &mut Rng| {
            board[rng.random_range(0..height)][rng.random_range(0..width)] = letter;
        };
        for _ in 0..rng.random_range(1..=pawns) {
            let kind = &rules.kinds[rng.random_range(0..rules.kinds.len())];
            let kind = if rules.capture.is_some() && kind.letter == 'k' {
                'p'
            } else {
                kind.letter
            };
            let own = rng.random_range(0..2) == 0;
            put(if own { kind } else { kind.to_ascii_uppercase() }, rng);
        }
        if let Some(kind) = rules.capture {
            let letter = rules.kinds[kind].letter;
            put(letter, rng);
            put(letter.to_ascii_uppercase(), rng);
        }
        let rows: Vec<String> = board.into_iter().map(|row| row.iter().collect()).collect();
        let side = ["w", "b"][rng.random_range(0..2)];
        // "111k11" reads as one number of empty squares unless they are apart.
        let rows = rows.join("/");
        let text = (2..=width).rev().fold(rows, |rows, count| {
            rows.replace(&"1".repeat(count), &count.to_string())
        });
        if let Ok(position) = game.parse_position(&format!("{text} {side}")) {
            return position;
        }
    }
}

/// Every choice of options that a test can afford to try on each position.
fn all_options() -> Vec<(Options, Option<Hashed>)> {
    let mut all = Vec::new();
    for foresight in [false, true] {
        for weak_sum in [1, 6] {
            for values in [None, Some(2), Some(50)] {
                let options = Options {
                    table_mib: 1,
                    prior_scale: 30.0,
                    weak_sum,
                    foresight,
                };
                let prior = values.map(|values| Hashed {
                    values,
                    together: true,
                });
                all.push((options, prior));
            }
        }
    }
    all
}

fn boxed<G: Game>(prior: Option<Hashed>) -> Option<Box<dyn Evaluator<G>>> {
    prior.map(|prior| Box::new(prior) as Box<dyn Evaluator<G>>)
}

/// Compares solvers with every choice of options with negamax, each going on with the
/// table that earlier positions left. Returns how often each value occurred.
fn assert_equals_negamax<G: Game>(game: &G, positions: &[G::Position]) -> HashMap<Exact, usize> {
    let mut memo = HashMap::new();
    let mut solvers: Vec<_> = all_options()
        .into_iter()
        .map(|(options, prior)| {
            let what = format!("{options:?}, prior: {}", prior.is_some());
            (Solver::new(game, options, boxed(prior)).unwrap(), what)
        })
        .collect();
    let mut counts = HashMap::new();
    for position in positions {
        let expected = negamax(game, position, &mut memo);
        *counts.entry(expected).or_insert(0) += 1;
        let moves: Vec<_> = children(game, position)
            .map(|(mv, child)| (mv, Some(-negamax(game, &child, &mut memo))))
            .collect();
        for (solver, what) in &mut solvers {
            let what = format!("{} {}, {what}", game.name(), game.format_position(position));
            let solution = solver.solve(position, &Limits::default());
            assert_eq!(solution.value, Some(expected), "{what}");
            let solved = solver.solve_moves(position, &Limits::default());
            assert_eq!(solved, moves, "{what}");
            let winning = solver.winning_move(position, &Limits::default());
            let can_win = expected == Exact::Win && !moves.is_empty();
            assert_eq!(winning.is_some(), can_win, "{what}");
            if let Some(winning) = winning {
                assert!(moves.contains(&(winning, Some(Exact::Win))), "{what}");
            }
        }
        let line = solvers[0].0.line(position, &Limits::default());
        let mut end = position.clone();
        for mv in line {
            game.play(&mut end, mv).unwrap();
        }
        let outcome = game.outcome(&end).expect("best play ends the game");
        assert_eq!(Exact::of(outcome, game.side_to_move(position)), expected);
    }
    counts
}

#[test]
fn the_solver_equals_negamax_on_small_positions_of_march() {
    let mut rng = Seed(1).stream("solve");
    for (start, pawns, count) in [
        ("1k2/pppp/PPPP/1K2 w", 8, 2000),
        ("2k2/ppppp/5/PPPPP/2K2 w", 5, 200),
        ("1k4/pppppp/6/6/PPPPPP/4K1 w", 4, 40),
        ("1k2/pppp/4/4/4/4/PPPP/1K2 w", 3, 40),
    ] {
        let game = march(start, "loss");
        let positions: Vec<_> = (0..count)
            .map(|_| scattered(&game, pawns, &mut rng))
            .collect();
        let counts = assert_equals_negamax(&game, &positions);
        assert!(counts[&Exact::Win] > count / 10 && counts[&Exact::Loss] > count / 10);
    }
}

#[test]
fn the_solver_equals_negamax_where_being_stuck_means_something_else() {
    let mut rng = Seed(2).stream("solve");
    for stuck in ["loss", "draw", "win"] {
        for (game, pawns) in [
            (march("1k2/pppp/PPPP/1K2 w", stuck), 8),
            (columns("pppp/4/4/4/PPPP w", stuck), 8),
            (columns("ppp/ppp/3/PPP/PPP w", stuck), 9),
        ] {
            let positions: Vec<_> = (0..150)
                .map(|_| scattered(&game, pawns, &mut rng))
                .collect();
            let counts = assert_equals_negamax(&game, &positions);
            let draws = counts.get(&Exact::Draw).copied().unwrap_or(0);
            assert_eq!(draws > 0, stuck == "draw", "{}: {counts:?}", game.name());
        }
    }
}

#[test]
fn the_solver_equals_negamax_on_other_games_of_the_family() {
    let mut rng = Seed(3).stream("solve");
    let breakthrough = BREAKTHROUGH_6.replace("pppppp/pppppp/6/6/PPPPPP/PPPPPP", "4/pppp/4/PPPP/4");
    for (game, pawns, count) in [
        (game(&breakthrough), 6, 200),
        (game(BREAKTHROUGH_6), 4, 50),
        (game(CRABS), 2, 50),
    ] {
        let positions: Vec<_> = (0..count)
            .map(|_| scattered(&game, pawns, &mut rng))
            .collect();
        assert_equals_negamax(&game, &positions);
    }
}

#[test]
fn the_solver_equals_negamax_on_late_positions_of_connect_four() {
    let mut rng = Seed(4).stream("solve");
    let late = random_positions(&ConnectFour, 400, &mut rng)
        .into_iter()
        .filter(|position| {
            let text = ConnectFour.format_position(position);
            text.chars().filter(|&c| c == 'X').count() >= 13
        });
    let late: Vec<_> = late.take(150).collect();
    let counts = assert_equals_negamax(&ConnectFour, &late);
    assert_eq!(counts.len(), 3, "all values occur: {counts:?}");
}

#[test]
fn the_solver_equals_negamax_on_trees() {
    let mut rng = Seed(5).stream("solve");
    for _ in 0..100 {
        let branching: usize = rng.random_range(2..=3);
        let height = rng.random_range(1..=5);
        let leaves = (0..branching.pow(height)).map(|_| rng.random_range(-1..=1));
        let tree = Tree::new(branching, leaves.collect()).unwrap();
        assert_equals_negamax(&tree, &[tree.start()]);
    }
}

// --- Known results ---

fn blitz_solver(game: &Leaper) -> Solver<'_, Leaper> {
    Solver::new(game, Options::default(), None).unwrap()
}

#[test]
fn march_on_5x5_is_won_by_the_second_player() {
    // Source: a prototype of this solver, certificate checked.
    let game = march("2k2/ppppp/5/PPPPP/2K2 w", "loss");
    let solution = blitz_solver(&game).solve(&game.start(), &Limits::default());
    assert_eq!(solution.value, Some(Exact::Loss));
}

#[test]
fn small_positions_of_march_on_6x6() {
    // Source: as above.
    let game = march("1k4/pppppp/6/6/PPPPPP/4K1 w", "loss");
    for text in ["2k3/6/pppppp/PPPPPP/6/3K2 w", "2k3/1p2p1/6/6/1P2P1/3K2 w"] {
        let position = game.parse_position(text).unwrap();
        let solution = blitz_solver(&game).solve(&position, &Limits::default());
        assert_eq!(solution.value, Some(Exact::Win), "{text}");
    }
}

// --- What is foreseen ---

/// All positions of March on 6x6 with at most five pieces, from the side of the mover,
/// who moves up. A program of its own that knows nothing of the crate.
struct SmallTable {
    /// By [`Small::index`]: 0 not looked at, 1 lost, 2 won.
    values: Vec<u8>,
}

/// Squares are 6 * rank + file. The second king is the opponent's. A pawn is twice its
/// square, plus 1 for the opponent's, plus 1; 0 is no pawn. Pawns are in falling order.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Small {
    kings: [usize; 2],
    pawns: [usize; 3],
}

impl Small {
    const PAWNS: usize = 73;
    /// Ways to choose three pawns: multisets.
    const TRIPLES: usize = Small::PAWNS * (Small::PAWNS + 1) * (Small::PAWNS + 2) / 6;
    const COUNT: usize = 36 * 36 * Small::TRIPLES;

    fn index(&self) -> usize {
        let [own, enemy] = self.kings;
        let [high, middle, low] = self.pawns;
        let triple = high * (high + 1) * (high + 2) / 6 + middle * (middle + 1) / 2 + low;
        (own * 36 + enemy) * Small::TRIPLES + triple
    }

    /// Every one of them in which the pieces stand apart, and the mover's king has not
    /// won before.
    fn all() -> impl Iterator<Item = Small> {
        let pawns = (0..Small::PAWNS).flat_map(|high| {
            (0..=high).flat_map(move |middle| (0..=middle).map(move |low| [high, middle, low]))
        });
        pawns
            .flat_map(|pawns| {
                let kings = (0..30).flat_map(|own| (0..36).map(move |enemy| [own, enemy]));
                kings.map(move |kings| Small { kings, pawns })
            })
            .filter(Small::stands_apart)
    }

    fn stands_apart(&self) -> bool {
        let pawns = self.pawns.iter().filter(|&&pawn| pawn > 0);
        let mut taken = 0u64;
        self.kings
            .into_iter()
            .chain(pawns.map(|&pawn| (pawn - 1) / 2))
            .all(|square| {
                let is_free = taken & 1 << square == 0;
                taken |= 1 << square;
                is_free
            })
    }

    fn own(&self, square: usize) -> bool {
        self.kings[0] == square || self.pawns.contains(&(2 * square + 1))
    }

    /// The board turned, after a move.
    fn turned(&self) -> Small {
        let turn = |pawn: usize| match pawn {
            0 => 0,
            _ => (2 * (35 - (pawn - 1) / 2) + (1 - (pawn - 1) % 2)) + 1,
        };
        let mut pawns = self.pawns.map(turn);
        pawns.sort_unstable_by(|a, b| b.cmp(a));
        Small {
            kings: [35 - self.kings[1], 35 - self.kings[0]],
            pawns,
        }
    }

    fn text(&self) -> String {
        let mut board = ['1'; 36];
        board[self.kings[0]] = 'K';
        board[self.kings[1]] = 'k';
        for pawn in self.pawns.into_iter().filter(|&pawn| pawn > 0) {
            board[(pawn - 1) / 2] = ['P', 'p'][(pawn - 1) % 2];
        }
        let rows: Vec<String> = board
            .chunks(6)
            .rev()
            .map(|row| row.iter().collect())
            .collect();
        let text = (2..=6).rev().fold(rows.join("/"), |rows, count| {
            rows.replace(&"1".repeat(count), &count.to_string())
        });
        text + " w"
    }
}

impl SmallTable {
    fn new() -> SmallTable {
        let mut table = SmallTable {
            values: vec![0; Small::COUNT],
        };
        for position in Small::all() {
            table.mover_wins(&position);
        }
        table
    }

    fn mover_wins(&mut self, position: &Small) -> bool {
        let index = position.index();
        if self.values[index] == 0 {
            self.values[index] = 1 + u8::from(self.find_win(position));
        }
        self.values[index] == 2
    }

    fn find_win(&mut self, position: &Small) -> bool {
        // The opponent's king has arrived.
        if position.kings[1] < 6 {
            return false;
        }
        let own_pawn = |pawn: &usize| *pawn % 2 == 1;
        for piece in 0..=position.pawns.len() {
            let from = match piece {
                0 => position.kings[0],
                _ if own_pawn(&position.pawns[piece - 1]) => (position.pawns[piece - 1] - 1) / 2,
                _ => continue,
            };
            for file in (from % 6).saturating_sub(1)..=(from % 6 + 1).min(5) {
                let to = (from / 6 + 1) * 6 + file;
                if to >= 36 || position.own(to) {
                    continue;
                }
                if to == position.kings[1] {
                    return true;
                }
                let mut child = *position;
                for pawn in &mut child.pawns {
                    if *pawn == 2 * to + 2 {
                        *pawn = 0;
                    }
                }
                match piece {
                    0 => child.kings[0] = to,
                    _ => child.pawns[piece - 1] = 2 * to + 1,
                }
                if !self.mover_wins(&child.turned()) {
                    return true;
                }
            }
        }
        false
    }
}

#[test]
fn what_is_foreseen_is_true_and_stays_in_sight() {
    let game = march("1k4/pppppp/6/6/PPPPPP/4K1 w", "loss");
    let mut table = SmallTable::new();
    let mut solver = blitz_solver(&game);
    let (mut open, mut foreseen) = (0, [0; 2]);
    // Samples: reading positions takes longer than solving them all.
    for (number, small) in Small::all().enumerate().step_by(29) {
        let position = game.parse_position(&small.text()).unwrap();
        let winner = match table.mover_wins(&small) {
            true => Side::First,
            false => Side::Second,
        };
        if let Some(outcome) = game.outcome(&position) {
            assert_eq!(outcome, Outcome::Win(winner), "{}", small.text());
            continue;
        }
        open += 1;
        if number % 101 == 0 {
            let value = solver.solve(&position, &Limits::default()).value;
            let expected = Exact::of(Outcome::Win(winner), Side::First);
            assert_eq!(value, Some(expected), "{}", small.text());
        }
        let Some(seen) = game.foresee(&position) else {
            continue;
        };
        foreseen[seen.index()] += 1;
        assert_eq!(seen, winner, "{}", small.text());
        // The sides are alike.
        if number % 11 == 0 {
            let flipped = game.flipped(&position).unwrap();
            assert_eq!(
                game.foresee(&flipped),
                Some(winner.other()),
                "{}",
                small.text()
            );
        }
        let sees_it = |(_, child): (_, <Leaper as Game>::Position)| match game.outcome(&child) {
            Some(outcome) => outcome == Outcome::Win(winner),
            None => game.foresee(&child) == Some(winner),
        };
        let mut after = children(&game, &position);
        let stays = match winner {
            Side::First => after.any(sees_it),
            Side::Second => after.all(sees_it),
        };
        assert!(stays, "{}", small.text());
    }
    println!("{foreseen:?} of {open} are foreseen");
    assert!(open > 1_500_000 && 2 * (foreseen[0] + foreseen[1]) > open);
}

/// The race is proved for March alone, and the rest must hold everywhere.
#[test]
fn what_is_foreseen_is_true_in_other_games() {
    let mut rng = Seed(6).stream("solve");
    for (game, pawns) in [
        (march("1k2/pppp/PPPP/1K2 w", "draw"), 7),
        (march("1k2/pppp/PPPP/1K2 w", "win"), 7),
        (columns("pppp/4/4/4/PPPP w", "win"), 7),
        (game(BREAKTHROUGH_6), 4),
        (game(CRABS), 3),
    ] {
        let mut memo = HashMap::new();
        let mut foreseen = 0;
        for _ in 0..400 {
            let position = scattered(&game, pawns, &mut rng);
            if game.outcome(&position).is_some() {
                continue;
            }
            if let Some(winner) = game.foresee(&position) {
                let expected = Exact::of(Outcome::Win(winner), game.side_to_move(&position));
                assert_eq!(negamax(&game, &position, &mut memo), expected);
                foreseen += 1;
            }
        }
        assert!(foreseen > 15, "{}: {foreseen}", game.name());
    }
}

// --- Certificates ---

fn certificate_of(game: &Leaper, text: &str) -> Certificate {
    let position = game.parse_position(text).unwrap();
    let mut solver = blitz_solver(game);
    certify(game, &mut solver, &position, &Limits::default()).unwrap()
}

#[test]
fn certificates_of_random_positions_are_verified() {
    let mut rng = Seed(7).stream("solve");
    let mut won = [0; 2];
    for (game, pawns) in [
        (march("1k2/pppp/PPPP/1K2 w", "loss"), 8),
        (march("1k4/pppppp/6/6/PPPPPP/4K1 w", "loss"), 4),
        (march("1k2/pppp/PPPP/1K2 w", "draw"), 8),
        (columns("ppp/ppp/3/PPP/PPP w", "win"), 8),
        (game(CRABS), 2),
    ] {
        let mut memo = HashMap::new();
        let mut solver = blitz_solver(&game);
        for _ in 0..60 {
            let position = scattered(&game, pawns, &mut rng);
            let expected = negamax(&game, &position, &mut memo);
            let made = certify(&game, &mut solver, &position, &Limits::default());
            if expected == Exact::Draw {
                assert!(made.is_err());
                continue;
            }
            let certificate = made.unwrap();
            assert_eq!(certificate.claim.value, expected);
            let read = Certificate::from_bytes(&certificate.to_bytes()).unwrap();
            let verified = verify(&read).unwrap();
            assert_eq!(verified.positions, certificate.choices.len() as u64);
            won[usize::from(expected == Exact::Win)] += 1;
        }
    }
    assert!(won[0] > 50 && won[1] > 50, "{won:?}");
}

/// The start of Blitz has a certificate of 7 million choices (`scripts/certify` makes it
/// and checks it); this is what becomes of it after `f2e3 b5c4`.
#[test]
fn the_certificate_of_an_early_position_of_blitz_is_verified() {
    let game = march("1k4/pppppp/6/6/PPPPPP/4K1 w", "loss");
    let position = game.parse_position("1k4/p1pppp/2p3/4P1/PPPPP1/4K1 w");
    let spec: AgentSpec = "model".parse().unwrap();
    let model = spec.prepare(&game, &Compute::cpu()).unwrap();
    let mut solver = Solver::new(&game, Options::default(), Some(model.evaluator())).unwrap();
    let certificate = certify(&game, &mut solver, &position.unwrap(), &Limits::default());
    let certificate = certificate.unwrap();
    assert_eq!(certificate.claim.value, Exact::Win);
    let verified = verify(&certificate).unwrap();
    println!("{verified:?}");
    assert!(verified.positions > 100_000);
}

#[test]
fn certificates_that_prove_nothing_are_refused_with_the_place() {
    let game = march("1k4/pppppp/6/6/PPPPPP/4K1 w", "loss");
    let start = "2k3/1p2p1/6/6/1P2P1/3K2 w";
    let good = certificate_of(&game, start);
    assert!(good.choices.len() > 20, "{}", good.choices.len());
    verify(&good).unwrap();
    let refusal = |certificate: &Certificate| match verify(certificate).unwrap_err() {
        VerifyError::Refused {
            position, refusal, ..
        } => {
            game.parse_position(&position).unwrap();
            refusal
        }
        other => panic!("{other}"),
    };

    // No choice can be left out, none be added.
    let mut short = good.clone();
    short.choices.pop();
    assert_eq!(refusal(&short), Refusal::Missing);
    let mut long = good.clone();
    long.choices.push(0);
    assert!(matches!(verify(&long), Err(VerifyError::LeftOver(1))));

    // No move can be illegal.
    let mut illegal = good.clone();
    illegal.choices[0] = 99;
    assert_eq!(
        refusal(&illegal),
        Refusal::Illegal {
            choice: 99,
            legal: 8
        }
    );

    // No other value can be claimed.
    let mut wrong = good.clone();
    wrong.claim.value = Exact::Loss;
    assert!(verify(&wrong).is_err());
    wrong.claim.value = Exact::Draw;
    assert!(matches!(verify(&wrong), Err(VerifyError::Draw)));

    // Nor other rules, another name, another start.
    let mut rules = good.clone();
    rules.claim.rules = rules
        .claim
        .rules
        .replace("stuck = \"loss\"", "stuck = \"win\"");
    assert!(matches!(verify(&rules), Err(VerifyError::RulesHash { .. })));
    let mut name = good.clone();
    name.claim.game = "march-grand".to_string();
    assert!(matches!(verify(&name), Err(VerifyError::Name { .. })));
    let mut other = good.clone();
    other.claim.start = "2k3/1p2p1/6/6/1P2P1/4K1 w".to_string();
    assert!(verify(&other).is_err());
    other.claim.start = "2k3/1p2p1/6/6/1P2P1/5 w".to_string();
    assert!(matches!(verify(&other), Err(VerifyError::Start { .. })));

    // A game that goes round in circles has no certificates.
    let mut endless = good.clone();
    endless.claim.rules = WANDERERS.to_string();
    endless.claim.game = "wanderers".to_string();
    let rules_text = crate::games::game(WANDERERS).rules_text();
    endless.claim.rules_sha256 = sha256_hex(rules_text.as_bytes());
    assert!(matches!(verify(&endless), Err(VerifyError::Endless(_))));
}

/// Changing a choice at random must never go unnoticed where the new move does not win.
#[test]
fn wrong_moves_in_certificates_are_noticed() {
    let game = march("1k2/pppp/PPPP/1K2 w", "loss");
    let mut rng = Seed(8).stream("solve");
    let mut memo = HashMap::new();
    let mut noticed = 0;
    while noticed < 100 {
        let position = scattered(&game, 8, &mut rng);
        if negamax(&game, &position, &mut memo) != Exact::Win {
            continue;
        }
        let mut losing: Vec<_> = children(&game, &position).collect();
        losing.sort_by_key(|(mv, _)| *mv);
        let choice = losing
            .iter()
            .position(|(_, child)| negamax(&game, child, &mut memo) == Exact::Win);
        let Some(choice) = choice else {
            continue;
        };
        let mut certificate = certificate_of(&game, &game.format_position(&position));
        if certificate.choices.is_empty() {
            // There is a move that wins at once.
            continue;
        }
        certificate.choices[0] = choice as u32;
        // The rest cannot fit any longer; nor would anything else.
        assert!(verify(&certificate).is_err());
        certificate.choices.resize(1, 0);
        for length in 1..200 {
            certificate.choices.resize(length, rng.random_range(0..4));
            assert!(verify(&certificate).is_err());
        }
        noticed += 1;
    }
}

// --- Limits and refusals ---

#[test]
fn limits_give_unknown_and_never_a_wrong_value() {
    let game = march("2k2/ppppp/5/PPPPP/2K2 w", "loss");
    let mut unknown = 0;
    let mut solver = blitz_solver(&game);
    for nodes in [0, 1, 10, 100, 1000] {
        let limits = Limits {
            nodes: Some(nodes),
            ..Limits::default()
        };
        let solution = solver.solve(&game.start(), &limits);
        assert!(solution.nodes <= nodes);
        assert!(
            matches!(solution.value, None | Some(Exact::Loss)),
            "{solution:?}"
        );
        unknown += u32::from(solution.value.is_none());
        let moves = solver.solve_moves(&game.start(), &limits);
        assert!(
            moves
                .iter()
                .all(|(_, value)| matches!(value, None | Some(Exact::Loss)))
        );
        assert!(solver.nodes() <= nodes + 16);
    }
    assert!(unknown >= 3);
    // What was left half done can be taken up.
    assert_eq!(
        solver.solve(&game.start(), &Limits::default()).value,
        Some(Exact::Loss)
    );
}

#[test]
fn time_and_the_stop_flag_end_a_search() {
    let game = march("p1pkp1/pppppp/6/6/PPPPPP/1PKP1P w", "loss");
    let mut solver = blitz_solver(&game);
    let limits = Limits {
        time: Some(Duration::from_millis(20)),
        ..Limits::default()
    };
    assert_eq!(solver.solve(&game.start(), &limits).value, None);
    let stop = Arc::new(AtomicBool::new(false));
    let limits = Limits {
        stop: Some(stop.clone()),
        ..Limits::default()
    };
    let value = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            stop.store(true, Ordering::Relaxed);
        });
        solver.solve(&game.start(), &limits).value
    });
    assert_eq!(value, None);
    let certificate = certify(&game, &mut solver, &game.start(), &limits);
    assert!(certificate.is_err());
}

#[test]
fn games_that_can_go_in_circles_are_refused() {
    let game = game(WANDERERS);
    let error = Solver::new(&game, Options::default(), None)
        .map(|_| ())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "wanderers cannot be solved, since games need not end by themselves: its elephant can \
         move sideways or backwards, so that positions can come back and only max_plies ends the \
         game"
    );
}

// --- The command ---

fn json(arguments: &[&str]) -> serde_json::Value {
    let (stdout, _) = run(tanren(arguments).arg("--json"), 0);
    serde_json::from_str(&stdout).unwrap()
}

#[test]
fn positions_are_solved_on_the_command_line() {
    let position = "2k3/1p2p1/6/6/1P2P1/3K2 w";
    let solved = json(&["solve", "march-blitz", "--position", position, "--moves"]);
    assert_eq!(solved["value"], "win");
    assert_eq!(solved["position"], position);
    let moves = solved["moves"].as_object().unwrap();
    assert_eq!(moves.len(), 8);
    assert!(moves.values().any(|value| value == "win"));
    let first = solved["line"][0].as_str().unwrap();
    assert_eq!(moves[first], "win");
    assert!(solved["nodes"].as_u64().unwrap() > 0);
    assert!(solved["seconds"].as_f64().unwrap() > 0.0);

    let without = [
        "solve",
        "march-blitz",
        "--position",
        position,
        "--with",
        "none",
    ];
    assert_eq!(json(&without)["value"], "win");

    let limited = json(&["solve", "march-grand", "--nodes", "1000", "--moves"]);
    assert_eq!(limited["value"], "unknown");
    assert_eq!(limited["line"], serde_json::json!([]));
    assert!(
        limited["moves"]
            .as_object()
            .unwrap()
            .values()
            .all(|value| value == "unknown")
    );
    let (stdout, _) = run(
        &mut tanren(&["solve", "march-grand", "--seconds", "0.05"]),
        0,
    );
    assert!(
        stdout.contains("value     unknown: the search was not finished"),
        "{stdout}"
    );

    let (stdout, _) = run(
        &mut tanren(&["solve", "march-blitz", "--position", "6/1K1p1k/2P3/6/6/6 w"]),
        0,
    );
    for part in [
        "value     win for the first player, to move",
        "line      b5",
        "searched  ",
    ] {
        assert!(stdout.contains(part), "{stdout}");
    }
    let over = json(&[
        "solve",
        "march-blitz",
        "--position",
        "K5/3p1k/6/6/6/6 b",
        "--moves",
    ]);
    assert_eq!(
        (&over["value"], over["nodes"].as_u64()),
        (&"loss".into(), Some(0))
    );
    assert_eq!(over["moves"], serde_json::json!({}));
}

#[test]
fn certificates_on_the_command_line() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("proof");
    let file = path.to_str().unwrap();
    let position = "2k3/1p2p1/6/6/1P2P1/3K2 w";
    let (stdout, _) = run(
        &mut tanren(&[
            "solve",
            "march-blitz",
            "--position",
            position,
            "--certificate",
            file,
        ]),
        0,
    );
    assert!(stdout.contains("tanren solve --verify"), "{stdout}");
    let verified = json(&["solve", "--verify", file]);
    assert_eq!(verified["verified"], true);
    assert_eq!(verified["value"], "win");
    assert_eq!(verified["position"], position);
    let (stdout, _) = run(&mut tanren(&["solve", "--verify", file]), 0);
    assert!(stdout.starts_with("verified   win for the side to move\ngame       march-blitz\n"));

    let mut bytes = std::fs::read(&path).unwrap();
    bytes[200] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let (_, stderr) = run(&mut tanren(&["solve", "--verify", file]), 1);
    assert!(stderr.contains("damaged or was changed"), "{stderr}");
}

#[test]
fn what_cannot_be_solved_is_said() {
    let place = tempfile::tempdir().unwrap();
    let wanderers = place.path().join("wanderers.toml");
    std::fs::write(&wanderers, WANDERERS).unwrap();
    let blitz = &["solve", "march-blitz"][..];
    let with = |more: &[&'static str]| [blitz, more].concat();
    for (arguments, code, part) in [
        (vec!["solve"], 2, "<GAME>"),
        (vec!["solve", "marsh"], 2, "there is no game \"marsh\""),
        (
            vec!["solve", wanderers.to_str().unwrap()],
            2,
            "need not end by themselves: its elephant",
        ),
        (
            with(&["--position", "6/6/6/6/6/K5 w"]),
            2,
            "has no king left",
        ),
        (
            with(&["--position", "k5/6/6/6/6/6 b"]),
            2,
            "has no king left",
        ),
        (with(&["--nodes", "0"]), 2, "0 is not in 1.."),
        (with(&["--seconds", "0"]), 2, "a number above 0"),
        (with(&["--seconds", "x"]), 2, "a number above 0"),
        (with(&["--table-mib", "0"]), 2, "0 is not in 1.."),
        (
            with(&["--with", "nobody"]),
            2,
            "there is no agent \"nobody\"",
        ),
        (
            with(&["--with", "model:nowhere"]),
            2,
            "cannot judge by model:nowhere",
        ),
        (
            with(&["--with", "model:models/march-grand/mlp"]),
            2,
            "is for march-grand, not for march-blitz",
        ),
        (
            vec!["solve", "connect-four", "--certificate", "x"],
            2,
            "connect-four is coded",
        ),
        (with(&["--verify", "x"]), 2, "cannot be used with"),
        (
            vec!["solve", "--verify", "nowhere"],
            1,
            "cannot read nowhere",
        ),
        (
            vec!["solve", "--verify", "Cargo.toml"],
            1,
            "this is no certificate",
        ),
    ] {
        let (_, stderr) = run(&mut tanren(&arguments), code);
        assert!(stderr.contains(part), "{arguments:?}: {stderr}");
    }
}
