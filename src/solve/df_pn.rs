//! Depth-first proof-number search.
//!
//! A position's *proof number* is the least number of undecided leaves below it that
//! would have to turn out well for the side to move, so that it wins; its *disproof
//! number* the same for the side to move not to win. The search always works at a leaf
//! that counts in both. Doing so depth first, it stays below a position until its
//! numbers pass the bounds within which it is the most promising one, and keeps what it
//! learns in a table.
//!
//! Written as negamax: a child's side to move is the opponent, so a position's proof
//! number is the least of its children's disproof numbers, and its disproof number the
//! sum of their proof numbers.
//!
//! The games are such that no position comes back, so positions form a graph without
//! cycles, and a number that reaches 0 is a proof whatever the other numbers were worth.
//! Where lines of play meet, the sum counts leaves twice: that wastes work, and is why
//! it is weakened here.
//!
//! Source: A. Nagai, "Df-pn algorithm for searching AND/OR trees and its applications"
//! (2002); T. Ueda, T. Hashimoto, J. Hashimoto, H. Iida, "Weak proof-number search"
//! (2008); bounds a quarter beyond the second best: J. Pawlewicz, L. Lew, "Improving
//! depth-first PN-search: 1 + epsilon trick" (2006); first numbers from a learned
//! judgement: after C. Gao, M. Mueller, R. Hayward, "Focused depth-first proof number
//! search using convolutional neural networks for the game of Hex" (2017).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use super::table::{Numbers, Table};
use super::{Exact, Limits, Options, Solution, Unsolvable};
use crate::game::{Game, Outcome, Side, Value};
use crate::search::Evaluator;

/// Finds exact values. It keeps its table from call to call, so that positions which
/// have much in common are cheap to solve one after the other.
pub struct Solver<'a, G: Game> {
    game: &'a G,
    options: Options,
    prior: Option<Box<dyn Evaluator<G>>>,
    table: Table,
    budget: Budget,
    /// Positions expanded in this call.
    nodes: u64,
    /// Who is taken to win drawn games.
    draws_for: Side,
    /// Whether any line that was looked at, in any call, ended in a draw.
    met_draw: bool,
    /// The children that are still in question, of every position on the way from the
    /// root to where the search is.
    stack: Vec<Node<G>>,
    /// The move that won the position last found to be won.
    winning_move: Option<G::Move>,
    moves: Vec<G::Move>,
    /// Where on the stack children are that nothing is known of, and their moves.
    unknown: Vec<usize>,
    unknown_moves: Vec<G::Move>,
    values: Vec<Value>,
}

/// A position on the stack.
struct Node<G: Game> {
    position: G::Position,
    key: u128,
    /// The move that led here.
    mv: Option<G::Move>,
    numbers: Numbers,
}

/// What a call may still use up.
#[derive(Debug, Default)]
struct Budget {
    nodes: Option<u64>,
    deadline: Option<Instant>,
    stop: Option<Arc<AtomicBool>>,
    expanded: Option<Arc<AtomicU64>>,
    is_spent: bool,
}

impl Budget {
    /// The clock is looked at once in so many nodes.
    const CHECK_EVERY: u64 = 1024;

    fn new(limits: &Limits) -> Budget {
        Budget {
            nodes: limits.nodes,
            deadline: limits
                .time
                .and_then(|time| Instant::now().checked_add(time)),
            stop: limits.stop.clone(),
            expanded: limits.expanded.clone(),
            is_spent: false,
        }
    }

    /// Whether `nodes` nodes were all that could be had.
    fn check(&mut self, nodes: u64) -> bool {
        self.is_spent |= self.nodes.is_some_and(|limit| nodes >= limit);
        if nodes.is_multiple_of(Budget::CHECK_EVERY) {
            self.look_around(nodes);
        }
        self.is_spent
    }

