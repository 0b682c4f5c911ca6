//! Makes test sets: finds positions in games of several sources, spread evenly over
//! the plies, and has a solver value them and each of their moves.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Debug;
use std::ops::{AddAssign, RangeInclusive};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::testset::{Provenance, TestPosition, TestSet};
use crate::agents::{Agent, MaterialAgent, RandomAgent};
use crate::arena::{AgentFactory, OPENING_PLIES};
use crate::game::Game;
use crate::nets::model::rules_sha256;
use crate::random::{Rng, RngExt, Seed, Streams};
use crate::search::Evaluator;
use crate::solve::{Exact, Limits, Options, Solver, Unsolvable};

/// What a test set is to be made of.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// Plies of the positions; each gets its even share of them.
    pub plies: RangeInclusive<u32>,
    /// How many positions.
    pub positions: u64,
    /// Seed of all randomness.
    pub seed: u64,
    /// Positions that the solver may visit for each value.
    pub nodes: u64,
}

/// Whose play positions come from.
pub struct Source<'a, G: Game> {
    name: String,
    agent: Box<AgentFactory<'a, G>>,
    /// Whether only some of the moves are the agent's, another share in each game.
    diluted: bool,
}

impl<'a, G: Game> Source<'a, G> {
    /// Each move is EasyAI's, which takes a win in sight, with a probability that is
    /// drawn for the game, and otherwise random: from aimless to fairly good play.
    pub fn semi_random() -> Source<'a, G> {
        Source {
            name: "semi-random".to_string(),
            agent: Box::new(|| Box::new(MaterialAgent::easy())),
            diluted: true,
        }
    }

    /// Games of an agent against itself from random openings.
    pub fn agent(name: &str, agent: Box<AgentFactory<'a, G>>) -> Source<'a, G> {
        Source {
            name: name.to_string(),
            agent,
            diluted: false,
        }
    }

    /// Plays a game up to a ply; `None` if it ends before.
    fn position_at(
        &self,
        game: &G,
        ply: u32,
        agent: &mut dyn Agent<G>,
        rng: &mut Rng,
    ) -> Option<G::Position> {
        let (opening, agents_share) = if self.diluted {
            (0, rng.random::<f64>())
        } else {
            (rng.random_range(OPENING_PLIES), 1.0)
        };
        agent.new_game();
        let mut position = game.start();
        for played in 0..ply {
            if game.outcome(&position).is_some() {
                return None;
            }
            let mv = if played >= opening && rng.random::<f64>() < agents_share {
                agent.choose(game, &position, rng)
            } else {
                RandomAgent.choose(game, &position, rng)
            };
            game.play_unchecked(&mut position, mv);
        }
        game.outcome(&position).is_none().then_some(position)
    }
}

/// A test set, and what it took.
pub struct Built<G: Game> {
    /// The set.
    pub set: TestSet<G>,
    /// What the values of the positions took.
    pub values: Effort,
    /// What the values of their moves took on top.
    pub moves: Effort,
}

/// What solving took.
#[derive(Debug, Clone, Copy, Default)]
pub struct Effort {
    /// Positions visited.
    pub nodes: u64,
    /// Time, summed over the threads.
    pub time: Duration,
}

impl AddAssign for Effort {
    fn add_assign(&mut self, other: Effort) {
        self.nodes += other.nodes;
        self.time += other.time;
    }
}

/// Makes a solver's prior for one thread.
pub type PriorFactory<'a, G> = dyn Fn() -> Option<Box<dyn Evaluator<G>>> + Sync + 'a;

