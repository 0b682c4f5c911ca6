//! One player among random ones, the paper's table 3, and learned players in each
//! other's company.
//!
//! Source: paper, section 3.

use std::fmt;

use rayon::prelude::*;
use serde::Serialize;

use super::company::{Company, Policy, Scratch, Seat};
use super::posterior::Reference;
use super::q_table::Tables;
use super::rules::{Deal, MAX_PLAYERS, Role, Side, below};
use super::simulator::{Simulator, Uniform};
use crate::random::{Rng, Seed, Streams};
use crate::stats::{Proportion, Z_95};

/// Games that one task plays before it hands back its counts.
const CHUNK_GAMES: u64 = 2_000;
/// The same where every choice is uniform, which is faster.
const UNIFORM_CHUNK_GAMES: u64 = 10_000;

/// Who is measured.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'a> {
    /// Always the same kind of player.
    One(Seat<'a>),
    /// A population with separate tables, one drawn for each game.
    Population(&'a [&'a Tables]),
}

impl<'a> Subject<'a> {
    /// The player for one seat of one game. Takes one draw in any case.
    fn seat(self, rng: &mut Rng) -> Seat<'a> {
        match self {
            Subject::One(seat) => {
                below(rng, 1);
                seat
            }
            Subject::Population(members) => {
                Seat::Learned(members[below(rng, members.len() as u32) as usize])
            }
        }
    }
}

/// Plays games of chosen players.
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// The game.
    pub simulator: Simulator,
    /// How learned players choose.
    pub policy: Policy,
    /// The root of the games' randomness.
    pub seed: Seed,
    /// Games for each figure.
    pub games: u64,
}

impl Evaluation {
    /// The village's wins, game by game, when `subject` holds `role` and everybody
    /// else is random; with `None` everybody is random. Games with the same number
    /// have the same deal, and the same draws until a choice differs.
    pub fn among_random(&self, subject: Subject, role: Option<Role>) -> Wins {
        let purpose = format!("evaluation {}", role.map_or("none", Role::name));
        self.play(self.seed.purpose(&purpose), |deal, rng| {
            let holder = role.map(|role| deal.holders(role).pick(rng));
            let seat = subject.seat(rng);
            let mut seats = [Seat::Untrained; MAX_PLAYERS];
            if let Some(holder) = holder {
                seats[usize::from(holder)] = seat;
            }
            seats
        })
    }

    /// The village's wins when `village` holds the village's roles and
    /// `werewolves` the others.
    pub fn in_company(&self, village: Subject, werewolves: Subject) -> Wins {
        self.play(self.seed.purpose("company"), |deal, rng| {
            let mut seats = [Seat::Untrained; MAX_PLAYERS];
            for player in self.simulator.rules.everyone().iter() {
                let subject = match deal.role(player).side() {
                    Side::Village => village,
                    Side::Werewolves => werewolves,
                };
                seats[usize::from(player)] = subject.seat(rng);
            }
            seats
        })
    }

    fn play<'a>(
        &self,
        streams: Streams,
        seats: impl Fn(&Deal, &mut Rng) -> [Seat<'a>; MAX_PLAYERS] + Sync,
    ) -> Wins {
        let chunks = (0..self.games.div_ceil(CHUNK_GAMES)).into_par_iter();
        let played = chunks.flat_map_iter(|chunk| {
            let first = chunk * CHUNK_GAMES;
            let mut scratch = Scratch::default();
            let wins = (first..self.games.min(first + CHUNK_GAMES)).map(|game| {
                let mut rng = streams.stream(0, game);
                let deal = self.simulator.rules.deal(&mut rng);
                let seats = seats(&deal, &mut rng);
                let mut players = Company::playing(self.policy, seats, &mut scratch);
                let played = self
                    .simulator
                    .play_deal(deal, &mut players, &mut rng, &mut ());
                played.1 == Side::Village
            });
            wins.collect::<Vec<bool>>()
        });
        Wins(played.collect())
    }
}

