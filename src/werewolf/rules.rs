//! Players, roles, species, sides, and rule sets. What happens in a game is the
//! business of [`super::simulator`].
//!
//! Source: the AIWolf platform of spring 2015, on which the paper's players played.

use crate::random::{RandomSource, Rng};

/// Most players of any rule set.
pub const MAX_PLAYERS: usize = 15;

/// Most days of any game, day 0 included. Every day from day 1 on executes one
/// player and the game is over before the last one falls.
pub const MAX_DAYS: usize = MAX_PLAYERS;

/// A seat at the table, counted from 0.
pub type Player = u8;

/// What a player is dealt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// On the village's side, without an ability.
    Villager,
    /// Divines one player's species each night.
    Seer,
    /// Learns the species of each executed player.
    Medium,
    /// Guards one player each night against the attack.
    Bodyguard,
    /// A human who wins with the werewolves, and does not know them.
    Possessed,
    /// Attacks at night; the werewolves know each other.
    Werewolf,
}

impl Role {
    /// Every role, in the order of its number `role as usize`.
    pub const ALL: [Role; 6] = [
        Role::Villager,
        Role::Seer,
        Role::Medium,
        Role::Bodyguard,
        Role::Possessed,
        Role::Werewolf,
    ];

    /// What a divination of this role shows.
    pub fn species(self) -> Species {
        match self {
            Role::Werewolf => Species::Werewolf,
            _ => Species::Human,
        }
    }

    /// The side this role wins with.
    pub fn side(self) -> Side {
        match self {
            Role::Werewolf | Role::Possessed => Side::Werewolves,
            _ => Side::Village,
        }
    }

    /// The lower-case English name.
    pub fn name(self) -> &'static str {
        match self {
            Role::Villager => "villager",
            Role::Seer => "seer",
            Role::Medium => "medium",
            Role::Bodyguard => "bodyguard",
            Role::Possessed => "possessed",
            Role::Werewolf => "werewolf",
        }
    }
}

impl std::str::FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Role, String> {
        Role::ALL
            .into_iter()
            .find(|role| role.name() == text)
            .ok_or_else(|| {
                let names = Role::ALL.map(Role::name).join(", ");
                format!("there is no role \"{text}\"; the roles are {names}")
            })
    }
}

/// What a player is, as the seer and the medium see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Species {
    /// Everyone but the werewolves, the possessed too.
    Human,
    /// A werewolf.
    Werewolf,
}

/// The two parties of the game.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// Villagers, seer, medium and bodyguard: win once no werewolf is alive.
    Village,
    /// Werewolves and possessed: win once werewolves are no fewer than humans.
    Werewolves,
}

/// A set of players, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct PlayerSet(pub u16);

impl PlayerSet {
    /// The set of nobody.
    pub const EMPTY: PlayerSet = PlayerSet(0);

    /// Players `0..count`.
    pub fn first(count: usize) -> PlayerSet {
        PlayerSet(((1u32 << count) - 1) as u16)
    }

    /// The set of `player` alone.
    pub fn only(player: Player) -> PlayerSet {
        PlayerSet(1 << player)
    }

    /// Whether `player` is in the set.
    pub fn contains(self, player: Player) -> bool {
        self.0 >> player & 1 == 1
    }

    /// Adds `player`.
    pub fn insert(&mut self, player: Player) {
        self.0 |= 1 << player;
    }

    /// Removes `player`.
    pub fn remove(&mut self, player: Player) {
        self.0 &= !(1 << player);
    }

    /// Number of players in the set.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether nobody is in the set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The players in ascending order.
    pub fn iter(self) -> impl Iterator<Item = Player> {
        let mut bits = self.0;
        std::iter::from_fn(move || {
            let player = bits.trailing_zeros() as Player;
            (bits != 0).then(|| {
                bits &= bits - 1;
                player
            })
        })
    }

    /// Every subset of the set, the empty one first.
    pub fn subsets(self) -> impl Iterator<Item = PlayerSet> {
        let mut next = Some(0u16);
        std::iter::from_fn(move || {
            let subset = next?;
            // Counting with the bits outside the set skipped: subtraction
            // carries over them.
            let following = subset.wrapping_sub(self.0) & self.0;
            next = (following != 0).then_some(following);
            Some(PlayerSet(subset))
        })
    }

    /// A member drawn uniformly, with exactly one draw from `rng`. One draw
    /// whatever the set: games with the same stream then stay in step until a
    /// choice differs, which sharpens paired comparisons.
    ///
    /// # Panics
    /// If the set is empty.
    pub fn pick(self, rng: &mut Rng) -> Player {
        assert!(!self.is_empty(), "nobody to choose from");
        let mut bits = self.0;
        for _ in 0..below(rng, self.len() as u32) {
            bits &= bits - 1;
        }
        bits.trailing_zeros() as Player
    }
}

impl std::ops::BitOr for PlayerSet {
    type Output = PlayerSet;
    fn bitor(self, other: PlayerSet) -> PlayerSet {
        PlayerSet(self.0 | other.0)
    }
}

impl std::ops::BitOrAssign for PlayerSet {
    fn bitor_assign(&mut self, other: PlayerSet) {
        self.0 |= other.0;
    }
}

impl std::ops::BitAnd for PlayerSet {
    type Output = PlayerSet;
    fn bitand(self, other: PlayerSet) -> PlayerSet {
        PlayerSet(self.0 & other.0)
    }
}

