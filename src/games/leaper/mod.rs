//! Games of leaping pieces: March, Breakthrough, and whatever a rules file says.
//!
//! Boards of up to 64 squares, up to four kinds of piece, moves in
//! [Betza notation](betza). A game is a TOML file, see [`Rules`]; the shipped ones
//! are compiled in. Positions are bitboards, and a table a piece gives the squares
//! it can leap to, so that a file plays as fast as rules written by hand.
//!
//! # The two players
//! The second player's moves are the first's turned by half a turn, so colours can
//! always be exchanged. For the same reason a position's network input is the
//! board turned by half a turn when the second player looks: on the point-symmetric
//! layouts of March both sides see the same start.

pub mod betza;
mod foresight;
mod keys;
mod placement;
mod problem;
mod rules;
mod rules_file;
pub mod slow;

pub use problem::{Problem, RulesError};
pub use rules::{Kind, MAX_KINDS, MAX_PLIES, MAX_SQUARES, MAX_VALUE, Rules, Stuck};

use self::betza::Leap;
use self::foresight::Race;
use self::keys::Keys;
use self::placement::{Piece, Placement};
use crate::game::{Feature, FeatureChanges, Game, Outcome, ParseError, PlaneShape, Side, hash_key};
use crate::games::board_text;

/// The rules file of March, Blitz layout.
pub const MARCH_BLITZ: &str = include_str!("march-blitz.toml");
/// The rules file of March, Grand layout.
pub const MARCH_GRAND: &str = include_str!("march-grand.toml");
/// The rules file of Breakthrough on 6x6.
pub const BREAKTHROUGH_6: &str = include_str!("breakthrough-6.toml");

/// A game of the family, ready to play.
#[derive(Debug, Clone)]
pub struct Leaper {
    rules: Rules,
    start: Position,
    /// `[side][kind][square]`
    targets: Box<[[[Targets; MAX_SQUARES]; MAX_KINDS]; 2]>,
    /// The rank that each side moves towards.
    far_rank: [u64; 2],
    /// `[viewer][owner][kind][square]`: the input that a piece switches on.
    inputs: Box<[[PieceInputs; 2]; 2]>,
    mirror_symmetric: bool,
    /// If the game is one in which kings race.
    race: Option<Race>,
    /// If positions fit into 128 bits.
    keys: Option<Keys>,
}

/// `[kind][square]`
type PieceInputs = [[Feature; MAX_SQUARES]; MAX_KINDS];

/// Where a piece can go from one square on an otherwise empty board.
#[derive(Debug, Clone, Copy, Default)]
struct Targets {
    moves: u64,
    captures: u64,
}

/// A position: squares are bits, `rank * width + file` from the bottom left.
///
/// # Equality
/// Pieces, side to move, and plies played if the game limits them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    /// By [`Side::index`].
    sides: [u64; 2],
    /// By index into [`Rules::kinds`], both sides' pieces.
    kinds: [u64; MAX_KINDS],
    to_move: Side,
    /// Plies played; always 0 in graded games.
    plies: u16,
}

impl Position {
    /// The squares of one side's pieces of one kind.
    pub fn pieces(&self, side: Side, kind: usize) -> u64 {
        self.sides[side.index()] & self.kinds[kind]
    }
}

/// A leap from one square to another, `rank * width + file` each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Move {
    /// The square left.
    pub from: u8,
    /// The square entered.
    pub to: u8,
}

/// What ends a game.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Catch,
    Try,
    Stuck,
    MaxPlies,
}

impl Leaper {
    /// Builds the game of a rules file; `file` is its name for error messages.
    ///
    /// # Errors
    /// If the file is wrong; see [`Rules::parse`].
    pub fn parse(file: &str, toml: &str) -> Result<Leaper, RulesError> {
        Ok(Leaper::new(Rules::parse(file, toml)?))
    }

    /// Builds the game of checked rules.
    pub fn new(rules: Rules) -> Leaper {
        let squares = rules.width * rules.height;
        let first_rank = u64::MAX >> (64 - rules.width);
        Leaper {
            start: position(&rules.start),
            targets: target_table(&rules),
            far_rank: [first_rank << (squares - rules.width), first_rank],
            inputs: input_table(&rules),
            mirror_symmetric: rules.is_mirror_symmetric(),
            race: Race::of(&rules),
            keys: Keys::of(&rules),
            rules,
        }
    }

    /// The rules it was built from.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Whether every move goes forward; see [`Rules::is_graded`].
    pub fn is_graded(&self) -> bool {
        self.rules.is_graded()
    }

