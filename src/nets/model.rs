//! The model folder: a trained network that says what it is.
//!
//! `model.toml` is the card (game, network, where it came from, how strong it
//! is), `weights.safetensors` holds the weights under the names and in the
//! layouts of PyTorch's `nn.Linear` and `nn.Conv2d`, so that `load_state_dict`
//! takes them as they are.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use burn::store::{
    BurnToPyTorchAdapter, ModuleSnapshot, ModuleStore, PyTorchToBurnAdapter, SafetensorsStore,
};
use burn::tensor::{DType, Device};
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use serde::{Deserialize, Serialize};

use super::{Net, NetConfig};
use crate::game::{Game, PlaneShape};
use crate::hash::sha256_hex;
use crate::random::Seed;
use crate::stats::Proportion;

/// The card's file name.
pub const CARD_FILE: &str = "model.toml";
/// The weights' file name.
pub const WEIGHTS_FILE: &str = "weights.safetensors";

/// What a model folder says about its network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelCard {
    /// Name of the game.
    pub game: String,
    /// SHA-256 of the game's rules, in hexadecimal: see [`rules_sha256`].
    pub rules_sha256: String,
    /// Shape of the input.
    pub planes: PlaneShape,
    /// SHA-256 of the weights file, in hexadecimal: a flipped bit would otherwise go
    /// unnoticed. [`Model::save`] sets it.
    pub weights_sha256: String,
    /// Architecture and size.
    pub net: NetConfig,
    /// Where the weights come from.
    pub training: Training,
    /// Measured strength.
    #[serde(default)]
    pub strength: Vec<Strength>,
}

/// How a network was trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// Name of the run folder.
    pub run: String,
    /// The run's seed.
    pub seed: u64,
    /// Games of self-play.
    pub games: u64,
    /// Positions that the games visited.
    pub positions: u64,
    /// Network evaluations by the generator.
    pub evaluations: u64,
    /// Wall-clock time of training, matches aside.
    pub seconds: f64,
    /// SHA-256 of the weights file that training started from, in hexadecimal; none
    /// if it started from fresh weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init_sha256: Option<String>,
}

/// A score against an opponent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Strength {
    /// Name of the opponent, such as `easy`.
    pub opponent: String,
    /// How far the network looked, in plies.
    pub plies: u32,
    /// Share of the points, with its 95% interval.
    #[serde(flatten)]
    pub score: Proportion,
    /// Games played, in colour-swapped pairs.
    pub games: u64,
}

/// Why a model folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A file cannot be read or written.
    #[error("cannot {action} {}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The card is not what it should be.
    #[error("{} is no model card", path.display())]
    Card {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: Box<toml::de::Error>,
    },
    /// The weights are damaged, or belong to another network.
    #[error("{} does not hold the weights of this network: {reason}", path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: WeightsError,
    },
    /// The card describes a network of a size that there is not.
    #[error("{}: {reason}", path.display())]
    Size {
        /// The card.
        path: PathBuf,
        /// Which size, and what would be accepted.
        reason: String,
    },
    /// The weights are not those that the card was written with.
    #[error(
        "{} does not hold the weights of this network: it has changed since {CARD_FILE} was \
         written; if that was on purpose, put its SHA-256 there, as weights_sha256",
        path.display()
    )]
    Changed {
        /// The weights file.
        path: PathBuf,
    },
    /// The model plays something else.
    #[error(
        "the model in {} is for {model}, not for {game}: name its game, or the rules file, with \
         --game", path.display()
    )]
    OtherGame {
        /// The model folder.
        path: PathBuf,
        /// The model's game.
        model: String,
        /// The game at hand.
        game: String,
    },
    /// Same name, other rules.
    #[error(
        "the model in {} was trained on other rules of {game} (or another input encoding), so \
         its weights mean nothing here: name its rules file with --game, or train a new one",
        path.display()
    )]
    OtherRules {
        /// The model folder.
        path: PathBuf,
        /// The game.
        game: String,
    },
}

/// Why bytes are not the weights of a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WeightsError {
    /// They are not even a safetensors file.
    #[error(
        "it is no safetensors file ({0}); PyTorch writes one by \
         safetensors.torch.save_file(net.state_dict(), FILE)"
    )]
    NoSafetensors(String),
    /// The tensors are not those of the network.
    #[error("its tensors are not the network's{0}")]
    Tensors(TensorProblems),
    /// Some numbers are no numbers.
    #[error("{0} has numbers that are not finite")]
    NotFinite(String),
    /// burn does not take them.
    #[error("{0}")]
    Refused(String),
}

