//! Exports: what is read back equals the model, what does not is refused and leaves
//! nothing; weights from elsewhere are taken or refused by name.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde_json::Value as Json;
use tanren::game::Game;
use tanren::game::playout::random_positions;
use tanren::games::leaper::Leaper;
use tanren::games::{GAMES, GameVisitor, load, with_game};
use tanren::hash::sha256_hex;
use tanren::nets::device::Compute;
use tanren::nets::export::{
    Certificate, ExportError, Format, Interpreter, POSITIONS, TOLERANCE, certify, export,
};
use tanren::nets::model::{Model, weights_to_bytes};
use tanren::nets::{ConvConfig, Features, MlpConfig, NetConfig, NetKind, ResidualConfig, ValueNet};
use tanren::random::Seed;

use crate::cli::{run, tanren};
use crate::nets::{model, small_net};

fn blitz() -> Leaper {
    load("march-blitz").unwrap().as_leaper().unwrap().clone()
}

/// The smallest sizes that there are.
fn tiny_net(kind: NetKind) -> NetConfig {
    NetConfig {
        kind,
        mlp: MlpConfig { hidden: 1 },
        conv: ConvConfig {
            channels: 1,
            layers: 1,
            hidden: 1,
        },
        residual: ResidualConfig {
            channels: 1,
            blocks: 1,
            hidden: 1,
        },
    }
}

fn with_net<G: Game>(game: &G, net: NetConfig) -> Model {
    let mut model = model(game, net.kind);
    let mut rng = Seed(2).stream("weights");
    model.net = net.init(game.plane_shape(), &mut rng, &Compute::cpu().device);
    model.card.net = net;
    model
}

fn check<G: Game>(
    game: &G,
    model: &Model,
    format: Format,
    bytes: &[u8],
) -> Result<Certificate, ExportError> {
    certify(game, model, format, bytes, |_| ()).map(|certified| certified.certificate)
}

// --- Round trips ---

#[test]
fn every_architecture_of_any_size_in_every_format_computes_the_same() {
    struct Check;
    impl GameVisitor for Check {
        type Output = ();
        fn visit<G: Game>(self, game: Arc<G>) {
            for net in NetKind::ALL
                .into_iter()
                .flat_map(|kind| [tiny_net(kind), small_net(kind)])
            {
                let model = with_net(&*game, net);
                for format in Format::ALL {
                    let bytes = export(&*game, &model, format);
                    assert_eq!(
                        bytes,
                        export(&*game, &model, format),
                        "bytes are reproducible"
                    );
                    let certificate = check(&*game, &model, format, &bytes).unwrap();
                    assert_eq!(certificate.positions, POSITIONS);
                    assert_eq!(certificate.changed_best_moves, 0, "{certificate:?}");
                    assert_eq!(certificate.sign_flips, 0, "{certificate:?}");
                    match format {
                        Format::Onnx => assert!(certificate.max_error < 1e-6, "{certificate:?}"),
                        Format::Safetensors => assert_eq!(certificate.max_error, 0.0),
                    }
                }
            }
        }
    }
    for game in GAMES {
        with_game(game.name, Check).unwrap();
    }
}

#[test]
fn the_interpreter_equals_the_network_in_batches_of_any_size() {
    let game = blitz();
    let positions = random_positions(&game, 15, &mut Seed(4).stream("positions"));
    assert!(positions.len() > 256);
    for kind in NetKind::ALL {
        let model = model(&game, kind);
        let file = Interpreter::read(&export(&game, &model, Format::Onnx)).unwrap();
        for batch in [1, 7, 256] {
            let mut features = Features::default();
            for position in &positions[..batch] {
                features.push(&game, position);
            }
            let shape = game.plane_shape();
            let ours = model
                .net
                .forward(features.planes(shape, &Compute::cpu().device));
            let ours: Vec<f32> = ours.into_data().try_into_vec().unwrap();
            let theirs = file.run(&features, shape).unwrap();
            assert_eq!(theirs.len(), batch);
            assert!(batch == 1 || ours.iter().any(|value| *value != ours[0]));
            for (a, b) in ours.iter().zip(theirs) {
                assert!((f64::from(*a) - b).abs() < 1e-6, "{a} and {b}");
            }
        }
    }
}

