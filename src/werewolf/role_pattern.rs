//! The explanations of what was said, and the states they are learned by.
//!
//! A role pattern gives a role to every player whom the talk involves: each
//! claimant is what it claims, or possessed, or a werewolf; each player that was
//! judged is human or a werewolf. Here the patterns of a view are enumerated
//! afresh, claimants first; the tests compare with all assignments of roles.
//!
//! Source: paper, section 2.2 (1) and table 1.

use super::rules::{Deal, Player, PlayerSet, Role, Rules, Species};
use super::view::{Facts, Public, View};

/// One explanation of what was said. Judged players who are not among the
/// werewolves are human; whoever is in no set and was not judged is unexplained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Pattern {
    /// The seer, if he is a claimant or the player itself.
    pub seer: PlayerSet,
    /// The medium, if he is a claimant or the player itself.
    pub medium: PlayerSet,
    /// The possessed, if he is a claimant or the player itself.
    pub possessed: PlayerSet,
    /// The werewolves among claimants, judged and known players.
    pub werewolves: PlayerSet,
}

impl Pattern {
    /// The true pattern of a view: what `deal` makes of the players involved.
    pub fn truth(facts: &Facts, known: &Knowledge, deal: &Deal) -> Pattern {
        let claimants = facts.claimants();
        let placed = claimants | known.oneself;
        let involved = placed | facts.judged | known.humans | known.werewolves;
        Pattern {
            seer: deal.holders(Role::Seer) & placed,
            medium: deal.holders(Role::Medium) & placed,
            possessed: deal.holders(Role::Possessed) & placed,
            werewolves: deal.werewolves() & involved,
        }
    }
}

/// What an observer knows for certain about roles, whatever is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Knowledge {
    /// The observer, if it is a player.
    pub oneself: PlayerSet,
    /// The observer's role, if it is a player.
    pub role: Option<Role>,
    /// Players known to be human.
    pub humans: PlayerSet,
    /// Players known to be werewolves.
    pub werewolves: PlayerSet,
    /// Of the known humans, those that count as proved: for the werewolves not
    /// simply everybody else.
    pub proved: PlayerSet,
}

impl Knowledge {
    /// An observer who holds no role and knows what everybody knows. The
    /// werewolves and the possessed choose their lies by what he thinks.
    pub const OUTSIDER: Knowledge = Knowledge {
        oneself: PlayerSet::EMPTY,
        role: None,
        humans: PlayerSet::EMPTY,
        werewolves: PlayerSet::EMPTY,
        proved: PlayerSet::EMPTY,
    };

    /// What the player of `view` knows.
    pub fn of(view: View) -> Knowledge {
        let own = view.own;
        let oneself = PlayerSet::only(own.player);
        let mut known = Knowledge {
            oneself,
            role: Some(own.role),
            humans: oneself,
            werewolves: own.werewolves,
            proved: oneself,
        };
        match own.role {
            Role::Werewolf => {
                known.humans = view.public.everyone - own.werewolves;
                known.proved = PlayerSet::EMPTY;
            }
            Role::Seer | Role::Medium => {
                for result in own.results() {
                    match result.species {
                        Species::Human => known.humans.insert(result.target),
                        Species::Werewolf => known.werewolves.insert(result.target),
                    }
                }
                known.proved = known.humans;
            }
            Role::Villager | Role::Bodyguard | Role::Possessed => {}
        }
        known
    }

    fn holds(&self, role: Role) -> bool {
        self.role == Some(role)
    }
}

/// Appends to `patterns` every pattern that `known` and what was said allow, each
/// once.
///
/// Left out are patterns with two true seers, more werewolves or possessed than
/// the rules have, a player whom a true claimant judged otherwise, or too few
/// unexplained players for the werewolves not yet placed. The other roles not
/// yet placed always fit: anyone who is human and no claimant may hold them.
pub fn enumerate(rules: &Rules, public: &Public, known: &Knowledge, patterns: &mut Vec<Pattern>) {
    let facts = &public.facts;
    for seer in holders(rules, known, Role::Seer, facts.seers) {
        for medium in holders(rules, known, Role::Medium, facts.mediums) {
            add_patterns(rules, public, known, seer, medium, patterns);
        }
    }
}

/// Who may hold `role` in a pattern: the player itself if it does, otherwise one
/// of the `claimants`, or nobody of them.
fn holders(
    rules: &Rules,
    known: &Knowledge,
    role: Role,
    claimants: PlayerSet,
) -> impl Iterator<Item = PlayerSet> {
    let (first, rest) = if known.holds(role) {
        (known.oneself, PlayerSet::EMPTY)
    } else if rules.count(role) == 0 {
        (PlayerSet::EMPTY, PlayerSet::EMPTY)
    } else {
        (PlayerSet::EMPTY, claimants - known.oneself)
    };
    std::iter::once(first).chain(rest.iter().map(PlayerSet::only))
}

