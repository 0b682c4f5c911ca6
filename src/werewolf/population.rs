//! The paper's player O, one set of tables for everybody, and player N, a
//! population whose environments are mixed between rounds.
//!
//! Source: paper, section 2.3.

use super::company::{Company, Policy, Scratch, Seat};
use super::config::{Config, Rate};
use super::diary::Diary;
use super::learner::{Change, Lesson};
use super::q_table::Tables;
use super::rules::{MAX_PLAYERS, Rules, Side, shuffle};
use super::simulator::Simulator;
use crate::random::{Rng, Streams};

/// Players who learn in each other's company: one table of Q tables for each
/// seat, or a single one that all seats share.
#[derive(Debug, Clone, PartialEq)]
pub struct Environment {
    /// What the players have learned, by seat unless shared.
    pub tables: Vec<Tables>,
}

/// What happened in some games of an environment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tally {
    /// Games played.
    pub games: u64,
    /// Games won by the village.
    pub village: u64,
    /// How values moved.
    pub change: Change,
}

impl Environment {
    /// Player O: everybody learns into one set of tables.
    pub fn shared(config: &Config, rules: &Rules) -> Environment {
        Environment {
            tables: vec![Tables::new(config, rules)],
        }
    }

    /// An environment of player N: everybody learns alone.
    pub fn separate(config: &Config, rules: &Rules) -> Environment {
        Environment {
            tables: vec![Tables::new(config, rules); rules.players()],
        }
    }

    /// Plays and learns from the games with these numbers of `streams`, which are
    /// those of environment `environment`.
    pub fn learn(
        &mut self,
        simulator: &Simulator,
        config: &Config,
        rate: Rate,
        streams: Streams,
        environment: u64,
        games: std::ops::Range<u64>,
    ) -> Tally {
        let policy = Policy::new(config, &simulator.rules);
        let (mut scratch, mut diary) = (Scratch::default(), Diary::default());
        let mut tally = Tally {
            games: games.end - games.start,
            ..Tally::default()
        };
        let shared = self.tables.len() == 1;
        let table_of = |player: usize| if shared { 0 } else { player };
        for game in games {
            let mut rng = streams.stream(environment, game);
            let mut seats = [Seat::Untrained; MAX_PLAYERS];
            for (player, seat) in seats[..simulator.rules.players()].iter_mut().enumerate() {
                *seat = Seat::Learned(&self.tables[table_of(player)]);
            }
            let mut players =
                Company::learning(policy, seats, &mut scratch, config.epsilon, &mut diary);
            let (game, winner) = simulator.play(&mut players, &mut rng);
            tally.village += u64::from(winner == Side::Village);
            let lesson = Lesson {
                config,
                policy,
                rate,
                game: &game,
                winner,
            };
            let table_of = |player| table_of(usize::from(player));
            lesson.learn(&diary, &mut self.tables, table_of, &mut tally.change);
        }
        tally
    }
}

/// Ends a round of player N: where a side won least, what was learned for its
/// roles is forgotten; then all players are dealt into new environments. The last
/// round is not followed by this, or some players would end without practice;
/// the paper does not say.
///
/// `village_wins` are those of the round, in which all environments have played
/// the same number of games.
///
/// # Panics
/// If there is no environment.
pub fn mix(
    environments: &mut [Environment],
    village_wins: &[u64],
    config: &Config,
    rules: &Rules,
    rng: &mut Rng,
) {
    let by_wins = |&environment: &usize| village_wins[environment];
    let worst_for_village = (0..environments.len()).min_by_key(by_wins);
    let worst_for_werewolves = (0..environments.len()).max_by_key(by_wins);
    for (side, worst) in [
        (Side::Village, worst_for_village),
        (Side::Werewolves, worst_for_werewolves),
    ] {
        let worst = worst.expect("there is an environment");
        for tables in &mut environments[worst].tables {
            tables.reset(side, config, rules);
        }
    }
    let mut players: Vec<Tables> = Vec::new();
    for environment in environments.iter_mut() {
        players.append(&mut environment.tables);
    }
    shuffle(&mut players, rng);
    let mut players = players.into_iter();
    for environment in environments {
        environment.tables = players.by_ref().take(rules.players()).collect();
    }
}
