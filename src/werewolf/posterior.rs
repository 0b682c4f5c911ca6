//! Exact probabilities of who is a werewolf, and reference players that vote by
//! them. They show how far learning is from what can be known.
//!
//! All assignments of roles are weighed by how likely they make what happened if
//! everybody else chooses uniformly: who died in each night, that the game goes
//! on, who claimed what and who kept silent so far, and that liars toss a coin for
//! each species they report. Left out are only the votes declared before somebody
//! came out, and on which day of a dead player's life a rival did.

use super::role_pattern::{Knowledge, Pattern};
use super::rules::{MAX_PLAYERS, Player, PlayerSet, Role, Side};
use super::simulator::Ability;
use super::talk::Claim;
use super::view::{Night, View, leaders};
use crate::random::Rng;

/// Chance that an untrained liar claims the role that he did claim.
const CLAIM_CHANCE: f64 = 1.0 / 3.0;
/// Chance that an untrained liar reports the species that he did report.
const LIE_CHANCE: f64 = 0.5;

/// A player that knows the probabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    /// Whether it also counts the others' declared votes, to place its own where
    /// it decides who is executed.
    pub counts_votes: bool,
}

/// Calls `visit` with every set of werewolves together with the true claimants,
/// and its weight: proportional to the probability, given what the player of
/// `view` knows. Unlike in a view's patterns, all werewolves are placed.
pub fn for_each_assignment(view: View, known: &Knowledge, mut visit: impl FnMut(&Pattern, f64)) {
    let possible = view.public.everyone - known.humans - view.public.facts.attacked;
    let count = view.rules.count(Role::Werewolf);
    let open = possible - known.werewolves;
    let missing = count.saturating_sub(known.werewolves.len());
    for more in open.subsets().filter(|set| set.len() == missing) {
        let werewolves = known.werewolves | more;
        if game_goes_on(view, werewolves) {
            weigh(view, known, werewolves, &mut visit);
        }
    }
}

/// Whether the game would not have ended before today if `werewolves` are the
/// werewolves.
fn game_goes_on(view: View, werewolves: PlayerSet) -> bool {
    let living = (view.public.facts.alive & werewolves).len();
    living > 0 && (view.public.facts.alive - werewolves).len() > living
}

/// Visits the assignments with these `werewolves`.
fn weigh(
    view: View,
    known: &Knowledge,
    werewolves: PlayerSet,
    visit: &mut impl FnMut(&Pattern, f64),
) {
    let facts = &view.public.facts;
    for seer in true_claimants(known, Role::Seer, facts.seers, werewolves) {
        for medium in true_claimants(known, Role::Medium, facts.mediums, werewolves) {
            if !(seer | medium)
                .iter()
                .all(|player| told_the_truth(view, player, werewolves))
            {
                continue;
            }
            let liars = facts.claimants() - seer - medium;
            let human_liars = liars - werewolves;
            let possessed = match known.role {
                Some(Role::Possessed) if (human_liars - known.oneself).is_empty() => known.oneself,
                Some(Role::Possessed) => continue,
                _ if human_liars.len() <= 1 && (human_liars & known.oneself).is_empty() => {
                    human_liars
                }
                _ => continue,
            };
            let pattern = Pattern {
                seer,
                medium,
                possessed,
                werewolves,
            };
            let weight = weight(view, known, &pattern, liars);
            if weight > 0.0 {
                visit(&pattern, weight);
            }
        }
    }
}

/// Who may truly hold `role`: oneself, a claimant, or none of the claimants.
fn true_claimants(
    known: &Knowledge,
    role: Role,
    claimants: PlayerSet,
    werewolves: PlayerSet,
) -> impl Iterator<Item = PlayerSet> {
    let (first, rest) = if known.role == Some(role) {
        (known.oneself, PlayerSet::EMPTY)
    } else {
        (PlayerSet::EMPTY, claimants - werewolves - known.oneself)
    };
    std::iter::once(first).chain(rest.iter().map(PlayerSet::only))
}

