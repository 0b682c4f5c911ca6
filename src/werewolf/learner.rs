//! Learning from finished games.
//!
//! At the end of a game the roles are revealed, each day's true pattern is known,
//! and the values of what was done in its state are updated.
//!
//! Source: paper, section 2.1 and 2.2 (3).

use super::company::Policy;
use super::config::{Config, Rate, VoteCredit};
use super::diary::{Choice, Diary};
use super::q_table::{Decision, QTable, Tables, Variants, target_action};
use super::role_pattern::{Pattern, TargetKind};
use super::rules::{MAX_PLAYERS, Player, Side};
use super::simulator::{Game, lie_candidates};
use super::talk::Claim;
use super::view::Facts;

/// What learning from games has moved.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Change {
    /// Sum of |change of Q| over all updates.
    pub sum: f64,
    /// Number of updates.
    pub updates: u64,
}

impl Change {
    /// Mean |change of Q| of an update; 0 without updates.
    pub fn mean(&self) -> f64 {
        self.sum / self.updates.max(1) as f64
    }

    fn add(&mut self, change: f32) {
        self.sum += f64::from(change);
        self.updates += 1;
    }
}

impl std::ops::AddAssign for Change {
    fn add_assign(&mut self, other: Change) {
        self.sum += other.sum;
        self.updates += other.updates;
    }
}

/// The next day of a decision: its true state and the actions that somebody there
/// allows, one bit each.
#[derive(Clone, Copy)]
struct Next {
    state: usize,
    actions: u64,
}

/// Learns from one finished game.
pub struct Lesson<'a> {
    /// How to learn.
    pub config: &'a Config,
    /// The policy of `config`.
    pub policy: Policy,
    /// How far a value moves.
    pub rate: Rate,
    /// The game, with the roles revealed.
    pub game: &'a Game<'a>,
    /// Who won it.
    pub winner: Side,
}

impl Lesson<'_> {
    /// Updates the tables of every player, `tables[table_of(player)]`, with what
    /// it did, latest day first, so that the reward reaches the first day at once.
    pub fn learn(
        &self,
        diary: &Diary,
        tables: &mut [Tables],
        table_of: impl Fn(Player) -> usize,
        change: &mut Change,
    ) {
        for &(player, row, action) in &diary.coming_out {
            let table = &mut tables[table_of(player)].coming_out;
            change.add(table.update(row, action, self.reward(player), self.rate));
        }
        for &(player, row, action) in &diary.fake_roles {
            let table = &mut tables[table_of(player)].fake_role;
            change.add(table.update(row, action, self.reward(player), self.rate));
        }
        let mut next_days = [[None; 3]; MAX_PLAYERS];
        for choice in diary.choices.iter().rev() {
            let tables = &mut tables[table_of(choice.player)];
            let next_day = &mut next_days[usize::from(choice.player)][group(choice.decision)];
            let looked = &diary.looked[choice.looked.clone()];
            *next_day = Some(self.learn_choice(choice, looked, *next_day, tables, change));
        }
    }

    /// 100 if the player's side has won, otherwise 0.
    fn reward(&self, player: Player) -> f32 {
        if self.game.deal.role(player).side() == self.winner {
            100.0
        } else {
            0.0
        }
    }

    fn learn_choice(
        &self,
        choice: &Choice,
        looked: &[u32],
        next: Option<Next>,
        tables: &mut Tables,
        change: &mut Change,
    ) -> Next {
        let facts = self.facts(choice.decision, choice.day);
        let truth = Pattern::truth(facts, &choice.known, &self.game.deal);
        let here = self.situation(choice, facts, &truth, choice.variants);
        if !looked.is_empty() {
            let view = choice.decision.view(choice.known.role);
            tables.counts[view].add(looked, here.state, self.config.weight);
        }
        let table = &mut tables.targets[choice.decision.index()];
        let value = if usize::from(choice.day) == self.game.last_day() {
            self.reward(choice.player)
        } else {
            let next = next.unwrap_or_else(|| self.after_death(choice));
            self.config.gamma as f32 * best_value(table, next)
        };
        let credited = self.credited(choice);
        let kind = self
            .policy
            .kind(choice.decision, facts, &choice.known, &truth, credited);
        let action = target_action(kind, choice.variants.of(credited));
        change.add(table.update(here.state, action, value, self.rate));
        here
    }

    /// The facts on which a choice of `day` was made.
    fn facts(&self, decision: Decision, day: u8) -> &Facts {
        if decision.is_lie() {
            &self.game.mornings[usize::from(day)]
        } else {
            &self.game.evenings[usize::from(day)]
        }
    }

    /// Whose kind the choice is credited to.
    fn credited(&self, choice: &Choice) -> Player {
        let is_vote = matches!(choice.decision, Decision::Vote(_));
        match self.config.vote_credit {
            VoteCredit::Executed if is_vote => {
                let executed = self.game.public.nights[usize::from(choice.day)].executed;
                executed.iter().next().unwrap_or(choice.target)
            }
            _ => choice.target,
        }
    }

    /// The day after `choice`, on which its player was dead already.
    fn after_death(&self, choice: &Choice) -> Next {
        let facts = self.facts(choice.decision, choice.day + 1);
        let truth = Pattern::truth(facts, &choice.known, &self.game.deal);
        self.situation(choice, facts, &truth, Variants::NONE)
    }

    /// The true state for the player and decision of `choice`, with its actions.
    fn situation(
        &self,
        choice: &Choice,
        facts: &Facts,
        truth: &Pattern,
        variants: Variants,
    ) -> Next {
        let known = &choice.known;
        let candidates = match choice.decision {
            Decision::FakeDivination => lie_candidates(facts, Claim::Seer),
            Decision::FakeInquest => lie_candidates(facts, Claim::Medium),
            Decision::Attack => facts.alive - self.game.deal.werewolves(),
            _ => facts.alive,
        };
        let involved = TargetKind::involved(facts, known) & candidates;
        let mut actions = 0;
        let mut allow = |kind, player: Player| {
            // A lie may always be of either species.
            if choice.decision.is_lie() {
                actions |= 0b11 << target_action(kind, 0);
            } else {
                actions |= 1 << target_action(kind, variants.of(player));
            }
        };
        for player in involved.iter() {
            let kind = self
                .policy
                .kind(choice.decision, facts, known, truth, player);
            allow(kind, player);
        }
        for others in variants.split(candidates - involved) {
            if let Some(player) = others.iter().next() {
                allow(TargetKind::Other, player);
            }
        }
        Next {
            state: self.policy.key.state(facts, known, truth),
            actions,
        }
    }
}

/// The three threads of decisions that a player follows from day to day.
fn group(decision: Decision) -> usize {
    match decision {
        Decision::Vote(_) => 0,
        Decision::Divine | Decision::Guard | Decision::Attack => 1,
        Decision::FakeDivination | Decision::FakeInquest => 2,
    }
}

fn best_value(table: &QTable, next: Next) -> f32 {
    let row = table.row(next.state);
    let mut best = f32::NEG_INFINITY;
    let mut actions = next.actions;
    while actions != 0 {
        best = best.max(row[actions.trailing_zeros() as usize]);
        actions &= actions - 1;
    }
    best
}
