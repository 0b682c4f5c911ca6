//! What a glance at a position tells: a move that wins at once, a threat without an
//! answer, a king that nobody catches any more. Solvers need not search below.
//!
//! Everything here is proved, and it stays in sight: where one side is seen to win, it
//! has a move after which that is seen again (or the game is won), and no move of the
//! other side gets it out of sight. So a certificate can follow what was seen, move by
//! move, without searching.

use super::betza::Leap;
use super::{Leaper, MAX_SQUARES, Move, Position, Rules, Stuck, bits};
use crate::game::{Game, Side};

impl Leaper {
    /// See [`Game::foresee`].
    pub(super) fn foreseen_winner(&self, position: &Position) -> Option<Side> {
        let (mover, opponent) = (position.to_move, position.to_move.other());
        if self.wins_at_once(position) {
            return Some(mover);
        }
        if self.cannot_parry(position) {
            return Some(opponent);
        }
        let race = self.race.as_ref()?;
        [mover, opponent]
            .into_iter()
            .find(|&side| race.is_won_by(side, position))
    }

    /// Whether the side to move has a move that wins.
    fn wins_at_once(&self, position: &Position) -> bool {
        self.can_catch(position) || self.can_try(position)
    }

    /// Whether the opponent's last piece of the kind that must not be lost can be
    /// taken. The opponent's leaps are the mover's turned by half a turn: where its
    /// piece could leap to by capturing, a piece of the mover's attacks it.
    fn can_catch(&self, position: &Position) -> bool {
        let (mover, opponent) = (position.to_move, position.to_move.other());
        let Some(kind) = self.rules.capture else {
            return false;
        };
        let prey = position.pieces(opponent, kind);
        prey.is_power_of_two() && {
            let square = prey.trailing_zeros() as usize;
            let tables = &self.targets[opponent.index()][..self.rules.kinds.len()];
            tables
                .iter()
                .enumerate()
                .any(|(kind, table)| position.pieces(mover, kind) & table[square].captures != 0)
        }
    }

    fn can_try(&self, position: &Position) -> bool {
        let (mover, opponent) = (position.to_move, position.to_move.other());
        let Some(kind) = self.rules.goal else {
            return false;
        };
        let enemies = position.sides[opponent.index()];
        let empty = !(position.sides[0] | position.sides[1]);
        bits(position.pieces(mover, kind)).any(|square| {
            let targets = self.targets[mover.index()][kind][square];
            let open = targets.moves & empty | targets.captures & enemies;
            open & self.far_rank[mover.index()] != 0
        })
    }

    /// Whether the opponent wins next, whatever the side to move does. That is worth
    /// a closer look only if it would win if it were its turn.
    fn cannot_parry(&self, position: &Position) -> bool {
        let passed = Position {
            to_move: position.to_move.other(),
            ..*position
        };
        self.wins_at_once(&passed) && {
            let mut moves = self.leaps(position).flat_map(|(from, targets)| {
                bits(targets).map(move |to| Move {
                    from: from as u8,
                    to: to as u8,
                })
            });
            moves.all(|mv| {
                let mut child = *position;
                self.play_unchecked(&mut child, mv);
                self.wins_at_once(&child)
            })
        }
    }
}