#[test]
fn safetensors_are_those_of_the_model_folder_with_facts_before_them() {
    let game = blitz();
    for kind in NetKind::ALL {
        let model = model(&game, kind);
        let bytes = export(&game, &model, Format::Safetensors);
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let facts: &HashMap<String, String> = header.metadata().as_ref().unwrap();
        assert_eq!(facts["format"], "pt");
        assert_eq!(facts["game"], "march-blitz");
        assert_eq!(facts["architecture"], kind.name());
        assert_eq!(facts["sizes"], small_net(kind).sizes().to_string());
        for part in [
            "[batch, 4, 8, 8]",
            "0 own king, 1 own pawn, 2 enemy king, 3 enemy pawn",
            "row 1",
        ] {
            assert!(facts["input"].contains(part), "{}", facts["input"]);
        }
        let own = weights_to_bytes(&model.net);
        let own = SafeTensors::deserialize(&own).unwrap();
        let exported = SafeTensors::deserialize(&bytes).unwrap();
        assert_eq!(own.names().len(), exported.names().len());
        let onnx = export(&game, &model, Format::Onnx);
        for (name, tensor) in own.tensors() {
            assert_eq!(exported.tensor(&name).unwrap().data(), tensor.data());
            assert_eq!(exported.tensor(&name).unwrap().shape(), tensor.shape());
            let is_there = onnx.windows(name.len()).any(|part| part == name.as_bytes());
            assert!(is_there, "{name} is missing in the ONNX file");
        }
    }
}

// --- Exports that are wrong ---

/// Adds to the first output weight, wherever it lies in the bytes.
fn change_a_weight(model: &Model, bytes: &mut [u8], by: f32) {
    let own = weights_to_bytes(&model.net);
    let tensors = SafeTensors::deserialize(&own).unwrap();
    let weight: [u8; 4] = tensors.tensor("output.weight").unwrap().data()[..4]
        .try_into()
        .unwrap();
    let place = bytes.windows(4).position(|part| part == weight).unwrap();
    let changed = f32::from_le_bytes(weight) + by;
    bytes[place..place + 4].copy_from_slice(&changed.to_le_bytes());
}

#[test]
fn a_changed_weight_is_noticed() {
    let game = blitz();
    for kind in NetKind::ALL {
        let model = model(&game, kind);
        for format in Format::ALL {
            let good = export(&game, &model, format);
            let mut bytes = good.clone();
            change_a_weight(&model, &mut bytes, 1e-3);
            match check(&game, &model, format, &bytes) {
                Err(ExportError::Differs(certificate)) => {
                    assert!(certificate.max_error > TOLERANCE);
                    assert!(certificate.mean_error > 0.0);
                    assert_eq!(certificate.file_sha256, sha256_hex(&bytes));
                }
                other => panic!("{format} of {}: {other:?}", kind.name()),
            }
            let mut bytes = good.clone();
            change_a_weight(&model, &mut bytes, f32::NAN);
            let refused = check(&game, &model, format, &bytes).unwrap_err();
            let message = format!("{:#}", anyhow::Error::from(refused));
            assert!(
                message.contains("NaN") || message.contains("output.weight"),
                "{message}"
            );

            let cut = check(&game, &model, format, &good[..good.len() / 2]).unwrap_err();
            assert!(cut.to_string().contains("cannot be read back"), "{cut}");
        }
    }
}

#[test]
fn another_networks_export_changes_signs_and_moves() {
    let game = blitz();
    for kind in NetKind::ALL {
        let model = model(&game, kind);
        let other = with_net(&game, small_net(kind));
        for format in Format::ALL {
            let bytes = export(&game, &other, format);
            let Err(ExportError::Differs(certificate)) = check(&game, &model, format, &bytes)
            else {
                panic!("{format} of {} is taken for another", kind.name());
            };
            assert!(certificate.changed_best_moves > 100, "{certificate:?}");
            assert!(certificate.sign_flips > 10, "{certificate:?}");
        }
    }
}

// --- The command ---

fn export_command(model: &str, format: &str, out: &Path) -> Command {
    let mut command = tanren(&["export", model, "--format", format, "--out"]);
    command.arg(out);
    command
}

fn beside(out: &Path, extension: &str) -> PathBuf {
    PathBuf::from(format!("{}{extension}", out.display()))
}

