//! Evaluation by a [`Stack`].
//!
//! A move changes two or three squares of the input, and so what a layer says of
//! the squares around them, one square further with each layer. The children of a
//! position therefore copy its signals, and compute only the squares that changed.
//! Since the kernels compute each number on its own, the values are the same to the
//! last bit as those of the children taken by themselves.

use std::sync::Arc;

use pulp::Arch;

use super::products::Row;
use super::{Board, POSITIONS, Parts, Signals, Stack, plane_and_square};
use crate::game::{Feature, FeatureChanges, Game, Value, children};
use crate::nets::block::sigmoid;
use crate::nets::value_of;
use crate::search::Evaluator;

/// Evaluates a convolutional network on the CPU; equal to the burn module within
/// rounding.
#[derive(Debug, Clone)]
pub struct StackEvaluator {
    stack: Arc<Stack>,
    arch: Arch,
    memory: Memory,
}

/// Memory that is used again for each position.
#[derive(Debug, Clone)]
struct Memory {
    features: Vec<Feature>,
    changes: FeatureChanges,
    signals: Signals,
    parent: Signals,
    /// For each child, which squares of the last signal differ from the parent's;
    /// as long as a signal of one position.
    changed: Vec<Vec<bool>>,
    rows: Vec<Row>,
}

impl StackEvaluator {
    /// Copies the weights of a network.
    pub(in crate::nets) fn new(parts: &Parts) -> StackEvaluator {
        let stack = Stack::new(parts);
        StackEvaluator {
            arch: Arch::new(),
            memory: Memory {
                features: Vec::new(),
                changes: FeatureChanges::default(),
                signals: stack.signals(),
                parent: stack.signals(),
                changed: vec![vec![false; stack.board.length(1)]; POSITIONS],
                rows: Vec::new(),
            },
            stack: Arc::new(stack),
        }
    }

    /// The first layer, for `positions`, each seen by its side to move.
    fn enter<G: Game>(&mut self, game: &G, positions: &[G::Position]) {
        let Memory {
            features, signals, ..
        } = &mut self.memory;
        for (place, position) in positions.iter().enumerate() {
            features.clear();
            game.features(position, game.side_to_move(position), features);
            self.stack.enter(self.arch, features, place, signals);
        }
    }

    /// The convolutions after the first, for children of the position in
    /// `memory.parent` whose changes of the input are marked in `memory.changed`.
    fn convolve_changes(&mut self, children: usize) {
        let Memory {
            signals,
            parent,
            changed,
            rows,
            ..
        } = &mut self.memory;
        let Stack { board, layers, .. } = &*self.stack;
        let squares = board.squares.len();
        let changed = &mut changed[..children];
        changed.iter_mut().for_each(|changed| board.spread(changed));
        let stride = board.plane * self.stack.blocks;
        for index in self.stack.convolutions() {
            rows.clear();
            for (child, changed) in changed.iter_mut().enumerate() {
                board.spread(changed);
                let own = &mut signals[index + 1][child * stride..(child + 1) * stride];
                own.copy_from_slice(&parent[index + 1][..stride]);
                let own_rows = &layers[index].rows[child * squares..(child + 1) * squares];
                let pairs = board.squares.iter().zip(own_rows);
                rows.extend(pairs.filter_map(|(&square, row)| changed[square].then_some(row)));
            }
            self.stack.apply(self.arch, index, rows, signals);
        }
    }

    fn hand_out(&self, positions: usize, values: &mut Vec<Value>) {
        let logits = self.stack.logits(&self.memory.signals).take(positions);
        values.extend(logits.map(|logit| value_of(2.0 * sigmoid(logit) - 1.0)));
    }
}

impl Board {
    /// Marks the neighbours of marked squares.
    fn spread(&self, marked: &mut [bool]) {
        let before = marked.to_owned();
        for &square in &self.squares {
            let corner = self.corner(square);
            marked[square] = self
                .neighbours()
                .any(|neighbour| before[corner + neighbour]);
        }
    }
}

impl<G: Game> Evaluator<G> for StackEvaluator {
    fn evaluate(&mut self, game: &G, positions: &[G::Position], values: &mut Vec<Value>) {
        values.clear();
        for chunk in positions.chunks(POSITIONS) {
            self.enter(game, chunk);
            let signals = &mut self.memory.signals;
            for layers in [self.stack.convolutions(), self.stack.dense()] {
                self.stack.forward(self.arch, layers, chunk.len(), signals);
            }
            self.hand_out(chunk.len(), values);
        }
    }

    fn evaluate_children(
        &mut self,
        game: &G,
        parent: &G::Position,
        moves: &[G::Move],
        values: &mut Vec<Value>,
    ) {
        values.clear();
        let opponent = game.side_to_move(parent).other();
        let Memory {
            features,
            parent: signals,
            ..
        } = &mut self.memory;
        features.clear();
        game.features(parent, opponent, features);
        self.stack.enter(self.arch, features, 0, signals);
        let convolutions = self.stack.convolutions();
        self.stack.forward(self.arch, convolutions, 1, signals);

        let mut positions = Vec::new();
        for moves in moves.chunks(POSITIONS) {
            positions.clear();
            children(game, parent, moves, &mut positions);
            self.enter(game, &positions);
            let Memory {
                changes, changed, ..
            } = &mut self.memory;
            let board = &self.stack.board;
            for (&mv, changed) in moves.iter().zip(changed) {
                game.feature_changes(parent, mv, opponent, changes);
                changed.fill(false);
                for &feature in changes.removed.iter().chain(&changes.added) {
                    changed[board.squares[plane_and_square(feature, board).1]] = true;
                }
            }
            self.convolve_changes(moves.len());
            let signals = &mut self.memory.signals;
            let dense = self.stack.dense();
            self.stack.forward(self.arch, dense, moves.len(), signals);
            self.hand_out(moves.len(), values);
        }
    }
}
