//! The laboratory, on a toy experiment: exact resume, checkpoints that are
//! damaged or cannot be written, and the texts of configuration errors.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use proptest::prelude::*;
use tanren::experiments::EXPERIMENTS;
use tanren::lab::checkpoint::{self, KEEP};
use tanren::lab::config::{self, Resolved};
use tanren::lab::folder::{CHECKPOINTS, CONFIG, FolderError, METRICS, SUMMARY};
use tanren::lab::{
    AnyExperiment, Ending, Metrics, Options, Progress, RunError, RunFolder, Setup, files,
};

use toy::{FAULT, Fault, Toy};

/// A random walk that can be told to fail.
mod toy {
    use std::cell::Cell;
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use serde::{Deserialize, Serialize};
    use serde_json::json;
    use tanren::lab::{Experiment, FinishedRun, Metrics, Preset, Report, Setup, files};
    use tanren::random::{Rng, RngExt, Seed};

    /// Something that happens to a run. Not part of the configuration, since it
    /// should leave no trace in the result.
    #[derive(Debug, Clone, Copy)]
    pub enum Fault {
        None,
        /// Somebody sets the flag during this step.
        Stop(u64, &'static AtomicBool),
        /// This step fails; as good as a kill, since nothing is saved then.
        Fail(u64),
        /// A worker panics in this step.
        Panic(u64),
        /// The disk is full when the state after this step is saved.
        FullDisk(u64),
    }

