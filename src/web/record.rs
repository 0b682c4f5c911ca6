//! A game as it is played: its positions and moves, the opponent, and a network's
//! opinion of them. The type of the game is erased here; all else in this folder
//! speaks of moves by their text.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::agents::{AgentSpec, NetworkAgent, PreparedAgent};
use crate::game::{Game, Outcome, Side, Value};
use crate::games::{BoardGame, Piece};
use crate::nets::NetEvaluator;
use crate::nets::device::Compute;
use crate::random::{Rng, RngExt, Seed, secret};
use crate::search::Evaluator;

/// Who plays against the person: an agent, with its network if it has one.
#[derive(Debug, Clone)]
pub struct Player {
    /// What it is.
    pub spec: AgentSpec,
    /// Loaded already; models have one.
    pub net: Option<NetEvaluator>,
}

/// A position, for the page.
#[derive(Debug, Clone, Serialize)]
pub struct PositionView {
    /// As [`Game::format_position`] writes it.
    pub text: String,
    /// A character a square, from the bottom left, rank by rank: `.` or the letter of
    /// a piece, upper case for the first player's.
    pub squares: String,
    /// What the network thinks of it, or the result if the game is over: from -1, the
    /// second player wins, to 1, the first does.
    pub value: Option<f32>,
}

/// A move, for the page.
#[derive(Debug, Clone, Serialize)]
pub struct MoveView {
    /// As [`Game::format_move`] writes it.
    #[serde(rename = "move")]
    pub text: String,
    /// The square left, if there is one.
    pub from: Option<usize>,
    /// The square entered.
    pub to: usize,
    /// Whether a piece is taken.
    pub capture: bool,
}

/// A legal move with its value.
#[derive(Debug, Clone, Serialize)]
pub struct MoveValue {
    /// The move.
    #[serde(flatten)]
    pub mv: MoveView,
    /// From -1 to 1, for the one who makes the move.
    pub value: f32,
}

/// All of a game, for the page.
#[derive(Debug, Clone, Serialize)]
pub struct RecordView {
    /// From the first to the one at hand.
    pub positions: Vec<PositionView>,
    /// One fewer.
    pub moves: Vec<MoveView>,
    /// In the position at hand.
    pub legal: Vec<MoveView>,
}

/// Finds a move within the given time.
pub type Thinker = Box<dyn FnOnce(Duration) -> String + Send>;

/// A game in play, whatever its type.
pub trait Record: Send {
    /// Whose turn it was after `ply` plies.
    fn side_to_move(&self, ply: usize) -> Side;

    /// Number of moves played.
    fn plies(&self) -> usize;

    /// Plays a move.
    ///
    /// # Errors
    /// If it is no legal move; says which are.
    fn play(&mut self, text: &str) -> Result<(), String>;

    /// Takes back all moves after the first `plies`.
    fn take_back_to(&mut self, plies: usize);

    /// The result by the rules and its cause, if the game is over.
    fn ending(&self) -> Option<(Outcome, &'static str)>;

    /// The opponent, ready to think about the position at hand.
    fn thinker(&mut self) -> Thinker;

    /// Everything.
    fn view(&mut self) -> RecordView;

    /// The legal moves after `ply` plies with their values, best first; none if the
    /// game is over there, or no network judges.
    fn move_values(&self, ply: usize) -> Vec<MoveValue>;
}

/// Starts a game.
pub(super) struct Opening<G: BoardGame> {
    pub(super) game: Arc<G>,
    pub(super) position: G::Position,
    pub(super) opponent: Player,
    /// The network whose opinion is shown.
    pub(super) judge: Option<NetEvaluator>,
}

impl<G: BoardGame> Opening<G> {
    pub(super) fn record(self) -> Box<dyn Record> {
        Box::new(TypedRecord {
            game: self.game,
            opponent: self.opponent,
            judge: self.judge,
            positions: vec![self.position],
            moves: Vec::new(),
            opinions: Vec::new(),
            // A person wants another game each time.
            rng: Seed(secret() as u64).stream("replies"),
        })
    }
}

struct TypedRecord<G: BoardGame> {
    game: Arc<G>,
    opponent: Player,
    judge: Option<NetEvaluator>,
    /// One more than `moves`.
    positions: Vec<G::Position>,
    moves: Vec<G::Move>,
    /// Of the positions that have been judged, from the first.
    opinions: Vec<Option<Value>>,
    rng: Rng,
}

impl<G: BoardGame> Record for TypedRecord<G> {
    fn side_to_move(&self, ply: usize) -> Side {
        self.game.side_to_move(&self.positions[ply])
    }

    fn plies(&self) -> usize {
        self.moves.len()
    }

