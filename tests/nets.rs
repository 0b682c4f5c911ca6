//! Networks: every architecture learns, the sparse evaluator equals the burn
//! module, model folders survive a round trip and refuse what does not fit.

use std::path::Path;
use std::sync::Arc;

use burn::module::{Module, ModuleMapper, Param};
use burn::optim::{GradientsParams, SgdConfig};
use burn::tensor::{Device, Tensor};
use tanren::game::playout::random_positions;
use tanren::game::{Game, PlaneShape, Value, children};
use tanren::games::{GAMES, GameVisitor, with_game};
use tanren::nets::device::Compute;
use tanren::nets::model::{Model, ModelCard, Training, rules_sha256, weights_of, weights_to_bytes};
use tanren::nets::sparse::SparseMlp;
use tanren::nets::{
    BatchEvaluator, ConvConfig, Features, MlpConfig, Net, NetConfig, NetEvaluator, NetKind,
    ResidualConfig, Trainer,
};
use tanren::random::{RngExt, Seed};
use tanren::search::Evaluator;
use tanren::train::learner::{Learner, LearningConfig, Optimizer, backpropagate};
use tanren::train::replay::{ReplayConfig, Samples};
use tanren::train::self_check::{SelfCheck, self_check, self_check_of_fault};

pub fn small_net(kind: NetKind) -> NetConfig {
    NetConfig {
        kind,
        // Neither a multiple nor a divisor of the blocks of the sparse evaluator.
        mlp: MlpConfig { hidden: 50 },
        conv: ConvConfig {
            channels: 8,
            layers: 2,
            hidden: 16,
        },
        residual: ResidualConfig {
            channels: 8,
            blocks: 2,
            hidden: 16,
        },
    }
}

pub fn adam(rate: f64) -> LearningConfig {
    LearningConfig {
        optimizer: Optimizer::Adam,
        rate,
        final_rate: rate,
        batch_positions: 128,
        mirror: false,
        replay: ReplayConfig {
            window_positions: 0,
            uses: 1,
        },
    }
}

fn fresh<G: Game>(game: &G, kind: NetKind, seed: u64) -> Net {
    let mut rng = Seed(seed).stream("weights");
    small_net(kind).init(game.plane_shape(), &mut rng, &Compute::cpu().device)
}

fn assert_close(a: &[Value], b: &[Value], tolerance: f32) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!((a.get() - b.get()).abs() <= tolerance, "{a:?} and {b:?}");
    }
}

/// Runs a check on every built-in game.
macro_rules! for_every_game {
    ($game:ident => $check:block) => {
        struct Check;
        impl GameVisitor for Check {
            type Output = ();
            fn visit<G: Game>(self, $game: Arc<G>) {
                let $game = &*$game;
                $check
            }
        }
        for entry in GAMES {
            with_game(entry.name, Check).unwrap();
        }
    };
}

#[test]
fn sparse_evaluation_equals_burn() {
    for_every_game!(game => {
        let net = fresh(game, NetKind::Mlp, 3);
        let Net::Mlp(mlp) = &net else { unreachable!() };
        let mut sparse = SparseMlp::new(mlp);
        let mut batch = BatchEvaluator::new(net.clone(), Compute::cpu().device);
        let positions = random_positions(game, 20, &mut Seed(1).stream("positions"));

        let (mut a, mut b) = (Vec::new(), Vec::new());
        sparse.evaluate(game, &positions, &mut a);
        batch.evaluate(game, &positions, &mut b);
        assert_close(&a, &b, 1e-5);
        assert!(a.iter().any(|value| *value != a[0]), "values must differ to be compared");

        let mut moves = Vec::new();
        for position in &positions {
            moves.clear();
            game.legal_moves(position, &mut moves);
            let mut after = Vec::new();
            children(game, position, &moves, &mut after);
            sparse.evaluate_children(game, position, &moves, &mut a);
            batch.evaluate(game, &after, &mut b);
            assert_close(&a, &b, 1e-5);
        }
    });
}

/// Convolutional networks of sizes that fill blocks and tiles, and of others.
fn convolutional_nets() -> Vec<NetConfig> {
    let mut nets = Vec::new();
    for (channels, depth, hidden) in [(1, 1, 1), (8, 2, 16), (20, 1, 33), (32, 3, 64), (50, 2, 5)] {
        for kind in [NetKind::Conv, NetKind::Residual] {
            nets.push(NetConfig {
                conv: ConvConfig {
                    channels,
                    layers: depth,
                    hidden,
                },
                residual: ResidualConfig {
                    channels,
                    blocks: depth,
                    hidden,
                },
                ..small_net(kind)
            });
        }
    }
    nets
}