/// Makes a test set, on all cores; shows the number of positions solved now and then.
/// The result does not depend on the number of threads. There are fewer positions than
/// asked for if games do not lead to enough different ones.
///
/// # Errors
/// If the game cannot be solved.
///
/// # Panics
/// If there is no source.
pub fn build<G: Game>(
    game: &G,
    recipe: &Recipe,
    sources: &[Source<G>],
    prior_name: &str,
    prior: &PriorFactory<G>,
    watch: &(dyn Fn(u64) + Sync),
) -> Result<Built<G>, Unsolvable> {
    assert!(!sources.is_empty(), "positions come from somewhere");
    let mut gatherer = Gatherer::new(game, recipe, sources);
    let mut solved: Vec<Solved<G>> = Vec::new();
    let mut dropped = 0;
    loop {
        let candidates = gatherer.gather();
        if candidates.is_empty() {
            break;
        }
        let results = solve_all(game, candidates, recipe.nodes, prior, &|done| {
            watch(solved.len() as u64 + done)
        })?;
        for result in results {
            if result.is_whole() {
                solved.push(result);
            } else {
                dropped += 1;
                gatherer.replace(result.candidate.ply);
            }
        }
    }
    let (mut values, mut moves) = (Effort::default(), Effort::default());
    for solved in &solved {
        values += solved.value_effort;
        moves += solved.moves_effort;
    }
    let mut positions: Vec<TestPosition<G>> =
        solved.into_iter().filter_map(Solved::position).collect();
    // Stable: within a ply in the order in which they were found.
    positions.sort_by_key(|at| at.ply);
    let provenance = Provenance {
        game: game.name().to_string(),
        rules_sha256: rules_sha256(game),
        version: env!("CARGO_PKG_VERSION").to_string(),
        seed: recipe.seed,
        plies: recipe.plies.clone(),
        asked: recipe.positions,
        nodes: recipe.nodes,
        prior: prior_name.to_string(),
        sources: sources.iter().map(|source| source.name.clone()).collect(),
        dropped,
    };
    Ok(Built {
        set: TestSet {
            provenance,
            positions,
        },
        values,
        moves,
    })
}

/// A position to be solved.
struct Candidate<G: Game> {
    position: G::Position,
    ply: u32,
    source: usize,
}

/// Finds candidates, none of them equal to another or its mirror image.
struct Gatherer<'a, G: Game> {
    game: &'a G,
    sources: &'a [Source<'a, G>],
    streams: Streams,
    /// By ply.
    wanted: BTreeMap<u32, Wanted>,
    seen: HashSet<String>,
}

/// What is still wanted of one ply.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    positions: u64,
    /// Games that have been played for it.
    games: u64,
    /// Games that may be played for it.
    most_games: u64,
}

