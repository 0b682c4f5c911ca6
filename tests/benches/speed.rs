//! Speed of what training spends its time on: `cargo bench`, or one group by
//! `cargo bench -- evaluation`. Each fast path stands beside its plain twin, so
//! that ratios within one run mean something even on a noisy machine.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

use tanren::experiments::EXPERIMENTS;
use tanren::game::playout::random_positions;
use tanren::game::{Game, children, perft};
use tanren::games::leaper::{Leaper, Position, slow};
use tanren::nets::device::Compute;
use tanren::nets::shipped::ShippedModel;
use tanren::nets::{
    BatchEvaluator, ConvConfig, MlpConfig, NetConfig, NetEvaluator, NetKind, ResidualConfig,
};
use tanren::random::{RngExt, Seed};
use tanren::search::Evaluator;
use tanren::solve::{Limits, Options as SolverOptions, Solver};
use tanren::train::learner::{Learner, LearningConfig, Optimizer};
use tanren::train::replay::{ReplayConfig, Samples};
use tanren::train::selfplay::{Generator, Pairing, Player, SelfPlayConfig};
use tanren::werewolf::config::Config;
use tanren::werewolf::population::Environment;
use tanren::werewolf::rules::Rules;
use tanren::werewolf::simulator::{Simulator, Uniform};

fn blitz() -> Leaper {
    let game = tanren::games::load("march-blitz").expect("a built-in game");
    game.as_leaper().expect("a leaper game").clone()
}

fn net(kind: NetKind) -> NetConfig {
    NetConfig {
        kind,
        mlp: MlpConfig { hidden: 50 },
        conv: ConvConfig {
            channels: 32,
            layers: 3,
            hidden: 64,
        },
        residual: ResidualConfig {
            channels: 32,
            blocks: 2,
            hidden: 64,
        },
    }
}

fn learner(game: &Leaper, kind: NetKind) -> Learner {
    let learning = LearningConfig {
        optimizer: Optimizer::Adam,
        rate: 0.003,
        final_rate: 0.003,
        batch_positions: 128,
        mirror: false,
        replay: ReplayConfig {
            window_positions: 0,
            uses: 1,
        },
    };
    Learner::new(game, &net(kind), &learning, Compute::cpu(), Seed(1))
}

/// `count` positions of random games, none of them over.
fn positions(game: &Leaper, count: usize) -> Vec<Position> {
    let mut positions = random_positions(game, count.div_ceil(8), &mut Seed(1).stream("positions"));
    positions.truncate(count);
    positions
}

fn rules(criterion: &mut Criterion) {
    let game = blitz();
    let one_thread = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .expect("a thread");
    let mut group = criterion.benchmark_group("perft, depth 5, one thread");
    group
        .sample_size(10)
        .throughput(Throughput::Elements(803_083));
    group.bench_function("bitboards", |b| {
        b.iter(|| one_thread.install(|| perft::perft(&game, &game.start(), 5)));
    });
    group.bench_function("slow twin", |b| {
        b.iter(|| slow::slow_perft(&game, &game.start(), 5))
    });
    group.finish();
}

fn evaluation(criterion: &mut Criterion) {
    let game = blitz();
    let parents = positions(&game, 256);
    let moves_of = |position: &Position| {
        let mut moves = Vec::new();
        game.legal_moves(position, &mut moves);
        moves
    };
    let moves: Vec<_> = parents.iter().map(moves_of).collect();
    let mut all = Vec::new();
    for (parent, moves) in parents.iter().zip(&moves) {
        children(&game, parent, moves, &mut all);
    }
    let mut group = criterion.benchmark_group("evaluation of all children of 256 positions");
    group.throughput(Throughput::Elements(all.len() as u64));
    let mut values = Vec::new();
    let mlp = learner(&game, NetKind::Mlp);
    let NetEvaluator::Sparse(mut sparse) = mlp.evaluator() else {
        unreachable!("an MLP on the CPU is sparse")
    };
    group.bench_function("mlp, sparse, from the parent", |b| {
        b.iter(|| {
            for (parent, moves) in parents.iter().zip(&moves) {
                sparse.evaluate_children(&game, parent, moves, &mut values);
                black_box(&values);
            }
        });
    });
    group.bench_function("mlp, sparse, anew", |b| {
        b.iter(|| sparse.evaluate(&game, &all, &mut values));
    });
    group.sample_size(10);
    for kind in NetKind::ALL {
        let mut burn = BatchEvaluator::new(learner(&game, kind).net(), Compute::cpu().device);
        group.bench_function(BenchmarkId::new("burn", kind.name()), |b| {
            b.iter(|| burn.evaluate(&game, &all, &mut values));
        });
    }
    group.finish();
}

