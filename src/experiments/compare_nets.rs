//! Experiment `compare`: architectures trained at an equal budget, then played
//! off against each other, BabyAI and EasyAI.
//!
//! The steps are slices of each entrant's training, one entrant after the other,
//! then the matches of two round robins: all at one ply, and all at the same time
//! for each move.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use burn::module::Module;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::train_value::{
    DEVICE_FILE, TrainValue, TrainValueConfig, read_json, same_device, write_json,
};
use crate::agents::{Agent, MaterialAgent, NetworkAgent, RandomAgent, SearchAgent};
use crate::arena::play_match;
use crate::game::Game;
use crate::game::playout::random_positions;
use crate::games::{GameVisitor, with_game};
use crate::grade::{Grade, TestSet, grade};
use crate::lab::folder::{METRICS, MODEL, REPORT, SUMMARY};
use crate::lab::{Experiment, FinishedRun, Metrics, Preset, Report, Setup, files};
use crate::nets::device::{Compute, DeviceRequest};
use crate::nets::model::{Model, Strength};
use crate::nets::{NetConfig, NetEvaluator, NetKind};
use crate::random::{Seed, Streams};
use crate::report::{
    Page, Rated, RunData, Summary, blunder_chart, cell, elo_chart, learning_curves, markdown_table,
};
use crate::search::{Evaluator, Limits};
use crate::stats::{Elo, PairResults, Pairing, ratings};
use crate::train::choose::Chosen;

/// What to compare, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompareConfig {
    /// The architectures.
    pub nets: Vec<NetKind>,
    /// How often each is trained, each time from another seed.
    pub repeats: u64,
    /// Above 0: the training time of each entrant, matches aside. How many games
    /// fit is estimated from its first seconds, so the times are equal within some
    /// percent; they are reported. 0: `training.games` for everybody.
    pub minutes: f64,
    /// How each entrant is trained, but for `net.kind`.
    pub training: TrainValueConfig,
    /// How they are played off.
    pub playoff: PlayoffConfig,
}

/// The round robins of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlayoffConfig {
    /// Pairs of each match at one ply.
    pub pairs: u64,
    /// Time for each move of the matches at equal time.
    pub move_milliseconds: u64,
    /// Pairs of each match at equal time.
    pub timed_pairs: u64,
}

/// Training of one entrant is cut into so many steps.
const SLICES: u64 = 50;
/// Contestants before the entrants: BabyAI, whose rating is 0, and EasyAI.
const REFERENCES: [&str; 2] = ["baby", "easy"];

impl CompareConfig {
    fn entrants(&self) -> u64 {
        self.nets.len() as u64 * self.repeats
    }

    /// Number of matches of a round robin.
    fn matches(&self) -> u64 {
        let contestants = self.entrants() + REFERENCES.len() as u64;
        contestants * (contestants - 1) / 2
    }

    fn entrant(&self, number: u64, seed: u64) -> Entrant {
        let kind = self.nets[(number / self.repeats) as usize];
        let repeat = number % self.repeats;
        let mut config = self.training.clone();
        config.net.kind = kind;
        Entrant {
            name: format!("{}-{}", kind.name(), repeat + 1),
            seed: seed + repeat,
            config,
        }
    }
}

/// A network that takes part.
struct Entrant {
    name: String,
    seed: u64,
    config: TrainValueConfig,
}

/// An entrant on its way.
struct Current {
    entrant: Entrant,
    training: TrainValue,
    log: TrainingLog,
}

/// What is kept of an entrant's training beside its state.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct TrainingLog {
    /// Games of its whole training.
    games: u64,
    /// Steps done, of `TrainValue`.
    steps: u64,
    /// Slices done, of `SLICES`.
    slices: u64,
    /// Metrics of the steps in which strength was measured.
    metrics: Vec<BTreeMap<String, f64>>,
}

/// An entrant that is ready to play.
struct Trained {
    model: Model,
    log: TrainingLog,
}