/// Games won by the village when every choice is uniform. Does not depend on the
/// number of threads: each game has its own stream.
pub fn uniform_village_wins(simulator: &Simulator, games: u64, seed: Seed) -> u64 {
    let streams = seed.purpose("werewolf simulate");
    let chunks = (0..games.div_ceil(UNIFORM_CHUNK_GAMES)).into_par_iter();
    let wins = chunks.map(|chunk| {
        let first = chunk * UNIFORM_CHUNK_GAMES;
        let games = first..games.min(first + UNIFORM_CHUNK_GAMES);
        let won = games.filter(|&game| {
            let mut rng = streams.stream(0, game);
            simulator.play(&mut Uniform::<false>, &mut rng).1 == Side::Village
        });
        won.count() as u64
    });
    wins.sum()
}

/// Whether the village won, game by game.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wins(pub Vec<bool>);

impl Wins {
    /// The village's share, with its interval.
    ///
    /// # Panics
    /// If there is no game.
    pub fn share(&self) -> Proportion {
        let wins = self.0.iter().filter(|&&won| won).count();
        Proportion::wilson(wins as f64, self.0.len() as f64)
    }

    /// By how much the share exceeds that of `other` in the same games, and the
    /// half width of the 95% interval of this difference. Games that end alike
    /// under both cancel out, as in McNemar's test.
    ///
    /// # Panics
    /// If the numbers of games differ.
    pub fn paired_difference(&self, other: &Wins) -> (f64, f64) {
        assert_eq!(self.0.len(), other.0.len(), "the games are not the same");
        let games = self.0.len() as f64;
        let pairs = || self.0.iter().zip(&other.0);
        let only_here = pairs().filter(|&(&a, &b)| a && !b).count() as f64;
        let only_there = pairs().filter(|&(&a, &b)| !a && b).count() as f64;
        let difference = (only_here - only_there) / games;
        let variance = (only_here + only_there) / games - difference * difference;
        (difference, Z_95 * (variance / games).sqrt())
    }
}

/// The roles of the paper's table 3, in its order.
pub const TABLE_ROLES: [Role; 6] = [
    Role::Bodyguard,
    Role::Seer,
    Role::Medium,
    Role::Possessed,
    Role::Werewolf,
    Role::Villager,
];

/// The paper's table 3: the village's wins in percent, by [`TABLE_ROLES`].
///
/// Source: paper, table 3; without a trained player 36.2.
pub const PAPER_TABLE: [(&str, [f64; 6]); 2] = [
    ("paper, player O", [49.6, 50.5, 52.6, 30.7, 26.6, 48.4]),
    ("paper, player N", [49.4, 48.9, 50.5, 33.3, 27.4, 48.8]),
];
const PAPER_NONE: f64 = 36.2;

/// The figures of the paper's table 3, for players of our own.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// Games for each figure.
    pub games: u64,
    /// The village's share without a trained player.
    pub none: Proportion,
    /// One trained player among random ones.
    pub rows: Vec<Row>,
    /// The village's share with player O less that with player N, in the same
    /// games, by [`TABLE_ROLES`]; empty without player N.
    pub o_less_n: Vec<Option<Difference>>,
    /// Learned players in each other's company.
    pub company: Vec<CompanyFigure>,
}

/// The figures of one player.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Who it is.
    pub name: String,
    /// The village's share by the player's role, in the order of [`TABLE_ROLES`];
    /// `None` for a role that the rules lack.
    pub village: Vec<Option<Proportion>>,
}

/// A difference of shares with the half width of its 95% interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Difference {
    /// The difference.
    pub difference: f64,
    /// Half the width of the interval.
    pub half_width: f64,
}

impl fmt::Display for Difference {
    /// In percentage points: `+0.6 ±0.2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let points = |share: f64| 100.0 * share;
        let (difference, half_width) = (points(self.difference), points(self.half_width));
        write!(f, "{difference:+.1} ±{half_width:.1}")
    }
}

/// Games without random players.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CompanyFigure {
    /// Who plays the village's roles.
    pub village: String,
    /// Who plays the werewolves' roles.
    pub werewolves: String,
    /// The village's share.
    pub share: Proportion,
}