#[test]
fn exports_come_with_certificate_and_samples() {
    let folder = tempfile::tempdir().unwrap();
    for format in ["onnx", "safetensors"] {
        let out = folder.path().join("net");
        let (stdout, _) = run(&mut export_command("model", format, &out), 0);
        for expected in [
            "mlp for march-blitz, 12901 parameters",
            "1000 positions",
            "sign flips          0",
            "changed best moves  ",
            "net.certificate.json",
        ] {
            assert!(
                stdout.contains(expected),
                "{expected:?} is missing in\n{stdout}"
            );
        }
        let bytes = fs::read(&out).unwrap();
        let text = fs::read_to_string(beside(&out, ".certificate.json")).unwrap();
        let certificate: Json = serde_json::from_str(&text).unwrap();
        assert_eq!(certificate["format"], format);
        assert_eq!(certificate["file_sha256"], sha256_hex(&bytes));
        assert_eq!(certificate["positions"], 1000);
        for figure in ["max_error", "change_loss"] {
            assert!(certificate[figure].as_f64().unwrap() < TOLERANCE, "{text}");
        }

        let samples = fs::read_to_string(beside(&out, ".samples.jsonl")).unwrap();
        let samples: Vec<Json> = samples
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(samples.len(), 1000);
        assert_eq!(samples[0]["position"], "1k4/pppppp/6/6/PPPPPP/4K1 w");
        assert_eq!(samples[0]["ones"].as_array().unwrap().len(), 14);

        // Again, over the first.
        let (stdout, _) = run(export_command("model", format, &out).arg("--json"), 0);
        let result: Json = serde_json::from_str(&stdout).unwrap();
        assert_eq!(result["certificate"], certificate);
        assert_eq!(fs::read(&out).unwrap(), bytes);
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 3);
}

#[test]
fn without_out_the_file_is_named_after_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let here = |arguments: &[&str]| {
        let mut command = tanren(arguments);
        command.current_dir(&folder);
        run(&mut command, 0)
    };
    here(&[
        "export",
        "model",
        "--format",
        "onnx",
        "--game",
        "march-grand",
    ]);
    assert!(folder.path().join("march-grand-mlp.onnx").is_file());
    let run_dir = folder.path().join("mine-1");
    // A game from a rules file: the model folder has it.
    let (toml, _) = here(&["games", "show", "breakthrough-6", "--toml"]);
    fs::write(
        folder.path().join("mine.toml"),
        toml.replace("breakthrough-6", "mine"),
    )
    .unwrap();
    let game = ["--set", "game=./mine.toml", "--set", "games=24"];
    run(train(&run_dir, &game).current_dir(&folder), 0);
    fs::remove_file(folder.path().join("mine.toml")).unwrap();
    here(&["export", "model:mine-1/model", "--format", "safetensors"]);
    assert!(folder.path().join("mine-1.safetensors").is_file());
}

/// A run of seconds.
fn train(out: &Path, more: &[&str]) -> Command {
    let mut command = tanren(&["train", "smoke", "--device", "cpu", "--quiet", "--out"]);
    command.arg(out);
    command.args(["--set", "games=96", "--set", "evaluation.final_pairs=2"]);
    command.args(more);
    command
}

/// Copies the shipped model where it can be damaged.
fn model_folder(at: &Path) -> PathBuf {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/march-blitz/mlp");
    let folder = at.join("model");
    fs::create_dir(&folder).unwrap();
    for name in ["model.toml", "weights.safetensors"] {
        fs::copy(shipped.join(name), folder.join(name)).unwrap();
    }
    folder
}

#[test]
fn what_cannot_be_exported_is_said_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let model = model_folder(path);
    let model_text = model.to_str().unwrap();
    let out = path.join("net.onnx");
    let refused = |model: &str, format: &str, out: &Path, code: i32, expected: &str| {
        let before = fs::read_dir(path).unwrap().count();
        let (_, stderr) = run(&mut export_command(model, format, out), code);
        assert!(
            stderr.contains(expected),
            "{expected:?} is missing in\n{stderr}"
        );
        assert_eq!(fs::read_dir(path).unwrap().count(), before, "{expected}");
    };
    refused(
        "model",
        "onxx",
        &out,
        2,
        "accepted are onnx and safetensors",
    );
    refused("/nowhere", "onnx", &out, 2, "/nowhere is no model folder");
    refused(path.to_str().unwrap(), "onnx", &out, 2, "did you mean");
    refused(
        model_text,
        "onnx",
        &path.join("no/net.onnx"),
        2,
        "there is no folder",
    );
    refused(model_text, "onnx", path, 2, "is a folder");
    let weights = model.join("weights.safetensors");
    let bytes = fs::read(&weights).unwrap();
    refused(
        model_text,
        "safetensors",
        &weights,
        2,
        "is no earlier export",
    );
    assert_eq!(fs::read(&weights).unwrap(), bytes);
    let (_, stderr) = run(
        export_command("model", "onnx", &out).args(["--game", "connect-four"]),
        2,
    );
    assert!(
        stderr.contains("no model is shipped for connect-four"),
        "{stderr}"
    );
    let (_, stderr) = run(
        export_command(model_text, "onnx", &out).args(["--game", "march-grand"]),
        2,
    );
    assert!(stderr.contains("is for march-blitz"), "{stderr}");

    let mut flipped = bytes.clone();
    *flipped.last_mut().unwrap() ^= 1;
    fs::write(&weights, &flipped).unwrap();
    refused(model_text, "onnx", &out, 1, "has changed since model.toml");
    fs::write(model.join("model.toml"), "game = 3").unwrap();
    refused(model_text, "onnx", &out, 1, "is no model card");
}

