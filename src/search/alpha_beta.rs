//! Alpha-beta: minimax that skips what cannot matter.
//!
//! Alpha is what the side to move is sure of, beta what the opponent is sure to hold
//! it to; when alpha reaches beta the rest of the moves need no look. Written
//! fail-soft: a score outside of the window is still a bound on the exact one.
//!
//! Source: D. Knuth, R. Moore, "An analysis of alpha-beta pruning" (1975); fail-soft:
//! J. Fishburn, "Another optimization of alpha-beta search" (1983); iterative
//! deepening: D. Slate, L. Atkin, "Chess 4.5" (1977).

use std::cmp::Reverse;
use std::ops::Neg;
use std::slice;
use std::time::{Duration, Instant};

use super::history::History;
use super::score::Score;
use super::table::Table;
use super::{Evaluator, Found};
use crate::game::{Game, Value};

/// How to search. No choice changes the value that is found, except
/// [`Options::prefer_sooner_wins`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Try promising moves first: the best one of an earlier search, captures, then
    /// moves that refuted other positions. Otherwise in the order of the rules.
    pub ordering: bool,
    /// Remember positions, and search 1, 2, 3, ... plies deep, each search ordered
    /// by what the one before remembered.
    pub table: bool,
    /// Find every best move. Otherwise [`Found::best`] has one only, which is a
    /// little faster: moves that are no better need no exact score.
    pub all_best: bool,
    /// A win sooner counts more than a win later, a loss sooner less. Otherwise all
    /// wins count alike, and all losses.
    pub prefer_sooner_wins: bool,
}

impl Options {
    /// What agents search with.
    pub const AGENT: Options = Options {
        ordering: true,
        table: true,
        all_best: true,
        prefer_sooner_wins: true,
    };
}

/// When to stop. A search of one ply is always completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Plies to look ahead, at least 1.
    pub depth: u32,
    /// Positions to visit.
    pub nodes: Option<u64>,
    /// Time to take. What is found then depends on the machine.
    pub time: Option<Duration>,
}

impl Limits {
    /// A fixed depth, whatever it takes.
    pub fn depth(depth: u32) -> Limits {
        Limits {
            depth,
            nodes: None,
            time: None,
        }
    }

    fn is_depth_only(self) -> bool {
        self.nodes.is_none() && self.time.is_none()
    }
}

/// What a search may still use up.
#[derive(Debug, Clone, Copy)]
struct Budget {
    nodes: u64,
    deadline: Option<Instant>,
}

impl Budget {
    const UNLIMITED: Budget = Budget {
        nodes: u64::MAX,
        deadline: None,
    };

    fn is_spent(self, nodes: u64) -> bool {
        nodes >= self.nodes || self.deadline.is_some_and(|end| Instant::now() >= end)
    }
}

/// An alpha-beta searcher. It keeps its table from search to search, until
/// [`AlphaBeta::forget`].
#[derive(Debug, Clone)]
pub struct AlphaBeta<G: Game, E> {
    evaluator: E,
    options: Options,
    table: Table<G::Position, G::Move>,
    history: History,
    budget: Budget,
    nodes: u64,
    /// Lists of moves that are not in use: their memory serves again.
    spare_lists: Vec<Vec<G::Move>>,
    keyed: Vec<(Reverse<u64>, G::Move)>,
    values: Vec<Value>,
    scores: Vec<Score>,
}

impl<G: Game, E: Evaluator<G>> AlphaBeta<G, E> {
    /// A searcher that judges by `evaluator`.
    pub fn new(evaluator: E, options: Options) -> AlphaBeta<G, E> {
        AlphaBeta {
            evaluator,
            options,
            table: Table::new(),
            history: History::default(),
            budget: Budget::UNLIMITED,
            nodes: 0,
            spare_lists: Vec::new(),
            keyed: Vec::new(),
            values: Vec::new(),
            scores: Vec::new(),
        }
    }

    /// Forgets what earlier searches found out.
    pub fn forget(&mut self) {
        self.table.clear();
    }

    /// Searches to the given depth, or until a limit is reached or the game is seen
    /// to be decided. What limits interrupt is thrown away: the result is that of
    /// the greatest depth that was completed.
    ///
    /// # Panics
    /// If the game is over, or the depth is 0.
    pub fn search(&mut self, game: &G, position: &G::Position, limits: Limits) -> Found<G::Move> {
        assert!(limits.depth > 0, "a search looks at least one ply ahead");
        let deadline = limits.time.map(|time| Instant::now() + time);
        self.nodes = 0;
        self.history.clear();
        let deepens = self.options.table || !limits.is_depth_only();
        let first_depth = if deepens { 1 } else { limits.depth };
        let mut found = self.search_unlimited(game, position, first_depth);
        self.budget = Budget {
            nodes: limits.nodes.unwrap_or(u64::MAX),
            deadline,
        };
        while found.depth < limits.depth && !self.is_settled(&found) {
            match self.root(game, position, found.depth + 1) {
                Some(deeper) => found = deeper,
                None => break,
            }
        }
        found.nodes = self.nodes;
        found
    }

