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
    /// Positions in which the winner's move was checked.
    pub positions: u64,
    /// Positions in which every reply of the loser was followed.
    pub replies_followed: u64,
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
        next: Vec::new(),
        verified: Verified {
            positions: 0,
            replies_followed: 0,
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
    /// The boards of the winner's next turn, as they were found.
    next: Vec<[u8; MAX_SQUARES]>,
    verified: Verified,
}

impl Checker<'_> {
    fn check(&mut self, start: &SlowBoard) -> Result<(), VerifyError> {
        match start.outcome() {
            Some(Outcome::Win(winner)) if winner == self.winner => return Ok(()),
            Some(_) => return Err(self.refuse(start, Refusal::NotWon)),
            None if start.side_to_move() == self.winner => self.next.push(*start.letters()),
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
        while !self.next.is_empty() {
            let mut positions = std::mem::take(&mut self.next);
            positions.sort_unstable();
            positions.dedup();
            for letters in positions {
                self.check_choice(&board.with_letters(letters))?;
            }
            self.plies += 2;
        }
        Ok(())
    }

    /// Makes the certificate's move and looks at every reply.
    fn check_choice(&mut self, board: &SlowBoard) -> Result<(), VerifyError> {
        let moves = board.moves();
        let Some(&choice) = self.choices.next() else {
            return Err(self.refuse(board, Refusal::Missing));
        };
        let Some(&mv) = moves.get(choice as usize) else {
            let legal = moves.len();
            return Err(self.refuse(board, Refusal::Illegal { choice, legal }));
        };
        self.verified.positions += 1;
        self.verified.plies = self.plies + 1;
        let child = after(board, mv);
        match child.outcome() {
            None => self.follow_replies(&child),
            Some(Outcome::Win(winner)) if winner == self.winner => Ok(()),
            Some(_) => Err(self.refuse(board, Refusal::Blunder(move_name(mv)))),
        }
    }

    /// Notes the positions after every move of the loser.
    fn follow_replies(&mut self, board: &SlowBoard) -> Result<(), VerifyError> {
        self.verified.replies_followed += 1;
        for mv in board.moves() {
            let child = after(board, mv);
            match child.outcome() {
                None => self.next.push(*child.letters()),
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
