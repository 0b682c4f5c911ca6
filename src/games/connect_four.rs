//! Connect Four on the usual board: seven files, six ranks, four in a row win.
//!
//! It is a first-player win by the middle file, so it anchors searches.
//!
//! Source: J. Allen and V. Allis independently, 1988; V. Allis, "A knowledge-based
//! approach of Connect-Four" (1988). The bitboard with a spare square on top of
//! each file is John Tromp's, <https://tromp.github.io/c4/c4.html>.

use crate::game::{Feature, FeatureChanges, Game, Outcome, ParseError, PlaneShape, Side};
use crate::games::board_text;

/// Files of the board.
pub const FILES: usize = 7;
/// Ranks of the board.
pub const RANKS: usize = 6;
/// Bits from one file to the next: one spare bit keeps lines from running over.
const STRIDE: usize = RANKS + 1;
/// Bits between neighbours in a line: up, across, and the two diagonals.
const LINES: [usize; 4] = [1, STRIDE, STRIDE - 1, STRIDE + 1];

/// The game; it has no parameters.
#[derive(Debug, Clone, Copy, Default)]
pub struct ConnectFour;

/// A position: square (file, rank) is bit `file * 7 + rank`.
///
/// # Equality
/// Stones and side to move; the order in which they fell does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    /// By [`Side::index`].
    stones: [u64; 2],
    to_move: Side,
}

impl Position {
    fn occupied(&self) -> u64 {
        self.stones[0] | self.stones[1]
    }

    /// The lowest empty square of a file; its spare one if the file is full.
    fn landing(&self, file: usize) -> u64 {
        let bottom = 1 << (file * STRIDE);
        (self.occupied() & file_mask(file)) + bottom
    }

    const CODE_BITS: u32 = 2 * (FILES * STRIDE) as u32 + 1;

    /// A number that no other position has.
    fn code(&self) -> u128 {
        let [first, second] = self.stones.map(u128::from);
        let second_to_move = u128::from(self.to_move == Side::Second);
        first << (FILES * STRIDE + 1) | second << 1 | second_to_move
    }

    fn letter_on(&self, file: usize, rank: usize) -> Option<char> {
        let square = square(file, rank);
        match self.stones.map(|stones| stones & square != 0) {
            [true, _] => Some('X'),
            [_, true] => Some('o'),
            _ => None,
        }
    }
}

/// The file, from 0, into which a stone falls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Drop(pub u8);

fn square(file: usize, rank: usize) -> u64 {
    1 << (file * STRIDE + rank)
}

/// The playable squares of a file.
fn file_mask(file: usize) -> u64 {
    ((1 << RANKS) - 1) << (file * STRIDE)
}

/// The stones seen in a mirror.
fn mirrored(stones: u64) -> u64 {
    (0..FILES).fold(0, |mirrored, file| {
        let ranks = stones >> (file * STRIDE) & file_mask(0);
        mirrored | ranks << ((FILES - 1 - file) * STRIDE)
    })
}

/// Whether four of the stones stand in a row.
fn has_four(stones: u64) -> bool {
    LINES.iter().any(|step| {
        let pairs = stones & stones >> step;
        pairs & pairs >> (2 * step) != 0
    })
}

/// Own stones first, then the opponent's; the top rank is row 0.
fn feature(own: bool, file: usize, rank: usize) -> Feature {
    let plane = if own { 0 } else { RANKS * FILES };
    (plane + (RANKS - 1 - rank) * FILES + file) as Feature
}

impl Game for ConnectFour {
    type Position = Position;
    type Move = Drop;

    fn name(&self) -> &str {
        "connect-four"
    }

    fn title(&self) -> &str {
        "Connect Four"
    }

    fn rules_text(&self) -> String {
        format!("connect four {FILES}x{RANKS}")
    }

    fn start(&self) -> Position {
        Position {
            stones: [0; 2],
            to_move: Side::First,
        }
    }

    fn side_to_move(&self, position: &Position) -> Side {
        position.to_move
    }

    fn legal_moves(&self, position: &Position, moves: &mut Vec<Drop>) {
        if has_four(position.stones[position.to_move.other().index()]) {
            return;
        }
        let open = |file: &usize| position.landing(*file) & file_mask(*file) != 0;
        moves.extend((0..FILES).filter(open).map(|file| Drop(file as u8)));
    }

    fn play_unchecked(&self, position: &mut Position, mv: Drop) {
        position.stones[position.to_move.index()] |= position.landing(usize::from(mv.0));
        position.to_move = position.to_move.other();
    }

    fn outcome(&self, position: &Position) -> Option<Outcome> {
        let last = position.to_move.other();
        if has_four(position.stones[last.index()]) {
            return Some(Outcome::Win(last));
        }
        let full = position.occupied().count_ones() as usize == FILES * RANKS;
        full.then_some(Outcome::Draw)
    }