/// How the tensors of a file differ from those of a network, each with its shape.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TensorProblems {
    /// Those that the network has and the file has not.
    pub missing: Vec<String>,
    /// Those that the file has and the network has not.
    pub unexpected: Vec<String>,
    /// Those of another shape.
    pub reshaped: Vec<String>,
    /// Those that are no 32-bit floats.
    pub retyped: Vec<String>,
}

impl fmt::Display for TensorProblems {
    /// A line for each kind of problem.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, tensors) in [
            ("missing", &self.missing),
            ("unexpected", &self.unexpected),
            ("of another shape", &self.reshaped),
            ("not F32 (PyTorch: net.float())", &self.retyped),
        ] {
            if !tensors.is_empty() {
                write!(f, "\n  {what}: {}", tensors.join(", "))?;
            }
        }
        Ok(())
    }
}

impl ModelCard {
    /// Reads the card of a model folder.
    ///
    /// # Errors
    /// If there is none, or it is damaged.
    pub fn read(directory: &Path) -> Result<ModelCard, ModelError> {
        ModelCard::parse(directory, &read(directory, CARD_FILE)?)
    }

    fn parse(origin: &Path, toml: &[u8]) -> Result<ModelCard, ModelError> {
        toml::from_slice(toml).map_err(|source| ModelError::Card {
            path: origin.join(CARD_FILE),
            source: Box::new(source),
        })
    }
}

fn read(directory: &Path, name: &str) -> Result<Vec<u8>, ModelError> {
    let path = directory.join(name);
    fs::read(&path).map_err(|source| ModelError::File {
        action: "read",
        path,
        source,
    })
}

/// A network with its card.
#[derive(Debug, Clone)]
pub struct Model {
    /// What it is.
    pub card: ModelCard,
    /// The network, for inference.
    pub net: Net,
}

impl Model {
    /// Writes both files into a directory that exists.
    ///
    /// # Errors
    /// If a file cannot be written; names it.
    pub fn save(&self, directory: &Path) -> Result<(), ModelError> {
        let weights = weights_to_bytes(&self.net);
        let card = ModelCard {
            weights_sha256: sha256_hex(&weights),
            ..self.card.clone()
        };
        let card = toml::to_string(&card).expect("a card has only plain fields");
        for (name, bytes) in [(CARD_FILE, card.as_bytes()), (WEIGHTS_FILE, &weights)] {
            let path = directory.join(name);
            fs::write(&path, bytes).map_err(|source| ModelError::File {
                action: "write",
                path,
                source,
            })?;
        }
        Ok(())
    }

    /// Reads a model folder and puts the network on `device`.
    ///
    /// # Errors
    /// If a file is missing or damaged; names it.
    pub fn load(directory: &Path, device: &Device) -> Result<Model, ModelError> {
        let card = read(directory, CARD_FILE)?;
        Model::from_bytes(directory, &card, read(directory, WEIGHTS_FILE)?, device)
    }

    /// Like [`Model::load`], from the bytes of the two files; `origin` is for
    /// error messages.
    ///
    /// # Errors
    /// If they are damaged.
    pub fn from_bytes(
        origin: &Path,
        card: &[u8],
        weights: Vec<u8>,
        device: &Device,
    ) -> Result<Model, ModelError> {
        let card = ModelCard::parse(origin, card)?;
        (card.net.validate().and_then(|()| card.planes.validate())).map_err(|reason| {
            ModelError::Size {
                path: origin.join(CARD_FILE),
                reason,
            }
        })?;
        let path = origin.join(WEIGHTS_FILE);
        if sha256_hex(&weights) != card.weights_sha256 {
            return Err(ModelError::Changed { path });
        }
        let net = net_from_bytes(&card.net, card.planes, weights, device)
            .map_err(|reason| ModelError::Weights { path, reason })?;
        Ok(Model { card, net })
    }

    /// Checks that the model was made for these rules.
    ///
    /// # Errors
    /// If it was made for another game, other rules or another input encoding.
    pub fn check_game<G: Game>(&self, game: &G, origin: &Path) -> Result<(), ModelError> {
        let path = origin.to_path_buf();
        if self.card.game != game.name() {
            return Err(ModelError::OtherGame {
                path,
                model: self.card.game.clone(),
                game: game.name().to_string(),
            });
        }
        if self.card.rules_sha256 != rules_sha256(game) || self.card.planes != game.plane_shape() {
            return Err(ModelError::OtherRules {
                path,
                game: game.name().to_string(),
            });
        }
        Ok(())
    }
}