fn solving(criterion: &mut Criterion) {
    let game = blitz();
    let mut rng = Seed(1).stream("solving");
    let start = game.start();
    let eighth = |_| {
        let mut position = start;
        for _ in 0..8 {
            let mut moves = Vec::new();
            game.legal_moves(&position, &mut moves);
            if moves.is_empty() {
                break;
            }
            game.play_unchecked(&mut position, moves[rng.random_range(0..moves.len())]);
        }
        position
    };
    let positions: Vec<Position> = (0..20).map(eighth).collect();
    let shipped = ShippedModel::of_game(game.name()).expect("Blitz has a model");
    let compute = Compute::cpu();
    let model = shipped.load(&compute.device).expect("the files are right");
    let prior = NetEvaluator::new(&model.net, &compute);
    let mut group = criterion.benchmark_group("solving 20 random positions after 8 plies");
    group.throughput(Throughput::Elements(20)).sample_size(10);
    for (name, with_prior) in [("with the shipped model", true), ("without a prior", false)] {
        group.bench_function(name, |b| {
            b.iter(|| {
                let prior = with_prior.then(|| Box::new(prior.clone()) as Box<dyn Evaluator<_>>);
                let options = SolverOptions::default();
                let mut solver = Solver::new(&game, options, prior).expect("March ends");
                for position in &positions {
                    black_box(solver.solve(position, &Limits::default()));
                }
            });
        });
    }
    group.finish();
}

fn learning(criterion: &mut Criterion) {
    let game = blitz();
    let mut group = criterion.benchmark_group("training step");
    group.sample_size(20);
    for kind in NetKind::ALL {
        for batch in [128, 1024] {
            let mut samples = Samples::default();
            for position in positions(&game, batch) {
                samples.features.push(&game, &position);
                samples.targets.push(0.5);
            }
            let mut learner = learner(&game, kind);
            group.throughput(Throughput::Elements(batch as u64));
            group.bench_function(BenchmarkId::new(kind.name(), batch), |b| {
                b.iter(|| learner.descend(&game, &samples, 0.001).into_scalar::<f32>());
            });
        }
    }
    group.finish();
}

fn generation(criterion: &mut Criterion) {
    let game = blitz();
    let config = SelfPlayConfig {
        pairings: vec![Pairing([Player::Net, Player::Net])],
        max_opening_plies: 6,
        temperature: 0.1,
        epsilon: 0.05,
    };
    let generator = Generator {
        game: &game,
        config: &config,
        streams: Seed(1).purpose("selfplay"),
        games_per_round: 48,
    };
    let mut group = criterion.benchmark_group("48 games of self-play");
    group.throughput(Throughput::Elements(48)).sample_size(20);
    let evaluator = learner(&game, NetKind::Mlp).evaluator();
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("threads");
        group.bench_function(format!("mlp, sparse, {threads} threads"), |b| {
            b.iter(|| pool.install(|| generator.play_round(0, 48, &evaluator)));
        });
    }
    group.sample_size(10);
    let mut burn = BatchEvaluator::new(learner(&game, NetKind::Mlp).net(), Compute::cpu().device);
    group.bench_function("mlp, burn, all games together", |b| {
        b.iter(|| generator.play_together(0, 48, &mut burn));
    });
    group.finish();
}

fn werewolf(criterion: &mut Criterion) {
    const GAMES: u64 = 1_000;
    let mut group = criterion.benchmark_group("Werewolf, 1000 games, one thread");
    group
        .throughput(Throughput::Elements(GAMES))
        .sample_size(10);
    let simulator = Simulator::new(Rules::paper2015());
    let mut rng = Seed(1).stream("werewolf");
    group.bench_function("random, no talk", |b| {
        b.iter(|| {
            (0..GAMES)
                .map(|_| simulator.play(&mut Uniform::<false>, &mut rng).1)
                .last()
        });
    });
    group.bench_function("random, with talk", |b| {
        b.iter(|| {
            (0..GAMES)
                .map(|_| simulator.play(&mut Uniform::<true>, &mut rng).1)
                .last()
        });
    });
    let preset = tanren::lab::config::preset(EXPERIMENTS, "werewolf-paper").expect("a preset");
    let mut keys: toml::Table = preset.toml.parse().expect("presets are TOML");
    keys.remove("experiment");
    let config: Config = keys.try_into().expect("a complete preset");
    let mut environment = Environment::shared(&config, &simulator.rules);
    let streams = Seed(1).purpose("werewolf");
    group.bench_function("learning", |b| {
        b.iter(|| {
            environment.learn(
                &simulator,
                &config,
                config.single_rate(),
                streams,
                0,
                0..GAMES,
            )
        });
    });
    group.finish();
}

criterion_group!(
    benches, rules, evaluation, solving, learning, generation, werewolf
);
criterion_main!(benches);