    /// The line of best play of `depth` plies, shorter if the game ends before.
    /// After a search to that depth with a table it costs next to nothing.
    ///
    /// # Panics
    /// If the game is over.
    pub fn line(&mut self, game: &G, position: &G::Position, depth: u32) -> Vec<G::Move> {
        self.history.clear();
        let mut position = position.clone();
        let mut line = Vec::new();
        for depth in (1..=depth).rev() {
            let mv = self.search_unlimited(game, &position, depth).best[0];
            line.push(mv);
            game.play_unchecked(&mut position, mv);
            if game.outcome(&position).is_some() {
                break;
            }
        }
        line
    }

    fn search_unlimited(&mut self, game: &G, position: &G::Position, depth: u32) -> Found<G::Move> {
        self.budget = Budget::UNLIMITED;
        let found = self.root(game, position, depth);
        found.expect("a search without limits is not stopped")
    }

    /// Whether a deeper search would find the same: the shortest win is known, or
    /// the longest resistance.
    fn is_settled(&self, found: &Found<G::Move>) -> bool {
        self.options.prefer_sooner_wins && found.decided_in_plies.is_some()
    }

    /// Searches to one depth. `None`, here and below: a limit was reached.
    fn root(&mut self, game: &G, position: &G::Position, depth: u32) -> Option<Found<G::Move>> {
        self.nodes += 1;
        let mut moves = Vec::new();
        game.legal_moves(position, &mut moves);
        let in_order = moves.clone();
        if depth > 1 {
            self.order(game, position, &mut moves);
        }
        let (score, mut best) = self.best_moves(game, position, &moves, depth)?;
        self.remember(position, depth, [Score::WORST, Score::BEST], score, best[0]);
        best.sort_by_key(|best| in_order.iter().position(|mv| mv == best));
        Some(score.found(best, depth, self.nodes))
    }

    /// The best score of the moves, and the moves that reach it.
    fn best_moves(
        &mut self,
        game: &G,
        position: &G::Position,
        moves: &[G::Move],
        depth: u32,
    ) -> Option<(Score, Vec<G::Move>)> {
        let at_frontier = self.is_frontier(depth);
        if at_frontier {
            self.judge_children(game, position, moves, Score::BEST);
        }
        let mut best = Score::WORST;
        let mut best_moves = Vec::new();
        for (index, &mv) in moves.iter().enumerate() {
            let score = if at_frontier {
                self.scores[index]
            } else {
                // With the lower end just below the best, equal scores come out exactly.
                let ties = self.options.all_best;
                let alpha = if ties { best.just_below() } else { best };
                self.score_move(game, position, mv, depth, [alpha, Score::BEST])?
            };
            if score > best {
                best = score;
                best_moves.clear();
                best_moves.push(mv);
            } else if score == best && self.options.all_best {
                best_moves.push(mv);
            }
        }
        assert!(!best_moves.is_empty(), "the game is not over");
        Some((best, best_moves))
    }

    /// The score of a move for the one who makes it.
    fn score_move(
        &mut self,
        game: &G,
        position: &G::Position,
        mv: G::Move,
        depth: u32,
        [alpha, beta]: [Score; 2],
    ) -> Option<Score> {
        let mut child = position.clone();
        game.play_unchecked(&mut child, mv);
        let score = self.negamax(game, &child, depth - 1, [-beta, -alpha])?;
        Some(-score)
    }

    /// The score of a position, exact if it lies between alpha and beta, otherwise a
    /// bound on that side.
    fn negamax(
        &mut self,
        game: &G,
        position: &G::Position,
        depth: u32,
        window: [Score; 2],
    ) -> Option<Score> {
        self.nodes += 1;
        if depth == 0 {
            return Some(self.leaf(game, position));
        }
        if self.budget.is_spent(self.nodes) {
            return None;
        }
        let known = self.table.get(position);
        if let Some(score) = known.and_then(|entry| entry.answer(depth, window)) {
            return Some(score);
        }
        let mut moves = self.spare_lists.pop().unwrap_or_default();
        game.legal_moves(position, &mut moves);
        let score = if moves.is_empty() {
            self.finished(game, position, depth)
        } else {
            self.expand(game, position, &mut moves, depth, window)
        };
        moves.clear();
        self.spare_lists.push(moves);
        score
    }

