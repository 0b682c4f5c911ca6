//! Werewolf: a fast simulator of the game and tabular Q-learning on it.
//!
//! After Kajiwara, Toriumi and Inaba, "Design of Agent in 'Are you a Werewolf?'
//! using Reinforcement Learning" (JSAI 2015, 1F2-2), here "the paper". The
//! files, lowest first; a file uses those above it:
//!
//! - [`rules`]: players, roles, species; who plays with how many of which role
//! - [`view`]: what everybody knows, and what one player knows besides
//! - [`talk`]: claims, judgements, and when to come out
//! - [`simulator`]: one game from the deal to the reveal
//! - [`role_pattern`]: the explanations of what was said, and their states
//! - [`config`]: what the paper fixes or leaves open about learning
//! - [`q_table`]: the learned numbers of one player, and their file
//! - [`storage`]: learned tables as bytes
//! - [`posterior`]: reference players that compute exact probabilities
//! - [`diary`]: what learners did in one game
//! - [`company`]: players at a table, who choose by Q tables or otherwise
//! - [`learner`]: learning from finished games
//! - [`population`]: the paper's player O and player N
//! - [`evaluation`]: one player among random ones, the paper's table 3
//! - [`explain`]: what a player has learned, in words
//! - [`story`], [`log`]: a game for people, and for AIWolf tools
//!
//! # What matters
//!
//! The village's wins in %, one player O among random ones, by its role: mean of
//! three seeds, 300,000 games of learning and 50,000 games a figure unless noted
//! (sampling alone gives ±0.25). Lower is better for possessed and werewolf.
//!
//! | | bodyguard | seer | medium | possessed | werewolf | villager |
//! | --- | --- | --- | --- | --- | --- | --- |
//! | paper, player O | 49.6 | 50.5 | 52.6 | 30.7 | 26.6 | 48.4 |
//! | `werewolf-paper` | 48.3 | 52.0 | 49.3 | 32.4 | 26.9 | 48.1 |
//! | `weight = "frequency"` | 46.6 | 50.7 | 47.7 | 32.2 | 29.7 | 46.6 |
//! | `learning_rate = "constant"`, 0.1 | 46.2 | 48.2 | 45.6 | 32.4 | 29.9 | 45.4 |
//! | `epsilon = 0.1` | 46.3 | 48.9 | 46.3 | 33.3 | 31.3 | 47.8 |
//! | `vote_credit = "executed"` | 48.4 | 52.7 | 49.2 | 31.2 | 24.9 | 47.9 |
//! | `gamma = 1.0` | 47.7 | 50.3 | 48.6 | 32.6 | 27.3 | 47.6 |
//! | `key_claims = true` | 48.1 | 51.5 | 48.0 | 32.3 | 26.1 | 48.2 |
//! | `key_proved_humans = true` | 49.3 | 51.9 | 48.2 | 32.3 | 27.8 | 48.1 |
//! | constant, `epsilon = 0.1`, frequency, claims | 41.2 | 44.0 | 42.4 | 33.8 | 30.8 | 45.4 |
//! | `guard_oneself_kind = true` | 48.1 | 51.5 | 49.1 | 32.4 | 26.7 | 48.2 |
//! | `declared_votes = "leader"` | 48.1 | 50.1 | 47.4 | 27.9 | 16.9 | 48.9 |
//! | `declared_votes = "in_reach"`, 500,000 games | 52.1 | 56.5 | 52.6 | 29.3 | 18.0 | 51.3 |
//! | `declared_votes = "both"`, 500,000 games | 52.1 | 56.0 | 53.0 | 26.3 | 13.0 | 51.5 |
//! | exact posterior | 56.9 | 53.5 | 49.9 | 31.2 | 25.7 | 48.6 |
//! | exact posterior, counts declared votes | 64.1 | 57.8 | 54.6 | 27.5 | 12.2 | 53.0 |
//!
//! - One vote decides little, and declared votes tell when it decides. To know the
//!   leader helps the werewolves most; the village must know whom it could still
//!   bring to the top instead. `werewolf-best` tells both.
//! - Crediting an explorer by the declared votes at the end of the talk, instead of
//!   those that it saw when it chose, cost `leader` 2 to 3.5 points in the village's
//!   roles and `in_reach` up to 1.
//! - Telling targets of abilities apart by declared votes as well made the seer 2.5
//!   and the werewolf 4 points worse: the value then says whose execution is near,
//!   not what the ability does.
//! - The exact posterior as pattern weight (`weight = "posterior"`) gains half a point
//!   at most over calibrated counts, at a tenth of the speed: the counts are nearly
//!   as good.
//! - The exact posterior owes its bodyguard to guarding itself, which does not pay in
//!   the company of learners and is not learned there.

pub mod company;
pub mod config;
pub mod diary;
pub mod evaluation;
pub mod explain;
pub mod learner;
pub mod log;
pub mod population;
pub mod posterior;
pub mod q_table;
pub mod role_pattern;
pub mod rules;
pub mod simulator;
pub mod storage;
pub mod story;
pub mod talk;
pub mod view;
