//! Conformance: the laws that every game must keep, checked on random games.
//!
//! Tests run it over the table of games; people run it on a rules file of their own
//! with `tanren games check`. It knows nothing of any game: what one game counts as
//! its true moves is the business of that game's own tests.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::Serialize;

use super::{Feature, FeatureChanges, Game, Outcome, Side, children};
use crate::random::{Rng, RngExt};

/// What was checked, and what did not hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Random games played.
    pub games: usize,
    /// Positions checked, finished ones included.
    pub positions: usize,
    /// How often each ending occurred, in the game's own words, most frequent first.
    pub endings: Vec<(&'static str, usize)>,
    /// Longest game played, in plies.
    pub longest_plies: usize,
    /// Laws that did not hold; each law at most once.
    pub failures: Vec<Failure>,
}

/// A law that a position does not keep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The law.
    pub law: &'static str,
    /// The position, as text.
    pub position: String,
    /// What is wrong there.
    pub detail: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: in {}: {}", self.law, self.position, self.detail)
    }
}

/// Plays `games` games of uniformly random moves and checks every position in them.
pub fn check<G: Game>(game: &G, games: usize, rng: &mut Rng) -> Report {
    let mut checker = Checker {
        game,
        report: Report::default(),
        inputs: HashMap::new(),
        keys: HashMap::new(),
    };
    for _ in 0..games {
        checker.play_random_game(rng);
    }
    checker
        .report
        .endings
        .sort_by_key(|&(ending, times)| (usize::MAX - times, ending));
    checker.report
}

/// A broken law and its detail; `Ok` if all hold.
type Verdict = Result<(), (&'static str, String)>;

/// The law holds, or here is why not.
fn law(name: &'static str, holds: bool, detail: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err((name, detail())) }
}

struct Checker<'a, G: Game> {
    game: &'a G,
    report: Report,
    /// Inputs seen, with the board that had them.
    inputs: HashMap<Vec<Feature>, String>,
    /// Keys seen, with the position or its mirror image that had them.
    keys: HashMap<u128, String>,
}

impl<G: Game> Checker<'_, G> {
    fn play_random_game(&mut self, rng: &mut Rng) {
        let mut position = self.game.start();
        let mut earlier_moves = Vec::new();
        let mut plies = 0;
        loop {
            self.check_position(&position, &earlier_moves);
            let moves = legal_moves(self.game, &position);
            if moves.is_empty() || plies > self.game.max_plies() {
                break;
            }
            let mv = moves[rng.random_range(0..moves.len())];
            self.game.play_unchecked(&mut position, mv);
            earlier_moves = moves;
            plies += 1;
        }
        self.report.games += 1;
        self.report.longest_plies = self.report.longest_plies.max(plies);
        self.check_end(&position, plies);
    }

    fn check_end(&mut self, position: &G::Position, plies: usize) {
        let limit = self.game.max_plies();
        let verdict = law("every game ends within max_plies", plies <= limit, || {
            format!("still going after {limit} plies")
        });
        self.note(position, verdict);
        if self.game.outcome(position).is_some() {
            let ending = self.game.ending(position);
            match self
                .report
                .endings
                .iter_mut()
                .find(|(known, _)| *known == ending)
            {
                Some((_, times)) => *times += 1,
                None => self.report.endings.push((ending, 1)),
            }
        }
    }

    fn check_position(&mut self, position: &G::Position, earlier_moves: &[G::Move]) {
        self.report.positions += 1;
        let game = self.game;
        for verdict in [
            moves_are_well_formed(game, position),
            outcome_is_consistent(game, position),
            text_round_trips(game, position),
            illegal_moves_are_refused(game, position, earlier_moves),
            features_are_well_formed(game, position),
            changes_are_right(game, position),
            flip_is_a_symmetry(game, position),
            mirror_is_a_symmetry(game, position),
            foresight_stays(game, position),
            self.inputs_tell_boards_apart(position),
            self.keys_tell_positions_apart(position),
        ] {
            self.note(position, verdict);
        }
    }

    fn note(&mut self, position: &G::Position, verdict: Verdict) {
        if let Err((law, detail)) = verdict
            && self
                .report
                .failures
                .iter()
                .all(|failure| failure.law != law)
        {
            let position = self.game.format_position(position);
            self.report.failures.push(Failure {
                law,
                position,
                detail,
            });
        }
    }

    /// What a player sees on the board, the network must see. Positions that are
    /// each other's flip are the same to the mover; what is not drawn, such as a
    /// count of plies, need not be in the input.
    fn inputs_tell_boards_apart(&mut self, position: &G::Position) -> Verdict {
        let side = self.game.side_to_move(position);
        let upright = match side {
            Side::First => None,
            Side::Second => self.game.flipped(position),
        };
        let board = self.game.draw(upright.as_ref().unwrap_or(position));
        let inputs = sorted_features(self.game, position, side);
        let known = self.inputs.entry(inputs).or_insert_with(|| board.clone());
        law(
            "different positions have different inputs",
            *known == board,
            || format!("its inputs are also those of\n{known}"),
        )
    }

    /// Keys that are hashes are told apart as well: 128 bits do not meet by chance.
    fn keys_tell_positions_apart(&mut self, position: &G::Position) -> Verdict {
        let game = self.game;
        let key = game.key(position);
        let bits = u128::BITS - key.leading_zeros();
        law(
            "a key fits into its bits",
            bits <= game.key_bits().unwrap_or(u128::BITS),
            || format!("{bits} bits"),
        )?;
        let mirrored = game.mirrored(position);
        if let Some(mirrored) = &mirrored {
            let image = game.key(mirrored);
            law("a mirror keeps the key", key == image, || {
                format!("{key:x} becomes {image:x}")
            })?;
        }
        let text = game.format_position(position);
        let image = mirrored.map(|mirrored| game.format_position(&mirrored));
        let either = image.map_or(text.clone(), |image| image.min(text));
        let known = self.keys.entry(key).or_insert_with(|| either.clone());
        law(
            "different positions have different keys",
            *known == either,
            || format!("its key is also that of {known}"),
        )
    }
}