    /// [`AlphaBeta::negamax`] of a position with these legal moves.
    fn expand(
        &mut self,
        game: &G,
        position: &G::Position,
        moves: &mut [G::Move],
        depth: u32,
        window: [Score; 2],
    ) -> Option<Score> {
        let (score, mv) = if self.is_frontier(depth) {
            self.judge_children(game, position, moves, window[1]);
            self.best_judged(moves)
        } else {
            self.order(game, position, moves);
            self.best_until_refuted(game, position, moves, depth, window)?
        };
        self.remember(position, depth, window, score, mv);
        Some(score)
    }

    /// Searches the moves in order until one reaches beta.
    fn best_until_refuted(
        &mut self,
        game: &G,
        position: &G::Position,
        moves: &[G::Move],
        depth: u32,
        [alpha, beta]: [Score; 2],
    ) -> Option<(Score, G::Move)> {
        let mut best = (Score::WORST, moves[0]);
        for &mv in moves {
            let window = [alpha.max(best.0), beta];
            let score = self.score_move(game, position, mv, depth, window)?;
            if score > best.0 {
                best = (score, mv);
            }
            if score >= beta {
                self.history.reward(game.side_to_move(position), mv, depth);
                break;
            }
        }
        Some(best)
    }

    /// The first of the best moves after [`AlphaBeta::judge_children`].
    fn best_judged(&self, moves: &[G::Move]) -> (Score, G::Move) {
        let mut best = (Score::WORST, moves[0]);
        for (&score, &mv) in self.scores.iter().zip(moves) {
            if score > best.0 {
                best = (score, mv);
            }
        }
        best
    }

    fn remember(
        &mut self,
        position: &G::Position,
        depth: u32,
        window: [Score; 2],
        score: Score,
        mv: G::Move,
    ) {
        if self.options.table {
            self.table.store(position, depth, window, score, mv);
        }
    }

    /// Whether the children of a position with `depth` plies left are judged in one
    /// batch.
    fn is_frontier(&self, depth: u32) -> bool {
        depth == 1 && self.evaluator.judges_siblings_together()
    }

    /// Sets the scores of these moves of a position one ply above the end of the
    /// search. If one of them ends the game and so alone reaches beta, the others
    /// are left at the worst score.
    fn judge_children(&mut self, game: &G, position: &G::Position, moves: &[G::Move], beta: Score) {
        self.nodes += moves.len() as u64;
        self.scores.clear();
        for &mv in moves {
            let mut child = position.clone();
            game.play_unchecked(&mut child, mv);
            let finished = self.finished(game, &child, 0).map(Score::neg);
            self.scores.push(finished.unwrap_or(Score::WORST));
        }
        if self.scores.iter().any(|&score| score >= beta) {
            return;
        }
        self.evaluator
            .evaluate_children(game, position, moves, &mut self.values);
        for (score, &value) in self.scores.iter_mut().zip(&self.values) {
            if *score == Score::WORST {
                *score = -Score::estimate(value);
            }
        }
    }

    /// The score of a position at the end of the search.
    fn leaf(&mut self, game: &G, position: &G::Position) -> Score {
        self.finished(game, position, 0).unwrap_or_else(|| {
            let positions = slice::from_ref(position);
            self.evaluator.evaluate(game, positions, &mut self.values);
            Score::estimate(self.values[0])
        })
    }

    /// The score of a position in which the game is over.
    fn finished(&self, game: &G, position: &G::Position, plies_left: u32) -> Option<Score> {
        let result = game
            .outcome(position)?
            .value_for(game.side_to_move(position));
        let counted = if self.options.prefer_sooner_wins {
            plies_left
        } else {
            0
        };
        Some(Score::finished(result, counted))
    }

    /// Puts promising moves first.
    fn order(&mut self, game: &G, position: &G::Position, moves: &mut [G::Move]) {
        if !self.options.ordering {
            return;
        }
        let known = self.table.get(position).map(|entry| entry.mv);
        let side = game.side_to_move(position);
        let key = |mv: G::Move| match known {
            Some(known) if known == mv => u64::MAX,
            _ => {
                let capture = u64::from(game.is_capture(position, mv)) << 32;
                capture + u64::from(self.history.count(side, mv))
            }
        };
        self.keyed.clear();
        self.keyed
            .extend(moves.iter().map(|&mv| (Reverse(key(mv)), mv)));
        // Stable: equals stay in the order of the rules.
        self.keyed.sort_by_key(|&(key, _)| key);
        for (mv, &(_, ordered)) in moves.iter_mut().zip(&self.keyed) {
            *mv = ordered;
        }
    }
}
