//! Tanren (鍛錬, forging by practice) trains, measures and plays game agents.
//!
//! The folders, lowest first. A folder may use those above it in this list,
//! never those below; `tests/layers.rs` reads the list and checks it.
//!
//! - [`hash`]: SHA-256 as text
//! - [`random`]: one seed, many named, independent, portable random streams
//! - [`stats`]: proportions and Elo differences with intervals, ratings, the SPRT
//! - [`game`]: what a two-player game is; perft and the conformance check
//! - [`games`]: the games, and the one place where a name becomes a game
//! - [`search`]: judging positions, and searching below them
//! - [`solve`]: exact values by proof-number search, and certificates of them
//! - [`nets`]: value networks, the devices they run on, model folders, shipped models, exports
//! - [`agents`]: who chooses moves: random, material, network, searcher; agents by name
//! - [`train`]: self-play, targets, replay, and the learner
//! - [`arena`]: matches and round robins between agents
//! - [`grade`]: agents measured against exactly solved positions; design reports of games
//! - [`werewolf`]: the eleven-player game of Werewolf: rules, simulator, learning
//! - [`lab`]: experiments that run in steps: configs, run folders, checkpoints, resume
//! - [`report`]: runs laid side by side, as tables, charts and pages
//! - [`experiments`]: the experiments themselves, one file each
//! - [`web`]: a page to play on and to watch training, and its server
//! - [`commands`]: the command line, one file a subcommand
//!
//! # What `tanren train` does
//!
//! ```text
//! preset or TOML --lab::config--> TrainValueConfig
//!   --lab::runner--> TrainValue::step, once per step:
//!        train::selfplay   games on all cores  -> samples (features, target)
//!        train::replay     window of samples   -> minibatches
//!        train::learner    minibatches         -> new weights
//!        arena             now and then        -> score against BabyAI, EasyAI
//!        grade             now and then        -> blunder rate on solved positions
//!   checkpoints/NNNNNN/ as it goes, model/ and summary.json at the end
//! ```
#![warn(missing_docs)]
#![deny(rustdoc::broken_intra_doc_links)]

pub mod agents;
pub mod arena;
pub mod commands;
pub mod experiments;
pub mod game;
pub mod games;
pub mod grade;
pub mod hash;
pub mod lab;
pub mod nets;
pub mod random;
pub mod report;
pub mod search;
pub mod solve;
pub mod stats;
pub mod train;
pub mod web;
pub mod werewolf;
