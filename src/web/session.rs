//! A person's game against an agent: whose turn it is, the clock, and how it ended.
//! Rules and clock are enforced here; what the page shows is a copy.
//!
//! Every method is told what time it is. A time that has run out is noticed by the
//! next call, whichever it is.

use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::watch;

use super::catalog::Seat;
use super::clock::{Clock, TimeControl};
use super::record::{MoveValue, MoveView, PositionView, Record, RecordView, Thinker};
use crate::game::{Outcome, Side};

/// What does not change while a game is played.
#[derive(Debug, Clone)]
pub struct Terms {
    /// The game and the opponent.
    pub seat: Seat,
    /// The person's side.
    pub human: Side,
    /// None if nobody looks at the time.
    pub time: Option<TimeControl>,
    /// Where the game begins, if not at its start.
    pub position: Option<String>,
}

/// How a game ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ending {
    /// None if nobody won.
    pub winner: Option<Side>,
    /// In the game's own words, `time` or `resignation`.
    pub cause: &'static str,
}

impl Ending {
    const TIME: &'static str = "time";
    const RESIGNATION: &'static str = "resignation";

    fn loss_of(side: Side, cause: &'static str) -> Ending {
        Ending {
            winner: Some(side.other()),
            cause,
        }
    }

    /// Whether the rules of the game ended it: only then can it be taken back.
    fn is_by_rules(&self) -> bool {
        ![Self::TIME, Self::RESIGNATION].contains(&self.cause)
    }
}

/// Why a session does not do what it is asked to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The rules do not allow the move.
    #[error("{0}")]
    IllegalMove(String),
    /// It is the opponent's turn.
    #[error("it is the opponent's turn")]
    NotYourTurn,
    /// Nothing can be done any more.
    #[error("the game is over ({0})")]
    Over(&'static str),
    /// The person has not moved yet.
    #[error("there is no move of yours to take back")]
    NothingToUndo,
    /// There are fewer moves.
    #[error("the game has {plies} plies, there is none numbered {asked}")]
    NoSuchPly {
        /// What was asked for.
        asked: usize,
        /// How many there are.
        plies: usize,
    },
}

/// What the opponent has to do.
pub struct Task {
    /// Of the session when the task was given.
    version: u64,
    /// How long the opponent may think.
    time: Duration,
    think: Thinker,
}

impl Task {
    /// Thinks, and gives the move to hand to [`Session::reply`].
    pub fn think(self) -> Reply {
        Reply {
            version: self.version,
            text: (self.think)(self.time),
        }
    }
}

/// The opponent's move.
pub struct Reply {
    version: u64,
    text: String,
}

/// All of a session, for the page.
#[derive(Debug, Clone, Serialize)]
pub struct View {
    /// Grows with every change.
    pub version: u64,
    /// See [`Seat::game`].
    pub game: String,
    /// See [`Seat::title`].
    pub title: String,
    /// See [`Seat::opponent`].
    pub opponent: String,
    /// See [`Seat::opponent_name`].
    pub opponent_name: String,
    /// See [`Seat::network`].
    pub network: Option<String>,
    /// The person's side.
    pub human: Side,
    /// Whose turn it is.
    pub turn: Side,
    /// None if nobody looks at the time.
    pub clock: Option<ClockView>,
    /// From the first to the one at hand.
    pub positions: Vec<PositionView>,
    /// One fewer.
    pub moves: Vec<MoveView>,
    /// What the person can play now.
    pub legal: Vec<MoveView>,
    /// Whether [`Session::undo`] would find a move.
    pub can_undo: bool,
    /// Once the game is over.
    pub result: Option<Ending>,
}

/// The clock, for the page.
#[derive(Debug, Clone, Serialize)]
pub struct ClockView {
    /// What it was set to.
    #[serde(flatten)]
    pub control: TimeControl,
    /// Left, in milliseconds: the first player's and the second's.
    pub left_ms: [u64; 2],
    /// Whose time runs.
    pub running: Option<Side>,
}

