//! The learned numbers of one player.
//!
//! Tables are dense arrays, since a hash map in the inner loop costs more than
//! the memory: 972 states of at most 36 actions.
//!
//! Source: paper, section 2.1 and 2.2.

use super::config::{Config, Rate, WeightRule};
use super::role_pattern::TargetKind;
use super::rules::{Player, PlayerSet, Role, Rules, Side};
use super::talk::{Claim, ComingOut};

/// Actions of a table that names targets: each kind in each variant.
pub const TARGET_ACTIONS: usize = VARIANTS * TargetKind::ALL.len();

/// Variants of an action that names a kind of target, see [`Variants`].
pub const VARIANTS: usize = 3;

/// The action that names a player of `kind`.
pub fn target_action(kind: TargetKind, variant: usize) -> usize {
    VARIANTS * kind as usize + variant
}

/// In which variant of the action of his kind each player is named. Of a vote
/// the variants are how the player stands in the declared votes, see
/// [`DeclaredVotes`](super::config::DeclaredVotes); of a lie whether he is called
/// a werewolf. Everybody else, and of other decisions everybody, is in variant 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Variants {
    /// The players in variant 1.
    pub first: PlayerSet,
    /// The players in variant 2.
    pub second: PlayerSet,
}

impl Variants {
    /// Nobody is special.
    pub const NONE: Variants = Variants {
        first: PlayerSet::EMPTY,
        second: PlayerSet::EMPTY,
    };

    /// The variant of `player`.
    pub fn of(self, player: Player) -> usize {
        usize::from(self.first.contains(player)) + 2 * usize::from(self.second.contains(player))
    }

    /// `players` by variant.
    pub fn split(self, players: PlayerSet) -> [PlayerSet; VARIANTS] {
        [
            players - self.first - self.second,
            players & self.first,
            players & self.second,
        ]
    }
}

/// What a target is chosen for. Each has a Q table of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The vote of a player with this role.
    Vote(Role),
    /// The seer's divination.
    Divine,
    /// The bodyguard's guard.
    Guard,
    /// A werewolf's vote for the attack.
    Attack,
    /// The made-up divination of a werewolf or the possessed.
    FakeDivination,
    /// The made-up inquest of a werewolf or the possessed.
    FakeInquest,
}

impl Decision {
    /// Every decision, in the order of [`Decision::index`].
    pub const ALL: [Decision; 11] = [
        Decision::Vote(Role::Villager),
        Decision::Vote(Role::Seer),
        Decision::Vote(Role::Medium),
        Decision::Vote(Role::Bodyguard),
        Decision::Vote(Role::Possessed),
        Decision::Vote(Role::Werewolf),
        Decision::Divine,
        Decision::Guard,
        Decision::Attack,
        Decision::FakeDivination,
        Decision::FakeInquest,
    ];

    /// The number of this decision.
    pub fn index(self) -> usize {
        match self {
            Decision::Vote(role) => role as usize,
            Decision::Divine => 6,
            Decision::Guard => 7,
            Decision::Attack => 8,
            Decision::FakeDivination => 9,
            Decision::FakeInquest => 10,
        }
    }

    /// Whether this decision is a lie about a species.
    pub fn is_lie(self) -> bool {
        matches!(self, Decision::FakeDivination | Decision::FakeInquest)
    }

    /// Whose patterns are looked at for this by a player with this role, if it
    /// looks as a player: an index of [`Tables::counts`].
    pub fn view(self, role: Option<Role>) -> usize {
        match role {
            Some(role) if !self.is_lie() => role as usize,
            _ => OUTSIDER_VIEW,
        }
    }

    /// The side that decides this.
    pub fn side(self) -> Side {
        match self {
            Decision::Vote(role) => role.side(),
            Decision::Divine | Decision::Guard => Side::Village,
            Decision::Attack | Decision::FakeDivination | Decision::FakeInquest => Side::Werewolves,
        }
    }
}

/// Whose patterns are looked at: those of a role, or the outsider's for lies.
pub const OUTSIDER_VIEW: usize = Role::ALL.len();

