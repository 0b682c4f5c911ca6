//! Betza notation: how a piece leaps, in the few letters that inventors of chess
//! variants use. Only single leaps are read; sliding, hopping and first-move
//! specials are refused with a message that says so.
//!
//! A notation is a row of atoms, each a capital letter for a leap in all its
//! rotations and reflections, with small letters before it that narrow it down:
//!
//! - directions `f` `b` `l` `r` (forward, back, left, right), `v` (`f` and `b`),
//!   `s` (`l` and `r`);
//! - `m` moves only, to an empty square; `c` captures only. Neither means both.
//!
//! One direction and one across it, written side by side, are a pair. For
//! straight atoms a pair is either of the two (`flW`: one step forward or left);
//! for diagonal atoms it is the diagonal between them (`flF`); for crooked atoms
//! the second letter is the long part of the leap (`lfN`: two forward and one to
//! the left, `fsN`: one forward and two to a side). On a crooked atom a single or
//! doubled letter is the long part: `fN` and `ffN` are the two leaps that go
//! farthest forward, as the knight of shogi.
//!
//! Source: R. Betza's "funny notation" in the reading of H. G. Muller's XBetza
//! (<https://www.gnu.org/software/xboard/whats_new/rules/Betza.html>).

use std::collections::BTreeMap;

/// The atoms: letter, and the long and the short part of the leap.
const ATOMS: [(char, i8, i8); 9] = [
    ('W', 1, 0),
    ('F', 1, 1),
    ('D', 2, 0),
    ('N', 2, 1),
    ('A', 2, 2),
    ('H', 3, 0),
    ('C', 3, 1),
    ('Z', 3, 2),
    ('G', 3, 3),
];

/// One leap of a piece, as the first player makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leap {
    /// Files to the right; negative to the left.
    pub files: i8,
    /// Ranks forward; negative backward.
    pub ranks: i8,
    /// May go to an empty square.
    pub moves: bool,
    /// May capture an enemy piece.
    pub captures: bool,
}

/// Why a text is no notation of single leaps. Columns count characters from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BetzaError {
    /// No atom at all.
    #[error("it has no atom; one step forward, for example, is fW")]
    Empty,
    /// A capital that is no atom.
    #[error("column {column}: {letter} is no atom; the atoms are W F D N A H C Z G")]
    UnknownAtom {
        /// Where.
        column: usize,
        /// The capital.
        letter: char,
    },
    /// `K`, which many notations allow for the king.
    #[error("column {column}: write K as WF, with the prefixes before each letter (fK is fWfF)")]
    King {
        /// Where.
        column: usize,
    },
    /// `R`, `B`, `Q`, a doubled atom or a number: a piece that slides.
    #[error("column {column}: {letter} makes the piece slide, but only single leaps are supported")]
    Slides {
        /// Where.
        column: usize,
        /// The letter or digit.
        letter: char,
    },
    /// A character that is neither an atom nor a supported prefix.
    #[error("column {column}: {letter:?} is no prefix; the prefixes are f b l r s v m c")]
    UnknownPrefix {
        /// Where.
        column: usize,
        /// The character.
        letter: char,
    },
    /// Prefixes at the end of the text.
    #[error("column {column}: the prefix {letter} stands before no atom")]
    NoAtom {
        /// Where.
        column: usize,
        /// The last prefix.
        letter: char,
    },
}

