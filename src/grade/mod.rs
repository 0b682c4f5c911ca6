//! The truth about agents and games: agents measured against exactly solved
//! positions, and the design report for people who invent games.
//!
//! Strength measured in matches is relative; a [`TestSet`] of positions whose value a
//! proof-number search has proved is not. [`grade()`] asks an agent about each of them:
//! does it take won positions for won, and how often does it throw a win away?
//! Reads and writes no files.

mod design;
mod lookahead;
mod measure;
mod sample;
mod testset;

pub use design::{
    DesignReport, FirstMove, Lengths, PlayReport, StartValue, WHERE_BALANCE_SHOWS, measure_play,
    solve_start,
};
pub use lookahead::Lookahead;
pub use measure::{Bin, Calibration, Grade, Row, Share, grade, references};
pub use sample::{Built, Effort, PriorFactory, Recipe, Source, build};
pub use testset::{
    Provenance, SHIPPED, ShippedTestSet, TestPosition, TestSet, TestSetError, parse_plies,
};