    /// Looks at the clock and at the flag, and tells how many nodes there are.
    fn look_around(&mut self, nodes: u64) {
        let stopped = |stop: &Arc<AtomicBool>| stop.load(Ordering::Relaxed);
        self.is_spent |= self.deadline.is_some_and(|end| Instant::now() >= end)
            || self.stop.as_ref().is_some_and(stopped);
        if let Some(expanded) = &self.expanded {
            expanded.store(nodes, Ordering::Relaxed);
        }
    }

    /// The budget for one of `parts` equal parts of what is left to do after `nodes`
    /// nodes.
    fn share(&self, nodes: u64, parts: u64) -> Budget {
        let now = Instant::now();
        let time = |end: Instant| now + end.saturating_duration_since(now) / parts as u32;
        Budget {
            nodes: self
                .nodes
                .map(|limit| nodes + limit.saturating_sub(nodes).div_ceil(parts)),
            deadline: self.deadline.map(time),
            stop: self.stop.clone(),
            expanded: self.expanded.clone(),
            is_spent: false,
        }
    }
}

impl<'a, G: Game> Solver<'a, G> {
    /// A solver of positions of `game`. The prior says what to look at first; without
    /// one, all positions seem equally hard.
    ///
    /// # Errors
    /// If not every line of the game ends by itself.
    pub fn new(
        game: &'a G,
        options: Options,
        prior: Option<Box<dyn Evaluator<G>>>,
    ) -> Result<Solver<'a, G>, Unsolvable> {
        if let Some(why) = game.why_endless() {
            return Err(Unsolvable {
                game: game.name().to_string(),
                why,
            });
        }
        Ok(Solver {
            game,
            options,
            prior,
            table: Table::new(options.table_mib, key_bits(game).unwrap_or(0)),
            budget: Budget::default(),
            nodes: 0,
            draws_for: Side::Second,
            met_draw: false,
            stack: Vec::new(),
            winning_move: None,
            moves: Vec::new(),
            unknown: Vec::new(),
            unknown_moves: Vec::new(),
            values: Vec::new(),
        })
    }

    /// Whether the table can never take one position for another. Otherwise it knows
    /// them by a hash of more than 100 bits.
    pub fn is_exact(&self) -> bool {
        key_bits(self.game).is_some_and(|bits| self.table.is_exact(bits))
    }

    /// The value of a position.
    pub fn solve(&mut self, position: &G::Position, limits: &Limits) -> Solution {
        self.begin(limits);
        let value = self.value(position);
        Solution {
            value,
            nodes: self.nodes,
        }
    }

    /// Positions that the last call expanded.
    pub fn nodes(&self) -> u64 {
        self.nodes
    }

    /// Each legal move with its value for the mover, in the order of the rules. No
    /// move gets more than its share of the limits.
    pub fn solve_moves(
        &mut self,
        position: &G::Position,
        limits: &Limits,
    ) -> Vec<(G::Move, Option<Exact>)> {
        self.begin(limits);
        let whole = std::mem::take(&mut self.budget);
        let mut moves = Vec::new();
        self.game.legal_moves(position, &mut moves);
        let mut left = moves.len() as u64;
        let mut solved = Vec::new();
        for mv in moves {
            self.budget = whole.share(self.nodes, left);
            left -= 1;
            let child = self.child(position, mv);
            solved.push((mv, self.value(&child).map(|value| -value)));
        }
        solved
    }

    /// Best play from a position, as far as the limits allow to know it: who wins takes
    /// a short way as far as that is known, who loses the most laborious one.
    pub fn line(&mut self, position: &G::Position, limits: &Limits) -> Vec<G::Move> {
        self.begin(limits);
        let mut position = position.clone();
        let mut line = Vec::new();
        while self.game.outcome(&position).is_none() {
            let Some(mv) = self.best_move(&position) else {
                break;
            };
            self.game.play_unchecked(&mut position, mv);
            line.push(mv);
        }
        line
    }

    /// A move that wins, for a side to move that can; `None` otherwise, or if a limit
    /// was hit.
    pub fn winning_move(&mut self, position: &G::Position, limits: &Limits) -> Option<G::Move> {
        self.begin(limits);
        self.find_win(position)
    }

    fn best_move(&mut self, position: &G::Position) -> Option<G::Move> {
        let value = self.value(position)?;
        if value == Exact::Win {
            return self.find_win(position);
        }
        let mut moves = Vec::new();
        self.game.legal_moves(position, &mut moves);
        let mut best = None;
        for mv in moves {
            let child = self.child(position, mv);
            if -self.value(&child)? == value {
                let work = self.work(&child);
                if best.is_none_or(|(_, most)| work > most) {
                    best = Some((mv, work));
                }
            }
        }
        best.map(|(mv, _)| mv)
    }

    /// Begins a proof of many positions within common limits.
    pub(super) fn begin(&mut self, limits: &Limits) {
        self.budget = Budget::new(limits);
        self.nodes = 0;
        self.table.begin_search();
    }

    /// Whether the limits of this call are reached.
    pub(super) fn is_spent(&mut self) -> bool {
        self.budget.look_around(self.nodes);
        self.budget.is_spent
    }

    /// A winning move: one that wins without search if there is one, else the one
    /// whose proof was least work.
    pub(super) fn find_win(&mut self, position: &G::Position) -> Option<G::Move> {
        if self.game.outcome(position).is_some() {
            return None;
        }
        let mover = self.game.side_to_move(position);
        // Draws are no wins. As long as there are none, it does not matter whom they
        // would count for, and what is in the table can be used.
        let answer = match self.met_draw {
            true => self.find_win_if(position, mover.other()),
            false => self.find_win_if(position, Side::Second),
        };
        if self.met_draw && self.draws_for == mover {
            return self.find_win_if(position, mover.other());
        }
        answer
    }

    fn find_win_if(&mut self, position: &G::Position, draws_for: Side) -> Option<G::Move> {
        self.draws_for = draws_for;
        let mover = self.game.side_to_move(position);
        let mut moves = Vec::new();
        self.game.legal_moves(position, &mut moves);
        let won = Some(Outcome::Win(mover));
        let ends = |mv: &G::Move| self.game.outcome(&self.child(position, *mv)) == won;
        let at_once = moves.iter().copied().find(ends);
        let is_seen = |mv: &G::Move| self.glance(&self.child(position, *mv)) == Some(mover);
        if let Some(mv) = at_once.or_else(|| moves.iter().copied().find(is_seen)) {
            return Some(mv);
        }
        let mut best = None;
        for mv in moves {
            let key = self.key(&self.child(position, mv));
            if self.table.get(key).is_some_and(Numbers::is_lost) {
                let work = self.table.work(key);
                if best.is_none_or(|(_, least)| work < least) {
                    best = Some((mv, work));
                }
            }
        }
        match best {
            Some((mv, _)) => Some(mv),
            None if self.search_root(position).is_won() => self.winning_move,
            None => None,
        }
    }

    fn child(&self, position: &G::Position, mv: G::Move) -> G::Position {
        let mut child = position.clone();
        self.game.play_unchecked(&mut child, mv);
        child
    }

    /// How much search a position took, as a power of two; 0 if none.
    fn work(&self, position: &G::Position) -> u8 {
        self.table.work(self.key(position)).unwrap_or(0)
    }

    /// A game with draws takes two searches: does a side win? does it at least draw?
    /// Where no line that was looked at ended in a draw, one answers both.
    pub(super) fn value(&mut self, position: &G::Position) -> Option<Exact> {
        let mover = self.game.side_to_move(position);
        let wins = self.mover_wins(position, Side::Second)?;
        let certain = match mover {
            Side::First => wins,
            Side::Second => !wins,
        };
        let wins_or_loses = |wins| if wins { Exact::Win } else { Exact::Loss };
        if certain || !self.met_draw {
            return Some(wins_or_loses(wins));
        }
        let wins_otherwise = self.mover_wins(position, Side::First)?;
        Some(if wins == wins_otherwise {
            wins_or_loses(wins)
        } else {
            Exact::Draw
        })
    }

    /// Whether the side to move wins, if draws count as wins of `draws_for`.
    fn mover_wins(&mut self, position: &G::Position, draws_for: Side) -> Option<bool> {
        self.draws_for = draws_for;
        if let Some(winner) = self.glance(position) {
            return Some(winner == self.game.side_to_move(position));
        }
        let known = self.table.get(self.key(position));
        match known.and_then(Numbers::is_decided) {
            Some(wins) => Some(wins),
            None => self.search_root(position).is_decided(),
        }
    }

    /// Searches a position until it is decided or the budget is spent.
    fn search_root(&mut self, position: &G::Position) -> Numbers {
        let root = Node {
            position: position.clone(),
            key: self.key(position),
            mv: None,
            numbers: Numbers::UNIT,
        };
        self.stack.clear();
        self.stack.push(root);
        self.search(0, Numbers::UNREACHABLE)
    }

    /// The winner, where that shows without search.
    fn glance(&mut self, position: &G::Position) -> Option<Side> {
        match self.game.outcome(position) {
            Some(Outcome::Win(winner)) => Some(winner),
            Some(Outcome::Draw) => {
                self.met_draw = true;
                Some(self.draws_for)
            }
            None if self.options.foresight => self.game.foresee(position),
            None => None,
        }
    }

    /// The game's key, and who draws count for.
    fn key(&self, position: &G::Position) -> u128 {
        self.game.key(position) << 1 | self.draws_for.index() as u128
    }

    /// Searches below a position on the stack until one of its numbers has reached its
    /// bound, or the budget is spent. Returns its numbers.
    fn search(&mut self, node: usize, bounds: Numbers) -> Numbers {
        if self.budget.check(self.nodes) {
            return self.stack[node].numbers;
        }
        let before = self.nodes;
        self.nodes += 1;
        let first = self.stack.len();
        let numbers = if self.expand(node) {
            Numbers::WON
        } else {
            self.search_children(first, bounds)
        };
        self.stack.truncate(first);
        let key = self.stack[node].key;
        self.table.store(key, numbers, self.nodes - before);
        numbers
    }

    /// Puts those children on the stack that are neither won nor lost. Whether one is
    /// lost for the opponent, so that the position is won.
    fn expand(&mut self, node: usize) -> bool {
        let position = self.stack[node].position.clone();
        let mover = self.game.side_to_move(&position);
        let first = self.stack.len();
        self.moves.clear();
        self.game.legal_moves(&position, &mut self.moves);
        for index in 0..self.moves.len() {
            let mv = self.moves[index];
            let child = self.child(&position, mv);
            match self.glance(&child) {
                Some(winner) if winner == mover => {
                    self.winning_move = Some(mv);
                    return true;
                }
                Some(_) => {}
                None => {
                    let key = self.key(&child);
                    self.stack.push(Node {
                        position: child,
                        key,
                        mv: Some(mv),
                        numbers: Numbers::UNIT,
                    });
                }
            }
        }
        self.recall(first) || {
            self.ask_prior(&position);
            false
        }
    }

    /// Looks children up in the table. Takes those off the stack that are won for the
    /// opponent, and notes those that are not found. Whether one is lost.
    fn recall(&mut self, first: usize) -> bool {
        self.unknown.clear();
        let mut index = first;
        while index < self.stack.len() {
            let node = &mut self.stack[index];
            match self.table.get(node.key) {
                Some(numbers) if numbers.is_lost() => {
                    self.winning_move = node.mv;
                    return true;
                }
                Some(numbers) if numbers.is_won() => {
                    self.stack.swap_remove(index);
                    continue;
                }
                Some(numbers) => node.numbers = numbers,
                None => self.unknown.push(index),
            }
            index += 1;
        }
        false
    }

    /// Gives the children that nothing is known of their first numbers.
    fn ask_prior(&mut self, parent: &G::Position) {
        let Some(prior) = self.prior.as_mut().filter(|_| !self.unknown.is_empty()) else {
            return;
        };
        let stack = &mut self.stack;
        self.unknown_moves.clear();
        let moves = self.unknown.iter().filter_map(|&index| stack[index].mv);
        self.unknown_moves.extend(moves);
        prior.evaluate_children(self.game, parent, &self.unknown_moves, &mut self.values);
        for (&index, &value) in self.unknown.iter().zip(&self.values) {
            stack[index].numbers = first_numbers(value, self.options.prior_scale);
        }
    }

    /// Searches below the children on the stack from `first`, always the most promising
    /// one, and returns the numbers of their parent.
    fn search_children(&mut self, first: usize, bounds: Numbers) -> Numbers {
        let weak_sum = u64::from(self.options.weak_sum.max(1));
        let mut rounds = 0;
        while let Some(outlook) = Outlook::of(&self.stack[first..], weak_sum) {
            let numbers = outlook.numbers();
            if numbers.proof >= bounds.proof
                || numbers.disproof >= bounds.disproof
                || self.budget.is_spent
            {
                return numbers;
            }
            let child = first + outlook.best;
            let found = self.search(child, outlook.bounds_of_best(bounds, rounds));
            if found.is_lost() {
                self.winning_move = self.stack[child].mv;
                return Numbers::WON;
            }
            if found.is_won() {
                self.stack.swap_remove(child);
            } else {
                self.stack[child].numbers = found;
            }
            rounds += 1;
        }
        Numbers::LOST
    }
}

