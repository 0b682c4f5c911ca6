//! Experiment `value`: a value network learned by self-play.
//!
//! A step is a few rounds. A round is a number of games, whose positions the
//! network then learns. With `overlap` the next round is generated while the
//! network learns from this one, so its games are played by weights that are one
//! round old; either way the result depends on configuration and seed alone.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use burn::module::Module;
use serde::{Deserialize, Serialize};

use crate::agents::{Agent, MaterialAgent, NetworkAgent, RandomAgent};
use crate::arena::{AgentFactory, play_match};
use crate::game::playout::random_positions;
use crate::game::{Game, Value};
use crate::games::{GameVisitor, with_game};
use crate::grade::{Grade, TestSet, grade};
use crate::hash::sha256_hex;
use crate::lab::checkpoint::{self, Checkpoint, KEEP};
use crate::lab::folder::{CHECKPOINTS, CONFIG, METRICS, REPORT};
use crate::lab::{Experiment, FinishedRun, Metrics, Preset, Report, Setup, config, files};
use crate::nets::device::{Compute, DeviceRequest};
use crate::nets::model::{
    Model, ModelCard, Strength, Training, WEIGHTS_FILE, WeightsError, net_from_bytes, rules_sha256,
};
use crate::nets::{Net, NetConfig, NetEvaluator};
use crate::random::{Rng, Seed};
use crate::report::{RunData, Summary, runs_page};
use crate::search::Evaluator;
use crate::stats::Proportion;
use crate::train::choose::{Chosen, Workload, choose};
use crate::train::learner::{Learner, LearningConfig, load_net};
use crate::train::replay::Samples;
use crate::train::selfplay::{Generator, Round, SelfPlayConfig};

/// What to train, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainValueConfig {
    /// A built-in game, or the path of a rules file. The article: March.
    pub game: String,
    /// Games of self-play in all. The article: 300,000.
    pub games: u64,
    /// Games between two rounds of learning. The article: 3, one set.
    pub games_per_round: u64,
    /// Rounds in a step: a step is one line of metrics, and checkpoints lie
    /// between steps.
    pub rounds_per_step: u64,
    /// Whether to generate the next round while learning from this one. The
    /// article: no.
    pub overlap: bool,
    /// A safetensors file with weights to start from, named and laid out as those of
    /// a model folder or of PyTorch; empty: fresh weights. The article: fresh.
    #[serde(default)]
    pub init: String,
    /// The network.
    pub net: NetConfig,
    /// How games are played.
    pub selfplay: SelfPlayConfig,
    /// How the network learns.
    pub learning: LearningConfig,
    /// How strength is measured.
    pub evaluation: EvaluationConfig,
}

/// How strength is measured: against BabyAI and EasyAI, in colour-swapped pairs of
/// games from random openings, and at the same moments against exactly solved
/// positions, if a test set is shipped for the game.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvaluationConfig {
    /// Measure each time this many games of self-play are done.
    pub every_games: u64,
    /// Pairs against each opponent, along the way.
    pub pairs: u64,
    /// Pairs against each opponent, at the end.
    pub final_pairs: u64,
}

impl TrainValueConfig {
    fn rounds(&self) -> u64 {
        self.games.div_ceil(self.games_per_round)
    }

    /// The weights to start from, if they are given.
    fn init_weights(&self) -> Result<Option<Vec<u8>>> {
        if self.init.is_empty() {
            return Ok(None);
        }
        let path = Path::new(&self.init);
        ensure!(
            !path.is_dir(),
            "{} is a folder; name a file, such as the {WEIGHTS_FILE} of a model folder",
            path.display()
        );
        Ok(Some(files::read(path)?))
    }

    fn games_in(&self, round: u64) -> u64 {
        self.games_per_round
            .min(self.games - round * self.games_per_round)
    }

    /// The device on which to train these networks in this way.
    pub(super) fn choose_device(
        &self,
        request: DeviceRequest,
        nets: &[NetConfig],
    ) -> Result<Chosen> {
        struct Choose<'a>(DeviceRequest, Workload<'a>);
        impl GameVisitor for Choose<'_> {
            type Output = Result<Chosen>;
            fn visit<G: Game>(self, game: Arc<G>) -> Result<Chosen> {
                choose(&*game, self.0, &self.1)
            }
        }
        let work = Workload {
            nets,
            games_per_round: self.games_per_round,
            learning: &self.learning,
        };
        with_game(&self.game, Choose(request, work))?
    }
}

