//! Answers the questions of `scripts/bench` about speed: each line of input is a
//! question in words, each line of output the seconds that one run takes (the
//! median of as many as fit into a third of a second), and what it counted. So the
//! script can put a question to this program and to PyTorch in turn, and whatever
//! else the machine does meanwhile hits both.
//!
//! Questions (a network is `mlp:HIDDEN`, `conv:CHANNELS` or `residual:CHANNELS`):
//!
//! ```text
//! step NET BATCH THREADS        a training step                      positions
//! step-burn NET BATCH THREADS   the same, all of it by burn          positions
//! evaluate NET BATCH            positions by themselves, one thread  positions
//! evaluate-burn NET BATCH       the same by burn                     positions
//! children NET                  all children of 256 positions        positions
//! generate NET GAMES THREADS    a round of self-play                 games, evaluations
//! multiply-adds                 as many as the registers take        operations
//! ```

use std::hint::black_box;
use std::io::BufRead;
use std::time::Instant;

use burn::optim::AdamConfig;
use pulp::{Arch, Simd, WithSimd};
use tanren::game::playout::random_positions;
use tanren::game::{Game, Value, children};
use tanren::games::leaper::{Leaper, Position};
use tanren::nets::device::Compute;
use tanren::nets::{
    BatchEvaluator, ConvConfig, MlpConfig, NetConfig, NetEvaluator, NetKind, ResidualConfig,
};
use tanren::random::Seed;
use tanren::search::Evaluator;
use tanren::train::learner::{Learner, LearningConfig, Optimizer, backpropagate};
use tanren::train::replay::{ReplayConfig, Samples};
use tanren::train::selfplay::{ExactTargets, Generator, Pairing, Player, SelfPlayConfig};

fn main() {
    let game = tanren::games::load("march-blitz").expect("a built-in game");
    let bench = Bench {
        game: game.as_leaper().expect("a leaper game").clone(),
    };
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("questions are text");
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |word: &str| word.parse().expect("a number");
        match words[..] {
            ["step", net, batch, threads] => {
                on(number(threads), || bench.step(net, number(batch)));
            }
            ["step-burn", net, batch, threads] => {
                on(number(threads), || bench.step_by_burn(net, number(batch)));
            }
            ["evaluate", net, batch] => on(1, || bench.evaluate(net, number(batch))),
            ["evaluate-burn", net, batch] => on(1, || bench.evaluate_by_burn(net, number(batch))),
            ["children", net] => on(1, || bench.children(net)),
            ["generate", net, games, threads] => {
                on(number(threads), || {
                    bench.generate(net, number(games) as u64)
                });
            }
            ["multiply-adds"] => on(1, multiply_adds),
            _ => panic!("no such question: {line}"),
        }
    }
}

fn on(threads: usize, question: impl FnOnce() + Send) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build().expect("threads").install(question);
}

