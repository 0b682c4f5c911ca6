//! A game as the lines of an AIWolf log file.
//!
//! Source: the log format of the AIWolf platform. Players are numbered from 1
//! there. What is said comes in rounds with a shuffled order, as on the platform;
//! rounds go on until everybody has said Over.

use std::collections::VecDeque;

use super::rules::{Deal, MAX_PLAYERS, Player, PlayerSet, Role, Side, Species, shuffle};
use super::simulator::{Event, Game, Observer};
use super::talk::Utterance;
use crate::random::Rng;

/// Writes the log of a game.
#[derive(Debug)]
pub struct CsvLog {
    /// The lines so far.
    pub lines: Vec<String>,
    /// Draws the order of speaking; not the stream of the game, which is the same
    /// with and without a log.
    order: Rng,
    talk: Talk,
}

/// The talk of one day.
#[derive(Debug, Default)]
struct Talk {
    waiting: [VecDeque<Utterance>; MAX_PLAYERS],
    said: usize,
    rounds: usize,
    over: PlayerSet,
}

impl CsvLog {
    /// An empty log, in which `order` shuffles the rounds of talk.
    pub fn new(order: Rng) -> CsvLog {
        CsvLog {
            lines: Vec::new(),
            order,
            talk: Talk::default(),
        }
    }

    fn line(&mut self, game: &Game, rest: String) {
        self.lines.push(format!("{},{rest}", game.public.facts.day));
    }

    fn status(&mut self, game: &Game) {
        for player in game.rules.everyone().iter() {
            let role = upper_case_role(game.deal.role(player));
            let status = if game.public.facts.alive.contains(player) {
                "ALIVE"
            } else {
                "DEAD"
            };
            let number = player + 1;
            self.line(
                game,
                format!("status,{number},{role},{status},{}", name(player)),
            );
        }
    }

    /// Rounds of talk until nobody has anything left to say.
    fn speak(&mut self, game: &Game) {
        while self.talk.waiting.iter().any(|waiting| !waiting.is_empty()) {
            self.round(game);
        }
    }

    /// One round; who has nothing to say says Over, once until somebody speaks.
    fn round(&mut self, game: &Game) {
        let mut order: Vec<Player> = game.public.facts.alive.iter().collect();
        shuffle(&mut order, &mut self.order);
        for player in order {
            match self.talk.waiting[usize::from(player)].pop_front() {
                Some(utterance) => {
                    self.talk.over = PlayerSet::EMPTY;
                    self.say(game, player, utterance);
                }
                None if self.talk.over.contains(player) => {}
                None => {
                    self.talk.over.insert(player);
                    self.say(game, player, Utterance::Over);
                }
            }
        }
        self.talk.rounds += 1;
    }

    fn say(&mut self, game: &Game, player: Player, utterance: Utterance) {
        let Talk { said, rounds, .. } = self.talk;
        let text = text(player, utterance);
        self.line(game, format!("talk,{said},{rounds},{},{text}", player + 1));
        self.talk.said += 1;
    }

    fn end_talk(&mut self, game: &Game) {
        self.speak(game);
        while !(game.public.facts.alive - self.talk.over).is_empty() {
            self.round(game);
        }
        self.talk = Talk::default();
    }
}

impl Observer for CsvLog {
    fn notice(&mut self, game: &Game, event: Event) {
        match event {
            Event::Morning => self.status(game),
            Event::Says(player, utterance) => {
                self.talk.waiting[usize::from(player)].push_back(utterance);
            }
            Event::Settled => self.speak(game),
            Event::TalkEnds => self.end_talk(game),
            Event::Votes(player, target) => {
                self.line(game, format!("vote,{},{}", player + 1, target + 1));
            }
            Event::Divines(player, result) => {
                let (target, species) = (result.target + 1, upper_case_species(result.species));
                self.line(game, format!("divine,{},{target},{species}", player + 1));
            }
            Event::Guards(player, target) => {
                let role = upper_case_role(game.deal.role(target));
                self.line(game, format!("guard,{},{},{role}", player + 1, target + 1));
            }
            Event::AttackVotes(player, target) => {
                self.line(game, format!("attackVote,{},{}", player + 1, target + 1));
            }
            Event::Executed(player) => {
                let role = upper_case_role(game.deal.role(player));
                self.line(game, format!("execute,{},{role}", player + 1));
            }
            Event::Attacked(target, dies) => {
                let target = target.map_or(-1, |player| i32::from(player) + 1);
                self.line(game, format!("attack,{target},{dies}"));
            }
            Event::Over(winner) => {
                self.status(game);
                let alive = game.public.facts.alive;
                let (humans, werewolves) = headcount(&game.deal, alive);
                let winner = match winner {
                    Side::Village => "VILLAGER",
                    Side::Werewolves => "WEREWOLF",
                };
                self.line(game, format!("result,{humans},{werewolves},{winner}"));
            }
        }
    }
}

fn headcount(deal: &Deal, alive: PlayerSet) -> (usize, usize) {
    let werewolves = (alive & deal.werewolves()).len();
    (alive.len() - werewolves, werewolves)
}

/// The name of a player: `Agent[01]` for player 0.
pub fn name(player: Player) -> String {
    format!("Agent[{:02}]", player + 1)
}

fn text(player: Player, utterance: Utterance) -> String {
    match utterance {
        Utterance::ComingOut(claim) => {
            format!(
                "COMINGOUT {} {}",
                name(player),
                upper_case_role(claim.role())
            )
        }
        Utterance::Divined(result) => {
            format!(
                "DIVINED {} {}",
                name(result.target),
                upper_case_species(result.species)
            )
        }
        Utterance::Inquested(result) => {
            format!(
                "IDENTIFIED {} {}",
                name(result.target),
                upper_case_species(result.species)
            )
        }
        Utterance::Vote(target) => format!("VOTE {}", name(target)),
        Utterance::Over => "Over".to_string(),
    }
}

fn upper_case_role(role: Role) -> String {
    role.name().to_uppercase()
}

fn upper_case_species(species: Species) -> &'static str {
    match species {
        Species::Human => "HUMAN",
        Species::Werewolf => "WEREWOLF",
    }
}