    thread_local! {
        /// The fault of runs on this thread.
        pub static FAULT: Cell<Fault> = const { Cell::new(Fault::None) };
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct ToyConfig {
        pub walk: WalkConfig,
        pub steps: u64,
        pub start: f32,
        pub pause_milliseconds: u32,
        pub nan_steps: Vec<u64>,
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct WalkConfig {
        pub kind: Kind,
        pub width: f64,
        pub both_ways: bool,
    }

    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Kind {
        Plain,
        Squared,
    }

    #[derive(Debug, Serialize, Deserialize)]
    pub struct Toy {
        config: ToyConfig,
        position: f64,
        rng: Rng,
        done: u64,
    }

    impl Experiment for Toy {
        const NAME: &'static str = "toy";
        const PRESETS: &'static [Preset] = &[
            Preset {
                name: "toy-smoke",
                about: "a short walk",
                toml: SMOKE,
            },
            Preset {
                name: "toy-long",
                about: "a long walk",
                toml: LONG,
            },
        ];
        type Config = ToyConfig;

        fn validate(config: &ToyConfig) -> anyhow::Result<()> {
            let width = config.walk.width;
            anyhow::ensure!(
                (0.0..=10.0).contains(&width),
                "walk.width = {width} is out of range: accepted are 0 to 10"
            );
            Ok(())
        }

        fn steps(config: &ToyConfig) -> u64 {
            config.steps
        }

        fn start(config: &ToyConfig, setup: &Setup) -> anyhow::Result<Toy> {
            let rng = Seed(setup.seed).stream("walk");
            Ok(Toy {
                config: config.clone(),
                position: f64::from(config.start),
                rng,
                done: 0,
            })
        }

        fn load(_: &ToyConfig, _: &Setup, directory: &Path) -> anyhow::Result<Toy> {
            let mut toy: Toy = serde_json::from_slice(&files::read(&directory.join("toy.json"))?)?;
            let bits = files::read(&directory.join("walk").join("position"))?;
            toy.position = f64::from_le_bytes(bits.as_slice().try_into()?);
            Ok(toy)
        }

        fn save(&self, directory: &Path) -> anyhow::Result<()> {
            fs::create_dir(directory.join("walk"))?;
            let position = directory.join("walk").join("position");
            files::write_atomically(&position, &self.position.to_le_bytes())?;
            if let Fault::FullDisk(step) = FAULT.get()
                && step == self.done
            {
                fs::write("/dev/full", "x")?;
            }
            Ok(files::write_atomically(
                &directory.join("toy.json"),
                &serde_json::to_vec(self)?,
            )?)
        }

        fn describe(&self) -> String {
            format!("a walk from {}", self.config.start)
        }

        fn about(&self) -> BTreeMap<String, String> {
            BTreeMap::from([("legs".to_string(), "2".to_string())])
        }

        fn step(&mut self, metrics: &mut Metrics) -> anyhow::Result<()> {
            std::thread::sleep(Duration::from_millis(self.config.pause_milliseconds.into()));
            self.done += 1;
            match FAULT.get() {
                Fault::Stop(step, flag) if step == self.done => flag.store(true, Ordering::Relaxed),
                Fault::Fail(step) if step == self.done => anyhow::bail!("stumbled"),
                Fault::Panic(step) if step == self.done => {
                    rayon::join(|| panic!("broke a leg"), || ());
                }
                _ => {}
            }
            let draw: f64 = self.rng.random();
            let size = match self.config.walk.kind {
                Kind::Plain => draw,
                Kind::Squared => draw * draw,
            };
            self.position += self.config.walk.width * (size - 0.5);
            let is_nan = self.config.nan_steps.contains(&self.done);
            metrics.set("position", if is_nan { f64::NAN } else { self.position });
            metrics.set("draw", draw);
            if self.done.is_multiple_of(5) {
                metrics.note(format!("at {:.3}", self.position));
            }
            metrics.status(format!("draw {draw:.3}"));
            Ok(())
        }

        fn finish(self, run: &FinishedRun) -> anyhow::Result<Report> {
            files::write_dir_atomically(&run.model_dir(), |model| {
                files::write_atomically(&model.join("position"), &self.position.to_le_bytes())
            })?;
            Ok(Report {
                summary: json!({ "position": self.position, "steps": self.done }),
                text: format!("walked to {:.3}", self.position),
            })
        }
    }

    const SMOKE: &str = r#"experiment = "toy"
# Number of steps.
steps = 12
start = 0.1
pause_milliseconds = 0
nan_steps = []

[walk]
kind = "plain"
width = 1.0
both_ways = true
"#;

    const LONG: &str = r#"experiment = "toy"
steps = 1000
start = 0.1
pause_milliseconds = 10
nan_steps = []
walk = { kind = "squared", width = 2.5, both_ways = true }
"#;
}

const TOYS: &[AnyExperiment] = &[AnyExperiment::of::<Toy>()];
const STEPS: u64 = 12;
const NEVER: Duration = Duration::from_secs(1_000_000);
const EVERY_STEP: Duration = Duration::ZERO;

/// A directory with room for run folders.
fn room() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory can be made")
}

fn resolve(source: &str, sets: &[&str]) -> Result<Resolved, String> {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    config::resolve(TOYS, source, &sets).map_err(|error| error.to_string())
}

fn setup(seed: u64) -> Setup {
    Setup {
        seed,
        device: "auto".to_string(),
    }
}

fn create(path: &Path) -> RunFolder {
    RunFolder::create(path, resolve("toy-smoke", &[]).unwrap(), setup(7)).unwrap()
}

/// Runs with a fault and a checkpoint as often as told.
fn run(folder: &mut RunFolder, fault: Fault, every: Duration) -> Result<Ending, RunError> {
    static NOT_STOPPED: AtomicBool = AtomicBool::new(false);
    let stop = match fault {
        Fault::Stop(_, flag) => flag,
        _ => &NOT_STOPPED,
    };
    FAULT.set(fault);
    let progress = Progress::quiet();
    let ending = folder.run(Options {
        checkpoint_every: every,
        stop,
        progress,
    });
    FAULT.set(Fault::None);
    ending
}

/// A stop after step `step`, which may be 0.
fn stop_after(step: u64) -> Fault {
    Fault::Stop(step, Box::leak(Box::new(AtomicBool::new(step == 0))))
}

/// Makes a run, saves after every step, and stops after `step`.
fn run_until(path: &Path, step: u64) {
    let ending = run(&mut create(path), stop_after(step), EVERY_STEP).unwrap();
    assert_eq!(ending, Ending::Stopped { step, steps: STEPS });
}

fn resume(path: &Path) -> Result<Ending, RunError> {
    run(
        &mut RunFolder::open(path, TOYS).unwrap(),
        Fault::None,
        NEVER,
    )
}

/// What must not depend on how often a run was stopped: everything but times.
fn results(path: &Path) -> (Vec<u8>, String, Vec<serde_json::Value>) {
    let model = fs::read(path.join("model").join("position")).unwrap();
    let summary = fs::read_to_string(path.join(SUMMARY)).unwrap();
    let metrics = fs::read_to_string(path.join(METRICS)).unwrap();
    let without_seconds = |line: &str| {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        line.as_object_mut().unwrap().remove("seconds").unwrap();
        line
    };
    (
        model,
        summary,
        metrics.lines().map(without_seconds).collect(),
    )
}

fn uninterrupted_results() -> (Vec<u8>, String, Vec<serde_json::Value>) {
    let room = room();
    let path = room.path().join("run");
    run(&mut create(&path), Fault::None, NEVER).unwrap();
    results(&path)
}

fn state_file(path: &Path, step: u64, name: &str) -> PathBuf {
    path.join(CHECKPOINTS).join(format!("{step:06}")).join(name)
}

fn checkpoint_steps(path: &Path) -> Vec<u64> {
    checkpoint::steps(&path.join(CHECKPOINTS)).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_stops_and_kills_leave_the_result_as_it_is(
        faults in prop::collection::vec((0..=STEPS, any::<bool>(), any::<bool>()), 0..5),
    ) {
        let room = room();
        let path = room.path().join("run");
        drop(create(&path));
        for (step, is_kill, saves_often) in faults {
            let fault = if is_kill { Fault::Fail(step) } else { stop_after(step) };
            let mut folder = RunFolder::open(&path, TOYS).unwrap();
            // An error is what a kill looks like from here.
            let _ = run(&mut folder, fault, if saves_often { EVERY_STEP } else { NEVER });
        }
        resume(&path).unwrap();
        prop_assert_eq!(results(&path), uninterrupted_results());
    }
}

#[test]
fn the_seed_is_part_of_the_result() {
    let room = room();
    let walk = |seed: u64| {
        let path = room.path().join(seed.to_string());
        let config = resolve("toy-smoke", &[]).unwrap();
        let mut folder = RunFolder::create(&path, config, setup(seed)).unwrap();
        run(&mut folder, Fault::None, NEVER).unwrap();
        results(&path)
    };
    assert_eq!(walk(7), uninterrupted_results());
    assert_ne!(walk(8), uninterrupted_results());
}

#[test]
fn a_stop_saves_and_a_later_process_goes_on() {
    let room = room();
    let path = room.path().join("run");
    run_until(&path, 4);
    assert_eq!(checkpoint_steps(&path), [2, 3, 4]);
    assert!(!RunFolder::open(&path, TOYS).unwrap().is_finished());
    assert!(
        matches!(resume(&path), Ok(Ending::Finished { text }) if text.starts_with("walked to"))
    );

    let folder = RunFolder::open(&path, TOYS).unwrap();
    assert!(folder.is_finished());
    assert_eq!(folder.about().seed, 7);
    let sessions = &folder.about().sessions;
    assert_eq!(
        sessions
            .iter()
            .map(|session| session.from_step)
            .collect::<Vec<_>>(),
        [0, 4]
    );
    assert_eq!(
        sessions[1].facts,
        BTreeMap::from([("legs".to_string(), "2".to_string())])
    );
}

#[test]
fn a_kill_before_the_results_are_complete_repeats_them() {
    let room = room();
    let path = room.path().join("run");
    run(&mut create(&path), Fault::None, NEVER).unwrap();
    // As if killed after the model, before the summary.
    fs::remove_file(path.join(SUMMARY)).unwrap();
    resume(&path).unwrap();
    assert_eq!(results(&path), uninterrupted_results());
}

#[test]
fn time_adds_up_over_resumes() {
    let room = room();
    let path = room.path().join("run");
    let config = resolve("toy-smoke", &["pause_milliseconds=5"]).unwrap();
    let mut folder = RunFolder::create(&path, config, setup(1)).unwrap();
    run(&mut folder, stop_after(6), NEVER).unwrap();
    drop(folder);
    resume(&path).unwrap();
    let metrics = fs::read_to_string(path.join(METRICS)).unwrap();
    let seconds = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["seconds"].as_f64().unwrap()
    };
    let seconds: Vec<f64> = metrics.lines().map(seconds).collect();
    assert!(seconds.is_sorted(), "{seconds:?}");
    assert!(seconds[11] >= 0.060, "{seconds:?}");
}

