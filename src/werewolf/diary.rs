//! What learners did in one game, kept until the roles are revealed.

use std::ops::Range;

use super::q_table::{Decision, Variants};
use super::role_pattern::Knowledge;
use super::rules::{MAX_PLAYERS, Player};

/// One choice of a target.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    pub player: Player,
    pub day: u8,
    pub decision: Decision,
    pub target: Player,
    pub variants: Variants,
    pub known: Knowledge,
    /// States of the patterns looked at, a range of [`Diary::looked`]; empty for
    /// an explorer, who does not look.
    pub looked: Range<usize>,
}

/// What learners did in one game.
#[derive(Debug, Default)]
pub struct Diary {
    pub(super) choices: Vec<Choice>,
    pub(super) looked: Vec<u32>,
    /// Index into `choices` of each player's vote of today.
    votes: [usize; MAX_PLAYERS],
    /// Player, row and action of each entry used of the coming-out tables.
    pub(super) coming_out: Vec<(Player, usize, usize)>,
    /// The same of the fake-role tables.
    pub(super) fake_roles: Vec<(Player, usize, usize)>,
}

impl Diary {
    pub(super) fn clear(&mut self) {
        self.choices.clear();
        self.looked.clear();
        self.coming_out.clear();
        self.fake_roles.clear();
    }

    /// Notes a choice; a vote replaces the vote declared earlier today.
    pub(super) fn note(&mut self, choice: Choice, revised: bool) {
        let is_vote = matches!(choice.decision, Decision::Vote(_));
        let slot = &mut self.votes[usize::from(choice.player)];
        if is_vote && revised {
            self.choices[*slot] = choice;
        } else {
            if is_vote {
                *slot = self.choices.len();
            }
            self.choices.push(choice);
        }
    }

    /// The vote that `player` has declared today.
    pub(super) fn vote_of(&self, player: Player) -> &Choice {
        &self.choices[self.votes[usize::from(player)]]
    }
}