/// The row of the coming-out table for `role`, claiming `claim`.
///
/// # Panics
/// If a `role` of that name never claims this.
pub fn coming_out_row(role: Role, claim: Claim) -> usize {
    match (role, claim) {
        (Role::Seer, Claim::Seer) => 0,
        (Role::Medium, Claim::Medium) => 1,
        (Role::Possessed, claim) => 2 + claim as usize,
        (Role::Werewolf, claim) => 4 + claim as usize,
        _ => panic!(
            "a {} does not claim to be the {}",
            role.name(),
            claim.role().name()
        ),
    }
}

/// The row of the fake-role table: the possessed, the werewolf who whispers
/// first, or another one after the first has whispered.
pub fn fake_role_row(role: Role, whispered: Option<Option<Claim>>) -> usize {
    match (role, whispered) {
        (Role::Possessed, _) => 0,
        (_, None) => 1,
        (_, Some(first)) => 2 + fake_role_action(first),
    }
}

/// The action that fakes `claim`; `None` is a villager.
pub fn fake_role_action(claim: Option<Claim>) -> usize {
    match claim {
        None => 0,
        Some(claim) => 1 + claim as usize,
    }
}

/// Values of actions by state.
#[derive(Debug, Clone, PartialEq)]
pub struct QTable {
    actions: usize,
    values: Vec<f32>,
    visits: Vec<u32>,
}

impl QTable {
    /// A table in which every value is `initial`.
    pub fn new(states: usize, actions: usize, initial: f32) -> QTable {
        QTable {
            actions,
            values: vec![initial; states * actions],
            visits: vec![0; states * actions],
        }
    }

    /// Number of states.
    pub fn states(&self) -> usize {
        self.values.len() / self.actions
    }

    /// The values of all actions in `state`.
    pub fn row(&self, state: usize) -> &[f32] {
        &self.values[state * self.actions..][..self.actions]
    }

    /// How often each action was credited in `state`.
    pub fn visits(&self, state: usize) -> &[u32] {
        &self.visits[state * self.actions..][..self.actions]
    }

    /// Moves the value of `action` in `state` towards `target`, and returns by
    /// how much it moved.
    ///
    /// Source: paper, section 2.1; `target` is r + gamma max Q.
    pub fn update(&mut self, state: usize, action: usize, target: f32, rate: Rate) -> f32 {
        let cell = state * self.actions + action;
        self.visits[cell] = self.visits[cell].saturating_add(1);
        let change = rate.at(self.visits[cell]) * (target - self.values[cell]);
        self.values[cell] += change;
        change.abs()
    }

    /// Number of states in which some action was credited.
    pub fn visited_states(&self) -> usize {
        let rows = self.visits.chunks_exact(self.actions);
        rows.filter(|row| row.iter().any(|&visits| visits > 0))
            .count()
    }

    /// Number, visits and value of every cell.
    pub(super) fn cells(&self) -> impl Iterator<Item = (usize, u32, f32)> {
        let cells = self.visits.iter().zip(&self.values).enumerate();
        cells.map(|(cell, (&visits, &value))| (cell, visits, value))
    }

    /// Overwrites a cell; `None` if there is no such cell.
    pub(super) fn set_cell(&mut self, cell: usize, visits: u32, value: f32) -> Option<()> {
        *self.visits.get_mut(cell)? = visits;
        self.values[cell] = value;
        Some(())
    }

    fn copy_rows(&mut self, other: &QTable, rows: std::ops::Range<usize>) {
        let cells = rows.start * self.actions..rows.end * self.actions;
        self.values[cells.clone()].copy_from_slice(&other.values[cells.clone()]);
        self.visits[cells.clone()].copy_from_slice(&other.visits[cells]);
    }
}

/// How often the patterns of a view with each state were looked at, and how often
/// such a pattern was the true one.
#[derive(Debug, Clone, PartialEq)]
pub struct Counts {
    truths: Vec<u32>,
    looks: Vec<u32>,
    weights: Vec<f32>,
}

impl Counts {
    fn new(states: usize) -> Counts {
        Counts {
            truths: vec![0; states],
            looks: vec![0; states],
            weights: vec![0.0; states],
        }
    }

