//! What a two-player, zero-sum game of perfect information is.
//!
//! The rules are a value (they may come from a file), positions are plain data.
//! No floats other than [`Value`], no tensors, no randomness here.

pub mod conformance;
pub mod perft;
pub mod playout;

use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Neg;

/// One of the two players, by who moved first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The player who makes the first move.
    First,
    /// The other one.
    Second,
}

impl Side {
    /// Both sides, in playing order.
    pub const ALL: [Side; 2] = [Side::First, Side::Second];

    /// The opponent.
    pub fn other(self) -> Side {
        match self {
            Side::First => Side::Second,
            Side::Second => Side::First,
        }
    }

    /// 0 for the first side, 1 for the second.
    pub fn index(self) -> usize {
        self as usize
    }
}

/// How a finished game ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// This side won.
    Win(Side),
    /// Nobody won.
    Draw,
}

impl Outcome {
    /// The result as `side` sees it.
    pub fn value_for(self, side: Side) -> Value {
        match self {
            Outcome::Win(winner) if winner == side => Value::WIN,
            Outcome::Win(_) => Value::LOSS,
            Outcome::Draw => Value::DRAW,
        }
    }
}

/// How good a position is for the side to move, in [-1, 1].
/// `-v` is the same judgement for the other side.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Value(f32);

impl Value {
    /// The side to move has won.
    pub const WIN: Value = Value(1.0);
    /// The side to move has lost.
    pub const LOSS: Value = Value(-1.0);
    /// Neither.
    pub const DRAW: Value = Value(0.0);

    /// Wraps a number in [-1, 1].
    ///
    /// # Panics
    /// In debug builds, if `value` is outside of the range or NaN.
    pub fn new(value: f32) -> Value {
        debug_assert!((-1.0..=1.0).contains(&value), "{value} is no value");
        Value(value)
    }

    /// The number, in [-1, 1].
    pub fn get(self) -> f32 {
        self.0
    }
}

impl Neg for Value {
    type Output = Value;
    fn neg(self) -> Value {
        Value(-self.0)
    }
}

/// The shape of a game's network input: `[planes, rows, columns]`, row-major.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlaneShape {
    /// Number of planes, for example one per kind of piece and owner.
    pub planes: usize,
    /// Rows of a plane, border included.
    pub rows: usize,
    /// Columns of a plane, border included.
    pub columns: usize,
}

impl PlaneShape {
    /// Checks that every input is a [`Feature`].
    ///
    /// # Errors
    /// Says what would be accepted.
    pub fn validate(self) -> Result<(), String> {
        const MOST: usize = Feature::MAX as usize + 1;
        let sizes = [self.planes, self.rows, self.columns];
        let inputs = sizes
            .iter()
            .try_fold(1, |all: usize, &n| all.checked_mul(n));
        match inputs {
            Some(1..=MOST) => Ok(()),
            _ => Err(format!(
                "planes, rows and columns {sizes:?} are out of range: accepted are sizes of 1 and \
                 more that multiply to no more than {MOST}"
            )),
        }
    }

    /// Number of inputs, `planes * rows * columns`.
    pub fn inputs(self) -> usize {
        self.planes * self.rows * self.columns
    }
}

/// What the network input means, for those who feed a network elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct PlaneLegend {
    /// What a 1 stands for, plane by plane, such as `own king`. Own is what belongs
    /// to the side that looks.
    pub planes: Vec<String>,
    /// Where the squares of the board lie in a plane.
    pub squares: String,
}

/// Index of one network input that is 1, in `0..PlaneShape::inputs()`; all others are 0.
pub type Feature = u16;

/// The features that a move switches, seen from one side.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeatureChanges {
    /// Features that were 1 and are now 0.
    pub removed: Vec<Feature>,
    /// Features that were 0 and are now 1.
    pub added: Vec<Feature>,
}

impl FeatureChanges {
    /// Forgets all changes, keeps the memory.
    pub fn clear(&mut self) {
        self.removed.clear();
        self.added.clear();
    }
}

/// A text that is no position or no move of the game.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(pub String);