/// The race of a king for the far rank, in games like March: every piece goes exactly
/// one rank ahead, straight or diagonally, moving or capturing; the one king must not
/// be lost and wins on the far rank; who is stuck has lost.
///
/// # The rule
/// Let the *runner* need n moves to the far rank. Let S_0 hold its king's square, and
/// S_i the squares one step on from S_(i-1) that hold none of the runner's other
/// pieces and, for i < n, lie outside of the cone C_i: the squares that the enemy's
/// pieces can reach in at least 1 and at most i moves of one piece on an empty board.
/// If it is the runner's turn, S_n is not empty and the enemy's king needs at least n
/// moves, then the runner has a won game. If it is the enemy's turn, the same holds
/// with C_(i+1) in place of C_i, S_0 included, and at least n + 1 moves.
///
/// # Proof
/// The runner moves its king along squares s_1, s_2, ..., s_n of the S_i and nothing
/// else. Each move is legal: its other pieces stay where they are or are captured, and
/// an enemy piece on s_i is captured. Nobody takes the king on s_i, i < n: to
/// do so an enemy piece would have to get from where it stands now to s_i by one or
/// more moves, and before the king moves on the enemy has made i moves (i + 1 if it
/// began), at least one of them after the king came; but s_i is outside of that cone. In
/// the second case the same holds for the king where it stands now. The enemy's king is
/// not home first: it has made n - 1 moves (n if the enemy began) when the runner's king
/// arrives. And an enemy that is stuck, or loses its king on the way, has lost as well.
///
/// # It stays in sight
/// After the runner's move to s_1 the second case holds with n - 1. After any enemy
/// move the first case holds with n: a piece that has moved, by a step that its cone
/// allows for, has a cone one step smaller; its king is one move nearer; the runner
/// has lost no piece but such as stand in its way.
#[derive(Debug, Clone)]
pub(super) struct Race {
    king: usize,
    width: u32,
    /// The leftmost and the rightmost file.
    edges: [u64; 2],
    board: u64,
    /// `[side][square]`
    moves_to_goal: Box<[[u8; MAX_SQUARES]; 2]>,
}

impl Race {
    /// `None` if the game is of another kind, so that nothing is proved.
    pub(super) fn of(rules: &Rules) -> Option<Race> {
        let marches = |leaps: &[Leap]| {
            let step = |files| Leap {
                files,
                ranks: 1,
                moves: true,
                captures: true,
            };
            leaps.len() == 3 && [-1, 0, 1].iter().all(|&files| leaps.contains(&step(files)))
        };
        let king = rules.goal.filter(|_| rules.goal == rules.capture)?;
        let all_march = rules.kinds.iter().all(|kind| marches(&kind.leaps));
        if !all_march || rules.stuck != Stuck::Loss || rules.max_plies.is_some() {
            return None;
        }
        let (width, height) = (rules.width, rules.height);
        let left = (0..height).fold(0, |file, rank| file | 1 << (rank * width));
        let mut moves_to_goal = Box::new([[0; MAX_SQUARES]; 2]);
        for square in 0..width * height {
            let rank = square / width;
            moves_to_goal[Side::First.index()][square] = (height - 1 - rank) as u8;
            moves_to_goal[Side::Second.index()][square] = rank as u8;
        }
        Some(Race {
            king,
            width: width as u32,
            edges: [left, left << (width - 1)],
            board: u64::MAX >> (64 - width * height),
            moves_to_goal,
        })
    }

    /// Whether the rule shows that the side wins.
    fn is_won_by(&self, runner: Side, position: &Position) -> bool {
        let enemy = runner.other();
        let kings = [runner, enemy].map(|side| position.pieces(side, self.king));
        if !kings.iter().all(|king| king.is_power_of_two()) {
            return false;
        }
        let [own_moves, enemy_moves] = [(runner, kings[0]), (enemy, kings[1])]
            .map(|(side, king)| self.moves_to_goal[side.index()][king.trailing_zeros() as usize]);
        let enemy_begins = position.to_move == enemy;
        if enemy_moves < own_moves + u8::from(enemy_begins) {
            return false;
        }
        let in_the_way = position.sides[runner.index()] & !kings[0];
        let mut front = position.sides[enemy.index()];
        let mut cone = 0;
        let mut run = kings[0];
        if enemy_begins {
            front = self.ahead(enemy, front);
            cone |= front;
            run &= !cone;
        }
        for _ in 1..own_moves {
            front = self.ahead(enemy, front);
            cone |= front;
            run = self.ahead(runner, run) & !in_the_way & !cone;
        }
        self.ahead(runner, run) & !in_the_way != 0
    }

    /// The squares one step ahead of these.
    fn ahead(&self, side: Side, squares: u64) -> u64 {
        let [left, right] = self.edges;
        let wide = squares | (squares & !left) >> 1 | (squares & !right) << 1;
        match side {
            Side::First => wide << self.width & self.board,
            Side::Second => wide >> self.width,
        }
    }
}
