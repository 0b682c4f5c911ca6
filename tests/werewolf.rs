//! The Werewolf world: rules, patterns, learning, and the figures to hold.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tanren::experiments::werewolf_q::WerewolfQ;
use tanren::lab::{Experiment, Metrics, Setup};
use tanren::random::{Rng, Seed, mix as mix_bits};
use tanren::werewolf::company::{Company, Policy, Scratch, Seat};
use tanren::werewolf::config::{Config, DeclaredVotes, LearningRate, VoteCredit, WeightRule};
use tanren::werewolf::evaluation::{Evaluation, Subject, Table, uniform_village_wins};
use tanren::werewolf::explain::explain;
use tanren::werewolf::log::CsvLog;
use tanren::werewolf::population::{Environment, mix};
use tanren::werewolf::posterior::{pattern_chances, werewolf_chances};
use tanren::werewolf::q_table::{Decision, Tables};
use tanren::werewolf::role_pattern::{Knowledge, Pattern, allows_bystander, enumerate};
use tanren::werewolf::rules::{Deal, Player, PlayerSet, Role, Rules, Side, Species};
use tanren::werewolf::simulator::{Ability, Event, Game, Observer, Players, Simulator, Uniform};
use tanren::werewolf::storage;
use tanren::werewolf::story::Story;
use tanren::werewolf::talk::{Claim, ComingOut, Judgement, ManyVotes, Utterance};
use tanren::werewolf::view::{Private, Public, View};

/// The village's exact chance when every choice is uniform, by recursion over
/// the living werewolves and humans and whether the bodyguard is among them.
fn exact_village_chance(rules: &Rules, werewolves: usize, humans: usize, bodyguard: bool) -> f64 {
    if werewolves == 0 {
        return 1.0;
    }
    if humans <= werewolves {
        return 0.0;
    }
    let living = (werewolves + humans) as f64;
    let others = humans - usize::from(bodyguard);
    // Executed: a werewolf, the bodyguard, or some other human.
    let mut chance =
        werewolves as f64 / living * after_attack(rules, werewolves - 1, humans, bodyguard, None);
    if bodyguard {
        chance += 1.0 / living * after_attack(rules, werewolves, humans, bodyguard, Some(true));
    }
    chance
        + others as f64 / living * after_attack(rules, werewolves, humans, bodyguard, Some(false))
}

/// The chance after today's attack. `werewolves` are those left after the
/// execution, `humans` and `bodyguard` those alive at dusk, and `executed` tells
/// whether a human was executed, and whether that was the bodyguard.
fn after_attack(
    rules: &Rules,
    werewolves: usize,
    humans: usize,
    bodyguard: bool,
    executed: Option<bool>,
) -> f64 {
    if werewolves == 0 {
        return 1.0;
    }
    let human_executed = executed.is_some();
    let bodyguard_executed = executed == Some(true);
    let left = humans - usize::from(human_executed);
    let bodyguard_left = bodyguard && !bodyguard_executed;
    let at_dusk = werewolves + humans + usize::from(!human_executed);
    let guards = bodyguard && (rules.executed_bodyguard_guards || !bodyguard_executed);
    let guards_other = match (guards, rules.may_guard_oneself) {
        (false, _) => 0.0,
        (true, true) => 1.0 / at_dusk as f64,
        (true, false) => 1.0 / (at_dusk - 1) as f64,
    };
    let guards_oneself = if rules.may_guard_oneself {
        guards_other
    } else {
        0.0
    };
    let list = if rules.executed_on_attack_list {
        humans
    } else {
        left
    } as f64;
    let others = (left - usize::from(bodyguard_left)) as f64;
    let other_dies = others / list * (1.0 - guards_other);
    let bodyguard_dies = if bodyguard_left {
        (1.0 - guards_oneself) / list
    } else {
        0.0
    };
    let next = |humans, bodyguard| exact_village_chance(rules, werewolves, humans, bodyguard);
    let mut chance = (1.0 - other_dies - bodyguard_dies) * next(left, bodyguard_left);
    if other_dies > 0.0 {
        chance += other_dies * next(left - 1, bodyguard_left);
    }
    if bodyguard_dies > 0.0 {
        chance += bodyguard_dies * next(left - 1, false);
    }
    chance
}

fn rule_variants() -> [(Rules, f64); 4] {
    let rules = Rules::paper2015();
    [
        (rules.clone(), 36.2701),
        (
            Rules {
                may_guard_oneself: false,
                ..rules.clone()
            },
            36.1165,
        ),
        (
            Rules {
                executed_bodyguard_guards: false,
                ..rules.clone()
            },
            36.0329,
        ),
        (
            Rules {
                executed_on_attack_list: false,
                ..rules
            },
            34.2251,
        ),
    ]
}

#[test]
fn exact_recursion_gives_the_known_figures() {
    for (rules, percent) in rule_variants() {
        let chance = 100.0 * exact_village_chance(&rules, 2, 9, true);
        assert!(
            (chance - percent).abs() < 5e-5,
            "{chance} instead of {percent}"
        );
    }
}

#[test]
fn simulated_games_agree_with_the_recursion() {
    let games = 200_000;
    for (rules, percent) in rule_variants() {
        let simulator = Simulator::new(rules);
        let streams = Seed(1).purpose("recursion");
        let wins = (0..games)
            .filter(|&game| {
                let mut rng = streams.stream(0, game);
                simulator.play(&mut Uniform::<false>, &mut rng).1 == Side::Village
            })
            .count();
        let simulated = 100.0 * wins as f64 / games as f64;
        // Four standard deviations.
        assert!(
            (simulated - percent).abs() < 0.43,
            "{simulated} instead of {percent}"
        );
    }
}

/// Every assignment of roles that an observer with `known` cannot rule out by
/// the definitions, projected to patterns: the slow twin of `enumerate`.
fn oracle(rules: &Rules, public: &Public, known: &Knowledge) -> BTreeSet<Pattern> {
    let players = rules.players();
    let mut found = BTreeSet::new();
    for_each_deal(rules, &mut Vec::with_capacity(players), &mut |roles| {
        let deal = Deal::new(roles);
        if is_consistent(public, known, &deal) {
            found.insert(Pattern::truth(&public.facts, known, &deal));
        }
    });
    found
}

