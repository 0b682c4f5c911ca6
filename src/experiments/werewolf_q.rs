//! Experiment `werewolf`: the paper's players O and N, and its table 3.
//!
//! A step is some games of every environment, environments in parallel. Player
//! O's games are spread over all steps. Each game has a stream of its own, so the
//! result depends on configuration and seed alone.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::lab::{Experiment, FinishedRun, Metrics, Preset, Report, Setup, files};
use crate::random::Seed;
use crate::werewolf::company::Policy;
use crate::werewolf::config::{Config, LearningRate, Rate};
use crate::werewolf::evaluation::{Evaluation, Table};
use crate::werewolf::learner::Change;
use crate::werewolf::population::{Environment, Tally, mix};
use crate::werewolf::q_table::Tables;
use crate::werewolf::rules::Rules;
use crate::werewolf::simulator::Simulator;
use crate::werewolf::storage;

/// Most environments: each has its line of metrics.
const MAX_ENVIRONMENTS: usize = 8;
/// Most memory that all tables may take, in bytes.
const MAX_TABLE_BYTES: usize = 4 << 30;

const PROGRESS_FILE: &str = "progress.json";
const CONFIG_FILE: &str = "werewolf.toml";
const O_FILE: &str = "player-o.tables";
const N_FILE: &str = "player-n.tables";

const PRESETS: &[Preset] = &[
    Preset {
        name: "werewolf-paper",
        about: "Werewolf: the paper's players O and N, 16 million games, then its table 3",
        toml: include_str!("presets/werewolf-paper.toml"),
    },
    Preset {
        name: "werewolf-paper-alpha",
        about: "Werewolf: the same with the paper's constant learning rates",
        toml: include_str!("presets/werewolf-paper-alpha.toml"),
    },
    Preset {
        name: "werewolf-best",
        about: "Werewolf: the same with votes that heed declared votes, the best known",
        toml: include_str!("presets/werewolf-best.toml"),
    },
    Preset {
        name: "werewolf-smoke",
        about: "Werewolf: a few thousand games in seconds, to see that everything works",
        toml: include_str!("presets/werewolf-smoke.toml"),
    },
];

/// Learning Werewolf by Q tables.
pub struct WerewolfQ {
    config: Config,
    simulator: Simulator,
    seed: Seed,
    player_o: Environment,
    player_n: Vec<Environment>,
    progress: Progress,
}

/// What has been done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Progress {
    steps: u64,
    /// Village wins of each environment of player N in the round under way.
    village_wins: Vec<u64>,
}

/// The games of one environment in one step.
struct Task<'a> {
    environment: &'a mut Environment,
    purpose: &'static str,
    number: u64,
    games: Range<u64>,
    rate: Rate,
}

impl Experiment for WerewolfQ {
    const NAME: &'static str = "werewolf";
    const PRESETS: &'static [Preset] = PRESETS;
    type Config = Config;

    fn validate(config: &Config) -> Result<()> {
        let rules = config
            .rules()
            .map_err(|message| anyhow::anyhow!("players: {message}"))?;
        let positive = [
            ("single_games", config.single_games),
            ("rounds", config.rounds),
            ("round_games", config.round_games),
            ("step_games", config.step_games),
            ("evaluation_games", config.evaluation_games),
        ];
        for (key, value) in positive {
            ensure!(
                value > 0,
                "{key} = 0 is out of range: accepted are 1 and more"
            );
        }
        ensure!(
            (1..=MAX_ENVIRONMENTS).contains(&config.environments),
            "environments = {} is out of range: accepted are 1 to {MAX_ENVIRONMENTS}",
            config.environments
        );
        ensure!(
            config.learning_rate == LearningRate::Visits
                || config.constant_rates.len() as u64 == config.rounds,
            "constant_rates has {} rates: accepted is one for each of {} rounds",
            config.constant_rates.len(),
            config.rounds
        );
        let shares = [
            ("gamma", config.gamma),
            ("rate_floor", config.rate_floor),
            ("single_constant_rate", config.single_constant_rate),
            ("epsilon", config.epsilon),
            ("many_votes_share", config.many_votes_share),
        ];
        let rates = config
            .constant_rates
            .iter()
            .map(|&rate| ("constant_rates", rate));
        for (key, share) in shares.into_iter().chain(rates) {
            ensure!(
                (0.0..=1.0).contains(&share),
                "{key} = {share} is out of range: accepted are 0 to 1"
            );
        }
        ensure!(
            config.initial_q.is_finite(),
            "initial_q = {} is out of range: accepted are finite numbers",
            config.initial_q
        );
        let tables = 1 + config.environments * rules.players();
        ensure!(
            tables * Tables::bytes(config, &rules) <= MAX_TABLE_BYTES,
            "key_claims, key_proved_humans and key_living together make tables of more than 4 GiB: \
             accepted are fewer of them, or fewer environments"
        );
        Ok(())
    }

    fn steps(config: &Config) -> u64 {
        config.rounds * round_steps(config)
    }

