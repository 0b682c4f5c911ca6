//! An explicit game tree: what textbooks draw to explain minimax and alpha-beta.
//!
//! Every node has the same number of branches and every leaf the same depth. A leaf
//! holds what the first player receives. Whoever is to move there takes note of it,
//! which ends the game: so a search that reaches down to the leaves, and no further,
//! judges them by [`Game::material`].

use crate::game::{Feature, Game, Outcome, ParseError, PlaneShape, Side};

/// The most branches of a node.
pub const MAX_BRANCHING: usize = 1000;

/// The largest leaf, and, negative, the smallest: up to here searches are exact.
pub const MAX_LEAF: i32 = 1 << f32::MANTISSA_DIGITS;

/// The game played on one tree.
#[derive(Debug, Clone)]
pub struct Tree {
    branching: usize,
    /// Plies from the root to the leaves.
    height: usize,
    /// From left to right.
    leaves: Vec<i32>,
}

/// A node of the tree, or the end behind a leaf.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Position {
    /// Branches taken from the root, each counted from 0.
    path: Vec<usize>,
    /// Whether the leaf has been taken.
    is_over: bool,
}

/// A branch, counted from 0 on the left. A leaf has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Branch(pub usize);

/// Why there is no such tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// The number of branches makes no tree, or too wide a one.
    #[error("a node cannot have {0} branches: accepted are 2 to {MAX_BRANCHING}")]
    Branching(usize),
    /// The leaves leave a gap.
    #[error(
        "{leaves} {} no tree with {branching} branches a node: {fitting} leaves would",
        if *.leaves == 1 { "leaf fills" } else { "leaves fill" }
    )]
    Leaves {
        /// How many there are.
        leaves: usize,
        /// Branches a node.
        branching: usize,
        /// The nearest numbers that would do.
        fitting: String,
    },
    /// A leaf is too large to be told from its neighbours.
    #[error("the leaf {0} is out of range: accepted are -{MAX_LEAF} to {MAX_LEAF}")]
    Leaf(i32),
}

impl Tree {
    /// The tree with these leaves, from left to right.
    ///
    /// # Errors
    /// If the number of leaves is not a power (at least the first) of the number of
    /// branches, or a number is out of range.
    pub fn new(branching: usize, leaves: Vec<i32>) -> Result<Tree, TreeError> {
        if !(2..=MAX_BRANCHING).contains(&branching) {
            return Err(TreeError::Branching(branching));
        }
        let accepted = -MAX_LEAF..=MAX_LEAF;
        if let Some(&leaf) = leaves.iter().find(|leaf| !accepted.contains(leaf)) {
            return Err(TreeError::Leaf(leaf));
        }
        let (mut height, mut fitting) = (1, branching);
        while fitting < leaves.len() {
            height += 1;
            fitting *= branching;
        }
        if fitting != leaves.len() {
            let below = fitting / branching;
            let fitting = match below {
                1 => fitting.to_string(),
                _ => format!("{below} or {fitting}"),
            };
            return Err(TreeError::Leaves {
                leaves: leaves.len(),
                branching,
                fitting,
            });
        }
        Ok(Tree {
            branching,
            height,
            leaves,
        })
    }

    /// Plies from the root to the leaves.
    pub fn height(&self) -> usize {
        self.height
    }

    fn is_leaf(&self, position: &Position) -> bool {
        position.path.len() == self.height
    }

    /// What the leaves below a node hold; at a leaf, that one.
    fn leaves_below(&self, position: &Position) -> &[i32] {
        let index = position
            .path
            .iter()
            .fold(0, |index, branch| index * self.branching + branch);
        let count = self
            .branching
            .pow((self.height - position.path.len()) as u32);
        &self.leaves[index * count..][..count]
    }
}

impl Game for Tree {
    type Position = Position;
    type Move = Branch;

    fn name(&self) -> &str {
        "tree"
    }

    fn title(&self) -> &str {
        "Explicit game tree"
    }

    fn rules_text(&self) -> String {
        format!("tree with {} branches: {:?}", self.branching, self.leaves)
    }

    fn start(&self) -> Position {
        Position {
            path: Vec::new(),
            is_over: false,
        }
    }

    fn side_to_move(&self, position: &Position) -> Side {
        Side::ALL[(position.path.len() + usize::from(position.is_over)) % 2]
    }

