//! Agents by name: how people write them, and how a name becomes an agent.

use std::fmt;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use super::{Agent, MaterialAgent, NetworkAgent, RandomAgent, SearchAgent};
use crate::game::Game;
use crate::games::nearest;
use crate::nets::NetEvaluator;
use crate::nets::device::Compute;
use crate::nets::model::{Model, ModelError};
use crate::nets::shipped::ShippedModel;
use crate::search::{Evaluator, Limits, MaterialEvaluator};

/// A kind of agent, or a short name for one.
#[derive(Debug)]
pub struct Entry {
    /// What people write.
    pub form: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// What a short name stands for.
    stands_for: Option<&'static str>,
}

/// Every way to write an agent. Behind those that search may stand how hard they
/// do, see [`Effort`].
pub const AGENTS: &[Entry] = &[
    Entry {
        form: "random",
        about: "a random legal move",
        stands_for: None,
    },
    Entry {
        form: "material",
        about: "3 plies of search, then the piece count",
        stands_for: None,
    },
    Entry {
        form: "model",
        about: "the network shipped for the game, looking 1 ply ahead",
        stands_for: None,
    },
    Entry {
        form: "model:PATH",
        about: "the network in a model folder; those of the repository are built in",
        stands_for: None,
    },
    Entry {
        form: "baby",
        about: "BabyAI: random",
        stands_for: Some("random"),
    },
    Entry {
        form: "easy",
        about: "EasyAI: material",
        stands_for: Some("material"),
    },
    Entry {
        form: "normal",
        about: "NormalAI: model",
        stands_for: Some("model"),
    },
    Entry {
        form: "hard",
        about: "HardAI: model@5",
        stands_for: Some("model@5"),
    },
];

/// An agent as people write it: `easy`, `material@5`, `model:runs/a/model@100ms`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentSpec {
    /// A uniformly random mover.
    Random,
    /// A search that counts material.
    Material(Effort),
    /// A search that asks a network.
    Model(ModelSource, Effort),
}

/// Where a network comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelSource {
    /// The program itself.
    Shipped,
    /// A model folder.
    Folder(PathBuf),
}

/// How hard an agent searches for each move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// `@5`: five plies ahead.
    Plies(u32),
    /// `@20000n`: as far as 20,000 visited positions go.
    Nodes(u64),
    /// `@100ms` or `@2s`: as far as this time goes. Games then depend on the machine.
    Time(Duration),
}

/// Why there is no such agent.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// No agent is written so.
    #[error("there is no agent {text:?}{}; accepted are {}", suggestion(.text), accepted())]
    Unknown {
        /// What was asked for.
        text: String,
    },
    /// What stands behind the `@` means nothing.
    #[error(
        "\"@{0}\" is no effort: accepted are @N plies such as @5, @Nn positions such as @20000n, \
         and time a move such as @100ms or @2s, each 1 or more"
    )]
    Effort(String),
    /// A random mover does not search.
    #[error("a random mover does not search: leave out \"@{0}\"")]
    RandomEffort(String),
    /// There is nothing to play with.
    #[error(
        "no model is shipped for {game}; train one (`tanren train`) and write model:PATH with its \
         model folder, or play easy"
    )]
    NotShipped {
        /// The game.
        game: String,
    },
    /// The model cannot be used.
    #[error(transparent)]
    Model(#[from] Box<ModelError>),
}

fn accepted() -> String {
    let forms: Vec<&str> = AGENTS.iter().map(|entry| entry.form).collect();
    format!(
        "{}, and @EFFORT behind material or a model",
        forms.join(", ")
    )
}

fn suggestion(text: &str) -> String {
    match nearest(text, AGENTS.iter().map(|entry| entry.form)) {
        Some(nearest) => format!(", did you mean {nearest}?"),
        None => String::new(),
    }
}

impl FromStr for AgentSpec {
    type Err = AgentError;

