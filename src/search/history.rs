//! The history heuristic: moves that refuted positions before are likely to refute
//! others.
//!
//! Source: J. Schaeffer, "The history heuristic and alpha-beta search enhancements in
//! practice" (1989).

use std::hash::Hash;

use super::table::fast_hash;
use crate::game::Side;

/// Counts the refutations by each move of each side. Moves share a counter if their
/// hashes meet; the counts only order moves, so that does no harm.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    counts: Vec<u32>,
}

impl History {
    /// Counters a side, a power of two.
    const COUNTERS: usize = 1 << 10;

    /// Sets all counts to zero.
    pub(super) fn clear(&mut self) {
        self.counts.clear();
        self.counts.resize(2 * Self::COUNTERS, 0);
    }

    /// Counts a refutation with `depth` plies left: the more are left, the more
    /// work it saved.
    pub(super) fn reward(&mut self, side: Side, mv: impl Hash, depth: u32) {
        let count = &mut self.counts[index(side, mv)];
        *count = count.saturating_add(depth * depth);
    }

    pub(super) fn count(&self, side: Side, mv: impl Hash) -> u32 {
        self.counts[index(side, mv)]
    }
}

fn index(side: Side, mv: impl Hash) -> usize {
    let hash = fast_hash(&mv) as usize & (History::COUNTERS - 1);
    side.index() * History::COUNTERS + hash
}
