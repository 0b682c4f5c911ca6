//! Learned tables as bytes.
//!
//! Most cells were never visited and hold the initial value, so only visited ones
//! are stored: the distance from the one before and the counts in variable length,
//! the value as it is. Reading gives back exactly what was written.
//!
//! ```text
//! "TWW2"  states  actions  players, then for each player
//!   each Q table:      visited cells, then (gap, visits, f32) for each
//!   each view's counts: states looked at, then (gap, truths, looks) for each
//! SHA-256 of all that
//! ```
//! Numbers are LEB128, except for the values, which are little-endian. The hash is
//! there because most flipped bits would give other, plausible numbers.

use std::borrow::Borrow;

use sha2::{Digest, Sha256};

use super::config::Config;
use super::q_table::{Counts, QTable, TARGET_ACTIONS, Tables};
use super::rules::Rules;

/// Marks the file and its version.
const MAGIC: &[u8; 4] = b"TWW2";

/// Bytes that are not tables for this configuration.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// Something else.
    #[error("these are no Werewolf tables, or of another version")]
    NoTables,
    /// Another key, other rules, or other actions.
    #[error("the tables have {} states of {} actions, the configuration makes {} of {}",
        found.0, found.1, expected.0, expected.1)]
    Shape {
        /// States and actions in the file.
        found: (usize, usize),
        /// States and actions of the configuration.
        expected: (usize, usize),
    },
    /// The hash does not fit: something has changed, or is missing.
    #[error("the tables are damaged: they are not what was written")]
    Changed,
    /// The bytes end early or contradict themselves.
    #[error("the tables are damaged at byte {0}")]
    Damaged(usize),
}

/// The tables of some players as bytes.
pub fn encode<T: Borrow<Tables>>(players: &[T]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    let states = players
        .first()
        .map_or(0, |tables| tables.borrow().targets[0].states());
    write_number(&mut bytes, states as u32);
    write_number(&mut bytes, TARGET_ACTIONS as u32);
    write_number(&mut bytes, players.len() as u32);
    for tables in players {
        let tables = tables.borrow();
        for table in q_tables(tables) {
            write_q_table(&mut bytes, table);
        }
        for counts in &tables.counts {
            write_counts(&mut bytes, counts);
        }
    }
    let hash = Sha256::digest(&bytes);
    bytes.extend_from_slice(&hash);
    bytes
}

/// The tables that [`encode`] wrote under the same configuration.
///
/// # Errors
/// If the bytes are something else, for another configuration, or damaged.
pub fn decode(bytes: &[u8], config: &Config, rules: &Rules) -> Result<Vec<Tables>, StorageError> {
    if !bytes.starts_with(MAGIC) {
        return Err(StorageError::NoTables);
    }
    let (bytes, hash) = bytes
        .split_last_chunk::<32>()
        .ok_or(StorageError::Changed)?;
    if Sha256::digest(bytes)[..] != hash[..] {
        return Err(StorageError::Changed);
    }
    let mut reader = Reader {
        bytes,
        at: MAGIC.len(),
    };
    let found = (reader.number()? as usize, reader.number()? as usize);
    let players = reader.number()?;
    let fresh = Tables::new(config, rules);
    let expected = (fresh.targets[0].states(), TARGET_ACTIONS);
    if found != expected {
        return Err(StorageError::Shape { found, expected });
    }
    let tables = (0..players).map(|_| read_tables(&mut reader, fresh.clone(), config));
    let tables = tables.collect::<Result<Vec<Tables>, StorageError>>()?;
    if reader.at == bytes.len() {
        Ok(tables)
    } else {
        Err(StorageError::Damaged(reader.at))
    }
}

fn q_tables(tables: &Tables) -> impl Iterator<Item = &QTable> {
    tables
        .targets
        .iter()
        .chain([&tables.coming_out, &tables.fake_role])
}

fn write_q_table(bytes: &mut Vec<u8>, table: &QTable) {
    let cells = || table.cells().filter(|&(_, visits, _)| visits > 0);
    write_number(bytes, cells().count() as u32);
    let mut next = 0;
    for (cell, visits, value) in cells() {
        write_number(bytes, cell as u32 - next);
        write_number(bytes, visits);
        bytes.extend_from_slice(&value.to_le_bytes());
        next = cell as u32 + 1;
    }
}

fn write_counts(bytes: &mut Vec<u8>, counts: &Counts) {
    let looked_at = || (0..counts.states()).filter(|&state| counts.looks(state) > 0);
    write_number(bytes, looked_at().count() as u32);
    let mut next = 0;
    for state in looked_at() {
        write_number(bytes, state as u32 - next);
        write_number(bytes, counts.truths(state));
        write_number(bytes, counts.looks(state));
        next = state as u32 + 1;
    }
}

fn write_number(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn read_tables(
    reader: &mut Reader,
    mut tables: Tables,
    config: &Config,
) -> Result<Tables, StorageError> {
    let q_tables = tables.targets.iter_mut();
    for table in q_tables.chain([&mut tables.coming_out, &mut tables.fake_role]) {
        let mut next = 0;
        for _ in 0..reader.number()? {
            let cell = next + reader.number()? as usize;
            let (visits, value) = (reader.number()?, reader.value()?);
            table
                .set_cell(cell, visits, value)
                .ok_or(reader.damaged())?;
            next = cell + 1;
        }
    }
    for counts in &mut tables.counts {
        let mut next = 0;
        for _ in 0..reader.number()? {
            let state = next + reader.number()? as usize;
            let (truths, looks) = (reader.number()?, reader.number()?);
            counts
                .set(state, truths, looks, config.weight)
                .ok_or(reader.damaged())?;
            next = state + 1;
        }
    }
    Ok(tables)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn damaged(&self) -> StorageError {
        StorageError::Damaged(self.at)
    }

    fn byte(&mut self) -> Result<u8, StorageError> {
        let byte = *self.bytes.get(self.at).ok_or(self.damaged())?;
        self.at += 1;
        Ok(byte)
    }

    fn number(&mut self) -> Result<u32, StorageError> {
        let mut number = 0;
        for shift in (0..u32::BITS).step_by(7) {
            let byte = self.byte()?;
            number |= u32::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.damaged())
    }

    fn value(&mut self) -> Result<f32, StorageError> {
        let bytes = [self.byte()?, self.byte()?, self.byte()?, self.byte()?];
        Ok(f32::from_le_bytes(bytes))
    }
}