/// The device that a run was on, in its checkpoints.
pub(super) const DEVICE_FILE: &str = "device.json";

/// What a person asked for to go on with a run: `auto` is the device that the run
/// was on, so that a run does not end on another than it began on.
pub(super) fn same_device(asked: &str, file: &Path) -> Result<DeviceRequest> {
    match asked.parse()? {
        DeviceRequest::Auto => Ok(read_json::<String>(file)?.parse()?),
        fixed => Ok(fixed),
    }
}

/// Training of a value network, for any game.
pub struct TrainValue(Box<dyn Session>);

const PRESETS: &[Preset] = &[
    Preset {
        name: "march-blitz",
        about: "March, Blitz layout: the recipe of the shipped model, 300,000 games",
        toml: include_str!("presets/march-blitz.toml"),
    },
    Preset {
        name: "march-blitz-exact",
        about: "the same, with exact targets where positions are solved on the fly",
        toml: include_str!("presets/march-blitz-exact.toml"),
    },
    Preset {
        name: "march-grand",
        about: "March, Grand layout: the same recipe",
        toml: include_str!("presets/march-grand.toml"),
    },
    Preset {
        name: "march-article",
        about: "the article as it is: sets of three games, greedy, plain SGD, 300,000 games",
        toml: include_str!("presets/march-article.toml"),
    },
    Preset {
        name: "smoke",
        about: "a few hundred games in seconds, to see that everything works",
        toml: include_str!("presets/smoke.toml"),
    },
];

impl Experiment for TrainValue {
    const NAME: &'static str = "value";
    const PRESETS: &'static [Preset] = PRESETS;
    type Config = TrainValueConfig;

    fn validate(config: &TrainValueConfig) -> Result<()> {
        let positive = [
            ("games", config.games),
            ("games_per_round", config.games_per_round),
            ("rounds_per_step", config.rounds_per_step),
            (
                "learning.batch_positions",
                config.learning.batch_positions as u64,
            ),
            ("learning.replay.uses", config.learning.replay.uses as u64),
            ("evaluation.every_games", config.evaluation.every_games),
            ("evaluation.pairs", config.evaluation.pairs),
            ("evaluation.final_pairs", config.evaluation.final_pairs),
        ];
        for (key, value) in positive {
            ensure!(
                value > 0,
                "{key} = 0 is out of range: accepted are 1 and more"
            );
        }
        for (key, value, most) in [
            ("games_per_round", config.games_per_round, 1_000_000),
            (
                "learning.replay.uses",
                config.learning.replay.uses as u64,
                1000,
            ),
        ] {
            ensure!(
                value <= most,
                "{key} = {value} is out of range: accepted are 1 to {most}"
            );
        }
        for (key, rate) in [
            ("learning.rate", config.learning.rate),
            ("learning.final_rate", config.learning.final_rate),
        ] {
            ensure!(
                rate > 0.0 && rate <= 100.0,
                "{key} = {rate} is out of range: accepted are numbers above 0, up to 100"
            );
        }
        let temperature = config.selfplay.temperature;
        ensure!(
            (0.0..=1000.0).contains(&temperature),
            "selfplay.temperature = {temperature} is out of range: accepted are 0 (greedy) to 1000"
        );
        let epsilon = config.selfplay.epsilon;
        ensure!(
            (0.0..=1.0).contains(&epsilon),
            "selfplay.epsilon = {epsilon} is out of range: accepted are 0 to 1"
        );
        let share = config.selfplay.exact.share;
        ensure!(
            (0.0..=1.0).contains(&share),
            "selfplay.exact.share = {share} is out of range: accepted are 0 (none) to 1"
        );
        ensure!(
            !config.selfplay.pairings.is_empty(),
            "selfplay.pairings is empty: give at least one pairing, such as \"net-net\""
        );
        config.net.validate().map_err(anyhow::Error::msg)?;
        struct Endless;
        impl GameVisitor for Endless {
            type Output = Option<String>;
            fn visit<G: Game>(self, game: Arc<G>) -> Option<String> {
                game.why_endless()
            }
        }
        let endless = with_game(&config.game, Endless).context("game is not usable")?;
        match endless.filter(|_| share > 0.0) {
            Some(why) => bail!(
                "selfplay.exact.share = {share}, but {} cannot be solved: {why}; accepted is 0",
                config.game
            ),
            None => Ok(()),
        }
    }