#[test]
fn a_resume_cuts_the_metrics_back_to_its_checkpoint() {
    let room = room();
    let path = room.path().join("run");
    run_until(&path, 4);
    let metrics = path.join(METRICS);
    let kept = fs::read_to_string(&metrics).unwrap();
    // What a kill leaves behind: a step that was not saved, and half of a line.
    fs::write(
        &metrics,
        format!("{kept}{{\"step\":5,\"seconds\":1.0}}\n{{\"step\":6,\"sec"),
    )
    .unwrap();
    let mut folder = RunFolder::open(&path, TOYS).unwrap();
    run(&mut folder, stop_after(0), NEVER).unwrap();
    assert_eq!(fs::read_to_string(&metrics).unwrap(), kept);
    run(&mut folder, Fault::None, NEVER).unwrap();
    assert_eq!(results(&path), uninterrupted_results());
}

#[test]
fn a_damaged_checkpoint_is_passed_over() {
    let flip = |file: &Path| {
        let mut content = fs::read(file).unwrap();
        let middle = content.len() / 2;
        content[middle] ^= 1;
        fs::write(file, content).unwrap();
    };
    let truncate = |file: &Path| {
        let content = fs::read(file).unwrap();
        fs::write(file, &content[..content.len() - 1]).unwrap();
    };
    let delete = |file: &Path| fs::remove_file(file).unwrap();
    let damages: [&dyn Fn(&Path); 3] = [&flip, &truncate, &delete];
    let files = [
        "state/toy.json",
        "state/walk/position",
        "manifest.json",
        "manifest.sha256",
    ];
    let expected = uninterrupted_results();
    for (damage, name) in damages
        .iter()
        .flat_map(|damage| files.map(|name| (damage, name)))
    {
        let room = room();
        let path = room.path().join("run");
        run_until(&path, 4);
        damage(&state_file(&path, 4, name));

        let found = checkpoint::newest(&path.join(CHECKPOINTS), &path.join(METRICS)).unwrap();
        assert_eq!(found.checkpoint.unwrap().standing.step, 3);
        let texts: Vec<String> = found
            .damaged
            .iter()
            .map(|damage| damage.to_string())
            .collect();
        assert_eq!(texts.len(), 1);
        // A manifest and its hash that differ: it is the manifest that is blamed.
        let blamed = if texts[0].contains("missing") {
            name
        } else {
            &name.replace("sha256", "json")
        };
        let file = state_file(&path, 4, blamed).display().to_string();
        assert!(
            texts[0].starts_with(&format!("{file} is damaged: it ")),
            "{}",
            texts[0]
        );

        // The damaged one goes once the run has left it behind.
        run(
            &mut RunFolder::open(&path, TOYS).unwrap(),
            Fault::Fail(5),
            EVERY_STEP,
        )
        .unwrap_err();
        assert_eq!(checkpoint_steps(&path), [2, 3, 4]);
        resume(&path).unwrap();
        assert_eq!(results(&path), expected);
    }
}

