//! The slow, obvious twin of the bitboard game: an array of letters, and every leap
//! tried as the rules file states it. It shares no code with the fast game but the
//! reading of the rules file; `tanren games check` and the tests compare the two, and
//! certificates of the solver are checked with it.

use super::{Leaper, MAX_SQUARES, Rules, Stuck};
use crate::game::conformance::Failure;
use crate::game::{Game, Outcome, Side, perft};
use crate::random::{Rng, RngExt};

/// The letter of a square on which nothing stands.
const EMPTY: u8 = b'.';

/// A position as a person would keep it: a board of letters.
#[derive(Debug, Clone)]
pub struct SlowBoard<'a> {
    rules: &'a Rules,
    /// By square, a1, b1, ..., a2, b2, ...
    letters: [u8; MAX_SQUARES],
    first_to_move: bool,
    plies: usize,
}

/// A leap between squares given as (rank, file), from 0.
pub type SlowMove = ((i32, i32), (i32, i32));

impl<'a> SlowBoard<'a> {
    /// Reads the text of a position; it must be right.
    pub fn read(rules: &'a Rules, text: &str) -> SlowBoard<'a> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let rows = fields[0].split('/').rev().flat_map(read_row);
        let mut letters = [EMPTY; MAX_SQUARES];
        for (square, letter) in letters.iter_mut().zip(rows) {
            *square = letter;
        }
        let plies = fields
            .get(2)
            .map_or(0, |plies| plies.parse().expect("a count of plies"));
        SlowBoard {
            rules,
            letters,
            first_to_move: fields[1] == "w",
            plies,
        }
    }

    /// The text of the position.
    pub fn text(&self) -> String {
        let side = if self.first_to_move { 'w' } else { 'b' };
        let mut text = String::new();
        for row in self.rows().rev() {
            for letter in row {
                text.push(char::from(*letter));
            }
            text.push('/');
        }
        // From the longest on, so that a run of empty squares becomes one number.
        for empty in (1..=self.rules.width).rev() {
            text = text.replace(&".".repeat(empty), &empty.to_string());
        }
        let rows = text.trim_end_matches('/');
        match self.rules.max_plies {
            Some(_) => format!("{rows} {side} {}", self.plies),
            None => format!("{rows} {side}"),
        }
    }

    /// The letters on the squares a1, b1, ..., a2, b2, ...; `.` where nothing stands.
    pub fn letters(&self) -> &[u8; MAX_SQUARES] {
        &self.letters
    }

    /// Puts other letters on the board.
    pub fn with_letters(&self, letters: [u8; MAX_SQUARES]) -> SlowBoard<'a> {
        SlowBoard { letters, ..*self }
    }

    /// Whose turn it is.
    pub fn side_to_move(&self) -> Side {
        match self.first_to_move {
            true => Side::First,
            false => Side::Second,
        }
    }

    fn rows(&self) -> std::slice::ChunksExact<'_, u8> {
        let squares = self.rules.width * self.rules.height;
        self.letters[..squares].chunks_exact(self.rules.width)
    }

    fn square(&self, rank: i32, file: i32) -> Option<usize> {
        let (width, height) = (self.rules.width as i32, self.rules.height as i32);
        let on_board = (0..height).contains(&rank) && (0..width).contains(&file);
        on_board.then_some((rank * width + file) as usize)
    }

    fn is_own(&self, letter: u8) -> bool {
        letter != EMPTY && letter.is_ascii_uppercase() == self.first_to_move
    }

    /// Every move the pieces allow, whether or not the game is over.
    fn leaps(&self) -> impl Iterator<Item = SlowMove> {
        (0..).zip(self.rows()).flat_map(move |(rank, row)| {
            let files = (0..).zip(row);
            files.flat_map(move |(file, &letter)| self.leaps_of(letter, rank, file))
        })
    }

    fn leaps_of(&self, letter: u8, rank: i32, file: i32) -> impl Iterator<Item = SlowMove> {
        let forward = if self.first_to_move { 1 } else { -1 };
        let kinds = self.rules.kinds.iter().filter(move |kind| {
            self.is_own(letter) && kind.letter as u8 == letter.to_ascii_lowercase()
        });
        kinds.flat_map(|kind| &kind.leaps).filter_map(move |leap| {
            let to_file = file + forward * i32::from(leap.files);
            let to_rank = rank + forward * i32::from(leap.ranks);
            let allowed = match self.letters[self.square(to_rank, to_file)?] {
                EMPTY => leap.moves,
                other => leap.captures && !self.is_own(other),
            };
            allowed.then_some(((rank, file), (to_rank, to_file)))
        })
    }

    /// The legal moves, in ascending order of the squares left, then of those entered;
    /// squares go rank by rank.
    pub fn moves(&self) -> Vec<SlowMove> {
        if self.outcome().is_some() {
            return Vec::new();
        }
        let mut moves: Vec<SlowMove> = self.leaps().collect();
        moves.sort_unstable();
        moves
    }

    /// Makes a legal move.
    pub fn play(&mut self, (from, to): SlowMove) {
        let square = |(rank, file)| {
            self.square(rank, file)
                .expect("legal moves end on the board")
        };
        let (from, to) = (square(from), square(to));
        self.letters[to] = self.letters[from];
        self.letters[from] = EMPTY;
        self.first_to_move = !self.first_to_move;
        self.plies += 1;
    }

    /// The result, if the game is over.
    pub fn outcome(&self) -> Option<Outcome> {
        let mover = self.side_to_move();
        let opponent = mover.other();
        let letter = |side, kind: usize| {
            let letter = self.rules.kinds[kind].letter as u8;
            match side {
                Side::First => letter.to_ascii_uppercase(),
                Side::Second => letter,
            }
        };
        if let Some(kind) = self.rules.capture
            && !self.letters.contains(&letter(mover, kind))
        {
            return Some(Outcome::Win(opponent));
        }
        let far_rank = if self.first_to_move {
            self.rows().next()
        } else {
            self.rows().next_back()
        };
        if let Some(kind) = self.rules.goal
            && far_rank.is_some_and(|row| row.contains(&letter(opponent, kind)))
        {
            return Some(Outcome::Win(opponent));
        }
        if self.leaps().next().is_none() {
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

fn read_row(row: &str) -> Vec<u8> {
    let mut squares = Vec::new();
    let mut empty = 0;
    for letter in row.bytes() {
        match char::from(letter).to_digit(10) {
            Some(digit) => empty = 10 * empty + digit as usize,
            None => {
                squares.extend(std::iter::repeat_n(EMPTY, std::mem::take(&mut empty)));
                squares.push(letter);
            }
        }
    }
    squares.extend(std::iter::repeat_n(EMPTY, empty));
    squares
}

/// A move as people write it.
pub fn move_name(((from_rank, from_file), (to_rank, to_file)): SlowMove) -> String {
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