    fn validate_inputs(config: &TrainValueConfig) -> Result<()> {
        /// Whether the weights are those of the network.
        struct Fit<'a>(&'a NetConfig, Vec<u8>);
        impl GameVisitor for Fit<'_> {
            type Output = Result<(), WeightsError>;
            fn visit<G: Game>(self, game: Arc<G>) -> Self::Output {
                let cpu = Compute::cpu().device;
                net_from_bytes(self.0, game.plane_shape(), self.1, &cpu).map(|_| ())
            }
        }
        let not_usable = || format!("init = {:?} is not usable", config.init);
        match config.init_weights().with_context(not_usable)? {
            Some(weights) => {
                with_game(&config.game, Fit(&config.net, weights))?.with_context(not_usable)
            }
            None => Ok(()),
        }
    }

    fn steps(config: &TrainValueConfig) -> u64 {
        config.rounds().div_ceil(config.rounds_per_step)
    }

    fn start(config: &TrainValueConfig, setup: &Setup) -> Result<TrainValue> {
        let nets = [config.net.clone()];
        let chosen = config.choose_device(setup.device.parse()?, &nets)?;
        TrainValue::start_on(config, setup.seed, chosen)
    }

    fn load(config: &TrainValueConfig, setup: &Setup, directory: &Path) -> Result<TrainValue> {
        let nets = [config.net.clone()];
        let request = same_device(&setup.device, &directory.join(DEVICE_FILE))?;
        let chosen = config.choose_device(request, &nets)?;
        TrainValue::load_on(config, setup.seed, chosen, directory)
    }

    fn save(&self, directory: &Path) -> Result<()> {
        self.0.save(directory)
    }

    fn describe(&self) -> String {
        self.0.describe()
    }

    fn about(&self) -> BTreeMap<String, String> {
        self.0.about()
    }

    fn step(&mut self, metrics: &mut Metrics) -> Result<()> {
        self.0.step(metrics)
    }

    fn finish(self, run: &FinishedRun) -> Result<Report> {
        self.0.finish(run)
    }
}

impl TrainValue {
    /// [`Experiment::start`], on a device that has been chosen before.
    pub(super) fn start_on(
        config: &TrainValueConfig,
        seed: u64,
        chosen: Chosen,
    ) -> Result<TrainValue> {
        TrainValue::begin(config, seed, chosen, config.init_weights()?)
    }

    /// [`Experiment::load`], on a device that has been chosen before.
    pub(super) fn load_on(
        config: &TrainValueConfig,
        seed: u64,
        chosen: Chosen,
        directory: &Path,
    ) -> Result<TrainValue> {
        let TrainValue(session) = TrainValue::begin(config, seed, chosen, None)?;
        Ok(TrainValue(session.restore(directory)?))
    }

    /// The state before the first step, with the weights of `init` if there are any.
    fn begin(
        config: &TrainValueConfig,
        seed: u64,
        chosen: Chosen,
        init: Option<Vec<u8>>,
    ) -> Result<TrainValue> {
        let start = Start {
            config: config.clone(),
            seed: Seed(seed),
            chosen,
            init,
        };
        Ok(TrainValue(with_game(&config.game, start)??))
    }

    /// The network as it is now, its strength measured as at the end of a run.
    pub(super) fn measured_model(&self, run: &str) -> Model {
        self.0.measured_model(run)
    }

    /// Wall-clock time of training so far, matches aside.
    pub(super) fn training_seconds(&self) -> f64 {
        self.0.training_seconds()
    }
}

/// A network as a checkpoint of a run holds it.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Games of self-play that the network had learned from.
    pub games: u64,
    /// The network, for inference.
    pub net: Net,
}

impl Snapshot {
    /// Tells whether [`Snapshot::newest`] would give what it gave before: a text that is
    /// another one then. `None` if there is no checkpoint yet.
    ///
    /// # Errors
    /// If the checkpoints cannot be read.
    pub fn newest_hash(run: &Path) -> Result<Option<String>> {
        Ok(checkpoint::newest_hash(&run.join(CHECKPOINTS))?)
    }