/// Reads a notation. The leaps come ordered by rank, then file, each once.
///
/// # Errors
/// If the text is not Betza notation, or asks for more than single leaps.
pub fn parse(notation: &str) -> Result<Vec<Leap>, BetzaError> {
    let mut leaps = BTreeMap::new();
    let mut prefixes = String::new();
    let mut last_atom = None;
    for (column, letter) in (1..).zip(notation.chars()) {
        match letter {
            'f' | 'b' | 'l' | 'r' | 's' | 'v' | 'm' | 'c' => prefixes.push(letter),
            'K' => return Err(BetzaError::King { column }),
            'R' | 'B' | 'Q' => return Err(BetzaError::Slides { column, letter }),
            digit if digit.is_ascii_digit() && last_atom.is_some() => {
                return Err(BetzaError::Slides { column, letter });
            }
            atom if last_atom == Some(atom) && prefixes.is_empty() => {
                return Err(BetzaError::Slides { column, letter });
            }
            atom if atom.is_ascii_uppercase() => {
                let &(_, long, short) = ATOMS
                    .iter()
                    .find(|(known, ..)| *known == atom)
                    .ok_or(BetzaError::UnknownAtom { column, letter })?;
                add_leaps(long, short, &prefixes, &mut leaps);
                prefixes.clear();
                last_atom = Some(atom);
            }
            _ => return Err(BetzaError::UnknownPrefix { column, letter }),
        }
    }
    if let Some(letter) = prefixes.chars().last() {
        return Err(BetzaError::NoAtom {
            column: notation.chars().count(),
            letter,
        });
    }
    if leaps.is_empty() {
        return Err(BetzaError::Empty);
    }
    Ok(leaps
        .into_iter()
        .map(|((ranks, files), (moves, captures))| Leap {
            files,
            ranks,
            moves,
            captures,
        })
        .collect())
}

/// Adds the leaps of one atom that its prefixes leave, keyed by (ranks, files).
fn add_leaps(long: i8, short: i8, prefixes: &str, leaps: &mut BTreeMap<(i8, i8), (bool, bool)>) {
    let both = prefixes.contains('m') == prefixes.contains('c');
    let directions = direction_pairs(prefixes);
    for (files, ranks) in all_eight(long, short) {
        let selected = |&(first, second): &(char, char)| selects(first, second, files, ranks);
        if directions.is_empty() || directions.iter().any(selected) {
            let (moves, captures) = leaps.entry((ranks, files)).or_default();
            *moves |= both || prefixes.contains('m');
            *captures |= both || prefixes.contains('c');
        }
    }
}

/// Every rotation and reflection of a leap, some twice if it is symmetric.
fn all_eight(long: i8, short: i8) -> impl Iterator<Item = (i8, i8)> {
    [(long, short), (short, long)]
        .into_iter()
        .flat_map(|(files, ranks)| {
            [
                (files, ranks),
                (-files, ranks),
                (files, -ranks),
                (-files, -ranks),
            ]
        })
}

/// Splits the directions among `prefixes` into pairs, from the left: two letters
/// that are equal or across each other, otherwise a letter with itself.
fn direction_pairs(prefixes: &str) -> Vec<(char, char)> {
    let mut pairs = Vec::new();
    let mut letters = prefixes
        .chars()
        .filter(|letter| !"mc".contains(*letter))
        .peekable();
    while let Some(first) = letters.next() {
        let pairs_up =
            |second: &char| *second == first || is_vertical(*second) != is_vertical(first);
        pairs.push((first, letters.next_if(pairs_up).unwrap_or(first)));
    }
    pairs
}

fn is_vertical(direction: char) -> bool {
    "fbv".contains(direction)
}

/// Whether the pair of directions means the leap; see the head of the file.
fn selects(first: char, second: char, files: i8, ranks: i8) -> bool {
    let (first_points, second_points) = (points(first, files, ranks), points(second, files, ranks));
    if files == 0 || ranks == 0 {
        return first_points || second_points;
    }
    let crooked = files.abs() != ranks.abs();
    let along_long_part = is_vertical(second) == (ranks.abs() > files.abs());
    first_points && second_points && (!crooked || along_long_part)
}