/// MLPs of one block that is full or not, and of several.
fn mlps() -> impl Iterator<Item = NetConfig> {
    [1, 16, 50].into_iter().map(|hidden| NetConfig {
        mlp: MlpConfig { hidden },
        ..small_net(NetKind::Mlp)
    })
}

#[test]
fn convolutions_on_the_cpu_equal_burn() {
    for_every_game!(game => {
        for config in convolutional_nets() {
            let compute = Compute::cpu();
            let mut rng = Seed(3).stream("weights");
            let net = biased(config.init(game.plane_shape(), &mut rng, &compute.device));
            let mut stack = NetEvaluator::new(&net, &compute);
            assert!(matches!(stack, NetEvaluator::Stack(_)));
            let mut burn = BatchEvaluator::new(net, compute.device);
            let positions = random_positions(game, 2, &mut Seed(1).stream("positions"));

            let (mut a, mut b) = (Vec::new(), Vec::new());
            stack.evaluate(game, &positions, &mut a);
            burn.evaluate(game, &positions, &mut b);
            assert_close(&a, &b, 1e-5);
            assert!(a.iter().any(|value| *value != a[0]), "values must differ to be compared");

            // From the parent, to the last bit.
            let mut moves = Vec::new();
            for position in &positions {
                moves.clear();
                game.legal_moves(position, &mut moves);
                let mut after = Vec::new();
                children(game, position, &moves, &mut after);
                stack.evaluate_children(game, position, &moves, &mut a);
                stack.evaluate(game, &after, &mut b);
                assert_eq!(a, b);
            }
        }
    });
}

/// The network with biases other than zero.
fn biased(net: Net) -> Net {
    struct Biased;
    impl ModuleMapper for Biased {
        fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<D>>) -> Param<Tensor<D>> {
            parameter.map(|tensor| if D == 1 { tensor + 0.1 } else { tensor })
        }
    }
    net.map(&mut Biased)
}

#[test]
fn gradients_on_the_cpu_equal_burn() {
    for_every_game!(game => {
        let mut rng = Seed(5).stream("positions");
        let positions = random_positions(game, 10, &mut rng);
        for config in mlps().chain(convolutional_nets()) {
            // One chunk of a share that is not full, shares without any, several chunks;
            // an MLP has more than one share from 512 positions on.
            let most = if config.kind == NetKind::Mlp { 1000 } else { 150 };
            for batch in [1, 30, most] {
                let mut samples = Samples::default();
                for position in positions.iter().cycle().take(batch) {
                    samples.features.push(game, position);
                    samples.targets.push(rng.random_range(-1.0..1.0));
                }
                let compute = Compute::cpu();
                let autodiff = compute.device.clone().autodiff();
                let net = config.init(game.plane_shape(), &mut Seed(3).stream("weights"), &autodiff);
                let mut trainer = Trainer::new(&net);
                // Twice: what the first batch left behind must not matter.
                for _ in 0..2 {
                    let own = trainer.gradients(
                        &net, &samples.features, &samples.targets, &compute.device,
                    );
                    let burn = backpropagate(game, &net, &samples, &autodiff);
                    assert_same_descent(&net, own, burn);
                }
            }
        }
    });
}

/// Plain descent at rate 1 changes each weight by its gradient.
fn assert_same_descent(
    net: &Net,
    a: (Tensor<1>, GradientsParams),
    b: (Tensor<1>, GradientsParams),
) {
    let (loss_a, loss_b) = (a.0.into_scalar::<f32>(), b.0.into_scalar::<f32>());
    // Roots, since a value's error counts the more, the smaller the loss.
    assert!(
        (loss_a.sqrt() - loss_b.sqrt()).abs() <= 5e-6,
        "{loss_a} and {loss_b}"
    );
    assert_eq!(a.1.len(), b.1.len());
    let before = weights_of(net);
    let change = |gradients| -> Vec<f32> {
        let after = SgdConfig::new().init().step(1.0, net.clone(), gradients);
        before
            .iter()
            .zip(weights_of(&after))
            .map(|(a, b)| a - b)
            .collect()
    };
    let (a, b) = (change(a.1), change(b.1));
    let largest = b.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    assert!(largest > 0.0);
    for (a, b) in a.iter().zip(&b) {
        assert!((a - b).abs() <= 1e-4 * largest, "{a} and {b} of {largest}");
    }
}