/// Who is foreseen to win can keep that in sight until the game is won. So what is
/// foreseen is true.
fn foresight_stays<G: Game>(game: &G, position: &G::Position) -> Verdict {
    let Some(winner) = game
        .foresee(position)
        .filter(|_| game.outcome(position).is_none())
    else {
        return Ok(());
    };
    let sees = |child: &G::Position| match game.outcome(child) {
        Some(outcome) => outcome == Outcome::Win(winner),
        None => game.foresee(child) == Some(winner),
    };
    let after = successors(game, position);
    let stays = match game.side_to_move(position) == winner {
        true => after.iter().any(sees),
        false => after.iter().all(sees),
    };
    law("a foreseen win stays in sight", stays, || {
        format!("it is said to be won by the {winner:?} side")
    })
}

fn moves_are_well_formed<G: Game>(game: &G, position: &G::Position) -> Verdict {
    let moves = legal_moves(game, position);
    let names = || {
        moves
            .iter()
            .map(|&mv| game.format_move(mv))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let distinct: BTreeSet<G::Move> = moves.iter().copied().collect();
    law(
        "no move is listed twice",
        distinct.len() == moves.len(),
        names,
    )?;
    law(
        "moves come in a fixed order",
        moves == legal_moves(game, position),
        names,
    )?;
    let counted = game.count_legal_moves(position);
    law(
        "count_legal_moves counts the legal moves",
        counted == moves.len() as u64,
        || format!("{counted} counted, {} listed", moves.len()),
    )
}

fn outcome_is_consistent<G: Game>(game: &G, position: &G::Position) -> Verdict {
    let outcome = game.outcome(position);
    let moves = legal_moves(game, position).len();
    law(
        "there is no move exactly when the game is over",
        (moves == 0) == outcome.is_some(),
        || format!("{moves} moves, outcome {outcome:?}"),
    )?;
    let Some(outcome) = outcome else {
        return Ok(());
    };
    let [first, second] = Side::ALL.map(|side| outcome.value_for(side));
    law(
        "a result is opposite for the two sides",
        first == -second,
        || format!("{first:?} and {second:?}"),
    )?;
    law(
        "an ending has a name",
        !game.ending(position).is_empty(),
        String::new,
    )
}

fn text_round_trips<G: Game>(game: &G, position: &G::Position) -> Verdict {
    let text = game.format_position(position);
    let back = game.parse_position(&text);
    law(
        "a position's text reads back",
        back.as_ref() == Ok(position),
        || match &back {
            Ok(other) => format!("it reads as {}", game.format_position(other)),
            Err(error) => error.to_string(),
        },
    )?;
    for mv in legal_moves(game, position) {
        let text = game.format_move(mv);
        let back = game.parse_move(&text);
        law("a move's text reads back", back == Ok(mv), || {
            format!("{text} reads as {back:?}")
        })?;
    }
    Ok(())
}

/// The moves of the position before are mostly illegal now, yet look plausible.
fn illegal_moves_are_refused<G: Game>(
    game: &G,
    position: &G::Position,
    earlier_moves: &[G::Move],
) -> Verdict {
    let legal = legal_moves(game, position);
    for &mv in earlier_moves.iter().filter(|mv| !legal.contains(mv)) {
        let mut copy = position.clone();
        let refused = game.play(&mut copy, mv).is_err();
        law("play refuses illegal moves", refused, || {
            game.format_move(mv)
        })?;
        law("a refused move changes nothing", copy == *position, || {
            game.format_move(mv)
        })?;
    }
    Ok(())
}

fn features_are_well_formed<G: Game>(game: &G, position: &G::Position) -> Verdict {
    let inputs = game.plane_shape().inputs();
    for side in Side::ALL {
        let features = sorted_features(game, position, side);
        let in_range = features
            .iter()
            .all(|&feature| usize::from(feature) < inputs);
        law("features are within the planes", in_range, || {
            format!("{features:?} of {inputs}")
        })?;
        let distinct = features.windows(2).all(|pair| pair[0] != pair[1]);
        law("no feature is listed twice", distinct, || {
            format!("{features:?}")
        })?;
    }
    Ok(())
}

/// The slow twin of [`Game::feature_changes`]: play the move and compare.
fn changes_are_right<G: Game>(game: &G, position: &G::Position) -> Verdict {
    let mut changes = FeatureChanges::default();
    for mv in legal_moves(game, position) {
        let mut child = position.clone();
        game.play_unchecked(&mut child, mv);
        for side in Side::ALL {
            let before = sorted_features(game, position, side);
            let after = sorted_features(game, &child, side);
            let only_in = |these: &[Feature], others: &[Feature]| -> Vec<Feature> {
                these
                    .iter()
                    .copied()
                    .filter(|feature| !others.contains(feature))
                    .collect()
            };
            game.feature_changes(position, mv, side, &mut changes);
            changes.removed.sort_unstable();
            changes.added.sort_unstable();
            let right = changes.removed == only_in(&before, &after)
                && changes.added == only_in(&after, &before);
            law("feature_changes is what a move changes", right, || {
                format!(
                    "{} seen by {side:?} gives {changes:?}",
                    game.format_move(mv)
                )
            })?;
        }
    }
    Ok(())
}

fn flip_is_a_symmetry<G: Game>(game: &G, position: &G::Position) -> Verdict {
    let Some(flipped) = game.flipped(position) else {
        return Ok(());
    };
    let (side, turned) = (game.side_to_move(position), game.side_to_move(&flipped));
    law("a flip passes the turn", side != turned, || {
        format!("{turned:?} to move")
    })?;
    law(
        "two flips do nothing",
        game.flipped(&flipped).as_ref() == Some(position),
        || game.format_position(&flipped),
    )?;
    for (viewer, other) in [(side, turned), (turned, side)] {
        let before = sorted_features(game, position, viewer);
        let after = sorted_features(game, &flipped, other);
        law("a flip keeps what each side sees", before == after, || {
            format!("{before:?} {after:?}")
        })?;
    }
    same_play("a flip keeps the play", game, position, &flipped, |child| {
        game.flipped(child)
    })
}

fn mirror_is_a_symmetry<G: Game>(game: &G, position: &G::Position) -> Verdict {
    let Some(mirrored) = game.mirrored(position) else {
        return Ok(());
    };
    let (side, after) = (game.side_to_move(position), game.side_to_move(&mirrored));
    law("a mirror keeps the turn", side == after, || {
        format!("{after:?} to move")
    })?;
    law(
        "two mirrors do nothing",
        game.mirrored(&mirrored).as_ref() == Some(position),
        || game.format_position(&mirrored),
    )?;
    for viewer in Side::ALL {
        let features = sorted_features(game, position, viewer);
        let mut moved: Vec<_> = features.iter().map(|&f| game.mirrored_feature(f)).collect();
        moved.sort_unstable();
        let after = sorted_features(game, &mirrored, viewer);
        law(
            "mirrored_feature follows the mirror",
            moved == after,
            || format!("{moved:?} {after:?}"),
        )?;
    }
    same_play(
        "a mirror keeps the play",
        game,
        position,
        &mirrored,
        |child| game.mirrored(child),
    )
}

/// Checks that the image of a position under a symmetry is worth the same to the
/// side to move and leads to the images of its successors.
fn same_play<G: Game>(
    name: &'static str,
    game: &G,
    position: &G::Position,
    image: &G::Position,
    symmetry: impl Fn(&G::Position) -> Option<G::Position>,
) -> Verdict {
    let result = |position| {
        let side = game.side_to_move(position);
        game.outcome(position)
            .map(|outcome| outcome.value_for(side))
    };
    let (before, after) = (result(position), result(image));
    law(name, before == after, || {
        format!("the result {before:?} becomes {after:?}")
    })?;
    let (before, after) = (game.material(position), game.material(image));
    law(name, before == after, || {
        format!("material {before} becomes {after}")
    })?;
    let expected: HashSet<_> = successors(game, position).iter().map(symmetry).collect();
    let found: HashSet<_> = successors(game, image).into_iter().map(Some).collect();
    law(name, expected == found, || {
        format!(
            "the moves of {} lead elsewhere",
            game.format_position(image)
        )
    })
}

fn legal_moves<G: Game>(game: &G, position: &G::Position) -> Vec<G::Move> {
    let mut moves = Vec::new();
    game.legal_moves(position, &mut moves);
    moves
}

fn successors<G: Game>(game: &G, position: &G::Position) -> Vec<G::Position> {
    let mut positions = Vec::new();
    children(game, position, &legal_moves(game, position), &mut positions);
    positions
}

fn sorted_features<G: Game>(game: &G, position: &G::Position, side: Side) -> Vec<Feature> {
    let mut features = Vec::new();
    game.features(position, side, &mut features);
    features.sort_unstable();
    features
}