    /// What a pattern with `state` counts for; 0 if none was ever true.
    pub fn weight(&self, state: usize) -> f32 {
        self.weights[state]
    }

    /// On how many looks `state` was the true one.
    pub fn truths(&self, state: usize) -> u32 {
        self.truths[state]
    }

    /// Number of states.
    pub(super) fn states(&self) -> usize {
        self.looks.len()
    }

    /// How many patterns with `state` were looked at.
    pub(super) fn looks(&self, state: usize) -> u32 {
        self.looks[state]
    }

    /// Overwrites the counts of a state; `None` if there is no such state.
    pub(super) fn set(
        &mut self,
        state: usize,
        truths: u32,
        looks: u32,
        rule: WeightRule,
    ) -> Option<()> {
        *self.looks.get_mut(state)? = looks;
        self.truths[state] = truths;
        self.weigh(state, rule);
        Some(())
    }

    /// Takes in one look: the states of all patterns, and the true one.
    pub fn add(&mut self, looked: &[u32], truth: usize, rule: WeightRule) {
        self.truths[truth] += 1;
        for &state in looked {
            self.looks[state as usize] += 1;
        }
        self.weigh(truth, rule);
        for &state in looked {
            self.weigh(state as usize, rule);
        }
    }

    fn weigh(&mut self, state: usize, rule: WeightRule) {
        let truths = self.truths[state] as f32;
        self.weights[state] = match rule {
            WeightRule::Calibrated => truths / self.looks[state] as f32,
            WeightRule::Frequency => truths,
            // The pattern itself is weighed, not its state.
            WeightRule::Posterior => 1.0,
        };
    }
}

/// All that one player has learned, for every role that it may be dealt.
#[derive(Debug, Clone, PartialEq)]
pub struct Tables {
    /// Targets, by [`Decision::index`].
    pub targets: Vec<QTable>,
    /// Pattern counts by view: the six roles, then [`OUTSIDER_VIEW`].
    pub counts: Vec<Counts>,
    /// When to come out: rows by [`coming_out_row`], actions by [`ComingOut::index`].
    pub coming_out: QTable,
    /// What to claim to be: rows by [`fake_role_row`], actions by [`fake_role_action`].
    pub fake_role: QTable,
}

impl Tables {
    /// Nothing learned yet.
    pub fn new(config: &Config, rules: &Rules) -> Tables {
        let states = config.state_key(rules).states();
        let initial = config.initial_q as f32;
        let targets = Decision::ALL.map(|_| QTable::new(states, TARGET_ACTIONS, initial));
        Tables {
            targets: targets.to_vec(),
            counts: vec![Counts::new(states); OUTSIDER_VIEW + 1],
            coming_out: QTable::new(6, ComingOut::CHOICES, initial),
            fake_role: QTable::new(5, 3, initial),
        }
    }

    /// Bytes of memory of one player's tables.
    pub fn bytes(config: &Config, rules: &Rules) -> usize {
        let cell = size_of::<f32>() + size_of::<u32>();
        config.state_key(rules).states() * Decision::ALL.len() * TARGET_ACTIONS * cell
    }

    /// Number of states in which some target was credited, over all decisions.
    pub fn visited_states(&self) -> usize {
        self.targets.iter().map(QTable::visited_states).sum()
    }

    /// Forgets everything learned for roles of `side`.
    pub fn reset(&mut self, side: Side, config: &Config, rules: &Rules) {
        let fresh = Tables::new(config, rules);
        for (decision, table) in Decision::ALL.into_iter().zip(&mut self.targets) {
            if decision.side() == side {
                table.clone_from(&fresh.targets[decision.index()]);
            }
        }
        for role in Role::ALL {
            if role.side() == side {
                self.counts[role as usize].clone_from(&fresh.counts[role as usize]);
            }
        }
        let rows = match side {
            Side::Village => 0..2,
            Side::Werewolves => 2..6,
        };
        self.coming_out.copy_rows(&fresh.coming_out, rows);
        if side == Side::Werewolves {
            self.counts[OUTSIDER_VIEW].clone_from(&fresh.counts[OUTSIDER_VIEW]);
            self.fake_role.clone_from(&fresh.fake_role);
        }
    }
}