/// A comparison on its way.
pub struct CompareNets {
    config: CompareConfig,
    setup: Setup,
    /// Where all are trained. They are played off on the CPU, like all agents.
    device: Chosen,
    current: Option<Current>,
    trained: Vec<Trained>,
    played: Played,
}

/// What the round robins gave so far, in the order of the matches.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Played {
    one_ply: Vec<PairResults>,
    timed: Vec<PairResults>,
}

const PRESETS: &[Preset] = &[
    Preset {
        name: "compare",
        about: "mlp, conv and residual on March Blitz, 20,000 games each, then a round robin",
        toml: include_str!("presets/compare.toml"),
    },
    Preset {
        name: "compare-smoke",
        about: "the same in small, to see that everything works",
        toml: include_str!("presets/compare-smoke.toml"),
    },
];

impl Experiment for CompareNets {
    const NAME: &'static str = "compare";
    const PRESETS: &'static [Preset] = PRESETS;
    type Config = CompareConfig;

    fn validate(config: &CompareConfig) -> Result<()> {
        ensure!(
            !config.nets.is_empty(),
            "nets is empty: give at least one, such as \"mlp\""
        );
        let twice = config
            .nets
            .iter()
            .enumerate()
            .find(|(i, net)| config.nets[..*i].contains(net));
        if let Some((_, net)) = twice {
            anyhow::bail!(
                "nets has {} twice: raise `repeats` to train it more often",
                net.name()
            );
        }
        ensure!(
            (0.0..=1e5).contains(&config.minutes),
            "minutes = {} is out of range: accepted are 0 (equal games) to 100000",
            config.minutes
        );
        for (key, value) in [
            ("repeats", config.repeats),
            ("playoff.pairs", config.playoff.pairs),
            (
                "playoff.move_milliseconds",
                config.playoff.move_milliseconds,
            ),
            ("playoff.timed_pairs", config.playoff.timed_pairs),
        ] {
            ensure!(
                value > 0,
                "{key} = 0 is out of range: accepted are 1 and more"
            );
        }
        ensure!(
            config.training.init.is_empty(),
            "training.init = {:?} does not fit here: networks that are compared start from fresh \
             weights, so it has to be empty",
            config.training.init
        );
        TrainValue::validate(&config.training)
            .map_err(|error| anyhow::anyhow!("training.{error:#}"))
    }

    fn steps(config: &CompareConfig) -> u64 {
        config.entrants() * SLICES + 2 * config.matches()
    }

    fn start(config: &CompareConfig, setup: &Setup) -> Result<CompareNets> {
        CompareNets::start_on(config, setup, setup.device.parse()?)
    }

    fn load(config: &CompareConfig, setup: &Setup, directory: &Path) -> Result<CompareNets> {
        let request = same_device(&setup.device, &directory.join(DEVICE_FILE))?;
        let mut run = CompareNets::start_on(config, setup, request)?;
        run.played = read_json(&directory.join("played.json"))?;
        loop {
            let folder = directory.join(format!("trained-{}", run.trained.len()));
            if !folder.exists() {
                break;
            }
            run.trained.push(Trained {
                model: Model::load(&folder, &Compute::cpu().device)?,
                log: read_json(&folder.join("log.json"))?,
            });
        }
        let folder = directory.join("current");
        if folder.exists() {
            let mut entrant = config.entrant(run.trained.len() as u64, setup.seed);
            let log: TrainingLog = read_json(&folder.join("log.json"))?;
            entrant.config.games = log.games;
            let training = TrainValue::load_on(
                &entrant.config,
                entrant.seed,
                run.device.clone(),
                &folder.join("state"),
            )?;
            run.current = Some(Current {
                entrant,
                training,
                log,
            });
        }
        Ok(run)
    }

    fn save(&self, directory: &Path) -> Result<()> {
        write_json(&directory.join("played.json"), &self.played)?;
        let device = self.device.compute.id.to_string();
        write_json(&directory.join(DEVICE_FILE), &device)?;
        for (number, trained) in self.trained.iter().enumerate() {
            let folder = directory.join(format!("trained-{number}"));
            files::create_dirs(&folder)?;
            trained.model.save(&folder)?;
            write_json(&folder.join("log.json"), &trained.log)?;
        }
        if let Some(current) = &self.current {
            let folder = directory.join("current");
            files::create_dirs(&folder.join("state"))?;
            current.training.save(&folder.join("state"))?;
            write_json(&folder.join("log.json"), &current.log)?;
        }
        Ok(())
    }