fn told_the_truth(view: View, player: Player, werewolves: PlayerSet) -> bool {
    let human = view.public.called_human[usize::from(player)];
    let werewolf = view.public.called_werewolf[usize::from(player)];
    (human & werewolves).is_empty() && (werewolf - werewolves).is_empty()
}

/// Likelihood of what happened, summed over where the roles go that are neither
/// claimed nor one's own.
fn weight(view: View, known: &Knowledge, pattern: &Pattern, liars: PlayerSet) -> f64 {
    let others = liars - known.oneself;
    let lies: usize = others.iter().map(|player| reports(view, player)).sum();
    let told = CLAIM_CHANCE.powi(others.len() as i32) * LIE_CHANCE.powi(lies as i32);

    let werewolves = pattern.werewolves;
    let claimants = view.public.facts.claimants();
    let quiet_werewolves = werewolves - claimants - known.oneself;
    let quiet: f64 = quiet_werewolves
        .iter()
        .map(|player| liar_silence(view, werewolves, player))
        .product();

    let free = view.public.everyone - claimants - werewolves - known.oneself;
    let hidden = |role: Role, holder: PlayerSet| {
        view.rules.count(role) > 0 && known.role != Some(role) && holder.is_empty()
    };
    let seer = |player| silence(view, werewolves, player, Claim::Seer, false);
    let medium = |player| silence(view, werewolves, player, Claim::Medium, false);
    let possessed = |player| liar_silence(view, werewolves, player);
    let bodyguard = |player| nights(view, known, werewolves, Some(player));
    let mut ways = Ways::new();
    if hidden(Role::Seer, pattern.seer) {
        ways.add_role(free, seer);
    }
    if hidden(Role::Medium, pattern.medium) {
        ways.add_role(free, medium);
    }
    if hidden(Role::Possessed, pattern.possessed) {
        ways.add_role(free, possessed);
    }
    let one_bodyguard = match known.role {
        _ if view.rules.count(Role::Bodyguard) == 0 => nights(view, known, werewolves, None),
        Some(Role::Bodyguard) => bodyguard(view.own.player),
        _ => {
            ways.add_role(free, bodyguard);
            1.0
        }
    };
    told * quiet * one_bodyguard * ways.sum(free)
}

/// Number of judgements that `player` has reported.
fn reports(view: View, player: Player) -> usize {
    let human = view.public.called_human[usize::from(player)];
    let werewolf = view.public.called_werewolf[usize::from(player)];
    human.len() + werewolf.len()
}

/// Sums a product of factors over all ways to give some roles to different
/// players. There are at most four roles.
struct Ways {
    factors: [[f64; MAX_PLAYERS]; 4],
    roles: usize,
}

impl Ways {
    fn new() -> Ways {
        Ways {
            factors: [[0.0; MAX_PLAYERS]; 4],
            roles: 0,
        }
    }

    /// One more role, with a factor for each player of `free` who may hold it.
    fn add_role(&mut self, free: PlayerSet, factor: impl Fn(Player) -> f64) {
        for player in free.iter() {
            self.factors[self.roles][usize::from(player)] = factor(player);
        }
        self.roles += 1;
    }

    /// The sum, player by player: `sums[set]` is that over all ways to give the
    /// roles of `set` to the players seen so far.
    fn sum(&self, free: PlayerSet) -> f64 {
        let mut sums = [0.0; 16];
        sums[0] = 1.0;
        for player in free.iter() {
            for set in (1..1usize << self.roles).rev() {
                for role in (0..self.roles).filter(|role| set >> role & 1 == 1) {
                    let factor = self.factors[role][usize::from(player)];
                    sums[set] += factor * sums[set & !(1 << role)];
                }
            }
        }
        sums[(1 << self.roles) - 1]
    }
}

/// Chance that an untrained werewolf or possessed has claimed nothing so far.
fn liar_silence(view: View, werewolves: PlayerSet, player: Player) -> f64 {
    let silent = |claim| silence(view, werewolves, player, claim, true);
    CLAIM_CHANCE * (1.0 + silent(Claim::Seer) + silent(Claim::Medium))
}

