//! One game from the deal to the reveal.
//!
//! The platform's order of events is kept: what is decided together is collected
//! first and then takes effect. Nothing here allocates, and every random choice
//! comes from one passed stream.
//!
//! Source: the AIWolf platform of spring 2015; paper, section 2.2.

use super::rules::{
    Deal, MAX_DAYS, MAX_PLAYERS, Player, PlayerSet, Role, Rules, Side, Species, below, shuffle,
};
use super::talk::{Claim, ComingOut, Judgement, ManyVotes, Utterance};
use super::view::{Facts, Night, Private, Public, View, leaders};
use crate::random::Rng;

/// Rounds in which declared votes may answer each other, on the platform the
/// talk rounds of a day.
const VOTE_ROUNDS: usize = 10;

/// What a player names another player for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ability {
    /// The seer looks at a species.
    Divine,
    /// The bodyguard keeps the attack from one player.
    Guard,
    /// A werewolf votes on whom to attack.
    Attack,
}

/// Who decides for the players at the table. Each call hands over the view of the
/// player that has to decide, and nothing else.
pub trait Players {
    /// Whether anybody listens to the talk; if not, the day goes without it.
    const LISTEN: bool;

    /// What a possessed or a werewolf claims to be; `None` is a villager, who
    /// claims nothing. `whispered` is the choice of the werewolf who whispered
    /// first, if one did.
    fn fake_role(
        &mut self,
        view: View,
        whispered: Option<Option<Claim>>,
        rng: &mut Rng,
    ) -> Option<Claim>;

    /// When to come out as `claim`.
    fn coming_out(&mut self, view: View, claim: Claim, rng: &mut Rng) -> ComingOut;

    /// The made-up result of last night, about one of `candidates`.
    fn lie(&mut self, view: View, claim: Claim, candidates: PlayerSet, rng: &mut Rng) -> Judgement;

    /// The vote, for any living player. `previous` is the vote declared earlier
    /// today, if there is one.
    fn vote(&mut self, view: View, previous: Option<Player>, rng: &mut Rng) -> Player;

    /// Whether the player may change its vote because of declared votes.
    fn hears_votes(&self, player: Player) -> bool;

    /// The target of an ability, one of `candidates`.
    fn target(
        &mut self,
        view: View,
        ability: Ability,
        candidates: PlayerSet,
        rng: &mut Rng,
    ) -> Player;
}

/// What happens in a game, in order, for readers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event {
    /// A day begins.
    Morning,
    /// A player says something.
    Says(Player, Utterance),
    /// What was said has settled; what follows answers it.
    Settled,
    /// The talk of the day is over.
    TalkEnds,
    /// A player votes for another.
    Votes(Player, Player),
    /// The seer divines a player.
    Divines(Player, Judgement),
    /// The bodyguard guards a player.
    Guards(Player, Player),
    /// A werewolf votes for the attack on a player.
    AttackVotes(Player, Player),
    /// A player is executed.
    Executed(Player),
    /// The attack falls on the player, who dies if the flag is set; `None`
    /// without an attack.
    Attacked(Option<Player>, bool),
    /// A side has won.
    Over(Side),
}

/// Follows a game. `()` follows nothing.
pub trait Observer {
    /// Takes note of `event`; `game` is as the event leaves it.
    fn notice(&mut self, game: &Game, event: Event);
}

impl Observer for () {
    fn notice(&mut self, _: &Game, _: Event) {}
}

/// A game under way, or finished: everything that happened, with the roles.
#[derive(Debug, Clone)]
pub struct Game<'a> {
    /// The rules.
    pub rules: &'a Rules,
    /// Who holds which role.
    pub deal: Deal,
    /// What everybody knows.
    pub public: Public,
    private: [Private; MAX_PLAYERS],
    /// The facts of each day as it began.
    pub mornings: [Facts; MAX_DAYS],
    /// The facts of each day once the talk was over.
    pub evenings: [Facts; MAX_DAYS],
}

impl<'a> Game<'a> {
    /// The start of a game.
    pub fn new(rules: &'a Rules, deal: Deal) -> Game<'a> {
        let public = Public::new(rules.players());
        Game {
            rules,
            deal,
            private: std::array::from_fn(|player| Private::new(&deal, player as Player)),
            mornings: [public.facts; MAX_DAYS],
            evenings: [public.facts; MAX_DAYS],
            public,
        }
    }

    /// What `player` knows.
    pub fn view(&self, player: Player) -> View<'_> {
        View {
            rules: self.rules,
            public: &self.public,
            own: &self.private[usize::from(player)],
        }
    }