/// Bits of the game's key and of who draws count for.
fn key_bits<G: Game>(game: &G) -> Option<u32> {
    game.key_bits()
        .map(|bits| bits + 1)
        .filter(|&bits| bits <= u128::BITS)
}

/// The numbers of a position that the prior gives this value.
fn first_numbers(value: Value, scale: f32) -> Numbers {
    /// Nothing is quite sure before it is proved.
    const LEAST: f32 = 1e-6;
    let number = |probability: f32| 1.0 - scale * probability.max(LEAST).ln();
    Numbers {
        proof: number((1.0 + value.get()) / 2.0) as u32,
        disproof: number((1.0 - value.get()) / 2.0) as u32,
    }
}

/// What the children of a position say of it.
struct Outlook {
    /// The child with the least disproof number: the opponent's weakest reply.
    best: usize,
    /// Its numbers.
    numbers: Numbers,
    /// The second least disproof number.
    second: u32,
    /// The largest proof number among the others.
    others_largest: u64,
    /// The sum of their proof numbers.
    others_sum: u64,
    weak_sum: u64,
}

impl Outlook {
    /// After so many rounds below one position the bounds double. No position of the
    /// games at hand needs so many; but a table that forgets could lead in circles
    /// otherwise.
    const PATIENCE_ROUNDS: u32 = 1 << 12;

