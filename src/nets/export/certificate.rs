//! Whether an export computes what the model computes, and the paper that says so.
//!
//! The export is read back from its bytes (ONNX by the [`Interpreter`], safetensors
//! into a network by the path of imports) and compared with the model on positions
//! of random games: the values themselves, their signs, and the move that a player
//! who looks one ply ahead would make.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use burn::tensor::Device;
use rayon::prelude::*;
use serde::Serialize;

use super::{Format, InterpretError, Interpreter};
use crate::game::playout::random_positions;
use crate::game::{Feature, Game, children};
use crate::hash::sha256_hex;
use crate::nets::model::{Model, WeightsError, net_from_bytes};
use crate::nets::{Features, Net, ValueNet, value_of};
use crate::random::Seed;
use crate::search::corrected;

/// Number of positions that an export is compared on; fewer if random games of the
/// game do not reach as many.
pub const POSITIONS: usize = 1000;

/// The largest difference of two values that passes. Single precision and another
/// order of additions account for some 1e-7.
pub const TOLERANCE: f64 = 1e-5;

/// Seed of the random games.
const SEED: u64 = 1;

/// What a comparison gave.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Certificate {
    /// The format.
    pub format: Format,
    /// Version of the program that wrote and compared.
    pub tanren: &'static str,
    /// SHA-256 of the file, in hexadecimal.
    pub file_sha256: String,
    /// SHA-256 of the model's weights file.
    pub weights_sha256: String,
    /// Name of the game.
    pub game: String,
    /// SHA-256 of its rules.
    pub rules_sha256: String,
    /// Different positions, from random games.
    pub positions: usize,
    /// Seed of the games.
    pub seed: u64,
    /// Largest difference of a value, in [0, 2].
    pub max_error: f64,
    /// Mean difference of the values.
    pub mean_error: f64,
    /// Positions that one calls better for the side to move and the other worse.
    pub sign_flips: usize,
    /// Positions in which a player who looks one ply ahead would make a move that the
    /// model thinks worse than its own.
    pub changed_best_moves: usize,
    /// By how much such moves are worse at most, in the model's values.
    pub change_loss: f64,
    /// What `max_error` may be.
    pub tolerance: f64,
}

impl Certificate {
    /// Whether the export computes what the model computes.
    pub fn passed(&self) -> bool {
        // Written so that NaN fails.
        self.max_error <= self.tolerance
    }
}

/// A position of the comparison, for those who want to check a port of their own.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sample {
    /// The position, as text.
    pub position: String,
    /// The inputs that are 1, counted through the planes row by row.
    pub ones: Vec<Feature>,
    /// The model's value.
    pub value: f32,
}

/// An export that passed.
#[derive(Debug, Clone, PartialEq)]
pub struct Certified {
    /// The figures.
    pub certificate: Certificate,
    /// The positions that it was compared on.
    pub samples: Vec<Sample>,
}

/// Why an export is not to be used.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The ONNX file cannot be read back.
    #[error("the export cannot be read back")]
    Interpret(#[from] InterpretError),
    /// The safetensors file cannot be read back.
    #[error("the export cannot be read back")]
    Weights(#[from] WeightsError),
    /// The export computes something else than the model.
    #[error(
        "the export differs from the model by up to {:.1e} ({:.1e} is accepted; mean {:.1e}, {} of {} \
         signs flipped, {} best moves changed)",
        .0.max_error, .0.tolerance, .0.mean_error, .0.sign_flips, .0.positions,
        .0.changed_best_moves
    )]
    Differs(Box<Certificate>),
}

/// Reads an export back and compares it with its model, which has to be on the CPU.
/// `progress` is told the number of positions done, in no particular order.
///
/// # Errors
/// If the bytes are no export of such a network, or its values differ by more than
/// [`TOLERANCE`].
pub fn certify<G: Game>(
    game: &G,
    model: &Model,
    format: Format,
    bytes: &[u8],
    progress: impl Fn(usize) + Sync,
) -> Result<Certified, ExportError> {
    let reloaded = Reloaded::read(model, format, bytes)?;
    let positions = different_positions(game);
    let done = AtomicUsize::new(0);
    // Small enough that the interpreter's numbers stay in the cache.
    const CHUNK: usize = 20;
    let parts = positions.par_chunks(CHUNK).map(|chunk| {
        let part = Comparison::of(game, chunk, model, &reloaded);
        progress(done.fetch_add(chunk.len(), Ordering::Relaxed) + chunk.len());
        part
    });
    let parts: Vec<Comparison> = parts.collect::<Result<_, _>>()?;
    let errors = || parts.iter().flat_map(|part| &part.errors).copied();
    let losses = || parts.iter().flat_map(|part| &part.losses).copied();
    let certificate = Certificate {
        format,
        tanren: env!("CARGO_PKG_VERSION"),
        file_sha256: sha256_hex(bytes),
        weights_sha256: model.card.weights_sha256.clone(),
        game: game.name().to_string(),
        rules_sha256: model.card.rules_sha256.clone(),
        positions: positions.len(),
        seed: SEED,
        // `f64::max` would drop a NaN.
        max_error: errors().fold(0.0, |most, x| if x > most || x.is_nan() { x } else { most }),
        mean_error: errors().sum::<f64>() / positions.len() as f64,
        sign_flips: parts.iter().map(|part| part.sign_flips).sum(),
        changed_best_moves: losses().filter(|&loss| loss > 0.0).count(),
        change_loss: losses().fold(0.0, f64::max),
        tolerance: TOLERANCE,
    };
    if !certificate.passed() {
        return Err(ExportError::Differs(Box::new(certificate)));
    }
    Ok(Certified {
        certificate,
        samples: parts.into_iter().flat_map(|part| part.samples).collect(),
    })
}

