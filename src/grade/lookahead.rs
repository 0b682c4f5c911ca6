//! The best that one can do who looks a fixed number of plies ahead and knows nothing
//! else: a yardstick for agents, not an agent to play against.

use crate::agents::{Agent, Judgement};
use crate::game::{Game, Outcome, Value};
use crate::random::{Rng, RngExt};

/// Plays a win that it can force within its plies, otherwise any move that is not
/// refuted within them, each as likely as the others. What lies beyond it takes for
/// level.
#[derive(Debug, Clone, Copy)]
pub struct Lookahead {
    plies: u32,
}

impl Lookahead {
    /// Looks `plies` plies ahead, its own move included.
    ///
    /// # Panics
    /// If `plies` is 0.
    pub fn new(plies: u32) -> Lookahead {
        assert!(
            plies > 0,
            "whoever chooses a move looks at least one ply ahead"
        );
        Lookahead { plies }
    }
}

impl<G: Game> Agent<G> for Lookahead {
    fn name(&self) -> String {
        match self.plies {
            1 => "best of 1 ply".to_string(),
            plies => format!("best of {plies} plies"),
        }
    }

    fn new_game(&mut self) {}

    fn choose(&mut self, game: &G, position: &G::Position, rng: &mut Rng) -> G::Move {
        let moves = self.judge(game, position).moves;
        moves[rng.random_range(0..moves.len())]
    }

    fn judge(&mut self, game: &G, position: &G::Position) -> Judgement<G::Move> {
        let plies_after = self.plies - 1;
        let mut moves = Vec::new();
        game.legal_moves(position, &mut moves);
        let after = |mv: &G::Move| child(game, position, *mv);
        let wins = |mv: &&G::Move| is_lost(game, &after(mv), plies_after);
        let stands = |mv: &&G::Move| !forces_win(game, &after(mv), plies_after);
        let winning: Vec<G::Move> = moves.iter().filter(wins).copied().collect();
        if !winning.is_empty() {
            return judgement(Value::WIN, winning);
        }
        let standing: Vec<G::Move> = moves.iter().filter(stands).copied().collect();
        if !standing.is_empty() {
            return judgement(Value::DRAW, standing);
        }
        judgement(Value::LOSS, moves)
    }
}

fn judgement<M>(value: Value, moves: Vec<M>) -> Judgement<M> {
    Judgement {
        value: Some(value),
        moves,
    }
}

/// Whether the side to move has won, or can force a win within `plies` plies.
fn forces_win<G: Game>(game: &G, position: &G::Position, plies: u32) -> bool {
    if let Some(outcome) = game.outcome(position) {
        return outcome == Outcome::Win(game.side_to_move(position));
    }
    let mut moves = Vec::new();
    game.legal_moves(position, &mut moves);
    // One ply is looked at before more are: many wins are that near.
    let won_by = |plies| {
        let mut after = moves.iter().map(|&mv| child(game, position, mv));
        after.any(|child| is_lost(game, &child, plies))
    };
    plies > 0 && (won_by(0) || plies > 1 && won_by(plies - 1))
}

/// Whether the side to move has lost, or loses within `plies` plies whatever it does.
fn is_lost<G: Game>(game: &G, position: &G::Position, plies: u32) -> bool {
    if let Some(outcome) = game.outcome(position) {
        return outcome == Outcome::Win(game.side_to_move(position).other());
    }
    let mut moves = Vec::new();
    game.legal_moves(position, &mut moves);
    let mut after = moves.iter().map(|&mv| child(game, position, mv));
    plies > 0 && after.all(|child| forces_win(game, &child, plies - 1))
}

fn child<G: Game>(game: &G, position: &G::Position, mv: G::Move) -> G::Position {
    let mut child = position.clone();
    game.play_unchecked(&mut child, mv);
    child
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::playout::random_positions;
    use crate::games::{GAMES, GameVisitor};
    use crate::random::Seed;
    use crate::search::{Evaluator, minimax};
    use std::sync::Arc;

    /// Takes every position for level.
    struct Level;

    impl<G: Game> Evaluator<G> for Level {
        fn evaluate(&mut self, _: &G, positions: &[G::Position], values: &mut Vec<Value>) {
            values.clear();
            values.resize(positions.len(), Value::DRAW);
        }
    }

    struct EqualsMinimax;

    impl GameVisitor for EqualsMinimax {
        type Output = ();

        fn visit<G: Game>(self, game: Arc<G>) {
            let mut rng = Seed(1).stream("positions");
            let positions = random_positions(&*game, 6, &mut rng);
            for position in positions.iter().step_by(3) {
                for plies in 1..=3 {
                    let judged = Lookahead::new(plies).judge(&*game, position);
                    let found = minimax(&*game, position, plies, &mut Level, false);
                    assert_eq!(judged.value, Some(found.value), "{position:?}");
                    assert_eq!(judged.moves, found.best, "{position:?}");
                }
            }
        }
    }

    #[test]
    fn looking_ahead_is_minimax_that_knows_nothing_else() {
        for entry in GAMES {
            (entry.build)().visit(EqualsMinimax);
        }
    }
}
