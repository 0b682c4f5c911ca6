//! Checking a certificate, by the rules alone.
//!
//! Of the program that made the certificate only the reading of rules files is used
//! here: moves and results are those of [`SlowBoard`], which tries every leap as the
//! rules file states it. So that a mistake in the solver, or in the fast game it
//! searched, does not confirm itself.

use super::Exact;
use super::certificate::Certificate;
use crate::game::{Game, Outcome, ParseError, Side};
use crate::games::leaper::slow::{SlowBoard, SlowMove, move_name};
use crate::games::leaper::{Leaper, MAX_SQUARES, RulesError};
use crate::hash::sha256_hex;

/// What a certificate was found to prove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Positions in which the certificate's move was checked, with every reply to it.
    pub positions: u64,
    /// Positions in which the winner has a move that wins at once.
    pub won_at_once: u64,
    /// Plies of the longest line.
    pub plies: usize,
}

/// Why a certificate proves nothing.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// Its rules are wrong.
    #[error("the rules in the certificate cannot be read")]
    Rules(#[from] Box<RulesError>),
    /// It names another game than its rules do.
    #[error("the certificate is for {claimed}, but its rules are those of {found}")]
    Name {
        /// The name that it gives.
        claimed: String,
        /// The name in the rules.
        found: String,
    },
    /// The hash is that of other rules.
    #[error("the rules in the certificate have the SHA-256 {found}, not {claimed}")]
    RulesHash {
        /// The hash that it gives.
        claimed: String,
        /// The hash of its rules.
        found: String,
    },
    /// Its game is of another kind.
    #[error("only games that end by themselves have certificates: {0}")]
    Endless(String),
    /// Its start is no position.
    #[error("the certificate's start {text:?} is no position of its game")]
    Start {
        /// The text.
        text: String,
        /// Why.
        source: ParseError,
    },
    /// A draw is won by nobody.
    #[error("the certificate claims a draw: only wins and losses can be proved by moves")]
    Draw,
    /// A line does not lead where it should.
    #[error("after {plies} plies, in {position}: {refusal}")]
    Refused {
        /// Plies from the start.
        plies: usize,
        /// The position.
        position: String,
        /// What is wrong there.
        refusal: Refusal,
    },
    /// All positions are won, and there is more.
    #[error("{0} choices are left over: the certificate was made for other positions")]
    LeftOver(usize),
}

/// What is wrong with a line of play.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The claim is wrong at once.
    #[error("the game is over, and the claimed winner has not won")]
    NotWon,
    /// The certificate ends too early.
    #[error("the certificate has no move for this position")]
    Missing,
    /// There are not so many moves.
    #[error("the certificate takes legal move {choice} (from 0), but there are {legal}")]
    Illegal {
        /// The certificate's choice.
        choice: u32,
        /// How many legal moves there are.
        legal: usize,
    },
    /// The winner throws the win away.
    #[error("the certificate plays {0}, which ends the game without a win")]
    Blunder(String),
    /// The loser gets away.
    #[error("the loser replies {0}, and has not lost")]
    Escape(String),
}

/// Checks that the certificate proves its claim.
///
/// # Errors
/// If it does not; says where it fails.
pub fn verify(certificate: &Certificate) -> Result<Verified, VerifyError> {
    let claim = &certificate.claim;
    let game = Leaper::parse("certificate", &claim.rules).map_err(Box::new)?;
    if game.name() != claim.game {
        return Err(VerifyError::Name {
            claimed: claim.game.clone(),
            found: game.name().to_string(),
        });
    }
    let found = sha256_hex(game.rules_text().as_bytes());
    if found != claim.rules_sha256 {
        return Err(VerifyError::RulesHash {
            claimed: claim.rules_sha256.clone(),
            found,
        });
    }
    if let Some(why) = game.why_endless() {
        return Err(VerifyError::Endless(why));
    }
    let text = &claim.start;
    game.parse_position(text)
        .map_err(|source| VerifyError::Start {
            text: text.clone(),
            source,
        })?;
    let start = SlowBoard::read(game.rules(), text);
    let winner = match claim.value {
        Exact::Win => start.side_to_move(),
        Exact::Loss => start.side_to_move().other(),
        Exact::Draw => return Err(VerifyError::Draw),
    };
    let mut checker = Checker {
        winner,
        choices: certificate.choices.iter(),
        plies: 0,
        next: Boards::default(),
        verified: Verified {
            positions: 0,
            won_at_once: 0,
            plies: 0,
        },
    };
    checker.check(&start)?;
    match checker.choices.len() {
        0 => Ok(checker.verified),
        left => Err(VerifyError::LeftOver(left)),
    }
}

