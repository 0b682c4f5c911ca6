//! What the solver remembers of positions: a hash table of fixed size that grows up to
//! a limit, and then keeps what was most work.
//!
//! Keys are exact where the game's are: what an entry does not store of its key follows
//! from the bucket that it lies in.
//!
//! Source: A. Nagai, "Df-pn algorithm for searching AND/OR trees and its applications"
//! (2002), on tables for df-pn; replacement by the size of subtrees is D. Breuker's,
//! "Memory versus search in games" (1998).

use crate::random::mix;

/// How hard it seems to prove that the side to move wins, and that it does not: the
/// least number of leaves that would have to be decided for that, in some unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) proof: u32,
    pub(super) disproof: u32,
}

impl Numbers {
    /// Stands for "cannot be".
    pub(super) const INFINITE: u32 = u32::MAX;
    /// The largest number of a position that is not decided.
    pub(super) const LARGEST: u32 = u32::MAX / 2;

    /// The side to move wins.
    pub(super) const WON: Numbers = Numbers {
        proof: 0,
        disproof: Numbers::INFINITE,
    };
    /// The side to move does not win.
    pub(super) const LOST: Numbers = Numbers {
        proof: Numbers::INFINITE,
        disproof: 0,
    };
    /// Nothing is known.
    pub(super) const UNIT: Numbers = Numbers {
        proof: 1,
        disproof: 1,
    };

    /// As a bound: only a decision reaches it.
    pub(super) const UNREACHABLE: Numbers = Numbers {
        proof: Numbers::INFINITE,
        disproof: Numbers::INFINITE,
    };

    /// Whether the side to move wins, if that is decided.
    pub(super) fn is_decided(self) -> Option<bool> {
        (self.is_won() || self.is_lost()).then_some(self.is_won())
    }

    pub(super) fn is_won(self) -> bool {
        self.proof == 0
    }

    pub(super) fn is_lost(self) -> bool {
        self.disproof == 0
    }
}

/// Entries that a key can lie in.
const SLOTS: usize = 3;

/// One line of the processor's cache.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Bucket {
    /// The low half of the keys.
    low: [u64; SLOTS],
    /// The high half, without the bits that the bucket's index tells.
    high: [u32; SLOTS],
    proof: [u32; SLOTS],
    /// An empty slot has 0 here and as its proof number.
    disproof: [u32; SLOTS],
    worth: [Worth; SLOTS],
}

/// How much an entry is worth keeping: entries of this search before others, then by
/// the work that they took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Worth(u8);

impl Worth {
    const AGES: u8 = 8;

    fn new(age: u8, nodes: u64) -> Worth {
        let size = 63 - nodes.max(1).leading_zeros() as u8;
        Worth(age + size.min(31) * Worth::AGES)
    }

    fn rank(self, age: u8) -> (bool, u8) {
        (self.0 % Worth::AGES == age, self.0 / Worth::AGES)
    }
}

impl Bucket {
    const EMPTY: Bucket = Bucket {
        low: [0; SLOTS],
        high: [0; SLOTS],
        proof: [0; SLOTS],
        disproof: [0; SLOTS],
        worth: [Worth(0); SLOTS],
    };

    fn is_empty(&self, slot: usize) -> bool {
        self.proof[slot] == 0 && self.disproof[slot] == 0
    }

    fn find(&self, low: u64, high: u32) -> Option<usize> {
        (0..SLOTS)
            .find(|&slot| self.low[slot] == low && self.high[slot] == high && !self.is_empty(slot))
    }
}

/// Numbers by key.
#[derive(Debug)]
pub(super) struct Table {
    /// A power of two of them.
    buckets: Vec<Bucket>,
    max_buckets: usize,
    /// Slots in use.
    filled: usize,
    age: u8,
}

impl Table {
    /// Index bits of a new table: it fits into the second level of caches.
    const MIN_INDEX_BITS: u32 = 12;
    /// Key bits that an entry stores.
    const STORED_BITS: u32 = u64::BITS + u32::BITS;