/// Chance that an untrained player who means to claim `claim` has not come out.
/// Its day is uniform, and each condition is chosen with chance one half.
fn silence(view: View, werewolves: PlayerSet, player: Player, claim: Claim, liar: bool) -> f64 {
    let public = view.public;
    let lived = |day: &usize| public.nights[*day].alive.contains(player);
    let today = usize::from(public.facts.day);
    let last_day = if public.facts.alive.contains(player) {
        today
    } else {
        (0..today).rev().find(lived).unwrap_or(0)
    };
    let rivals = match claim {
        Claim::Seer => public.facts.seers,
        Claim::Medium => public.facts.mediums,
    };
    let half_if = |fired: bool| if fired { 0.5 } else { 1.0 };
    let nothing_found = nothing_found(view, werewolves, claim, liar, last_day);
    (6 - last_day.min(5)) as f64 / 6.0
        * half_if(!rivals.is_empty())
        * half_if(public.accused().contains(player))
        * (1.0 + nothing_found)
        / 2.0
}

/// Chance that no result up to the morning of `last_day` is a werewolf.
fn nothing_found(
    view: View,
    werewolves: PlayerSet,
    claim: Claim,
    liar: bool,
    last_day: usize,
) -> f64 {
    let nights = &view.public.nights[..last_day];
    let human_chance = |night: &Night| match (claim, liar) {
        (Claim::Medium, _) if night.executed.is_empty() => 1.0,
        (_, true) => LIE_CHANCE,
        (Claim::Seer, false) => (night.alive - werewolves).len() as f64 / night.alive.len() as f64,
        (Claim::Medium, false) => f64::from(u8::from((night.executed & werewolves).is_empty())),
    };
    nights.iter().map(human_chance).product()
}

/// Likelihood of all nights so far.
fn nights(view: View, known: &Knowledge, werewolves: PlayerSet, bodyguard: Option<Player>) -> f64 {
    let days = 1..usize::from(view.public.facts.day);
    days.map(|day| night(view, known, day, werewolves, bodyguard))
        .product()
}

/// Likelihood of who died in the night of `day`, or that nobody did.
fn night(
    view: View,
    known: &Knowledge,
    day: usize,
    werewolves: PlayerSet,
    bodyguard: Option<Player>,
) -> f64 {
    let Night {
        alive,
        executed,
        attacked,
    } = view.public.nights[day];
    let mut list = alive - werewolves;
    if !view.rules.executed_on_attack_list {
        list = list - executed;
    }
    let mortal = list - executed;
    let guard = |target: Player| guard_chance(view, known, day, bodyguard, target);
    let dies = |target: Player| (1.0 - guard(target)) / list.len() as f64;
    match attacked.iter().next() {
        Some(victim) => dies(victim),
        None => 1.0 - mortal.iter().map(dies).sum::<f64>(),
    }
}

/// Chance that `bodyguard` guarded `target` in the night of `day`.
fn guard_chance(
    view: View,
    known: &Knowledge,
    day: usize,
    bodyguard: Option<Player>,
    target: Player,
) -> f64 {
    let Night {
        alive, executed, ..
    } = view.public.nights[day];
    let Some(bodyguard) = bodyguard.filter(|&player| alive.contains(player)) else {
        return 0.0;
    };
    if executed.contains(bodyguard) && !view.rules.executed_bodyguard_guards {
        return 0.0;
    }
    if known.role == Some(Role::Bodyguard) {
        return f64::from(u8::from(view.own.guarded[day].contains(target)));
    }
    match (view.rules.may_guard_oneself, bodyguard == target) {
        (true, _) => 1.0 / alive.len() as f64,
        (false, true) => 0.0,
        (false, false) => 1.0 / (alive.len() - 1) as f64,
    }
}

