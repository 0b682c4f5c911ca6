//! `tanren devices`: what `--device` can choose from, and with `--check` whether it
//! computes what the CPU computes, and how fast.

use std::sync::Arc;

use anyhow::bail;
use serde_json::{Value as Json, json};

use crate::commands::print;
use crate::experiments::EXPERIMENTS;
use crate::game::Game;
use crate::games::{GameVisitor, with_game};
use crate::lab::config;
use crate::nets::device::{Adapter, Compute, DeviceId, adapters};
use crate::nets::{NetConfig, NetKind};
use crate::train::self_check::{self, SelfCheck};
use crate::train::throughput::{Figure, Portion, Throughput, mean_moves};

/// The preset on whose game and networks devices are checked.
const PRESET: &str = "march-blitz";

/// List the devices that networks can run on.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Compare each device with the CPU, on one batch of every architecture, and
    /// measure it. A device that computes wrong numbers makes the command fail.
    #[arg(long)]
    check: bool,

    /// Change one weight on each device first, to see that the check notices.
    #[arg(long, requires = "check", hide = true)]
    fault: bool,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Prints the table of devices, and what the check finds.
///
/// # Errors
/// If a device does not pass the check, or standard output cannot be written.
pub fn run(args: Args) -> anyhow::Result<()> {
    let adapters = adapters();
    if !args.json {
        print_list(&adapters)?;
    }
    let mut rows = Vec::new();
    if args.check {
        if !args.json {
            print(format_args!("\n{}", Row::HEADER))?;
        }
        for id in ids(&adapters) {
            for kind in NetKind::ALL {
                let row = Row::of(id, kind, args.fault)?;
                if !args.json {
                    print(row.line())?;
                }
                rows.push(row);
            }
        }
    }
    if args.json {
        print(as_json(&adapters, &rows))?;
    }
    let wrong: Vec<String> = rows.iter().filter_map(Row::complaint).collect();
    if !wrong.is_empty() {
        bail!("a device cannot be trusted: {}", wrong.join("; "));
    }
    Ok(())
}

/// All devices, the CPU first.
fn ids(adapters: &[Adapter]) -> impl Iterator<Item = DeviceId> {
    let gpus = (0..adapters.len()).map(DeviceId::Gpu);
    [DeviceId::Cpu].into_iter().chain(gpus)
}

