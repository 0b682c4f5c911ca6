//! What runs on a GPU, on whatever adapter comes first: a card, or Mesa's software
//! Vulkan, which `scripts/test` installs. Without an adapter these tests fail; they
//! are never passed over.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;
use tanren::games::load;
use tanren::nets::NetKind;
use tanren::nets::device::{Compute, DeviceId};
use tanren::random::Seed;
use tanren::train::learner::Learner;
use tanren::train::selfplay::{Generator, SelfPlayGame};

use crate::cli::{place, run, tanren, weights};
use crate::nets::{adam, assert_packed_planes_equal_dense_planes, small_net};
use crate::train::{ALL_PAIRINGS, config};

#[test]
fn packed_planes_equal_dense_planes_on_the_gpu() {
    let gpu = Compute::open(DeviceId::Gpu(0)).unwrap();
    assert_packed_planes_equal_dense_planes(&gpu.device);
    assert_packed_planes_equal_dense_planes(&gpu.device.autodiff());
}

#[test]
fn games_in_halves_are_the_same_games() {
    let game = load("march-blitz").unwrap().as_leaper().unwrap().clone();
    let config = config(ALL_PAIRINGS);
    let generator = Generator {
        game: &game,
        config: &config,
        streams: Seed(2).purpose("selfplay"),
        games_per_round: 9,
    };
    let gpu = Compute::open(DeviceId::Gpu(0)).unwrap();
    let evaluator =
        Learner::new(&game, &small_net(NetKind::Mlp), &adam(0.003), gpu, Seed(4)).evaluator();
    let together = generator.play_together(0, 0..9, &mut evaluator.clone());
    let halves = generator.play_in_halves(0, 9, &evaluator);
    let positions = |games: &[SelfPlayGame<_>]| -> Vec<_> {
        let samples = games.iter().map(|game| &game.samples);
        samples.map(|samples| samples.features.clone()).collect()
    };
    assert!(positions(&together) == positions(&halves));
    for (a, b) in together.iter().zip(&halves) {
        for (a, b) in a.samples.targets.iter().zip(&b.samples.targets) {
            assert!((a - b).abs() < 1e-5, "{a} and {b}");
        }
    }
}

/// Trains the smoke preset; returns what was said.
fn smoke(net: &str, seed: &str, device: &str, run_dir: &Path) -> String {
    let net = format!("net.kind={net}");
    let arguments = ["smoke", "--seed", seed, "--set", &net, "--device", device];
    let mut command = tanren(&["train"]);
    run(command.args(arguments).arg("--out").arg(run_dir), 0).1
}

fn last_loss(run_dir: &Path) -> f64 {
    let metrics = fs::read_to_string(run_dir.join("metrics.jsonl")).unwrap();
    let last: Json = serde_json::from_str(metrics.lines().last().unwrap()).unwrap();
    last["loss"].as_f64().unwrap()
}

/// Share of the CPU's last loss by which the GPU's differs.
fn losses_apart(net: &str, seed: &str) -> f64 {
    let (_keep, on_cpu) = place();
    let (_keep, on_gpu) = place();
    let said = smoke(net, seed, "cpu", &on_cpu);
    assert!(!said.contains("against the CPU"), "{said}");
    let said = smoke(net, seed, "gpu", &on_gpu);
    for expected in [
        "relative errors against the CPU",
        "gpu:0: ",
        "cpu: ",
        "evaluations/s",
        "trained/s",
    ] {
        assert!(
            said.contains(expected),
            "{expected:?} is missing in\n{said}"
        );
    }
    let (cpu, gpu) = (last_loss(&on_cpu), last_loss(&on_gpu));
    (cpu - gpu).abs() / cpu
}

/// With two of three seeds, since in one run of ten or so a value's last digit makes
/// another move, after which it is another run, with a loss of its own.
fn learns_what_the_cpu_learns(net: &str) {
    let mut apart = Vec::new();
    let near = |apart: &[f64]| apart.iter().filter(|&&apart| apart < 0.02).count();
    for seed in ["1", "2", "3"] {
        apart.push(losses_apart(net, seed));
        if near(&apart) == 2 {
            return;
        }
    }
    panic!("{net}: losses on CPU and GPU lie apart by {apart:?} of the CPU's");
}

