//! Which device a run trains on, and why: a GPU only if it computes what the CPU
//! computes; with `auto` the fastest, measured on the run's own network.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};

use super::learner::LearningConfig;
use super::self_check::self_check;
use super::throughput::{Figure, Portion, Throughput, mean_moves};
use crate::game::Game;
use crate::nets::NetConfig;
use crate::nets::device::{AdapterKind, Compute, DeviceId, DeviceRequest, adapters};

/// What a run does most of its time.
#[derive(Debug, Clone, Copy)]
pub struct Workload<'a> {
    /// The networks that it trains, one after the other.
    pub nets: &'a [NetConfig],
    /// Games of self-play between two rounds of learning.
    pub games_per_round: u64,
    /// How it learns.
    pub learning: &'a LearningConfig,
}

/// A device for a run.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// The device, opened.
    pub compute: Compute,
    /// Why `auto` came to it, in a line.
    pub reason: Option<String>,
    /// Of a GPU: errors against the CPU and speeds, in lines.
    pub checks: Vec<String>,
}

/// Opens the device that was asked for. A GPU is checked and measured first, on
/// every network of the work.
///
/// # Errors
/// If there is no such device, or it computes wrong numbers; `auto` passes over
/// those.
pub fn choose<G: Game>(
    game: &G,
    request: DeviceRequest,
    work: &Workload,
) -> anyhow::Result<Chosen> {
    match request {
        DeviceRequest::Auto => Ok(fastest(game, work)),
        DeviceRequest::Fixed(DeviceId::Cpu) => Ok(Chosen::cpu(None)),
        DeviceRequest::Fixed(id) => {
            let gpu = Trial::of_gpu(game, id, work)
                .with_context(|| format!("{id} cannot be used; try --device cpu"))?;
            let cpu = Trial::measure(game, Compute::cpu(), work);
            Ok(gpu.chosen(&cpu, None))
        }
    }
}

impl Chosen {
    /// What people should know beside the name of the device, in whole lines.
    pub fn describe(&self) -> String {
        let lines = self.reason.iter().chain(&self.checks);
        lines.map(|line| format!("{line}\n")).collect()
    }

    /// The same for programs, with the name.
    pub fn about(&self) -> BTreeMap<String, String> {
        let mut facts = BTreeMap::from([("device".to_string(), self.compute.name.clone())]);
        if let Some(reason) = &self.reason {
            facts.insert("device_choice".to_string(), reason.clone());
        }
        if !self.checks.is_empty() {
            facts.insert("device_check".to_string(), self.checks.join("\n"));
        }
        facts
    }

    fn cpu(reason: Option<String>) -> Chosen {
        Chosen {
            compute: Compute::cpu(),
            reason,
            checks: Vec::new(),
        }
    }
}

/// The fastest among the CPU and the GPUs that compute rightly.
fn fastest<G: Game>(game: &G, work: &Workload) -> Chosen {
    let (mut passed_over, mut gpus) = (Vec::new(), Vec::new());
    for (number, adapter) in adapters().into_iter().enumerate() {
        let id = DeviceId::Gpu(number);
        match adapter.kind {
            // Not tried: it would take minutes to be sure that they are slow.
            AdapterKind::Software => {
                passed_over.push(format!("{id} is software on the CPU ({})", adapter.name));
            }
            AdapterKind::Other => {
                passed_over.push(format!("{id} does not say what it is ({})", adapter.name));
            }
            _ => match Trial::of_gpu(game, id, work) {
                Ok(gpu) => gpus.push(gpu),
                Err(error) => passed_over.push(format!("{error:#}")),
            },
        }
    }
    decide(gpus, passed_over, || {
        Trial::measure(game, Compute::cpu(), work)
    })
}

/// The fastest of these GPUs and the CPU, which is measured only if there are any.
fn decide(gpus: Vec<Trial>, mut passed_over: Vec<String>, cpu: impl FnOnce() -> Trial) -> Chosen {
    if gpus.is_empty() {
        if passed_over.is_empty() {
            passed_over.push("no GPU found".to_string());
        }
        let reason = format!("device cpu: {}", passed_over.join(", "));
        return Chosen::cpu(Some(reason));
    }
    let cpu = cpu();
    let mut ranking: Vec<&Trial> = gpus.iter().chain([&cpu]).collect();
    ranking.sort_by(|a, b| a.seconds_per_position.total_cmp(&b.seconds_per_position));
    let speeds: Vec<String> = ranking.iter().map(|trial| trial.speed()).collect();
    let reason = format!(
        "device {}: the fastest in a short trial, in positions of self-play a second: {}",
        ranking[0].compute.id,
        [speeds, passed_over].concat().join(", ")
    );
    ranking[0].chosen(&cpu, Some(reason))
}

