//! What there is to play: games and opponents, by the names that requests may use. A
//! request can name nothing else; in particular, no path.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use anyhow::anyhow;
use serde::Serialize;

use super::record::{Opening, Player, Record};
use super::training::Runs;
use crate::agents::{AgentSpec, Effort, ModelSource};
use crate::experiments::train_value::Snapshot;
use crate::games::{AnyGame, BoardGame, GAMES, GameError, GameVisitor, load};
use crate::lab::files;
use crate::nets::NetEvaluator;
use crate::nets::device::Compute;
use crate::nets::model::{CARD_FILE, ModelCard, rules_sha256};
use crate::nets::shipped::{SHIPPED, ShippedModel};

/// What the page needs to draw a game's board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BoardView {
    /// Columns.
    pub files: usize,
    /// Rows.
    pub ranks: usize,
    /// Letters of the pieces, lower case, and their names.
    pub kinds: Vec<(char, String)>,
    /// Whether moves put pieces onto the board, as in Connect Four.
    pub drops: bool,
    /// The pieces at the start; see [`PositionView`](super::record::PositionView).
    pub start: String,
}

/// An opponent that is there as long as the server runs.
#[derive(Debug)]
pub struct Opponent {
    /// How requests name it.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// What it does, in one line.
    pub about: String,
    player: Player,
}

/// A game on offer.
pub struct Offer {
    /// How requests name it.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// What it is, in one line.
    pub about: String,
    /// SHA-256 of its rules.
    pub rules_sha256: String,
    /// Its board.
    pub board: BoardView,
    /// The network that comes with the program, if one does.
    shipped: Option<NetEvaluator>,
    opponents: Vec<Opponent>,
    table: Box<dyn Table>,
}

/// A game and an opponent for it.
#[derive(Debug, Clone)]
pub struct Seat {
    /// Name of the game.
    pub game: String,
    /// The game's name for people.
    pub title: String,
    /// The opponent, as the request named it.
    pub opponent: String,
    /// The opponent's name for people.
    pub opponent_name: String,
    /// Whose opinion is shown; none if there is no network.
    pub network: Option<String>,
    /// Index of the game.
    offer: usize,
    player: Player,
}

/// Why the catalogue does not have what was asked for.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// No game has this name.
    #[error("there is no game {name:?}; there are {known}")]
    NoGame {
        /// What was asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// No opponent has this id.
    #[error("there is no opponent {id:?} for {game}; there are {known}")]
    NoOpponent {
        /// What was asked for.
        id: String,
        /// The game.
        game: String,
        /// The ids there are.
        known: String,
    },
    /// An opponent that does not search.
    #[error("{0} looks as far ahead as it does: plies are for networks alone")]
    FixedPlies(String),
    /// Too far, or not at all.
    #[error("plies = {0} is out of range: accepted are 1 to {MAX_PLIES}")]
    Plies(u32),
    /// A run whose network cannot be played against.
    #[error("cannot play against the run {run}")]
    Run {
        /// The run.
        run: String,
        /// Why.
        source: anyhow::Error,
    },
    /// A position that does not fit the game.
    #[error("position: {0}")]
    Position(String),
}

/// A rules file that cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum OfferError {
    /// It is wrong.
    #[error(transparent)]
    Game(#[from] GameError),
    /// Its name is not its own.
    #[error("{file}: there is another game named {name:?} on offer; choose another name")]
    TakenName {
        /// The file.
        file: String,
        /// The name.
        name: String,
    },
}

/// How far a network may be asked to look ahead.
const MAX_PLIES: u32 = 8;
/// In front of the names of model folders.
const MODEL: &str = "model:";
/// In front of the names of runs.
const RUN: &str = "run:";

/// The games, opponents and runs.
pub struct Catalog {
    offers: Vec<Offer>,
    /// Where runs are.
    pub runs: Runs,
    /// The newest network of each run that has been played against, by game and name.
    snapshots: Mutex<HashMap<(usize, String), LoadedSnapshot>>,
}

#[derive(Clone)]
struct LoadedSnapshot {
    /// Of the newest checkpoint when it was loaded.
    hash: Option<String>,
    games: u64,
    net: NetEvaluator,
}