/// The patterns in which `seer` and `medium` are what they claim, and no other
/// claimant is.
fn add_patterns(
    rules: &Rules,
    public: &Public,
    known: &Knowledge,
    seer: PlayerSet,
    medium: PlayerSet,
    patterns: &mut Vec<Pattern>,
) {
    let facts = &public.facts;
    let mut humans = known.humans | facts.attacked | seer | medium;
    let mut werewolves = known.werewolves;
    for claimant in (seer | medium).iter() {
        humans |= public.called_human[usize::from(claimant)];
        werewolves |= public.called_werewolf[usize::from(claimant)];
    }
    let liars = facts.claimants() - seer - medium;
    let possible = match known.role {
        Some(Role::Possessed) => PlayerSet::EMPTY,
        _ => liars - werewolves - known.oneself,
    };
    let nobody = match known.role {
        Some(Role::Possessed) => known.oneself,
        _ => PlayerSet::EMPTY,
    };
    let judged = facts.judged - facts.claimants() - humans;
    let unexplained =
        public.everyone - facts.claimants() - facts.judged - known.werewolves - humans;
    let all_werewolves = rules.count(Role::Werewolf);
    for possessed in std::iter::once(nobody).chain(possible.iter().map(PlayerSet::only)) {
        let sure = werewolves | (liars - possessed);
        if !(sure & (humans | possessed)).is_empty() || sure.len() > all_werewolves {
            continue;
        }
        for more in (judged - sure).subsets() {
            let werewolves = sure | more;
            let placed = werewolves.len();
            if placed <= all_werewolves && all_werewolves - placed <= unexplained.len() {
                patterns.push(Pattern {
                    seer,
                    medium,
                    possessed,
                    werewolves,
                });
            }
        }
    }
}

/// Whether a pattern of the outsider is one of a player who knows nothing but
/// that it is human and no claimant: a villager or a bodyguard.
pub fn allows_bystander(rules: &Rules, public: &Public, pattern: &Pattern, player: Player) -> bool {
    let facts = &public.facts;
    let involved = facts.claimants() | facts.judged | facts.attacked | PlayerSet::only(player);
    let unexplained = public.everyone - involved;
    !pattern.werewolves.contains(player)
        && rules.count(Role::Werewolf) - pattern.werewolves.len() <= unexplained.len()
}

/// What a target is in one pattern.
///
/// Source: paper, table 2; its kind "random" is exploration and needs no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TargetKind {
    /// The true seer, who is out.
    Seer,
    /// The true medium, who is out.
    Medium,
    /// A werewolf who claims to be the seer.
    WerewolfAsSeer,
    /// The possessed, who claims to be the seer.
    PossessedAsSeer,
    /// A werewolf who claims to be the medium.
    WerewolfAsMedium,
    /// The possessed, who claims to be the medium.
    PossessedAsMedium,
    /// A werewolf who claims nothing: judged, or known by oneself.
    JudgedWerewolf,
    /// Who died of last night's attack.
    Attacked,
    /// Who was executed yesterday.
    Executed,
    /// A human by the judgements, or known to be one.
    ProvedHuman,
    /// Anyone else.
    Other,
    /// The player itself, where a config makes that a kind of its own.
    Oneself,
}

impl TargetKind {
    /// Every kind, in the order of its number `kind as usize`.
    pub const ALL: [TargetKind; 12] = [
        TargetKind::Seer,
        TargetKind::Medium,
        TargetKind::WerewolfAsSeer,
        TargetKind::PossessedAsSeer,
        TargetKind::WerewolfAsMedium,
        TargetKind::PossessedAsMedium,
        TargetKind::JudgedWerewolf,
        TargetKind::Attacked,
        TargetKind::Executed,
        TargetKind::ProvedHuman,
        TargetKind::Other,
        TargetKind::Oneself,
    ];

    /// What `player` is in `pattern`: the first kind that fits.
    #[inline]
    pub fn of(facts: &Facts, known: &Knowledge, pattern: &Pattern, player: Player) -> TargetKind {
        let werewolf = pattern.werewolves.contains(player);
        if facts.seers.contains(player) {
            match (pattern.seer.contains(player), werewolf) {
                (true, _) => TargetKind::Seer,
                (false, true) => TargetKind::WerewolfAsSeer,
                (false, false) => TargetKind::PossessedAsSeer,
            }
        } else if facts.mediums.contains(player) {
            match (pattern.medium.contains(player), werewolf) {
                (true, _) => TargetKind::Medium,
                (false, true) => TargetKind::WerewolfAsMedium,
                (false, false) => TargetKind::PossessedAsMedium,
            }
        } else if werewolf {
            TargetKind::JudgedWerewolf
        } else if facts.attacked_last.contains(player) {
            TargetKind::Attacked
        } else if facts.executed_last.contains(player) {
            TargetKind::Executed
        } else if (facts.judged | known.proved).contains(player) {
            TargetKind::ProvedHuman
        } else {
            TargetKind::Other
        }
    }