/// Planes that are unpacked on the device equal planes that are written out before.
pub fn assert_packed_planes_equal_dense_planes(device: &Device) {
    fn compare(features: &Features, shape: PlaneShape, device: &Device, name: &str) {
        let numbers = |planes: Tensor<4>| {
            let expected = [features.len(), shape.planes, shape.rows, shape.columns];
            assert_eq!(planes.dims(), expected, "{name}");
            planes.into_data().try_into_vec::<f32>().unwrap()
        };
        let dense = numbers(features.dense_planes(shape, device));
        assert!(
            dense == numbers(features.packed_planes(shape, device)),
            "{name}"
        );
        assert!(dense == numbers(features.planes(shape, device)), "{name}");
        let ones = dense.iter().filter(|&&x| x == 1.0).count();
        let zeros = dense.iter().filter(|&&x| x == 0.0).count();
        assert_eq!(
            (ones, zeros),
            (features.active.len(), dense.len() - ones),
            "{name}"
        );
    }
    struct Check<'a>(&'a Device);
    impl GameVisitor for Check<'_> {
        type Output = ();
        fn visit<G: Game>(self, game: Arc<G>) {
            let mut features = Features::default();
            for position in random_positions(&*game, 12, &mut Seed(6).stream("positions")) {
                features.push(&*game, &position);
            }
            // Evaluators fill their batches up with these.
            features.push_features([]);
            compare(&features, game.plane_shape(), self.0, game.name());
        }
    }
    for entry in GAMES {
        with_game(entry.name, Check(device)).unwrap();
    }
    // Every number of inputs around a word, every input alone, and all together.
    for inputs in [1, 31, 32, 33, 63, 64, 65, 84, 100] {
        let mut features = Features::default();
        for input in 0..inputs {
            features.push_features([input]);
        }
        features.push_features(0..inputs);
        let shape = PlaneShape {
            planes: 1,
            rows: 1,
            columns: inputs.into(),
        };
        compare(&features, shape, device, &format!("{inputs} inputs"));
    }
}

#[test]
fn packed_planes_equal_dense_planes_on_the_cpu() {
    assert_packed_planes_equal_dense_planes(&Compute::cpu().device);
}

#[test]
fn every_architecture_overfits_one_batch_on_every_game() {
    for_every_game!(game => {
        let mut rng = Seed(5).stream("positions");
        let mut samples = Samples::default();
        for position in random_positions(game, 8, &mut rng).iter().take(64) {
            samples.features.push(game, position);
            samples.targets.push(rng.random_range(-0.9..0.9));
        }
        // Positions can occur twice with different targets: keep those of the last.
        for kind in NetKind::ALL {
            let learning = adam(0.01);
            let mut learner =
                Learner::new(game, &small_net(kind), &learning, Compute::cpu(), Seed(1));
            let mut loss = |steps| {
                (0..steps)
                    .map(|_| learner.descend(game, &samples, 0.01).into_scalar::<f32>())
                    .last()
                    .unwrap()
            };
            let (before, after) = (loss(1), loss(300));
            assert!(before > 0.1, "{} on {}: {before}", kind.name(), game.name());
            assert!(after < 0.1 * before, "{} on {}: {before} to {after}", kind.name(), game.name());
        }
    });
}

#[test]
fn the_cpu_passes_its_own_check_exactly_and_a_changed_weight_does_not() {
    struct Check;
    impl GameVisitor for Check {
        type Output = ();
        fn visit<G: Game>(self, game: Arc<G>) {
            for kind in NetKind::ALL {
                let check = self_check(&*game, &small_net(kind), &Compute::cpu());
                assert_eq!(
                    check,
                    SelfCheck {
                        values: 0.0,
                        loss: 0.0,
                        gradients: 0.0
                    }
                );
                let wrong = self_check_of_fault(&*game, &small_net(kind), &Compute::cpu());
                assert!(!wrong.passed(), "{}: {wrong}", kind.name());
            }
        }
    }
    with_game("march-blitz", Check).unwrap();
}

#[test]
fn initial_weights_depend_on_the_seed_alone() {
    with_game("march-blitz", Check).unwrap();
    struct Check;
    impl GameVisitor for Check {
        type Output = ();
        fn visit<G: Game>(self, game: Arc<G>) {
            for kind in NetKind::ALL {
                let bytes = |seed| weights_to_bytes(&fresh(&*game, kind, seed));
                assert_eq!(bytes(1), bytes(1));
                assert_ne!(bytes(1), bytes(2));
            }
        }
    }
}

#[test]
fn the_articles_network_has_its_size() {
    let net = fresh_blitz(NetKind::Mlp);
    assert_eq!(net.num_params(), 256 * 50 + 50 + 50 + 1);
}

