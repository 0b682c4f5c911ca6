//! The two matrix products that convolutions and dense layers on boards come to,
//! for one thread.
//!
//! Buffers consist of [`Block`]s of 16 numbers. A row of inputs is a handful of
//! blocks at fixed distances from where the row begins (for a square: the channels
//! of its nine neighbours), so that nothing has to be copied together first.
//!
//! Sums stay in registers: a tile of some rows by one or two blocks of outputs.
//! Each output is a sum of its own, by fused multiply-adds in the order of the
//! inputs, and so the same to the last bit whichever rows are computed with it,
//! and on every instruction set that fuses.
//!
//! Source: Goto, van de Geijn, "Anatomy of high-performance matrix multiplication"
//! (2008), for the tile in registers.

#![allow(
    clippy::needless_range_loop,
    reason = "closures may stay calls, and these loops must become registers"
)]

use pulp::{Simd, WithSimd};

use crate::nets::block::{Block, LANES};

/// Weights between a block of inputs and a block of outputs: `[input][output]`.
pub type Tile = [Block; LANES];

/// The weights of a layer, with where its inputs and outputs lie.
#[derive(Debug, Clone)]
pub struct Matrix {
    /// Distance of each block of inputs from where a row begins, in blocks.
    pub inputs: Vec<usize>,
    /// The same for outputs.
    pub outputs: Vec<usize>,
    /// `[block of outputs][block of inputs]`
    pub tiles: Vec<Tile>,
    /// `[block of outputs]`
    pub bias: Vec<Block>,
}

impl Matrix {
    /// All weights zero.
    pub fn zeros(inputs: Vec<usize>, outputs: Vec<usize>) -> Matrix {
        Matrix {
            tiles: vec![[Block::ZERO; LANES]; inputs.len() * outputs.len()],
            bias: vec![Block::ZERO; outputs.len()],
            inputs,
            outputs,
        }
    }

    /// The weights between two blocks.
    pub fn tile(&self, output: usize, input: usize) -> &Tile {
        &self.tiles[output * self.inputs.len() + input]
    }

    /// The weights between two blocks.
    pub fn tile_mut(&mut self, output: usize, input: usize) -> &mut Tile {
        &mut self.tiles[output * self.inputs.len() + input]
    }
}

/// Exchanges inputs and outputs.
pub fn transposed(tile: &Tile) -> Tile {
    let mut result = [Block::ZERO; LANES];
    for input in 0..LANES {
        for output in 0..LANES {
            result[output].0[input] = tile[input].0[output];
        }
    }
    result
}

/// Where a row begins in the buffers of inputs and of outputs, in blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub input: usize,
    pub output: usize,
}

/// What happens to a sum before it is stored.
#[derive(Debug, Clone, Copy)]
pub enum Finish<'a> {
    /// Negative sums become zero. NaN stays.
    Rectify,
    /// Nothing.
    Keep,
    /// Zero where the number at the same place here is not positive: what
    /// [`Finish::Rectify`] comes to on the way back.
    Gate(&'a [Block]),
}

/// Sets the outputs of `rows` to bias + `plus` + inputs x weights.
pub struct Product<'a> {
    pub matrix: &'a Matrix,
    pub rows: &'a [Row],
    pub inputs: &'a [Block],
    /// Lies as the outputs do.
    pub plus: Option<&'a [Block]>,
    pub finish: Finish<'a>,
    pub outputs: &'a mut [Block],
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // Sums for two multiply-adds a cycle of latency 4 at least, and with the
        // weights no more than there are registers: 32 of 512 bits, 16 of 256, 32 of 128.
        match S::F32_LANES {
            16 => self.run::<S, 1, 2, 8, 4>(simd),
            8 => self.run::<S, 2, 1, 4, 2>(simd),
            4 => self.run::<S, 4, 1, 4, 2>(simd),
            _ => self.run::<S, LANES, 1, 1, 1>(simd),
        }
    }
}