/// The probability of each of `patterns`, which are those of `known`, in `chances`.
pub fn pattern_chances(
    view: View,
    known: &Knowledge,
    patterns: &[Pattern],
    chances: &mut Vec<f32>,
) {
    chances.clear();
    chances.resize(patterns.len(), 0.0);
    let facts = &view.public.facts;
    let involved = facts.claimants() | facts.judged | known.werewolves;
    let mut total = 0.0;
    for_each_assignment(view, known, |assignment, weight| {
        let pattern = Pattern {
            werewolves: assignment.werewolves & involved,
            ..*assignment
        };
        let index = patterns.iter().position(|candidate| *candidate == pattern);
        chances[index.expect("the patterns explain every assignment")] += weight as f32;
        total += weight as f32;
    });
    chances.iter_mut().for_each(|chance| *chance /= total);
}

/// The probability of each player to be a werewolf.
pub fn werewolf_chances(view: View) -> [f64; MAX_PLAYERS] {
    let known = Knowledge::of(view);
    let mut chances = [0.0; MAX_PLAYERS];
    let mut total = 0.0;
    for_each_assignment(view, &known, |pattern, weight| {
        total += weight;
        for player in pattern.werewolves.iter() {
            chances[usize::from(player)] += weight;
        }
    });
    chances.map(|chance| chance / total)
}

impl Reference {
    /// Whether declared votes may change the vote.
    pub fn hears_votes(self) -> bool {
        self.counts_votes
    }

    /// The vote: for the likeliest werewolf, or on the werewolves' side the least
    /// likely one; if votes are counted, the one after which the executed player
    /// is most, or least, likely a werewolf.
    pub fn vote(self, view: View, previous: Option<Player>, rng: &mut Rng) -> Player {
        let chances = werewolf_chances(view);
        let alive = view.public.facts.alive;
        let sign = match view.own.role.side() {
            Side::Village => 1.0,
            Side::Werewolves => -1.0,
        };
        let best = best_by(alive, |player| {
            if self.counts_votes {
                sign * chance_after_vote(view, player, &chances)
            } else {
                sign * chances[usize::from(player)]
            }
        });
        match previous {
            Some(target) if best.contains(target) => target,
            _ => best.pick(rng),
        }
    }

    /// The target of an ability: the seer divines the likeliest werewolf of whom
    /// it is not sure, the bodyguard guards itself, and a werewolf who counts
    /// votes attacks nobody who is about to be executed.
    pub fn target(
        self,
        view: View,
        ability: Ability,
        candidates: PlayerSet,
        rng: &mut Rng,
    ) -> Player {
        match ability {
            Ability::Divine => {
                let chances = werewolf_chances(view);
                let sure = |player: Player| chances[usize::from(player)] > 1.0 - 1e-9;
                let best = best_by(candidates, |player| {
                    if sure(player) {
                        -1.0
                    } else {
                        chances[usize::from(player)]
                    }
                });
                best.pick(rng)
            }
            Ability::Guard if candidates.contains(view.own.player) => view.own.player,
            Ability::Guard => candidates.pick(rng),
            Ability::Attack => {
                let leading = leaders(&view.public.declared_counts());
                if self.counts_votes && !(candidates - leading).is_empty() {
                    (candidates - leading).pick(rng)
                } else {
                    candidates.pick(rng)
                }
            }
        }
    }
}

/// The members of `players` with the highest value. Values closer than rounding
/// are equal.
fn best_by(players: PlayerSet, value: impl Fn(Player) -> f64) -> PlayerSet {
    let highest = players.iter().map(&value).fold(f64::NEG_INFINITY, f64::max);
    players
        .iter()
        .filter(|&player| value(player) >= highest - 1e-9)
        .collect()
}

/// The chance that a werewolf is executed if the player of `view` votes for
/// `target` and the others as they have declared.
fn chance_after_vote(view: View, target: Player, chances: &[f64; MAX_PLAYERS]) -> f64 {
    let mut declared = view.public.declared;
    declared[usize::from(view.own.player)] = Some(target);
    let mut counts = [0; MAX_PLAYERS];
    for target in declared.into_iter().flatten() {
        counts[usize::from(target)] += 1;
    }
    let leading = leaders(&counts);
    let sum: f64 = leading
        .iter()
        .map(|player| chances[usize::from(player)])
        .sum();
    sum / leading.len() as f64
}
