//! The binary, as people use it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

pub(crate) fn tanren(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tanren"));
    command.args(arguments);
    // Mesa complains about its absence on every call.
    command.env("XDG_RUNTIME_DIR", std::env::temp_dir());
    command
}

/// Runs to the end; the exit code must be `code`.
pub(crate) fn run(command: &mut Command, code: i32) -> (String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let (stdout, stderr) = (text(&stdout), text(&stderr));
    assert_eq!(status.code(), Some(code), "{command:?}\n{stdout}\n{stderr}");
    (stdout, stderr)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A place for a run that does not exist yet.
pub(crate) fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let run = directory.path().join("run");
    (directory, run)
}

fn train(out: &Path, more: &[&str]) -> Command {
    let mut command = tanren(&["train", "smoke", "--device", "cpu", "--out"]);
    command.arg(out).args(more);
    command
}

pub(crate) fn weights(run: &Path) -> Vec<u8> {
    fs::read(run.join("model/weights.safetensors")).unwrap()
}

#[test]
fn smoke_run_from_start_to_model() {
    let (_keep, run_dir) = place();
    let (stdout, stderr) = run(&mut train(&run_dir, &[]), 0);
    for expected in [
        "strength at 1 ply",
        "against baby",
        "against easy",
        "games/s",
        "tanren play model:",
        "tanren match model:",
        "model",
    ] {
        assert!(
            stdout.contains(expected),
            "{expected:?} is missing in\n{stdout}"
        );
    }
    for expected in [
        "Linear {d_input: 256",
        "4129 parameters",
        "on CPU",
        "step 10/10",
    ] {
        assert!(
            stderr.contains(expected),
            "{expected:?} is missing in\n{stderr}"
        );
    }
    for file in [
        "config.toml",
        "about.json",
        "metrics.jsonl",
        "summary.json",
        "model/model.toml",
    ] {
        assert!(run_dir.join(file).is_file(), "{file} is missing");
    }
    let summary: serde_json::Value =
        serde_json::from_slice(&fs::read(run_dir.join("summary.json")).unwrap()).unwrap();
    assert_eq!(summary["game"], "march-blitz");
    assert_eq!(summary["net"], "mlp");
    assert_eq!(summary["games"], 480);
    let easy = &summary["strength"][1];
    assert_eq!(
        (easy["opponent"].as_str(), easy["plies"].as_u64()),
        (Some("easy"), Some(1))
    );
    assert_eq!(easy["games"], 100);
    let number = |key: &str| easy[key].as_f64().unwrap();
    assert!(number("low") <= number("score") && number("score") <= number("high"));
    assert_eq!(
        fs::read_to_string(run_dir.join("metrics.jsonl"))
            .unwrap()
            .lines()
            .count(),
        10
    );

    let (stdout, _) = run(tanren(&["train", "--resume"]).arg(&run_dir), 0);
    assert!(stdout.contains("finished already"), "{stdout}");
    let (_, stderr) = run(&mut train(&run_dir, &[]), 2);
    assert!(stderr.contains("--resume"), "{stderr}");
}

#[test]
fn runs_are_reported_side_by_side() {
    let (keep, first) = place();
    let second = keep.path().join("second");
    run(&mut train(&first, &[]), 0);
    run(
        &mut train(&second, &["--set", "net.kind=conv", "--set", "games=48"]),
        0,
    );
    assert!(first.join("report.html").is_file());
    let page = keep.path().join("page.html");
    let (stdout, _) = run(
        tanren(&["report"])
            .args([&first, &second])
            .arg("--out")
            .arg(&page),
        0,
    );
    assert!(stdout.contains("| run ") && stdout.contains("| second ") && stdout.contains("conv"));
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("<svg") && page.contains("second") && page.contains("EasyAI"));
    let (_, stderr) = run(tanren(&["report"]).arg(keep.path()), 2);
    assert!(stderr.contains("is no run folder"), "{stderr}");
}