impl Catalog {
    /// The built-in games, those of the rules files, and their opponents that need no
    /// model folder.
    ///
    /// # Errors
    /// If a rules file is wrong.
    pub fn new(rules_files: &[String], runs: PathBuf) -> Result<Catalog, OfferError> {
        let mut catalog = Catalog {
            offers: Vec::new(),
            runs: Runs::new(runs),
            snapshots: Mutex::new(HashMap::new()),
        };
        for entry in GAMES {
            catalog.offers.push(offer((entry.build)(), entry.about));
        }
        for file in rules_files {
            let offer = offer(load(file)?, &format!("from {file}"));
            let same_name = catalog.offers.iter().find(|other| other.name == offer.name);
            match same_name {
                None => catalog.offers.push(offer),
                // The same game twice is no harm.
                Some(same) if same.rules_sha256 == offer.rules_sha256 => {}
                Some(_) => {
                    return Err(OfferError::TakenName {
                        file: file.clone(),
                        name: offer.name,
                    });
                }
            }
        }
        Ok(catalog)
    }

    /// Adds every model folder at or below `directory` as an opponent of its game.
    /// Models of games that are not on offer are passed over; the result says which
    /// others could not be used, and why.
    ///
    /// # Errors
    /// If a directory cannot be listed.
    pub fn add_models(&mut self, directory: &Path) -> Result<Vec<String>, files::FileError> {
        let mut folders = Vec::new();
        find_models(directory, MODEL_DEPTH, &mut folders)?;
        let problems = folders.iter().filter_map(|folder| {
            let added = self.add_model_folder(directory, folder);
            let problem = |error| format!("{}: {error:#}", folder.display());
            added.err().map(problem)
        });
        Ok(problems.collect())
    }

    /// Adds the networks that are compiled in, under the names that their folders have.
    pub fn add_shipped_models(&mut self) {
        for model in SHIPPED {
            let card = toml::from_slice(model.card).map_err(anyhow::Error::from);
            let folder = Path::new(model.folder);
            let name = model_name(Path::new("models"), folder);
            let added = card.and_then(|card| self.add_model(name, folder, &card));
            added.expect("the shipped models are undamaged");
        }
    }

    fn add_model_folder(&mut self, directory: &Path, folder: &Path) -> anyhow::Result<()> {
        let card = toml::from_str(&files::read_text(&folder.join(CARD_FILE))?)?;
        self.add_model(model_name(directory, folder), folder, &card)
    }

    fn add_model(&mut self, name: String, folder: &Path, card: &ModelCard) -> anyhow::Result<()> {
        let Some(offer) = self.offers.iter_mut().find(|offer| offer.name == card.game) else {
            return Ok(());
        };
        let id = format!("{MODEL}{name}");
        let name = match offer.opponents.iter().any(|other| other.id == id) {
            true => folder.display().to_string(),
            false => name,
        };
        let strength = card.strength.iter().find(|s| s.opponent == "easy");
        let strength = strength.map_or(String::new(), |s| {
            format!(", {:.0}% against EasyAI", 100.0 * s.score.score)
        });
        let source = ModelSource::Folder(folder.to_path_buf());
        let net = offer.table.load_model(&source)?;
        offer.opponents.push(Opponent {
            id: format!("{MODEL}{name}"),
            name,
            about: format!("{} network{strength}", card.net.kind.name()),
            player: Player {
                spec: AgentSpec::Model(source, Effort::Plies(1)),
                net: Some(net),
            },
        });
        Ok(())
    }

    /// The games, in the order in which they are shown.
    pub fn offers(&self) -> &[Offer] {
        &self.offers
    }

    /// The game whose rules have this hash.
    pub fn game_of_rules(&self, rules_sha256: &str) -> Option<&Offer> {
        let mut offers = self.offers.iter();
        offers.find(|offer| offer.rules_sha256 == rules_sha256)
    }

