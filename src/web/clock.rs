//! The Fischer clock: a side's time runs down while it is its turn, and grows by a
//! fixed amount with every move that it makes. Out of time loses.
//!
//! Every method is told what time it is, so the clock itself never looks.
//!
//! Source: R. Fischer, US patent 4,884,255, "Digital chess clock" (1989).

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::game::Side;

/// How much time the sides have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeControl {
    /// At the start, in milliseconds.
    pub initial_ms: u64,
    /// Added with each move, in milliseconds.
    pub increment_ms: u64,
}

impl TimeControl {
    /// 60 seconds each and 10 a move.
    ///
    /// Source: Ota, "ISer Advent Calendar 2020, day 23", on the clock.
    pub const ARTICLE: TimeControl = TimeControl {
        initial_ms: 60_000,
        increment_ms: 10_000,
    };
    const MAX_INITIAL_MS: u64 = 24 * 3_600_000;
    const MAX_INCREMENT_MS: u64 = 3_600_000;

    /// Checks the range.
    ///
    /// # Errors
    /// A message that says what would be accepted.
    pub fn validate(self) -> Result<(), String> {
        if !(1..=Self::MAX_INITIAL_MS).contains(&self.initial_ms) {
            return Err(format!(
                "initial_ms = {} is out of range: accepted are 1 to {} (a day)",
                self.initial_ms,
                Self::MAX_INITIAL_MS
            ));
        }
        if self.increment_ms > Self::MAX_INCREMENT_MS {
            return Err(format!(
                "increment_ms = {} is out of range: accepted are 0 to {} (an hour)",
                self.increment_ms,
                Self::MAX_INCREMENT_MS
            ));
        }
        Ok(())
    }

    fn increment(self) -> Duration {
        Duration::from_millis(self.increment_ms)
    }
}

/// A clock with two times, of which at most one runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    control: TimeControl,
    /// By [`Side::index`]; that of the running side as of when it began to run.
    left: [Duration; 2],
    running: Option<(Side, Instant)>,
}

impl Clock {
    /// A full clock that runs for `side`.
    pub fn start(control: TimeControl, side: Side, now: Instant) -> Clock {
        Clock {
            control,
            left: [Duration::from_millis(control.initial_ms); 2],
            running: Some((side, now)),
        }
    }

    /// What it was set to.
    pub fn control(&self) -> TimeControl {
        self.control
    }

    /// The times left, by [`Side::index`].
    pub fn left(&self, now: Instant) -> [Duration; 2] {
        let mut left = self.left;
        if let Some((side, since)) = self.running {
            let time = &mut left[side.index()];
            *time = time.saturating_sub(now.saturating_duration_since(since));
        }
        left
    }

    /// Whose time runs.
    pub fn running(&self) -> Option<Side> {
        self.running.map(|(side, _)| side)
    }

    /// When the running time will have run out, if nobody moves.
    pub fn runs_out_at(&self) -> Option<Instant> {
        let (side, since) = self.running?;
        Some(since + self.left[side.index()])
    }

    /// The side that is out of time.
    pub fn out_of_time(&self, now: Instant) -> Option<Side> {
        let is_over = self.runs_out_at().is_some_and(|end| now >= end);
        self.running().filter(|_| is_over)
    }

    /// The running side has moved: it gets its increment, and the other's time runs.
    pub fn press(&mut self, now: Instant) {
        let Some(side) = self.running() else { return };
        self.left = self.left(now);
        self.left[side.index()] += self.control.increment();
        self.running = Some((side.other(), now));
    }

    /// Stops for good.
    pub fn stop(&mut self, now: Instant) {
        self.left = self.left(now);
        self.running = None;
    }

    /// Goes back to an earlier turn of `side`, which began with the times `then`. The
    /// side that asks for it wins no time: neither what it has used since comes back,
    /// nor do the increments since stay.
    pub fn go_back(&mut self, then: [Duration; 2], side: Side, now: Instant) {
        let kept = self.left(now)[side.index()].min(then[side.index()]);
        self.left = then;
        self.left[side.index()] = kept;
        self.running = Some((side, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn clock(now: Instant) -> Clock {
        Clock::start(TimeControl::ARTICLE, Side::First, now)
    }

    #[test]
    fn time_runs_for_one_side_and_grows_with_its_moves() {
        let start = Instant::now();
        let mut clock = clock(start);
        assert_eq!(clock.left(start + 5 * SECOND), [55 * SECOND, 60 * SECOND]);
        clock.press(start + 5 * SECOND);
        assert_eq!(clock.running(), Some(Side::Second));
        assert_eq!(clock.left(start + 8 * SECOND), [65 * SECOND, 57 * SECOND]);
        clock.press(start + 8 * SECOND);
        assert_eq!(clock.left(start + 9 * SECOND), [64 * SECOND, 67 * SECOND]);
    }

    #[test]
    fn out_of_time_is_exact() {
        let start = Instant::now();
        let clock = clock(start);
        let end = start + 60 * SECOND;
        assert_eq!(clock.runs_out_at(), Some(end));
        assert_eq!(clock.out_of_time(end - Duration::from_nanos(1)), None);
        assert_eq!(clock.out_of_time(end), Some(Side::First));
        assert_eq!(clock.left(end + SECOND)[0], Duration::ZERO);
    }

    #[test]
    fn a_stopped_clock_stands() {
        let start = Instant::now();
        let mut clock = clock(start);
        clock.stop(start + SECOND);
        clock.press(start + 2 * SECOND);
        assert_eq!(clock.left(start + 99 * SECOND), [59 * SECOND, 60 * SECOND]);
        assert_eq!(clock.out_of_time(start + 99 * SECOND), None);
    }

    #[test]
    fn taking_back_wins_no_time() {
        let start = Instant::now();
        let mut clock = clock(start);
        let then = clock.left(start);
        clock.press(start + 2 * SECOND); // 68 s left with the increment
        clock.press(start + 3 * SECOND);
        clock.go_back(then, Side::First, start + 4 * SECOND);
        assert_eq!(
            clock.left(start + 4 * SECOND),
            [60 * SECOND, 60 * SECOND],
            "no increment"
        );
        let then = clock.left(start + 4 * SECOND);
        clock.press(start + 24 * SECOND); // 40 + 10
        clock.go_back(then, Side::First, start + 24 * SECOND);
        assert_eq!(
            clock.left(start + 24 * SECOND)[0],
            50 * SECOND,
            "used is used"
        );
    }

    #[test]
    fn times_out_of_range_are_refused() {
        let control = |initial_ms, increment_ms| TimeControl {
            initial_ms,
            increment_ms,
        };
        assert!(control(1, 0).validate().is_ok());
        assert!(control(0, 0).validate().unwrap_err().contains("1 to"));
        assert!(control(86_400_001, 0).validate().is_err());
        assert!(control(1, 3_600_001).validate().is_err());
    }
}