/// Writes weights into a model folder, and their hash into its card.
fn replace_weights(model: &Path, bytes: &[u8]) {
    let weights = model.join("weights.safetensors");
    let card = fs::read_to_string(model.join("model.toml")).unwrap();
    let old = sha256_hex(&fs::read(&weights).unwrap());
    fs::write(
        model.join("model.toml"),
        card.replace(&old, &sha256_hex(bytes)),
    )
    .unwrap();
    fs::write(weights, bytes).unwrap();
}

/// A safetensors file of these tensors.
fn file(tensors: &BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>) -> Vec<u8> {
    let views = tensors.iter().map(|(name, (dtype, shape, bytes))| {
        (name, TensorView::new(*dtype, shape.clone(), bytes).unwrap())
    });
    safetensors::serialize(views, None).unwrap()
}

fn tensors(bytes: &[u8]) -> BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)> {
    let file = SafeTensors::deserialize(bytes).unwrap();
    let tensors = file.tensors().into_iter();
    tensors
        .map(|(name, tensor)| {
            let tensor = (
                tensor.dtype(),
                tensor.shape().to_vec(),
                tensor.data().to_vec(),
            );
            (name, tensor)
        })
        .collect()
}

#[test]
fn an_export_that_differs_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let model = model_folder(folder.path());
    // Finite weights whose sums are not: single and double precision disagree.
    let mut weights = tensors(&fs::read(model.join("weights.safetensors")).unwrap());
    let huge = |index: usize| {
        if index.is_multiple_of(4) {
            -3e38f32
        } else {
            3e38
        }
    };
    let hidden = &mut weights.get_mut("hidden.weight").unwrap().2;
    *hidden = (0..hidden.len() / 4)
        .flat_map(|index| huge(index).to_le_bytes())
        .collect();
    replace_weights(&model, &file(&weights));
    let out = folder.path().join("net.onnx");
    let (_, stderr) = run(
        &mut export_command(model.to_str().unwrap(), "onnx", &out),
        1,
    );
    assert!(stderr.contains("nothing is written"), "{stderr}");
    assert!(
        stderr.contains("the export differs from the model"),
        "{stderr}"
    );
    assert_eq!(
        fs::read_dir(&folder).unwrap().count(),
        1,
        "only the model is there"
    );
}

/// A limit on the size of files fails like a full disk.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_the_earlier_export() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("net.onnx");
    run(&mut export_command("model", "onnx", &out), 0);
    let before = fs::read(&out).unwrap();
    let script = format!(
        "trap '' XFSZ; ulimit -f 16; exec {} export model --game march-grand --format onnx --out {}",
        env!("CARGO_BIN_EXE_tanren"),
        out.display()
    );
    let (_, stderr) = run(Command::new("sh").args(["-c", &script]), 1);
    assert!(stderr.contains("cannot write"), "{stderr}");
    assert_eq!(fs::read(&out).unwrap(), before);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 3);
}

// --- Weights from elsewhere ---

fn shipped_weights() -> Vec<u8> {
    fs::read(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("models/march-blitz/mlp/weights.safetensors"),
    )
    .unwrap()
}

