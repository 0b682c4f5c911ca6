//! Ctrl-C, and its kin, as a flag that long work looks at.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

use super::{EXIT_INTERRUPTED, print_error};

/// A flag that the first Ctrl-C (or SIGTERM, or SIGHUP) sets, saying `notice` to the
/// person; the second ends the process.
///
/// # Errors
/// If the system does not allow to listen.
pub(super) fn stop_flag(notice: &'static str) -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let stop = flag.clone();
    keep_hangup_ignored(|| {
        ctrlc::set_handler(move || {
            if stop.swap(true, Ordering::Relaxed) {
                process::exit(EXIT_INTERRUPTED.into());
            }
            print_error(format_args!("\n{notice}; once more to abort at once"));
        })
    })
    .context("cannot listen for Ctrl-C")?;
    Ok(flag)
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