    fn start(config: &Config, setup: &Setup) -> Result<WerewolfQ> {
        let simulator = config.simulator().map_err(anyhow::Error::msg)?;
        let rules = &simulator.rules;
        let player_n = (0..config.environments).map(|_| Environment::separate(config, rules));
        Ok(WerewolfQ {
            seed: Seed(setup.seed),
            player_o: Environment::shared(config, rules),
            player_n: player_n.collect(),
            progress: Progress {
                steps: 0,
                village_wins: vec![0; config.environments],
            },
            config: config.clone(),
            simulator,
        })
    }

    fn load(config: &Config, setup: &Setup, directory: &Path) -> Result<WerewolfQ> {
        let mut experiment = WerewolfQ::start(config, setup)?;
        let progress = directory.join(PROGRESS_FILE);
        experiment.progress = serde_json::from_slice(&files::read(&progress)?)
            .with_context(|| format!("{} is damaged", progress.display()))?;
        let rules = &experiment.simulator.rules;
        experiment.player_o.tables = read_tables(&directory.join(O_FILE), config, rules)?;
        let members = read_tables(&directory.join(N_FILE), config, rules)?;
        for (environment, tables) in experiment
            .player_n
            .iter_mut()
            .zip(members.chunks_exact(rules.players()))
        {
            environment.tables = tables.to_vec();
        }
        Ok(experiment)
    }

    fn save(&self, directory: &Path) -> Result<()> {
        let progress = serde_json::to_vec_pretty(&self.progress)?;
        files::write_atomically(&directory.join(PROGRESS_FILE), &progress)?;
        self.write_tables(directory)
    }

    fn describe(&self) -> String {
        let states = self.config.state_key(&self.simulator.rules).states();
        let Config {
            environments,
            rounds,
            round_games,
            single_games,
            ..
        } = self.config;
        format!(
            "player O: {single_games} games in one set of tables\n\
             player N: {environments} environments of {} players, {rounds} rounds of {round_games} games\n\
             {states} states, on {} threads",
            self.simulator.rules.players(),
            rayon::current_num_threads()
        )
    }

    fn about(&self) -> BTreeMap<String, String> {
        BTreeMap::from([(
            "threads".to_string(),
            rayon::current_num_threads().to_string(),
        )])
    }

    fn step(&mut self, metrics: &mut Metrics) -> Result<()> {
        let start = Instant::now();
        let (seed, simulator, config) = (self.seed, self.simulator.clone(), self.config.clone());
        let tallies: Vec<Tally> = self
            .tasks()
            .into_par_iter()
            .map(
                |Task {
                     environment,
                     purpose,
                     number,
                     games,
                     rate,
                 }| {
                    let streams = seed.purpose(purpose);
                    environment.learn(&simulator, &config, rate, streams, number, games)
                },
            )
            .collect();
        self.progress.steps += 1;
        let (player_o, player_n) = (&tallies[0], &tallies[1..]);
        for (wins, tally) in self.progress.village_wins.iter_mut().zip(player_n) {
            *wins += tally.village;
        }
        self.measure(player_o, player_n, metrics);
        let games: u64 = tallies.iter().map(|tally| tally.games).sum();
        let rate = games as f64 / start.elapsed().as_secs_f64();
        metrics.status(format!("{rate:.0} games/s"));
        let round_ends = self
            .progress
            .steps
            .is_multiple_of(round_steps(&self.config));
        if round_ends && self.progress.steps < WerewolfQ::steps(&self.config) {
            self.mix(metrics);
        }
        Ok(())
    }

    fn finish(self, run: &FinishedRun) -> Result<Report> {
        files::write_dir_atomically(&run.model_dir(), |directory| {
            let config = toml::to_string(&self.config)?;
            files::write_atomically(&directory.join(CONFIG_FILE), config.as_bytes())?;
            self.write_tables(directory)
        })?;
        let players = TrainedPlayers::read(&run.folder)?;
        let table = players.table(self.seed, self.config.evaluation_games, false);
        let games = self.config.single_games
            + self.config.environments as u64 * self.config.rounds * self.config.round_games;
        let summary = serde_json::json!({
            "seed": self.seed.0,
            "games": games,
            "seconds": run.seconds,
            "table": table,
        });
        Ok(Report {
            summary,
            text: table.to_string(),
        })
    }
}

fn round_steps(config: &Config) -> u64 {
    config.round_games.div_ceil(config.step_games)
}