    /// `None` if there are no children.
    fn of<G: Game>(children: &[Node<G>], weak_sum: u64) -> Option<Outlook> {
        let (mut best, mut least, mut second) = (None, Numbers::INFINITE, Numbers::INFINITE);
        for (index, child) in children.iter().enumerate() {
            let disproof = child.numbers.disproof;
            if best.is_none() || disproof < least {
                (best, second, least) = (Some(index), least, disproof);
            } else {
                second = second.min(disproof);
            }
        }
        let best = best?;
        let (mut others_largest, mut others_sum) = (0, 0);
        for (index, child) in children.iter().enumerate() {
            if index != best {
                let proof = u64::from(child.numbers.proof);
                others_largest = others_largest.max(proof);
                others_sum += proof;
            }
        }
        Some(Outlook {
            best,
            numbers: children[best].numbers,
            second,
            others_largest,
            others_sum,
            weak_sum,
        })
    }

    /// The parent's numbers: the least disproof number, and the sum of the proof
    /// numbers, in which all but the largest count less.
    fn numbers(&self) -> Numbers {
        let own = u64::from(self.numbers.proof);
        let largest = own.max(self.others_largest);
        let rest = self.others_sum + own - largest;
        Numbers {
            proof: self.numbers.disproof,
            disproof: finite(largest + rest / self.weak_sum),
        }
    }