fn print_list(adapters: &[Adapter]) -> anyhow::Result<()> {
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

fn as_json(adapters: &[Adapter], rows: &[Row]) -> Json {
    let gpu = |(number, adapter): (usize, &Adapter)| {
        json!({
            "device": DeviceId::Gpu(number).to_string(),
            "name": adapter.name,
            "kind": adapter.kind.to_string(),
            "real": adapter.is_real(),
            "api": adapter.api,
        })
    };
    let gpus: Vec<Json> = adapters.iter().enumerate().map(gpu).collect();
    let checks: Vec<Json> = rows.iter().map(Row::as_json).collect();
    json!({ "cpu_threads": rayon::current_num_threads(), "gpus": gpus, "checks": checks })
}

/// What was found out about a network on a device.
struct Row {
    id: DeviceId,
    kind: NetKind,
    /// An error: the device does not open.
    check: Result<SelfCheck, String>,
    /// By positions at once; none if the check failed.
    speeds: Vec<(usize, Throughput)>,
}

impl Row {
    const HEADER: &str = "device  network     values      loss  gradients           positions  \
                          judged/s      trained/s";

    /// Checks, and then measures, a network of the preset.
    fn of(id: DeviceId, kind: NetKind, fault: bool) -> anyhow::Result<Row> {
        let net = NetConfig {
            kind,
            ..preset_net()
        };
        let compute = match Compute::open(id) {
            Ok(compute) => compute,
            Err(error) => {
                return Ok(Row {
                    id,
                    kind,
                    check: Err(error.to_string()),
                    speeds: Vec::new(),
                });
            }
        };
        let examine = Examine {
            net,
            compute,
            fault,
        };
        let (check, speeds) = with_game(PRESET, examine)?;
        Ok(Row {
            id,
            kind,
            check: Ok(check),
            speeds,
        })
    }

    fn line(&self) -> String {
        let start = format!("{:6}  {:8}", self.id.to_string(), self.kind.name());
        let check = match &self.check {
            Ok(check) => check,
            Err(error) => return format!("{start}  {error}"),
        };
        let checked = format!(
            "{start}  {:>8}  {:>8}  {:>9}  {}",
            scientific(check.values),
            scientific(check.loss),
            scientific(check.gradients),
            if check.passed() { "passed" } else { "FAILED" }
        );
        let Some((positions, speed)) = self.speeds.last() else {
            return checked;
        };
        let (judged, trained) = (Figure(speed.evaluated), Figure(speed.trained));
        format!(
            "{checked}  {positions:>9}  {:12}  {trained}",
            judged.to_string()
        )
    }

    fn as_json(&self) -> Json {
        let (check, error) = match &self.check {
            Ok(check) => (Some(check), None),
            Err(error) => (None, Some(error)),
        };
        let speed = |(positions, speed): &(usize, Throughput)| {
            json!({
                "positions": positions,
                "evaluations_per_second": speed.evaluated,
                "trained_per_second": speed.trained,
            })
        };
        json!({
            "device": self.id.to_string(),
            "net": self.kind.name(),
            "passed": self.complaint().is_none(),
            "error": error,
            "values": check.map(|check| check.values),
            "loss": check.map(|check| check.loss),
            "gradients": check.map(|check| check.gradients),
            "accepted": self_check::TOLERANCE,
            "speeds": self.speeds.iter().map(speed).collect::<Vec<_>>(),
        })
    }

    /// What is wrong, if something is.
    fn complaint(&self) -> Option<String> {
        let (id, name) = (self.id, self.kind.name());
        match &self.check {
            Ok(check) if check.passed() => None,
            Ok(check) => Some(format!("{id} computes wrong numbers with {name}, {check}")),
            Err(error) => Some(format!("{id}: {error}")),
        }
    }
}

fn scientific(error: f32) -> String {
    format!("{error:.0e}")
}

fn preset_net() -> NetConfig {
    let preset = config::preset(EXPERIMENTS, PRESET).expect("the preset is built in");
    let keys: toml::Table = preset.toml.parse().expect("presets are TOML");
    keys["net"]
        .clone()
        .try_into()
        .expect("presets are complete")
}

/// Checks and measures a network.
struct Examine {
    net: NetConfig,
    compute: Compute,
    fault: bool,
}

impl GameVisitor for Examine {
    type Output = (SelfCheck, Vec<(usize, Throughput)>);

    fn visit<G: Game>(self, game: Arc<G>) -> Self::Output {
        let (game, net, compute) = (&*game, &self.net, &self.compute);
        let check = match self.fault {
            true => self_check::self_check_of_fault(game, net, compute),
            false => self_check::self_check(game, net, compute),
        };
        let speeds = match check.passed() {
            true => speeds(game, net, compute),
            false => Vec::new(),
        };
        (check, speeds)
    }
}

/// Speeds at growing numbers of positions at once, as long as it takes no more than
/// about a second to work through them.
fn speeds<G: Game>(game: &G, net: &NetConfig, compute: &Compute) -> Vec<(usize, Throughput)> {
    const SIZES: [usize; 3] = [64, 512, 4096];
    let mut speeds: Vec<(usize, Throughput)> = Vec::new();
    for size in SIZES {
        let slow = |speed: &Throughput| speed.evaluated.min(speed.trained) < size as f64;
        if speeds.last().is_some_and(|(_, speed)| slow(speed)) {
            break;
        }
        let portion = Portion {
            games: (size as f64 / mean_moves(game)).ceil() as usize,
            batch_positions: size,
        };
        speeds.push((size, Throughput::measure(game, net, compute, portion)));
    }
    speeds
}