    /// The letters on the squares, `rank * width + file` each; `.` where nothing
    /// stands.
    pub fn letters(&self, position: &Position) -> [u8; MAX_SQUARES] {
        let mut letters = [b'.'; MAX_SQUARES];
        for square in bits(position.sides[0] | position.sides[1]) {
            let piece = self.piece_on(position, square);
            letters[square] = piece.map_or(b'.', |piece| self.rules.letter_of(piece) as u8);
        }
        letters
    }

    fn squares(&self) -> usize {
        self.rules.width * self.rules.height
    }

    /// The mover's pieces, each square with the squares it can go to.
    fn leaps<'a>(&'a self, position: &'a Position) -> impl Iterator<Item = (usize, u64)> + 'a {
        let side = position.to_move;
        let enemies = position.sides[side.other().index()];
        let empty = !(position.sides[0] | position.sides[1]);
        let tables = &self.targets[side.index()][..self.rules.kinds.len()];
        tables.iter().enumerate().flat_map(move |(kind, table)| {
            bits(position.pieces(side, kind)).map(move |square| {
                let targets = table[square];
                (square, targets.moves & empty | targets.captures & enemies)
            })
        })
    }

    /// The end by a move of the side that moved last. That side has won.
    fn won(&self, position: &Position) -> Option<Ending> {
        let (mover, opponent) = (position.to_move, position.to_move.other());
        if self
            .rules
            .capture
            .is_some_and(|kind| position.pieces(mover, kind) == 0)
        {
            return Some(Ending::Catch);
        }
        let arrived = |kind| position.pieces(opponent, kind) & self.far_rank[opponent.index()] != 0;
        self.rules.goal.is_some_and(arrived).then_some(Ending::Try)
    }

    /// Whether no move may be made, whatever the pieces could do.
    fn is_closed(&self, position: &Position) -> bool {
        self.won(position).is_some() || Some(position.plies) == self.rules.max_plies
    }

    /// A win comes before all else. A side without a move is stuck even on the last
    /// ply: only longer games are draws.
    fn ended_by(&self, position: &Position) -> Option<Ending> {
        let stuck = || self.leaps(position).all(|(_, targets)| targets == 0);
        let limit = || Some(position.plies) == self.rules.max_plies;
        self.won(position)
            .or_else(|| stuck().then_some(Ending::Stuck))
            .or_else(|| limit().then_some(Ending::MaxPlies))
    }

    fn feature(&self, viewer: Side, owner: Side, kind: usize, square: usize) -> Feature {
        self.inputs[viewer.index()][owner.index()][kind][square]
    }

    /// The kind of the piece on an occupied square.
    fn kind_on(&self, position: &Position, square: u8) -> usize {
        let on = |kinds: &u64| kinds >> square & 1 == 1;
        position
            .kinds
            .iter()
            .position(on)
            .expect("a piece stands on the square")
    }

    fn piece_on(&self, position: &Position, square: usize) -> Option<Piece> {
        let side = Side::ALL
            .into_iter()
            .find(|side| position.sides[side.index()] >> square & 1 == 1)?;
        Some(Piece {
            side,
            kind: self.kind_on(position, square as u8),
        })
    }

    fn letter_on(&self, position: &Position, file: usize, rank: usize) -> Option<char> {
        let piece = self.piece_on(position, rank * self.rules.width + file)?;
        Some(self.rules.letter_of(piece))
    }

    fn square_name(&self, square: u8) -> String {
        let square = usize::from(square);
        board_text::square_name(square % self.rules.width, square / self.rules.width)
    }

    fn square_index(&self, (file, rank): (usize, usize)) -> Option<u8> {
        let on_board = file < self.rules.width && rank < self.rules.height;
        on_board.then_some((rank * self.rules.width + file) as u8)
    }
}

fn position(placement: &Placement) -> Position {
    let mut position = Position {
        sides: [0; 2],
        kinds: [0; MAX_KINDS],
        to_move: placement.to_move,
        plies: placement.plies.unwrap_or(0),
    };
    for (square, piece) in placement.occupied() {
        position.sides[piece.side.index()] |= 1 << square;
        position.kinds[piece.kind] |= 1 << square;
    }
    position
}

fn target_table(rules: &Rules) -> Box<[[[Targets; MAX_SQUARES]; MAX_KINDS]; 2]> {
    let mut table = Box::new([[[Targets::default(); MAX_SQUARES]; MAX_KINDS]; 2]);
    for side in Side::ALL {
        for (kind, squares) in rules.kinds.iter().zip(&mut table[side.index()]) {
            let on_board = &mut squares[..rules.width * rules.height];
            for (square, entry) in on_board.iter_mut().enumerate() {
                *entry = targets(rules, side, &kind.leaps, square);
            }
        }
    }
    table
}