#[test]
fn a_checkpoint_whose_metrics_are_gone_is_damaged() {
    let room = room();
    let path = room.path().join("run");
    run_until(&path, 3);
    let metrics = fs::read_to_string(path.join(METRICS)).unwrap();
    let (two_lines, _) = metrics.trim_end().rsplit_once('\n').unwrap();
    fs::write(path.join(METRICS), format!("{two_lines}\n")).unwrap();
    let found = checkpoint::newest(&path.join(CHECKPOINTS), &path.join(METRICS)).unwrap();
    assert_eq!(found.checkpoint.unwrap().standing.step, 2);
    resume(&path).unwrap();
    assert_eq!(results(&path), uninterrupted_results());
}

#[test]
fn without_an_undamaged_checkpoint_the_run_is_refused() {
    let room = room();
    let path = room.path().join("run");
    run_until(&path, 2);
    for step in 0..=2 {
        let file = state_file(&path, step, "state/toy.json");
        if file.exists() {
            fs::write(file, "{}").unwrap();
        }
    }
    let metrics = fs::read(path.join(METRICS)).unwrap();
    let error = resume(&path).unwrap_err();
    assert!(matches!(&error, RunError::AllDamaged(damaged) if damaged.len() == 2));
    let text = error.to_string();
    assert!(text.starts_with("no checkpoint is usable"), "{text}");
    assert!(
        text.contains("000001/state/toy.json is damaged: it should have"),
        "{text}"
    );
    assert_eq!(fs::read(path.join(METRICS)).unwrap(), metrics);
}