    fn describe(&self) -> String {
        let text = format!("{}\n{}", self.title(), self.device.describe());
        text.trim_end().to_string()
    }

    fn about(&self) -> BTreeMap<String, String> {
        self.device.about()
    }

    fn step(&mut self, metrics: &mut Metrics) -> Result<()> {
        if (self.trained.len() as u64) < self.config.entrants() {
            return self.train_slice(metrics);
        }
        let one_ply = (self.played.one_ply.len() as u64) < self.config.matches();
        let results = self.play_next(one_ply)?;
        let played = if one_ply {
            &mut self.played.one_ply
        } else {
            &mut self.played.timed
        };
        played.push(results);
        Ok(())
    }

    fn finish(self, run: &FinishedRun) -> Result<Report> {
        let rows = self.rows()?;
        let mut runs = Vec::new();
        for (trained, row) in self.trained.iter().zip(&rows) {
            let folder = run.folder.join("entrants").join(&row.name);
            files::create_dirs(&run.folder.join("entrants"))?;
            files::write_dir_atomically(&folder, |folder| trained.write(folder, &row.grade))?;
            runs.push(RunData::load(&folder)?);
        }
        let table = self.table(&rows);
        let markdown = markdown_table(&table.0, &table.1);
        let text = format!("{}\n\n{markdown}", self.title());
        files::write_atomically(&run.folder.join("report.md"), text.as_bytes())?;
        let page = self.page(&rows, &runs, &table);
        files::write_atomically(&run.folder.join(REPORT), page.as_bytes())?;
        Ok(Report {
            summary: json!({
                "game": self.config.training.game,
                "seed": self.setup.seed,
                "minutes": self.config.minutes,
                "move_milliseconds": self.config.playoff.move_milliseconds,
                "entrants": rows,
            }),
            text: markdown,
        })
    }
}

/// A line of the result.
#[derive(Debug, Clone, Serialize)]
struct Row {
    name: String,
    net: &'static str,
    parameters: usize,
    games: u64,
    seconds: f64,
    evaluations_per_second: f64,
    elo_one_ply: Elo,
    elo_timed: Elo,
    strength: Vec<Strength>,
    /// If a test set is shipped for the game.
    grade: Option<Grade>,
}

impl CompareNets {
    fn start_on(
        config: &CompareConfig,
        setup: &Setup,
        request: DeviceRequest,
    ) -> Result<CompareNets> {
        let with_kind = |&kind| NetConfig {
            kind,
            ..config.training.net.clone()
        };
        let nets: Vec<NetConfig> = config.nets.iter().map(with_kind).collect();
        Ok(CompareNets {
            config: config.clone(),
            setup: setup.clone(),
            device: config.training.choose_device(request, &nets)?,
            current: None,
            trained: Vec::new(),
            played: Played::default(),
        })
    }

    /// What is compared, in a line.
    fn title(&self) -> String {
        let config = &self.config;
        let names: Vec<_> = config.nets.iter().map(|net| net.name()).collect();
        let budget = match config.minutes {
            0.0 => format!("{} games each", config.training.games),
            minutes => format!("{minutes} minutes each"),
        };
        format!(
            "{} on {}, {budget}, {} run(s) of each, on {}",
            names.join(", "),
            config.training.game,
            config.repeats,
            self.device.compute.name
        )
    }

    /// An entrant starts as `tanren train` with its configuration and seed would.
    fn start_training(&self, config: &TrainValueConfig, seed: u64) -> Result<TrainValue> {
        TrainValue::start_on(config, seed, self.device.clone())
    }

