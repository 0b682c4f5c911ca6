//! Numbers in blocks: what the kernels on the CPU compute with.
//!
//! A kernel is plain loops over blocks, compiled for several instruction sets and
//! chosen at run time by `pulp`. All of a kernel has to be inlined into what `pulp`
//! calls, or it is compiled for the oldest set.

use std::hint::black_box;
use std::iter::zip;

/// Numbers in a block: one register of the widest instruction set in use.
pub const LANES: usize = 16;

/// Some channels of a square, or some units of a layer.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C, align(64))]
pub struct Block(pub [f32; LANES]);

impl Block {
    pub const ZERO: Block = Block([0.0; LANES]);

    /// The sum of the lanes. Halving keeps the order of additions the same for every
    /// register width.
    #[inline(always)]
    pub fn total(mut self) -> f32 {
        let mut width = LANES / 2;
        while width > 0 {
            for lane in 0..width {
                self.0[lane] += self.0[lane + width];
            }
            width /= 2;
        }
        self.0[0]
    }
}

/// How many blocks hold `numbers`.
pub fn blocks_for(numbers: usize) -> usize {
    numbers.div_ceil(LANES)
}

/// Adds a row of blocks to sums, lane by lane.
#[inline(always)]
pub fn add(sums: &mut [Block], row: &[Block]) {
    combine(sums, row, |sum, number| sum + number);
}

/// Subtracts a row of blocks from sums, lane by lane.
#[inline(always)]
pub fn subtract(sums: &mut [Block], row: &[Block]) {
    combine(sums, row, |sum, number| sum - number);
}

#[inline(always)]
fn combine(sums: &mut [Block], row: &[Block], operation: impl Fn(f32, f32) -> f32) {
    for (sum, block) in zip(sums, row) {
        // From eight blocks on, the compiler would gather the first lanes of many blocks
        // into a register, then the second lanes, and so on, five times as slow.
        black_box(());
        // A copy, or the compiler fears that the two overlap.
        let mut total = *sum;
        for lane in 0..LANES {
            total.0[lane] = operation(total.0[lane], block.0[lane]);
        }
        *sum = total;
    }
}

#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// e^x within 2 units in the last place, clamped to where it is a normal number.
/// Free of branches and calls, so that loops over it vectorise.
///
/// Source: S. Moshier, Cephes `expf` (coefficients); rounding by adding 1.5 * 2^23
/// is folklore.
#[inline(always)]
fn exp(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts: the first has few bits, so that multiples of it are exact.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let x = x.clamp(-87.0, 87.0);
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let power = rounded - ROUND;
    let r = x - power * LN_2_HIGH - power * LN_2_LOW;
    let mut p = 1.987_569_2e-4;
    p = p * r + 1.398_2e-3;
    p = p * r + 8.333_452e-3;
    p = p * r + 4.166_579_6e-2;
    p = p * r + 1.666_666_5e-1;
    p = p * r + 0.5;
    let fraction = p * r * r + r + 1.0;
    // The low bits of `rounded` hold the power: move them into the exponent.
    let scale = f32::from_bits((rounded.to_bits() << 23).wrapping_add(1.0f32.to_bits()));
    fraction * scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_within_three_parts_in_ten_million() {
        for step in -87_000..=87_000 {
            let x = step as f32 / 1000.0;
            let exact = f64::from(x).exp();
            let error = (f64::from(exp(x)) - exact).abs() / exact;
            assert!(error < 3e-7, "exp({x}): relative error {error}");
        }
    }
}