#[test]
fn the_last_few_checkpoints_are_kept() {
    let room = room();
    let path = room.path().join("run");
    run(&mut create(&path), Fault::None, EVERY_STEP).unwrap();
    assert_eq!(checkpoint_steps(&path), [10, 11, 12]);
    assert_eq!(KEEP, 3);
}

#[test]
fn leftovers_of_a_kill_are_ignored_and_removed() {
    let room = room();
    let path = room.path().join("run");
    run_until(&path, 4);
    let half_written = path.join(CHECKPOINTS).join("000005.partial");
    fs::create_dir_all(half_written.join("state")).unwrap();
    fs::write(half_written.join("state").join("toy.json"), "{").unwrap();
    fs::write(path.join("about.json.partial"), "{").unwrap();
    fs::create_dir(path.join("model.partial")).unwrap();
    resume(&path).unwrap();
    assert_eq!(results(&path), uninterrupted_results());
    let all = files::entries(&path).unwrap().into_iter();
    let partial = |path: &PathBuf| {
        path.extension()
            .is_some_and(|extension| extension == "partial")
    };
    let left: Vec<_> = all
        .chain(files::entries(&path.join(CHECKPOINTS)).unwrap())
        .filter(partial)
        .collect();
    assert_eq!(left, Vec::<PathBuf>::new());
}

#[test]
fn two_processes_never_share_a_folder() {
    let room = room();
    let path = room.path().join("run");
    let folder = create(&path);
    let error = RunFolder::open(&path, TOYS).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "another process is at work in {}; wait for it or stop it",
            path.display()
        )
    );
    drop(folder);
    RunFolder::open(&path, TOYS).unwrap();
}

#[test]
fn a_new_run_needs_a_folder_of_its_own() {
    let room = room();
    let config = || resolve("toy-smoke", &[]).unwrap();

    // By default the first free number.
    let runs = room.path().join("runs");
    for n in 1..=3 {
        let folder = RunFolder::create_next(&runs, config(), setup(1)).unwrap();
        assert_eq!(folder.path(), runs.join(format!("toy-smoke-{n}")));
    }

    // A given folder may exist, but not hold anything.
    let empty = room.path().join("empty");
    fs::create_dir(&empty).unwrap();
    RunFolder::create(&empty, config(), setup(1)).unwrap();
    let error = RunFolder::create(&empty, config(), setup(1)).unwrap_err();
    assert!(matches!(error, FolderError::NotEmpty(_)));
    assert!(error.to_string().contains("use --resume"), "{error}");

    let error = RunFolder::open(&runs, TOYS).unwrap_err();
    let text = format!("{} holds no run: config.toml is missing", runs.display());
    assert_eq!(error.to_string(), text);
}

#[test]
fn an_edited_configuration_is_another_run() {
    let room = room();
    let path = room.path().join("run");
    run_until(&path, 4);
    let config = path.join(CONFIG);
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("steps = 12", "steps = 20")).unwrap();
    let error = resume(&path).unwrap_err().to_string();
    let expected = format!("{} has changed since step 4; undo", config.display());
    assert!(error.starts_with(&expected), "{error}");

    // How it is written does not matter.
    fs::write(&config, format!("# mine\n{text}")).unwrap();
    resume(&path).unwrap();
    assert_eq!(results(&path), uninterrupted_results());
}

