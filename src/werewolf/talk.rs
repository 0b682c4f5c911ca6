//! Claims, judgements, and when to come out.
//!
//! The platform talks in up to ten rounds a day. Nothing that a player says here
//! depends on the order of speaking except through declared votes, so
//! [`super::simulator`] lets claims and judgements settle first and has the votes
//! chosen once after that; [`super::log`] spreads the result over shuffled rounds
//! for readers.

use super::rules::{Player, Role, Species};
use super::view::{Public, View};

/// A role that a player may claim to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Claim {
    /// The seer.
    Seer,
    /// The medium.
    Medium,
}

impl Claim {
    /// Both claims.
    pub const ALL: [Claim; 2] = [Claim::Seer, Claim::Medium];

    /// The role claimed.
    pub fn role(self) -> Role {
        match self {
            Claim::Seer => Role::Seer,
            Claim::Medium => Role::Medium,
        }
    }
}

/// The reported species of one player.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judgement {
    /// Who was divined, or executed.
    pub target: Player,
    /// What that player is said to be.
    pub species: Species,
}

/// One thing said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Utterance {
    /// The speaker claims a role.
    ComingOut(Claim),
    /// A seer's result.
    Divined(Judgement),
    /// A medium's result.
    Inquested(Judgement),
    /// The speaker declares a vote.
    Vote(Player),
    /// The speaker has nothing more to say.
    Over,
}

/// When to come out: by a day, or earlier if one of the chosen conditions holds.
///
/// Source: paper, section 2.2 (2), the choice of coming-out conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComingOut {
    /// The day by which to come out, 1 to 5; 6 is never.
    pub day: u8,
    /// The chosen conditions, a sum of [`ComingOut::FOUND_WEREWOLF`] and its neighbours.
    pub conditions: u8,
}

impl ComingOut {
    /// My results, true or made up, contain a werewolf.
    pub const FOUND_WEREWOLF: u8 = 1;
    /// Somebody has called me a werewolf.
    pub const ACCUSED: u8 = 2;
    /// Somebody else claims the role that I would claim.
    pub const RIVAL: u8 = 4;
    /// Many players declare a vote for me, see [`ManyVotes`].
    pub const MANY_VOTES: u8 = 8;

    /// Number of different choices: six days times 2^4 sets of conditions.
    pub const CHOICES: usize = 6 * 16;

    /// Not coming out, whatever happens.
    pub const NEVER: ComingOut = ComingOut {
        day: 6,
        conditions: 0,
    };

    /// Choice number `index`.
    ///
    /// # Panics
    /// If `index` is not below [`ComingOut::CHOICES`].
    pub fn from_index(index: usize) -> ComingOut {
        assert!(index < ComingOut::CHOICES, "no coming-out choice {index}");
        ComingOut {
            day: (index / 16 + 1) as u8,
            conditions: (index % 16) as u8,
        }
    }

    /// The number of this choice.
    pub fn index(self) -> usize {
        usize::from(self.day - 1) * 16 + usize::from(self.conditions)
    }

    /// Whether the player of `view` comes out now, as `claim`.
    pub fn is_due(self, view: View, claim: Claim, many: ManyVotes) -> bool {
        let (public, me) = (view.public, view.own.player);
        let chosen = |condition| self.conditions & condition != 0;
        let rivals = match claim {
            Claim::Seer => public.facts.seers,
            Claim::Medium => public.facts.mediums,
        };
        let by_day = self.day <= 5 && public.facts.day >= self.day;
        by_day
            || chosen(ComingOut::FOUND_WEREWOLF) && view.own.found_werewolf()
            || chosen(ComingOut::ACCUSED) && public.accused().contains(me)
            || chosen(ComingOut::RIVAL) && !rivals.is_empty()
            || chosen(ComingOut::MANY_VOTES) && many.name(public, me)
    }
}

impl std::fmt::Display for ComingOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.day {
            6 => write!(f, "never")?,
            day => write!(f, "by day {day}")?,
        }
        let names = [
            (ComingOut::FOUND_WEREWOLF, "a werewolf is among my results"),
            (ComingOut::ACCUSED, "I am called a werewolf"),
            (ComingOut::RIVAL, "a rival comes out"),
            (ComingOut::MANY_VOTES, "many declare a vote for me"),
        ];
        let chosen = names.iter().filter(|(bit, _)| self.conditions & bit != 0);
        let chosen: Vec<&str> = chosen.map(|&(_, name)| name).collect();
        if !chosen.is_empty() {
            write!(f, ", or once {}", chosen.join(" or "))?;
        }
        Ok(())
    }
}

/// How many declared votes count as many. The paper does not say.
///
/// All the living have declared when this is asked, since votes are declared
/// only after claims and judgements have settled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ManyVotes {
    /// At least this share of the living, or
    pub share: f64,
    /// at least this number of players.
    pub players: u32,
}

impl ManyVotes {
    /// Whether many players declare a vote for `player`.
    pub fn name(self, public: &Public, player: Player) -> bool {
        let named = u32::from(public.declared_counts()[usize::from(player)]);
        let share = self.share * public.facts.alive.len() as f64;
        named > 0 && (named >= self.players || f64::from(named) >= share)
    }
}

impl Default for ManyVotes {
    fn default() -> ManyVotes {
        ManyVotes {
            share: 0.25,
            players: 3,
        }
    }
}