impl<'a, G: Game> Gatherer<'a, G> {
    fn new(game: &'a G, recipe: &Recipe, sources: &'a [Source<'a, G>]) -> Gatherer<'a, G> {
        let plies = recipe.plies.clone();
        let count = u64::from(plies.end() - plies.start()) + 1;
        let wanted = (0..).zip(plies).map(|(number, ply)| {
            let positions =
                recipe.positions * (number + 1) / count - recipe.positions * number / count;
            let wanted = Wanted {
                positions,
                games: 0,
                most_games: 1000 + 100 * positions,
            };
            (ply, wanted)
        });
        Gatherer {
            game,
            sources,
            streams: Seed(recipe.seed).purpose("testset"),
            wanted: wanted.collect(),
            seen: HashSet::new(),
        }
    }

    /// Asks for another position of a ply.
    fn replace(&mut self, ply: u32) {
        if let Some(wanted) = self.wanted.get_mut(&ply) {
            wanted.positions += 1;
        }
    }

    /// As many positions as are wanted, or as there are, the plies taking turns: the
    /// early ones take longer to solve.
    fn gather(&mut self) -> Vec<Candidate<G>> {
        let plies: Vec<u32> = self.wanted.keys().copied().collect();
        let by_ply = plies
            .into_iter()
            .map(|ply| self.gather_ply(ply).into_iter());
        let mut by_ply: Vec<_> = by_ply.collect();
        let mut candidates = Vec::new();
        loop {
            let before = candidates.len();
            candidates.extend(by_ply.iter_mut().filter_map(Iterator::next));
            if candidates.len() == before {
                return candidates;
            }
        }
    }

    fn gather_ply(&mut self, ply: u32) -> Vec<Candidate<G>> {
        /// Games that are played at once, to keep many cores busy.
        const MOST_AT_ONCE: u64 = 256;
        let mut wanted = self.wanted[&ply];
        let mut found = Vec::new();
        while wanted.positions > 0 && wanted.games < wanted.most_games {
            let first = wanted.games;
            wanted.games += wanted.positions.clamp(16, MOST_AT_ONCE);
            let candidates: Vec<_> = (first..wanted.games)
                .into_par_iter()
                .map_init(
                    || -> Vec<_> { self.sources.iter().map(|source| (source.agent)()).collect() },
                    |agents, number| self.candidate(ply, number, agents),
                )
                .collect();
            for candidate in candidates.into_iter().flatten() {
                if wanted.positions > 0 && self.seen.insert(self.canonical(&candidate.position)) {
                    wanted.positions -= 1;
                    found.push(candidate);
                }
            }
        }
        self.wanted.insert(ply, wanted);
        found
    }

    /// What game `number` for a ply gives; the sources take turns.
    fn candidate(
        &self,
        ply: u32,
        number: u64,
        agents: &mut [Box<dyn Agent<G>>],
    ) -> Option<Candidate<G>> {
        let source = (number % self.sources.len() as u64) as usize;
        let mut rng = self.streams.stream(ply.into(), number);
        let agent = &mut *agents[source];
        let position = self.sources[source].position_at(self.game, ply, agent, &mut rng)?;
        Some(Candidate {
            position,
            ply,
            source,
        })
    }

    /// A text that a position shares with its mirror image alone.
    fn canonical(&self, position: &G::Position) -> String {
        let text = self.game.format_position(position);
        match self.game.mirrored(position) {
            Some(mirrored) => text.min(self.game.format_position(&mirrored)),
            None => text,
        }
    }
}

/// A candidate, and what a solver found out about it.
struct Solved<G: Game> {
    candidate: Candidate<G>,
    value: Option<Exact>,
    moves: Vec<(G::Move, Option<Exact>)>,
    value_effort: Effort,
    moves_effort: Effort,
}

impl<G: Game> Solved<G> {
    fn is_whole(&self) -> bool {
        self.value.is_some() && self.moves.iter().all(|(_, value)| value.is_some())
    }

    /// The position with its values, if all of them are known.
    fn position(self) -> Option<TestPosition<G>> {
        let moves = self.moves.into_iter();
        let moves = moves.map(|(mv, value)| Some((mv, value?)));
        Some(TestPosition {
            position: self.candidate.position,
            ply: self.candidate.ply,
            value: self.value?,
            moves: moves.collect::<Option<_>>()?,
            source: self.candidate.source,
        })
    }
}

/// Solves candidates on all cores, in order. Each has a solver of its own: what a table
/// remembers decides which values the nodes are enough for, and that must not depend on
/// who else was solved by the same thread.
fn solve_all<G: Game>(
    game: &G,
    candidates: Vec<Candidate<G>>,
    nodes: u64,
    prior: &PriorFactory<G>,
    watch: &(dyn Fn(u64) + Sync),
) -> Result<Vec<Solved<G>>, Unsolvable> {
    let done = AtomicU64::new(0);
    let solve = |candidate| {
        let mut solver = Solver::new(game, Options::default(), prior())?;
        let solved = solve_one(game, &mut solver, candidate, nodes);
        watch(done.fetch_add(1, Ordering::Relaxed) + 1);
        Ok(solved)
    };
    candidates.into_par_iter().map(solve).collect()
}

fn solve_one<G: Game>(
    game: &G,
    solver: &mut Solver<G>,
    candidate: Candidate<G>,
    nodes: u64,
) -> Solved<G> {
    let limits = Limits {
        nodes: Some(nodes),
        ..Limits::default()
    };
    let started = Instant::now();
    let solution = solver.solve(&candidate.position, &limits);
    let value_effort = Effort {
        nodes: solution.nodes,
        time: started.elapsed(),
    };
    let mut moves_effort = Effort::default();
    let mut moves = Vec::new();
    game.legal_moves(&candidate.position, &mut moves);
    let mut solve_move = |mv| {
        let started = Instant::now();
        let mut child = candidate.position.clone();
        game.play_unchecked(&mut child, mv);
        let after = solver.solve(&child, &limits);
        moves_effort += Effort {
            nodes: after.nodes,
            time: started.elapsed(),
        };
        after.value.map(|value| -value)
    };
    let moves = moves.into_iter().map(|mv| {
        let value = match solution.value {
            // Of a lost position all moves lose; of an unknown one nobody asks.
            None | Some(Exact::Loss) => solution.value,
            Some(_) => solve_move(mv),
        };
        (mv, value)
    });
    let moves = moves.collect();
    Solved {
        candidate,
        value: solution.value,
        moves,
        value_effort,
        moves_effort,
    }
}