    /// The last day on which anybody decided anything.
    pub fn last_day(&self) -> usize {
        usize::from(self.public.facts.day) - 1
    }

    /// The side that has won, if the game is over.
    pub fn winner(&self) -> Option<Side> {
        let werewolves = self.public.facts.alive & self.deal.werewolves();
        let humans = self.public.facts.alive - werewolves;
        if werewolves.is_empty() {
            Some(Side::Village)
        } else if humans.len() <= werewolves.len() {
            Some(Side::Werewolves)
        } else {
            None
        }
    }

    fn private_mut(&mut self, player: Player) -> &mut Private {
        &mut self.private[usize::from(player)]
    }

    /// The living holder of a role that one player at most holds.
    fn living(&self, role: Role) -> Option<Player> {
        let holder = self.deal.holders(role) & self.public.facts.alive;
        holder.iter().next()
    }
}

/// Plays games by one rule set.
#[derive(Debug, Clone)]
pub struct Simulator {
    /// The rules.
    pub rules: Rules,
    /// When declared votes count as many, for coming out.
    pub many_votes: ManyVotes,
}

impl Simulator {
    /// A simulator of `rules`.
    pub fn new(rules: Rules) -> Simulator {
        Simulator {
            rules,
            many_votes: ManyVotes::default(),
        }
    }

    /// Deals the roles and plays one game.
    pub fn play<P: Players>(&self, players: &mut P, rng: &mut Rng) -> (Game<'_>, Side) {
        let deal = self.rules.deal(rng);
        self.play_deal(deal, players, rng, &mut ())
    }

    /// Plays one game with the given roles, watched by `observer`.
    pub fn play_deal<P: Players>(
        &self,
        deal: Deal,
        players: &mut P,
        rng: &mut Rng,
        observer: &mut impl Observer,
    ) -> (Game<'_>, Side) {
        let mut play = Play {
            game: Game::new(&self.rules, deal),
            many_votes: self.many_votes,
            divined: None,
            players,
            rng,
            observer,
        };
        let winner = play.play_out();
        (play.game, winner)
    }
}

/// The hands that move a game on.
struct Play<'a, 'p, P, O> {
    game: Game<'a>,
    many_votes: ManyVotes,
    /// Whom the seer divined last night.
    divined: Option<Player>,
    players: &'p mut P,
    rng: &'p mut Rng,
    observer: &'p mut O,
}

impl<P: Players, O: Observer> Play<'_, '_, P, O> {
    fn play_out(&mut self) -> Side {
        if P::LISTEN {
            self.plan();
        }
        loop {
            if let Some(winner) = self.game.winner() {
                self.notice(Event::Over(winner));
                return winner;
            }
            self.morning();
            self.day();
            self.night();
        }
    }

    fn notice(&mut self, event: Event) {
        self.observer.notice(&self.game, event);
    }

    fn today(&self) -> usize {
        usize::from(self.game.public.facts.day)
    }

    /// Everyone who may ever come out settles as what and when.
    fn plan(&mut self) {
        let deal = self.game.deal;
        for player in deal.holders(Role::Seer).iter() {
            self.game.private_mut(player).claim = Some(Claim::Seer);
        }
        for player in deal.holders(Role::Medium).iter() {
            self.game.private_mut(player).claim = Some(Claim::Medium);
        }
        for player in deal.holders(Role::Possessed).iter() {
            let view = self.game.view(player);
            let claim = self.players.fake_role(view, None, self.rng);
            self.game.private_mut(player).claim = claim;
        }
        self.whisper();
        for player in self.game.rules.everyone().iter() {
            let view = self.game.view(player);
            if let Some(claim) = view.own.claim {
                let coming_out = self.players.coming_out(view, claim, self.rng);
                self.game.private_mut(player).coming_out = coming_out;
            }
        }
    }