#[test]
fn a_failing_step_and_a_panicking_worker_end_the_run_with_their_own_words() {
    let room = room();
    let path = room.path().join("run");
    let error = run(&mut create(&path), Fault::Fail(5), EVERY_STEP).unwrap_err();
    assert_eq!(
        format!("{:#}", anyhow::Error::from(error)),
        "step 5 failed: stumbled"
    );
    let mut folder = RunFolder::open(&path, TOYS).unwrap();
    let error = run(&mut folder, Fault::Panic(7), EVERY_STEP).unwrap_err();
    assert_eq!(error.to_string(), "step 7 panicked: broke a leg");
    drop(folder);
    assert_eq!(checkpoint_steps(&path), [4, 5, 6]);
    resume(&path).unwrap();
    assert_eq!(results(&path), uninterrupted_results());
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_while_saving_leaves_the_last_checkpoint() {
    let room = room();
    let path = room.path().join("run");
    let error = run(&mut create(&path), Fault::FullDisk(5), EVERY_STEP).unwrap_err();
    let text = format!("{:#}", anyhow::Error::from(error));
    assert!(
        text.starts_with("saving step 5 failed: No space left on device"),
        "{text}"
    );
    let names: Vec<_> = files::entries(&path.join(CHECKPOINTS)).unwrap();
    let names: Vec<_> = names
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap())
        .collect();
    assert_eq!(names, ["000002", "000003", "000004"]);
    resume(&path).unwrap();
    assert_eq!(results(&path), uninterrupted_results());
}

/// A file system so small that a run fills it, whatever it happens to write then.
#[test]
#[cfg(target_os = "linux")]
fn a_run_survives_a_disk_that_is_really_full() {
    let room = room();
    let command = |program: &str, args: &[&str]| {
        let output = std::process::Command::new(program)
            .args(args)
            .arg(room.path())
            .output();
        output.is_ok_and(|output| output.status.success())
    };
    if !command("mount", &["-t", "tmpfs", "-o", "size=128k", "tmpfs"]) {
        eprintln!("skipped: mounting is not permitted here");
        return;
    }
    let path = room.path().join("run");
    let outcome = std::panic::catch_unwind(|| {
        run_until(&path, 4);
        let mut filler = 64 * 1024;
        // Ever closer to full, so that different files are the first to fail.
        while filler > 0 {
            fs::write(
                room.path().join(format!("filler-{filler}")),
                vec![0; filler],
            )
            .unwrap_or(());
            filler /= 2;
        }
        let error = run(
            &mut RunFolder::open(&path, TOYS).unwrap(),
            Fault::None,
            EVERY_STEP,
        )
        .unwrap_err();
        let text = format!("{:#}", anyhow::Error::from(error));
        assert!(text.contains(&path.display().to_string()), "{text}");
        assert!(text.contains("No space left on device"), "{text}");
        for file in files::entries(room.path()).unwrap() {
            if file.is_file() {
                fs::remove_file(file).unwrap();
            }
        }
        resume(&path).unwrap();
        assert_eq!(results(&path), uninterrupted_results());
    });
    assert!(command("umount", &[]));
    outcome.unwrap();
}

#[test]
#[cfg(unix)]
fn a_place_that_cannot_be_written_is_named() {
    let room = room();
    let path = room.path().join("run");
    let mut folder = create(&path);
    // Permissions do not bind root; a file where a directory should be does.
    fs::remove_dir(path.join(CHECKPOINTS)).unwrap();
    fs::write(path.join(CHECKPOINTS), "").unwrap();
    let error = run(&mut folder, Fault::None, EVERY_STEP).unwrap_err();
    let text = format!("{:#}", anyhow::Error::from(error));
    let expected = format!(
        "cannot list the directory {}: Not a directory",
        path.join(CHECKPOINTS).display()
    );
    assert!(text.starts_with(&expected), "{text}");
}

#[test]
fn a_failed_write_leaves_the_old_content() {
    let room = room();
    let target = room.path().join("target");
    files::write_dir_atomically(&target, |dir| {
        files::write_atomically(&dir.join("a"), b"old")
    })
    .unwrap();
    let failed: anyhow::Result<()> = files::write_dir_atomically(&target, |dir| {
        files::write_atomically(&dir.join("a"), b"new")?;
        anyhow::bail!("no more")
    });
    failed.unwrap_err();
    assert_eq!(fs::read(target.join("a")).unwrap(), b"old");
    // A directory cannot be replaced by a file.
    let error = files::write_atomically(&target, b"new").unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot write {}", target.display())
    );
    assert_eq!(fs::read(target.join("a")).unwrap(), b"old");
    assert_eq!(
        files::entries(room.path()).unwrap(),
        std::slice::from_ref(&target)
    );
    files::write_dir_atomically(&target, |dir| {
        files::write_atomically(&dir.join("b"), b"new")
    })
    .unwrap();
    assert_eq!(files::entries(&target).unwrap(), [target.join("b")]);
}

