//! Players at a table who choose by Q tables, at random, or by exact
//! probabilities.
//!
//! A learned player scores each candidate by what he is in each pattern of its
//! view.
//!
//! Source: paper, section 2.2 (2).

use std::ops::Range;

use super::config::{Config, DeclaredVotes, WeightRule};
use super::diary::{Choice, Diary};
use super::posterior::{Reference, pattern_chances};
use super::q_table::{
    Decision, Tables, VARIANTS, Variants, coming_out_row, fake_role_action, fake_role_row,
    target_action,
};
use super::role_pattern::{Knowledge, Pattern, StateKey, TargetKind, allows_bystander, enumerate};
use super::rules::{MAX_PLAYERS, Player, PlayerSet, Role, Rules, Species, below};
use super::simulator::{
    Ability, Players, fake_roles, uniform_coming_out, uniform_fake_role, uniform_lie,
};
use super::talk::{Claim, ComingOut, Judgement};
use super::view::{Facts, View};
use crate::random::{Rng, RngExt};

/// Who sits at a seat.
#[derive(Debug, Clone, Copy)]
pub enum Seat<'a> {
    /// The paper's random player, which has learned nothing.
    Untrained,
    /// A player with these tables.
    Learned(&'a Tables),
    /// A player that computes exact probabilities.
    Reference(Reference),
}

/// How learned players choose: the parts of the [`Config`] that choices need.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    pub(super) key: StateKey,
    weight: WeightRule,
    declared_votes: DeclaredVotes,
    guard_oneself_kind: bool,
}

impl Policy {
    /// The policy of `config`.
    pub fn new(config: &Config, rules: &Rules) -> Policy {
        Policy {
            key: config.state_key(rules),
            weight: config.weight,
            declared_votes: config.declared_votes,
            guard_oneself_kind: config.guard_oneself_kind,
        }
    }

    /// The variants of a vote by the player of `view`.
    fn vote_variants(&self, view: View) -> Variants {
        let leaders = || view.public.leaders(view.own.player);
        let in_reach = || view.public.in_reach(view.own.player);
        match self.declared_votes {
            DeclaredVotes::Ignored => Variants::NONE,
            DeclaredVotes::Leader => Variants {
                first: leaders(),
                ..Variants::NONE
            },
            DeclaredVotes::InReach => Variants {
                first: in_reach(),
                ..Variants::NONE
            },
            DeclaredVotes::Both => Variants {
                first: in_reach() - leaders(),
                second: leaders(),
            },
        }
    }

    /// The kind of `player` for `decision`, made by the observer of `known`.
    pub(super) fn kind(
        &self,
        decision: Decision,
        facts: &Facts,
        known: &Knowledge,
        pattern: &Pattern,
        player: Player,
    ) -> TargetKind {
        let guards = decision == Decision::Guard && self.guard_oneself_kind;
        if guards && known.oneself.contains(player) {
            TargetKind::Oneself
        } else {
            TargetKind::of(facts, known, pattern, player)
        }
    }
}

/// Buffers that outlive a game, so that nothing allocates in the loop.
#[derive(Debug, Default)]
pub struct Scratch {
    /// The outsider's patterns, which villagers and bodyguard filter.
    outsider: Vec<Pattern>,
    /// Day and number of things heard for which `outsider` holds.
    outsider_at: Option<(u8, u32)>,
    /// The patterns of the view at hand.
    patterns: Vec<Pattern>,
    /// Their probabilities, where they weigh.
    chances: Vec<f32>,
    /// Each player's scores of its vote, with the day and the number of things
    /// heard for which they hold: answering declared votes needs no new look.
    votes: [Option<(u8, u32, Scores)>; MAX_PLAYERS],
}

impl Scratch {
    /// Forgets the game before.
    fn begin_game(&mut self) {
        self.outsider_at = None;
        self.votes = [None; MAX_PLAYERS];
    }

    /// Lists the patterns of a view in `self.patterns`.
    fn look(&mut self, view: View, known: &Knowledge) {
        self.patterns.clear();
        let bystander = matches!(known.role, None | Some(Role::Villager | Role::Bodyguard));
        if !bystander {
            return enumerate(view.rules, view.public, known, &mut self.patterns);
        }
        let now = Some((view.public.facts.day, view.public.heard));
        if self.outsider_at != now {
            self.outsider.clear();
            self.outsider_at = now;
            enumerate(
                view.rules,
                view.public,
                &Knowledge::OUTSIDER,
                &mut self.outsider,
            );
        }
        let allowed = |pattern: &&Pattern| {
            let bystander = || allows_bystander(view.rules, view.public, pattern, view.own.player);
            known.role.is_none() || bystander()
        };
        self.patterns.extend(self.outsider.iter().filter(allowed));
    }
}

