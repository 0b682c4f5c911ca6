//! What everybody knows, and what one player knows besides.
//!
//! A player is only ever handed a [`View`]; the roles of the others are not in
//! it, so it cannot use them, however it is written.

use super::rules::{Deal, MAX_DAYS, MAX_PLAYERS, Player, PlayerSet, Role, Rules, Species};
use super::talk::{Claim, ComingOut, Judgement};

/// The part of the public record that states and target kinds are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// Days since the game began; the first day is 0.
    pub day: u8,
    /// Who lives.
    pub alive: PlayerSet,
    /// Everyone who was attacked and died.
    pub attacked: PlayerSet,
    /// Who was executed yesterday.
    pub executed_last: PlayerSet,
    /// Who was attacked and died last night.
    pub attacked_last: PlayerSet,
    /// Everyone who claims to be the seer.
    pub seers: PlayerSet,
    /// Everyone who claims to be the medium.
    pub mediums: PlayerSet,
    /// Everyone about whom a claimant has reported a species.
    pub judged: PlayerSet,
}

impl Facts {
    /// Everyone who claims to be something.
    pub fn claimants(&self) -> PlayerSet {
        self.seers | self.mediums
    }
}

/// What everybody sees of one night.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Night {
    /// Who was alive at dusk.
    pub alive: PlayerSet,
    /// Who was executed that day.
    pub executed: PlayerSet,
    /// Who was attacked and died.
    pub attacked: PlayerSet,
}

/// What everybody knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Public {
    /// The facts of today.
    pub facts: Facts,
    /// Everyone at the table, dead or alive.
    pub everyone: PlayerSet,
    /// Whom each claimant has called human.
    pub called_human: [PlayerSet; MAX_PLAYERS],
    /// Whom each claimant has called a werewolf.
    pub called_werewolf: [PlayerSet; MAX_PLAYERS],
    /// Number of claims and judgements heard since the game began.
    pub heard: u32,
    /// The vote that each living player has declared today.
    pub declared: [Option<Player>; MAX_PLAYERS],
    /// Yesterday's votes.
    pub votes: [Option<Player>; MAX_PLAYERS],
    /// The nights of the days before today.
    pub nights: [Night; MAX_DAYS],
}

impl Public {
    /// The start of a game of `players` players.
    pub fn new(players: usize) -> Public {
        let everyone = PlayerSet::first(players);
        Public {
            facts: Facts {
                alive: everyone,
                ..Facts::default()
            },
            everyone,
            called_human: [PlayerSet::EMPTY; MAX_PLAYERS],
            called_werewolf: [PlayerSet::EMPTY; MAX_PLAYERS],
            heard: 0,
            declared: [None; MAX_PLAYERS],
            votes: [None; MAX_PLAYERS],
            nights: [Night::default(); MAX_DAYS],
        }
    }

    /// Records that `player` claims to be `claim`.
    pub fn claim(&mut self, player: Player, claim: Claim) {
        match claim {
            Claim::Seer => self.facts.seers.insert(player),
            Claim::Medium => self.facts.mediums.insert(player),
        }
        self.heard += 1;
    }

    /// Records that `player`, a claimant, reports `judgement`.
    pub fn report(&mut self, player: Player, judgement: Judgement) {
        let called = match judgement.species {
            Species::Human => &mut self.called_human,
            Species::Werewolf => &mut self.called_werewolf,
        };
        called[usize::from(player)].insert(judgement.target);
        self.facts.judged.insert(judgement.target);
        self.heard += 1;
    }

    /// Everyone whom some claimant has called a werewolf.
    pub fn accused(&self) -> PlayerSet {
        let called = self.called_werewolf.iter();
        called.fold(PlayerSet::EMPTY, |all, &set| all | set)
    }

    /// How many living players' declared votes name each player.
    pub fn declared_counts(&self) -> [u8; MAX_PLAYERS] {
        let mut counts = [0; MAX_PLAYERS];
        for target in self.declared.iter().flatten() {
            counts[usize::from(*target)] += 1;
        }
        counts
    }

    /// The players with the most declared votes of everyone but `player`;
    /// nobody if the others have declared nothing.
    pub fn leaders(&self, player: Player) -> PlayerSet {
        leaders(&self.declared_by_others(player))
    }

    /// The players whom a vote of `player` would give as many votes as anyone has
    /// by the others' declared votes; nobody if these have declared nothing.
    pub fn in_reach(&self, player: Player) -> PlayerSet {
        let counts = self.declared_by_others(player);
        let most = counts.iter().copied().max().unwrap_or(0);
        let reaches = |&target: &Player| most > 0 && counts[usize::from(target)] + 1 >= most;
        self.facts.alive.iter().filter(reaches).collect()
    }

    fn declared_by_others(&self, player: Player) -> [u8; MAX_PLAYERS] {
        let mut counts = self.declared_counts();
        if let Some(own) = self.declared[usize::from(player)] {
            counts[usize::from(own)] -= 1;
        }
        counts
    }
}

/// The players with the highest of `counts`; nobody if all are 0.
pub fn leaders(counts: &[u8; MAX_PLAYERS]) -> PlayerSet {
    let most = counts.iter().copied().max().unwrap_or(0);
    let is_leader = |&(_, &count): &(usize, &u8)| count == most && most > 0;
    let leading = counts.iter().enumerate().filter(is_leader);
    leading.map(|(player, _)| player as Player).collect()
}

/// What one player knows and intends beyond the public record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Private {
    /// The player.
    pub player: Player,
    /// Its role.
    pub role: Role,
    /// The werewolves if the player is one, otherwise nobody.
    pub werewolves: PlayerSet,
    /// What it will claim to be, if it ever comes out.
    pub claim: Option<Claim>,
    /// When it comes out.
    pub coming_out: ComingOut,
    /// How many of its results it has reported.
    pub reported: u8,
    /// Whom it guarded in each night, if it is the bodyguard.
    pub guarded: [PlayerSet; MAX_DAYS],
    results: [Judgement; MAX_DAYS],
    result_count: u8,
}

impl Private {
    /// The start of the game for `player` of `deal`.
    pub fn new(deal: &Deal, player: Player) -> Private {
        let role = deal.role(player);
        let werewolves = match role {
            Role::Werewolf => deal.werewolves(),
            _ => PlayerSet::EMPTY,
        };
        let nothing = Judgement {
            target: 0,
            species: Species::Human,
        };
        Private {
            player,
            role,
            werewolves,
            claim: None,
            coming_out: ComingOut::NEVER,
            reported: 0,
            guarded: [PlayerSet::EMPTY; MAX_DAYS],
            results: [nothing; MAX_DAYS],
            result_count: 0,
        }
    }

    /// The results of the seer or the medium, or the lies of a faker, oldest first.
    pub fn results(&self) -> &[Judgement] {
        &self.results[..usize::from(self.result_count)]
    }

    /// Adds the result of last night.
    pub fn add_result(&mut self, result: Judgement) {
        self.results[usize::from(self.result_count)] = result;
        self.result_count += 1;
    }

    /// Whether some result, true or made up, is a werewolf.
    pub fn found_werewolf(&self) -> bool {
        let species = |result: &Judgement| result.species == Species::Werewolf;
        self.results().iter().any(species)
    }
}

/// Everything that one player may know.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The rules of the game.
    pub rules: &'a Rules,
    /// What everybody knows.
    pub public: &'a Public,
    /// What this player knows besides.
    pub own: &'a Private,
}
