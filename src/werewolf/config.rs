//! Everything about learning that the paper fixes or leaves open, in one struct.

use serde::{Deserialize, Serialize};

use super::role_pattern::StateKey;
use super::rules::{Role, Rules};
use super::simulator::Simulator;
use super::talk::ManyVotes;

/// How players learn, in which company, and for how long.
///
/// "Paper" is Kajiwara, Toriumi and Inaba (JSAI 2015). Where a field says that
/// the paper gives no value, the choice is this project's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Players at a table: 5, 11 or 15. Paper: 11.
    pub players: usize,
    /// Games by which player O learns. Paper: gives none for O, 1,000,000 for each
    /// round of N.
    pub single_games: u64,
    /// Environments of player N. Paper: 5.
    pub environments: usize,
    /// Rounds of player N, with losers reset and players shuffled in between.
    /// Paper: 3.
    pub rounds: u64,
    /// Games of each environment in a round. Paper: 1,000,000.
    pub round_games: u64,
    /// Games of each environment between two lines of metrics. Not in the paper,
    /// and without effect on what is learned.
    pub step_games: u64,
    /// Games for each cell of the closing evaluation. Paper: gives none.
    pub evaluation_games: u64,

    /// States tell apart the numbers of claimants. Paper: does not say what its
    /// states are; here more than the base key gains nothing and learns more slowly.
    pub key_claims: bool,
    /// States tell apart the number of proved humans. Paper: see `key_claims`.
    pub key_proved_humans: bool,
    /// States tell apart the number of living players. Paper: see `key_claims`.
    pub key_living: bool,
    /// What a pattern counts for. Paper: `frequency`.
    pub weight: WeightRule,

    /// Discount of the next day's value. Paper: gives none.
    pub gamma: f64,
    /// Value of every action before it is tried. Paper: gives none; hardly matters.
    pub initial_q: f64,
    /// How far a value moves towards what was seen. Paper: `constant`.
    pub learning_rate: LearningRate,
    /// Least rate of `visits`. Not in the paper.
    pub rate_floor: f64,
    /// Rates of `constant` for the rounds of player N. Paper: 0.5, 0.3, 0.1.
    pub constant_rates: Vec<f64>,
    /// Rate of `constant` for player O. Paper: gives none.
    pub single_constant_rate: f64,
    /// Chance that a learner chooses uniformly, drawn once a day for the vote and
    /// on its own for each choice of the night. Paper: gives none. In greedy
    /// self-play everybody votes alike, one vote no longer matters, and the values
    /// go flat.
    pub epsilon: f64,
    /// Whose kind a vote's outcome is credited to. Paper: does not say.
    pub vote_credit: VoteCredit,
    /// Many declare a vote for a player: at least this share of the living, or
    /// `many_votes_players` of them. Paper: gives none.
    pub many_votes_share: f64,
    /// See `many_votes_share`. Paper: gives none.
    pub many_votes_players: u32,

    /// What a vote's kind says about the declared votes. Not in the paper, which
    /// has `ignored`.
    pub declared_votes: DeclaredVotes,
    /// Guarding oneself is a kind of its own. Not in the paper.
    pub guard_oneself_kind: bool,
}

/// What a pattern counts for when the values of its state are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WeightRule {
    /// How often a pattern with its state has been the true one: the days on
    /// which the state was true, over the patterns with this state looked at.
    Calibrated,
    /// The days on which its state was the true one, as the paper has it. Counts
    /// states with many patterns more than once.
    Frequency,
    /// Its exact probability if everybody else chooses uniformly.
    Posterior,
}

/// What the kind of a vote's target says about the votes that the others have
/// declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeclaredVotes {
    /// Nothing.
    Ignored,
    /// Whether he has the most of them.
    Leader,
    /// Whether with one more he would have as many as anyone.
    InReach,
    /// Whether he has the most of them, or would have with one more.
    Both,
}

/// How far a value moves towards what was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LearningRate {
    /// 1/n at the n-th visit of a state and action, not below `rate_floor`.
    Visits,
    /// The constants of `constant_rates` and `single_constant_rate`.
    Constant,
}

/// Whose kind the outcome of a vote is credited to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VoteCredit {
    /// The player voted for.
    Voted,
    /// The player executed.
    Executed,
}

impl Config {
    /// The rules.
    ///
    /// # Errors
    /// If there are none for this number of players.
    pub fn rules(&self) -> Result<Rules, String> {
        Rules::for_players(self.players)
    }

    /// A simulator of the configured games.
    ///
    /// # Errors
    /// If there are no rules for this number of players.
    pub fn simulator(&self) -> Result<Simulator, String> {
        let many_votes = ManyVotes {
            share: self.many_votes_share,
            players: self.many_votes_players,
        };
        Ok(Simulator {
            rules: self.rules()?,
            many_votes,
        })
    }

    /// How patterns become states under `rules`.
    pub fn state_key(&self, rules: &Rules) -> StateKey {
        StateKey {
            claims: self.key_claims,
            proved_humans: self.key_proved_humans,
            living: self.key_living,
            werewolves: rules.count(Role::Werewolf),
            players: rules.players(),
        }
    }

    /// The learning rate of player N in `round`, counted from 0.
    pub fn round_rate(&self, round: usize) -> Rate {
        match self.learning_rate {
            LearningRate::Visits => self.visits_rate(),
            LearningRate::Constant => Rate::Constant(self.constant_rates[round] as f32),
        }
    }

    /// The learning rate of player O.
    pub fn single_rate(&self) -> Rate {
        match self.learning_rate {
            LearningRate::Visits => self.visits_rate(),
            LearningRate::Constant => Rate::Constant(self.single_constant_rate as f32),
        }
    }

    fn visits_rate(&self) -> Rate {
        Rate::Visits {
            floor: self.rate_floor as f32,
        }
    }
}

/// A learning rate at work, see [`LearningRate`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// 1/n at the n-th visit.
    Visits {
        /// The least rate.
        floor: f32,
    },
    /// Always the same.
    Constant(f32),
}

impl Rate {
    /// The rate at visit number `visit`, counted from 1.
    pub fn at(self, visit: u32) -> f32 {
        match self {
            Rate::Visits { floor } => (1.0 / visit as f32).max(floor),
            Rate::Constant(rate) => rate,
        }
    }
}