/// Different positions of random games that are not over, [`POSITIONS`] of them if
/// there are as many.
fn different_positions<G: Game>(game: &G) -> Vec<G::Position> {
    /// A round of games that brings nothing new is the last.
    const GAMES: usize = 100;
    let mut rng = Seed(SEED).stream("export");
    let (mut seen, mut positions) = (HashSet::new(), Vec::new());
    loop {
        let before = positions.len();
        for position in random_positions(game, GAMES, &mut rng) {
            if seen.insert(position.clone()) {
                positions.push(position);
            }
        }
        if positions.len() >= POSITIONS || positions.len() == before {
            positions.truncate(POSITIONS);
            return positions;
        }
    }
}

/// An export, read back.
enum Reloaded {
    Onnx(Interpreter),
    Safetensors(Box<Net>),
}

impl Reloaded {
    fn read(model: &Model, format: Format, bytes: &[u8]) -> Result<Reloaded, ExportError> {
        let card = &model.card;
        Ok(match format {
            Format::Onnx => Reloaded::Onnx(Interpreter::read(bytes)?),
            Format::Safetensors => {
                let bytes = bytes.to_vec();
                let net = net_from_bytes(&card.net, card.planes, bytes, &Device::flex())?;
                Reloaded::Safetensors(Box::new(net))
            }
        })
    }

    fn values(&self, features: &Features, model: &Model) -> Result<Vec<f64>, ExportError> {
        match self {
            Reloaded::Onnx(file) => Ok(file.run(features, model.card.planes)?),
            Reloaded::Safetensors(net) => Ok(values(net, features, model)),
        }
    }
}

/// What a network on the CPU says of some inputs.
fn values(net: &Net, features: &Features, model: &Model) -> Vec<f64> {
    let planes = features.planes(model.card.planes, &Device::flex());
    let values = net.forward(planes).into_data();
    let values = values.as_slice::<f32>().expect("networks compute in f32");
    values.iter().copied().map(f64::from).collect()
}

/// Model and export on some of the positions.
struct Comparison {
    /// By position.
    errors: Vec<f64>,
    /// By position, what the export's best move loses against the model's.
    losses: Vec<f64>,
    sign_flips: usize,
    samples: Vec<Sample>,
}

impl Comparison {
    fn of<G: Game>(
        game: &G,
        positions: &[G::Position],
        model: &Model,
        export: &Reloaded,
    ) -> Result<Comparison, ExportError> {
        let mut moves = Vec::new();
        let families: Vec<Vec<G::Position>> = (positions.iter())
            .map(|position| {
                moves.clear();
                game.legal_moves(position, &mut moves);
                let mut family = Vec::new();
                children(game, position, &moves, &mut family);
                family
            })
            .collect();
        // The positions themselves first, then their children.
        let mut features = Features::default();
        for position in positions.iter().chain(families.iter().flatten()) {
            features.push(game, position);
        }
        let ours = values(&model.net, &features, model);
        let theirs = export.values(&features, model)?;
        let pairs = || ours.iter().zip(&theirs).take(positions.len());
        let mut losses = Vec::new();
        let mut start = positions.len();
        for family in &families {
            let range = start..start + family.len();
            start = range.end;
            losses.push(loss(game, family, &ours[range.clone()], &theirs[range]));
        }
        let samples = (positions.iter().zip(&ours).enumerate())
            .map(|(index, (position, &value))| Sample {
                position: game.format_position(position),
                ones: features.get(index).to_vec(),
                value: value as f32,
            })
            .collect();
        Ok(Comparison {
            errors: pairs().map(|(a, b)| (a - b).abs()).collect(),
            losses,
            sign_flips: pairs().filter(|(a, b)| (**a > 0.0) != (**b > 0.0)).count(),
            samples,
        })
    }
}

/// What a player loses, by the model's values, who moves to the child that the export
/// thinks worst for its side to move.
fn loss<G: Game>(game: &G, family: &[G::Position], ours: &[f64], theirs: &[f64]) -> f64 {
    let judged = |values: &[f64]| -> Vec<f32> {
        let judged = family.iter().zip(values);
        judged
            .map(|(child, &value)| corrected(game, child, value_of(value as f32)).get())
            .collect()
    };
    let (ours, theirs) = (judged(ours), judged(theirs));
    let by_value =
        |values: &[f32]| (0..values.len()).min_by(|&a, &b| values[a].total_cmp(&values[b]));
    let (Some(own), Some(other)) = (by_value(&ours), by_value(&theirs)) else {
        return 0.0;
    };
    f64::from(ours[other]) - f64::from(ours[own])
}
