//! What the network should have said.
//!
//! With g(x) the positions after one move and f~ the network's judgement
//! corrected by the rules where the game is decided ([`corrected`]), learning
//! moves f(x) toward the maximum of -f~(y) over y in g(x). No outcome of a game
//! and no later position enters, so exploring moves do no harm.
//!
//! Source: Ota, "ISer Advent Calendar 2020, day 23", section on reinforcement learning.
//!
//! [`corrected`]: crate::search::corrected

use crate::game::Value;

/// The target of a position whose children have the `corrected` values, each for
/// its own side to move.
///
/// # Panics
/// If there are no children: a finished position has no target.
pub fn negamax(corrected: &[Value]) -> Value {
    let best = corrected
        .iter()
        .map(|&v| -v)
        .reduce(|best, value| if value > best { value } else { best });
    best.expect("a position that is not over has children")
}
