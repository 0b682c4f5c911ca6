//! Progress on standard error: a bar for a person at a terminal, a plain line
//! now and then for a log file, nothing if so wished.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

/// In a log file, a line at most this often.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Shows how far a run is.
#[derive(Debug)]
pub struct Progress(Display);

#[derive(Debug)]
enum Display {
    Bar(ProgressBar),
    Lines(Lines),
    Quiet,
}

#[derive(Debug)]
struct Lines {
    steps: u64,
    first_step: u64,
    started: Instant,
    last_line: Option<Instant>,
    status: String,
}

impl Progress {
    /// A bar if standard error is a terminal, otherwise lines.
    pub fn on_stderr() -> Progress {
        if io::stderr().is_terminal() {
            return Progress(Display::Bar(ProgressBar::hidden()));
        }
        Progress(Display::Lines(Lines {
            steps: 0,
            first_step: 0,
            started: Instant::now(),
            last_line: None,
            status: String::new(),
        }))
    }

    /// Shows warnings only.
    pub fn quiet() -> Progress {
        Progress(Display::Quiet)
    }

    /// Starts the display of a run of `steps` steps, of which `done` are done in
    /// `elapsed`.
    pub fn begin(&mut self, done: u64, steps: u64, elapsed: Duration) {
        match &mut self.0 {
            Display::Bar(bar) => {
                let style = "{bar:30} {pos}/{len} [{elapsed} < {eta}] {msg}";
                *bar = ProgressBar::new(steps)
                    .with_style(ProgressStyle::with_template(style).expect("the template is valid"))
                    .with_position(done)
                    .with_elapsed(elapsed);
                // What an earlier session did says nothing about the speed now.
                bar.reset_eta();
                bar.enable_steady_tick(Duration::from_secs(1));
            }
            Display::Lines(lines) => {
                (lines.steps, lines.first_step, lines.started) = (steps, done, Instant::now());
            }
            Display::Quiet => {}
        }
    }

    /// Shows that `step` steps are done.
    pub fn update(&mut self, step: u64, status: Option<String>) {
        match &mut self.0 {
            Display::Bar(bar) => {
                bar.set_position(step);
                if let Some(status) = status {
                    bar.set_message(status);
                }
            }
            Display::Lines(lines) => lines.update(step, status),
            Display::Quiet => {}
        }
    }

    /// Prints lines above the bar.
    pub(super) fn note(&self, text: &str) {
        match &self.0 {
            Display::Bar(bar) => bar.suspend(|| print(text)),
            Display::Lines(_) => print(text),
            Display::Quiet => {}
        }
    }

    /// Prints a warning, even if everything else is unwanted.
    pub fn warn(&self, text: &str) {
        let text = format!("warning: {text}");
        match &self.0 {
            Display::Bar(bar) => bar.suspend(|| print(&text)),
            Display::Lines(_) | Display::Quiet => print(&text),
        }
    }
}

impl Drop for Progress {
    /// Leaves the bar on the screen as it was last.
    fn drop(&mut self) {
        if let Display::Bar(bar) = &self.0 {
            bar.abandon();
        }
    }
}

impl Lines {
    fn update(&mut self, step: u64, status: Option<String>) {
        if let Some(status) = status {
            self.status = status;
        }
        let due = self
            .last_line
            .is_none_or(|last| last.elapsed() >= LINE_EVERY);
        if due || step == self.steps {
            self.last_line = Some(Instant::now());
            print(&self.line(step));
        }
    }

    fn line(&self, step: u64) -> String {
        let here = step.saturating_sub(self.first_step).max(1);
        let left = self
            .started
            .elapsed()
            .mul_f64((self.steps - step) as f64 / here as f64);
        let left = if step < self.steps {
            format!(", about {} left", HumanDuration(left))
        } else {
            String::new()
        };
        let status = if self.status.is_empty() {
            String::new()
        } else {
            format!(", {}", self.status)
        };
        format!("step {step}/{}{left}{status}", self.steps)
    }
}

fn print(text: &str) {
    // A reader of the log that is gone must not end the run.
    let _ = writeln!(io::stderr(), "{text}");
}
