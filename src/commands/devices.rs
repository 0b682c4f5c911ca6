//! `tanren devices`: what `--device` can choose from.

use crate::commands::print;
use crate::nets::device::adapters;

/// List the devices that networks can run on.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Prints the table of devices.
///
/// # Errors
/// If standard output cannot be written.
pub fn run(args: Args) -> anyhow::Result<()> {
    let adapters = adapters();
    if args.json {
        let gpus: Vec<_> = adapters
            .iter()
            .enumerate()
            .map(|(number, adapter)| {
                serde_json::json!({
                    "device": format!("gpu:{number}"),
                    "name": adapter.name,
                    "kind": adapter.kind.to_string(),
                    "api": adapter.api,
                })
            })
            .collect();
        return print(
            serde_json::json!({ "cpu_threads": rayon::current_num_threads(), "gpus": gpus }),
        );
    }
    print(format_args!(
        "cpu    {} threads",
        rayon::current_num_threads()
    ))?;
    for (number, adapter) in adapters.iter().enumerate() {
        print(format_args!(
            "gpu:{number}  {}, {}, {}",
            adapter.name, adapter.kind, adapter.api
        ))?;
    }
    if adapters.is_empty() {
        let why = if cfg!(feature = "gpu") {
            "no GPU found; one needs a Vulkan driver (on macOS Metal)"
        } else {
            "this build has no GPU support (feature `gpu`)"
        };
        print(why)?;
    }
    Ok(())
}