impl Product<'_> {
    /// `REGISTERS` hold a block; a tile is `ROWS` by `BLOCKS`, the last one perhaps
    /// `HALF` by `BLOCKS`.
    #[inline(always)]
    fn run<
        S: Simd,
        const REGISTERS: usize,
        const BLOCKS: usize,
        const ROWS: usize,
        const HALF: usize,
    >(
        mut self,
        simd: S,
    ) {
        let blocks = self.matrix.outputs.len();
        let whole = blocks - blocks % BLOCKS;
        for first in (0..whole).step_by(BLOCKS) {
            self.strip::<S, REGISTERS, BLOCKS, ROWS, HALF>(simd, first);
        }
        for first in whole..blocks {
            self.strip::<S, REGISTERS, 1, ROWS, HALF>(simd, first);
        }
    }

    #[inline(always)]
    fn strip<
        S: Simd,
        const REGISTERS: usize,
        const BLOCKS: usize,
        const ROWS: usize,
        const HALF: usize,
    >(
        &mut self,
        simd: S,
        first: usize,
    ) {
        for rows in self.rows.chunks(ROWS) {
            if rows.len() <= HALF {
                self.tile::<S, REGISTERS, BLOCKS, HALF>(simd, first, rows);
            } else {
                self.tile::<S, REGISTERS, BLOCKS, ROWS>(simd, first, rows);
            }
        }
    }

    #[inline(always)]
    fn tile<S: Simd, const REGISTERS: usize, const BLOCKS: usize, const ROWS: usize>(
        &mut self,
        simd: S,
        first: usize,
        rows: &[Row],
    ) {
        let Product {
            matrix,
            inputs,
            plus,
            finish,
            outputs,
            ..
        } = self;
        let zero = simd.splat_f32s(0.0);
        // A tile that is not full does its last row several times.
        let mut begins = [rows[rows.len() - 1]; ROWS];
        begins[..rows.len()].copy_from_slice(rows);

        let mut places = [[0; BLOCKS]; ROWS];
        for row in 0..ROWS {
            for block in 0..BLOCKS {
                places[row][block] = begins[row].output + matrix.outputs[first + block];
            }
        }

        let mut sums = [[[zero; REGISTERS]; BLOCKS]; ROWS];
        for block in 0..BLOCKS {
            let bias = load::<S, REGISTERS>(&matrix.bias[first + block]);
            for row in 0..ROWS {
                sums[row][block] = bias;
            }
        }
        if let Some(plus) = plus {
            for row in 0..ROWS {
                for block in 0..BLOCKS {
                    let plus = load::<S, REGISTERS>(&plus[places[row][block]]);
                    for register in 0..REGISTERS {
                        let sum = &mut sums[row][block][register];
                        *sum = simd.add_f32s(*sum, plus[register]);
                    }
                }
            }
        }

        let count = matrix.inputs.len();
        let mut tiles: [&[Tile]; BLOCKS] = [&[]; BLOCKS];
        for block in 0..BLOCKS {
            tiles[block] = &matrix.tiles[(first + block) * count..][..count];
        }
        for input in 0..count {
            let mut x = [&Block::ZERO; ROWS];
            for row in 0..ROWS {
                x[row] = &inputs[begins[row].input + matrix.inputs[input]];
            }
            let mut tile = [&tiles[0][input]; BLOCKS];
            for block in 0..BLOCKS {
                tile[block] = &tiles[block][input];
            }
            for lane in 0..LANES {
                let mut weights = [[zero; REGISTERS]; BLOCKS];
                for block in 0..BLOCKS {
                    weights[block] = load::<S, REGISTERS>(&tile[block][lane]);
                }
                for row in 0..ROWS {
                    let x = simd.splat_f32s(x[row].0[lane]);
                    for block in 0..BLOCKS {
                        for register in 0..REGISTERS {
                            let sum = &mut sums[row][block][register];
                            *sum = simd.mul_add_e_f32s(x, weights[block][register], *sum);
                        }
                    }
                }
            }
        }

        match finish {
            Finish::Keep => {}
            Finish::Rectify => {
                for row in 0..ROWS {
                    for block in 0..BLOCKS {
                        for register in 0..REGISTERS {
                            let sum = &mut sums[row][block][register];
                            // In this order the x86 instruction hands NaN on.
                            *sum = simd.max_f32s(zero, *sum);
                        }
                    }
                }
            }
            Finish::Gate(gate) => {
                for row in 0..ROWS {
                    for block in 0..BLOCKS {
                        let gate = load::<S, REGISTERS>(&gate[places[row][block]]);
                        for register in 0..REGISTERS {
                            let sum = &mut sums[row][block][register];
                            let open = simd.greater_than_f32s(gate[register], zero);
                            *sum = simd.select_f32s(open, *sum, zero);
                        }
                    }
                }
            }
        }
        for row in 0..ROWS {
            for block in 0..BLOCKS {
                store::<S, REGISTERS>(&mut outputs[places[row][block]], &sums[row][block]);
            }
        }
    }
}

