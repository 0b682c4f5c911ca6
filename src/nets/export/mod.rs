//! Networks as files that other programs read, each with a certificate.
//!
//! An export is bytes in one of the [`Format`]s. Before it is worth anything it is
//! read back and compared with the model on positions of random games: see
//! [`certify`]. How the bytes get into a file is the caller's business.

mod certificate;
mod interpreter;
mod onnx;
mod proto;

pub use certificate::{Certificate, Certified, ExportError, POSITIONS, Sample, TOLERANCE, certify};
pub use interpreter::{InterpretError, Interpreter};
pub use onnx::{Graph, Signal};

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::model::{Model, weights_to_bytes};
use crate::game::{Game, PlaneLegend, PlaneShape};

/// A file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// ONNX: operations and weights, for runtimes.
    Onnx,
    /// Safetensors: weights with the names and layouts of PyTorch.
    Safetensors,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 2] = [Format::Onnx, Format::Safetensors];

    /// The format's name, which is also the extension of its files.
    pub fn name(self) -> &'static str {
        match self {
            Format::Onnx => "onnx",
            Format::Safetensors => "safetensors",
        }
    }
}

/// A word that is not the name of a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no format {0:?}: accepted are onnx and safetensors")]
pub struct UnknownFormat(String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Format, UnknownFormat> {
        let mut formats = Format::ALL.into_iter();
        let found = formats.find(|format| format.name() == text);
        found.ok_or_else(|| UnknownFormat(text.to_string()))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Format {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The model in the format, as bytes. The same model gives the same bytes.
///
/// # Panics
/// If the device fails while the weights are read back.
pub fn export<G: Game>(game: &G, model: &Model, format: Format) -> Vec<u8> {
    let facts = Facts::new(game, model);
    match format {
        Format::Onnx => onnx::write(&model.net, model.card.planes, &facts),
        Format::Safetensors => with_metadata(&weights_to_bytes(&model.net), &facts),
    }
}

/// What a file says about its network, for people who know nothing of Tanren.
struct Facts {
    /// Such as `march-blitz-mlp`.
    name: String,
    /// What goes in.
    input: String,
    /// What comes out.
    output: String,
    /// All of that and more by key.
    entries: BTreeMap<&'static str, String>,
}

impl Facts {
    fn new<G: Game>(game: &G, model: &Model) -> Facts {
        let card = &model.card;
        let PlaneShape {
            planes,
            rows,
            columns,
        } = card.planes;
        let PlaneLegend {
            planes: names,
            squares,
        } = game.plane_legend();
        let names: Vec<String> = (names.iter().enumerate())
            .map(|(number, name)| format!("{number} {name}"))
            .collect();
        let input = format!(
            "planes, float32 [batch, {planes}, {rows}, {columns}]: what the side to move sees, 1 \
             where there is one and 0 elsewhere. Planes: {}. In a plane {squares}.",
            names.join(", ")
        );
        let output = "value, float32 [batch]: how good the position is for the side to move, from \
                      -1 (lost) to 1 (won); it is 2 * sigmoid(logit) - 1 of the last layer"
            .to_string();
        let training = &card.training;
        let entries = BTreeMap::from([
            (
                "producer",
                concat!("tanren ", env!("CARGO_PKG_VERSION")).to_string(),
            ),
            ("game", game.name().to_string()),
            ("rules_sha256", card.rules_sha256.clone()),
            ("architecture", card.net.kind.name().to_string()),
            ("sizes", card.net.sizes().to_string()),
            ("input", input.clone()),
            ("output", output.clone()),
            (
                "training",
                format!(
                    "run {}, seed {}, {} games of self-play",
                    training.run, training.seed, training.games
                ),
            ),
            ("weights_sha256", card.weights_sha256.clone()),
        ]);
        Facts {
            name: format!("{}-{}", game.name(), card.net.kind.name()),
            input,
            output,
            entries,
        }
    }

    /// The facts in lines.
    fn text(&self) -> String {
        let lines: Vec<String> = (self.entries.iter())
            .map(|(key, value)| format!("{key}: {value}"))
            .collect();
        lines.join("\n")
    }
}

/// A safetensors file with facts in its header. Written by hand, since the crate
/// writes them in an order that changes from run to run.
///
/// Source: the safetensors project, README, "Format": 8 bytes with the length of
/// the header, a JSON object padded with blanks, the numbers.
fn with_metadata(file: &[u8], facts: &Facts) -> Vec<u8> {
    let (length, rest) = file.split_first_chunk().expect("the crate wrote a header");
    let (header, numbers) = rest.split_at(u64::from_le_bytes(*length) as usize);
    let mut metadata = facts.entries.clone();
    // What PyTorch's tools look for.
    metadata.insert("format", "pt".to_string());
    let metadata = serde_json::to_string(&metadata).expect("texts are always JSON");
    let mut with = format!("{{\"__metadata__\":{metadata},").into_bytes();
    with.extend(
        header
            .trim_ascii_end()
            .strip_prefix(b"{")
            .expect("a JSON object"),
    );
    with.resize(with.len().next_multiple_of(8), b' ');
    [&(with.len() as u64).to_le_bytes(), &with[..], numbers].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_read_by_name() {
        for format in Format::ALL {
            assert_eq!(format.name().parse(), Ok(format));
        }
        let message = "onxx".parse::<Format>().unwrap_err().to_string();
        assert_eq!(
            message,
            "there is no format \"onxx\": accepted are onnx and safetensors"
        );
    }
}