/// The score of every candidate, for each variant of an action.
#[derive(Debug, Clone, Copy)]
struct Scores {
    values: [[f32; VARIANTS]; MAX_PLAYERS],
}

impl Scores {
    /// The candidates with the highest score, each in his variant.
    fn best(&self, candidates: PlayerSet, variants: Variants) -> PlayerSet {
        let mut best = PlayerSet::EMPTY;
        let mut highest = f32::NEG_INFINITY;
        for player in candidates.iter() {
            let score = self.values[usize::from(player)][variants.of(player)];
            if score > highest {
                highest = score;
                best = PlayerSet::EMPTY;
            }
            if score == highest {
                best.insert(player);
            }
        }
        best
    }

    /// A best pair of candidate and species, ties drawn.
    fn best_judgement(&self, candidates: PlayerSet, rng: &mut Rng) -> Judgement {
        let bests = [Species::Human, Species::Werewolf]
            .map(|species| self.best(candidates, lie_variants(species, candidates)));
        let highest = |species: usize| {
            let player = bests[species].iter().next().map_or(0, usize::from);
            self.values[player][species]
        };
        let (human, werewolf) = (highest(0), highest(1));
        let from_human = if human >= werewolf { bests[0].len() } else { 0 };
        let from_werewolf = if werewolf >= human { bests[1].len() } else { 0 };
        let drawn = below(rng, (from_human + from_werewolf) as u32) as usize;
        let (species, set, index) = if drawn < from_human {
            (Species::Human, bests[0], drawn)
        } else {
            (Species::Werewolf, bests[1], drawn - from_human)
        };
        let target = set
            .iter()
            .nth(index)
            .expect("the draw is below the number of members");
        Judgement { target, species }
    }
}