struct Checker<'a> {
    winner: Side,
    choices: std::slice::Iter<'a, u32>,
    /// Plies from the start to the positions at hand.
    plies: usize,
    /// The boards of the winner's next turn.
    next: Boards,
    verified: Verified,
}

/// Boards by their letters, as they were found.
#[derive(Default)]
struct Boards {
    found: Vec<[u8; MAX_SQUARES]>,
    /// How many of them are known to be sorted and different.
    distinct: usize,
}

impl Boards {
    /// The fewest boards for which it pays to look for equal ones.
    const MANY: usize = 1 << 16;

    fn push(&mut self, board: &SlowBoard) {
        self.found.push(*board.letters());
        if self.found.len() > Boards::MANY + 2 * self.distinct {
            self.sort();
        }
    }

    fn sort(&mut self) {
        self.found.sort_unstable();
        self.found.dedup();
        self.distinct = self.found.len();
    }

    /// All of them, each once, in ascending order.
    fn take(&mut self) -> Vec<[u8; MAX_SQUARES]> {
        self.sort();
        std::mem::take(self).found
    }
}

impl Checker<'_> {
    fn check(&mut self, start: &SlowBoard) -> Result<(), VerifyError> {
        match start.outcome() {
            Some(Outcome::Win(winner)) if winner == self.winner => return Ok(()),
            Some(_) => return Err(self.refuse(start, Refusal::NotWon)),
            None if start.side_to_move() == self.winner => self.next.push(start),
            None => {
                self.follow_replies(start)?;
                self.plies = 1;
            }
        }
        // A board of the winner's turns, to put letters on.
        let mut board = start.clone();
        if start.side_to_move() != self.winner {
            board.play(start.moves()[0]);
        }
        loop {
            let positions = self.next.take();
            if positions.is_empty() {
                return Ok(());
            }
            self.verified.plies = self.plies + 1;
            for letters in positions {
                self.check_position(&board.with_letters(letters))?;
            }
            self.plies += 2;
        }
    }

    fn check_position(&mut self, board: &SlowBoard) -> Result<(), VerifyError> {
        let moves = board.moves();
        let wins = |&mv: &SlowMove| after(board, mv).outcome() == Some(Outcome::Win(self.winner));
        if moves.iter().any(wins) {
            self.verified.won_at_once += 1;
            return Ok(());
        }
        self.check_choice(board, &moves)
    }

    /// Makes the certificate's move and looks at every reply.
    fn check_choice(&mut self, board: &SlowBoard, moves: &[SlowMove]) -> Result<(), VerifyError> {
        let Some(&choice) = self.choices.next() else {
            return Err(self.refuse(board, Refusal::Missing));
        };
        let Some(&mv) = moves.get(choice as usize) else {
            let legal = moves.len();
            return Err(self.refuse(board, Refusal::Illegal { choice, legal }));
        };
        self.verified.positions += 1;
        let child = after(board, mv);
        match child.outcome() {
            None => self.follow_replies(&child),
            Some(_) => Err(self.refuse(board, Refusal::Blunder(move_name(mv)))),
        }
    }

    /// Notes the positions after every move of the loser.
    fn follow_replies(&mut self, board: &SlowBoard) -> Result<(), VerifyError> {
        for mv in board.moves() {
            let child = after(board, mv);
            match child.outcome() {
                None => self.next.push(&child),
                Some(Outcome::Win(winner)) if winner == self.winner => {}
                Some(_) => return Err(self.refuse(board, Refusal::Escape(move_name(mv)))),
            }
        }
        Ok(())
    }

    fn refuse(&self, board: &SlowBoard, refusal: Refusal) -> VerifyError {
        VerifyError::Refused {
            plies: self.plies,
            position: board.text(),
            refusal,
        }
    }
}

fn after<'a>(board: &SlowBoard<'a>, mv: SlowMove) -> SlowBoard<'a> {
    let mut child = board.clone();
    child.play(mv);
    child
}