fn for_each_deal(rules: &Rules, roles: &mut Vec<Role>, visit: &mut impl FnMut(&[Role])) {
    if roles.len() == rules.players() {
        return visit(roles);
    }
    for role in Role::ALL {
        if roles.iter().filter(|&&other| other == role).count() < rules.count(role) {
            roles.push(role);
            for_each_deal(rules, roles, visit);
            roles.pop();
        }
    }
}

fn is_consistent(public: &Public, known: &Knowledge, deal: &Deal) -> bool {
    let facts = &public.facts;
    let everyone = public.everyone;
    let own_role = known
        .oneself
        .iter()
        .all(|player| Some(deal.role(player)) == known.role);
    let humans = known.humans | facts.attacked;
    own_role
        && everyone.iter().all(|player| {
            let role = deal.role(player);
            let liar = matches!(role, Role::Possessed | Role::Werewolf);
            let claim_fits = (!facts.seers.contains(player) || role == Role::Seer || liar)
                && (!facts.mediums.contains(player) || role == Role::Medium || liar);
            let species_fits = match role {
                Role::Werewolf => !humans.contains(player),
                _ => !known.werewolves.contains(player),
            };
            let i = usize::from(player);
            let truthful = public.called_human[i]
                .iter()
                .all(|j| deal.species(j) == Species::Human)
                && public.called_werewolf[i]
                    .iter()
                    .all(|j| deal.species(j) == Species::Werewolf);
            claim_fits && species_fits && (liar || truthful)
        })
}

fn fast(rules: &Rules, public: &Public, known: &Knowledge) -> BTreeSet<Pattern> {
    let mut patterns = Vec::new();
    enumerate(rules, public, known, &mut patterns);
    let set: BTreeSet<Pattern> = patterns.iter().copied().collect();
    assert_eq!(set.len(), patterns.len(), "a pattern was found twice");
    set
}

fn judgement(target: Player, species: Species) -> Judgement {
    Judgement { target, species }
}

#[test]
fn the_papers_table_1_has_its_nine_patterns() {
    let rules = Rules::paper2015();
    let mut public = Public::new(11);
    let [a, b, c] = [0, 1, 2];
    public.claim(a, Claim::Seer);
    public.claim(b, Claim::Seer);
    public.report(a, judgement(c, Species::Human));
    public.report(b, judgement(c, Species::Werewolf));
    let word = |pattern: &Pattern, player: Player| {
        if pattern.seer.contains(player) {
            "seer"
        } else if pattern.possessed.contains(player) {
            "possessed"
        } else if pattern.werewolves.contains(player) {
            "werewolf"
        } else {
            "human"
        }
    };
    let found: BTreeSet<[&str; 3]> = fast(&rules, &public, &Knowledge::OUTSIDER)
        .iter()
        .map(|pattern| [a, b, c].map(|player| word(pattern, player)))
        .collect();
    let table_1 = BTreeSet::from([
        ["seer", "possessed", "human"],
        ["seer", "werewolf", "human"],
        ["possessed", "seer", "werewolf"],
        ["possessed", "werewolf", "human"],
        ["possessed", "werewolf", "werewolf"],
        ["werewolf", "seer", "werewolf"],
        ["werewolf", "possessed", "human"],
        ["werewolf", "possessed", "werewolf"],
        ["werewolf", "werewolf", "human"],
    ]);
    assert_eq!(found, table_1);
}

/// Plays like [`Uniform`] and calls `check` with every view that it is handed.
struct Checking<F>(F);

impl<F: FnMut(View)> Players for Checking<F> {
    const LISTEN: bool = true;

    fn fake_role(
        &mut self,
        view: View,
        first: Option<Option<Claim>>,
        rng: &mut Rng,
    ) -> Option<Claim> {
        Uniform::<true>.fake_role(view, first, rng)
    }
    fn coming_out(&mut self, view: View, claim: Claim, rng: &mut Rng) -> ComingOut {
        Uniform::<true>.coming_out(view, claim, rng)
    }
    fn lie(&mut self, view: View, claim: Claim, candidates: PlayerSet, rng: &mut Rng) -> Judgement {
        (self.0)(view);
        Uniform::<true>.lie(view, claim, candidates, rng)
    }
    fn vote(&mut self, view: View, previous: Option<Player>, rng: &mut Rng) -> Player {
        (self.0)(view);
        Uniform::<true>.vote(view, previous, rng)
    }
    fn hears_votes(&self, _: Player) -> bool {
        false
    }
    fn target(
        &mut self,
        view: View,
        ability: Ability,
        candidates: PlayerSet,
        rng: &mut Rng,
    ) -> Player {
        (self.0)(view);
        Uniform::<true>.target(view, ability, candidates, rng)
    }
}