    /// The werewolves tell each other what they will claim to be, in random order.
    fn whisper(&mut self) {
        let mut order = [0; MAX_PLAYERS];
        let werewolves = self.game.deal.werewolves();
        for (slot, player) in order.iter_mut().zip(werewolves.iter()) {
            *slot = player;
        }
        let order = &mut order[..werewolves.len()];
        shuffle(order, self.rng);
        let mut first = None;
        for &player in order.iter() {
            let view = self.game.view(player);
            let claim = self.players.fake_role(view, first, self.rng);
            self.game.private_mut(player).claim = claim;
            first.get_or_insert(claim);
        }
    }

    /// Results of the night reach those who live.
    fn morning(&mut self) {
        let today = self.today();
        self.game.mornings[today] = self.game.public.facts;
        if P::LISTEN && today > 0 {
            self.hand_out_results();
            self.make_up_results();
        }
        self.notice(Event::Morning);
    }

    fn hand_out_results(&mut self) {
        let deal = self.game.deal;
        let result = |target| Judgement {
            target,
            species: deal.species(target),
        };
        if let (Some(seer), Some(target)) = (self.game.living(Role::Seer), self.divined) {
            self.game.private_mut(seer).add_result(result(target));
        }
        let executed = self.game.public.facts.executed_last;
        if let (Some(medium), Some(target)) =
            (self.game.living(Role::Medium), executed.iter().next())
        {
            self.game.private_mut(medium).add_result(result(target));
        }
    }

    /// Fakers make up the result of last night, whether they are out or not.
    fn make_up_results(&mut self) {
        let deal = self.game.deal;
        let facts = self.game.public.facts;
        let fakers = deal.holders(Role::Possessed) | deal.werewolves();
        for player in (fakers & facts.alive).iter() {
            let view = self.game.view(player);
            let Some(claim) = view.own.claim else {
                continue;
            };
            let candidates = lie_candidates(&facts, claim);
            if !candidates.is_empty() {
                let lie = self.players.lie(view, claim, candidates, self.rng);
                self.game.private_mut(player).add_result(lie);
            }
        }
    }

    /// Talk and vote.
    fn day(&mut self) {
        let alive = self.game.public.facts.alive;
        if P::LISTEN {
            self.talk();
        } else if self.today() > 0 {
            for player in alive.iter() {
                self.declare_vote(player);
            }
        }
        let today = self.today();
        self.game.evenings[today] = self.game.public.facts;
        self.notice(Event::TalkEnds);
        for player in alive.iter() {
            if let Some(target) = self.game.public.declared[usize::from(player)] {
                self.notice(Event::Votes(player, target));
            }
        }
    }

    /// Claims and judgements until nobody has any, then votes; again if a
    /// declared vote made somebody come out.
    fn talk(&mut self) {
        self.claims_and_judgements();
        if self.today() == 0 {
            return;
        }
        loop {
            self.declare_votes();
            if !self.claims_and_judgements() {
                return;
            }
        }
    }

    /// Lets everybody come out and report until nothing is left to say, and
    /// tells whether anything was said.
    fn claims_and_judgements(&mut self) -> bool {
        let heard_before = self.game.public.heard;
        loop {
            let heard = self.game.public.heard;
            for player in self.game.public.facts.alive.iter() {
                self.come_out_and_report(player);
            }
            if self.game.public.heard == heard {
                break;
            }
        }
        self.notice(Event::Settled);
        self.game.public.heard != heard_before
    }

    fn come_out_and_report(&mut self, player: Player) {
        let view = self.game.view(player);
        let own = *view.own;
        let Some(claim) = own.claim else { return };
        if !self.game.public.facts.claimants().contains(player) {
            if !own.coming_out.is_due(view, claim, self.many_votes) {
                return;
            }
            self.game.public.claim(player, claim);
            self.notice(Event::Says(player, Utterance::ComingOut(claim)));
        }
        for &judgement in &own.results()[usize::from(own.reported)..] {
            self.game.public.report(player, judgement);
            let utterance = match claim {
                Claim::Seer => Utterance::Divined(judgement),
                Claim::Medium => Utterance::Inquested(judgement),
            };
            self.notice(Event::Says(player, utterance));
        }
        self.game.private_mut(player).reported = own.results().len() as u8;
    }