#[test]
fn weights_that_do_not_fit_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let good = tensors(&shipped_weights());
    let refused = |bytes: &[u8], parts: &[&str]| {
        let path = folder.path().join("weights.safetensors");
        fs::write(&path, bytes).unwrap();
        let run_dir = folder.path().join("run");
        let init = format!("init={}", path.display());
        let sets = ["--set", "net.mlp.hidden=50", "--set", &init];
        let (_, stderr) = run(&mut train(&run_dir, &sets), 2);
        for part in [&format!("--set {init}")[..]].iter().chain(parts) {
            assert!(stderr.contains(part), "{part:?} is missing in\n{stderr}");
        }
        assert!(!run_dir.exists());
    };
    refused(
        b"PK not a safetensors file",
        &["no safetensors file", "save_file"],
    );
    let mut other = good.clone();
    let bias = other.remove("hidden.bias").unwrap();
    other.insert("fc1.bias".to_string(), bias);
    other.insert(
        "output.weight".to_string(),
        (Dtype::F32, vec![1, 2], vec![0; 8]),
    );
    other.insert("output.bias".to_string(), (Dtype::F16, vec![1], vec![0; 2]));
    refused(
        &file(&other),
        &[
            "missing: hidden.bias [50]",
            "unexpected: fc1.bias [50]",
            "of another shape: output.weight [1, 2] instead of [1, 50]",
            "output.bias is F16",
        ],
    );
    let mut infinite = good.clone();
    infinite.get_mut("output.bias").unwrap().2 = f32::INFINITY.to_le_bytes().to_vec();
    refused(
        &file(&infinite),
        &["output.bias has numbers that are not finite"],
    );
    let (_, stderr) = run(
        &mut train(
            &folder.path().join("run"),
            &["--set", "init=/nowhere.safetensors"],
        ),
        2,
    );
    assert!(
        stderr.contains("cannot read /nowhere.safetensors"),
        "{stderr}"
    );
    let shipped = concat!(
        "init=",
        env!("CARGO_MANIFEST_DIR"),
        "/models/march-blitz/mlp"
    );
    let (_, stderr) = run(
        &mut train(&folder.path().join("run"), &["--set", shipped]),
        2,
    );
    assert!(stderr.contains("is a folder; name a file"), "{stderr}");
    let (_, stderr) = run(
        &mut tanren(&["train", "compare-smoke", "--set", "training.init=x"]),
        2,
    );
    assert!(stderr.contains("start from fresh weights"), "{stderr}");
}

fn weights(run: &Path) -> Vec<u8> {
    fs::read(run.join("model/weights.safetensors")).unwrap()
}

/// Largest difference of a weight.
fn distance(a: &[u8], b: &[u8]) -> f32 {
    let numbers = |bytes: &[u8]| -> Vec<f32> {
        let tensors = tensors(bytes).into_values();
        let bytes: Vec<u8> = tensors.flat_map(|(_, _, bytes)| bytes).collect();
        bytes
            .as_chunks()
            .0
            .iter()
            .map(|&x| f32::from_le_bytes(x))
            .collect()
    };
    let (a, b) = (numbers(a), numbers(b));
    assert_eq!(a.len(), b.len());
    a.iter()
        .zip(b)
        .fold(0.0, |most, (a, b)| f32::max(most, (a - b).abs()))
}

#[test]
fn a_run_starts_from_the_given_weights_and_goes_on_without_them() {
    for kind in NetKind::ALL {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let net = format!("net.kind={}", kind.name());
        run(
            &mut train(&place("first"), &["--set", &net, "--seed", "7"]),
            0,
        );
        let given = weights(&place("first"));
        let init = place("given.safetensors");
        fs::write(&init, &given).unwrap();
        let set_init = format!("init={}", init.display());
        let from_given = ["--set", &net, "--set", &set_init];

        // At a rate that changes nothing, the network at the end is that of the start.
        let still = [
            "--set",
            "learning.rate=1e-30",
            "--set",
            "learning.final_rate=1e-30",
        ];
        run(train(&place("still"), &from_given).args(still), 0);
        assert!(distance(&weights(&place("still")), &given) < 1e-20);

        let steps = ["--checkpoint-seconds", "0"];
        let (_, stderr) = run(train(&place("whole"), &from_given).args(steps), 0);
        assert!(stderr.is_empty(), "{stderr}");
        let moved = distance(&weights(&place("whole")), &given);
        assert!(moved > 1e-4, "learning changes weights: {moved}");

        run(train(&place("stopped"), &from_given).args(steps), 0);
        fs::remove_file(place("stopped").join("summary.json")).unwrap();
        fs::remove_dir_all(place("stopped").join("model")).unwrap();
        fs::remove_dir_all(place("stopped").join("checkpoints/000002")).unwrap();
        fs::remove_file(&init).unwrap();
        run(tanren(&["train", "--resume"]).arg(place("stopped")), 0);
        assert!(weights(&place("stopped")) == weights(&place("whole")));

        let hash = sha256_hex(&given);
        for file in ["about.json", "model/model.toml"] {
            let text = fs::read_to_string(place("stopped").join(file)).unwrap();
            assert!(text.contains(&hash), "{file} is without {hash}\n{text}");
        }
    }
}