    /// Finds a game and an opponent for it. For the opponent `run:NAME` that reads
    /// the run's newest checkpoint, which takes a moment.
    ///
    /// # Errors
    /// If there is no such game or opponent, or the run has no usable checkpoint.
    pub fn seat(
        &self,
        game: &str,
        opponent: &str,
        plies: Option<u32>,
    ) -> Result<Seat, CatalogError> {
        let index = self.offers.iter().position(|offer| offer.name == game);
        let index = index.ok_or_else(|| CatalogError::NoGame {
            name: game.to_string(),
            known: join(self.offers.iter().map(|offer| offer.name.as_str())),
        })?;
        let offer = &self.offers[index];
        let (name, mut player) = match opponent.strip_prefix(RUN) {
            Some(run) => self.run_player(index, run)?,
            None => {
                let found = offer.opponents.iter().find(|o| o.id == opponent);
                let found = found.ok_or_else(|| CatalogError::NoOpponent {
                    id: opponent.to_string(),
                    game: offer.name.clone(),
                    known: join(offer.opponents.iter().map(|o| o.id.as_str())),
                })?;
                (found.name.clone(), found.player.clone())
            }
        };
        if let Some(plies) = plies {
            look_ahead(&mut player, opponent, plies)?;
        }
        let network = match (&player.net, &offer.shipped) {
            (Some(_), _) => Some(name.clone()),
            (None, Some(_)) => Some("NormalAI".to_string()),
            (None, None) => None,
        };
        Ok(Seat {
            game: offer.name.clone(),
            title: offer.title.clone(),
            opponent: opponent.to_string(),
            opponent_name: name,
            network,
            offer: index,
            player,
        })
    }

    /// Starts a game.
    ///
    /// # Errors
    /// If the position is none of the game's, or has no moves.
    pub fn start(
        &self,
        seat: &Seat,
        position: Option<&str>,
    ) -> Result<Box<dyn Record>, CatalogError> {
        let offer = &self.offers[seat.offer];
        let judge = seat.player.net.clone().or_else(|| offer.shipped.clone());
        let opening = offer.table.open(position, seat.player.clone(), judge);
        opening.map_err(CatalogError::Position)
    }

    fn run_player(&self, offer: usize, run: &str) -> Result<(String, Player), CatalogError> {
        let failed = |source| CatalogError::Run {
            run: run.to_string(),
            source,
        };
        let folder = self.runs.find(run).map_err(|error| failed(error.into()))?;
        let folder = folder.ok_or_else(|| failed(anyhow!("there is no such run")))?;
        let snapshot = self.snapshot(offer, run, &folder).map_err(failed)?;
        let name = format!("{run} after {} games", snapshot.games);
        let player = Player {
            spec: AgentSpec::Model(ModelSource::Folder(folder), Effort::Plies(1)),
            net: Some(snapshot.net),
        };
        Ok((name, player))
    }

    /// The newest network of a run; those who ask while it is the newest share it.
    fn snapshot(&self, offer: usize, run: &str, folder: &Path) -> anyhow::Result<LoadedSnapshot> {
        let key = (offer, run.to_string());
        let hash = Snapshot::newest_hash(folder)?;
        let known = self.snapshots().get(&key).cloned();
        if let Some(known) = known.filter(|known| known.hash == hash) {
            return Ok(known);
        }
        let (games, net) = self.offers[offer].table.load_snapshot(folder)?;
        let loaded = LoadedSnapshot { hash, games, net };
        self.snapshots().insert(key, loaded.clone());
        Ok(loaded)
    }

    fn snapshots(&self) -> MutexGuard<'_, HashMap<(usize, String), LoadedSnapshot>> {
        self.snapshots
            .lock()
            .expect("nothing panics while it holds the snapshots")
    }
}

impl Offer {
    /// The opponents that are always there.
    pub fn opponents(&self) -> &[Opponent] {
        &self.opponents
    }

    /// Whether there is a network to judge the game, whoever plays.
    pub fn has_network(&self) -> bool {
        self.shipped.is_some()
    }
}

impl Opponent {
    /// Whether it can be told how far to look ahead.
    pub fn takes_plies(&self) -> bool {
        takes_plies(&self.id)
    }
}

fn takes_plies(id: &str) -> bool {
    id.starts_with(MODEL) || id.starts_with(RUN)
}

fn look_ahead(player: &mut Player, id: &str, plies: u32) -> Result<(), CatalogError> {
    match &mut player.spec {
        AgentSpec::Model(_, effort) if takes_plies(id) => {
            if !(1..=MAX_PLIES).contains(&plies) {
                return Err(CatalogError::Plies(plies));
            }
            *effort = Effort::Plies(plies);
            Ok(())
        }
        _ => Err(CatalogError::FixedPlies(id.to_string())),
    }
}

fn join<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// How deep below the directory model folders are looked for.
const MODEL_DEPTH: usize = 3;

fn find_models(
    directory: &Path,
    depth: usize,
    found: &mut Vec<PathBuf>,
) -> Result<(), files::FileError> {
    if directory.join(CARD_FILE).is_file() {
        found.push(directory.to_path_buf());
    } else if depth > 0 {
        for path in files::entries(directory)? {
            if path.is_dir() {
                find_models(&path, depth - 1, found)?;
            }
        }
    }
    Ok(())
}

