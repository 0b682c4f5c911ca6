//! The integration tests, in one binary: linking burn takes a while.

/// The folders of `src` depend on each other in one direction only.
mod layers;

/// Rules, perft, conformance, rules files.
mod games;

/// Networks, their fast twins, model folders.
mod nets;

/// Targets, self-play, learning, exactness.
mod train;

/// Minimax, alpha-beta, and that they agree.
mod search;

/// Exact values, their proofs, and the command that finds them.
mod solve;

/// Agents by name, matches, and the commands that need them.
mod arena;

/// Test sets, grades, design reports.
mod grade;

/// Rules, talk, role patterns, learning and evaluation of Werewolf.
mod werewolf;

/// The experiment runner.
mod lab;

/// The binary, as people use it.
mod cli;
