//! Positions as numbers: the board read as a number with one digit a square.
//!
//! Like a Zobrist hash, the number is a sum of one term a piece, but no two positions
//! share it. March on 6x6 needs 85 bits.

use super::{MAX_KINDS, MAX_SQUARES, Position, Rules, bits};
use crate::game::Side;

/// The terms of the sum.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    kinds: usize,
    /// `[side][kind][square]`: of a piece there, and of the same piece in a mirror (or
    /// once more there, if the rules tell left from right).
    terms: Box<[[[[u128; 2]; MAX_SQUARES]; MAX_KINDS]; 2]>,
    /// Of the second player's turn.
    second_to_move: u128,
    bits: u32,
}

impl Keys {
    /// `None` if a number would not fit into 128 bits, or if positions count plies.
    pub(super) fn of(rules: &Rules) -> Option<Keys> {
        let squares = rules.width * rules.height;
        let digits = 1 + 2 * rules.kinds.len() as u128;
        let second_to_move = digits.checked_pow(squares as u32)?;
        let largest = second_to_move.checked_mul(2)? - 1;
        if rules.max_plies.is_some() {
            return None;
        }
        let mut terms = Box::new([[[[0; 2]; MAX_SQUARES]; MAX_KINDS]; 2]);
        for side in Side::ALL {
            for kind in 0..rules.kinds.len() {
                let digit = (1 + side.index() * rules.kinds.len() + kind) as u128;
                for square in 0..squares {
                    let file = square % rules.width;
                    let image = match rules.is_mirror_symmetric() {
                        true => square - file + rules.width - 1 - file,
                        false => square,
                    };
                    let term = |square: usize| digit * digits.pow(square as u32);
                    terms[side.index()][kind][square] = [term(square), term(image)];
                }
            }
        }
        Some(Keys {
            kinds: rules.kinds.len(),
            terms,
            second_to_move,
            bits: u128::BITS - largest.leading_zeros(),
        })
    }

    /// See [`Game::key`](crate::game::Game::key).
    pub(super) fn key(&self, position: &Position) -> u128 {
        let (mut key, mut mirrored) = (0, 0);
        for side in Side::ALL {
            for kind in 0..self.kinds {
                for square in bits(position.pieces(side, kind)) {
                    let [term, image] = self.terms[side.index()][kind][square];
                    key += term;
                    mirrored += image;
                }
            }
        }
        let turn = match position.to_move {
            Side::First => 0,
            Side::Second => self.second_to_move,
        };
        key.min(mirrored) + turn
    }

    /// The number of bits of the largest key.
    pub(super) fn bits(&self) -> u32 {
        self.bits
    }
}
