//! A game as a story for people, told as the village sees it; what the night hid
//! stands in brackets.

use super::log::name;
use super::rules::{Player, PlayerSet, Role, Side, Species};
use super::simulator::{Event, Game, Observer};
use super::talk::Utterance;

/// Tells a game.
#[derive(Debug, Default)]
pub struct Story {
    /// The lines so far.
    pub lines: Vec<String>,
    votes: Vec<(Player, Player)>,
}

impl Story {
    fn morning(&mut self, game: &Game) {
        let facts = &game.public.facts;
        if facts.day > 0 {
            self.lines.push(String::new());
        }
        self.lines.push(format!("Day {}", facts.day));
        if facts.day > 1 && facts.attacked_last.is_empty() {
            self.tell("Nobody died in the night.".to_string());
        }
        for player in facts.attacked_last.iter() {
            self.tell(format!("{} is found dead.", name(player)));
        }
        self.tell(format!(
            "{} players are alive: {}.",
            facts.alive.len(),
            names(facts.alive)
        ));
    }

    fn tell(&mut self, text: String) {
        self.lines.push(format!("  {text}"));
    }

    fn says(&mut self, player: Player, utterance: Utterance) {
        let speaker = name(player);
        let species = |species| match species {
            Species::Human => "human",
            Species::Werewolf => "a WEREWOLF",
        };
        match utterance {
            Utterance::ComingOut(claim) => {
                self.tell(format!(
                    "{speaker} claims to be the {}.",
                    claim.role().name()
                ));
            }
            Utterance::Divined(result) => {
                let (target, species) = (name(result.target), species(result.species));
                self.tell(format!("{speaker} says: I divined {target}: {species}."));
            }
            Utterance::Inquested(result) => {
                let (target, species) = (name(result.target), species(result.species));
                self.tell(format!(
                    "{speaker} says: {target}, who was executed, was {species}."
                ));
            }
            // Declared votes change; the votes themselves are told when they are cast.
            Utterance::Vote(_) | Utterance::Over => {}
        }
    }

    fn tell_votes(&mut self) {
        let mut votes = std::mem::take(&mut self.votes);
        votes.sort_by_key(|&(_, target)| target);
        for group in votes.chunk_by(|a, b| a.1 == b.1) {
            let voters: PlayerSet = group.iter().map(|&(player, _)| player).collect();
            self.tell(format!(
                "Votes for {}: {}.",
                name(group[0].1),
                names(voters)
            ));
        }
    }

    fn reveal(&mut self, game: &Game, winner: Side) {
        let winner = match winner {
            Side::Village => "The village wins: no werewolf is alive.",
            Side::Werewolves => "The werewolves win: the humans are no more than they.",
        };
        self.lines.push(String::new());
        self.lines.push(winner.to_string());
        for role in Role::ALL {
            for player in game.deal.holders(role).iter() {
                let fate = if game.public.facts.alive.contains(player) {
                    "alive"
                } else {
                    "dead"
                };
                self.tell(format!(
                    "{} was {} ({fate}).",
                    name(player),
                    with_article(role)
                ));
            }
        }
    }
}

impl Observer for Story {
    fn notice(&mut self, game: &Game, event: Event) {
        if !matches!(event, Event::Votes(..)) {
            self.tell_votes();
        }
        match event {
            Event::Morning => self.morning(game),
            Event::Says(player, utterance) => self.says(player, utterance),
            Event::Settled | Event::TalkEnds => {}
            Event::Votes(player, target) => self.votes.push((player, target)),
            Event::Divines(player, result) => {
                let (seer, target) = (name(player), name(result.target));
                self.tell(format!("[{seer}, the seer, divines {target}.]"));
            }
            Event::Guards(player, target) => {
                let (bodyguard, target) = (name(player), name(target));
                self.tell(format!("[{bodyguard}, the bodyguard, guards {target}.]"));
            }
            Event::AttackVotes(player, target) => {
                self.tell(format!(
                    "[{}, a werewolf, wants {}.]",
                    name(player),
                    name(target)
                ));
            }
            Event::Executed(player) => self.tell(format!("{} is executed.", name(player))),
            Event::Attacked(None, _) => {}
            Event::Attacked(Some(target), dies) => {
                let outcome = if dies { "and kills" } else { "in vain" };
                self.tell(format!(
                    "[The attack falls on {}, {outcome}.]",
                    name(target)
                ));
            }
            Event::Over(winner) => self.reveal(game, winner),
        }
    }
}

fn names(players: PlayerSet) -> String {
    let names: Vec<String> = players.iter().map(name).collect();
    names.join(", ")
}

fn with_article(role: Role) -> String {
    match role {
        Role::Villager | Role::Werewolf => format!("a {}", role.name()),
        _ => format!("the {}", role.name()),
    }
}