    fn from_str(text: &str) -> Result<AgentSpec, AgentError> {
        let short = AGENTS.iter().find(|entry| entry.form == text);
        let long = short.and_then(|entry| entry.stands_for).unwrap_or(text);
        let (name, effort_text) = split_effort(long);
        let effort: Option<Effort> = effort_text.map(str::parse).transpose()?;
        let plies = |default| effort.unwrap_or(Effort::Plies(default));
        match name.split_once(':') {
            None if name == "random" => match effort_text {
                None => Ok(AgentSpec::Random),
                Some(effort) => Err(AgentError::RandomEffort(effort.to_string())),
            },
            None if name == "material" => Ok(AgentSpec::Material(plies(3))),
            None if name == "model" => Ok(AgentSpec::Model(ModelSource::Shipped, plies(1))),
            Some(("model", path)) if !path.is_empty() => {
                let folder = ModelSource::Folder(PathBuf::from(path));
                Ok(AgentSpec::Model(folder, plies(1)))
            }
            _ => Err(AgentError::Unknown {
                text: text.to_string(),
            }),
        }
    }
}

/// Cuts off the effort. An `@` before a path separator belongs to a path.
fn split_effort(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once('@') {
        Some((name, effort)) if !effort.contains(['/', MAIN_SEPARATOR]) => (name, Some(effort)),
        _ => (text, None),
    }
}

impl FromStr for Effort {
    type Err = AgentError;

    fn from_str(text: &str) -> Result<Effort, AgentError> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let number: Option<u32> = digits.parse().ok().filter(|&number| number > 0);
        let effort = number.and_then(|number| match &text[digits.len()..] {
            "" => Some(Effort::Plies(number)),
            "n" => Some(Effort::Nodes(number.into())),
            "ms" => Some(Effort::Time(Duration::from_millis(number.into()))),
            "s" => Some(Effort::Time(Duration::from_secs(number.into()))),
            _ => None,
        });
        effort.ok_or_else(|| AgentError::Effort(text.to_string()))
    }
}

impl fmt::Display for AgentSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AgentSpec::Random => write!(f, "random"),
            AgentSpec::Material(effort) => write!(f, "material@{effort}"),
            AgentSpec::Model(ModelSource::Shipped, effort) => write!(f, "model@{effort}"),
            AgentSpec::Model(ModelSource::Folder(path), effort) => {
                write!(f, "model:{}@{effort}", path.display())
            }
        }
    }
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Effort::Plies(plies) => write!(f, "{plies}"),
            Effort::Nodes(nodes) => write!(f, "{nodes}n"),
            Effort::Time(time) => write!(f, "{}ms", time.as_millis()),
        }
    }
}

impl Effort {
    /// What a search of this effort may use up.
    pub fn limits<G: Game>(self, game: &G) -> Limits {
        let to_the_end = Limits::depth(game.max_plies() as u32);
        match self {
            Effort::Plies(plies) => Limits::depth(plies),
            Effort::Nodes(nodes) => Limits {
                nodes: Some(nodes),
                ..to_the_end
            },
            Effort::Time(time) => Limits {
                time: Some(time),
                ..to_the_end
            },
        }
    }
}

impl AgentSpec {
    /// How hard the agent searches, if it does.
    pub fn effort(&self) -> Option<Effort> {
        match self {
            AgentSpec::Random => None,
            AgentSpec::Material(effort) | AgentSpec::Model(_, effort) => Some(*effort),
        }
    }

    /// Loads what the agent needs to play the game.
    ///
    /// # Errors
    /// If there is no model, or it was made for another game.
    pub fn prepare<'a, G: Game>(
        &self,
        game: &'a G,
        compute: &Compute,
    ) -> Result<PreparedAgent<'a, G>, AgentError> {
        let net = match self {
            AgentSpec::Model(source, _) => Some(source.load(game, compute)?),
            AgentSpec::Random | AgentSpec::Material(_) => None,
        };
        Ok(PreparedAgent {
            game,
            spec: self.clone(),
            net,
        })
    }

    /// The agent, with `net` in place of the network that it would load.
    pub fn with_net<'a, G: Game>(&self, game: &'a G, net: NetEvaluator) -> PreparedAgent<'a, G> {
        PreparedAgent {
            game,
            spec: self.clone(),
            net: Some(net),
        }
    }
}

