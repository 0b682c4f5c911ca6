//! Sets of exactly solved positions, and the plain text that they are kept in: one
//! position a line, so that two sets can be compared with `diff`.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write;
use std::ops::RangeInclusive;

use serde::Serialize;

use crate::game::Game;
use crate::nets::model::rules_sha256;
use crate::solve::Exact;

/// Positions of one game with their exact values, and where they come from.
pub struct TestSet<G: Game> {
    /// Where they come from.
    pub provenance: Provenance,
    /// The positions, by ply.
    pub positions: Vec<TestPosition<G>>,
}

/// How a test set was made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Provenance {
    /// Name of the game.
    pub game: String,
    /// SHA-256 of its rules.
    pub rules_sha256: String,
    /// Version of the program that made it.
    pub version: String,
    /// Seed of its randomness.
    pub seed: u64,
    /// Plies that were asked for.
    #[serde(serialize_with = "as_text")]
    pub plies: RangeInclusive<u32>,
    /// Positions that were asked for.
    pub asked: u64,
    /// Positions that the solver might visit for each value.
    pub nodes: u64,
    /// Whose judgement the solver went by; cannot change a value.
    pub prior: String,
    /// Whose play the positions come from.
    pub sources: Vec<String>,
    /// Positions left out because a value took more nodes than that.
    pub dropped: u64,
}

fn as_text<S: serde::Serializer>(
    plies: &RangeInclusive<u32>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&plies_text(plies))
}

/// A position whose value is known, and that of each of its moves.
pub struct TestPosition<G: Game> {
    /// The position; it is not over.
    pub position: G::Position,
    /// Plies played before it.
    pub ply: u32,
    /// Its value for the side to move: the best of `moves`.
    pub value: Exact,
    /// Every legal move with its value for the one who makes it, in the order of the
    /// rules.
    pub moves: Vec<(G::Move, Exact)>,
    /// One of [`Provenance::sources`], by index.
    pub source: usize,
}

impl<G: Game> TestPosition<G> {
    /// The moves after which the one who makes them has won, if play is exact.
    pub fn winning_moves(&self) -> impl Iterator<Item = G::Move> {
        self.moves_of(Exact::Win)
    }

    fn moves_of(&self, value: Exact) -> impl Iterator<Item = G::Move> {
        let moves = self.moves.iter();
        moves.filter(move |(_, of)| *of == value).map(|(mv, _)| *mv)
    }
}

/// A test set that is compiled in.
#[derive(Debug)]
pub struct ShippedTestSet {
    /// Its game.
    pub game: &'static str,
    /// The file, in the repository.
    pub file: &'static str,
    /// The file's text.
    pub text: &'static str,
}

/// The shipped test sets, one a game.
pub const SHIPPED: &[ShippedTestSet] = &[
    ShippedTestSet {
        game: "march-blitz",
        file: "models/march-blitz/testset.txt",
        text: include_str!("../../models/march-blitz/testset.txt"),
    },
    ShippedTestSet {
        game: "march-grand",
        file: "models/march-grand/testset.txt",
        text: include_str!("../../models/march-grand/testset.txt"),
    },
];

/// Why a text is no test set of the game at hand.
#[derive(Debug, thiserror::Error)]
pub enum TestSetError {
    /// A line is wrong.
    #[error("{file}, line {line}: {reason}")]
    Line {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// The set is for another game.
    #[error("the test set {file} is for {set}, not for {game}: name its game with --game")]
    OtherGame {
        /// The file.
        file: String,
        /// The set's game.
        set: String,
        /// The game at hand.
        game: String,
    },
    /// Same name, other rules.
    #[error(
        "the test set {file} was made for other rules of {game}, so its values mean nothing here: \
         name its rules file with --game, or make a new one with tanren testset"
    )]
    OtherRules {
        /// The file.
        file: String,
        /// The game.
        game: String,
    },
}

