//! The experiments, one file each, and the table of them.
//!
//! To add one, implement [`Experiment`](crate::lab::Experiment) in a file of its
//! own and add its line to [`EXPERIMENTS`]; commands and tests loop over the
//! table.

pub mod compare_nets;
pub mod train_value;
pub mod werewolf_q;

use crate::lab::AnyExperiment;

/// All experiments, in the order in which commands list their presets.
pub const EXPERIMENTS: &[AnyExperiment] = &[
    AnyExperiment::of::<train_value::TrainValue>(),
    AnyExperiment::of::<compare_nets::CompareNets>(),
    AnyExperiment::of::<werewolf_q::WerewolfQ>(),
];