#[test]
fn architectures_are_compared_from_start_to_report() {
    let (_keep, whole) = place();
    let (stdout, _) = run(
        tanren(&["train", "compare-smoke", "--device", "cpu", "--out"]).arg(&whole),
        0,
    );
    for expected in [
        "| network",
        "| mlp-1",
        "| conv-1",
        "| residual-1",
        "report.html",
    ] {
        assert!(
            stdout.contains(expected),
            "{expected:?} is missing in\n{stdout}"
        );
    }
    let page = fs::read_to_string(whole.join("report.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("residual-1"));
    let entrants = ["entrants/mlp-1", "entrants/conv-1", "entrants/residual-1"];
    let (stdout, _) = run(
        tanren(&["report"]).args(entrants.map(|entrant| whole.join(entrant))),
        0,
    );
    assert!(stdout.contains("residual"), "{stdout}");

    // Killed on the way and resumed, the networks are the same.
    let (_keep, killed) = place();
    let mut child = tanren(&[
        "train",
        "compare-smoke",
        "--device",
        "cpu",
        "--checkpoint-seconds",
        "0",
        "--out",
    ])
    .arg(&killed)
    .spawn()
    .unwrap();
    while !killed.join("checkpoints/000060").exists() {
        assert!(
            child.try_wait().unwrap().is_none(),
            "the run was too fast to be killed"
        );
        thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    run(tanren(&["train", "--resume"]).arg(&killed), 0);
    for entrant in entrants {
        assert!(
            weights(&whole.join(entrant)) == weights(&killed.join(entrant)),
            "{entrant}"
        );
    }

    let (_, stderr) = run(&mut tanren(&["compare", "mlp", "cnn"]), 2);
    assert!(stderr.contains("residual"), "{stderr}");
}

#[test]
fn werewolf_from_simulation_to_table() {
    let (stdout, _) = run(
        &mut tanren(&["werewolf", "simulate", "--games", "200000", "--json"]),
        0,
    );
    let result: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let number = |key: &str| result[key].as_f64().unwrap();
    assert_eq!(number("games"), 200_000.0);
    // Exactly 36.2701% by recursion; four standard errors are 0.43 points.
    assert!((number("village") - 0.362_701).abs() < 0.0043, "{stdout}");

    let (_keep, run_dir) = place();
    run(
        tanren(&["train", "werewolf-smoke", "--out"]).arg(&run_dir),
        0,
    );
    let (stdout, _) = run(
        tanren(&["werewolf", "table", "--games", "200", "--no-references"]).arg(&run_dir),
        0,
    );
    for expected in ["paper, player O", "player N", "O less N", "company"] {
        assert!(
            stdout.contains(expected),
            "{expected:?} is missing in\n{stdout}"
        );
    }
    let (stdout, _) = run(
        tanren(&["werewolf", "explain", "--role", "seer"]).arg(&run_dir),
        0,
    );
    assert!(stdout.contains("Coming out as the seer"), "{stdout}");
    let (stdout, _) = run(
        tanren(&["werewolf", "watch", "--seed", "3", "--run"]).arg(&run_dir),
        0,
    );
    assert!(
        stdout.contains("Day 0") && stdout.contains("win"),
        "{stdout}"
    );
}

#[test]
fn the_models_of_the_repository_are_built_in() {
    let elsewhere = tempfile::tempdir().unwrap();
    let conv = "model:models/march-blitz/conv";
    let mut play = tanren(&["match", conv, "baby", "--pairs", "2", "--json"]);
    let (stdout, _) = run(play.current_dir(&elsewhere), 0);
    assert!(stdout.contains("\"pairs\":2,"), "{stdout}");
}

#[test]
fn threads_do_not_matter_and_seeds_do() {
    for net in ["mlp", "conv"] {
        let weights_with = |more: &[&str]| {
            let (_keep, run_dir) = place();
            let net = format!("net.kind={net}");
            let size = ["--set", "games=96", "--set", &net];
            run(train(&run_dir, &size).args(more), 0);
            weights(&run_dir)
        };
        let one = weights_with(&["--threads", "1"]);
        assert!(
            one == weights_with(&["--threads", "2"]),
            "{net}: threads matter"
        );
        assert!(
            one != weights_with(&["--seed", "2"]),
            "{net}: seeds do not matter"
        );
    }
}

#[test]
fn killed_at_any_point_and_resumed_gives_the_same_weights() {
    let long = ["--set", "games=6000", "--checkpoint-seconds", "0"];
    let (_keep, whole) = place();
    run(&mut train(&whole, &long), 0);
    let (_keep, killed) = place();
    let mut kills = 0;
    let mut command = train(&killed, &long);
    // Later and later, so that the run gets somewhere between two kills.
    for milliseconds in (100..).step_by(45) {
        let mut child = command.spawn().unwrap();
        thread::sleep(Duration::from_millis(milliseconds));
        // SIGKILL: nothing in the process can react to it.
        child.kill().unwrap();
        if child.wait().unwrap().success() {
            break;
        }
        kills += 1;
        command = tanren(&["train", "--checkpoint-seconds", "0", "--resume"]);
        command.arg(&killed);
        if !killed.join("config.toml").exists() {
            command = train(&killed, &long);
        }
    }
    assert!(kills >= 2, "the run was too fast to be killed");
    assert!(weights(&whole) == weights(&killed), "after {kills} kills");
    let metrics = |run: &Path| {
        let text = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
        let losses = text.lines().map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            (line["step"].as_u64(), line["loss"].as_f64())
        });
        losses.collect::<Vec<_>>()
    };
    assert_eq!(metrics(&whole), metrics(&killed));
}

#[test]
fn wrong_arguments_are_usage_errors_that_name_the_fix() {
    let cases: &[(&[&str], &str)] = &[
        (&["train", "march-blits"], "march-blitz"),
        (&["train", "--set", "net.kindd=mlp"], "`net.kind`"),
        (&["train", "--set", "net.kind=cnn"], "mlp"),
        (&["train", "--set", "games=many"], "games"),
        (&["train", "--set", "games=0"], "1 and more"),
        (&["train", "--set", "learning.rate=-1"], "above 0"),
        (&["train", "--set", "net.mlp.hidden=0"], "1 to 4096"),
        (
            &["train", "--set", "games_per_round=100000000"],
            "1 to 1000000",
        ),
        (
            &["train", "--set", "learning.replay.uses=1000000000000000"],
            "1 to 1000",
        ),
        (
            &["train", "--set", "selfplay.pairings=[\"net-hard\"]"],
            "net, random and easy",
        ),
        (&["train", "--set", "game=march-blits"], "march-blitz"),
        (&["train", "--device", "cuda"], "auto, cpu, gpu and gpu:N"),
        (&["train", "--resume", "/nonexistent"], "/nonexistent"),
        (&["games", "show", "march-blits"], "march-blitz"),
    ];
    for (arguments, expected) in cases {
        let directory = tempfile::tempdir().unwrap();
        let (_, stderr) = run(tanren(arguments).current_dir(&directory), 2);
        assert!(
            stderr.contains(expected),
            "{arguments:?}: {expected:?} is missing in\n{stderr}"
        );
        let left = fs::read_dir(&directory).unwrap().count();
        assert_eq!(left, 0, "{arguments:?} left something behind");
    }
}

#[test]
fn a_network_that_blows_up_stops_the_run_with_advice() {
    let (_keep, run_dir) = place();
    let wild = [
        "--set",
        "learning.rate=90",
        "--set",
        "learning.final_rate=90",
    ];
    let (_, stderr) = run(&mut train(&run_dir, &wild), 1);
    assert!(
        stderr.contains("it has collapsed; lower learning.rate"),
        "{stderr}"
    );
    assert!(!run_dir.join("model").exists());
}

#[test]
fn a_young_network_may_say_the_same_everywhere() {
    // Seed 3 makes a network that says nearly the same everywhere after 96 games.
    let (_keep, run_dir) = place();
    run(
        &mut train(&run_dir, &["--set", "net.kind=conv", "--seed", "3"]),
        0,
    );
    let metrics = fs::read_to_string(run_dir.join("metrics.jsonl")).unwrap();
    let spread = |line: &str| {
        let metrics: serde_json::Value = serde_json::from_str(line).unwrap();
        metrics["spread"].as_f64().unwrap()
    };
    assert!(metrics.lines().any(|line| spread(line) < 0.05), "{metrics}");
    assert!(spread(metrics.lines().last().unwrap()) > 0.2, "{metrics}");
}

#[test]
fn a_damaged_checkpoint_is_named_and_the_one_before_is_used() {
    let (_keep, run_dir) = place();
    let (_keep, whole) = place();
    let steps = ["--checkpoint-seconds", "0"];
    run(&mut train(&whole, &steps), 0);
    run(&mut train(&run_dir, &steps), 0);
    // As if the run had been killed before its end.
    fs::remove_file(run_dir.join("summary.json")).unwrap();
    fs::remove_dir_all(run_dir.join("model")).unwrap();
    let newest = run_dir.join("checkpoints/000010/state/net.bpk");
    let mut bytes = fs::read(&newest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&newest, bytes).unwrap();
    let (_, stderr) = run(tanren(&["train", "--resume"]).arg(&run_dir), 0);
    assert!(stderr.contains("net.bpk"), "{stderr}");
    assert!(weights(&whole) == weights(&run_dir));
}

#[test]
fn a_rules_file_of_ones_own_is_trained_on() {
    let (keep, run_dir) = place();
    let (toml, _) = run(
        &mut tanren(&["games", "show", "breakthrough-6", "--toml"]),
        0,
    );
    let rules = keep.path().join("mine.toml");
    fs::write(&rules, toml.replace("breakthrough-6", "mine")).unwrap();
    let game = format!("game={}", rules.display());
    run(
        &mut train(&run_dir, &["--set", &game, "--set", "games=48"]),
        0,
    );
    let card = fs::read_to_string(run_dir.join("model/model.toml")).unwrap();
    assert!(card.contains("game = \"mine\""), "{card}");

    // Changed rules are noticed on resume.
    fs::remove_file(run_dir.join("summary.json")).unwrap();
    let text = fs::read_to_string(&rules).unwrap();
    let changed = text.replace("stuck = \"loss\"", "stuck = \"win\"");
    assert!(text != changed);
    fs::write(&rules, changed).unwrap();
    let (_, stderr) = run(tanren(&["train", "--resume"]).arg(&run_dir), 1);
    assert!(stderr.contains("rules of"), "{stderr}");
}

#[test]
fn without_a_gpu_auto_takes_the_cpu_and_gpu_is_an_error() {
    let no_driver = |arguments: &[&str]| {
        let mut command = tanren(arguments);
        for variable in ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"] {
            command.env(variable, "/nonexistent");
        }
        command
    };
    let (stdout, _) = run(&mut no_driver(&["devices"]), 0);
    assert!(stdout.contains("no GPU"), "{stdout}");
    let (_keep, run_dir) = place();
    let out = run_dir.to_str().unwrap();
    let small = ["train", "smoke", "--set", "games=24", "--out", out];
    let (_, stderr) = run(no_driver(&small).args(["--device", "gpu"]), 1);
    assert!(
        stderr.contains("no GPU adapter found; use --device cpu"),
        "{stderr}"
    );
    let (_keep, run_dir) = place();
    let small = [
        "train",
        "smoke",
        "--set",
        "games=24",
        "--out",
        run_dir.to_str().unwrap(),
    ];
    let (_, stderr) = run(&mut no_driver(&small), 0);
    assert!(stderr.contains("device cpu: no GPU found"), "{stderr}");
    let about = fs::read_to_string(run_dir.join("about.json")).unwrap();
    assert!(about.contains("device cpu: no GPU found"), "{about}");
}