/// Adds to `gradient` what `rows` contribute to the derivative of the loss by the
/// weights and by the bias: inputs times errors.
pub struct Gradient<'a> {
    pub gradient: &'a mut Matrix,
    pub rows: &'a [Row],
    pub inputs: &'a [Block],
    /// The derivative of the loss by the outputs; lies as they do.
    pub errors: &'a [Block],
}

impl WithSimd for Gradient<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match S::F32_LANES {
            16 => self.run::<S, 1, 2, 8>(simd),
            8 => self.run::<S, 2, 1, 4>(simd),
            4 => self.run::<S, 4, 1, 4>(simd),
            _ => self.run::<S, LANES, 1, 1>(simd),
        }
    }
}

impl Gradient<'_> {
    /// `REGISTERS` hold a block; a tile is `INPUTS` by `BLOCKS` weights.
    #[inline(always)]
    fn run<S: Simd, const REGISTERS: usize, const BLOCKS: usize, const INPUTS: usize>(
        mut self,
        simd: S,
    ) {
        let blocks = self.gradient.outputs.len();
        let whole = blocks - blocks % BLOCKS;
        for first in (0..whole).step_by(BLOCKS) {
            self.strip::<S, REGISTERS, BLOCKS, INPUTS>(simd, first);
        }
        for first in whole..blocks {
            self.strip::<S, REGISTERS, 1, INPUTS>(simd, first);
        }
    }

    #[inline(always)]
    fn strip<S: Simd, const REGISTERS: usize, const BLOCKS: usize, const INPUTS: usize>(
        &mut self,
        simd: S,
        first: usize,
    ) {
        for input in 0..self.gradient.inputs.len() {
            for lane in (0..LANES).step_by(INPUTS) {
                self.tile::<S, REGISTERS, BLOCKS, INPUTS>(simd, first, input, lane);
            }
        }
        for block in first..first + BLOCKS {
            let sum = &mut self.gradient.bias[block];
            let mut total = load::<S, REGISTERS>(sum);
            for row in self.rows {
                let place = row.output + self.gradient.outputs[block];
                let error = load::<S, REGISTERS>(&self.errors[place]);
                for register in 0..REGISTERS {
                    total[register] = simd.add_f32s(total[register], error[register]);
                }
            }
            store::<S, REGISTERS>(sum, &total);
        }
    }

    #[inline(always)]
    fn tile<S: Simd, const REGISTERS: usize, const BLOCKS: usize, const INPUTS: usize>(
        &mut self,
        simd: S,
        first: usize,
        input: usize,
        lane: usize,
    ) {
        let Gradient {
            gradient,
            rows,
            inputs,
            errors,
        } = self;
        let zero = simd.splat_f32s(0.0);
        let input_place = gradient.inputs[input];
        let mut output_places = [0; BLOCKS];
        output_places.copy_from_slice(&gradient.outputs[first..first + BLOCKS]);

        let mut sums = [[[zero; REGISTERS]; BLOCKS]; INPUTS];
        for block in 0..BLOCKS {
            let tile = gradient.tile(first + block, input);
            for k in 0..INPUTS {
                sums[k][block] = load::<S, REGISTERS>(&tile[lane + k]);
            }
        }
        for row in *rows {
            let x = &inputs[row.input + input_place].0[lane..lane + INPUTS];
            let mut error = [[zero; REGISTERS]; BLOCKS];
            for block in 0..BLOCKS {
                error[block] = load::<S, REGISTERS>(&errors[row.output + output_places[block]]);
            }
            for k in 0..INPUTS {
                let x = simd.splat_f32s(x[k]);
                for block in 0..BLOCKS {
                    for register in 0..REGISTERS {
                        let sum = &mut sums[k][block][register];
                        *sum = simd.mul_add_e_f32s(x, error[block][register], *sum);
                    }
                }
            }
        }
        for block in 0..BLOCKS {
            let tile = gradient.tile_mut(first + block, input);
            for k in 0..INPUTS {
                store::<S, REGISTERS>(&mut tile[lane + k], &sums[k][block]);
            }
        }
    }
}