fn targets(rules: &Rules, side: Side, leaps: &[Leap], square: usize) -> Targets {
    let mut targets = Targets::default();
    for leap in leaps {
        let Some(landing) = rules.landing(square, side, leap) else {
            continue;
        };
        targets.moves |= u64::from(leap.moves) << landing;
        targets.captures |= u64::from(leap.captures) << landing;
    }
    targets
}

/// See [`Leaper::plane_shape`] for the order.
fn plane_shape(rules: &Rules) -> PlaneShape {
    PlaneShape {
        planes: 2 * rules.kinds.len(),
        rows: rules.height + 2,
        columns: rules.width + 2,
    }
}

fn input_table(rules: &Rules) -> Box<[[PieceInputs; 2]; 2]> {
    let mut table = Box::new([[[[0; MAX_SQUARES]; MAX_KINDS]; 2]; 2]);
    for viewer in Side::ALL {
        for owner in Side::ALL {
            for kind in 0..rules.kinds.len() {
                let plane = if viewer == owner {
                    kind
                } else {
                    rules.kinds.len() + kind
                };
                for square in 0..rules.width * rules.height {
                    table[viewer.index()][owner.index()][kind][square] =
                        input(rules, plane, viewer, square);
                }
            }
        }
    }
    table
}

/// The input of a square in a plane. The viewer moves up: row 1 is its far rank;
/// row 0 and column 0 are border.
fn input(rules: &Rules, plane: usize, viewer: Side, square: usize) -> Feature {
    let seen = match viewer {
        Side::First => square,
        Side::Second => rules.width * rules.height - 1 - square,
    };
    let (file, rank) = (seen % rules.width, seen / rules.width);
    let PlaneShape { rows, columns, .. } = plane_shape(rules);
    ((plane * rows + rules.height - rank) * columns + file + 1) as Feature
}

/// The indices of the set bits, from the lowest.
fn bits(mut board: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = (board != 0).then(|| board.trailing_zeros() as usize)?;
        board &= board - 1;
        Some(lowest)
    })
}

impl Game for Leaper {
    type Position = Position;
    type Move = Move;

    fn name(&self) -> &str {
        &self.rules.name
    }

    fn title(&self) -> &str {
        &self.rules.title
    }

    fn rules_text(&self) -> String {
        self.rules.canonical_text()
    }

    fn start(&self) -> Position {
        self.start
    }

    fn side_to_move(&self, position: &Position) -> Side {
        position.to_move
    }

    fn legal_moves(&self, position: &Position, moves: &mut Vec<Move>) {
        if self.is_closed(position) {
            return;
        }
        for (from, targets) in self.leaps(position) {
            moves.extend(bits(targets).map(|to| Move {
                from: from as u8,
                to: to as u8,
            }));
        }
    }

    fn count_legal_moves(&self, position: &Position) -> u64 {
        if self.is_closed(position) {
            return 0;
        }
        self.leaps(position)
            .map(|(_, targets)| u64::from(targets.count_ones()))
            .sum()
    }

    fn play_unchecked(&self, position: &mut Position, mv: Move) {
        let side = position.to_move;
        let (from, to) = (1 << mv.from, 1 << mv.to);
        position.sides[side.index()] ^= from | to;
        position.sides[side.other().index()] &= !to;
        for kind in &mut position.kinds {
            let moving = *kind >> mv.from & 1;
            *kind = *kind & !from & !to | moving << mv.to;
        }
        position.to_move = side.other();
        position.plies += u16::from(self.rules.max_plies.is_some());
    }

    fn outcome(&self, position: &Position) -> Option<Outcome> {
        let (mover, opponent) = (position.to_move, position.to_move.other());
        Some(match self.ended_by(position)? {
            Ending::Catch | Ending::Try => Outcome::Win(opponent),
            Ending::MaxPlies => Outcome::Draw,
            Ending::Stuck => match self.rules.stuck {
                Stuck::Loss => Outcome::Win(opponent),
                Stuck::Draw => Outcome::Draw,
                Stuck::Win => Outcome::Win(mover),
            },
        })
    }