#[test]
fn numbers_that_are_not_finite_become_null() {
    let room = room();
    let path = room.path().join("run");
    let config = resolve("toy-smoke", &["nan_steps=[3]"]).unwrap();
    run(
        &mut RunFolder::create(&path, config, setup(7)).unwrap(),
        Fault::None,
        NEVER,
    )
    .unwrap();
    let metrics = fs::read_to_string(path.join(METRICS)).unwrap();
    let lines: Vec<&str> = metrics.lines().collect();
    assert!(
        lines[1].starts_with("{\"step\":2,\"seconds\":0."),
        "{}",
        lines[1]
    );
    assert!(lines[2].ends_with(",\"position\":null}"), "{}", lines[2]);
    assert_eq!(lines.len(), 12);
}

#[test]
#[should_panic(expected = "the runner itself records `seconds`")]
fn a_metric_cannot_take_the_runners_names() {
    Metrics::default().set("seconds", 1.0);
}

#[test]
fn layers_override_each_other() {
    let room = room();
    let file = room.path().join("mine.toml");
    fs::write(
        &file,
        "base = \"toy-smoke\"\nsteps = 20\n[walk]\nwidth = 2\n",
    )
    .unwrap();
    let resolved = resolve(
        file.to_str().unwrap(),
        &["steps=30", "walk.kind=squared", "steps=40"],
    )
    .unwrap();
    assert_eq!(resolved.name, "mine");
    let expected = r#"experiment = "toy"
steps = 40
start = 0.1
pause_milliseconds = 0
nan_steps = []

[walk]
kind = "squared"
width = 2.0
both_ways = true
"#;
    assert_eq!(resolved.toml, expected);

    // A resolved configuration is a configuration.
    fs::write(&file, &resolved.toml).unwrap();
    assert_eq!(resolve(file.to_str().unwrap(), &[]).unwrap().toml, expected);

    // A value may be a string in quotes, a table, or hold what TOML has.
    let quoted = [
        "walk={kind='squared', width=2}",
        "steps= 0x28 ",
        "start=0.1",
    ];
    assert_eq!(resolve("toy-smoke", &quoted).unwrap().toml, expected);
}