    /// # Panics
    /// If the game is not over.
    fn ending(&self, position: &Position) -> &'static str {
        match self.outcome(position).expect("the game is over") {
            Outcome::Win(_) => "four in a row",
            Outcome::Draw => "full board",
        }
    }

    /// Always 0, since no stone is ever lost: a player of material sees wins and
    /// losses alone.
    fn material(&self, _position: &Position) -> i32 {
        0
    }

    fn max_plies(&self) -> usize {
        FILES * RANKS
    }

    fn why_endless(&self) -> Option<String> {
        None
    }

    /// Whether the side to move can make four in a row.
    fn foresee(&self, position: &Position) -> Option<Side> {
        let own = position.stones[position.to_move.index()];
        let wins = |file| has_four(own | position.landing(file) & file_mask(file));
        (0..FILES).any(wins).then_some(position.to_move)
    }

    fn key(&self, position: &Position) -> u128 {
        let mirrored = Position {
            stones: position.stones.map(mirrored),
            ..*position
        };
        position.code().min(mirrored.code())
    }

    fn key_bits(&self) -> Option<u32> {
        Some(Position::CODE_BITS)
    }

    /// Rows from the top, `X` for the first player and `o` for the second, and the
    /// side to move.
    fn format_position(&self, position: &Position) -> String {
        let rows =
            board_text::format_rows(FILES, RANKS, |file, rank| position.letter_on(file, rank));
        format!("{rows} {}", board_text::side_letter(position.to_move))
    }

    /// Either side may have begun; the side to move has no more stones than the
    /// other.
    fn parse_position(&self, text: &str) -> Result<Position, ParseError> {
        let [rows, side] = text.split_whitespace().collect::<Vec<_>>()[..] else {
            return Err(ParseError(format!(
                "a position is rows, a blank and the side to move, such as \
                 \"7/7/7/7/7/3X3 b\"; {text:?} is not"
            )));
        };
        let rows = board_text::parse_rows(rows)?;
        if rows.len() != RANKS || rows.iter().any(|row| row.len() != FILES) {
            let why = format!("the board has {FILES} files and {RANKS} ranks");
            return Err(ParseError(why));
        }
        let mut position = Position {
            stones: [0; 2],
            to_move: board_text::parse_side(side)?,
        };
        for (rank, row) in rows.iter().rev().enumerate() {
            for (file, letter) in row.iter().enumerate() {
                match letter {
                    None => {}
                    Some('X') => position.stones[0] |= square(file, rank),
                    Some('o') => position.stones[1] |= square(file, rank),
                    Some(other) => {
                        let why = format!("stones are X (first player) and o, not {other:?}");
                        return Err(ParseError(why));
                    }
                }
            }
        }
        check(&position).map(|()| position)
    }

    /// The letter of the file.
    fn format_move(&self, mv: Drop) -> String {
        board_text::file_letter(usize::from(mv.0)).to_string()
    }

    fn parse_move(&self, text: &str) -> Result<Drop, ParseError> {
        let files = (0..FILES as u8).map(Drop);
        files
            .into_iter()
            .find(|&file| self.format_move(file) == text)
            .ok_or_else(|| {
                ParseError(format!(
                    "a move is the letter of a file, a to g; {text:?} is not"
                ))
            })
    }

    fn draw(&self, position: &Position) -> String {
        board_text::draw(FILES, RANKS, |file, rank| position.letter_on(file, rank))
    }

    /// Own stones and the opponent's, without a border.
    fn plane_shape(&self) -> PlaneShape {
        PlaneShape {
            planes: 2,
            rows: RANKS,
            columns: FILES,
        }
    }

    fn features(&self, position: &Position, side: Side, features: &mut Vec<Feature>) {
        for owner in [side, side.other()] {
            for file in 0..FILES {
                let ranks = (0..RANKS)
                    .filter(|&rank| position.stones[owner.index()] & square(file, rank) != 0);
                features.extend(ranks.map(|rank| feature(owner == side, file, rank)));
            }
        }
    }

    fn feature_changes(
        &self,
        position: &Position,
        mv: Drop,
        side: Side,
        changes: &mut FeatureChanges,
    ) {
        changes.clear();
        let file = usize::from(mv.0);
        let rank = position.landing(file).trailing_zeros() as usize - file * STRIDE;
        changes
            .added
            .push(feature(position.to_move == side, file, rank));
    }

    fn flipped(&self, position: &Position) -> Option<Position> {
        let [first, second] = position.stones;
        Some(Position {
            stones: [second, first],
            to_move: position.to_move.other(),
        })
    }

    fn mirrored(&self, position: &Position) -> Option<Position> {
        Some(Position {
            stones: position.stones.map(mirrored),
            ..*position
        })
    }

    fn mirrored_feature(&self, feature: Feature) -> Feature {
        let files = FILES as Feature;
        let file = feature % files;
        feature - file + files - 1 - file
    }
}

/// Checks that stones lie on stones, that their numbers fit the turn, and that the
/// game did not end before.
fn check(position: &Position) -> Result<(), ParseError> {
    for file in 0..FILES {
        if position.landing(file) & position.occupied() != 0 {
            let letter = board_text::file_letter(file);
            return Err(ParseError(format!(
                "a stone hangs in the air in file {letter}"
            )));
        }
    }
    let [mover, opponent] =
        [position.to_move, position.to_move.other()].map(|side| position.stones[side.index()]);
    let lead = opponent.count_ones() as i32 - mover.count_ones() as i32;
    if !(0..=1).contains(&lead) {
        return Err(ParseError(format!(
            "the side to move has {} stones and the other {}; it must have as many or one fewer",
            mover.count_ones(),
            opponent.count_ones()
        )));
    }
    if has_four(mover) {
        return Err(ParseError("the side to move has won already".to_string()));
    }
    Ok(())
}
