//! The integration tests, in one binary: linking burn takes a while.

/// The folders of `src` depend on each other in one direction only.
mod layers;

/// Rules, perft, conformance, rules files.
mod games;

/// Networks, their fast twins, model folders.
mod nets;

/// Exports and what they are compared with; weights from elsewhere.
mod export;

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

/// The GPU, or Mesa's software Vulkan, which `scripts/test` installs.
#[cfg(all(feature = "gpu", target_os = "linux"))]
mod gpu;

/// The server of the page: its API, what it refuses, and what it survives.
mod web;

/// The page, in a real browser.
mod browser;