/// A move that the rules do not allow in the position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{mv} is not legal in {position}; legal moves: {legal}")]
pub struct IllegalMove {
    /// The refused move.
    pub mv: String,
    /// The unchanged position.
    pub position: String,
    /// What could have been played, separated by blanks.
    pub legal: String,
}

/// Rules of a two-player, zero-sum game of perfect information.
///
/// # Equality
/// Two positions that are equal have the same legal moves, the same outcome and
/// the same future: `Eq` and `Hash` serve as the key of tables. What does not
/// bear on the future (move counters of a game that always ends) is not part of
/// the position.
pub trait Game: Send + Sync + 'static {
    /// A state of the game, plain data.
    type Position: Clone + Eq + Hash + Debug + Send + Sync + 'static;
    /// A move.
    type Move: Copy + Eq + Ord + Hash + Debug + Send + Sync + 'static;

    /// The name by which commands and model folders know the game.
    fn name(&self) -> &str;

    /// The game's name for people.
    fn title(&self) -> &str;

    /// A text that is equal for equal rules. Its hash ties a model to its game.
    fn rules_text(&self) -> String;

    /// Where games start.
    fn start(&self) -> Self::Position;

    /// Whose turn it is.
    fn side_to_move(&self, position: &Self::Position) -> Side;

    /// Appends every legal move in a fixed order; none exactly when
    /// [`Game::outcome`] is `Some`.
    fn legal_moves(&self, position: &Self::Position, moves: &mut Vec<Self::Move>);

    /// Number of legal moves.
    fn count_legal_moves(&self, position: &Self::Position) -> u64 {
        let mut moves = Vec::new();
        self.legal_moves(position, &mut moves);
        moves.len() as u64
    }

    /// Plays a move that is known to be legal. Anything else leaves a position
    /// that means nothing; [`Game::play`] checks.
    fn play_unchecked(&self, position: &mut Self::Position, mv: Self::Move);

    /// Plays a move.
    ///
    /// # Errors
    /// If the move is not legal; the position is then unchanged.
    fn play(&self, position: &mut Self::Position, mv: Self::Move) -> Result<(), IllegalMove> {
        let mut legal = Vec::new();
        self.legal_moves(position, &mut legal);
        if !legal.contains(&mv) {
            let names: Vec<String> = legal.iter().map(|&mv| self.format_move(mv)).collect();
            return Err(IllegalMove {
                mv: self.format_move(mv),
                position: self.format_position(position),
                legal: names.join(" "),
            });
        }
        self.play_unchecked(position, mv);
        Ok(())
    }

    /// The result, if the game is over.
    fn outcome(&self, position: &Self::Position) -> Option<Outcome>;

    /// What ended a finished game, in the game's own words ("Catch", "Try").
    ///
    /// # Panics
    /// May panic if the game is not over.
    fn ending(&self, position: &Self::Position) -> &'static str;

    /// Whether a legal move takes an enemy piece. Searches try such moves early; a
    /// game without captures need not say anything.
    fn is_capture(&self, _position: &Self::Position, _mv: Self::Move) -> bool {
        false
    }

    /// Piece count of the side to move less the opponent's, in the game's own
    /// units. EasyAI plays by it.
    fn material(&self, position: &Self::Position) -> i32;

    /// The longest possible game, in plies.
    fn max_plies(&self) -> usize;

    /// Why lines of play need not end by themselves: positions can come back, and at
    /// best a count of plies ends the game. `None` if no line of play can visit a
    /// position twice.
    fn why_endless(&self) -> Option<String>;

    /// The winner, where a glance shows that one side can force a win from a position
    /// that is not over: by a move that wins at once, say. `None` says nothing.
    ///
    /// What is foreseen has to stay in sight: the winner has a move after which it is
    /// foreseen again, or the game won, and so it is after all moves of the loser. In
    /// a game that ends, it is then true.
    fn foresee(&self, _position: &Self::Position) -> Option<Side> {
        None
    }

    /// A number that stands for the position in tables: equal for a position and its
    /// [mirror image](Game::mirrored), and otherwise different if [`Game::key_bits`]
    /// promises so.
    ///
    /// The default is a hash.
    fn key(&self, position: &Self::Position) -> u128 {
        hash_key(self, position)
    }

    /// If two positions have equal keys only when one is, or mirrors, the other: the
    /// number of bits that a key can have.
    fn key_bits(&self) -> Option<u32> {
        None
    }

    /// One line that [`Game::parse_position`] reads back.
    fn format_position(&self, position: &Self::Position) -> String;

    /// Reads what [`Game::format_position`] wrote.
    ///
    /// # Errors
    /// If the text is not a position of this game; says where and why.
    fn parse_position(&self, text: &str) -> Result<Self::Position, ParseError>;

    /// A move as people type it.
    fn format_move(&self, mv: Self::Move) -> String;

    /// Reads what [`Game::format_move`] wrote. The move need not be legal.
    ///
    /// # Errors
    /// If the text is no move of this game.
    fn parse_move(&self, text: &str) -> Result<Self::Move, ParseError>;

    /// The board drawn over several lines, with coordinates.
    fn draw(&self, position: &Self::Position) -> String;

    /// Shape of the network input.
    fn plane_shape(&self) -> PlaneShape;

    /// What the planes mean, one name a plane.
    fn plane_legend(&self) -> PlaneLegend;

    /// Appends the inputs that are 1 when `side` looks at the position.
    ///
    /// A network sees a position from the side to move. The other view exists
    /// because a child's input is its parent's, seen by the opponent, but for
    /// what the move changed: see [`Game::feature_changes`].
    fn features(&self, position: &Self::Position, side: Side, features: &mut Vec<Feature>);

    /// Sets `changes` to what `mv` switches in the features that `side` sees.
    ///
    /// The default plays the move and compares; a game whose moves touch few
    /// features overrides it, since training spends most of its time here.
    fn feature_changes(
        &self,
        position: &Self::Position,
        mv: Self::Move,
        side: Side,
        changes: &mut FeatureChanges,
    ) {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        self.features(position, side, &mut before);
        let mut child = position.clone();
        self.play_unchecked(&mut child, mv);
        self.features(&child, side, &mut after);
        changes.clear();
        changes
            .removed
            .extend(before.iter().filter(|f| !after.contains(f)));
        changes
            .added
            .extend(after.iter().filter(|f| !before.contains(f)));
    }

    /// The same position with the sides exchanged: the opponent's pieces become
    /// the mover's and the board is turned, so that the value for the side to
    /// move stays. `None` if the rules treat the sides differently.
    fn flipped(&self, position: &Self::Position) -> Option<Self::Position>;

    /// The left-right mirror image, if the rules do not tell left from right.
    fn mirrored(&self, position: &Self::Position) -> Option<Self::Position>;

    /// Where a feature goes under [`Game::mirrored`].
    ///
    /// # Panics
    /// May panic if the rules are not mirror-symmetric.
    fn mirrored_feature(&self, feature: Feature) -> Feature;
}

/// A [`Game::key`] for any game: a hash of 128 bits.
pub fn hash_key<G: Game + ?Sized>(game: &G, position: &G::Position) -> u128 {
    let half = |position: &G::Position, salt: u8| {
        let mut hasher = DefaultHasher::new();
        hasher.write_u8(salt);
        position.hash(&mut hasher);
        u128::from(hasher.finish())
    };
    let hash = |position: &G::Position| half(position, 0) << 64 | half(position, 1);
    let mirrored = game.mirrored(position).map(|image| hash(&image));
    mirrored.map_or(hash(position), |mirrored| mirrored.min(hash(position)))
}

/// Appends the position after each of `moves`, in order.
pub fn children<G: Game>(
    game: &G,
    position: &G::Position,
    moves: &[G::Move],
    children: &mut Vec<G::Position>,
) {
    children.extend(moves.iter().map(|&mv| {
        let mut child = position.clone();
        game.play_unchecked(&mut child, mv);
        child
    }));
}
