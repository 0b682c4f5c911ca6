//! The games, and the one place where a name becomes a game.
//!
//! [`GAMES`] is the table of built-in games; a new one is a file next to this one
//! and a line there. Rules files of the [`leaper`] family need no line at all.

mod board;
mod board_text;
pub mod connect_four;
pub mod leaper;
pub mod tree;

use std::path::MAIN_SEPARATOR;
use std::sync::Arc;

pub use board::{BoardGame, MoveSquares, Piece, PieceKind};

use self::connect_four::ConnectFour;
use self::leaper::{Leaper, RulesError};
use crate::game::Game;

/// A built-in game.
#[derive(Debug)]
pub struct Entry {
    /// What the command line calls it.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// Builds it.
    pub build: fn() -> AnyGame,
}

/// The built-in games.
pub const GAMES: &[Entry] = &[
    Entry {
        name: "march-blitz",
        about: "kings and pawns march forward; catch the enemy king or bring yours across",
        build: || built_in("march-blitz.toml", leaper::MARCH_BLITZ),
    },
    Entry {
        name: "march-grand",
        about: "March with ten pieces a side",
        build: || built_in("march-grand.toml", leaper::MARCH_GRAND),
    },
    Entry {
        name: "breakthrough-6",
        about: "pawns only; the first across the board wins",
        build: || built_in("breakthrough-6.toml", leaper::BREAKTHROUGH_6),
    },
    Entry {
        name: "connect-four",
        about: "drop stones into files; four in a row win",
        build: || AnyGame::ConnectFour(ConnectFour),
    },
];

fn built_in(file: &str, toml: &str) -> AnyGame {
    let game = Leaper::parse(file, toml).expect("the built-in rules files are right");
    AnyGame::Leaper(Box::new(game))
}

/// A game of any type.
#[derive(Debug, Clone)]
pub enum AnyGame {
    /// A game of the family of rules files.
    Leaper(Box<Leaper>),
    /// Connect Four.
    ConnectFour(ConnectFour),
}

impl AnyGame {
    /// The game as one of the family of rules files, if it is.
    pub fn as_leaper(&self) -> Option<&Leaper> {
        match self {
            AnyGame::Leaper(game) => Some(game),
            AnyGame::ConnectFour(_) => None,
        }
    }

    /// Hands the game, with its type, to the visitor.
    pub fn visit<V: GameVisitor>(self, visitor: V) -> V::Output {
        match self {
            AnyGame::Leaper(game) => visitor.visit(Arc::new(*game)),
            AnyGame::ConnectFour(game) => visitor.visit(Arc::new(game)),
        }
    }
}

/// Something to do with a game whose type is known only at run time.
pub trait GameVisitor {
    /// What comes of it.
    type Output;

    /// Does it.
    fn visit<G: BoardGame>(self, game: Arc<G>) -> Self::Output;
}

/// Why there is no such game.
#[derive(Debug, thiserror::Error)]
pub enum GameError {
    /// Neither a built-in game nor, by its look, a file.
    #[error(
        "there is no game {name:?}{}; built-in games are {}, and a rules file ends in .toml",
        suggestion(.name),
        names().collect::<Vec<_>>().join(", ")
    )]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// A rules file that cannot be read.
    #[error("cannot read the rules file {path:?}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// A rules file that takes the name of a built-in game, but not its rules:
    /// their models would be taken for each other's.
    #[error(
        "{path}: the name {name:?} belongs to a built-in game with other rules; choose another"
    )]
    TakenName {
        /// The file.
        path: String,
        /// The name.
        name: String,
    },
    /// A rules file with a mistake.
    #[error(transparent)]
    Rules(#[from] Box<RulesError>),
}

/// Finds a game by its built-in name, or by the path of a rules file: anything
/// that ends in `.toml` or has a path separator.
///
/// # Errors
/// If there is no such game or file, or the file is wrong.
pub fn load(spec: &str) -> Result<AnyGame, GameError> {
    if spec.ends_with(".toml") || spec.contains(['/', MAIN_SEPARATOR]) {
        let toml = std::fs::read_to_string(spec).map_err(|source| GameError::Unreadable {
            path: spec.to_string(),
            source,
        })?;
        let game = Leaper::parse(spec, &toml).map_err(Box::new)?;
        if let Some(entry) = GAMES.iter().find(|entry| entry.name == game.name()) {
            let built_in = (entry.build)();
            if built_in.as_leaper().map(Game::rules_text) != Some(game.rules_text()) {
                return Err(GameError::TakenName {
                    path: spec.to_string(),
                    name: game.name().to_string(),
                });
            }
        }
        return Ok(AnyGame::Leaper(Box::new(game)));
    }
    match GAMES.iter().find(|entry| entry.name == spec) {
        Some(entry) => Ok((entry.build)()),
        None => Err(GameError::Unknown {
            name: spec.to_string(),
        }),
    }
}

/// Finds a game as [`load`] does and hands it, with its type, to the visitor.
///
/// # Errors
/// If there is no such game or file, or the file is wrong.
pub fn with_game<V: GameVisitor>(spec: &str, visitor: V) -> Result<V::Output, GameError> {
    Ok(load(spec)?.visit(visitor))
}

fn names() -> impl Iterator<Item = &'static str> {
    GAMES.iter().map(|entry| entry.name)
}

fn suggestion(name: &str) -> String {
    match nearest(name, names()) {
        Some(nearest) => format!(", did you mean {nearest}?"),
        None => String::new(),
    }
}

/// The known word that `word` most likely was meant to be, if any is near.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    /// Below this similarity a suggestion misleads more often than it helps.
    const NEAR: f64 = 0.75;
    known
        .map(|known| (strsim::jaro_winkler(word, known), known))
        .filter(|(similarity, _)| *similarity >= NEAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}
