//! Reading a rules file: TOML, with every complaint tied to its line.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use super::betza;
use super::placement::Placement;
use super::problem::{Problem, RulesError};
use super::rules::{Kind, MAX_KINDS, MAX_PLIES, MAX_SQUARES, MAX_VALUE, Rules, Stuck, letters};
use crate::game::ParseError;
use crate::games::board_text;

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesFile {
    name: Spanned<String>,
    title: String,
    start: Spanned<String>,
    pieces: Spanned<BTreeMap<Spanned<String>, PieceTable>>,
    end: Spanned<EndTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PieceTable {
    name: String,
    #[serde(rename = "move")]
    notation: Spanned<String>,
    value: Spanned<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EndTable {
    capture: Option<Spanned<String>>,
    goal: Option<Spanned<String>>,
    stuck: Stuck,
    max_plies: Option<Spanned<i64>>,
}

/// Reads and checks a rules file; see [`Rules::parse`].
pub(super) fn read(file: &str, text: &str) -> Result<Rules, RulesError> {
    let source = Source { file, text };
    let raw: RulesFile = toml::from_str(text).map_err(|error| source.toml_error(&error))?;
    source.check_name(&raw.name)?;
    let kinds = source.kinds(&raw.pieces)?;
    let start = source.start(&raw.start, &kinds)?;
    let end = raw.end.get_ref();
    if end.capture.is_none() && end.goal.is_none() {
        return Err(source.error(raw.end.span(), Problem::NoEnd));
    }
    let mut rules = Rules {
        name: raw.name.into_inner(),
        title: raw.title,
        width: start.width,
        height: start.height,
        capture: source.end_kind("capture", &end.capture, &kinds)?,
        goal: source.end_kind("goal", &end.goal, &kinds)?,
        kinds,
        stuck: end.stuck,
        max_plies: None,
        source: text.to_string(),
        start,
    };
    rules.max_plies = source.max_plies(&rules, &raw.end)?;
    let at = |span: &Spanned<String>, problem| source.error(span.span(), problem);
    if let (Some(span), Some(kind)) = (&end.capture, rules.capture) {
        rules
            .check_capture(kind)
            .map_err(|problem| at(span, problem))?;
    }
    if let (Some(span), Some(kind)) = (&end.goal, rules.goal) {
        rules
            .check_goal(kind)
            .map_err(|problem| at(span, problem))?;
    }
    rules
        .check_start()
        .map_err(|problem| at(&raw.start, problem))?;
    Ok(rules)
}

/// A rules file while it is read: what errors need to say where.
struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

impl Source<'_> {
    fn error(&self, span: Range<usize>, problem: Problem) -> RulesError {
        let before = &self.text[..span.start.min(self.text.len())];
        let line = before.matches('\n').count() + 1;
        RulesError {
            file: self.file.to_string(),
            line,
            problem,
        }
    }

    /// Turns serde's "unknown field `a`, expected one of `b`, `c`" into an error
    /// with a suggestion; other messages stay as they are.
    fn toml_error(&self, error: &toml::de::Error) -> RulesError {
        let message = error.message();
        let mut words = message.split('`').skip(1).step_by(2).map(str::to_string);
        let what = match message {
            _ if message.starts_with("unknown field") => Some("key"),
            _ if message.starts_with("unknown variant") => Some("value"),
            _ => None,
        };
        let problem = match (what, words.next()) {
            (Some(what), Some(word)) => Problem::Unknown {
                what,
                word,
                known: words.collect(),
            },
            _ => Problem::Toml(message.to_string()),
        };
        self.error(error.span().unwrap_or_default(), problem)
    }

    fn check_name(&self, name: &Spanned<String>) -> Result<(), RulesError> {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.get_ref().is_empty() || !name.get_ref().chars().all(allowed) {
            return Err(self.error(name.span(), Problem::Name(name.get_ref().clone())));
        }
        Ok(())
    }

    fn kinds(
        &self,
        pieces: &Spanned<BTreeMap<Spanned<String>, PieceTable>>,
    ) -> Result<Vec<Kind>, RulesError> {
        let tables = pieces.get_ref();
        if tables.is_empty() {
            return Err(self.error(pieces.span(), Problem::NoKinds));
        }
        if let Some(excess) = tables.keys().nth(MAX_KINDS) {
            return Err(self.error(excess.span(), Problem::TooManyKinds(tables.len())));
        }
        tables
            .iter()
            .map(|(letter, table)| self.kind(letter, table))
            .collect()
    }

    fn kind(&self, letter: &Spanned<String>, table: &PieceTable) -> Result<Kind, RulesError> {
        let mut letters = letter.get_ref().chars();
        let (Some(piece), None) = (
            letters.next().filter(char::is_ascii_lowercase),
            letters.next(),
        ) else {
            return Err(self.error(letter.span(), Problem::Letter(letter.get_ref().clone())));
        };
        let notation = table.notation.get_ref();
        let leaps = betza::parse(notation).map_err(|error| {
            let problem = Problem::Notation {
                notation: notation.clone(),
                error,
            };
            self.error(table.notation.span(), problem)
        })?;
        let value = *table.value.get_ref();
        if !(0..=MAX_VALUE).contains(&value) {
            return Err(self.error(table.value.span(), Problem::Value(value)));
        }
        Ok(Kind {
            letter: piece,
            name: table.name.clone(),
            notation: notation.clone(),
            leaps,
            value: value as i32,
        })
    }

    fn start(&self, start: &Spanned<String>, kinds: &[Kind]) -> Result<Placement, RulesError> {
        let at = |problem| self.error(start.span(), problem);
        let placement = Placement::parse(start.get_ref(), &letters(kinds))
            .map_err(|error| at(Problem::Start(error)))?;
        let (width, height) = (placement.width, placement.height);
        if width > board_text::MAX_FILES || height < 2 {
            return Err(at(Problem::BoardShape { width, height }));
        }
        if width * height > MAX_SQUARES {
            return Err(at(Problem::BoardTooLarge { width, height }));
        }
        if placement.plies.is_some() {
            let why = "it needs no count of plies, games begin at 0".to_string();
            return Err(at(Problem::Start(ParseError(why))));
        }
        Ok(placement)
    }

    fn end_kind(
        &self,
        key: &'static str,
        letter: &Option<Spanned<String>>,
        kinds: &[Kind],
    ) -> Result<Option<usize>, RulesError> {
        let Some(letter) = letter else {
            return Ok(None);
        };
        let known: Vec<String> = letters(kinds).iter().map(char::to_string).collect();
        match known.iter().position(|known| known == letter.get_ref()) {
            Some(kind) => Ok(Some(kind)),
            None => {
                let letter_text = letter.get_ref().clone();
                let problem = Problem::EndPiece {
                    key,
                    letter: letter_text,
                    known,
                };
                Err(self.error(letter.span(), problem))
            }
        }
    }

    /// The limit that positions must count towards: none in a graded game, where
    /// one that no game can reach is accepted and means nothing.
    fn max_plies(&self, rules: &Rules, end: &Spanned<EndTable>) -> Result<Option<u16>, RulesError> {
        let Some(limit) = &end.get_ref().max_plies else {
            return match rules.restless_kind() {
                None => Ok(None),
                Some(kind) => {
                    let problem = Problem::NeedsMaxPlies(kind.name.clone());
                    Err(self.error(end.span(), problem))
                }
            };
        };
        let max_plies = *limit.get_ref();
        if !(1..=MAX_PLIES).contains(&max_plies) {
            return Err(self.error(limit.span(), Problem::MaxPlies(max_plies)));
        }
        if !rules.is_graded() {
            return Ok(Some(max_plies as u16));
        }
        let longest = rules.longest_game_plies();
        if (max_plies as usize) < longest {
            return Err(self.error(limit.span(), Problem::CutsShort { max_plies, longest }));
        }
        Ok(None)
    }
}
