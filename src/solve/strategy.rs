//! A winning strategy, move by move: from what the solver knows to a [`Certificate`].
//!
//! Walks from the winner's turn to its next, through every position that the loser can
//! bring about, and asks the solver for one winning move in each. What the solver
//! proved by [foresight](crate::game::Game::foresee) is spelled out in moves.

use super::certificate::{Certificate, Claim};
use super::{Exact, Limits, Solver};
use crate::game::{Game, Outcome, Side};
use crate::games::leaper::{Leaper, Move, Position};
use crate::hash::sha256_hex;

/// Why there is no certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StrategyError {
    /// A limit was hit before everything was known.
    #[error("stopped by a limit before the proof was complete: raise it")]
    Stopped,
    /// There is nothing to win.
    #[error("the position is a draw: only wins and losses can be proved by moves")]
    Draw,
}

/// The clock is looked at once in so many positions.
const CHECK_EVERY: usize = 1024;

/// Writes down who wins the position, and how. The limits are those of the whole.
///
/// # Errors
/// If the limits do not suffice, or the position is a draw.
pub fn certify(
    game: &Leaper,
    solver: &mut Solver<Leaper>,
    position: &Position,
    limits: &Limits,
) -> Result<Certificate, StrategyError> {
    solver.begin(limits);
    let value = match solver.value(position) {
        None => return Err(StrategyError::Stopped),
        Some(Exact::Draw) => return Err(StrategyError::Draw),
        Some(value) => value,
    };
    let claim = Claim {
        game: game.name().to_string(),
        rules_sha256: sha256_hex(game.rules_text().as_bytes()),
        rules: game.rules().source.clone(),
        start: game.format_position(position),
        value,
    };
    let mover = game.side_to_move(position);
    let mut walk = Walk {
        game,
        winner: match value {
            Exact::Win => mover,
            _ => mover.other(),
        },
        choices: Vec::new(),
        next: Vec::new(),
        moves: Vec::new(),
    };
    if value == Exact::Win {
        walk.note(*position);
    } else {
        walk.follow_replies(position);
    }
    while !walk.next.is_empty() {
        for (number, position) in walk.take_next().into_iter().enumerate() {
            if number.is_multiple_of(CHECK_EVERY) && solver.is_spent() {
                return Err(StrategyError::Stopped);
            }
            let mv = solver.find_win(&position);
            walk.choose(position, mv.ok_or(StrategyError::Stopped)?);
        }
    }
    Ok(Certificate {
        claim,
        choices: walk.choices,
    })
}

struct Walk<'a> {
    game: &'a Leaper,
    winner: Side,
    choices: Vec<u32>,
    /// The positions of the winner's next turn, as they were found.
    next: Vec<Position>,
    moves: Vec<Move>,
}

impl Walk<'_> {
    /// The positions of the next turn, each once, in the order of certificates.
    fn take_next(&mut self) -> Vec<Position> {
        let mut positions = std::mem::take(&mut self.next);
        positions.sort_by_cached_key(|position| self.game.letters(position));
        positions.dedup();
        positions
    }

    /// Notes a position of the winner's turn, unless there is nothing to choose there.
    fn note(&mut self, position: Position) {
        let won = Some(Outcome::Win(self.winner));
        let mut moves = Vec::new();
        self.game.legal_moves(&position, &mut moves);
        let wins = |&mv: &Move| {
            let mut child = position;
            self.game.play_unchecked(&mut child, mv);
            self.game.outcome(&child) == won
        };
        if !moves.is_empty() && !moves.iter().any(wins) {
            self.next.push(position);
        }
    }

    /// Writes down the winner's move.
    fn choose(&mut self, position: Position, mv: Move) {
        self.moves.clear();
        self.game.legal_moves(&position, &mut self.moves);
        let before = self.moves.iter().filter(|&&other| other < mv).count();
        self.choices.push(before as u32);
        let mut child = position;
        self.game.play_unchecked(&mut child, mv);
        self.follow_replies(&child);
    }

    /// Notes the positions after every move of the loser.
    fn follow_replies(&mut self, position: &Position) {
        self.moves.clear();
        self.game.legal_moves(position, &mut self.moves);
        for index in 0..self.moves.len() {
            let mut child = *position;
            self.game.play_unchecked(&mut child, self.moves[index]);
            self.note(child);
        }
    }
}