/// What was found out about a device.
struct Trial {
    compute: Compute,
    /// A line for each network.
    checks: Vec<String>,
    /// Of each network, by name.
    throughputs: Vec<(&'static str, Throughput)>,
    /// Of all networks together.
    seconds_per_position: f64,
}

impl Trial {
    fn of_gpu<G: Game>(game: &G, id: DeviceId, work: &Workload) -> anyhow::Result<Trial> {
        let compute = Compute::open(id)?;
        let mut checks = Vec::new();
        for net in work.nets {
            let check = self_check(game, net, &compute);
            ensure!(
                check.passed(),
                "{id}, {}, computes wrong numbers with {}: {check}",
                compute.name,
                net.kind.name()
            );
            checks.push(format!("{} on {id}: {check}", net.kind.name()));
        }
        let trial = Trial::measure(game, compute, work);
        Ok(Trial { checks, ..trial })
    }

    fn measure<G: Game>(game: &G, compute: Compute, work: &Workload) -> Trial {
        let portion = Portion {
            games: work.games_per_round.clamp(1, 4096) as usize,
            batch_positions: work.learning.batch_positions.min(65_536),
        };
        let measured = |net: &NetConfig| {
            let throughput = Throughput::measure(game, net, &compute, portion);
            (net.kind.name(), throughput)
        };
        let throughputs: Vec<_> = work.nets.iter().map(measured).collect();
        let (moves, uses) = (mean_moves(game), work.learning.replay.mean_uses());
        let seconds = throughputs.iter();
        let seconds = seconds.map(|(_, speed)| speed.seconds_per_position(moves, uses));
        Trial {
            compute,
            checks: Vec::new(),
            seconds_per_position: seconds.sum(),
            throughputs,
        }
    }

    fn speed(&self) -> String {
        let figure = Figure(1.0 / self.seconds_per_position);
        format!("{} {figure}", self.compute.id)
    }

    /// This device, as the choice of a run, beside the CPU.
    fn chosen(&self, cpu: &Trial, reason: Option<String>) -> Chosen {
        let mut checks = self.checks.clone();
        if !self.compute.is_cpu {
            let both = self.throughputs.iter().zip(&cpu.throughputs);
            checks.extend(both.map(|((net, own), (_, on_cpu))| {
                format!(
                    "{net} on {}: {} evaluations/s and {} positions trained/s; cpu: {} and {}",
                    self.compute.id,
                    Figure(own.evaluated),
                    Figure(own.trained),
                    Figure(on_cpu.evaluated),
                    Figure(on_cpu.trained)
                )
            }));
        }
        Chosen {
            compute: self.compute.clone(),
            reason,
            checks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(id: DeviceId, evaluated: f64) -> Trial {
        let speed = Throughput {
            evaluated,
            trained: 1e9,
        };
        let is_cpu = id == DeviceId::Cpu;
        let checks = ["mlp: right".to_string()];
        Trial {
            compute: Compute {
                id,
                is_cpu,
                ..Compute::cpu()
            },
            checks: checks.into_iter().filter(|_| !is_cpu).collect(),
            throughputs: vec![("mlp", speed)],
            seconds_per_position: speed.seconds_per_position(10.0, 1.0),
        }
    }

    #[test]
    fn auto_takes_the_fastest_and_says_why() {
        let gpus = || vec![trial(DeviceId::Gpu(0), 2e6), trial(DeviceId::Gpu(1), 3e6)];
        let slower = vec!["gpu:2 is software".to_string()];
        let chosen = decide(gpus(), slower, || trial(DeviceId::Cpu, 1e6));
        assert_eq!(chosen.compute.id, DeviceId::Gpu(1));
        assert_eq!(
            chosen.reason.as_deref(),
            Some(
                "device gpu:1: the fastest in a short trial, in positions of self-play a second: \
                 gpu:1 300,000, gpu:0 200,000, cpu 100,000, gpu:2 is software"
            )
        );
        assert_eq!(
            chosen.checks,
            [
                "mlp: right",
                "mlp on gpu:1: 3.0 million evaluations/s and 1000 million positions trained/s; cpu: \
                 1.0 million and 1000 million",
            ]
        );
        let chosen = decide(gpus(), Vec::new(), || trial(DeviceId::Cpu, 4e6));
        assert_eq!(chosen.compute.id, DeviceId::Cpu);
        assert!(
            chosen
                .reason
                .unwrap()
                .starts_with("device cpu: the fastest")
        );
        assert!(chosen.checks.is_empty());
    }

    #[test]
    fn without_a_gpu_that_can_be_trusted_nothing_is_measured() {
        for (passed_over, reason) in [
            (vec![], "device cpu: no GPU found"),
            (vec!["gpu:0 is software"], "device cpu: gpu:0 is software"),
        ] {
            let passed_over = passed_over.into_iter().map(String::from).collect();
            let chosen = decide(Vec::new(), passed_over, || unreachable!("no trial"));
            assert_eq!(chosen.compute.id, DeviceId::Cpu);
            assert_eq!(chosen.reason.as_deref(), Some(reason));
        }
    }
}