/// The players at one table, each with what it has learned.
pub struct Company<'a> {
    policy: Policy,
    seats: [Seat<'a>; MAX_PLAYERS],
    scratch: &'a mut Scratch,
    /// Learners explore and keep a diary.
    learning: Option<(f32, &'a mut Diary)>,
    /// Who votes uniformly today.
    exploring: PlayerSet,
}

impl<'a> Company<'a> {
    /// Players that play as well as they can.
    pub fn playing(
        policy: Policy,
        seats: [Seat<'a>; MAX_PLAYERS],
        scratch: &'a mut Scratch,
    ) -> Company<'a> {
        scratch.begin_game();
        Company {
            policy,
            seats,
            scratch,
            learning: None,
            exploring: PlayerSet::EMPTY,
        }
    }

    /// Players that explore with chance `epsilon`, and note in `diary` what they do.
    pub fn learning(
        policy: Policy,
        seats: [Seat<'a>; MAX_PLAYERS],
        scratch: &'a mut Scratch,
        epsilon: f64,
        diary: &'a mut Diary,
    ) -> Company<'a> {
        diary.clear();
        let learning = Some((epsilon as f32, diary));
        Company {
            learning,
            ..Company::playing(policy, seats, scratch)
        }
    }

    fn explores(&self, rng: &mut Rng) -> bool {
        match self.learning {
            Some((epsilon, _)) => rng.random::<f32>() < epsilon,
            None => false,
        }
    }

    fn seat(&self, player: Player) -> Seat<'a> {
        self.seats[usize::from(player)]
    }

    /// Scores `candidates` by the patterns of the view, and appends the states of
    /// these patterns to the diary.
    ///
    /// Source: paper, section 2.2 (2), Q'(a), summed for people instead of kinds:
    /// a kind names a person only inside one pattern.
    fn scores(
        &mut self,
        view: View,
        known: &Knowledge,
        decision: Decision,
        tables: &Tables,
        candidates: PlayerSet,
    ) -> Scores {
        self.scratch.look(view, known);
        let by_posterior = self.policy.weight == WeightRule::Posterior;
        if by_posterior {
            let Scratch {
                patterns, chances, ..
            } = &mut *self.scratch;
            pattern_chances(view, known, patterns, chances);
        }
        let facts = &view.public.facts;
        let table = &tables.targets[decision.index()];
        let counts = &tables.counts[decision.view(known.role)];
        let involved = TargetKind::involved(facts, known) & candidates;
        let mut scores = Scores {
            values: [[0.0; VARIANTS]; MAX_PLAYERS],
        };
        let mut other = [0.0; VARIANTS];
        for (i, pattern) in self.scratch.patterns.iter().enumerate() {
            let state = self.policy.key.state(facts, known, pattern);
            if let Some((_, diary)) = &mut self.learning {
                diary.looked.push(state as u32);
            }
            let weight = if by_posterior {
                self.scratch.chances[i]
            } else {
                counts.weight(state)
            };
            let row = table.row(state);
            let add = |values: &mut [f32; VARIANTS], kind| {
                let row = &row[target_action(kind, 0)..];
                for (value, q) in values.iter_mut().zip(row) {
                    *value += weight * q;
                }
            };
            add(&mut other, TargetKind::Other);
            for player in involved.iter() {
                let kind = self.policy.kind(decision, facts, known, pattern, player);
                add(&mut scores.values[usize::from(player)], kind);
            }
        }
        for player in (candidates - involved).iter() {
            scores.values[usize::from(player)] = other;
        }
        scores
    }

    fn looked_so_far(&self) -> usize {
        self.learning
            .as_ref()
            .map_or(0, |(_, diary)| diary.looked.len())
    }

    fn note(&mut self, choice: Choice, revised: bool) {
        if let Some((_, diary)) = &mut self.learning {
            diary.note(choice, revised);
        }
    }

    /// The vote of a learned player.
    fn learned_vote(
        &mut self,
        view: View,
        tables: &Tables,
        previous: Option<Player>,
        rng: &mut Rng,
    ) -> Player {
        let player = view.own.player;
        if previous.is_none() {
            if self.explores(rng) {
                self.exploring.insert(player)
            } else {
                self.exploring.remove(player)
            }
        }
        let alive = view.public.facts.alive;
        let known = Knowledge::of(view);
        let variants = self.policy.vote_variants(view);
        let mut looked = self.looked_before(player, previous);
        let target = if self.exploring.contains(player) {
            previous.unwrap_or_else(|| alive.pick(rng))
        } else {
            let start = self.looked_so_far();
            let scores = self.vote_scores(view, &known, tables);
            if self.looked_so_far() > start {
                looked = start..self.looked_so_far();
            }
            let best = scores.best(alive, variants);
            match previous {
                Some(target) if best.contains(target) => target,
                _ => best.pick(rng),
            }
        };
        let choice = Choice {
            player,
            day: view.public.facts.day,
            decision: Decision::Vote(view.own.role),
            target,
            variants,
            known,
            looked,
        };
        self.note(choice, previous.is_some());
        target
    }

    /// The scores of a vote, computed anew only if something was heard since.
    fn vote_scores(&mut self, view: View, known: &Knowledge, tables: &Tables) -> Scores {
        let Facts { day, alive, .. } = view.public.facts;
        let (heard, slot) = (view.public.heard, usize::from(view.own.player));
        match self.scratch.votes[slot] {
            Some((at_day, at_heard, scores)) if (at_day, at_heard) == (day, heard) => scores,
            _ => {
                let decision = Decision::Vote(view.own.role);
                let scores = self.scores(view, known, decision, tables, alive);
                self.scratch.votes[slot] = Some((day, heard, scores));
                scores
            }
        }
    }

    /// What the player looked at for the vote that it declared earlier today.
    fn looked_before(&self, player: Player, previous: Option<Player>) -> Range<usize> {
        match (&self.learning, previous) {
            (Some((_, diary)), Some(_)) => diary.vote_of(player).looked.clone(),
            _ => 0..0,
        }
    }

    /// The target of an ability of a learned player.
    fn learned_target(
        &mut self,
        view: View,
        tables: &Tables,
        decision: Decision,
        candidates: PlayerSet,
        rng: &mut Rng,
    ) -> Player {
        let known = Knowledge::of(view);
        let start = self.looked_so_far();
        let target = if self.explores(rng) {
            candidates.pick(rng)
        } else {
            let scores = self.scores(view, &known, decision, tables, candidates);
            scores.best(candidates, Variants::NONE).pick(rng)
        };
        let choice = Choice {
            player: view.own.player,
            day: view.public.facts.day,
            decision,
            target,
            variants: Variants::NONE,
            known,
            looked: start..self.looked_so_far(),
        };
        self.note(choice, false);
        target
    }

    /// The lie of a learned player.
    fn learned_lie(
        &mut self,
        view: View,
        tables: &Tables,
        decision: Decision,
        candidates: PlayerSet,
        rng: &mut Rng,
    ) -> Judgement {
        let known = Knowledge::OUTSIDER;
        let start = self.looked_so_far();
        let lie = if self.explores(rng) {
            uniform_lie(candidates, rng)
        } else {
            let scores = self.scores(view, &known, decision, tables, candidates);
            scores.best_judgement(candidates, rng)
        };
        let choice = Choice {
            player: view.own.player,
            day: view.public.facts.day,
            decision,
            target: lie.target,
            variants: lie_variants(lie.species, candidates),
            known,
            looked: start..self.looked_so_far(),
        };
        self.note(choice, false);
        lie
    }
}