    /// Reads the newest undamaged checkpoint of a run, which may be going on.
    ///
    /// # Errors
    /// If the run is not one that trains a value network for these rules, or has no
    /// undamaged checkpoint.
    pub fn newest<G: Game>(run: &Path, game: &G, compute: &Compute) -> Result<Snapshot> {
        // A run that goes on removes checkpoints, perhaps this one while it is read.
        // By then there are newer ones.
        let mut tries = 1;
        loop {
            match Snapshot::read(run, game, compute) {
                Err(_) if tries < KEEP => tries += 1,
                result => return result,
            }
        }
    }

    fn read<G: Game>(run: &Path, game: &G, compute: &Compute) -> Result<Snapshot> {
        let config = config::read_resolved::<TrainValue>(&run.join(CONFIG))?
            .with_context(|| format!("{} does not train a value network", run.display()))?;
        let found = checkpoint::newest(&run.join(CHECKPOINTS), &run.join(METRICS))?;
        let Some(Checkpoint { state, .. }) = found.checkpoint else {
            match found.damaged.into_iter().next() {
                Some(damage) => return Err(damage.into()),
                None => bail!("{} has no checkpoint yet", run.display()),
            }
        };
        let progress: Progress = read_json(&state.join(PROGRESS_FILE))?;
        ensure!(
            progress.rules_sha256 == rules_sha256(game),
            "{} was not trained on these rules of {}",
            run.display(),
            game.name()
        );
        Ok(Snapshot {
            games: progress.games,
            net: load_net(&config.net, game.plane_shape(), &state, &compute.device)?,
        })
    }
}

/// [`Experiment`]'s methods, for a game whose type is erased.
trait Session: Send {
    fn restore(self: Box<Self>, directory: &Path) -> Result<Box<dyn Session>>;
    fn save(&self, directory: &Path) -> Result<()>;
    fn describe(&self) -> String;
    fn about(&self) -> BTreeMap<String, String>;
    fn step(&mut self, metrics: &mut Metrics) -> Result<()>;
    fn measured_model(&self, run: &str) -> Model;
    fn training_seconds(&self) -> f64;
    fn finish(self: Box<Self>, run: &FinishedRun) -> Result<Report>;
}

struct Start {
    config: TrainValueConfig,
    seed: Seed,
    chosen: Chosen,
    /// The bytes of the file to start from.
    init: Option<Vec<u8>>,
}

impl GameVisitor for Start {
    type Output = Result<Box<dyn Session>>;

    fn visit<G: Game>(self, game: Arc<G>) -> Result<Box<dyn Session>> {
        let Start {
            config,
            seed,
            chosen,
            init,
        } = self;
        let compute = chosen.compute.clone();
        let mut learner = Learner::new(&*game, &config.net, &config.learning, compute, seed);
        let init_sha256 = init.as_deref().map(sha256_hex);
        if let Some(weights) = init {
            let loaded = learner.load_weights(weights);
            loaded.with_context(|| format!("init = {:?} is not usable", config.init))?;
        }
        Ok(Box::new(TypedSession {
            probe: probe_positions(&*game, &mut seed.stream("probe")),
            test_set: TestSet::shipped(&*game),
            progress: Progress {
                rules_sha256: rules_sha256(&*game),
                init_sha256,
                rounds: 0,
                games: 0,
                positions: 0,
                evaluations: 0,
                training_seconds: 0.0,
            },
            game,
            config,
            seed,
            learner,
            chosen,
            next: None,
        }))
    }
}

/// The file of [`Progress`] in a checkpoint.
const PROGRESS_FILE: &str = "progress.json";

/// What has been done, for checkpoints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Progress {
    /// The rules that the run was started with.
    rules_sha256: String,
    /// The file of weights that the run was started with.
    init_sha256: Option<String>,
    /// Rounds learned.
    rounds: u64,
    games: u64,
    positions: u64,
    evaluations: u64,
    /// Wall-clock time without matches.
    training_seconds: f64,
}

struct TypedSession<G: Game> {
    game: Arc<G>,
    config: TrainValueConfig,
    seed: Seed,
    learner: Learner,
    /// Where the learner learns, and why there.
    chosen: Chosen,
    progress: Progress,
    /// A round that has been generated and not been learned yet.
    next: Option<Round>,
    /// Positions on which the spread of values is watched.
    probe: Vec<G::Position>,
    /// Positions whose exact values are known.
    test_set: Option<TestSet<G>>,
}