    /// Trains a slice of the entrant whose turn it is.
    fn train_slice(&mut self, metrics: &mut Metrics) -> Result<()> {
        let mut current = match self.current.take() {
            Some(current) => current,
            None => self.next_entrant()?,
        };
        let Current {
            entrant,
            training,
            log,
        } = &mut current;
        log.slices += 1;
        let steps = TrainValue::steps(&entrant.config);
        while log.steps < log.slices * steps / SLICES {
            let mut inner = Metrics::default();
            training.step(&mut inner)?;
            log.steps += 1;
            for (name, value) in inner.values() {
                metrics.set(name.clone(), *value);
            }
            if inner.values().contains_key("score_easy") {
                let mut line = inner.values().clone();
                line.insert("seconds".to_string(), training.training_seconds());
                log.metrics.push(line);
            }
        }
        metrics.set("entrant", self.trained.len() as f64);
        metrics.status(format!("training {}", entrant.name));
        if log.slices < SLICES {
            self.current = Some(current);
            return Ok(());
        }
        let Current {
            entrant,
            training,
            log,
        } = current;
        let model = training.measured_model(&entrant.name);
        metrics.note(format!(
            "{}: {} games in {:.0} s",
            entrant.name, log.games, model.card.training.seconds
        ));
        self.trained.push(Trained { model, log });
        Ok(())
    }

    fn next_entrant(&self) -> Result<Current> {
        let mut entrant = self
            .config
            .entrant(self.trained.len() as u64, self.setup.seed);
        if self.config.minutes > 0.0 {
            entrant.config.games = self.affordable_games(&entrant)?;
        }
        let training = self.start_training(&entrant.config, entrant.seed)?;
        let log = TrainingLog {
            games: entrant.config.games,
            ..TrainingLog::default()
        };
        Ok(Current {
            entrant,
            training,
            log,
        })
    }

    /// How many games the entrant can be trained on in the time that it has, judged
    /// by a trial.
    fn affordable_games(&self, entrant: &Entrant) -> Result<u64> {
        /// The trial's share of the time.
        const TRIAL: f64 = 0.03;
        let budget = 60.0 * self.config.minutes;
        let mut config = entrant.config.clone();
        // More than enough, and no matches on the way.
        config.games = u32::MAX.into();
        config.evaluation.every_games = u64::MAX;
        let mut trial = self.start_training(&config, entrant.seed)?;
        let mut games = 0.0;
        while trial.training_seconds() < TRIAL * budget {
            let mut metrics = Metrics::default();
            trial.step(&mut metrics)?;
            games = metrics.values()["games"];
        }
        let per_second = games / trial.training_seconds();
        let rounds = (per_second * budget / config.games_per_round as f64).round() as u64;
        Ok(rounds.max(1) * config.games_per_round)
    }

    /// Plays the next match of one of the round robins.
    fn play_next(&self, one_ply: bool) -> Result<PairResults> {
        let PlayoffConfig {
            pairs,
            move_milliseconds,
            timed_pairs,
        } = self.config.playoff;
        let seed = Seed(self.setup.seed);
        let (number, streams, pairs, move_time) = if one_ply {
            (
                self.played.one_ply.len(),
                seed.purpose("one ply"),
                pairs,
                None,
            )
        } else {
            let time = Duration::from_millis(move_milliseconds);
            (
                self.played.timed.len(),
                seed.purpose("equal time"),
                timed_pairs,
                Some(time),
            )
        };
        let contestants = self.pairings()[number];
        let nets = self.trained.iter();
        let evaluators: Vec<NetEvaluator> = nets
            .map(|trained| NetEvaluator::new(&trained.model.net, &Compute::cpu()))
            .collect();
        let number = number as u64;
        let play = PlayMatch {
            evaluators: &evaluators,
            contestants,
            move_time,
            pairs,
            streams,
            number,
        };
        Ok(with_game(&self.config.training.game, play)?)
    }

    /// Who meets whom in a round robin, in order. Contestants are [`REFERENCES`],
    /// then the entrants.
    fn pairings(&self) -> Vec<[usize; 2]> {
        let contestants = REFERENCES.len() + self.config.entrants() as usize;
        (0..contestants)
            .flat_map(|a| (a + 1..contestants).map(move |b| [a, b]))
            .collect()
    }

