//! Boards as text: the rows of a position as chess programs write them, squares
//! such as `c2`, and the drawing with coordinates. It knows no rules.
//!
//! Files are the columns, `a` on the left; ranks are the rows, 1 at the bottom.
//! In code both count from 0.

use crate::game::{ParseError, Side};

/// The most squares that one row may have: there is a letter for each.
pub(crate) const MAX_FILES: usize = 26;

/// The letter of a file.
pub(crate) fn file_letter(file: usize) -> char {
    (b'a' + file as u8) as char
}

/// Reads `1k4/pppppp/...`: rows from the top, numbers for empty squares. Rows may
/// differ in length.
///
/// # Errors
/// If a row is empty, holds something other than letters and digits, or counts
/// more empty squares than a row can have.
pub(crate) fn parse_rows(text: &str) -> Result<Vec<Vec<Option<char>>>, ParseError> {
    text.split('/')
        .enumerate()
        .map(|(index, row)| {
            let row_name = || format!("row {} from the top ({row:?})", index + 1);
            parse_row(row).map_err(|why| ParseError(format!("{}: {why}", row_name())))
        })
        .collect()
}

fn parse_row(row: &str) -> Result<Vec<Option<char>>, String> {
    let mut squares = Vec::new();
    let mut rest = row;
    while let Some(letter) = rest.chars().next() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits > 0 {
            let empty = rest[..digits].parse().unwrap_or(0);
            if !(1..=MAX_FILES).contains(&empty) {
                return Err(format!("{} is no number of empty squares", &rest[..digits]));
            }
            squares.resize(squares.len() + empty, None);
            rest = &rest[digits..];
        } else if letter.is_ascii_alphabetic() {
            squares.push(Some(letter));
            rest = &rest[1..];
        } else {
            return Err(format!("{letter:?} is neither a piece nor a number"));
        }
    }
    if squares.is_empty() {
        Err("it is empty".to_string())
    } else {
        Ok(squares)
    }
}

/// Writes what [`parse_rows`] reads; `piece` is asked with (file, rank).
pub(crate) fn format_rows(
    width: usize,
    height: usize,
    piece: impl Fn(usize, usize) -> Option<char>,
) -> String {
    let rows: Vec<String> = (0..height)
        .rev()
        .map(|rank| {
            let mut row = String::new();
            let mut empty = 0;
            for file in 0..width {
                match piece(file, rank) {
                    None => empty += 1,
                    Some(letter) => {
                        push_empty(&mut row, &mut empty);
                        row.push(letter);
                    }
                }
            }
            push_empty(&mut row, &mut empty);
            row
        })
        .collect();
    rows.join("/")
}

fn push_empty(row: &mut String, empty: &mut usize) {
    if *empty > 0 {
        row.push_str(&empty.to_string());
    }
    *empty = 0;
}

/// The board over several lines, with coordinates; `piece` as in [`format_rows`].
pub(crate) fn draw(
    width: usize,
    height: usize,
    piece: impl Fn(usize, usize) -> Option<char>,
) -> String {
    let margin = height.to_string().len();
    let mut text = String::new();
    for rank in (0..height).rev() {
        text.push_str(&format!("{:>margin$}", rank + 1));
        for file in 0..width {
            text.push(' ');
            text.push(piece(file, rank).unwrap_or('.'));
        }
        text.push('\n');
    }
    text.push_str(&" ".repeat(margin));
    for file in 0..width {
        text.push(' ');
        text.push(file_letter(file));
    }
    text.push('\n');
    text
}

/// `w` or `b`, as in chess.
pub(crate) fn side_letter(side: Side) -> char {
    match side {
        Side::First => 'w',
        Side::Second => 'b',
    }
}

/// Reads [`side_letter`].
///
/// # Errors
/// If the text is something else.
pub(crate) fn parse_side(text: &str) -> Result<Side, ParseError> {
    match text {
        "w" => Ok(Side::First),
        "b" => Ok(Side::Second),
        _ => Err(ParseError(format!(
            "the side to move is w (first player) or b (second player), not {text:?}"
        ))),
    }
}

/// The name of a square.
pub(crate) fn square_name(file: usize, rank: usize) -> String {
    format!("{}{}", file_letter(file), rank + 1)
}

/// Reads a square's name at the start of `text`: (file, rank) and what follows.
pub(crate) fn parse_square(text: &str) -> Option<((usize, usize), &str)> {
    let letter = text.chars().next().filter(char::is_ascii_lowercase)?;
    let file = usize::from(letter as u8 - b'a');
    let rest = text[1..].trim_start_matches(|c: char| c.is_ascii_digit());
    let number: usize = text[1..text.len() - rest.len()].parse().ok()?;
    Some(((file, number.checked_sub(1)?), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_round_trip() {
        for text in ["1k4/pppppp/6/6/PPPPPP/4K1", "12/11a/5b6"] {
            let rows = parse_rows(text).unwrap();
            let (width, height) = (rows[0].len(), rows.len());
            let piece = |file: usize, rank: usize| rows[height - 1 - rank][file];
            assert_eq!(format_rows(width, height, piece), text);
        }
    }

    #[test]
    fn bad_rows_are_named() {
        for (text, message) in [
            ("2/3/", "row 3 from the top (\"\"): it is empty"),
            (
                "a-2",
                "row 1 from the top (\"a-2\"): '-' is neither a piece nor a number",
            ),
            (
                "4/é3",
                "row 2 from the top (\"é3\"): 'é' is neither a piece nor a number",
            ),
            (
                "4/0",
                "row 2 from the top (\"0\"): 0 is no number of empty squares",
            ),
            (
                "99999",
                "row 1 from the top (\"99999\"): 99999 is no number of empty squares",
            ),
        ] {
            assert_eq!(parse_rows(text).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn squares_round_trip() {
        assert_eq!(parse_square("c12d3"), Some(((2, 11), "d3")));
        assert_eq!(square_name(2, 11), "c12");
        for text in ["", "c", "c0", "C2", "2c", "é2"] {
            assert_eq!(parse_square(text), None, "{text}");
        }
    }

    #[test]
    fn drawings_have_coordinates() {
        let piece = |file, rank| (file == 1 && rank == 0).then_some('K');
        assert_eq!(draw(3, 2, piece), "2 . . .\n1 . K .\n  a b c\n");
    }
}