impl WerewolfQ {
    /// What each environment plays in the step to come, player O first.
    fn tasks(&mut self) -> Vec<Task<'_>> {
        let config = &self.config;
        let (step, steps) = (self.progress.steps, WerewolfQ::steps(config));
        let (round, step_of_round) = (step / round_steps(config), step % round_steps(config));
        let first = step_of_round * config.step_games;
        let last = (first + config.step_games).min(config.round_games);
        let before = round * config.round_games;
        let player_o = Task {
            environment: &mut self.player_o,
            purpose: "werewolf player O",
            number: 0,
            games: config.single_games * step / steps..config.single_games * (step + 1) / steps,
            rate: config.single_rate(),
        };
        let player_n = self
            .player_n
            .iter_mut()
            .zip(0..)
            .map(|(environment, number)| Task {
                environment,
                purpose: "werewolf player N",
                number,
                games: before + first..before + last,
                rate: config.round_rate(round as usize),
            });
        std::iter::once(player_o).chain(player_n).collect()
    }

    fn measure(&self, player_o: &Tally, player_n: &[Tally], metrics: &mut Metrics) {
        const VILLAGE_N: [&str; MAX_ENVIRONMENTS] = [
            "village_n1",
            "village_n2",
            "village_n3",
            "village_n4",
            "village_n5",
            "village_n6",
            "village_n7",
            "village_n8",
        ];
        let share = |tally: &Tally| tally.village as f64 / tally.games as f64;
        if player_o.games > 0 {
            metrics.set("village_o", share(player_o));
            metrics.set("change_o", player_o.change.mean());
        }
        for (name, tally) in VILLAGE_N.into_iter().zip(player_n) {
            metrics.set(name, share(tally));
        }
        let mut change = Change::default();
        for tally in player_n {
            change += tally.change;
        }
        metrics.set("change_n", change.mean());
        let members = self
            .player_n
            .iter()
            .flat_map(|environment| &environment.tables);
        let visited: usize = members.clone().map(Tables::visited_states).sum();
        metrics.set(
            "visited_states_o",
            self.player_o.tables[0].visited_states() as f64,
        );
        metrics.set("visited_states_n", visited as f64 / members.count() as f64);
    }

    /// Ends a round of player N.
    fn mix(&mut self, metrics: &mut Metrics) {
        let round = self.progress.steps / round_steps(&self.config);
        let mut rng = self.seed.purpose("werewolf mix").stream(round, 0);
        let wins = &self.progress.village_wins;
        mix(
            &mut self.player_n,
            wins,
            &self.config,
            &self.simulator.rules,
            &mut rng,
        );
        let share = |&wins: &u64| {
            format!(
                "{:.1}%",
                100.0 * wins as f64 / self.config.round_games as f64
            )
        };
        let shares: Vec<String> = wins.iter().map(share).collect();
        metrics.note(format!(
            "round {round}: the village won {}",
            shares.join(", ")
        ));
        self.progress.village_wins.fill(0);
    }

    fn write_tables(&self, directory: &Path) -> Result<()> {
        let player_o = storage::encode(&self.player_o.tables);
        files::write_atomically(&directory.join(O_FILE), &player_o)?;
        let members = self
            .player_n
            .iter()
            .flat_map(|environment| &environment.tables);
        let members: Vec<&Tables> = members.collect();
        files::write_atomically(&directory.join(N_FILE), &storage::encode(&members))?;
        Ok(())
    }
}

fn read_tables(path: &Path, config: &Config, rules: &Rules) -> Result<Vec<Tables>> {
    storage::decode(&files::read(path)?, config, rules)
        .with_context(|| format!("cannot use {}", path.display()))
}

/// What a run has learned, read back from its folder.
#[derive(Debug, Clone)]
pub struct TrainedPlayers {
    /// The configuration of the run.
    pub config: Config,
    /// The game.
    pub simulator: Simulator,
    /// Player O.
    pub player_o: Tables,
    /// Every member of player N; nobody if only player O was kept.
    pub player_n: Vec<Tables>,
}

impl TrainedPlayers {
    /// Reads from a run folder, or from the model folder in one.
    ///
    /// # Errors
    /// If the folder holds no trained players, or they are damaged; names the file.
    pub fn read(folder: &Path) -> Result<TrainedPlayers> {
        let inner: PathBuf = folder.join("model");
        let folder = if inner.join(CONFIG_FILE).is_file() {
            &inner
        } else {
            folder
        };
        let path = folder.join(CONFIG_FILE);
        let text = files::read_text(&path)
            .with_context(|| format!("{} holds no trained Werewolf players", folder.display()))?;
        let config: Config =
            toml::from_str(&text).with_context(|| format!("{} is damaged", path.display()))?;
        let simulator = config.simulator().map_err(anyhow::Error::msg)?;
        let o_path = folder.join(O_FILE);
        let player_o = read_tables(&o_path, &config, &simulator.rules)?;
        let n_path = folder.join(N_FILE);
        let player_n = if n_path.is_file() {
            read_tables(&n_path, &config, &simulator.rules)?
        } else {
            Vec::new()
        };
        let player_o = player_o.into_iter().next();
        let player_o = player_o.with_context(|| format!("{} is empty", o_path.display()))?;
        Ok(TrainedPlayers {
            config,
            simulator,
            player_o,
            player_n,
        })
    }

    /// How these players choose.
    pub fn policy(&self) -> Policy {
        Policy::new(&self.config, &self.simulator.rules)
    }

    /// The paper's table 3 for these players, `games` a figure, with or without the
    /// reference players.
    pub fn table(&self, seed: Seed, games: u64, references: bool) -> Table {
        let (simulator, policy) = (self.simulator.clone(), self.policy());
        let evaluation = Evaluation {
            simulator,
            policy,
            seed,
            games,
        };
        Table::measure(&evaluation, &self.player_o, &self.player_n, references)
    }
}