    /// A table of at most `max_mib` MiB (and at least 256 KiB), for keys of `key_bits`
    /// bits.
    pub(super) fn new(max_mib: usize, key_bits: u32) -> Table {
        let most = (max_mib << 20) / size_of::<Bucket>();
        let max_index_bits = most.max(1).ilog2().max(Table::MIN_INDEX_BITS);
        let needed = key_bits
            .saturating_sub(Table::STORED_BITS)
            .max(Table::MIN_INDEX_BITS);
        let in_vain = needed > max_index_bits;
        let index_bits = if in_vain {
            Table::MIN_INDEX_BITS
        } else {
            needed
        };
        Table::with_index_bits(index_bits, max_index_bits)
    }

    /// One bucket, for tests.
    #[cfg(test)]
    pub(super) fn tiny() -> Table {
        Table::with_index_bits(0, 0)
    }

    fn with_index_bits(index_bits: u32, max_index_bits: u32) -> Table {
        Table {
            buckets: vec![Bucket::EMPTY; 1 << index_bits],
            max_buckets: 1 << max_index_bits,
            filled: 0,
            age: 0,
        }
    }

    /// Whether two keys of so many bits never count as one.
    pub(super) fn is_exact(&self, key_bits: u32) -> bool {
        key_bits <= Table::STORED_BITS + self.index_bits()
    }

    /// Makes everything stored so far easier to replace.
    pub(super) fn begin_search(&mut self) {
        self.age = (self.age + 1) % Worth::AGES;
    }

    /// The numbers stored for a key.
    #[inline]
    pub(super) fn get(&self, key: u128) -> Option<Numbers> {
        let (index, low, high) = self.locate(key);
        let bucket = &self.buckets[index];
        let slot = bucket.find(low, high)?;
        Some(Numbers {
            proof: bucket.proof[slot],
            disproof: bucket.disproof[slot],
        })
    }

    /// The work that went into the entry of a key, as a power of two.
    pub(super) fn work(&self, key: u128) -> Option<u8> {
        let (index, low, high) = self.locate(key);
        let bucket = &self.buckets[index];
        let slot = bucket.find(low, high)?;
        Some(bucket.worth[slot].rank(self.age).1)
    }

    /// Stores numbers, which took a search of so many nodes.
    pub(super) fn store(&mut self, key: u128, numbers: Numbers, nodes: u64) {
        if self.filled > self.buckets.len() && self.buckets.len() < self.max_buckets {
            self.grow();
        }
        let (index, low, high) = self.locate(key);
        let age = self.age;
        let bucket = &mut self.buckets[index];
        let mut worth = Worth::new(age, nodes);
        let slot = match bucket.find(low, high) {
            Some(slot) => {
                let before = bucket.worth[slot];
                if before.rank(age) > worth.rank(age) {
                    worth = before;
                }
                slot
            }
            None => {
                let slots = 0..SLOTS;
                let key = |&slot: &usize| (!bucket.is_empty(slot), bucket.worth[slot].rank(age));
                let slot = slots.min_by_key(key).expect("there are slots");
                self.filled += usize::from(bucket.is_empty(slot));
                slot
            }
        };
        bucket.low[slot] = low;
        bucket.high[slot] = high;
        bucket.proof[slot] = numbers.proof;
        bucket.disproof[slot] = numbers.disproof;
        bucket.worth[slot] = worth;
    }

    /// The bucket of a key, and what to store of it. The index is the low bits of the
    /// high half, masked by a hash of the low half: with the low half at hand it tells
    /// those bits.
    #[inline]
    fn locate(&self, key: u128) -> (usize, u64, u32) {
        let (low, high) = (key as u64, (key >> 64) as u64);
        let index = (high ^ mix(low)) as usize & (self.buckets.len() - 1);
        (index, low, (high >> self.index_bits()) as u32)
    }

    fn index_bits(&self) -> u32 {
        self.buckets.len().ilog2()
    }