impl std::ops::Sub for PlayerSet {
    type Output = PlayerSet;
    /// The members of `self` that are not in `other`.
    fn sub(self, other: PlayerSet) -> PlayerSet {
        PlayerSet(self.0 & !other.0)
    }
}

impl FromIterator<Player> for PlayerSet {
    fn from_iter<I: IntoIterator<Item = Player>>(players: I) -> PlayerSet {
        players.into_iter().fold(PlayerSet::EMPTY, |set, player| {
            set | PlayerSet::only(player)
        })
    }
}

/// A number below `count`, with one draw. Its bias is below `count` / 2^32, far
/// under what any number of games played here can show.
pub fn below(rng: &mut Rng, count: u32) -> u32 {
    ((u64::from(rng.next_u64() as u32) * u64::from(count)) >> 32) as u32
}

/// A rule set: how many hold each role, and the points on which platforms differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Name of the rule set.
    pub name: &'static str,
    /// Number of players of each role, by `role as usize`. Seer, medium,
    /// bodyguard and possessed are one at most.
    pub counts: [u8; 6],
    /// Whether the bodyguard may guard himself.
    pub may_guard_oneself: bool,
    /// Whether the guard holds on the day on which the bodyguard is executed.
    pub executed_bodyguard_guards: bool,
    /// Whether the player executed today is still on the list of the attack;
    /// if the attack falls on him, nobody dies.
    pub executed_on_attack_list: bool,
}

impl Rules {
    /// The named rule sets. `paper2015` is the paper's game of eleven, the
    /// others are the platform's games of five and fifteen.
    pub const ALL: [Rules; 3] = [
        Rules::platform("paper2015", [5, 1, 1, 1, 1, 2]),
        Rules::platform("five", [2, 1, 0, 0, 1, 1]),
        Rules::platform("fifteen", [8, 1, 1, 1, 1, 3]),
    ];

    const fn platform(name: &'static str, counts: [u8; 6]) -> Rules {
        Rules {
            name,
            counts,
            may_guard_oneself: true,
            executed_bodyguard_guards: true,
            executed_on_attack_list: true,
        }
    }

    /// The paper's rules: eleven players.
    pub fn paper2015() -> Rules {
        let [paper2015, ..] = Rules::ALL;
        paper2015
    }

    /// The rule set for `players` players.
    ///
    /// # Errors
    /// If there is none; the message lists the sizes.
    pub fn for_players(players: usize) -> Result<Rules, String> {
        Rules::ALL
            .into_iter()
            .find(|rules| rules.players() == players)
            .ok_or_else(|| {
                let sizes = Rules::ALL.map(|rules| rules.players().to_string());
                format!(
                    "there are no rules for {players} players; choose one of {}",
                    sizes.join(", ")
                )
            })
    }

    /// Number of players.
    pub fn players(&self) -> usize {
        self.counts.iter().map(|&count| usize::from(count)).sum()
    }

    /// Number of players who hold `role`.
    pub fn count(&self, role: Role) -> usize {
        usize::from(self.counts[role as usize])
    }

    /// Everybody.
    pub fn everyone(&self) -> PlayerSet {
        PlayerSet::first(self.players())
    }

    /// The roles in ascending order, one for each player.
    pub fn roles(&self) -> impl Iterator<Item = Role> {
        let counts = self.counts;
        Role::ALL
            .into_iter()
            .flat_map(move |role| std::iter::repeat_n(role, usize::from(counts[role as usize])))
    }

    /// Deals the roles uniformly.
    pub fn deal(&self, rng: &mut Rng) -> Deal {
        let mut roles = [Role::Villager; MAX_PLAYERS];
        for (slot, role) in roles.iter_mut().zip(self.roles()) {
            *slot = role;
        }
        shuffle(&mut roles[..self.players()], rng);
        Deal::new(&roles[..self.players()])
    }
}

/// Shuffles uniformly (Fisher and Yates).
pub fn shuffle<T>(items: &mut [T], rng: &mut Rng) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(rng, last as u32 + 1) as usize);
    }
}

/// Who holds which role: the secret of a game.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deal {
    roles: [Role; MAX_PLAYERS],
    holders: [PlayerSet; 6],
}

impl Deal {
    /// Player `i` holds `roles[i]`.
    ///
    /// # Panics
    /// If there are more than [`MAX_PLAYERS`].
    pub fn new(roles: &[Role]) -> Deal {
        let mut deal = Deal {
            roles: [Role::Villager; MAX_PLAYERS],
            holders: [PlayerSet::EMPTY; 6],
        };
        deal.roles[..roles.len()].copy_from_slice(roles);
        for (player, &role) in roles.iter().enumerate() {
            deal.holders[role as usize].insert(player as Player);
        }
        deal
    }

    /// The role of `player`.
    pub fn role(&self, player: Player) -> Role {
        self.roles[usize::from(player)]
    }

    /// Everyone who holds `role`.
    pub fn holders(&self, role: Role) -> PlayerSet {
        self.holders[role as usize]
    }

    /// Everyone who is a werewolf.
    pub fn werewolves(&self) -> PlayerSet {
        self.holders(Role::Werewolf)
    }

    /// The species of `player`.
    pub fn species(&self, player: Player) -> Species {
        self.role(player).species()
    }
}
