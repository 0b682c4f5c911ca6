//! The models that are compiled into the program, so that `normal` and `hard` play
//! wherever it is installed.

use std::path::Path;

use burn::tensor::Device;

use super::model::{Model, ModelError};

/// A model folder, compiled in.
#[derive(Debug)]
pub struct ShippedModel {
    /// The game that it plays.
    pub game: &'static str,
    /// The folder, in the repository.
    pub folder: &'static str,
    /// Its card.
    pub card: &'static [u8],
    /// Its weights.
    pub weights: &'static [u8],
}

/// The shipped models. The first one of a game is what `normal` and `hard` play it
/// with. To ship another, put its folder under `models` and add its line here.
pub const SHIPPED: &[ShippedModel] = &[
    ShippedModel {
        game: "march-blitz",
        folder: "models/march-blitz/mlp",
        card: include_bytes!("../../models/march-blitz/mlp/model.toml"),
        weights: include_bytes!("../../models/march-blitz/mlp/weights.safetensors"),
    },
    ShippedModel {
        game: "march-blitz",
        folder: "models/march-blitz/conv",
        card: include_bytes!("../../models/march-blitz/conv/model.toml"),
        weights: include_bytes!("../../models/march-blitz/conv/weights.safetensors"),
    },
    ShippedModel {
        game: "march-blitz",
        folder: "models/march-blitz/residual",
        card: include_bytes!("../../models/march-blitz/residual/model.toml"),
        weights: include_bytes!("../../models/march-blitz/residual/weights.safetensors"),
    },
    ShippedModel {
        game: "march-grand",
        folder: "models/march-grand/mlp",
        card: include_bytes!("../../models/march-grand/mlp/model.toml"),
        weights: include_bytes!("../../models/march-grand/mlp/weights.safetensors"),
    },
];

impl ShippedModel {
    /// The model that `game` is played with, if one is shipped.
    pub fn of_game(game: &str) -> Option<&'static ShippedModel> {
        SHIPPED.iter().find(|model| model.game == game)
    }

    /// The model that the repository has in `folder`, so that the same name works
    /// wherever the program is installed.
    pub fn in_folder(folder: &Path) -> Option<&'static ShippedModel> {
        SHIPPED
            .iter()
            .find(|model| Path::new(model.folder) == folder)
    }

    /// Puts the network on `device`.
    ///
    /// # Errors
    /// If the files are damaged.
    pub fn load(&self, device: &Device) -> Result<Model, ModelError> {
        Model::from_bytes(
            Path::new(self.folder),
            self.card,
            self.weights.to_vec(),
            device,
        )
    }
}