    /// Everybody chooses a vote, knowing all claims and judgements. Players who
    /// listen to declared votes answer them, in an order shuffled each round.
    fn declare_votes(&mut self) {
        let alive = self.game.public.facts.alive;
        for player in alive.iter() {
            self.declare_vote(player);
        }
        let listeners = alive
            .iter()
            .filter(|&player| self.players.hears_votes(player));
        let listeners: PlayerSet = listeners.collect();
        if !listeners.is_empty() {
            self.answer_votes(listeners);
        }
    }

    fn answer_votes(&mut self, listeners: PlayerSet) {
        let mut order = [0; MAX_PLAYERS];
        for (slot, player) in order.iter_mut().zip(listeners.iter()) {
            *slot = player;
        }
        let order = &mut order[..listeners.len()];
        for _ in 0..VOTE_ROUNDS {
            let before = self.game.public.declared;
            shuffle(order, self.rng);
            for &player in order.iter() {
                self.declare_vote(player);
            }
            if self.game.public.declared == before {
                return;
            }
        }
    }

    fn declare_vote(&mut self, player: Player) {
        let previous = self.game.public.declared[usize::from(player)];
        let view = self.game.view(player);
        let vote = self.players.vote(view, previous, self.rng);
        debug_assert!(self.game.public.facts.alive.contains(vote));
        if previous != Some(vote) {
            self.game.public.declared[usize::from(player)] = Some(vote);
            self.notice(Event::Says(player, Utterance::Vote(vote)));
        }
    }

    /// All choices of the night are made; then the execution, then the attack.
    fn night(&mut self) {
        let today = self.today();
        self.divined = self.divine();
        let mut executed = PlayerSet::EMPTY;
        let mut attacked = PlayerSet::EMPTY;
        if today > 0 {
            let guarded = self.guard();
            let attack_votes = self.attack_votes();
            executed = self.execute();
            let guarded = match self.game.living(Role::Bodyguard) {
                Some(bodyguard)
                    if executed.contains(bodyguard)
                        && !self.game.rules.executed_bodyguard_guards =>
                {
                    None
                }
                _ => guarded,
            };
            attacked = self.attack(executed, guarded, &attack_votes);
        }
        let facts = &mut self.game.public.facts;
        self.game.public.nights[today] = Night {
            alive: facts.alive,
            executed,
            attacked,
        };
        facts.alive = facts.alive - executed - attacked;
        facts.attacked |= attacked;
        facts.executed_last = executed;
        facts.attacked_last = attacked;
        facts.day += 1;
        let public = &mut self.game.public;
        public.votes = std::mem::replace(&mut public.declared, [None; MAX_PLAYERS]);
    }

    fn divine(&mut self) -> Option<Player> {
        let seer = self.game.living(Role::Seer)?;
        let candidates = self.game.public.facts.alive;
        let target = self.target(seer, Ability::Divine, candidates);
        let species = self.game.deal.species(target);
        self.notice(Event::Divines(seer, Judgement { target, species }));
        Some(target)
    }

    fn guard(&mut self) -> Option<Player> {
        let bodyguard = self.game.living(Role::Bodyguard)?;
        let mut candidates = self.game.public.facts.alive;
        if !self.game.rules.may_guard_oneself {
            candidates.remove(bodyguard);
        }
        let target = self.target(bodyguard, Ability::Guard, candidates);
        let today = self.today();
        self.game.private_mut(bodyguard).guarded[today] = PlayerSet::only(target);
        self.notice(Event::Guards(bodyguard, target));
        Some(target)
    }

    /// Each living werewolf's vote for the attack.
    fn attack_votes(&mut self) -> [Option<Player>; MAX_PLAYERS] {
        let alive = self.game.public.facts.alive;
        let werewolves = self.game.deal.werewolves();
        let mut votes = [None; MAX_PLAYERS];
        for player in (werewolves & alive).iter() {
            let target = self.target(player, Ability::Attack, alive - werewolves);
            votes[usize::from(player)] = Some(target);
            self.notice(Event::AttackVotes(player, target));
        }
        votes
    }

    fn target(&mut self, player: Player, ability: Ability, candidates: PlayerSet) -> Player {
        let view = self.game.view(player);
        let target = self.players.target(view, ability, candidates, self.rng);
        debug_assert!(candidates.contains(target));
        target
    }

