//! The slow, obvious twin of the bitboard game: an array of letters, and every leap
//! tried as the rules file states it. It shares no code with the fast game but the
//! reading of the rules file; `tanren games check` and the tests compare the two.

use super::{Leaper, Rules, Stuck};
use crate::game::conformance::Failure;
use crate::game::{Game, Outcome, Side, perft};
use crate::random::{Rng, RngExt};

/// A position as a person would keep it: rows of letters from the bottom, blanks
/// where nothing stands.
#[derive(Debug, Clone)]
struct SlowBoard<'a> {
    rules: &'a Rules,
    rows: Vec<Vec<char>>,
    first_to_move: bool,
    plies: usize,
}

/// A leap between squares given as (file, rank).
type SlowMove = ((i32, i32), (i32, i32));

impl<'a> SlowBoard<'a> {
    /// Reads the text of a position; it must be right.
    fn read(rules: &'a Rules, text: &str) -> SlowBoard<'a> {
        let fields: Vec<&str> = text.split(' ').collect();
        let rows = fields[0].split('/').rev().map(read_row).collect();
        let plies = fields
            .get(2)
            .map_or(0, |plies| plies.parse().expect("a count of plies"));
        SlowBoard {
            rules,
            rows,
            first_to_move: fields[1] == "w",
            plies,
        }
    }

    /// The letter on a square; `None` off the board.
    fn at(&self, file: i32, rank: i32) -> Option<char> {
        let row = self.rows.get(usize::try_from(rank).ok()?)?;
        row.get(usize::try_from(file).ok()?).copied()
    }

    fn is_own(&self, letter: char) -> bool {
        letter != ' ' && letter.is_ascii_uppercase() == self.first_to_move
    }

    /// Every move the pieces allow, whether or not the game is over.
    fn leaps(&self) -> Vec<SlowMove> {
        let forward = if self.first_to_move { 1 } else { -1 };
        let mut moves = Vec::new();
        for (rank, row) in (0..).zip(&self.rows) {
            for (file, &letter) in (0..).zip(row) {
                let kind = self
                    .rules
                    .kinds
                    .iter()
                    .find(|kind| kind.letter == letter.to_ascii_lowercase());
                let Some(kind) = kind.filter(|_| self.is_own(letter)) else {
                    continue;
                };
                for leap in &kind.leaps {
                    let to_file = file + forward * i32::from(leap.files);
                    let to_rank = rank + forward * i32::from(leap.ranks);
                    let allowed = match self.at(to_file, to_rank) {
                        None => false,
                        Some(' ') => leap.moves,
                        Some(other) => leap.captures && !self.is_own(other),
                    };
                    if allowed {
                        moves.push(((file, rank), (to_file, to_rank)));
                    }
                }
            }
        }
        moves
    }

    fn moves(&self) -> Vec<SlowMove> {
        if self.outcome().is_some() {
            Vec::new()
        } else {
            self.leaps()
        }
    }

    fn play(&mut self, (from, to): SlowMove) {
        let piece = std::mem::replace(&mut self.rows[from.1 as usize][from.0 as usize], ' ');
        self.rows[to.1 as usize][to.0 as usize] = piece;
        self.first_to_move = !self.first_to_move;
        self.plies += 1;
    }

    fn outcome(&self) -> Option<Outcome> {
        let (mover, opponent) = match self.first_to_move {
            true => (Side::First, Side::Second),
            false => (Side::Second, Side::First),
        };
        let letter = |side, kind: usize| match side {
            Side::First => self.rules.kinds[kind].letter.to_ascii_uppercase(),
            Side::Second => self.rules.kinds[kind].letter,
        };
        if let Some(kind) = self.rules.capture
            && !self.rows.concat().contains(&letter(mover, kind))
        {
            return Some(Outcome::Win(opponent));
        }
        let far_rank = if self.first_to_move {
            self.rows.first()
        } else {
            self.rows.last()
        };
        if let Some(kind) = self.rules.goal
            && far_rank.is_some_and(|row| row.contains(&letter(opponent, kind)))
        {
            return Some(Outcome::Win(opponent));
        }
        if self.leaps().is_empty() {
            return Some(match self.rules.stuck {
                Stuck::Loss => Outcome::Win(opponent),
                Stuck::Draw => Outcome::Draw,
                Stuck::Win => Outcome::Win(mover),
            });
        }
        let limit = self.rules.max_plies.map(usize::from);
        (limit == Some(self.plies)).then_some(Outcome::Draw)
    }

    fn perft(&self, plies: usize) -> u64 {
        let after = |mv| {
            let mut child = self.clone();
            child.play(mv);
            child
        };
        match plies {
            0 => 1,
            _ => self
                .moves()
                .into_iter()
                .map(|mv| after(mv).perft(plies - 1))
                .sum(),
        }
    }
}

fn read_row(row: &str) -> Vec<char> {
    let mut squares = Vec::new();
    let mut empty = 0;
    for letter in row.chars() {
        match letter.to_digit(10) {
            Some(digit) => empty = 10 * empty + digit as usize,
            None => {
                squares.extend(std::iter::repeat_n(' ', std::mem::take(&mut empty)));
                squares.push(letter);
            }
        }
    }
    squares.extend(std::iter::repeat_n(' ', empty));
    squares
}

fn move_name(((from_file, from_rank), (to_file, to_rank)): SlowMove) -> String {
    let file = |file: i32| char::from_digit(file as u32 + 10, 36).expect("a file is a letter");
    format!(
        "{}{}{}{}",
        file(from_file),
        from_rank + 1,
        file(to_file),
        to_rank + 1
    )
}

/// Number of lines of each length up to `depth` below a position of the game, as
/// [`perft::perft`] gives it, counted the slow way.
pub fn slow_perft(game: &Leaper, position: &super::Position, depth: usize) -> Vec<u64> {
    let text = game.format_position(position);
    let board = SlowBoard::read(game.rules(), &text);
    (1..=depth).map(|plies| board.perft(plies)).collect()
}

/// Compares the fast game with its twin: perft of the start to `depth`, then moves
/// and outcome in every position of `games` random games. Stops at the first
/// difference.
pub fn compare(game: &Leaper, depth: usize, games: usize, rng: &mut Rng) -> Option<Failure> {
    let start = game.start();
    let (fast, slow) = (
        perft::perft(game, &start, depth),
        slow_perft(game, &start, depth),
    );
    if fast != slow {
        let detail = format!("{fast:?}, counted slowly {slow:?}");
        return Some(failure(game, &start, detail));
    }
    (0..games).find_map(|_| compare_random_game(game, rng))
}

fn compare_random_game(game: &Leaper, rng: &mut Rng) -> Option<Failure> {
    let mut position = game.start();
    let mut board = SlowBoard::read(game.rules(), &game.format_position(&position));
    loop {
        let mut moves = Vec::new();
        game.legal_moves(&position, &mut moves);
        let slow_moves = board.moves();
        let mut names: Vec<String> = moves.iter().map(|&mv| game.format_move(mv)).collect();
        let mut slow_names: Vec<String> = slow_moves.iter().map(|&mv| move_name(mv)).collect();
        names.sort();
        slow_names.sort();
        if names != slow_names {
            let detail = format!("{}, found slowly {}", names.join(" "), slow_names.join(" "));
            return Some(failure(game, &position, detail));
        }
        let (outcome, slow_outcome) = (game.outcome(&position), board.outcome());
        if outcome != slow_outcome {
            let detail = format!("{outcome:?}, found slowly {slow_outcome:?}");
            return Some(failure(game, &position, detail));
        }
        if moves.is_empty() {
            return None;
        }
        let mv = slow_moves[rng.random_range(0..slow_moves.len())];
        let fast = game
            .parse_move(&move_name(mv))
            .expect("the names are equal");
        game.play_unchecked(&mut position, fast);
        board.play(mv);
    }
}

fn failure(game: &Leaper, position: &super::Position, detail: String) -> Failure {
    let law = "the fast game agrees with its slow twin";
    Failure {
        law,
        position: game.format_position(position),
        detail,
    }
}