    /// The players for whom [`TargetKind::of`] may be other than
    /// [`TargetKind::Other`] in some pattern.
    pub fn involved(facts: &Facts, known: &Knowledge) -> PlayerSet {
        facts.claimants()
            | facts.judged
            | facts.attacked_last
            | facts.executed_last
            | known.proved
            | known.werewolves
    }

    /// The name in plain words.
    pub fn name(self) -> &'static str {
        match self {
            TargetKind::Seer => "the seer",
            TargetKind::Medium => "the medium",
            TargetKind::WerewolfAsSeer => "a werewolf faking seer",
            TargetKind::PossessedAsSeer => "the possessed faking seer",
            TargetKind::WerewolfAsMedium => "a werewolf faking medium",
            TargetKind::PossessedAsMedium => "the possessed faking medium",
            TargetKind::JudgedWerewolf => "a judged werewolf",
            TargetKind::Attacked => "the player attacked last night",
            TargetKind::Executed => "the player executed yesterday",
            TargetKind::ProvedHuman => "a proved human",
            TargetKind::Other => "anyone else",
            TargetKind::Oneself => "oneself",
        }
    }
}

/// Most claimants of one role, proved humans and so on that a state tells apart.
const COUNT_CAP: usize = 3;
/// Days from which on a state does not tell them apart.
const DAY_CAP: usize = 5;

/// How patterns become states: dense numbers, so that tables are plain arrays.
///
/// The paper does not say what its states consist of. The base is the status of
/// the true seer and medium (not out, alive, dead), the werewolves placed and
/// alive, the possessed (not placed, alive, dead), and the day (0 to 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateKey {
    /// Also tell apart the numbers of claimants of seer and medium.
    pub claims: bool,
    /// Also tell apart the number of living proved humans.
    pub proved_humans: bool,
    /// Also tell apart the number of living players.
    pub living: bool,
    /// Number of werewolves in the rules.
    pub werewolves: usize,
    /// Number of players in the rules.
    pub players: usize,
}

impl StateKey {
    /// Number of states.
    pub fn states(&self) -> usize {
        let counts = COUNT_CAP + 1;
        let base = 3 * 3 * triangle(self.werewolves + 1) * 3 * (DAY_CAP + 1);
        let claims = if self.claims { counts * counts } else { 1 };
        let proved = if self.proved_humans { counts } else { 1 };
        let living = if self.living { self.players + 1 } else { 1 };
        base * claims * proved * living
    }

    /// The state of `pattern` when the facts are `facts`.
    #[inline]
    pub fn state(&self, facts: &Facts, known: &Knowledge, pattern: &Pattern) -> usize {
        let alive = facts.alive;
        let status = |holder: PlayerSet| match (holder.is_empty(), (holder & alive).is_empty()) {
            (true, _) => 0,
            (false, false) => 1,
            (false, true) => 2,
        };
        let mut state = status(pattern.seer & facts.seers);
        state = state * 3 + status(pattern.medium & facts.mediums);
        let werewolves = triangle(pattern.werewolves.len()) + (pattern.werewolves & alive).len();
        state = state * triangle(self.werewolves + 1) + werewolves;
        state = state * 3 + status(pattern.possessed);
        state = state * (DAY_CAP + 1) + usize::from(facts.day).min(DAY_CAP);
        let capped = |set: PlayerSet| set.len().min(COUNT_CAP);
        if self.claims {
            state = state * (COUNT_CAP + 1) + capped(facts.seers);
            state = state * (COUNT_CAP + 1) + capped(facts.mediums);
        }
        if self.proved_humans {
            let proved = (facts.judged | known.proved) - pattern.werewolves - facts.claimants();
            state = state * (COUNT_CAP + 1) + capped(proved & alive);
        }
        if self.living {
            state = state * (self.players + 1) + alive.len();
        }
        state
    }

    /// The base part of `state` in words.
    pub fn describe(&self, state: usize) -> String {
        let base = 3 * 3 * triangle(self.werewolves + 1) * 3 * (DAY_CAP + 1);
        let mut rest = state / (self.states() / base);
        let mut digit = |radix: usize| {
            let digit = rest % radix;
            rest /= radix;
            digit
        };
        let day = digit(DAY_CAP + 1);
        let possessed = ["not placed", "alive", "dead"][digit(3)];
        let werewolves = digit(triangle(self.werewolves + 1));
        let status = ["not out", "alive", "dead"];
        let (medium, seer) = (status[digit(3)], status[digit(3)]);
        let placed = (0..=self.werewolves)
            .rev()
            .find(|&placed| triangle(placed) <= werewolves)
            .unwrap_or(0);
        let living = werewolves - triangle(placed);
        let day_suffix = if day == DAY_CAP { " or later" } else { "" };
        format!(
            "day {day}{day_suffix}: seer {seer}, medium {medium}, {placed} werewolves placed \
             ({living} alive), possessed {possessed}"
        )
    }
}

/// Number of pairs (a, b) with b <= a < `n`; the pairs with first number n start there.
fn triangle(n: usize) -> usize {
    n * (n + 1) / 2
}
