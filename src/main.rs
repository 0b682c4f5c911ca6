//! The command `tanren`, see [`tanren::commands`].

use std::process::ExitCode;

use clap::Parser;
use tanren::commands::{self, Cli};

fn main() -> ExitCode {
    let device = "BURN_DEVICE";
    if std::env::var_os(device).is_none() {
        // burn loads optimiser states by way of its default device. With a GPU
        // compiled in that is the GPU, which a run on the CPU must not open.
        //
        // SAFETY: no other thread is running yet that could read the environment.
        unsafe { std::env::set_var(device, "flex") };
    }
    match Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => commands::report(&error),
    }
}