    fn legal_moves(&self, position: &Position, moves: &mut Vec<Branch>) {
        let branches = match (position.is_over, self.is_leaf(position)) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => self.branching,
        };
        moves.extend((0..branches).map(Branch));
    }

    fn play_unchecked(&self, position: &mut Position, mv: Branch) {
        if self.is_leaf(position) {
            position.is_over = true;
        } else {
            position.path.push(mv.0);
        }
    }

    /// Who receives something wins.
    fn outcome(&self, position: &Position) -> Option<Outcome> {
        position
            .is_over
            .then(|| match self.leaves_below(position)[0].signum() {
                1 => Outcome::Win(Side::First),
                -1 => Outcome::Win(Side::Second),
                _ => Outcome::Draw,
            })
    }

    fn ending(&self, _position: &Position) -> &'static str {
        "leaf"
    }

    /// What the side to move receives at a leaf; 0 elsewhere.
    fn material(&self, position: &Position) -> i32 {
        if !self.is_leaf(position) {
            return 0;
        }
        let received = self.leaves_below(position)[0];
        match self.side_to_move(position) {
            Side::First => received,
            Side::Second => -received,
        }
    }

    fn max_plies(&self) -> usize {
        self.height + 1
    }

    fn why_endless(&self) -> Option<String> {
        None
    }

    /// The branches taken, counted from 1, such as `root/1/2`; ` over` follows if
    /// the leaf was taken.
    fn format_position(&self, position: &Position) -> String {
        let mut text = "root".to_string();
        for branch in &position.path {
            text += &format!("/{}", branch + 1);
        }
        if position.is_over {
            text += " over";
        }
        text
    }

    fn parse_position(&self, text: &str) -> Result<Position, ParseError> {
        let (path, is_over) = match text.strip_suffix(" over") {
            Some(path) => (path, true),
            None => (text, false),
        };
        let wrong = || {
            ParseError(format!(
                "a position is the way from the root, such as root/1/2, at most {} long, and \
                 \" over\" behind a leaf that was taken; {text:?} is not",
                self.height
            ))
        };
        let mut steps = path.split('/');
        if steps.next() != Some("root") {
            return Err(wrong());
        }
        let path = steps
            .map(|step| Ok(self.parse_move(step)?.0))
            .collect::<Result<Vec<_>, ParseError>>()?;
        let position = Position { path, is_over };
        if position.path.len() > self.height || is_over && !self.is_leaf(&position) {
            return Err(wrong());
        }
        Ok(position)
    }

    /// The number of the branch, counted from 1.
    fn format_move(&self, mv: Branch) -> String {
        (mv.0 + 1).to_string()
    }

    fn parse_move(&self, text: &str) -> Result<Branch, ParseError> {
        match text.parse() {
            Ok(number) if (1..=self.branching).contains(&number) => Ok(Branch(number - 1)),
            _ => Err(ParseError(format!(
                "a move is the number of a branch, 1 to {}; {text:?} is not",
                self.branching
            ))),
        }
    }

    /// The leaves that can still be reached.
    fn draw(&self, position: &Position) -> String {
        let leaves = self.leaves_below(position).iter().map(i32::to_string);
        leaves.collect::<Vec<_>>().join(" ") + "\n"
    }

    /// One row a ply, one column a branch; a last row for a leaf that was taken.
    fn plane_shape(&self) -> PlaneShape {
        PlaneShape {
            planes: 1,
            rows: self.height + 1,
            columns: self.branching,
        }
    }

    fn features(&self, position: &Position, _side: Side, features: &mut Vec<Feature>) {
        let steps = position.path.iter().enumerate();
        features.extend(steps.map(|(ply, branch)| (ply * self.branching + branch) as Feature));
        if position.is_over {
            features.push((self.height * self.branching) as Feature);
        }
    }

    /// A leaf is worth something to one side, not to whoever stands there.
    fn flipped(&self, _position: &Position) -> Option<Position> {
        None
    }

    fn mirrored(&self, _position: &Position) -> Option<Position> {
        None
    }

    /// # Panics
    /// Always: a tree has no mirror image.
    fn mirrored_feature(&self, _feature: Feature) -> Feature {
        unreachable!("a tree tells left from right")
    }
}