    /// How far the search may go below the best child: until another child is better,
    /// by a quarter, or the parent's numbers reach their bounds. Always beyond the
    /// child's numbers, so that something happens.
    fn bounds_of_best(&self, bounds: Numbers, rounds: u32) -> Numbers {
        let second = u64::from(self.second);
        let disproof = u64::from(bounds.proof).min(second + second / 4 + 1);
        let doublings = rounds / Outlook::PATIENCE_ROUNDS;
        let widen = |bound: u64| {
            let bound = u128::from(bound) << doublings.min(64);
            u32::try_from(bound).unwrap_or(Numbers::INFINITE)
        };
        Numbers {
            proof: widen(self.proof_bound(bounds.disproof)),
            disproof: widen(disproof),
        }
    }

    /// The least proof number of the best child with which the parent's disproof
    /// number reaches its bound.
    fn proof_bound(&self, bound: u32) -> u64 {
        if bound == Numbers::INFINITE {
            return bound.into();
        }
        let bound = u64::from(bound);
        let as_largest = bound.saturating_sub(self.others_sum / self.weak_sum);
        let least = if as_largest > self.others_largest {
            as_largest
        } else {
            let rest = bound.saturating_sub(self.others_largest) * self.weak_sum;
            rest.saturating_sub(self.others_sum - self.others_largest)
        };
        least.max(u64::from(self.numbers.proof) + 1)
    }
}