/// Random positions that are not over, none twice.
fn probe_positions<G: Game>(game: &G, rng: &mut Rng) -> Vec<G::Position> {
    const GAMES: usize = 64;
    let mut seen = HashSet::new();
    let mut probe = random_positions(game, GAMES, rng);
    probe.retain(|position| seen.insert(position.clone()));
    probe
}

/// Smallest and largest value that the network gives the positions.
fn value_range<G: Game>(
    game: &G,
    evaluator: &mut NetEvaluator,
    positions: &[G::Position],
) -> (f32, f32) {
    let mut values: Vec<Value> = Vec::new();
    evaluator.evaluate(game, positions, &mut values);
    let numbers = values.iter().map(|value| value.get());
    (
        numbers.clone().fold(f32::INFINITY, f32::min),
        numbers.fold(f32::NEG_INFINITY, f32::max),
    )
}

/// What the rounds of one step gave.
#[derive(Default)]
struct StepTotals {
    games: u64,
    positions: usize,
    evaluations: u64,
    exact: u64,
    first_player_points: f64,
    loss: f64,
    rounds: u64,
    distinct_share: f64,
}

impl<G: Game> TypedSession<G> {
    const NEXT_FILE: &str = "next.json";
    const NEXT_SAMPLES_FILE: &str = "next.safetensors";

    /// Learns one round, generating the one after it at the same time if the
    /// configuration says so.
    fn round(&mut self, totals: &mut StepTotals) -> Result<()> {
        let TypedSession {
            game,
            config,
            seed,
            learner,
            progress,
            next,
            ..
        } = self;
        let round = progress.rounds;
        let generator = Generator {
            game: &**game,
            config: &config.selfplay,
            streams: seed.purpose("selfplay"),
            games_per_round: config.games_per_round,
        };
        let play = |round, evaluator: &NetEvaluator| {
            generator.play_round(round, config.games_in(round), evaluator)
        };
        let Round {
            samples,
            games,
            evaluations,
            exact,
            first_player_points,
        } = next
            .take()
            .unwrap_or_else(|| play(round, &learner.evaluator()));
        totals.games += games;
        totals.positions += samples.len();
        totals.evaluations += evaluations;
        totals.exact += exact;
        totals.first_player_points += first_player_points;
        totals.rounds += 1;
        totals.distinct_share = samples.distinct_share();
        progress.positions += samples.len() as u64;

        let rounds = config.rounds();
        let learn = |learner: &mut Learner| {
            learner.learn(&**game, &config.learning, samples, round, rounds)
        };
        let learned = if config.overlap && round + 1 < rounds {
            let evaluator = learner.evaluator();
            let (learned, generated) =
                rayon::join(|| learn(learner), || play(round + 1, &evaluator));
            *next = Some(generated);
            learned
        } else {
            learn(learner)
        };
        if !learned.loss.is_finite() {
            bail!(
                "the loss is {} after {} games: the network has blown up; lower learning.rate \
                 (now {}) or learning.final_rate (now {})",
                learned.loss,
                progress.games + games,
                config.learning.rate,
                config.learning.final_rate
            );
        }
        totals.loss += f64::from(learned.loss);
        progress.rounds += 1;
        progress.games += games;
        progress.evaluations += evaluations;
        Ok(())
    }

    /// Stops a run whose network says nearly the same about every position, as where
    /// its sigmoids are saturated and no gradient brings them back. Returns the largest
    /// less the smallest value.
    ///
    /// A young network may be learning the mean first, and the rest later: it is
    /// stopped only if it is certain of everything.
    fn check_spread(&self) -> Result<f32> {
        const MIN_SPREAD: f32 = 0.05;
        const CERTAIN: f32 = 0.9;
        const YOUNG_POSITIONS: u64 = 10_000;
        let (low, high) = value_range(&*self.game, &mut self.learner.evaluator(), &self.probe);
        let spread = high - low;
        let young = self.progress.positions < YOUNG_POSITIONS;
        let certain = low > CERTAIN || high < -CERTAIN;
        ensure!(
            spread >= MIN_SPREAD || (young && !certain),
            "the network says nearly the same about {} different positions after {} games (its \
             values lie between {low:.4} and {high:.4}; a network that learns spreads them by \
             more than {MIN_SPREAD}): it has collapsed; lower learning.rate (now {}) or \
             learning.final_rate (now {}), or explore more with selfplay.temperature (now {}) and \
             selfplay.epsilon (now {})",
            self.probe.len(),
            self.progress.games,
            self.config.learning.rate,
            self.config.learning.final_rate,
            self.config.selfplay.temperature,
            self.config.selfplay.epsilon
        );
        Ok(spread)
    }