/// A game between a person and an agent.
pub struct Session {
    terms: Terms,
    record: Box<dyn Record>,
    clock: Option<Clock>,
    /// The times left at the start of each turn, if there is a clock.
    times: Vec<[Duration; 2]>,
    result: Option<Ending>,
    version: watch::Sender<u64>,
}

impl Session {
    /// The longest that an opponent may think about a move.
    const MAX_THINKING: Duration = Duration::from_secs(10);

    /// Starts the game, and its clock.
    pub fn start(terms: Terms, record: Box<dyn Record>, now: Instant) -> Session {
        let side = record.side_to_move(record.plies());
        let clock = terms.time.map(|control| Clock::start(control, side, now));
        Session {
            times: clock.iter().map(|clock| clock.left(now)).collect(),
            clock,
            terms,
            record,
            result: None,
            version: watch::Sender::new(0),
        }
    }

    /// What was agreed on.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Grows with every change.
    pub fn versions(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// When the running time will have run out.
    pub fn runs_out_at(&self) -> Option<Instant> {
        self.clock.as_ref()?.runs_out_at()
    }

    /// Plays the person's move.
    ///
    /// # Errors
    /// If the game is over, it is not the person's turn, or the move is not legal.
    pub fn play(&mut self, text: &str, now: Instant) -> Result<(), Refusal> {
        self.require_running(now)?;
        if self.turn() != self.terms.human {
            return Err(Refusal::NotYourTurn);
        }
        self.make_move(text, now)
    }

    /// The opponent's task, if it is its turn.
    pub fn task(&mut self, now: Instant) -> Option<Task> {
        let is_due = self.require_running(now).is_ok() && self.turn() != self.terms.human;
        is_due.then(|| Task {
            version: self.current_version(),
            time: self.thinking_time(now),
            think: self.record.thinker(),
        })
    }

    /// Plays the opponent's move, unless the game has changed since it began to think.
    ///
    /// # Errors
    /// If the move is not legal, which would be a fault of the agent.
    pub fn reply(&mut self, reply: &Reply, now: Instant) -> Result<(), Refusal> {
        if self.require_running(now).is_err() || reply.version != self.current_version() {
            return Ok(());
        }
        self.make_move(&reply.text, now)
    }

    /// Goes back to where the person moved last. Time is not given back.
    ///
    /// # Errors
    /// If the person has not moved, or lost by time or resignation.
    pub fn undo(&mut self, now: Instant) -> Result<(), Refusal> {
        self.notice_time(now);
        if let Some(result) = self.result.as_ref().filter(|result| !result.is_by_rules()) {
            return Err(Refusal::Over(result.cause));
        }
        let ply = self.last_own_ply().ok_or(Refusal::NothingToUndo)?;
        self.record.take_back_to(ply);
        self.result = None;
        if let Some(clock) = &mut self.clock {
            clock.go_back(self.times[ply], self.terms.human, now);
            self.times.truncate(ply);
            self.times.push(clock.left(now));
        }
        self.changed();
        Ok(())
    }

    /// The person gives up.
    ///
    /// # Errors
    /// If the game is over.
    pub fn resign(&mut self, now: Instant) -> Result<(), Refusal> {
        self.require_running(now)?;
        self.end(Ending::loss_of(self.terms.human, Ending::RESIGNATION), now);
        Ok(())
    }

    /// The legal moves after `ply` plies, each with the network's value.
    ///
    /// # Errors
    /// If there are fewer plies.
    pub fn move_values(&self, ply: usize) -> Result<Vec<MoveValue>, Refusal> {
        let plies = self.record.plies();
        if ply > plies {
            return Err(Refusal::NoSuchPly { asked: ply, plies });
        }
        Ok(self.record.move_values(ply))
    }

    /// All that the page shows.
    pub fn view(&mut self, now: Instant) -> View {
        self.notice_time(now);
        let RecordView {
            positions,
            moves,
            legal,
        } = self.record.view();
        let Terms { seat, human, .. } = self.terms.clone();
        let may_move = self.result.is_none() && self.turn() == human;
        let by_rules = self.result.as_ref().is_none_or(Ending::is_by_rules);
        View {
            version: self.current_version(),
            game: seat.game,
            title: seat.title,
            opponent: seat.opponent,
            opponent_name: seat.opponent_name,
            network: seat.network,
            human,
            turn: self.turn(),
            clock: self.clock.as_ref().map(|clock| ClockView {
                control: clock.control(),
                left_ms: clock.left(now).map(|left| left.as_millis() as u64),
                running: clock.running(),
            }),
            positions,
            moves,
            legal: if may_move { legal } else { Vec::new() },
            can_undo: by_rules && self.last_own_ply().is_some(),
            result: self.result.clone(),
        }
    }

    fn turn(&self) -> Side {
        self.record.side_to_move(self.record.plies())
    }

    fn current_version(&self) -> u64 {
        *self.version.borrow()
    }

    fn changed(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    /// Ends the game if the running time has run out.
    fn notice_time(&mut self, now: Instant) {
        let out = self.clock.as_ref().and_then(|clock| clock.out_of_time(now));
        if let Some(side) = out {
            self.end(Ending::loss_of(side, Ending::TIME), now);
        }
    }

    fn require_running(&mut self, now: Instant) -> Result<(), Refusal> {
        self.notice_time(now);
        match &self.result {
            Some(result) => Err(Refusal::Over(result.cause)),
            None => Ok(()),
        }
    }

    fn make_move(&mut self, text: &str, now: Instant) -> Result<(), Refusal> {
        self.record.play(text).map_err(Refusal::IllegalMove)?;
        if let Some(clock) = &mut self.clock {
            clock.press(now);
            self.times.push(clock.left(now));
        }
        match self.record.ending() {
            Some((outcome, cause)) => {
                let winner = match outcome {
                    Outcome::Win(side) => Some(side),
                    Outcome::Draw => None,
                };
                self.end(Ending { winner, cause }, now);
            }
            None => self.changed(),
        }
        Ok(())
    }

    fn end(&mut self, result: Ending, now: Instant) {
        self.result = Some(result);
        if let Some(clock) = &mut self.clock {
            clock.stop(now);
        }
        self.changed();
    }

    /// The last turn of the person's that is not the one at hand.
    fn last_own_ply(&self) -> Option<usize> {
        (0..self.record.plies()).rfind(|&ply| self.record.side_to_move(ply) == self.terms.human)
    }

    /// A part of the time left, so that there is always some for later moves.
    fn thinking_time(&self, now: Instant) -> Duration {
        let Some(clock) = &self.clock else {
            return Self::MAX_THINKING;
        };
        let left = clock.left(now)[self.terms.human.other().index()];
        let increment = Duration::from_millis(clock.control().increment_ms);
        (left / 20 + increment / 2)
            .min(left / 3)
            .min(Self::MAX_THINKING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::catalog::Catalog;

    const SECOND: Duration = Duration::from_secs(1);

    /// A game against BabyAI.
    fn session(position: &str, time: Option<TimeControl>, now: Instant) -> Session {
        let catalog = Catalog::new(&[], "runs".into()).unwrap();
        let seat = catalog.seat("march-blitz", "baby", None).unwrap();
        let record = catalog.start(&seat, Some(position)).unwrap();
        let terms = Terms {
            seat,
            human: Side::First,
            time,
            position: Some(position.to_string()),
        };
        Session::start(terms, record, now)
    }

    const START: &str = "1k4/pppppp/6/6/PPPPPP/4K1 w";

    fn answer(session: &mut Session, now: Instant) {
        let reply = session.task(now).expect("it is its turn").think();
        session.reply(&reply, now).unwrap();
    }

    #[test]
    fn moves_alternate_and_rules_hold() {
        let now = Instant::now();
        let mut session = session(START, None, now);
        assert!(session.task(now).is_none());
        let refusal = session.play("c2c4", now).unwrap_err();
        assert!(refusal.to_string().contains("legal moves: "), "{refusal}");
        session.play("c2c3", now).unwrap();
        assert_eq!(session.play("d2d3", now), Err(Refusal::NotYourTurn));
        answer(&mut session, now);
        let view = session.view(now);
        assert_eq!((view.moves.len(), view.positions.len()), (2, 3));
        assert_eq!(view.version, 2);
        assert!(view.positions[1].squares.starts_with("....K.PP.PPP..P"));
    }

    #[test]
    fn undo_drops_a_reply_that_comes_too_late() {
        let now = Instant::now();
        let mut session = session(START, None, now);
        assert_eq!(session.undo(now), Err(Refusal::NothingToUndo));
        session.play("c2c3", now).unwrap();
        let late = session.task(now).unwrap().think();
        session.undo(now).unwrap();
        session.reply(&late, now).unwrap();
        assert_eq!(session.view(now).moves.len(), 0);
        // And none is left over for the next turn either.
        session.play("d2d3", now).unwrap();
        session.reply(&late, now).unwrap();
        assert_eq!(session.view(now).moves.len(), 1);
    }

    #[test]
    fn a_game_ended_by_rules_can_be_taken_back() {
        let now = Instant::now();
        let mut session = session("6/1K4/6/6/k5/6 w", None, now);
        session.play("b5b6", now).unwrap();
        let ending = Ending {
            winner: Some(Side::First),
            cause: "Try",
        };
        assert_eq!(session.view(now).result, Some(ending));
        assert_eq!(session.play("b5b6", now), Err(Refusal::Over("Try")));
        assert!(session.task(now).is_none());
        session.undo(now).unwrap();
        assert_eq!(session.view(now).result, None);
        assert!(session.view(now).legal.iter().any(|mv| mv.text == "b5a6"));
    }

    #[test]
    fn out_of_time_loses_and_stays_lost() {
        let start = Instant::now();
        let mut session = session(START, Some(TimeControl::ARTICLE), start);
        session.play("c2c3", start + 59 * SECOND).unwrap();
        answer(&mut session, start + 60 * SECOND);
        let left = session.view(start + 60 * SECOND).clock.unwrap().left_ms;
        assert_eq!(left, [11_000, 69_000]);
        let late = start + 71 * SECOND;
        assert_eq!(session.play("d2d3", late), Err(Refusal::Over("time")));
        let result = session.view(late).result.unwrap();
        assert_eq!(result.winner, Some(Side::Second));
        assert_eq!(session.undo(late), Err(Refusal::Over("time")));
        assert_eq!(session.resign(late), Err(Refusal::Over("time")));
        assert!(!session.view(late).can_undo);
    }

    #[test]
    fn the_opponent_can_run_out_of_time_too() {
        let start = Instant::now();
        let mut session = session(START, Some(TimeControl::ARTICLE), start);
        session.play("c2c3", start).unwrap();
        let reply = session.task(start).unwrap().think();
        let late = start + 60 * SECOND;
        session.reply(&reply, late).unwrap();
        let result = session.view(late).result.unwrap();
        assert_eq!((result.winner, result.cause), (Some(Side::First), "time"));
    }

    #[test]
    fn the_opponent_keeps_time_for_later() {
        let start = Instant::now();
        for (initial_ms, increment_ms, expected) in [
            (60_000, 10_000, 8_000),
            (600_000, 10_000, 10_000),
            (60_000, 0, 3_000),
            (600, 10_000, 200),
        ] {
            let control = TimeControl {
                initial_ms,
                increment_ms,
            };
            let mut session = session(START, Some(control), start);
            session.play("c2c3", start).unwrap();
            let time = session.task(start).unwrap().time;
            assert_eq!(time, Duration::from_millis(expected));
        }
    }
}