#[test]
fn the_gpu_learns_an_mlp_as_the_cpu_does() {
    learns_what_the_cpu_learns("mlp");
}

#[test]
fn the_gpu_learns_convolutions_as_the_cpu_does() {
    learns_what_the_cpu_learns("conv");
}

#[test]
fn the_gpu_learns_residual_blocks_as_the_cpu_does() {
    learns_what_the_cpu_learns("residual");
}

/// On an adapter whose kernels are not tuned: tuning may choose others the next time.
#[test]
fn a_run_goes_on_where_it_was_and_as_if_it_had_not_stopped() {
    let (_keep, run_dir) = place();
    let small = [
        "--checkpoint-seconds",
        "0",
        "--set",
        "games=48",
        "--set",
        "rounds_per_step=1",
        "--set",
        "evaluation.final_pairs=1",
    ];
    let mut command = tanren(&["train", "smoke", "--device", "gpu", "--out"]);
    run(command.arg(&run_dir).args(small), 0);
    let whole = weights(&run_dir);
    // As if it had been killed after its second step of four.
    fs::remove_file(run_dir.join("summary.json")).unwrap();
    for later in ["model", "checkpoints/000003", "checkpoints/000004"] {
        fs::remove_dir_all(run_dir.join(later)).unwrap();
    }
    let mut resume = tanren(&["train", "--device", "auto", "--resume"]);
    let (_, said) = run(resume.arg(&run_dir), 0);
    assert!(said.contains("relative errors against the CPU"), "{said}");
    assert!(weights(&run_dir) == whole);
    let about = fs::read(run_dir.join("about.json")).unwrap();
    let about: Json = serde_json::from_slice(&about).unwrap();
    let [first, second] = [0, 1].map(|session| &about["sessions"][session]);
    assert_eq!(second["from_step"], 2, "{about}");
    assert!(first["facts"]["device"].is_string(), "{about}");
    assert_eq!(first["facts"]["device"], second["facts"]["device"]);
}

#[test]
fn devices_are_checked_and_a_changed_weight_is_refused() {
    let (stdout, _) = run(&mut tanren(&["devices", "--check", "--json"]), 0);
    let found: Json = serde_json::from_str(&stdout).unwrap();
    let checks = found["checks"].as_array().unwrap();
    let gpus = found["gpus"].as_array().unwrap();
    assert!(!gpus.is_empty(), "{stdout}");
    assert_eq!(checks.len(), 3 * (gpus.len() + 1), "{stdout}");
    for check in checks {
        assert_eq!(check["passed"], true, "{stdout}");
        let speed = &check["speeds"][0];
        assert_eq!(speed["positions"], 64, "{stdout}");
        for key in ["evaluations_per_second", "trained_per_second"] {
            assert!(speed[key].as_f64().unwrap() > 0.0, "{stdout}");
        }
    }

    let (stdout, stderr) = run(&mut tanren(&["devices", "--check", "--fault"]), 1);
    assert!(
        stdout.contains("FAILED") && !stdout.contains("passed"),
        "{stdout}"
    );
    for net in ["mlp", "conv", "residual"] {
        let expected = format!("gpu:0 computes wrong numbers with {net}, relative errors");
        assert!(stderr.contains(&expected), "{stderr}");
    }
    assert!(stderr.contains("(accepted: 1e-3)"), "{stderr}");
}

#[test]
fn auto_passes_over_software() {
    let (stdout, _) = run(&mut tanren(&["devices", "--json"]), 0);
    let found: Json = serde_json::from_str(&stdout).unwrap();
    let (_keep, run_dir) = place();
    let small = ["--set", "games=24", "--set", "evaluation.final_pairs=1"];
    let mut command = tanren(&["train", "smoke", "--out"]);
    let (_, said) = run(command.arg(&run_dir).args(small), 0);
    for gpu in found["gpus"].as_array().unwrap() {
        if gpu["kind"].as_str().unwrap().starts_with("software") {
            let expected = format!("{} is software on the CPU", gpu["device"].as_str().unwrap());
            assert!(said.contains(&expected), "{said}");
        }
    }
}