    /// Plays against BabyAI and EasyAI; on the CPU, since a GPU is slow at the few
    /// positions of one game.
    fn measure(&self, pairs: u64, purpose: &str) -> Vec<Strength> {
        let streams = self.seed.purpose(purpose);
        let evaluator = NetEvaluator::new(&self.net_on_cpu(), &Compute::cpu());
        let own = || -> Box<dyn Agent<G>> { Box::new(NetworkAgent::new("net", evaluator.clone())) };
        let baby = || -> Box<dyn Agent<G>> { Box::new(RandomAgent) };
        let easy = || -> Box<dyn Agent<G>> { Box::new(MaterialAgent::easy()) };
        let opponents: [(&str, &AgentFactory<G>); 2] = [("baby", &baby), ("easy", &easy)];
        (0..)
            .zip(opponents)
            .map(|(number, (name, opponent))| {
                let result = play_match(&*self.game, [&own, opponent], pairs, streams, number);
                Strength {
                    opponent: name.to_string(),
                    plies: 1,
                    score: result.pairs.score(),
                    games: result.games(),
                }
            })
            .collect()
    }

    /// A copy of the network as it is now.
    fn net_on_cpu(&self) -> Net {
        self.learner.net().to_device(&Compute::cpu().device)
    }

    /// How the network does at 1 ply where the truth is known. Draws no lots, so that
    /// measuring changes nothing.
    fn grade(&self, name: &str) -> Option<Grade> {
        let test_set = self.test_set.as_ref()?;
        let evaluator = NetEvaluator::new(&self.net_on_cpu(), &Compute::cpu());
        let own = || -> Box<dyn Agent<G>> { Box::new(NetworkAgent::new("net", evaluator.clone())) };
        Some(grade(&*self.game, test_set, name, &own, true))
    }

    /// Puts what the model was made from beside it: the configuration, and the
    /// rules if they come from a file.
    fn copy_origin(&self, run: &Path, directory: &Path) -> Result<()> {
        let mut origins = vec![(run.join(CONFIG), CONFIG)];
        let rules = Path::new(&self.config.game);
        if rules.is_file() {
            origins.push((rules.to_path_buf(), "rules.toml"));
        }
        for (from, name) in origins {
            files::write_atomically(&directory.join(name), &files::read(&from)?)?;
        }
        Ok(())
    }

    /// What a person may want to do with the network now.
    fn next_commands(&self, run: &FinishedRun) -> String {
        /// What commands take without `--game`.
        const DEFAULT_GAME: &str = "march-blitz";
        let folder = run.model_dir().display().to_string();
        let model = files::shell_word(&format!("model:{folder}"));
        let folder = files::shell_word(&folder);
        let game = match &*self.config.game {
            DEFAULT_GAME => String::new(),
            game => format!(" --game {}", files::shell_word(game)),
        };
        format!(
            "play     tanren play {model}{game}\n\
             measure  tanren match {model} easy{game}\n\
             export   tanren export {folder} --format onnx"
        )
    }

    fn describe_strength(strength: &[Strength]) -> String {
        let scores = strength
            .iter()
            .map(|s| format!("{} against {}", s.score, s.opponent));
        scores.collect::<Vec<_>>().join(", ")
    }
}

impl<G: Game> Session for TypedSession<G> {
    fn restore(mut self: Box<Self>, directory: &Path) -> Result<Box<dyn Session>> {
        self.learner = self.learner.restore(directory)?;
        let progress: Progress = read_json(&directory.join(PROGRESS_FILE))?;
        ensure!(
            progress.rules_sha256 == self.progress.rules_sha256,
            "the rules of {} have changed since the run was started; undo that, or start a new run",
            self.config.game
        );
        self.progress = progress;
        self.next = read_json::<Option<SavedRound>>(&directory.join(Self::NEXT_FILE))?
            .map(|saved| -> Result<Round> {
                Ok(Round {
                    samples: Samples::load(&directory.join(Self::NEXT_SAMPLES_FILE))?,
                    games: saved.games,
                    evaluations: saved.evaluations,
                    exact: saved.exact,
                    first_player_points: saved.first_player_points,
                })
            })
            .transpose()?;
        Ok(self)
    }

