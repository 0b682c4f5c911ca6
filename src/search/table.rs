//! The transposition table: what a search has found out about positions that it may
//! meet again by another order of moves.
//!
//! Entries hold the whole position, so that two positions that fall on one slot are
//! told apart: a hit is never wrong.
//!
//! Source: R. Greenblatt, D. Eastlake, S. Crocker, "The Greenblatt chess program" (1967).

use std::hash::{Hash, Hasher};

use super::score::Score;
use crate::random::mix;

/// What is known of a position.
#[derive(Debug, Clone)]
pub(super) struct Entry<P, M> {
    position: P,
    /// The age of the table when it was stored.
    age: u32,
    /// Plies searched below the position.
    depth: u32,
    score: Score,
    bound: Bound,
    /// The best move found, or the one that refuted the position.
    pub(super) mv: M,
}

/// How a search's score relates to the exact one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    Lower,
    Exact,
    Upper,
}

impl<P, M> Entry<P, M> {
    /// The score, if it answers a search of exactly `depth` plies with this window.
    /// A deeper one would not do: searches are to give what minimax gives.
    pub(super) fn answer(&self, depth: u32, [alpha, beta]: [Score; 2]) -> Option<Score> {
        let settles = match self.bound {
            Bound::Exact => true,
            Bound::Lower => self.score >= beta,
            Bound::Upper => self.score <= alpha,
        };
        (self.depth == depth && settles).then_some(self.score)
    }
}

/// One entry a slot; the newest stays. Takes no memory before the first entry.
#[derive(Debug, Clone)]
pub(super) struct Table<P, M> {
    slots: Vec<Option<Entry<P, M>>>,
    /// Number of entries of this age.
    filled: usize,
    age: u32,
}

impl<P: Eq + Hash + Clone, M: Copy> Table<P, M> {
    /// Slots at the start.
    const MIN_SLOTS: usize = 1 << 12;
    /// Slots at most: about 80 MiB for the games at hand.
    const MAX_SLOTS: usize = 1 << 20;

    pub(super) fn new() -> Table<P, M> {
        Table {
            slots: Vec::new(),
            filled: 0,
            age: 0,
        }
    }

    /// Forgets everything, keeps the memory.
    pub(super) fn clear(&mut self) {
        self.age += 1;
        self.filled = 0;
    }

    pub(super) fn get(&self, position: &P) -> Option<&Entry<P, M>> {
        if self.slots.is_empty() {
            return None;
        }
        let entry = self.slots[self.slot(position)].as_ref()?;
        (entry.age == self.age && entry.position == *position).then_some(entry)
    }

    /// Stores that a search of `depth` plies with the window `alpha` to `beta` gave
    /// `score` by way of `mv`.
    pub(super) fn store(
        &mut self,
        position: &P,
        depth: u32,
        [alpha, beta]: [Score; 2],
        score: Score,
        mv: M,
    ) {
        let bound = if score >= beta {
            Bound::Lower
        } else if score <= alpha {
            Bound::Upper
        } else {
            Bound::Exact
        };
        self.insert(Entry {
            position: position.clone(),
            age: self.age,
            depth,
            score,
            bound,
            mv,
        });
        if 2 * self.filled > self.slots.len() && self.slots.len() < Self::MAX_SLOTS {
            self.grow();
        }
    }

    fn insert(&mut self, entry: Entry<P, M>) {
        if self.slots.is_empty() {
            self.slots.resize(Self::MIN_SLOTS, None);
        }
        let slot = self.slot(&entry.position);
        let before = self.slots[slot].replace(entry);
        if before.is_none_or(|before| before.age != self.age) {
            self.filled += 1;
        }
    }

    fn grow(&mut self) {
        let size = 2 * self.slots.len();
        let entries = std::mem::replace(&mut self.slots, vec![None; size]);
        self.filled = 0;
        for entry in entries.into_iter().flatten() {
            if entry.age == self.age {
                self.insert(entry);
            }
        }
    }

    fn slot(&self, position: &P) -> usize {
        // The number of slots is a power of two.
        fast_hash(position) as usize & (self.slots.len() - 1)
    }
}

/// A hash that is quick to compute. Equal hashes of different values only cost time
/// where it is used.
pub(super) fn fast_hash(value: &impl Hash) -> u64 {
    let mut hasher = FastHasher(0);
    value.hash(&mut hasher);
    hasher.finish()
}

/// Multiplies and rotates, eight bytes at a time.
///
/// Source: the hash table of Firefox ("FxHash"); the finish is SplitMix64's, so that
/// the low bits are good.
struct FastHasher(u64);

impl Hasher for FastHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        const FACTOR: u64 = 0x517C_C1B7_2722_0A95;
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(FACTOR);
    }

    fn finish(&self) -> u64 {
        mix(self.0)
    }
}