/// The folder's path below the directory, with `/` on every system.
fn model_name(directory: &Path, folder: &Path) -> String {
    let below = folder.strip_prefix(directory).unwrap_or(folder);
    let below = if below.as_os_str().is_empty() {
        folder
    } else {
        below
    };
    let parts = below.iter().map(|part| part.to_string_lossy());
    parts.collect::<Vec<_>>().join("/")
}

fn offer(game: AnyGame, about: &str) -> Offer {
    game.visit(MakeOffer { about })
}

struct MakeOffer<'a> {
    about: &'a str,
}

impl GameVisitor for MakeOffer<'_> {
    type Output = Offer;

    fn visit<G: BoardGame>(self, game: Arc<G>) -> Offer {
        let shipped = ShippedModel::of_game(game.name()).map(|_| {
            let net = ModelSource::Shipped.load(&*game, &Compute::cpu());
            net.expect("the shipped models are undamaged")
        });
        let player = |name: &str, net: Option<NetEvaluator>| Player {
            spec: name.parse().expect("a name of the table of agents"),
            net,
        };
        let mut opponents = vec![
            ("baby", "BabyAI", "moves at random", None),
            (
                "easy",
                "EasyAI",
                "looks three plies ahead and counts pieces",
                None,
            ),
        ];
        if let Some(net) = &shipped {
            let net = || Some(net.clone());
            opponents.push(("normal", "NormalAI", "a network, one ply", net()));
            opponents.push(("hard", "HardAI", "the network, five plies", net()));
        }
        let opponents = opponents
            .into_iter()
            .map(|(id, name, about, net)| Opponent {
                player: player(id, net),
                id: id.to_string(),
                name: name.to_string(),
                about: about.to_string(),
            });
        Offer {
            name: game.name().to_string(),
            title: game.title().to_string(),
            about: self.about.to_string(),
            rules_sha256: rules_sha256(&*game),
            board: board_view(&*game),
            opponents: opponents.collect(),
            shipped,
            table: Box::new(TypedTable { game }),
        }
    }
}

fn board_view<G: BoardGame>(game: &G) -> BoardView {
    let (files, ranks) = game.board_size();
    let kinds = game.piece_kinds().into_iter();
    let (start, mut moves) = (game.start(), Vec::new());
    game.legal_moves(&start, &mut moves);
    let is_drop = |&mv: &G::Move| game.move_squares(&start, mv).from.is_none();
    BoardView {
        files,
        ranks,
        kinds: kinds.map(|kind| (kind.letter, kind.name)).collect(),
        drops: moves.iter().any(is_drop),
        start: super::record::squares(game, &start),
    }
}

/// A game of a type that is erased.
trait Table: Send + Sync {
    fn load_model(&self, source: &ModelSource) -> anyhow::Result<NetEvaluator>;
    /// Games learned from, and the network.
    fn load_snapshot(&self, run: &Path) -> anyhow::Result<(u64, NetEvaluator)>;
    fn open(
        &self,
        position: Option<&str>,
        opponent: Player,
        judge: Option<NetEvaluator>,
    ) -> Result<Box<dyn Record>, String>;
}

struct TypedTable<G> {
    game: Arc<G>,
}

impl<G: BoardGame> Table for TypedTable<G> {
    fn load_model(&self, source: &ModelSource) -> anyhow::Result<NetEvaluator> {
        Ok(source.load(&*self.game, &Compute::cpu())?)
    }

    fn load_snapshot(&self, run: &Path) -> anyhow::Result<(u64, NetEvaluator)> {
        let compute = Compute::cpu();
        let snapshot = Snapshot::newest(run, &*self.game, &compute)?;
        let net = NetEvaluator::new(&snapshot.net, &compute);
        Ok((snapshot.games, net))
    }

    fn open(
        &self,
        position: Option<&str>,
        opponent: Player,
        judge: Option<NetEvaluator>,
    ) -> Result<Box<dyn Record>, String> {
        let game = self.game.clone();
        let position = match position {
            None => game.start(),
            Some(text) => game
                .parse_position(text)
                .map_err(|error| error.to_string())?,
        };
        if game.outcome(&position).is_some() {
            let ending = game.ending(&position);
            return Err(format!(
                "the game is over there ({ending}); give one with moves"
            ));
        }
        let opening = Opening {
            game,
            position,
            opponent,
            judge,
        };
        Ok(opening.record())
    }
}