fn finite(number: u64) -> u32 {
    number.min(Numbers::LARGEST.into()) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::playout::random_positions;
    use crate::games::leaper::{Leaper, MARCH_BLITZ, MAX_SQUARES};
    use crate::random::Seed;

    #[test]
    fn a_table_that_forgets_everything_costs_time_and_nothing_else() {
        let game = Leaper::parse("blitz", MARCH_BLITZ).unwrap();
        let positions = random_positions(&game, 40, &mut Seed(1).stream("df-pn"));
        let pieces = |position| {
            let letters: [u8; MAX_SQUARES] = game.letters(position);
            letters.iter().filter(|&&letter| letter != b'.').count()
        };
        let late = positions.iter().filter(|position| pieces(position) <= 9);
        let solver = || Solver::new(&game, Options::default(), None).unwrap();
        let (mut large, mut tiny) = (solver(), solver());
        tiny.table = Table::tiny();
        let mut nodes = [0; 2];
        for position in late {
            let limits = Limits::default();
            let solutions = [&mut large, &mut tiny].map(|s| s.solve(position, &limits));
            assert!(solutions[0].value.is_some());
            assert_eq!(solutions[0].value, solutions[1].value);
            for (sum, solution) in nodes.iter_mut().zip(solutions) {
                *sum += solution.nodes;
            }
        }
        assert!(nodes[1] > nodes[0] + nodes[0] / 10, "{nodes:?}");
    }

    #[test]
    fn the_bound_of_the_best_child_is_where_its_parent_reaches_its_own() {
        let numbers = |proof, disproof| Numbers { proof, disproof };
        for weak_sum in [1, 2, 6] {
            for own in [1, 5, 40] {
                for others in [vec![], vec![3], vec![7, 2, 30], vec![100, 90]] {
                    let outlook = |own| Outlook {
                        best: 0,
                        numbers: numbers(own, 1),
                        second: 1,
                        others_largest: others.iter().copied().max().unwrap_or(0),
                        others_sum: others.iter().sum(),
                        weak_sum,
                    };
                    let parent = |own| outlook(own).numbers().disproof;
                    for bound in parent(own) + 1..parent(own) + 60 {
                        let least = outlook(own).proof_bound(bound) as u32;
                        assert!(parent(least) >= bound && parent(least - 1) < bound);
                    }
                }
            }
        }
    }
}