/// The variants of a lie that calls one of `candidates` this `species`.
fn lie_variants(species: Species, candidates: PlayerSet) -> Variants {
    match species {
        Species::Human => Variants::NONE,
        Species::Werewolf => Variants {
            first: candidates,
            ..Variants::NONE
        },
    }
}

/// The best action of a row, ties drawn with one draw.
fn best_action(row: &[f32], rng: &mut Rng) -> usize {
    let highest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let best = || {
        row.iter()
            .enumerate()
            .filter(|&(_, &value)| value == highest)
    };
    let drawn = below(rng, best().count() as u32) as usize;
    best()
        .nth(drawn)
        .map(|(action, _)| action)
        .expect("the draw is below the number of ties")
}

impl Players for Company<'_> {
    const LISTEN: bool = true;

    fn fake_role(
        &mut self,
        view: View,
        whispered: Option<Option<Claim>>,
        rng: &mut Rng,
    ) -> Option<Claim> {
        let row = fake_role_row(view.own.role, whispered);
        match (self.seat(view.own.player), &mut self.learning) {
            (Seat::Learned(_), Some((_, diary))) => {
                let claim = uniform_fake_role(view.rules, rng);
                diary
                    .fake_roles
                    .push((view.own.player, row, fake_role_action(claim)));
                claim
            }
            (Seat::Learned(tables), None) => {
                let choices = fake_roles(view.rules);
                choices[best_action(&tables.fake_role.row(row)[..choices.len()], rng)]
            }
            _ => uniform_fake_role(view.rules, rng),
        }
    }

    fn coming_out(&mut self, view: View, claim: Claim, rng: &mut Rng) -> ComingOut {
        let row = coming_out_row(view.own.role, claim);
        match (self.seat(view.own.player), &mut self.learning) {
            (Seat::Learned(_), Some((_, diary))) => {
                let coming_out = uniform_coming_out(rng);
                diary
                    .coming_out
                    .push((view.own.player, row, coming_out.index()));
                coming_out
            }
            (Seat::Learned(tables), None) => {
                ComingOut::from_index(best_action(tables.coming_out.row(row), rng))
            }
            _ => uniform_coming_out(rng),
        }
    }

    fn lie(&mut self, view: View, claim: Claim, candidates: PlayerSet, rng: &mut Rng) -> Judgement {
        let decision = match claim {
            Claim::Seer => Decision::FakeDivination,
            Claim::Medium => Decision::FakeInquest,
        };
        match self.seat(view.own.player) {
            Seat::Learned(tables) => self.learned_lie(view, tables, decision, candidates, rng),
            _ => uniform_lie(candidates, rng),
        }
    }

    fn vote(&mut self, view: View, previous: Option<Player>, rng: &mut Rng) -> Player {
        match self.seat(view.own.player) {
            Seat::Learned(tables) => self.learned_vote(view, tables, previous, rng),
            Seat::Reference(reference) => reference.vote(view, previous, rng),
            Seat::Untrained => previous.unwrap_or_else(|| view.public.facts.alive.pick(rng)),
        }
    }

    fn hears_votes(&self, player: Player) -> bool {
        match self.seat(player) {
            // An explorer's vote stands, and is credited by the votes declared when
            // it was chosen: crediting it by the final ones costs up to 3 points.
            Seat::Learned(_) => {
                let listens = self.policy.declared_votes != DeclaredVotes::Ignored;
                listens && !self.exploring.contains(player)
            }
            Seat::Reference(reference) => reference.hears_votes(),
            Seat::Untrained => false,
        }
    }

    fn target(
        &mut self,
        view: View,
        ability: Ability,
        candidates: PlayerSet,
        rng: &mut Rng,
    ) -> Player {
        let decision = match ability {
            Ability::Divine => Decision::Divine,
            Ability::Guard => Decision::Guard,
            Ability::Attack => Decision::Attack,
        };
        match self.seat(view.own.player) {
            Seat::Learned(tables) => self.learned_target(view, tables, decision, candidates, rng),
            Seat::Reference(reference) => reference.target(view, ability, candidates, rng),
            Seat::Untrained => candidates.pick(rng),
        }
    }
}