    fn save(&self, directory: &Path) -> Result<()> {
        self.learner.save(directory)?;
        let device = self.learner.compute().id.to_string();
        write_json(&directory.join(DEVICE_FILE), &device)?;
        write_json(&directory.join(PROGRESS_FILE), &self.progress)?;
        let saved = self.next.as_ref().map(|round| SavedRound {
            games: round.games,
            evaluations: round.evaluations,
            exact: round.exact,
            first_player_points: round.first_player_points,
        });
        write_json(&directory.join(Self::NEXT_FILE), &saved)?;
        if let Some(round) = &self.next {
            round
                .samples
                .save(&directory.join(Self::NEXT_SAMPLES_FILE))?;
        }
        Ok(())
    }

    fn describe(&self) -> String {
        let net = self.learner.net();
        let weights = match &*self.config.init {
            "" => String::new(),
            init => format!(", at first those of {init}"),
        };
        format!(
            "{}, {} games of self-play on {}\n{}{}\n{} parameters{weights}",
            self.game.title(),
            self.config.games,
            self.learner.compute().name,
            self.chosen.describe(),
            net.layers(),
            net.num_params()
        )
    }

    fn about(&self) -> BTreeMap<String, String> {
        let mut facts = self.chosen.about();
        let Progress {
            rules_sha256,
            init_sha256,
            ..
        } = &self.progress;
        facts.insert("rules_sha256".to_string(), rules_sha256.clone());
        let init = init_sha256
            .iter()
            .map(|hash| ("init_sha256".to_string(), hash.clone()));
        facts.extend(init);
        facts
    }

    fn step(&mut self, metrics: &mut Metrics) -> Result<()> {
        let started = Instant::now();
        let games_before = self.progress.games;
        let mut totals = StepTotals::default();
        let rounds = self
            .config
            .rounds_per_step
            .min(self.config.rounds() - self.progress.rounds);
        for _ in 0..rounds {
            self.round(&mut totals)?;
        }
        let spread = self.check_spread()?;
        let seconds = started.elapsed().as_secs_f64();
        self.progress.training_seconds += seconds;

        let loss = totals.loss / totals.rounds as f64;
        let games_per_second = totals.games as f64 / seconds;
        metrics.set("games", self.progress.games as f64);
        metrics.set("positions", self.progress.positions as f64);
        metrics.set("loss", loss);
        metrics.set("spread", f64::from(spread));
        metrics.set("distinct_share", totals.distinct_share);
        metrics.set(
            "first_player_score",
            totals.first_player_points / totals.games as f64,
        );
        metrics.set(
            "plies_per_game",
            totals.positions as f64 / totals.games as f64,
        );
        metrics.set("games_per_second", games_per_second);
        metrics.set(
            "evaluations_per_second",
            totals.evaluations as f64 / seconds,
        );
        if self.config.selfplay.exact.share > 0.0 {
            metrics.set("exact_share", totals.exact as f64 / totals.positions as f64);
        }
        metrics.status(format!("{games_per_second:.0} games/s, loss {loss:.4}"));

        let every = self.config.evaluation.every_games;
        if self.progress.games / every > games_before / every {
            let purpose = format!("evaluation at {}", self.progress.games);
            let strength = self.measure(self.config.evaluation.pairs, &purpose);
            for (names, s) in STRENGTH_METRICS.iter().zip(&strength) {
                metrics.set(names[0], s.score.score);
                metrics.set(names[1], s.score.low);
                metrics.set(names[2], s.score.high);
            }
            let grade = self.grade("net");
            for (names, share) in GRADE_METRICS.iter().zip(shares(&grade)) {
                metrics.set(names[0], share.score);
                metrics.set(names[1], share.low);
                metrics.set(names[2], share.high);
            }
            metrics.note(format!(
                "{:>9} games: {}{}",
                self.progress.games,
                Self::describe_strength(&strength),
                describe_grade(&grade)
            ));
            if totals.distinct_share < 0.1 {
                metrics.note(format!(
                    "warning: only {:.0}% of the last round's positions differ; self-play repeats \
                     itself, and a small loss means nothing. Raise selfplay.temperature, \
                     selfplay.epsilon or selfplay.max_opening_plies",
                    100.0 * totals.distinct_share
                ));
            }
        }
        Ok(())
    }