/// Whether the leap goes, among other ways, in the direction.
fn points(direction: char, files: i8, ranks: i8) -> bool {
    match direction {
        'f' => ranks > 0,
        'b' => ranks < 0,
        'l' => files < 0,
        'r' => files > 0,
        'v' => ranks != 0,
        _ => files != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The leaps as (files, ranks), in the order of `parse`.
    fn offsets(notation: &str) -> Vec<(i8, i8)> {
        parse(notation)
            .unwrap()
            .iter()
            .map(|leap| (leap.files, leap.ranks))
            .collect()
    }

    #[test]
    fn atoms_without_prefix_leap_in_all_directions() {
        assert_eq!(offsets("W"), [(0, -1), (-1, 0), (1, 0), (0, 1)]);
        assert_eq!(offsets("F"), [(-1, -1), (1, -1), (-1, 1), (1, 1)]);
        for (atom, leaps) in [
            ("D", 4),
            ("N", 8),
            ("A", 4),
            ("H", 4),
            ("C", 8),
            ("Z", 8),
            ("G", 4),
        ] {
            assert_eq!(offsets(atom).len(), leaps, "{atom}");
        }
        assert_eq!(offsets("WF").len(), 8);
    }

    #[test]
    fn directions_narrow_an_atom() {
        for (notation, expected) in [
            ("fW", vec![(0, 1)]),
            ("sW", vec![(-1, 0), (1, 0)]),
            ("fbW", vec![(0, -1), (0, 1)]),
            ("flW", vec![(-1, 0), (0, 1)]),
            ("fsW", vec![(-1, 0), (1, 0), (0, 1)]),
            ("fF", vec![(-1, 1), (1, 1)]),
            ("flF", vec![(-1, 1)]),
            ("rA", vec![(2, -2), (2, 2)]),
            ("fWfF", vec![(-1, 1), (0, 1), (1, 1)]),
        ] {
            assert_eq!(offsets(notation), expected, "{notation}");
        }
    }

    #[test]
    fn crooked_atoms_take_the_last_direction_for_the_long_part() {
        for (notation, expected) in [
            ("fN", vec![(-1, 2), (1, 2)]),
            ("ffN", vec![(-1, 2), (1, 2)]),
            ("fsN", vec![(-2, 1), (2, 1)]),
            ("lfN", vec![(-1, 2)]),
            ("flN", vec![(-2, 1)]),
            ("lN", vec![(-2, -1), (-2, 1)]),
            ("fsffN", vec![(-2, 1), (2, 1), (-1, 2), (1, 2)]),
            ("vN", vec![(-1, -2), (1, -2), (-1, 2), (1, 2)]),
        ] {
            assert_eq!(offsets(notation), expected, "{notation}");
        }
    }

    #[test]
    fn modalities_add_up() {
        let leap = |files, moves, captures| Leap {
            files,
            ranks: 1,
            moves,
            captures,
        };
        assert_eq!(parse("mfW").unwrap(), [leap(0, true, false)]);
        assert_eq!(parse("fcW").unwrap(), [leap(0, false, true)]);
        assert_eq!(parse("mcfW").unwrap(), [leap(0, true, true)]);
        assert_eq!(parse("mfWcfW").unwrap(), [leap(0, true, true)]);
        let breakthrough = [
            leap(-1, true, true),
            leap(0, true, false),
            leap(1, true, true),
        ];
        assert_eq!(parse("mfWfF").unwrap(), breakthrough);
    }

    #[test]
    fn messages_name_the_column_and_the_way_out() {
        for (notation, message) in [
            ("", "it has no atom; one step forward, for example, is fW"),
            (
                "fX",
                "column 2: X is no atom; the atoms are W F D N A H C Z G",
            ),
            (
                "fK",
                "column 2: write K as WF, with the prefixes before each letter (fK is fWfF)",
            ),
            (
                "WR",
                "column 2: R makes the piece slide, but only single leaps are supported",
            ),
            (
                "W2",
                "column 2: 2 makes the piece slide, but only single leaps are supported",
            ),
            (
                "fWW",
                "column 3: W makes the piece slide, but only single leaps are supported",
            ),
            (
                "nN",
                "column 1: 'n' is no prefix; the prefixes are f b l r s v m c",
            ),
            (
                "3W",
                "column 1: '3' is no prefix; the prefixes are f b l r s v m c",
            ),
            ("fWcf", "column 4: the prefix f stands before no atom"),
        ] {
            assert_eq!(
                parse(notation).unwrap_err().to_string(),
                message,
                "{notation:?}"
            );
        }
    }
}