    fn ending(&self, position: &Position) -> &'static str {
        match self.ended_by(position).expect("the game is over") {
            Ending::Catch => "Catch",
            Ending::Try => "Try",
            Ending::Stuck => "stuck",
            Ending::MaxPlies => "max plies",
        }
    }

    fn is_capture(&self, position: &Position, mv: Move) -> bool {
        position.sides[position.to_move.other().index()] >> mv.to & 1 == 1
    }

    fn material(&self, position: &Position) -> i32 {
        let count = |side, kind| position.pieces(side, kind).count_ones() as i32;
        let (mover, opponent) = (position.to_move, position.to_move.other());
        let kinds = self.rules.kinds.iter().enumerate();
        kinds
            .map(|(i, kind)| kind.value * (count(mover, i) - count(opponent, i)))
            .sum()
    }

    fn max_plies(&self) -> usize {
        self.rules.longest_game_plies()
    }

    fn why_endless(&self) -> Option<String> {
        let kind = self.rules.restless_kind()?;
        Some(format!(
            "its {} can move sideways or backwards, so that positions can come back and only \
             max_plies ends the game",
            kind.name
        ))
    }

    fn foresee(&self, position: &Position) -> Option<Side> {
        self.foreseen_winner(position)
    }

    fn key(&self, position: &Position) -> u128 {
        match &self.keys {
            Some(keys) => keys.key(position),
            None => hash_key(self, position),
        }
    }

    fn key_bits(&self) -> Option<u32> {
        self.keys.as_ref().map(Keys::bits)
    }

    fn format_position(&self, position: &Position) -> String {
        let Rules { width, height, .. } = self.rules;
        let letter = |file, rank| self.letter_on(position, file, rank);
        let rows = board_text::format_rows(width, height, letter);
        let side = board_text::side_letter(position.to_move);
        match self.rules.max_plies {
            Some(_) => format!("{rows} {side} {}", position.plies),
            None => format!("{rows} {side}"),
        }
    }

    /// Rows from the top, side to move, and, where plies are limited, how many were
    /// played (0 if left out). Finished positions are accepted if the last move
    /// could have finished them.
    fn parse_position(&self, text: &str) -> Result<Position, ParseError> {
        Ok(position(&self.rules.parse_position(text)?))
    }

    fn format_move(&self, mv: Move) -> String {
        self.square_name(mv.from) + &self.square_name(mv.to)
    }

    fn parse_move(&self, text: &str) -> Result<Move, ParseError> {
        let squares = || {
            let (from, rest) = board_text::parse_square(text)?;
            let (to, rest) = board_text::parse_square(rest)?;
            let (from, to) = (self.square_index(from)?, self.square_index(to)?);
            rest.is_empty().then_some(Move { from, to })
        };
        squares().ok_or_else(|| {
            let corner = self.square_name(self.squares() as u8 - 1);
            ParseError(format!(
                "a move is the square left and the square entered, such as a1a2, between a1 and \
                 {corner}; {text:?} is not"
            ))
        })
    }

    fn draw(&self, position: &Position) -> String {
        let Rules { width, height, .. } = self.rules;
        board_text::draw(width, height, |file, rank| {
            self.letter_on(position, file, rank)
        })
    }

    /// One plane a kind and owner, own kinds first, both in the order of
    /// [`Rules::kinds`], and a border one square wide around the board: what lies
    /// off the board then looks the same everywhere.
    fn plane_shape(&self) -> PlaneShape {
        plane_shape(&self.rules)
    }

    fn features(&self, position: &Position, side: Side, features: &mut Vec<Feature>) {
        for owner in [side, side.other()] {
            for kind in 0..self.rules.kinds.len() {
                let squares = bits(position.pieces(owner, kind));
                features.extend(squares.map(|square| self.feature(side, owner, kind, square)));
            }
        }
    }

    fn feature_changes(
        &self,
        position: &Position,
        mv: Move,
        side: Side,
        changes: &mut FeatureChanges,
    ) {
        changes.clear();
        let (mover, opponent) = (position.to_move, position.to_move.other());
        let (from, to) = (usize::from(mv.from), usize::from(mv.to));
        let moving = self.kind_on(position, mv.from);
        changes
            .removed
            .push(self.feature(side, mover, moving, from));
        changes.added.push(self.feature(side, mover, moving, to));
        if self.is_capture(position, mv) {
            let captured = self.kind_on(position, mv.to);
            changes
                .removed
                .push(self.feature(side, opponent, captured, to));
        }
    }

    fn flipped(&self, position: &Position) -> Option<Position> {
        let turned = |board: u64| board.reverse_bits() >> (64 - self.squares());
        let [first, second] = position.sides;
        Some(Position {
            sides: [turned(second), turned(first)],
            kinds: position.kinds.map(turned),
            to_move: position.to_move.other(),
            plies: position.plies,
        })
    }

    fn mirrored(&self, position: &Position) -> Option<Position> {
        let width = self.rules.width;
        let mirrored = |board: u64| {
            bits(board).fold(0, |mirrored, square| {
                let file = square % width;
                mirrored | 1 << (square - file + width - 1 - file)
            })
        };
        self.mirror_symmetric.then(|| Position {
            sides: position.sides.map(mirrored),
            kinds: position.kinds.map(mirrored),
            ..*position
        })
    }

    fn mirrored_feature(&self, feature: Feature) -> Feature {
        let columns = self.plane_shape().columns as Feature;
        let column = feature % columns;
        feature - column + columns - 1 - column
    }
}