/// Prints the median seconds of `run`, and what it says that it counted.
fn answer<const N: usize>(mut run: impl FnMut() -> [u64; N]) {
    const SECONDS: f64 = 0.3;
    const LEAST_RUNS: usize = 3;
    // The first run prepares memory.
    let counts = run();
    let started = Instant::now();
    let mut seconds = Vec::new();
    while seconds.len() < LEAST_RUNS || started.elapsed().as_secs_f64() < SECONDS {
        let started = Instant::now();
        black_box(run());
        seconds.push(started.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
    println!("{:e} {}", seconds[seconds.len() / 2], counts.join(" "));
}

struct Bench {
    game: Leaper,
}

impl Bench {
    fn learner(&self, net: &str) -> Learner {
        let learning = LearningConfig {
            optimizer: Optimizer::Adam,
            rate: 0.001,
            final_rate: 0.001,
            batch_positions: 128,
            mirror: false,
            replay: ReplayConfig {
                window_positions: 0,
                uses: 1,
            },
        };
        Learner::new(&self.game, &config(net), &learning, Compute::cpu(), Seed(1))
    }

    fn positions(&self, count: usize) -> Vec<Position> {
        let mut rng = Seed(1).stream("positions");
        let mut positions = random_positions(&self.game, count.div_ceil(8), &mut rng);
        positions.truncate(count);
        positions
    }

    fn samples(&self, count: usize) -> Samples {
        let mut samples = Samples::default();
        for position in self.positions(count) {
            samples.features.push(&self.game, &position);
            samples.targets.push(0.5);
        }
        samples
    }

    fn step(&self, net: &str, batch: usize) {
        let samples = self.samples(batch);
        let mut learner = self.learner(net);
        answer(|| {
            let loss = learner.descend(&self.game, &samples, 0.001);
            black_box(loss.into_scalar::<f32>());
            [batch as u64]
        });
    }

    fn step_by_burn(&self, net: &str, batch: usize) {
        let samples = self.samples(batch);
        let autodiff = Compute::cpu().device.autodiff();
        let shape = self.game.plane_shape();
        let mut net = config(net).init(shape, &mut Seed(1).stream("weights"), &autodiff);
        let mut optimizer = AdamConfig::new().init();
        answer(|| {
            let (loss, gradients) = backpropagate(&self.game, &net, &samples, &autodiff);
            net = optimizer.step(0.001, net.clone(), gradients);
            black_box(loss.into_scalar::<f32>());
            [batch as u64]
        });
    }

    fn evaluate(&self, net: &str, batch: usize) {
        self.evaluate_by(self.learner(net).evaluator(), batch);
    }

    fn evaluate_by_burn(&self, net: &str, batch: usize) {
        let net = self.learner(net).net();
        self.evaluate_by(BatchEvaluator::new(net, Compute::cpu().device), batch);
    }

    fn evaluate_by(&self, mut evaluator: impl Evaluator<Leaper>, batch: usize) {
        let positions = self.positions(batch);
        let mut values = Vec::new();
        answer(|| {
            evaluator.evaluate(&self.game, &positions, &mut values);
            black_box(&values);
            [batch as u64]
        });
    }

    fn children(&self, net: &str) {
        let mut evaluator = self.learner(net).evaluator();
        let parents = self.positions(256);
        let moves: Vec<Vec<_>> = parents
            .iter()
            .map(|parent| {
                let mut moves = Vec::new();
                self.game.legal_moves(parent, &mut moves);
                moves
            })
            .collect();
        let mut values = Vec::new();
        answer(|| {
            let mut count = 0;
            for (parent, moves) in parents.iter().zip(&moves) {
                evaluator.evaluate_children(&self.game, parent, moves, &mut values);
                count += black_box(&values).len();
            }
            [count as u64]
        });
    }

    fn generate(&self, net: &str, games: u64) {
        let evaluator: NetEvaluator = self.learner(net).evaluator();
        let config = selfplay();
        let generator = self.generator(&config, games);
        answer(|| {
            let round = generator.play_round(0, games, &evaluator);
            [round.games, round.evaluations]
        });
    }

    fn generator<'a>(&'a self, config: &'a SelfPlayConfig, games: u64) -> Generator<'a, Leaper> {
        Generator {
            game: &self.game,
            config,
            streams: Seed(1).purpose("selfplay"),
            games_per_round: games,
        }
    }
}

/// The preset march-blitz.
fn selfplay() -> SelfPlayConfig {
    SelfPlayConfig {
        pairings: vec![Pairing([Player::Net, Player::Net])],
        max_opening_plies: 6,
        temperature: 0.1,
        epsilon: 0.05,
        exact: ExactTargets::default(),
    }
}

/// A network by kind and width; depth and dense layer as in the presets.
fn config(net: &str) -> NetConfig {
    let (kind, width) = net.split_once(':').expect("KIND:WIDTH");
    let width = width.parse().expect("a number");
    NetConfig {
        kind: match kind {
            "mlp" => NetKind::Mlp,
            "conv" => NetKind::Conv,
            "residual" => NetKind::Residual,
            _ => panic!("no such network: {net}"),
        },
        mlp: MlpConfig { hidden: width },
        conv: ConvConfig {
            channels: width,
            layers: 3,
            hidden: 64,
        },
        residual: ResidualConfig {
            channels: width,
            blocks: 2,
            hidden: 64,
        },
    }
}

/// The machine's ceiling: independent multiply-adds in registers.
fn multiply_adds() {
    const STEPS: u64 = 1_000_000;
    const CHAINS: usize = 12;

    struct Chains;
    impl WithSimd for Chains {
        type Output = u64;

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> u64 {
            let mut sums = [simd.splat_f32s(1.0); CHAINS];
            let factor = black_box(simd.splat_f32s(0.999));
            for _ in 0..STEPS {
                for sum in &mut sums {
                    *sum = simd.mul_add_e_f32s(*sum, factor, factor);
                }
            }
            black_box(sums);
            STEPS * CHAINS as u64 * S::F32_LANES as u64
        }
    }
    answer(|| [Arch::new().dispatch(Chains)]);
}
