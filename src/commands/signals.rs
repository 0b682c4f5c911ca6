//! Ctrl-C and its relatives, for commands that have something to bring to an end.

use std::process;

use anyhow::Context;

use super::EXIT_INTERRUPTED;

/// Makes the first Ctrl-C (or SIGTERM, or SIGHUP) call `first`, and the second end the
/// process.
pub(super) fn on_first_signal(first: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    let mut first = Some(first);
    let handler = move || match first.take() {
        Some(first) => first(),
        None => process::exit(EXIT_INTERRUPTED.into()),
    };
    keep_hangup_ignored(|| ctrlc::set_handler(handler)).context("cannot listen for Ctrl-C")
}

/// Keeps SIGHUP ignored while and after `install` sets handlers, if it is: `nohup`
/// starts programs so, in order that they outlive the terminal.
#[cfg(unix)]
fn keep_hangup_ignored<T>(install: impl FnOnce() -> T) -> T {
    unsafe extern "C" {
        fn signal(number: std::ffi::c_int, handler: usize) -> usize;
    }
    // The same numbers on every Unix.
    const SIGHUP: std::ffi::c_int = 1;
    const SIG_IGN: usize = 1;
    // SAFETY: to ignore a signal is sound at any time; no handler is involved.
    let ignore_hangup = || unsafe { signal(SIGHUP, SIG_IGN) };
    let before = ignore_hangup();
    let installed = install();
    if before == SIG_IGN {
        ignore_hangup();
    }
    installed
}

#[cfg(not(unix))]
fn keep_hangup_ignored<T>(install: impl FnOnce() -> T) -> T {
    install()
}
