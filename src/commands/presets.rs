//! `tanren presets`: the built-in configurations.

use crate::experiments::EXPERIMENTS;
use crate::lab::config;

use super::{UsageError, print};

/// Arguments of `tanren presets`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Print a preset: a configuration file to start from.
    Show {
        /// The preset.
        name: String,
    },
}

/// Lists the presets or prints one.
///
/// # Errors
/// If there is no such preset.
pub fn run(args: Args) -> anyhow::Result<()> {
    match args.command {
        Some(Command::Show { name }) => {
            let preset = config::preset(EXPERIMENTS, &name).map_err(UsageError::wrap)?;
            print(preset.toml.trim_end())
        }
        None => {
            let presets: Vec<_> = config::presets(EXPERIMENTS).collect();
            let width = presets
                .iter()
                .map(|preset| preset.name.len())
                .max()
                .unwrap_or(0);
            for preset in presets {
                print(format_args!("{:width$}  {}", preset.name, preset.about))?;
            }
            Ok(())
        }
    }
}