    /// Counts the votes; ties are drawn.
    fn execute(&mut self) -> PlayerSet {
        let executed = leaders(&self.game.public.declared_counts()).pick(self.rng);
        self.notice(Event::Executed(executed));
        PlayerSet::only(executed)
    }

    /// The werewolves' votes and one more for every human alive at dusk decide
    /// on whom the attack falls; tells who dies of it.
    fn attack(
        &mut self,
        executed: PlayerSet,
        guarded: Option<Player>,
        votes: &[Option<Player>; MAX_PLAYERS],
    ) -> PlayerSet {
        let alive = self.game.public.facts.alive;
        let attackers = (alive & self.game.deal.werewolves()) - executed;
        if attackers.is_empty() {
            self.notice(Event::Attacked(None, false));
            return PlayerSet::EMPTY;
        }
        let mut list = alive - self.game.deal.werewolves();
        if !self.game.rules.executed_on_attack_list {
            list = list - executed;
        }
        let mut counts = [0; MAX_PLAYERS];
        for player in list.iter() {
            counts[usize::from(player)] = 1;
        }
        for player in attackers.iter() {
            match votes[usize::from(player)] {
                Some(target) if list.contains(target) => counts[usize::from(target)] += 1,
                _ => {}
            }
        }
        let target = leaders(&counts).pick(self.rng);
        let dies = guarded != Some(target) && !executed.contains(target);
        self.notice(Event::Attacked(Some(target), dies));
        if dies {
            PlayerSet::only(target)
        } else {
            PlayerSet::EMPTY
        }
    }
}

/// About whom a faker may make up a result this morning: a seer's about anyone
/// alive last evening, a medium's about yesterday's executed.
pub fn lie_candidates(facts: &Facts, claim: Claim) -> PlayerSet {
    match claim {
        Claim::Seer => facts.alive | facts.executed_last | facts.attacked_last,
        Claim::Medium => facts.executed_last,
    }
}

/// Every choice uniform over what the rules allow: the paper's random player.
/// Its votes and targets do not depend on the talk, so a game among such players
/// alone may go without (`LISTEN` = false).
#[derive(Debug, Clone, Copy, Default)]
pub struct Uniform<const LISTEN: bool>;

impl<const LISTEN: bool> Players for Uniform<LISTEN> {
    const LISTEN: bool = LISTEN;

    fn fake_role(&mut self, view: View, _: Option<Option<Claim>>, rng: &mut Rng) -> Option<Claim> {
        uniform_fake_role(view.rules, rng)
    }

    fn coming_out(&mut self, _: View, _: Claim, rng: &mut Rng) -> ComingOut {
        uniform_coming_out(rng)
    }

    fn lie(&mut self, _: View, _: Claim, candidates: PlayerSet, rng: &mut Rng) -> Judgement {
        uniform_lie(candidates, rng)
    }

    fn vote(&mut self, view: View, previous: Option<Player>, rng: &mut Rng) -> Player {
        previous.unwrap_or_else(|| view.public.facts.alive.pick(rng))
    }

    fn hears_votes(&self, _: Player) -> bool {
        false
    }

    fn target(&mut self, _: View, _: Ability, candidates: PlayerSet, rng: &mut Rng) -> Player {
        candidates.pick(rng)
    }
}

/// A uniform choice of what to claim to be.
pub fn uniform_fake_role(rules: &Rules, rng: &mut Rng) -> Option<Claim> {
    let choices = fake_roles(rules);
    choices[below(rng, choices.len() as u32) as usize]
}

/// What may be claimed under `rules`; `None` stands for a villager.
pub fn fake_roles(rules: &Rules) -> &'static [Option<Claim>] {
    const ALL: [Option<Claim>; 3] = [None, Some(Claim::Seer), Some(Claim::Medium)];
    match rules.count(Role::Medium) {
        0 => &ALL[..2],
        _ => &ALL,
    }
}

/// A uniform choice of when to come out.
pub fn uniform_coming_out(rng: &mut Rng) -> ComingOut {
    ComingOut::from_index(below(rng, ComingOut::CHOICES as u32) as usize)
}

/// A uniform lie.
pub fn uniform_lie(candidates: PlayerSet, rng: &mut Rng) -> Judgement {
    let target = candidates.pick(rng);
    let species = match below(rng, 2) {
        0 => Species::Human,
        _ => Species::Werewolf,
    };
    Judgement { target, species }
}