impl Table {
    /// Measures player O, all of player N unless it is empty, and with
    /// `references` the reference players.
    pub fn measure(evaluation: &Evaluation, o: &Tables, n: &[Tables], references: bool) -> Table {
        let members: Vec<&Tables> = n.iter().collect();
        let mut learned = vec![("player O", Subject::One(Seat::Learned(o)))];
        if !members.is_empty() {
            learned.push(("player N", Subject::Population(&members)));
        }
        let mut subjects = learned.clone();
        if references {
            let reference =
                |counts_votes| Subject::One(Seat::Reference(Reference { counts_votes }));
            subjects.push(("exact posterior", reference(false)));
            subjects.push(("exact posterior, counts votes", reference(true)));
        }
        let wins = |&(_, subject): &(&str, Subject)| {
            TABLE_ROLES.map(|role| {
                let exists = evaluation.simulator.rules.count(role) > 0;
                exists.then(|| evaluation.among_random(subject, Some(role)))
            })
        };
        let wins: Vec<[Option<Wins>; 6]> = subjects.iter().map(wins).collect();
        let rows = subjects.iter().zip(&wins).map(|((name, _), wins)| Row {
            name: name.to_string(),
            village: wins
                .iter()
                .map(|wins| wins.as_ref().map(Wins::share))
                .collect(),
        });
        Table {
            games: evaluation.games,
            none: evaluation
                .among_random(Subject::One(Seat::Untrained), None)
                .share(),
            rows: rows.collect(),
            o_less_n: match learned.len() {
                2 => differences(&wins[0], &wins[1]),
                _ => Vec::new(),
            },
            company: company(evaluation, &learned),
        }
    }
}

fn differences(o: &[Option<Wins>], n: &[Option<Wins>]) -> Vec<Option<Difference>> {
    let difference = |(o, n): (&Option<Wins>, &Option<Wins>)| {
        let (difference, half_width) = o.as_ref()?.paired_difference(n.as_ref()?);
        Some(Difference {
            difference,
            half_width,
        })
    };
    o.iter().zip(n).map(difference).collect()
}

/// Every learned player as the village against every one as the werewolves.
fn company(evaluation: &Evaluation, learned: &[(&str, Subject)]) -> Vec<CompanyFigure> {
    let mut figures = Vec::new();
    for &(village, village_subject) in learned {
        for &(werewolves, werewolf_subject) in learned {
            figures.push(CompanyFigure {
                village: village.to_string(),
                werewolves: werewolves.to_string(),
                share: evaluation
                    .in_company(village_subject, werewolf_subject)
                    .share(),
            });
        }
    }
    figures
}

impl fmt::Display for Table {
    /// As a table of percentages with 95% intervals, the paper's figures first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAME: usize = 30;
        const CELL: usize = 12;
        writeln!(
            f,
            "Village wins in % (95% interval), one trained player among random ones,"
        )?;
        writeln!(f, "{} games a figure\n", self.games)?;
        write!(f, "{:NAME$}{:>CELL$}", "", "none")?;
        for role in TABLE_ROLES {
            write!(f, "{:>CELL$}", role.name())?;
        }
        writeln!(f)?;
        for (name, figures) in PAPER_TABLE {
            write!(f, "{name:NAME$}{PAPER_NONE:>CELL$.1}")?;
            for figure in figures {
                write!(f, "{figure:>CELL$.1}")?;
            }
            writeln!(f)?;
        }
        for row in &self.rows {
            write!(
                f,
                "{:NAME$}{:>CELL$}",
                row.name,
                with_half_width(&self.none)
            )?;
            for share in &row.village {
                write!(f, "{:>CELL$}", cell(share.as_ref().map(with_half_width)))?;
            }
            writeln!(f)?;
        }
        if !self.o_less_n.is_empty() {
            write!(f, "{:NAME$}{:>CELL$}", "O less N, same games", "")?;
        }
        for difference in &self.o_less_n {
            write!(
                f,
                "{:>CELL$}",
                cell(difference.map(|difference| difference.to_string()))
            )?;
        }
        if !self.o_less_n.is_empty() {
            writeln!(f)?;
        }
        writeln!(f, "\nLearned players in each other's company")?;
        for CompanyFigure {
            village,
            werewolves,
            share,
        } in &self.company
        {
            writeln!(
                f,
                "village {village}, werewolves {werewolves}: {}",
                with_half_width(share)
            )?;
        }
        Ok(())
    }
}

/// A share in percent with half the width of its interval: `48.4 ±0.3`.
fn with_half_width(share: &Proportion) -> String {
    format!(
        "{:.1} ±{:.1}",
        100.0 * share.score,
        50.0 * (share.high - share.low)
    )
}

/// The text of a figure, or of one that there is not.
fn cell(figure: Option<String>) -> String {
    figure.unwrap_or_else(|| "-".to_string())
}