const TITLE: &str = "# Tanren test set, format 1";
const COLUMNS: &str = "ply\tvalue\tmoves\twinning\tdrawing\tsource\tposition";
const NONE: &str = "-";
/// Separates sources, and moves.
const COMMA: &str = ", ";

impl<G: Game> TestSet<G> {
    /// The plies at which there are positions, in order.
    pub fn plies(&self) -> BTreeSet<u32> {
        self.positions.iter().map(|at| at.ply).collect()
    }

    /// Number of positions with this value.
    pub fn count(&self, value: Exact) -> usize {
        let with = self.positions.iter().filter(|at| at.value == value);
        with.count()
    }

    /// The test set that is compiled in for a game, if there is one for its rules.
    ///
    /// # Panics
    /// If the file in the repository is damaged.
    pub fn shipped(game: &G) -> Option<TestSet<G>> {
        let shipped = SHIPPED.iter().find(|set| set.game == game.name())?;
        match TestSet::parse(game, shipped.file, shipped.text) {
            Ok(set) => Some(set),
            Err(TestSetError::OtherRules { .. }) => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// The set as text, which [`TestSet::parse`] reads back.
    pub fn to_text(&self, game: &G) -> String {
        let mut text = self.provenance.to_text(self.positions.len());
        for at in &self.positions {
            let moves = |value| {
                let moves = at.moves_of(value).map(|mv| game.format_move(mv));
                non_empty(moves.collect::<Vec<_>>().join(" "))
            };
            let _ = writeln!(
                text,
                "{}\t{}\t{}\t{}\t{}\t{}\t{}",
                at.ply,
                at.value.name(),
                at.moves.len(),
                moves(Exact::Win),
                moves(Exact::Draw),
                self.provenance.sources[at.source],
                game.format_position(&at.position)
            );
        }
        text
    }

    /// Reads a set; `file` is its name for error messages.
    ///
    /// # Errors
    /// If a line is wrong, says which and why, or if the set is for another game.
    /// Checks all that can be checked without solving: positions, moves, that values
    /// and moves fit together, and that nothing is missing or there twice.
    pub fn parse(game: &G, file: &str, text: &str) -> Result<TestSet<G>, TestSetError> {
        let at_line = |line| {
            let file = file.to_string();
            move |reason| TestSetError::Line { file, line, reason }
        };
        let mut lines = (1..).zip(text.lines());
        let title = lines.next().map_or("", |(_, title)| title);
        if title != TITLE {
            let reason = format!("this is no test set: one starts with {TITLE:?}");
            return Err(at_line(1)(reason));
        }
        let mut header = Header::default();
        let mut columns_line = 1;
        for (number, line) in lines.by_ref() {
            columns_line = number;
            if line == COLUMNS {
                break;
            }
            header.read(line).map_err(at_line(number))?;
        }
        let (provenance, positions) = header.finish().map_err(at_line(columns_line))?;
        provenance.check_game(game, file)?;
        let mut set = TestSet {
            provenance,
            positions: Vec::with_capacity(positions.min(100_000)),
        };
        let mut seen = HashSet::new();
        let mut last_line = columns_line;
        for (number, line) in lines {
            last_line = number;
            let at = set.parse_position(game, line).map_err(at_line(number))?;
            if !seen.insert(at.position.clone()) {
                return Err(at_line(number)(
                    "this position was there before".to_string(),
                ));
            }
            set.positions.push(at);
        }
        if set.positions.len() != positions {
            let reason = format!(
                "the file ends after {} positions, but its header announces {positions}",
                set.positions.len()
            );
            return Err(at_line(last_line)(reason));
        }
        Ok(set)
    }

    fn parse_position(&self, game: &G, line: &str) -> Result<TestPosition<G>, String> {
        let cells: Vec<&str> = line.split('\t').collect();
        let &[ply, value, count, winning, drawing, source, position] = &cells[..] else {
            let wanted = COLUMNS.split('\t').collect::<Vec<_>>().join(COMMA);
            return Err(format!(
                "a position has 7 columns, separated by tabs ({wanted}); here are {}",
                cells.len()
            ));
        };
        let position = game
            .parse_position(position)
            .map_err(|error| error.to_string())?;
        let mut legal = Vec::new();
        game.legal_moves(&position, &mut legal);
        if legal.is_empty() {
            return Err("the game is over in this position".to_string());
        }
        if count != legal.len().to_string() {
            return Err(format!(
                "the position has {} moves, not {count}",
                legal.len()
            ));
        }
        let winning = parse_moves(game, &legal, winning)?;
        let drawing = parse_moves(game, &legal, drawing)?;
        let value_of = |mv: G::Move| {
            let listed = [(&winning, Exact::Win), (&drawing, Exact::Draw)];
            let found = listed.iter().find(|(moves, _)| moves.contains(&mv));
            (mv, found.map_or(Exact::Loss, |(_, value)| *value))
        };
        let moves: Vec<(G::Move, Exact)> = legal.iter().map(|&mv| value_of(mv)).collect();
        if let Some(twice) = winning.iter().find(|mv| drawing.contains(mv)) {
            let mv = game.format_move(*twice);
            return Err(format!("{mv} cannot both win and draw"));
        }
        let best = moves.iter().map(|(_, value)| *value).max();
        let best = best.expect("there are moves");
        if value != best.name() {
            return Err(format!(
                "the value is given as {value:?}, but that of the best move is {}",
                best.name()
            ));
        }
        let Provenance { plies, sources, .. } = &self.provenance;
        let ply = ply.parse().ok().filter(|ply| plies.contains(ply));
        let source = sources.iter().position(|known| known == source);
        Ok(TestPosition {
            position,
            ply: ply.ok_or_else(|| format!("the ply is none of {}", plies_text(plies)))?,
            value: best,
            moves,
            source: source.ok_or_else(|| {
                format!(
                    "the source is none of those in the header: {}",
                    sources.join(COMMA)
                )
            })?,
        })
    }
}

fn non_empty(text: String) -> String {
    if text.is_empty() {
        NONE.to_string()
    } else {
        text
    }
}

/// Reads a list of moves, each of them legal and none there twice.
fn parse_moves<G: Game>(game: &G, legal: &[G::Move], text: &str) -> Result<Vec<G::Move>, String> {
    let mut moves = Vec::new();
    for word in text.split(' ').filter(|_| text != NONE) {
        let mv = game.parse_move(word).map_err(|error| error.to_string())?;
        if !legal.contains(&mv) {
            return Err(format!("{word} is not legal in this position"));
        }
        if moves.contains(&mv) {
            return Err(format!("{word} is there twice"));
        }
        moves.push(mv);
    }
    Ok(moves)
}

/// A range of plies as people write it: `4..14`, both ends included.
pub(super) fn plies_text(plies: &RangeInclusive<u32>) -> String {
    format!("{}..{}", plies.start(), plies.end())
}

impl Provenance {
    /// The file up to the first position.
    fn to_text(&self, positions: usize) -> String {
        let Provenance {
            game,
            rules_sha256,
            version,
            seed,
            plies,
            asked,
            nodes,
            prior,
            sources,
            dropped,
        } = self;
        let plies = plies_text(plies);
        let (first, agents) = sources.split_first().expect("there is a source");
        let from = match agents {
            [] => String::new(),
            agents => format!(" --from {}", agents.join(" ")),
        };
        format!(
            "{TITLE}\n\
             # tanren testset {game} --plies {plies} --positions {asked} --seed {seed} \
             --nodes {nodes}{from}\n\
             #\n\
             # Exact values by proof-number search, each for the side to move: all moves that are\n\
             # neither winning nor drawing lose. Each position comes from another game, and no two\n\
             # are equal or mirror images. {first}: each move is EasyAI's with a probability that\n\
             # is drawn for the game, otherwise random. Agents: against themselves, from random\n\
             # openings of 2 to 4 plies. Positions that took more nodes than allowed are dropped:\n\
             # the more there are of them, the more the set prefers what is easy to solve.\n\
             game: {game}\n\
             rules: {rules_sha256}\n\
             version: {version}\n\
             seed: {seed}\n\
             plies: {plies}\n\
             asked: {asked}\n\
             positions: {positions}\n\
             nodes: {nodes}\n\
             dropped: {dropped}\n\
             prior: {prior}\n\
             sources: {}\n\
             {COLUMNS}\n",
            sources.join(COMMA)
        )
    }

    fn check_game<G: Game>(&self, game: &G, file: &str) -> Result<(), TestSetError> {
        let file = file.to_string();
        if self.game != game.name() {
            return Err(TestSetError::OtherGame {
                file,
                set: self.game.clone(),
                game: game.name().to_string(),
            });
        }
        if self.rules_sha256 != rules_sha256(game) {
            let game = self.game.clone();
            return Err(TestSetError::OtherRules { file, game });
        }
        Ok(())
    }
}

/// The lines `key: value` of a file, as far as they are read.
#[derive(Default)]
struct Header {
    values: Vec<(&'static str, String)>,
}

impl Header {
    const KEYS: [&str; 11] = [
        "game",
        "rules",
        "version",
        "seed",
        "plies",
        "asked",
        "positions",
        "nodes",
        "dropped",
        "prior",
        "sources",
    ];

    fn read(&mut self, line: &str) -> Result<(), String> {
        if line.starts_with('#') {
            return Ok(());
        }
        let known = |(key, value): (&str, &str)| {
            let key = Header::KEYS.into_iter().find(|&known| known == key)?;
            Some((key, value.trim().to_string()))
        };
        let read = line.split_once(':').and_then(known).ok_or_else(|| {
            let keys = Header::KEYS.join(COMMA);
            format!("accepted are a comment (#), one of {keys} with a colon, or the columns")
        })?;
        if self.values.iter().any(|(key, _)| *key == read.0) {
            return Err(format!("{} is there twice", read.0));
        }
        self.values.push(read);
        Ok(())
    }

    /// The provenance, and the number of positions.
    fn finish(self) -> Result<(Provenance, usize), String> {
        let text = |wanted: &str| {
            let found = self.values.iter().find(|(key, _)| *key == wanted);
            let found = found.map(|(_, value)| value.clone());
            found.ok_or_else(|| format!("the header has no line {wanted:?}"))
        };
        let number = |key: &str| {
            let text = text(key)?;
            let number: Result<u64, _> = text.parse();
            number.map_err(|_| format!("{key}: {text:?} is no number"))
        };
        let plies = text("plies")?;
        let sources = text("sources")?;
        let provenance = Provenance {
            game: text("game")?,
            rules_sha256: text("rules")?,
            version: text("version")?,
            seed: number("seed")?,
            plies: parse_plies(&plies).map_err(|error| format!("plies: {error}"))?,
            asked: number("asked")?,
            nodes: number("nodes")?,
            prior: text("prior")?,
            sources: sources.split(COMMA).map(str::to_string).collect(),
            dropped: number("dropped")?,
        };
        Ok((provenance, number("positions")? as usize))
    }
}

/// Reads a range of plies such as `4..14`, both ends included, or a single one.
///
/// # Errors
/// If it is none; says what would be accepted.
pub fn parse_plies(text: &str) -> Result<RangeInclusive<u32>, String> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok(first..=last),
        _ => Err(format!(
            "{text:?} is no range of plies: accepted are two numbers such as 4..14, the lower one \
             first, or one number"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_plies_are_read_and_written() {
        for (text, range) in [("4..14", 4..=14), ("0..0", 0..=0)] {
            assert_eq!(parse_plies(text), Ok(range.clone()));
            assert_eq!(plies_text(&range), text);
        }
        assert_eq!(parse_plies("6"), Ok(6..=6));
        for wrong in ["", "14..4", "a..b", "4..=14", "-1..3", "4-14"] {
            let error = parse_plies(wrong).unwrap_err();
            assert!(error.contains("such as 4..14"), "{error}");
        }
    }
}