    fn ratings(&self, played: &[PairResults]) -> Vec<Elo> {
        let pairings: Vec<Pairing> = self
            .pairings()
            .into_iter()
            .zip(played)
            .map(|(contestants, &results)| Pairing {
                contestants,
                results,
            })
            .collect();
        let anchor = 0;
        ratings(REFERENCES.len() + self.trained.len(), &pairings, anchor)
    }

    fn rows(&self) -> Result<Vec<Row>> {
        let one_ply = self.ratings(&self.played.one_ply);
        let timed = self.ratings(&self.played.timed);
        let rows = self
            .trained
            .iter()
            .zip(REFERENCES.len()..)
            .map(|(trained, contestant)| {
                let card = &trained.model.card;
                let evaluator = NetEvaluator::new(&trained.model.net, &Compute::cpu());
                let game = &self.config.training.game;
                Ok(Row {
                    name: card.training.run.clone(),
                    net: card.net.kind.name(),
                    parameters: trained.model.net.num_params(),
                    games: card.training.games,
                    seconds: card.training.seconds,
                    evaluations_per_second: with_game(game, Speed(evaluator.clone()))?,
                    elo_one_ply: one_ply[contestant],
                    elo_timed: timed[contestant],
                    strength: card.strength.clone(),
                    grade: with_game(
                        game,
                        GradeNet {
                            name: &card.training.run,
                            evaluator,
                        },
                    )?,
                })
            });
        rows.collect()
    }

    fn table(&self, rows: &[Row]) -> (Vec<&'static str>, Vec<Vec<String>>) {
        let header = vec![
            "network",
            "parameters",
            "games",
            "training s",
            "evaluations/s",
            "Elo at 1 ply",
            "Elo at equal time",
            "against EasyAI",
            "signs right",
            "blunders",
        ];
        let elo = |elo: &Elo| format!("{:.0} ({:.0} to {:.0})", elo.elo, elo.low, elo.high);
        let cells = |row: &Row| {
            let easy = row.strength.iter().find(|s| s.opponent == "easy");
            vec![
                row.name.clone(),
                row.parameters.to_string(),
                row.games.to_string(),
                format!("{:.0}", row.seconds),
                format!("{:.0}", row.evaluations_per_second),
                elo(&row.elo_one_ply),
                elo(&row.elo_timed),
                easy.map_or(String::new(), |s| s.score.to_string()),
                cell(row.grade.as_ref().and_then(|grade| grade.signs)),
                cell(row.grade.as_ref().and_then(|grade| grade.blunders)),
            ]
        };
        let mut rows: Vec<&Row> = rows.iter().collect();
        rows.sort_by(|a, b| b.elo_one_ply.elo.total_cmp(&a.elo_one_ply.elo));
        (header, rows.into_iter().map(cells).collect())
    }

    fn page(
        &self,
        rows: &[Row],
        runs: &[RunData],
        table: &(Vec<&str>, Vec<Vec<String>>),
    ) -> String {
        let mut page = Page::new("Networks compared");
        page.text(&format!("{}.", self.title()))
            .table(&table.0, &table.1);
        page.text(&format!(
            "Elo with 95% intervals, BabyAI = 0; equal time is {} ms for each move. Signs and \
             blunders are measured on exactly solved positions, at 1 ply.",
            self.config.playoff.move_milliseconds
        ));
        let elos = |of: fn(&Row) -> Elo| rows.iter().map(of).collect::<Vec<_>>();
        for (title, played, elos) in [
            (
                "Elo at 1 ply",
                &self.played.one_ply,
                elos(|row| row.elo_one_ply),
            ),
            (
                "Elo at equal time for each move",
                &self.played.timed,
                elos(|row| row.elo_timed),
            ),
        ] {
            let references = REFERENCES
                .map(str::to_string)
                .into_iter()
                .zip(self.ratings(played));
            let entrants = rows.iter().map(|row| row.name.clone()).zip(elos);
            let rated: Vec<_> = references
                .chain(entrants)
                .map(|(name, elo)| Rated { name, elo })
                .collect();
            page.heading(title).chart(&elo_chart(&rated));
        }
        for (x, label) in [
            ("games", "games of self-play"),
            ("seconds", "seconds of training"),
        ] {
            let curves: Vec<_> = runs.iter().map(|run| run.curve("score_easy", x)).collect();
            page.heading(&format!("Score against EasyAI over {label}"))
                .chart(&learning_curves(label, "score", &curves));
            blunder_chart(&mut page, runs, x, label);
        }
        page.html()
    }
}