/// SHA-256 of [`Game::rules_text`], in hexadecimal.
pub fn rules_sha256<G: Game>(game: &G) -> String {
    sha256_hex(game.rules_text().as_bytes())
}

/// The weights as a safetensors file, with PyTorch's names and layouts. Equal
/// weights give equal bytes.
///
/// # Panics
/// If the device fails while the weights are read back.
pub fn weights_to_bytes(net: &Net) -> Vec<u8> {
    let tensors = named_weights(net);
    let views = tensors.iter().map(|(name, shape, bytes)| {
        let view = TensorView::new(safetensors::Dtype::F32, shape.clone(), bytes);
        (name, view.expect("shape and bytes come from one tensor"))
    });
    safetensors::serialize(views, None).expect("the tensors are consistent")
}

/// All weights in a row, in the order of the layers.
///
/// # Panics
/// If the device fails while the weights are read back.
pub fn weights_of(net: &Net) -> Vec<f32> {
    let tensors = named_weights(net);
    tensors
        .iter()
        .flat_map(|(_, _, bytes)| numbers(bytes))
        .collect()
}

/// Name, shape and little-endian numbers of every parameter, as PyTorch has them.
fn named_weights(net: &Net) -> Vec<(String, Vec<usize>, Vec<u8>)> {
    let tensors = net
        .collect(None, Some(Box::new(BurnToPyTorchAdapter)), true)
        .into_iter();
    tensors
        .map(|tensor| {
            assert_eq!(tensor.dtype, DType::F32, "networks compute in f32");
            let bytes = tensor
                .to_bytes()
                .expect("weights can be read back from the device");
            (tensor.name.clone(), tensor.shape.to_vec(), bytes.to_vec())
        })
        .collect()
}

/// A network with the weights of a safetensors file.
///
/// # Errors
/// If they are not this network's.
pub fn net_from_bytes(
    config: &NetConfig,
    shape: PlaneShape,
    bytes: Vec<u8>,
    device: &Device,
) -> Result<Net, WeightsError> {
    // The weights drawn here are all replaced.
    let mut net = config.init(shape, &mut Seed(0).stream("unused"), device);
    weights_from_bytes(&mut net, bytes)?;
    Ok(net)
}

/// Replaces all weights of `net` by those of a safetensors file with the names and
/// layouts of PyTorch.
///
/// # Errors
/// If the bytes are no safetensors file, a tensor is missing, left over, of another
/// shape or type, or a number is not finite. The net is then as it was.
pub fn weights_from_bytes(net: &mut Net, bytes: Vec<u8>) -> Result<(), WeightsError> {
    check_weights(net, &bytes)?;
    let mut store = SafetensorsStore::from_bytes(Some(bytes))
        .with_from_adapter(PyTorchToBurnAdapter)
        .skip_enum_variants(true);
    let applied = store.apply_to(net);
    applied.map_err(|error| WeightsError::Refused(error.to_string()))?;
    Ok(())
}

/// Compares a safetensors file with the tensors of a network.
fn check_weights(net: &Net, bytes: &[u8]) -> Result<(), WeightsError> {
    let file = SafeTensors::deserialize(bytes)
        .map_err(|error| WeightsError::NoSafetensors(error.to_string()))?;
    let mut found: BTreeMap<String, TensorView> = file.tensors().into_iter().collect();
    let mut problems = TensorProblems::default();
    let mut not_finite = None;
    for (name, shape, _) in named_weights(net) {
        let Some(tensor) = found.remove(&name) else {
            problems.missing.push(format!("{name} {shape:?}"));
            continue;
        };
        if tensor.shape() != shape {
            let is = tensor.shape();
            (problems.reshaped).push(format!("{name} {is:?} instead of {shape:?}"));
        }
        if tensor.dtype() != safetensors::Dtype::F32 {
            (problems.retyped).push(format!("{name} is {}", tensor.dtype()));
        } else if numbers(tensor.data()).any(|number| !number.is_finite()) {
            not_finite = not_finite.or(Some(name));
        }
    }
    let left = found.iter();
    (problems.unexpected).extend(left.map(|(name, tensor)| format!("{name} {:?}", tensor.shape())));
    if problems != TensorProblems::default() {
        return Err(WeightsError::Tensors(problems));
    }
    not_finite.map_or(Ok(()), |name| Err(WeightsError::NotFinite(name)))
}

/// Reads little-endian numbers.
fn numbers(bytes: &[u8]) -> impl Iterator<Item = f32> + '_ {
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|&bytes| f32::from_le_bytes(bytes))
}