/// Plays `games` games and hands every view, with the deal, to `check`.
fn for_each_view(rules: &Rules, games: u64, mut check: impl FnMut(&Deal, View)) {
    let simulator = Simulator::new(rules.clone());
    for game in 0..games {
        let mut rng = Seed(3).purpose("views").stream(0, game);
        let deal = rules.deal(&mut rng);
        let mut players = Checking(|view: View<'_>| check(&deal, view));
        simulator.play_deal(deal, &mut players, &mut rng, &mut ());
    }
}

#[test]
fn the_true_pattern_is_in_every_view_exactly_once() {
    for rules in Rules::ALL {
        for_each_view(&rules, 2_000, |deal, view| {
            for known in [Knowledge::of(view), Knowledge::OUTSIDER] {
                let truth = Pattern::truth(&view.public.facts, &known, deal);
                assert!(
                    fast(&rules, view.public, &known).contains(&truth),
                    "{view:?}"
                );
            }
        });
    }
}

#[test]
fn patterns_are_those_of_all_assignments_of_roles() {
    for (rules, every) in [
        (Rules::for_players(5).unwrap(), 1),
        (Rules::paper2015(), 997),
    ] {
        let mut count = 0;
        for_each_view(&rules, 300, |_, view| {
            count += 1;
            if count % every == 0 {
                for known in [Knowledge::of(view), Knowledge::OUTSIDER] {
                    let expected = oracle(&rules, view.public, &known);
                    assert_eq!(fast(&rules, view.public, &known), expected, "{view:?}");
                }
            }
        });
        assert!(count > every);
    }
}

#[test]
fn a_bystander_filters_the_outsiders_patterns() {
    let rules = Rules::paper2015();
    for_each_view(&rules, 1_000, |_, view| {
        if matches!(view.own.role, Role::Villager | Role::Bodyguard) {
            let outsider = fast(&rules, view.public, &Knowledge::OUTSIDER);
            let allowed = |pattern: &&Pattern| {
                allows_bystander(&rules, view.public, pattern, view.own.player)
            };
            let filtered: BTreeSet<Pattern> = outsider.iter().filter(allowed).copied().collect();
            assert_eq!(filtered, fast(&rules, view.public, &Knowledge::of(view)));
        }
    });
}

#[test]
fn the_posterior_is_calibrated() {
    const BINS: usize = 20;
    let mut predicted = [0.0; BINS];
    let mut werewolves = [0.0; BINS];
    let mut count = [0.0; BINS];
    for_each_view(&Rules::paper2015(), 20_000, |deal, view| {
        if view.own.role != Role::Villager {
            return;
        }
        let chances = werewolf_chances(view);
        for player in view.public.facts.alive.iter() {
            let chance = chances[usize::from(player)];
            let bin = (chance * BINS as f64).min(BINS as f64 - 1.0) as usize;
            predicted[bin] += chance;
            werewolves[bin] += f64::from(u8::from(deal.role(player) == Role::Werewolf));
            count[bin] += 1.0;
        }
    });
    for bin in 0..BINS {
        let error = (predicted[bin] - werewolves[bin]) / count[bin];
        assert!(error.abs() < 0.015, "bin {bin}: off by {error}");
    }
}

/// Plays by a script. Where it names somebody who may not be chosen, the first
/// player who may is chosen instead.
struct Script {
    vote: fn(day: u8, player: Player) -> Player,
    ability: fn(day: u8, player: Player, ability: Ability) -> Player,
    fake_role: Option<Claim>,
    coming_out: ComingOut,
}

/// Nobody comes out; everybody names player 0 all the time.
const NAMES_PLAYER_0: Script = Script {
    vote: |_, _| 0,
    ability: |_, _, _| 0,
    fake_role: None,
    coming_out: ComingOut::NEVER,
};

fn allowed(target: Player, candidates: PlayerSet) -> Player {
    if candidates.contains(target) {
        target
    } else {
        candidates.iter().next().unwrap()
    }
}

impl Players for Script {
    const LISTEN: bool = true;

    fn fake_role(&mut self, _: View, _: Option<Option<Claim>>, _: &mut Rng) -> Option<Claim> {
        self.fake_role
    }
    fn coming_out(&mut self, _: View, _: Claim, _: &mut Rng) -> ComingOut {
        self.coming_out
    }
    fn lie(&mut self, _: View, _: Claim, candidates: PlayerSet, _: &mut Rng) -> Judgement {
        judgement(candidates.iter().next().unwrap(), Species::Human)
    }
    fn vote(&mut self, view: View, _: Option<Player>, _: &mut Rng) -> Player {
        let facts = &view.public.facts;
        allowed((self.vote)(facts.day, view.own.player), facts.alive)
    }
    fn hears_votes(&self, _: Player) -> bool {
        false
    }
    fn target(
        &mut self,
        view: View,
        ability: Ability,
        candidates: PlayerSet,
        _: &mut Rng,
    ) -> Player {
        allowed(
            (self.ability)(view.public.facts.day, view.own.player, ability),
            candidates,
        )
    }
}

/// All events of a game, with the public record as it was.
#[derive(Default)]
struct Recorder(Vec<(Public, Event)>);

impl Observer for Recorder {
    fn notice(&mut self, game: &Game, event: Event) {
        self.0.push((game.public.clone(), event));
    }
}

impl Recorder {
    fn events(&self) -> impl Iterator<Item = (u8, Event)> {
        self.0
            .iter()
            .map(|(public, event)| (public.facts.day, *event))
    }

    fn happened(&self, day: u8, event: Event) -> bool {
        self.events().any(|found| found == (day, event))
    }

    fn public_at(&self, day: u8) -> &Public {
        let morning =
            |found: &&(Public, Event)| found.1 == Event::Morning && found.0.facts.day == day;
        &self
            .0
            .iter()
            .find(morning)
            .expect("the game lasts until this day")
            .0
    }
}

const SEER: Player = 5;
const MEDIUM: Player = 6;
const BODYGUARD: Player = 7;
const WEREWOLVES: [Player; 2] = [9, 10];

/// The deal of the scripted games: the roles in order.
fn ordered_deal() -> Deal {
    Deal::new(&Rules::paper2015().roles().collect::<Vec<Role>>())
}

/// Plays a scripted game of eleven and hands the record and the end of it to `check`.
fn scripted(mut script: Script, seed: u64, check: impl Fn(&Recorder, &Game)) {
    let simulator = Simulator::new(Rules::paper2015());
    let mut record = Recorder::default();
    let mut rng = Seed(seed).stream("scripted");
    let played = simulator.play_deal(ordered_deal(), &mut script, &mut rng, &mut record);
    check(&record, &played.0);
}

#[test]
fn roles_are_dealt_uniformly() {
    for rules in Rules::ALL {
        let players = rules.players();
        let mut werewolf_first = 0;
        let mut rng = Seed(1).stream("deal");
        for _ in 0..20_000 {
            let deal = rules.deal(&mut rng);
            for role in Role::ALL {
                assert_eq!(deal.holders(role).len(), rules.count(role));
            }
            werewolf_first += u32::from(deal.role(0) == Role::Werewolf);
        }
        let expected = rules.count(Role::Werewolf) as f64 / players as f64;
        assert!((f64::from(werewolf_first) / 20_000.0 - expected).abs() < 0.015);
    }
}

#[test]
fn only_werewolves_know_each_other() {
    for_each_view(&Rules::paper2015(), 20, |deal, view| {
        let expected = match view.own.role {
            Role::Werewolf => deal.werewolves(),
            _ => PlayerSet::EMPTY,
        };
        assert_eq!(view.own.werewolves, expected);
    });
}

#[test]
fn the_possessed_is_human_and_wins_with_the_werewolves() {
    assert_eq!(Role::Possessed.species(), Species::Human);
    assert_eq!(Role::Possessed.side(), Side::Werewolves);
}

#[test]
fn day_0_has_a_divination_and_nothing_else() {
    scripted(NAMES_PLAYER_0, 1, |record, _| {
        let day_0: Vec<Event> = record
            .events()
            .filter(|found| found.0 == 0)
            .map(|found| found.1)
            .collect();
        let divination = Event::Divines(SEER, judgement(0, Species::Human));
        let silence = [Event::Morning, Event::Settled, Event::TalkEnds];
        assert_eq!(day_0, [&silence[..], &[divination]].concat());
    });
}

#[test]
fn most_votes_are_executed_and_a_vote_for_oneself_counts() {
    // Three votes for player 0, his own among them; the others vote 2, 2, 2, 1, 1.
    let vote = |_, player| [0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4][usize::from(player)];
    scripted(
        Script {
            vote,
            ..NAMES_PLAYER_0
        },
        1,
        |record, _| {
            assert!(record.happened(1, Event::Votes(0, 0)));
            assert!(record.happened(1, Event::Executed(0)));
        },
    );
}

#[test]
fn tied_votes_are_drawn_uniformly() {
    let mut executed = [0; 11];
    for seed in 0..2_000 {
        // Everybody votes for himself.
        let script = Script {
            vote: |_, player| player,
            ..NAMES_PLAYER_0
        };
        let simulator = Simulator::new(Rules::paper2015());
        let mut rng = Seed(seed).stream("ties");
        let mut script = script;
        let (game, _) = simulator.play_deal(ordered_deal(), &mut script, &mut rng, &mut ());
        let night = game.public.nights[1];
        executed[usize::from(night.executed.iter().next().unwrap())] += 1;
    }
    assert!(chi_square(&executed) < 29.6, "{executed:?}");
}

/// Chi-square against equal chances. The 99.9% quantile is 29.6 for 11 cells.
fn chi_square(counts: &[u32]) -> f64 {
    let expected = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
    counts
        .iter()
        .map(|&count| (f64::from(count) - expected).powi(2) / expected)
        .sum()
}

#[test]
fn night_choices_are_made_before_the_execution() {
    // The seer is executed on day 1 and has divined that evening.
    scripted(
        Script {
            vote: |_, _| SEER,
            ..NAMES_PLAYER_0
        },
        1,
        |record, game| {
            let divined = |found: (u8, Event)| matches!(found, (1, Event::Divines(SEER, _)));
            assert!(record.events().any(divined));
            // What he divined is lost with him; that of day 0 reached him.
            assert_eq!(game.view(SEER).own.results().len(), 1);
        },
    );
}

#[test]
fn the_medium_learns_the_species_of_the_executed_next_morning() {
    scripted(
        Script {
            vote: |_, _| WEREWOLVES[0],
            ..NAMES_PLAYER_0
        },
        1,
        |_, game| {
            let results = game.view(MEDIUM).own.results();
            assert_eq!(results[0], judgement(WEREWOLVES[0], Species::Werewolf));
        },
    );
}

#[test]
fn the_guard_of_an_executed_bodyguard_counts() {
    let vote = |_, _| BODYGUARD;
    let ability = |_, _, _| 3;
    scripted(
        Script {
            vote,
            ability,
            ..NAMES_PLAYER_0
        },
        1,
        |record, _| {
            assert!(record.happened(1, Event::Executed(BODYGUARD)));
            assert!(record.happened(1, Event::Attacked(Some(3), false)));
        },
    );
}

#[test]
fn the_bodyguard_may_guard_himself_again_and_again() {
    let vote = |day, _| if day == 1 { 1 } else { 2 };
    let ability = |_, _, _| BODYGUARD;
    scripted(
        Script {
            vote,
            ability,
            ..NAMES_PLAYER_0
        },
        1,
        |record, _| {
            for day in 1..=2 {
                assert!(record.happened(day, Event::Guards(BODYGUARD, BODYGUARD)));
                assert!(record.happened(day, Event::Attacked(Some(BODYGUARD), false)));
            }
        },
    );
}

#[test]
fn werewolves_who_agree_outvote_the_phantom_votes() {
    let ability = |_, _, ability| if ability == Ability::Attack { 4 } else { 0 };
    scripted(
        Script {
            ability,
            ..NAMES_PLAYER_0
        },
        1,
        |record, _| {
            assert!(record.happened(1, Event::Attacked(Some(4), true)));
        },
    );
}

#[test]
fn the_vote_of_an_executed_werewolf_is_dropped() {
    // Werewolf 9 is executed; it wanted 3, the other wants 4.
    let vote = |_, _| WEREWOLVES[0];
    let ability = |_, player, ability| match ability {
        Ability::Attack if player == WEREWOLVES[0] => 3,
        Ability::Attack => 4,
        _ => 0,
    };
    for seed in 0..20 {
        scripted(
            Script {
                vote,
                ability,
                ..NAMES_PLAYER_0
            },
            seed,
            |record, _| {
                assert!(record.happened(1, Event::Attacked(Some(4), true)));
            },
        );
    }
}

#[test]
fn nobody_dies_if_the_attack_falls_on_the_executed() {
    let vote = |_, _| 4;
    let ability = |_, _, ability| if ability == Ability::Attack { 4 } else { 0 };
    scripted(
        Script {
            vote,
            ability,
            ..NAMES_PLAYER_0
        },
        1,
        |record, _| {
            assert!(record.happened(1, Event::Attacked(Some(4), false)));
            assert_eq!(record.public_at(2).facts.alive.len(), 10);
        },
    );
}

#[test]
fn without_werewolves_there_is_no_attack_and_the_village_wins() {
    let vote = |day, _| {
        if day == 1 {
            WEREWOLVES[0]
        } else {
            WEREWOLVES[1]
        }
    };
    scripted(
        Script {
            vote,
            ..NAMES_PLAYER_0
        },
        1,
        |record, _| {
            assert!(record.happened(2, Event::Attacked(None, false)));
            assert!(record.happened(3, Event::Over(Side::Village)));
        },
    );
}

#[test]
fn werewolves_win_once_humans_are_no_more_than_they() {
    // Humans fall two a day from nine: 7, 5, 3, 1. The possessed is one of them.
    let vote = |day, _| day - 1;
    let ability = |day, _, ability| match ability {
        Ability::Attack => 9 - day,
        _ => WEREWOLVES[0],
    };
    scripted(
        Script {
            vote,
            ability,
            ..NAMES_PLAYER_0
        },
        1,
        |record, game| {
            assert_eq!(record.public_at(4).facts.alive.len(), 5);
            assert!(record.happened(5, Event::Over(Side::Werewolves)));
            assert_eq!(game.public.facts.alive.len(), 3);
        },
    );
}

#[test]
fn everybody_sees_the_dead_and_yesterdays_votes() {
    scripted(NAMES_PLAYER_0, 1, |record, _| {
        let public = record.public_at(2);
        assert_eq!(public.facts.executed_last, PlayerSet::only(0));
        assert_eq!(public.votes[..11], [Some(0); 11]);
        let attacked = public.nights[1].attacked;
        assert_eq!(public.facts.attacked_last, attacked);
    });
}

#[test]
fn players_come_out_by_their_day_and_report_in_order() {
    let coming_out = ComingOut {
        day: 2,
        conditions: 0,
    };
    let ability = |day, _, _| day;
    scripted(
        Script {
            coming_out,
            ability,
            ..NAMES_PLAYER_0
        },
        1,
        |record, _| {
            let by_seer = |found: &(u8, Event)| match found.1 {
                Event::Says(_, Utterance::Vote(_)) => false,
                Event::Says(player, _) => player == SEER,
                _ => false,
            };
            let said: Vec<(u8, Event)> = record.events().filter(by_seer).take(3).collect();
            let says = |utterance| (2, Event::Says(SEER, utterance));
            let expected = [
                says(Utterance::ComingOut(Claim::Seer)),
                says(Utterance::Divined(judgement(0, Species::Human))),
                says(Utterance::Divined(judgement(1, Species::Human))),
            ];
            assert_eq!(said, expected);
        },
    );
}

#[test]
fn each_coming_out_condition_fires() {
    // On day 1 the fakers claim to be the seer and call somebody human.
    let day_of_claim = |conditions: u8, player: Player| {
        let coming_out = ComingOut { day: 6, conditions };
        let ability = |_, _, ability| {
            if ability == Ability::Divine {
                WEREWOLVES[0]
            } else {
                0
            }
        };
        let mut script = Script {
            coming_out,
            ability,
            vote: |_, _| MEDIUM,
            ..NAMES_PLAYER_0
        };
        let mut record = Recorder::default();
        let mut rng = Seed(1).stream("conditions");
        let simulator = Simulator::new(Rules::paper2015());
        simulator.play_deal(ordered_deal(), &mut script, &mut rng, &mut record);
        let claims = |found: &(u8, Event)| matches!(found.1, Event::Says(speaker, Utterance::ComingOut(_)) if speaker == player);
        record.events().find(claims).map(|found| found.0)
    };
    assert_eq!(day_of_claim(0, SEER), None);
    assert_eq!(day_of_claim(ComingOut::FOUND_WEREWOLF, SEER), Some(1));
    assert_eq!(day_of_claim(ComingOut::FOUND_WEREWOLF, MEDIUM), None);
    assert_eq!(day_of_claim(ComingOut::MANY_VOTES, MEDIUM), Some(1));
    assert_ne!(day_of_claim(ComingOut::MANY_VOTES, SEER), Some(1));
    assert_eq!(day_of_claim(ComingOut::RIVAL, SEER), None);
}

#[test]
fn rivals_and_accusations_bring_players_out() {
    let mut public = Public::new(11);
    let own = Private::new(&ordered_deal(), SEER);
    let rules = Rules::paper2015();
    let is_due = |public: &Public, conditions| {
        let view = View {
            rules: &rules,
            public,
            own: &own,
        };
        ComingOut { day: 6, conditions }.is_due(view, Claim::Seer, ManyVotes::default())
    };
    public.claim(1, Claim::Medium);
    assert!(!is_due(&public, 15));
    public.report(1, judgement(SEER, Species::Werewolf));
    assert!(is_due(&public, ComingOut::ACCUSED));
    assert!(!is_due(&public, ComingOut::RIVAL));
    public.claim(2, Claim::Seer);
    assert!(is_due(&public, ComingOut::RIVAL));
}

/// Chooses by day, player and a salt alone, and notes what `watched` sees.
struct Blind {
    salt: u64,
    watched: Player,
    seen: Vec<(Public, Private)>,
}

impl Blind {
    fn choose(&mut self, view: View, purpose: u64, candidates: PlayerSet) -> Player {
        if view.own.player == self.watched {
            self.seen.push((view.public.clone(), *view.own));
        }
        let place = u64::from(view.public.facts.day) << 8 | u64::from(view.own.player);
        let drawn = mix_bits(mix_bits(self.salt ^ place) ^ purpose) as usize % candidates.len();
        candidates.iter().nth(drawn).unwrap()
    }
}

impl Players for Blind {
    const LISTEN: bool = true;

    fn fake_role(&mut self, _: View, _: Option<Option<Claim>>, _: &mut Rng) -> Option<Claim> {
        None
    }
    fn coming_out(&mut self, _: View, _: Claim, _: &mut Rng) -> ComingOut {
        ComingOut::NEVER
    }
    fn lie(&mut self, _: View, _: Claim, _: PlayerSet, _: &mut Rng) -> Judgement {
        unreachable!("nobody fakes a role")
    }
    fn vote(&mut self, view: View, _: Option<Player>, _: &mut Rng) -> Player {
        self.choose(view, 0, view.public.facts.alive)
    }
    fn hears_votes(&self, _: Player) -> bool {
        false
    }
    fn target(
        &mut self,
        view: View,
        ability: Ability,
        candidates: PlayerSet,
        _: &mut Rng,
    ) -> Player {
        self.choose(view, 1 + ability as u64, candidates)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Roles whose holders do nothing that others see are exchanged behind the back
    /// of one player; all of its views stay the same.
    #[test]
    fn no_view_leaks_a_hidden_role(salt: u64, watched in 0..11u8, shift in 1..8usize) {
        let rules = Rules::paper2015();
        let deal = rules.deal(&mut Seed(salt).stream("deal"));
        let quiet = [Role::Villager, Role::Seer, Role::Medium, Role::Possessed];
        let mut hidden: Vec<Player> = rules.everyone().iter().collect();
        hidden.retain(|&player| player != watched && quiet.contains(&deal.role(player)));
        let mut roles: Vec<Role> = rules.everyone().iter().map(|player| deal.role(player)).collect();
        for (i, &player) in hidden.iter().enumerate() {
            roles[usize::from(player)] = deal.role(hidden[(i + shift) % hidden.len()]);
        }
        let simulator = Simulator::new(rules);
        let views = |deal| {
            let mut players = Blind { salt, watched, seen: Vec::new() };
            simulator.play_deal(deal, &mut players, &mut Seed(salt).stream("play"), &mut ());
            players.seen
        };
        prop_assert_eq!(views(deal), views(Deal::new(&roles)));
    }
}

/// The configuration of a preset.
fn preset(name: &str) -> Config {
    let preset = WerewolfQ::PRESETS
        .iter()
        .find(|preset| preset.name == name)
        .unwrap();
    let mut keys: toml::Table = toml::from_str(preset.toml).unwrap();
    keys.remove("experiment");
    keys.try_into().unwrap()
}

#[test]
fn learning_updates_a_hand_computed_game() {
    // Five players who explore all the time, so one game and no choice by value.
    let config = Config {
        players: 5,
        epsilon: 1.0,
        learning_rate: LearningRate::Constant,
        single_constant_rate: 0.5,
        ..preset("werewolf-paper")
    };
    let simulator = config.simulator().unwrap();
    let streams = Seed(1).purpose("hand-computed");
    let mut found = BTreeSet::new();
    for game in 0..100 {
        let mut environment = Environment::shared(&config, &simulator.rules);
        let tally = environment.learn(
            &simulator,
            &config,
            config.single_rate(),
            streams,
            0,
            game..game + 1,
        );
        let table = &environment.tables[0].targets[Decision::Vote(Role::Werewolf).index()];
        let credited = (0..table.states()).flat_map(|state| {
            table
                .row(state)
                .iter()
                .zip(table.visits(state))
                .filter(|cell| *cell.1 > 0)
        });
        let mut values: Vec<f32> = credited.map(|(&value, _)| value).collect();
        values.sort_by(f32::total_cmp);
        // The only werewolf lives and votes until the last day. There the value
        // moves halfway from 50 to the reward. The day before it moves halfway to
        // 0.9 times the best value of the next day: the one that was just raised
        // to 75, or an untried one at 50 where the own one fell to 25.
        let expected: &[f32] = match (tally.village, values.len()) {
            (0, 1) => &[75.0],
            (0, 2) => &[58.75, 75.0],
            (0, 3) => &[51.4375, 58.75, 75.0],
            (1, 1) => &[25.0],
            (1, 2) => &[25.0, 47.5],
            (1, 3) => &[25.0, 47.5, 47.5],
            _ => panic!("no game of five lasts for {} days", values.len()),
        };
        assert_eq!(values, expected, "game {game}");
        found.insert((tally.village, values.len()));
    }
    assert!(found.len() >= 4, "{found:?}");
}

#[test]
fn an_untrained_player_is_uniform() {
    let config = preset("werewolf-paper");
    let simulator = config.simulator().unwrap();
    let tables = Tables::new(&config, &simulator.rules);
    let policy = Policy::new(&config, &simulator.rules);
    let mut scratch = Scratch::default();
    let mut votes = [0; 11];
    let mut guards = [0; 11];
    let mut coming_out = [0; ComingOut::CHOICES];
    for game in 0..5_000 {
        let mut rng = Seed(2).purpose("untrained").stream(0, game);
        let mut company = Company::playing(policy, [Seat::Learned(&tables); 15], &mut scratch);
        let mut record = Recorder::default();
        let deal = simulator.rules.deal(&mut rng);
        let played = simulator.play_deal(deal, &mut company, &mut rng, &mut record);
        for event in record.events() {
            match event {
                (1, Event::Votes(3, target)) => votes[usize::from(target)] += 1,
                (1, Event::Guards(_, target)) => guards[usize::from(target)] += 1,
                _ => {}
            }
        }
        let seer = deal.holders(Role::Seer).iter().next().unwrap();
        coming_out[played.0.view(seer).own.coming_out.index()] += 1;
    }
    assert!(chi_square(&votes) < 29.6, "{votes:?}");
    assert!(chi_square(&guards) < 29.6, "{guards:?}");
    // The 99.9% quantile for 96 cells.
    assert!(chi_square(&coming_out) < 143.4, "{coming_out:?}");
}

fn setup() -> Setup {
    Setup {
        seed: 7,
        device: "auto".to_string(),
    }
}

/// A small run of `steps` steps, as the files of its state.
fn state_after(config: &Config, steps: u64) -> Vec<(String, Vec<u8>)> {
    let mut experiment = WerewolfQ::start(config, &setup()).unwrap();
    for _ in 0..steps {
        experiment.step(&mut Metrics::default()).unwrap();
    }
    saved(&experiment)
}

fn saved(experiment: &WerewolfQ) -> Vec<(String, Vec<u8>)> {
    let directory = tempfile::tempdir().unwrap();
    experiment.save(directory.path()).unwrap();
    let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, std::fs::read(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    files
}

fn small_config() -> Config {
    Config {
        single_games: 300,
        round_games: 100,
        step_games: 30,
        ..preset("werewolf-smoke")
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let with_threads = |threads| {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap()
    };
    let config = small_config();
    let steps = WerewolfQ::steps(&config);
    let learn = || state_after(&config, steps);
    assert!(with_threads(1).install(learn) == with_threads(3).install(learn));

    let simulator = Simulator::new(Rules::paper2015());
    let simulate = || uniform_village_wins(&simulator, 50_000, Seed(1));
    assert_eq!(
        with_threads(1).install(simulate),
        with_threads(3).install(simulate)
    );
}

#[test]
fn a_resumed_run_is_exact() {
    let config = small_config();
    let steps = WerewolfQ::steps(&config);
    let uninterrupted = state_after(&config, steps);
    // Stop within a round and at the end of one.
    for stop in [2, 4, 5] {
        let directory = tempfile::tempdir().unwrap();
        for (name, bytes) in state_after(&config, stop) {
            std::fs::write(directory.path().join(name), bytes).unwrap();
        }
        let mut resumed = WerewolfQ::load(&config, &setup(), directory.path()).unwrap();
        for _ in stop..steps {
            resumed.step(&mut Metrics::default()).unwrap();
        }
        assert!(
            saved(&resumed) == uninterrupted,
            "stopped after step {stop}"
        );
    }
}

#[test]
fn damaged_tables_are_refused() {
    let config = small_config();
    let rules = config.rules().unwrap();
    let files = state_after(&config, 1);
    let bytes = &files
        .iter()
        .find(|file| file.0 == "player-o.tables")
        .unwrap()
        .1;
    let whole = storage::decode(bytes, &config, &rules).unwrap();
    assert_eq!(&storage::encode(&whole), bytes);
    for length in [0, 3, 4, 10, bytes.len() - 1] {
        assert!(storage::decode(&bytes[..length], &config, &rules).is_err());
    }
    for at in [4, 100, bytes.len() / 2, bytes.len() - 1] {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        assert!(storage::decode(&flipped, &config, &rules).is_err());
    }
    let other = Config {
        key_living: true,
        ..config
    };
    let error = storage::decode(bytes, &other, &rules)
        .unwrap_err()
        .to_string();
    assert!(error.contains("972 states"), "{error}");
}

#[test]
fn a_round_resets_the_losers_and_keeps_everybody() {
    let config = small_config();
    let rules = config.rules().unwrap();
    let mut environments: Vec<Environment> = (0..3)
        .map(|_| Environment::separate(&config, &rules))
        .collect();
    let simulator = config.simulator().unwrap();
    for (environment, number) in environments.iter_mut().zip(0..) {
        let streams = Seed(1).purpose("round");
        environment.learn(
            &simulator,
            &config,
            config.round_rate(0),
            streams,
            number,
            0..50,
        );
    }
    mix(
        &mut environments,
        &[20, 10, 30],
        &config,
        &rules,
        &mut Seed(1).stream("mix"),
    );
    let members = || {
        environments
            .iter()
            .flat_map(|environment| &environment.tables)
    };
    assert_eq!(members().count(), 33);
    let untrained = |side: Side| {
        let trained = |tables: &&Tables| {
            let mine = Decision::ALL
                .into_iter()
                .filter(|decision| decision.side() == side);
            mine.map(|decision| tables.targets[decision.index()].visited_states())
                .sum::<usize>()
                > 0
        };
        33 - members().filter(trained).count()
    };
    assert_eq!(
        (untrained(Side::Village), untrained(Side::Werewolves)),
        (11, 11)
    );
}

#[test]
fn the_same_player_differs_from_itself_by_nothing() {
    let config = small_config();
    let simulator = config.simulator().unwrap();
    let policy = Policy::new(&config, &simulator.rules);
    let evaluation = Evaluation {
        simulator,
        policy,
        seed: Seed(1),
        games: 500,
    };
    let tables = Tables::new(&config, &evaluation.simulator.rules);
    let one = evaluation.among_random(Subject::One(Seat::Learned(&tables)), Some(Role::Seer));
    let population = Subject::Population(&[&tables]);
    let other = evaluation.among_random(population, Some(Role::Seer));
    assert_eq!(one.paired_difference(&other), (0.0, 0.0));
}

#[test]
fn the_log_of_a_scripted_game() {
    let mut script = Script {
        vote: |day, _| {
            if day == 1 {
                WEREWOLVES[0]
            } else {
                WEREWOLVES[1]
            }
        },
        ability: |_, _, ability| {
            if ability == Ability::Attack {
                3
            } else {
                WEREWOLVES[0]
            }
        },
        fake_role: Some(Claim::Medium),
        coming_out: ComingOut {
            day: 1,
            conditions: 0,
        },
    };
    let mut log = CsvLog::new(Seed(1).stream("order"));
    let simulator = Simulator::new(Rules::paper2015());
    let mut rng = Seed(1).stream("log");
    simulator.play_deal(ordered_deal(), &mut script, &mut rng, &mut log);
    let (talk, others): (Vec<&String>, Vec<&String>) =
        log.lines.iter().partition(|line| line.contains(",talk,"));
    let others: Vec<&str> = others.iter().map(|line| line.as_str()).collect();
    let not_status: Vec<&str> = others
        .iter()
        .copied()
        .filter(|line| !line.contains(",status,") && !line.contains(",vote,"))
        .collect();
    assert_eq!(
        not_status,
        [
            "0,divine,6,10,WEREWOLF",
            "1,divine,6,10,WEREWOLF",
            "1,guard,8,10,WEREWOLF",
            "1,attackVote,10,4",
            "1,attackVote,11,4",
            "1,execute,10,WEREWOLF",
            "1,attack,4,true",
            "2,divine,6,1,HUMAN",
            "2,guard,8,1,VILLAGER",
            "2,attackVote,11,1",
            "2,execute,11,WEREWOLF",
            "2,attack,-1,false",
            "3,result,8,0,VILLAGER",
        ]
    );
    assert_eq!(others[0], "0,status,1,VILLAGER,ALIVE,Agent[01]");
    assert!(others.contains(&"2,status,4,VILLAGER,DEAD,Agent[04]"));
    assert!(others.contains(&"1,vote,1,10"));
    let texts: Vec<&str> = talk
        .iter()
        .map(|line| line.rsplit(',').next().unwrap())
        .collect();
    for text in [
        "COMINGOUT Agent[06] SEER",
        "DIVINED Agent[10] WEREWOLF",
        "COMINGOUT Agent[09] MEDIUM",
        "IDENTIFIED Agent[10] HUMAN",
        "IDENTIFIED Agent[10] WEREWOLF",
        "VOTE Agent[10]",
        "Over",
    ] {
        assert!(texts.contains(&text), "{text} is missing in {texts:?}");
    }
    // Day 0 has one round: eleven players say Over.
    assert_eq!(
        talk.iter().filter(|line| line.starts_with("0,")).count(),
        11
    );
}

#[test]
fn leaders_and_targets_in_reach_go_by_the_votes_of_the_others() {
    let mut public = Public::new(5);
    assert_eq!(public.leaders(0), PlayerSet::EMPTY);
    assert_eq!(public.in_reach(0), PlayerSet::EMPTY);
    for (player, target) in [(0, 4), (1, 2), (2, 1), (3, 2)] {
        public.declared[player] = Some(target);
    }
    // The others of player 0: two votes for 2, one for 1; its own for 4 is left out.
    assert_eq!(public.leaders(0), PlayerSet::only(2));
    assert_eq!(public.in_reach(0), [1, 2].into_iter().collect());
    // Without its own, player 3 sees one vote each for 4, 2 and 1.
    assert_eq!(public.leaders(3), [1, 2, 4].into_iter().collect());
    assert_eq!(public.in_reach(3), PlayerSet::first(5));
}

#[test]
fn pattern_chances_add_up_to_those_of_the_players() {
    let (mut patterns, mut chances) = (Vec::new(), Vec::new());
    for_each_view(&Rules::paper2015(), 300, |_, view| {
        let known = Knowledge::of(view);
        patterns.clear();
        enumerate(view.rules, view.public, &known, &mut patterns);
        pattern_chances(view, &known, &patterns, &mut chances);
        let expected = werewolf_chances(view);
        for player in view.public.facts.judged.iter() {
            let with_player = patterns.iter().zip(&chances);
            let with_player =
                with_player.filter(|(pattern, _)| pattern.werewolves.contains(player));
            let chance: f32 = with_player.map(|(_, &chance)| chance).sum();
            let expected = expected[usize::from(player)];
            assert!(
                (f64::from(chance) - expected).abs() < 1e-4,
                "{chance} {expected}"
            );
        }
    });
}

#[test]
fn every_extension_learns() {
    let extensions = [
        Config {
            declared_votes: DeclaredVotes::Leader,
            ..small_config()
        },
        Config {
            declared_votes: DeclaredVotes::InReach,
            ..small_config()
        },
        Config {
            declared_votes: DeclaredVotes::Both,
            ..small_config()
        },
        Config {
            guard_oneself_kind: true,
            ..small_config()
        },
        Config {
            weight: WeightRule::Posterior,
            ..small_config()
        },
        Config {
            weight: WeightRule::Frequency,
            ..small_config()
        },
        Config {
            vote_credit: VoteCredit::Executed,
            ..small_config()
        },
        Config {
            players: 5,
            ..small_config()
        },
        Config {
            players: 15,
            ..small_config()
        },
    ];
    for config in extensions {
        let simulator = config.simulator().unwrap();
        let mut environment = Environment::shared(&config, &simulator.rules);
        let streams = Seed(1).purpose("extensions");
        let rate = config.single_rate();
        let tally = environment.learn(&simulator, &config, rate, streams, 0, 0..200);
        assert!(tally.change.updates > 2_000, "{config:?}");
        let policy = Policy::new(&config, &simulator.rules);
        let evaluation = Evaluation {
            simulator,
            policy,
            seed: Seed(1),
            games: 100,
        };
        let table = Table::measure(&evaluation, &environment.tables[0], &[], false);
        assert_eq!(table.rows.len(), 1);
    }
}

#[test]
fn what_was_learned_can_be_read() {
    let config = small_config();
    let simulator = config.simulator().unwrap();
    let mut environment = Environment::shared(&config, &simulator.rules);
    let streams = Seed(1).purpose("explain");
    environment.learn(
        &simulator,
        &config,
        config.single_rate(),
        streams,
        0,
        0..500,
    );
    let key = config.state_key(&simulator.rules);
    let text = |role| explain(&environment.tables[0], &key, role, 2);
    assert!(text(Role::Seer).contains("Coming out as the seer"));
    assert!(text(Role::Werewolf).contains("Fakes, first to whisper: "));
    assert!(text(Role::Villager).contains("day 1: seer not out"));
}

#[test]
fn a_story_ends_with_the_reveal() {
    let simulator = Simulator::new(Rules::paper2015());
    let mut story = Story::default();
    let mut rng = Seed(1).stream("story");
    let script = &mut Script {
        vote: |_, player| player,
        ..NAMES_PLAYER_0
    };
    simulator.play_deal(ordered_deal(), script, &mut rng, &mut story);
    let text = story.lines.join("\n");
    assert!(text.starts_with("Day 0\n"));
    assert!(text.contains("Votes for Agent[01]: Agent[01]."));
    assert!(text.contains("  Agent[06] was the seer ("));
}

#[test]
fn impossible_configurations_are_refused() {
    let refused = [
        (
            Config {
                players: 7,
                ..small_config()
            },
            "players",
        ),
        (
            Config {
                step_games: 0,
                ..small_config()
            },
            "step_games = 0",
        ),
        (
            Config {
                environments: 9,
                ..small_config()
            },
            "environments = 9",
        ),
        (
            Config {
                epsilon: 1.5,
                ..small_config()
            },
            "epsilon = 1.5",
        ),
        (
            Config {
                constant_rates: vec![0.1],
                learning_rate: LearningRate::Constant,
                ..small_config()
            },
            "constant_rates",
        ),
        (
            Config {
                key_claims: true,
                key_living: true,
                key_proved_humans: true,
                ..small_config()
            },
            "key_claims",
        ),
    ];
    for (config, key) in refused {
        let message = WerewolfQ::validate(&config).unwrap_err().to_string();
        assert!(message.starts_with(key), "{message}");
    }
}