impl Trained {
    /// Writes what a run folder of this entrant alone would hold of its results.
    fn write(&self, folder: &Path, grade: &Option<Grade>) -> Result<()> {
        let model = folder.join(MODEL);
        files::create_dirs(&model)?;
        self.model.save(&model)?;
        let line = |line| serde_json::to_string(line).expect("plain data") + "\n";
        let metrics: String = self.log.metrics.iter().map(line).collect();
        files::write_atomically(&folder.join(METRICS), metrics.as_bytes())?;
        write_json(
            &folder.join(SUMMARY),
            &Summary::of(&self.model.card, grade.clone()),
        )
    }
}

/// Plays a match between two contestants.
struct PlayMatch<'a> {
    evaluators: &'a [NetEvaluator],
    contestants: [usize; 2],
    /// None: one ply.
    move_time: Option<Duration>,
    pairs: u64,
    streams: Streams,
    number: u64,
}

impl GameVisitor for PlayMatch<'_> {
    type Output = PairResults;

    fn visit<G: Game>(self, game: Arc<G>) -> PairResults {
        let [a, b] = self.contestants.map(|contestant| {
            let game = &*game;
            let this = &self;
            move || this.agent(game, contestant)
        });
        play_match(&*game, [&a, &b], self.pairs, self.streams, self.number).pairs
    }
}

impl PlayMatch<'_> {
    fn agent<G: Game>(&self, game: &G, contestant: usize) -> Box<dyn Agent<G>> {
        let evaluator = match contestant {
            0 => return Box::new(RandomAgent),
            1 => return Box::new(MaterialAgent::easy()),
            _ => self.evaluators[contestant - REFERENCES.len()].clone(),
        };
        match self.move_time {
            None => Box::new(NetworkAgent::new("net", evaluator)),
            Some(time) => {
                let to_the_end = Limits::depth(game.max_plies() as u32);
                let limits = Limits {
                    time: Some(time),
                    ..to_the_end
                };
                Box::new(SearchAgent::new("net", evaluator, limits))
            }
        }
    }
}

/// Grades a network at 1 ply on the shipped test set.
struct GradeNet<'a> {
    name: &'a str,
    evaluator: NetEvaluator,
}

impl GameVisitor for GradeNet<'_> {
    type Output = Option<Grade>;

    fn visit<G: Game>(self, game: Arc<G>) -> Option<Grade> {
        let set = TestSet::shipped(&*game)?;
        let net = || -> Box<dyn Agent<G>> {
            Box::new(NetworkAgent::new(self.name, self.evaluator.clone()))
        };
        Some(grade(&*game, &set, self.name, &net, true))
    }
}

/// Evaluations a second, of many positions at once.
struct Speed(NetEvaluator);

impl GameVisitor for Speed {
    type Output = f64;

    fn visit<G: Game>(mut self, game: Arc<G>) -> f64 {
        const LEAST_SECONDS: f64 = 0.5;
        let mut positions = random_positions(&*game, 256, &mut Seed(0).stream("speed"));
        positions.truncate(4096);
        let mut values = Vec::new();
        // The first evaluation prepares kernels and memory.
        self.0.evaluate(&*game, &positions, &mut values);
        let started = Instant::now();
        let mut evaluations = 0;
        while started.elapsed().as_secs_f64() < LEAST_SECONDS {
            self.0.evaluate(&*game, &positions, &mut values);
            evaluations += positions.len();
        }
        evaluations as f64 / started.elapsed().as_secs_f64()
    }
}