    fn play(&mut self, text: &str) -> Result<(), String> {
        let mv = self
            .game
            .parse_move(text)
            .map_err(|error| error.to_string())?;
        let mut position = self.position().clone();
        let played = self.game.play(&mut position, mv);
        played.map_err(|error| error.to_string())?;
        self.positions.push(position);
        self.moves.push(mv);
        Ok(())
    }

    fn take_back_to(&mut self, plies: usize) {
        self.moves.truncate(plies);
        self.positions.truncate(plies + 1);
        self.opinions.truncate(plies + 1);
    }

    fn ending(&self) -> Option<(Outcome, &'static str)> {
        let outcome = self.game.outcome(self.position())?;
        Some((outcome, self.game.ending(self.position())))
    }

    fn thinker(&mut self) -> Thinker {
        let (game, position) = (self.game.clone(), self.position().clone());
        let opponent = self.opponent.clone();
        let mut rng = Seed(self.rng.random()).stream("reply");
        Box::new(move |time| {
            let mv = prepare(&opponent, &*game)
                .agent_within(time)
                .choose(&game, &position, &mut rng);
            game.format_move(mv)
        })
    }

    fn view(&mut self) -> RecordView {
        self.judge_new_positions();
        let positions = self.positions.iter().zip(&self.opinions);
        let moves = self.positions.iter().zip(&self.moves);
        RecordView {
            positions: positions
                .map(|(position, opinion)| self.position_view(position, *opinion))
                .collect(),
            moves: moves
                .map(|(position, &mv)| self.move_view(position, mv))
                .collect(),
            legal: self
                .legal_moves(self.position())
                .into_iter()
                .map(|mv| self.move_view(self.position(), mv))
                .collect(),
        }
    }

    fn move_values(&self, ply: usize) -> Vec<MoveValue> {
        let position = &self.positions[ply];
        let Some(net) = &self.judge else {
            return Vec::new();
        };
        if self.game.outcome(position).is_some() {
            return Vec::new();
        }
        let mut judge = NetworkAgent::new("judge", net.clone());
        let mut values = judge.move_values(&*self.game, position);
        values.sort_by(|a, b| b.1.get().total_cmp(&a.1.get()));
        let view = |(mv, value): (G::Move, Value)| MoveValue {
            mv: self.move_view(position, mv),
            value: value.get(),
        };
        values.into_iter().map(view).collect()
    }
}

impl<G: BoardGame> TypedRecord<G> {
    fn position(&self) -> &G::Position {
        self.positions.last().expect("the first one stays")
    }

    fn legal_moves(&self, position: &G::Position) -> Vec<G::Move> {
        let mut moves = Vec::new();
        self.game.legal_moves(position, &mut moves);
        moves
    }

    fn judge_new_positions(&mut self) {
        for position in &self.positions[self.opinions.len()..] {
            let side = self.game.side_to_move(position);
            let result = self.game.outcome(position);
            let opinion = match (result, &mut self.judge) {
                (Some(outcome), _) => Some(outcome.value_for(side)),
                (None, Some(net)) => Some(judge_one(net, &*self.game, position)),
                (None, None) => None,
            };
            self.opinions.push(opinion);
        }
    }

    fn position_view(&self, position: &G::Position, opinion: Option<Value>) -> PositionView {
        let for_first = |value: Value| match self.game.side_to_move(position) {
            Side::First => value.get(),
            Side::Second => (-value).get(),
        };
        PositionView {
            text: self.game.format_position(position),
            squares: squares(&*self.game, position),
            value: opinion.map(for_first),
        }
    }

    fn move_view(&self, position: &G::Position, mv: G::Move) -> MoveView {
        let squares = self.game.move_squares(position, mv);
        MoveView {
            text: self.game.format_move(mv),
            from: squares.from,
            to: squares.to,
            capture: self.game.piece_on(position, squares.to).is_some(),
        }
    }
}

/// See [`PositionView::squares`].
pub(super) fn squares<G: BoardGame>(game: &G, position: &G::Position) -> String {
    let (files, ranks) = game.board_size();
    let kinds = game.piece_kinds();
    let letter = |square| match game.piece_on(position, square) {
        None => '.',
        Some(Piece { side, kind }) => match side {
            Side::First => kinds[kind].letter.to_ascii_uppercase(),
            Side::Second => kinds[kind].letter,
        },
    };
    (0..files * ranks).map(letter).collect()
}

fn judge_one<G: Game>(net: &mut NetEvaluator, game: &G, position: &G::Position) -> Value {
    let mut values = Vec::new();
    net.evaluate(game, std::slice::from_ref(position), &mut values);
    values[0]
}

fn prepare<'a, G: Game>(player: &Player, game: &'a G) -> PreparedAgent<'a, G> {
    match &player.net {
        Some(net) => player.spec.with_net(game, net.clone()),
        None => player
            .spec
            .prepare(game, &Compute::cpu())
            .expect("a player that needs a network has one"),
    }
}