    /// Doubles the number of buckets. An entry goes to one of the two buckets whose
    /// index ends like the old one: its next bit of the high half, and of the hash, say
    /// to which.
    fn grow(&mut self) {
        let old = std::mem::take(&mut self.buckets);
        let count = old.len();
        self.buckets = vec![Bucket::EMPTY; 2 * count];
        let mut used = [0; 2];
        for (index, bucket) in old.iter().enumerate() {
            used.fill(0);
            for slot in (0..SLOTS).filter(|&slot| !bucket.is_empty(slot)) {
                let upper =
                    (u64::from(bucket.high[slot]) ^ mix(bucket.low[slot]) >> count.ilog2()) & 1;
                let half = upper as usize;
                let target = &mut self.buckets[index + half * count];
                let free = used[half];
                used[half] += 1;
                target.low[free] = bucket.low[slot];
                target.high[free] = bucket.high[slot] >> 1;
                target.proof[free] = bucket.proof[slot];
                target.disproof[free] = bucket.disproof[slot];
                target.worth[free] = bucket.worth[slot];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::random::{RngExt, Seed};

    #[test]
    fn a_bucket_is_one_cache_line() {
        assert_eq!(size_of::<Bucket>(), 64);
    }

    #[test]
    fn what_is_stored_is_found_until_it_is_replaced_and_nothing_else_is() {
        for max_index_bits in [0, 3, 9] {
            let mut table = Table::with_index_bits(0, max_index_bits);
            let mut twin = HashMap::new();
            let mut rng = Seed(1).stream("table");
            // Keys of 96 bits at most that differ in few places, so that anything
            // less than a comparison of all bits would be found out.
            let keys: Vec<u128> = (0..3000)
                .map(|_| 1u128 << rng.random_range(0..96) | 1 << rng.random_range(0..96))
                .collect();
            assert!(table.is_exact(96));
            for round in 1..20_000 {
                let key = keys[rng.random_range(0..keys.len())];
                if let Some(numbers) = table.get(key) {
                    assert_eq!(Some(&numbers), twin.get(&key));
                }
                let numbers = Numbers {
                    proof: round,
                    disproof: rng.random_range(1..9),
                };
                table.store(key, numbers, rng.random_range(1..1000));
                twin.insert(key, numbers);
                assert_eq!(table.get(key), Some(numbers));
            }
            assert_eq!(table.buckets.len(), 1 << max_index_bits);
        }
    }

    #[test]
    fn growing_loses_nothing() {
        let mut table = Table::with_index_bits(4, 12);
        let mut rng = Seed(2).stream("table");
        let keys: Vec<u128> = (0..200)
            .map(|_| u128::from(rng.random::<u64>()) << 36 | u128::from(rng.random::<u64>()))
            .collect();
        let mut stored = HashMap::new();
        for (number, &key) in (1..).zip(&keys) {
            let numbers = Numbers {
                proof: number,
                disproof: 1,
            };
            table.store(key, numbers, 1);
            stored.insert(key, numbers);
            if table.buckets.len() == 1 << 4 {
                // Full buckets may have replaced something before the table grew.
                stored.retain(|&key, &mut numbers| table.get(key) == Some(numbers));
            }
        }
        assert!(table.buckets.len() > 1 << 4);
        let before: Vec<_> = keys.iter().map(|&key| table.get(key)).collect();
        table.grow();
        table.grow();
        let after: Vec<_> = keys.iter().map(|&key| table.get(key)).collect();
        assert_eq!(before, after);
        assert!(stored.len() > 20);
    }

    #[test]
    fn little_work_is_replaced_first_and_old_work_before_that() {
        let mut table = Table::with_index_bits(0, 0);
        let mut store = |key: u128, nodes| table.store(key, Numbers::UNIT, nodes);
        store(1, 1000);
        store(2, 10);
        store(3, 100);
        store(4, 1);
        assert_eq!(
            [1, 2, 3, 4].map(|key| table.get(key).is_some()),
            [true, false, true, true]
        );
        table.begin_search();
        table.store(5, Numbers::UNIT, 1);
        table.store(6, Numbers::UNIT, 1);
        assert_eq!(
            [1, 3, 4].map(|key| table.get(key).is_some()),
            [true, false, false]
        );
    }
}