    fn training_seconds(&self) -> f64 {
        self.progress.training_seconds
    }

    fn measured_model(&self, run: &str) -> Model {
        let progress = &self.progress;
        let strength = self.measure(self.config.evaluation.final_pairs, "final evaluation");
        Model {
            card: ModelCard {
                game: self.game.name().to_string(),
                rules_sha256: progress.rules_sha256.clone(),
                planes: self.game.plane_shape(),
                weights_sha256: String::new(),
                net: self.config.net.clone(),
                training: Training {
                    run: run.to_string(),
                    seed: self.seed.0,
                    games: progress.games,
                    positions: progress.positions,
                    evaluations: progress.evaluations,
                    seconds: progress.training_seconds,
                    init_sha256: progress.init_sha256.clone(),
                },
                strength,
            },
            net: self.net_on_cpu(),
        }
    }

    fn finish(self: Box<Self>, run: &FinishedRun) -> Result<Report> {
        let Progress {
            games,
            positions,
            evaluations,
            training_seconds,
            ..
        } = self.progress;
        let run_name = run.folder.file_name().unwrap_or(run.folder.as_os_str());
        let model = self.measured_model(&run_name.to_string_lossy());
        let grade = self.grade(&run_name.to_string_lossy());
        let strength = &model.card.strength;
        files::write_dir_atomically(&run.model_dir(), |directory| {
            model.save(directory)?;
            self.copy_origin(&run.folder, directory)
        })?;
        let summary = Summary::of(&model.card, grade.clone());
        let data = RunData::with_summary(&run.folder, Some(summary.clone()))?;
        let page = runs_page(&data.name, std::slice::from_ref(&data));
        files::write_atomically(&run.folder.join(REPORT), page.html().as_bytes())?;
        Ok(Report {
            summary: serde_json::to_value(summary).expect("plain data"),
            text: format!(
                "{games} games and {positions} positions in {training_seconds:.1} s without \
                 matches: {:.0} games/s, {:.1} million evaluations/s\nstrength at 1 ply: {} \
                 ({} games each){}\n{}",
                games as f64 / training_seconds,
                evaluations as f64 / training_seconds / 1e6,
                Self::describe_strength(strength),
                strength[0].games,
                describe_grade(&grade),
                self.next_commands(run)
            ),
        })
    }
}

/// Names of the metrics of [`TypedSession::measure`], in its order.
const STRENGTH_METRICS: [[&str; 3]; 2] = [
    ["score_baby", "score_baby_low", "score_baby_high"],
    ["score_easy", "score_easy_low", "score_easy_high"],
];

/// Names of the metrics of a grade, in the order of [`shares`].
const GRADE_METRICS: [[&str; 3]; 2] = [
    ["signs_right", "signs_right_low", "signs_right_high"],
    ["blunder_rate", "blunder_rate_low", "blunder_rate_high"],
];

/// Signs and blunders of a grade; all or nothing.
fn shares(grade: &Option<Grade>) -> Vec<Proportion> {
    let both = grade
        .iter()
        .filter_map(|grade| grade.signs.zip(grade.blunders));
    both.flat_map(|(signs, blunders)| [signs.share, blunders.share])
        .collect()
}

fn describe_grade(grade: &Option<Grade>) -> String {
    match shares(grade)[..] {
        [signs, blunders] => format!("; signs right {signs}, blunders {blunders}"),
        _ => String::new(),
    }
}

/// A [`Round`] without its samples, which have a file of their own.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedRound {
    games: u64,
    evaluations: u64,
    #[serde(default)]
    exact: u64,
    first_player_points: f64,
}

pub(super) fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let text = serde_json::to_string(value).expect("plain data");
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

pub(super) fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let text = files::read_text(path)?;
    serde_json::from_str(&text).with_context(|| format!("{} is damaged", path.display()))
}