#[test]
fn configuration_errors_name_the_place_and_the_fix() {
    let room = room();
    let file = room.path().join("mine.toml");
    let name = file.display().to_string();
    for (content, message) in [
        (
            "base = \"toy-smoke\"\n\n[walk]\nwidht = 2",
            "FILE:4: unknown key `walk.widht` (did you mean `walk.width`?); \
             keys of `walk` are: walk.both_ways, walk.kind, walk.width",
        ),
        (
            "base = \"toy-smoke\"\nwidth = 2",
            "FILE:2: unknown key `width` (did you mean `walk.width`?); \
             keys are: nan_steps, pause_milliseconds, start, steps, walk.both_ways, walk.kind, walk.width",
        ),
        (
            "base = \"toy-smoke\"\n[optimiser]",
            "FILE:2: unknown key `optimiser`; \
             keys are: nan_steps, pause_milliseconds, start, steps, walk.both_ways, walk.kind, walk.width",
        ),
        (
            "base = \"toy-smoke\"\nsteps = \"many\"",
            "FILE:2: `steps` is the string \"many\", but an integer such as 12 is expected",
        ),
        (
            "base = \"toy-smoke\"\nwalk = 3",
            "FILE:2: `walk` is the number 3, but a table with the keys walk.both_ways, walk.kind, walk.width \
             is expected",
        ),
        (
            "base = \"toy-smoke\"\npause_milliseconds = -1",
            "FILE:2: `pause_milliseconds`: invalid value: integer `-1`, expected a whole number, 0 or more",
        ),
        (
            "base = \"toy-smoke\"\nnan_steps = [1,\n true]",
            "FILE:2: `nan_steps`: invalid type: boolean `true`, expected a whole number, 0 or more",
        ),
        (
            "base = \"toy-smoke\"\nwalk.kind = \"cubed\"",
            "FILE:2: `walk.kind`: unknown variant `cubed`, expected `plain` or `squared`",
        ),
        (
            "base = \"toy-smoke\"\nwalk.width = nan",
            "FILE:2: walk.width = NaN is out of range: accepted are 0 to 10",
        ),
        (
            "base = \"toy-smok\"",
            "FILE:1: there is no preset `toy-smok` (did you mean `toy-smoke`?); presets: toy-smoke, toy-long. \
             A file is given by a path that has a `/` or ends in .toml",
        ),
        (
            "base = 3",
            "FILE:1: `base` is the number 3, but the name of one, in quotes, is expected",
        ),
        (
            "base = \"toy-smoke\"\nexperiment = \"chess\"",
            "FILE:2: `chess` is not an experiment that fits here; accepted: toy",
        ),
        (
            "steps = 3",
            "FILE does not say what it configures: add `base = \"PRESET\"` to change some keys of a preset, \
             or `experiment = \"NAME\"` to give all keys; presets: toy-smoke, toy-long; experiments: toy",
        ),
        (
            "",
            "FILE does not say what it configures: add `base = \"PRESET\"` to change some keys of a preset, \
             or `experiment = \"NAME\"` to give all keys; presets: toy-smoke, toy-long; experiments: toy",
        ),
        (
            "experiment = \"toy\"\nsteps = 3\nstart = 1\n[walk]\nkind = \"plain\"\nwidth = 1",
            "FILE lacks nan_steps, pause_milliseconds, walk.both_ways; add them, \
             or start from a preset with `base = \"PRESET\"`",
        ),
        (
            "base = \"toy-smoke\"\nsteps = = 3",
            "FILE: TOML parse error at line 2, column 9\n  |\n2 | steps = = 3\n  |         ^\n\
             extra `=`, expected nothing",
        ),
    ] {
        fs::write(&file, content).unwrap();
        assert_eq!(
            resolve(&name, &[]).unwrap_err().replace(&name, "FILE"),
            message
        );
    }
    fs::remove_file(&file).unwrap();
    assert_eq!(
        resolve(&name, &[]).unwrap_err(),
        format!("cannot read {name}")
    );
}

#[test]
fn set_errors_name_the_argument_and_the_fix() {
    for (set, message) in [
        (
            "walk.widht=2",
            "--set walk.widht=2: unknown key `walk.widht` (did you mean `walk.width`?); \
             keys of `walk` are: walk.both_ways, walk.kind, walk.width",
        ),
        (
            "steps=1e3x",
            "--set steps=1e3x: `steps` is the string \"1e3x\", but an integer such as 12 is expected",
        ),
        (
            "start=fast",
            "--set start=fast: `start` is the string \"fast\", but a number such as 0.1 is expected",
        ),
        (
            "walk.both_ways=1",
            "--set walk.both_ways=1: `walk.both_ways` is the number 1, but true or false, such as true is expected",
        ),
        ("steps", "--set steps: expected KEY=VALUE"),
        (
            "walk.width=11",
            "--set walk.width=11: walk.width = 11 is out of range: accepted are 0 to 10",
        ),
    ] {
        assert_eq!(resolve("toy-smoke", &[set]).unwrap_err(), message);
    }
}

#[test]
fn every_preset_is_complete_and_accepted() {
    for experiments in [TOYS, EXPERIMENTS] {
        for preset in config::presets(experiments) {
            let resolved = config::resolve(experiments, preset.name, &[]).unwrap();
            let keys = |text: &str| {
                fn add(prefix: &str, table: toml::Table, keys: &mut Vec<String>) {
                    for (name, value) in table {
                        let key = format!("{prefix}.{name}");
                        match value {
                            toml::Value::Table(table) => add(&key, table, keys),
                            _ => keys.push(key),
                        }
                    }
                }
                let mut keys = Vec::new();
                add("", text.parse().unwrap(), &mut keys);
                keys
            };
            assert_eq!(
                keys(preset.toml),
                keys(&resolved.toml),
                "preset {}",
                preset.name
            );
        }
    }
}