impl ModelSource {
    /// Loads the network.
    ///
    /// # Errors
    /// If there is no model, or it was made for another game.
    pub fn load<G: Game>(&self, game: &G, compute: &Compute) -> Result<NetEvaluator, AgentError> {
        let device = &compute.device;
        let (path, loaded) = match self {
            ModelSource::Shipped => {
                let not_shipped = || AgentError::NotShipped {
                    game: game.name().to_string(),
                };
                let shipped = ShippedModel::of_game(game.name()).ok_or_else(not_shipped)?;
                (Path::new(shipped.folder), shipped.load(device))
            }
            ModelSource::Folder(path) => match ShippedModel::in_folder(path) {
                Some(shipped) if !path.exists() => (path.as_path(), shipped.load(device)),
                _ => (path.as_path(), Model::load(path, device)),
            },
        };
        let loaded = loaded.and_then(|model| model.check_game(game, path).map(|()| model));
        Ok(NetEvaluator::new(&loaded.map_err(Box::new)?.net, compute))
    }
}

/// An agent that has all that it needs to play a game: from here on nothing fails.
#[derive(Debug)]
pub struct PreparedAgent<'a, G> {
    game: &'a G,
    spec: AgentSpec,
    /// Of a model.
    net: Option<NetEvaluator>,
}

impl<G: Game> PreparedAgent<'_, G> {
    /// A fresh agent, for one thread.
    pub fn agent(&self) -> Box<dyn Agent<G>> {
        self.build(None)
    }

    /// A fresh agent whose searches end after `time`, with what they have found by
    /// then. What it plays then depends on the machine.
    ///
    /// BabyAI, EasyAI and a network at one ply do not search in steps that could be
    /// stopped: they take what little time they need.
    pub fn agent_within(&self, time: Duration) -> Box<dyn Agent<G>> {
        self.build(Some(time))
    }

    fn build(&self, time: Option<Duration>) -> Box<dyn Agent<G>> {
        let name = self.spec.to_string();
        let limits = |effort: Effort| {
            let limits = effort.limits(self.game);
            Limits {
                time: limits.time.into_iter().chain(time).min(),
                ..limits
            }
        };
        match (&self.net, self.spec.effort()) {
            (_, None) => Box::new(RandomAgent),
            (None, Some(Effort::Plies(plies))) => Box::new(MaterialAgent::new(plies)),
            (None, Some(effort)) => {
                Box::new(SearchAgent::new(name, MaterialEvaluator, limits(effort)))
            }
            (Some(net), Some(Effort::Plies(1))) => Box::new(NetworkAgent::new(name, net.clone())),
            (Some(net), Some(effort)) => {
                Box::new(SearchAgent::new(name, net.clone(), limits(effort)))
            }
        }
    }

    /// What the agent judges positions by. A random mover does not judge: it gets
    /// the piece count.
    pub fn evaluator(&self) -> Box<dyn Evaluator<G>> {
        match &self.net {
            Some(net) => Box::new(net.clone()),
            None => Box::new(MaterialEvaluator),
        }
    }

    /// Whether [`PreparedAgent::evaluator`] is the piece count.
    pub fn counts_material(&self) -> bool {
        self.net.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_read_and_written() {
        for (text, long) in [
            ("baby", "random"),
            ("easy", "material@3"),
            ("material@4", "material@4"),
            ("normal", "model@1"),
            ("hard", "model@5"),
            ("model@2s", "model@2000ms"),
            ("model:runs/a/model", "model:runs/a/model@1"),
            ("model:a@b/model@300n", "model:a@b/model@300n"),
            ("model:c:/b@2/model", "model:c:/b@2/model@1"),
        ] {
            let spec: AgentSpec = text.parse().unwrap();
            assert_eq!(spec.to_string(), long, "{text}");
            assert_eq!(long.parse::<AgentSpec>().unwrap(), spec);
        }
        let path = ModelSource::Folder("a@b/model".into());
        assert_eq!(
            "model:a@b/model@300n".parse::<AgentSpec>().unwrap(),
            AgentSpec::Model(path, Effort::Nodes(300))
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("eazy", "there is no agent \"eazy\", did you mean easy?"),
            ("", "there is no agent \"\"; accepted are random, material,"),
            ("model:", "there is no agent"),
            ("easy@4", "there is no agent \"easy@4\", did you mean easy?"),
            ("material@0", "\"@0\" is no effort: accepted are @N plies"),
            ("material@3x", "\"@3x\" is no effort"),
            ("model:a/b@-1", "\"@-1\" is no effort"),
            ("random@3", "a random mover does not search"),
        ] {
            let message = text.parse::<AgentSpec>().unwrap_err().to_string();
            assert!(message.starts_with(part), "{text}: {message}");
        }
    }
}
