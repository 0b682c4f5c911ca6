//! The file in which a won position's proof is kept: the winner's move in every
//! position that can arise and is not won at once. What the moves are worth is for
//! [`verify()`](super::verify()) to find out.
//!
//! # Format
//! 1. The line `tanren certificate 1`.
//! 2. A line of JSON: `game`, the name; `rules`, the rules file's text; `rules_sha256`,
//!    the hash of what the rules amount to; `start`, the position; `value`, "win" or
//!    "loss" for its side to move; `choices`, the number of choices.
//! 3. The choices: the index of the winner's move among its legal moves, seven bits a
//!    byte, the low ones first, the top bit set in all but the last byte.
//! 4. The SHA-256 of everything before, in 64 hexadecimal digits.
//!
//! Positions are not written down, their order says which is meant. Ply by ply, it is
//! that of all positions, each once, in which the winner is to move, has no move that
//! wins at once, and that the choices so far leave possible: compared by the letters on
//! their squares a1, b1, ..., a2, b2, ..., with `.` for an empty one, as ASCII. Legal
//! moves are ordered by the square left, then the square entered, squares in that order
//! too.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Exact;
use crate::hash::sha256_hex;

const FIRST_LINE: &str = "tanren certificate 1\n";

/// Hexadecimal digits of a hash.
const HASH_DIGITS: usize = 64;

/// A proof that a position is won for one side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// What it claims.
    pub claim: Claim,
    /// The winner's choices, as indices of legal moves; see the module for their order.
    pub choices: Vec<u32>,
}

/// What a certificate claims.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Name of the game.
    pub game: String,
    /// SHA-256 of [`Game::rules_text`](crate::game::Game::rules_text), in hexadecimal.
    pub rules_sha256: String,
    /// Text of the rules file.
    pub rules: String,
    /// The position.
    pub start: String,
    /// Its value for the side to move.
    pub value: Exact,
}

/// The second line.
#[derive(Serialize, Deserialize)]
struct Header {
    #[serde(flatten)]
    claim: Claim,
    choices: usize,
}

/// Why a file is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// It cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// It is something else.
    #[error("this is no certificate: it does not begin with \"tanren certificate 1\"")]
    Other,
    /// It is not as it was written.
    #[error("the file is damaged or was changed: its SHA-256 does not match the one at its end")]
    Checksum,
    /// The second line is not what it should be.
    #[error("line 2 does not describe the certificate")]
    Header(#[source] serde_json::Error),
    /// There are more or fewer choices than it says.
    #[error("line 2 announces {announced} choices, but there are {found}")]
    Choices {
        /// How many line 2 says.
        announced: usize,
        /// How many there are.
        found: usize,
    },
}

impl Certificate {
    /// The file's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let header = Header {
            claim: self.claim.clone(),
            choices: self.choices.len(),
        };
        let header = serde_json::to_string(&header).expect("a header has only plain fields");
        let mut bytes = format!("{FIRST_LINE}{header}\n").into_bytes();
        for &choice in &self.choices {
            push_number(choice, &mut bytes);
        }
        let hash = sha256_hex(&bytes);
        bytes.extend(hash.into_bytes());
        bytes
    }

    /// Reads what [`Certificate::to_bytes`] wrote.
    ///
    /// # Errors
    /// If the bytes are no certificate, or have changed since.
    pub fn from_bytes(bytes: &[u8]) -> Result<Certificate, CertificateError> {
        if !bytes.starts_with(FIRST_LINE.as_bytes()) {
            return Err(CertificateError::Other);
        }
        let content = bytes
            .len()
            .saturating_sub(HASH_DIGITS)
            .max(FIRST_LINE.len());
        let (content, hash) = bytes.split_at(content);
        if sha256_hex(content).as_bytes() != hash {
            return Err(CertificateError::Checksum);
        }
        let content = &content[FIRST_LINE.len()..];
        let end = content.iter().position(|&byte| byte == b'\n');
        let (header, numbers) = content.split_at(end.unwrap_or(content.len()));
        let header: Header = serde_json::from_slice(header).map_err(CertificateError::Header)?;
        let choices = read_numbers(numbers.get(1..).unwrap_or(&[]));
        if choices.len() != header.choices {
            return Err(CertificateError::Choices {
                announced: header.choices,
                found: choices.len(),
            });
        }
        Ok(Certificate {
            claim: header.claim,
            choices,
        })
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or is no certificate, or has changed since.
    pub fn load(path: &Path) -> Result<Certificate, CertificateError> {
        let bytes = std::fs::read(path).map_err(|source| CertificateError::Unreadable {
            path: path.to_path_buf(),
            source,
        })?;
        Certificate::from_bytes(&bytes)
    }
}

fn push_number(mut number: u32, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Bits beyond the 32nd are lost: such numbers mean nothing anyway.
fn read_numbers(bytes: &[u8]) -> Vec<u32> {
    let mut numbers = Vec::with_capacity(bytes.len());
    let (mut number, mut shift) = (0, 0);
    for &byte in bytes {
        number |= u32::from(byte & 0x7F).checked_shl(shift).unwrap_or(0);
        shift += 7;
        if byte < 0x80 {
            numbers.push(number);
            (number, shift) = (0, 0);
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate() -> Certificate {
        Certificate {
            claim: Claim {
                game: "march-blitz".to_string(),
                rules_sha256: "ab".repeat(32),
                rules: "name = \"march-blitz\"\n".to_string(),
                start: "1k/K1 w".to_string(),
                value: Exact::Loss,
            },
            choices: vec![0, 1, 127, 128, 300, u32::MAX, 5],
        }
    }

    #[test]
    fn certificates_round_trip() {
        let certificate = certificate();
        let bytes = certificate.to_bytes();
        assert_eq!(Certificate::from_bytes(&bytes).unwrap(), certificate);
    }

    #[test]
    fn every_changed_or_missing_byte_is_noticed() {
        let bytes = certificate().to_bytes();
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            assert!(Certificate::from_bytes(&changed).is_err(), "byte {place}");
            assert!(
                Certificate::from_bytes(&bytes[..place]).is_err(),
                "{place} bytes"
            );
        }
        assert!(Certificate::from_bytes(&[&bytes[..], b"\n"].concat()).is_err());
    }
}