#[inline(always)]
fn load<S: Simd, const REGISTERS: usize>(block: &Block) -> [S::f32s; REGISTERS] {
    let (lanes, _) = S::as_simd_f32s(&block.0);
    let mut registers = [lanes[0]; REGISTERS];
    registers.copy_from_slice(lanes);
    registers
}

#[inline(always)]
fn store<S: Simd, const REGISTERS: usize>(block: &mut Block, registers: &[S::f32s; REGISTERS]) {
    let (lanes, _) = S::as_mut_simd_f32s(&mut block.0);
    lanes.copy_from_slice(registers);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nets::block::add;
    use crate::random::{Rng, RngExt, Seed, normal};
    use pulp::{Arch, Scalar};

    fn random_blocks(count: usize, rng: &mut Rng) -> Vec<Block> {
        let block = |_| Block(std::array::from_fn(|_| normal(rng)));
        (0..count).map(block).collect()
    }

    /// A matrix whose inputs and outputs lie anywhere, and rows that begin anywhere
    /// (outputs apart from each other).
    struct Case {
        matrix: Matrix,
        rows: Vec<Row>,
        inputs: Vec<Block>,
        outputs: Vec<Block>,
        gate: Vec<Block>,
    }

    fn cases() -> Vec<Case> {
        let mut rng = Seed(3).stream("products");
        let mut cases = Vec::new();
        for (inputs, outputs, rows) in [(1, 1, 1), (9, 2, 64), (3, 3, 7), (18, 5, 13), (2, 4, 8)] {
            let random_places = |count: usize, rng: &mut Rng| -> Vec<usize> {
                (0..count).map(|_| rng.random_range(0..40)).collect()
            };
            let mut matrix = Matrix::zeros(
                random_places(inputs, &mut rng),
                (0..outputs).map(|block| 3 * block).collect(),
            );
            matrix.bias = random_blocks(outputs, &mut rng);
            for tile in &mut matrix.tiles {
                *tile = random_blocks(LANES, &mut rng).try_into().unwrap();
            }
            let stride = 3 * outputs;
            cases.push(Case {
                matrix,
                rows: (0..rows)
                    .map(|row| Row {
                        input: rng.random_range(0..60),
                        output: row * stride,
                    })
                    .collect(),
                inputs: random_blocks(100, &mut rng),
                outputs: random_blocks(rows * stride, &mut rng),
                gate: random_blocks(rows * stride, &mut rng),
            });
        }
        cases
    }

    fn assert_close(a: &[Block], b: &[Block]) {
        assert_eq!(a.len(), b.len());
        let numbers = |blocks: &[Block]| -> Vec<f32> { blocks.iter().flat_map(|b| b.0).collect() };
        for (a, b) in numbers(a).into_iter().zip(numbers(b)) {
            assert!((a - b).abs() <= 1e-4, "{a} and {b}");
        }
    }

    /// What [`Product`] does, number by number.
    fn plain_product(product: Product) {
        for row in product.rows {
            for (o, &place) in product.matrix.outputs.iter().enumerate() {
                let place = row.output + place;
                for lane in 0..LANES {
                    let mut sum = product.matrix.bias[o].0[lane];
                    sum += product.plus.map_or(0.0, |plus| plus[place].0[lane]);
                    for (i, &from) in product.matrix.inputs.iter().enumerate() {
                        for k in 0..LANES {
                            sum += product.inputs[row.input + from].0[k]
                                * product.matrix.tile(o, i)[k].0[lane];
                        }
                    }
                    product.outputs[place].0[lane] = match product.finish {
                        Finish::Keep => sum,
                        Finish::Rectify => sum.max(0.0),
                        Finish::Gate(gate) if gate[place].0[lane] > 0.0 => sum,
                        Finish::Gate(_) => 0.0,
                    };
                }
            }
        }
    }

    /// What [`Gradient`] does, number by number.
    fn plain_gradient(gradient: Gradient) {
        let Gradient {
            gradient,
            rows,
            inputs,
            errors,
        } = gradient;
        for row in rows {
            for (o, to) in gradient.outputs.clone().into_iter().enumerate() {
                let error = errors[row.output + to];
                add(&mut gradient.bias[o..=o], &[error]);
                for (i, from) in gradient.inputs.clone().into_iter().enumerate() {
                    for k in 0..LANES {
                        let x = inputs[row.input + from].0[k];
                        for lane in 0..LANES {
                            gradient.tile_mut(o, i)[k].0[lane] += x * error.0[lane];
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn products_equal_plain_sums() {
        for case in cases() {
            for plus in [None, Some(&case.gate[..])] {
                for finish in [Finish::Keep, Finish::Rectify, Finish::Gate(&case.gate)] {
                    let run = |kernel: &dyn Fn(Product)| {
                        let mut outputs = case.outputs.clone();
                        kernel(Product {
                            matrix: &case.matrix,
                            rows: &case.rows,
                            inputs: &case.inputs,
                            plus,
                            finish,
                            outputs: &mut outputs,
                        });
                        outputs
                    };
                    let plain = run(&|product| plain_product(product));
                    assert_close(&run(&|product| Arch::new().dispatch(product)), &plain);
                    assert_close(&run(&|product| product.with_simd(Scalar)), &plain);
                }
            }
        }
    }

    #[test]
    fn gradients_equal_plain_sums() {
        for case in cases() {
            let run = |kernel: &dyn Fn(Gradient)| {
                let mut gradient = case.matrix.clone();
                kernel(Gradient {
                    gradient: &mut gradient,
                    rows: &case.rows,
                    inputs: &case.inputs,
                    errors: &case.gate,
                });
                (gradient.tiles.concat(), gradient.bias)
            };
            let plain = run(&|gradient| plain_gradient(gradient));
            for fast in [
                run(&|gradient| Arch::new().dispatch(gradient)),
                run(&|gradient| gradient.with_simd(Scalar)),
            ] {
                assert_close(&fast.0, &plain.0);
                assert_close(&fast.1, &plain.1);
            }
        }
    }

    #[test]
    fn a_row_does_not_depend_on_its_company() {
        for case in cases() {
            let run = |rows: &[Row], outputs: &mut Vec<Block>| {
                Arch::new().dispatch(Product {
                    matrix: &case.matrix,
                    rows,
                    inputs: &case.inputs,
                    plus: None,
                    finish: Finish::Keep,
                    outputs,
                });
            };
            let (mut together, mut apart) = (case.outputs.clone(), case.outputs.clone());
            run(&case.rows, &mut together);
            for row in &case.rows {
                run(&[*row], &mut apart);
            }
            assert_eq!(together, apart);
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn instruction_sets_that_fuse_agree_to_the_last_bit() {
        let Some(v3) = pulp::x86::V3::try_new() else {
            return; // Nothing here fuses.
        };
        for case in cases() {
            let run = |kernel: &dyn Fn(Product)| {
                let mut outputs = case.outputs.clone();
                kernel(Product {
                    matrix: &case.matrix,
                    rows: &case.rows,
                    inputs: &case.inputs,
                    plus: Some(&case.gate),
                    finish: Finish::Rectify,
                    outputs: &mut outputs,
                });
                outputs
            };
            let best = run(&|product| Arch::new().dispatch(product));
            assert_eq!(run(&|product| Simd::vectorize(v3, product)), best);
        }
    }

    #[test]
    fn a_tile_transposed_twice_is_itself() {
        let tile: Tile = random_blocks(LANES, &mut Seed(1).stream("tile"))
            .try_into()
            .unwrap();
        assert_eq!(transposed(&tile)[3].0[5], tile[5].0[3]);
        assert_eq!(transposed(&transposed(&tile)), tile);
    }
}