fn fresh_blitz(kind: NetKind) -> Net {
    struct Fresh(NetKind);
    impl GameVisitor for Fresh {
        type Output = Net;
        fn visit<G: Game>(self, game: Arc<G>) -> Net {
            fresh(&*game, self.0, 1)
        }
    }
    with_game("march-blitz", Fresh(kind)).unwrap()
}

pub fn model<G: Game>(game: &G, kind: NetKind) -> Model {
    Model {
        card: ModelCard {
            game: game.name().to_string(),
            rules_sha256: rules_sha256(game),
            planes: game.plane_shape(),
            weights_sha256: String::new(),
            net: small_net(kind),
            training: Training {
                run: "test".to_string(),
                seed: 1,
                games: 0,
                positions: 0,
                evaluations: 0,
                seconds: 0.0,
                init_sha256: None,
            },
            strength: Vec::new(),
        },
        net: fresh(game, kind, 9),
    }
}

#[test]
fn model_folders_round_trip_with_pytorch_names_and_layouts() {
    struct Check;
    impl GameVisitor for Check {
        type Output = ();
        fn visit<G: Game>(self, game: Arc<G>) {
            let device = Compute::cpu().device;
            for kind in NetKind::ALL {
                let directory = tempfile::tempdir().unwrap();
                let model = model(&*game, kind);
                model.save(directory.path()).unwrap();
                let loaded = Model::load(directory.path(), &device).unwrap();
                let weights_sha256 = loaded.card.weights_sha256.clone();
                assert_eq!(
                    loaded.card,
                    ModelCard {
                        weights_sha256,
                        ..model.card.clone()
                    }
                );
                assert_eq!(weights_to_bytes(&loaded.net), weights_to_bytes(&model.net));
                loaded.check_game(&*game, directory.path()).unwrap();
            }
            let bytes = weights_to_bytes(&model(&*game, NetKind::Mlp).net);
            let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
            let shape = |name: &str| file.tensor(name).unwrap().shape().to_vec();
            assert_eq!(
                shape("hidden.weight"),
                [50, 256],
                "nn.Linear: [outputs, inputs]"
            );
            assert_eq!(shape("hidden.bias"), [50]);
            assert_eq!(shape("output.weight"), [1, 50]);
            let bytes = weights_to_bytes(&model(&*game, NetKind::Conv).net);
            let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
            assert_eq!(
                file.tensor("layers.0.weight").unwrap().shape(),
                [8, 4, 3, 3]
            );
        }
    }
    with_game("march-blitz", Check).unwrap();
}

#[test]
fn models_that_do_not_fit_are_refused_with_the_reason() {
    struct Check;
    impl GameVisitor for Check {
        type Output = ();
        fn visit<G: Game>(self, game: Arc<G>) {
            let device = Compute::cpu().device;
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path();
            let good = model(&*game, NetKind::Mlp);
            let message = |model: &Model| model.check_game(&*game, Path::new("m")).unwrap_err();

            let mut other = good.clone();
            other.card.game = "chess".to_string();
            assert_eq!(
                message(&other).to_string(),
                "the model in m is for chess, not for march-blitz: name its game, or the rules file, with \
                 --game"
            );
            let mut other = good.clone();
            other.card.rules_sha256 = "0".repeat(64);
            assert!(
                message(&other)
                    .to_string()
                    .contains("was trained on other rules")
            );

            let load = || Model::load(path, &device).unwrap_err().to_string();
            assert!(load().contains("cannot read"), "{}", load());

            good.save(path).unwrap();
            let weights = path.join("weights.safetensors");
            let bytes = std::fs::read(&weights).unwrap();
            std::fs::write(&weights, &bytes[..bytes.len() / 2]).unwrap();
            assert!(
                load().contains("does not hold the weights of this network"),
                "{}",
                load()
            );

            let conv = weights_to_bytes(&model(&*game, NetKind::Conv).net);
            std::fs::write(&weights, conv).unwrap();
            assert!(
                load().contains("does not hold the weights of this network"),
                "{}",
                load()
            );

            let mut flipped = bytes.clone();
            *flipped.last_mut().unwrap() ^= 1;
            std::fs::write(&weights, flipped).unwrap();
            assert!(
                load().contains("has changed since model.toml was written"),
                "{}",
                load()
            );

            let mut huge = good.clone();
            huge.card.planes.planes = usize::MAX / 4;
            huge.save(path).unwrap();
            assert!(load().contains("are out of range"), "{}", load());

            std::fs::write(path.join("model.toml"), "game = 3").unwrap();
            assert!(load().contains("is no model card"), "{}", load());
        }
    }
    with_game("march-blitz", Check).unwrap();
}
