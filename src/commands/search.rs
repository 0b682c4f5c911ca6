//! `tanren search`: what a search finds, and how many positions it visits for that
//! with and without each of its means.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::{UsageError, open_position, prepare_agent, print};
use crate::agents::AgentSpec;
use crate::game::Game;
use crate::game::perft::perft;
use crate::games::tree::Tree;
use crate::games::{GameVisitor, with_game};
use crate::search::{AlphaBeta, Evaluator, Found, Limits, MaterialEvaluator, Options};

/// Arguments of `tanren search`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Search a tree that is given by its leaves.
    Tree {
        /// The leaves from left to right: what the first player receives.
        #[arg(required = true, allow_negative_numbers = true)]
        leaves: Vec<i32>,
        /// Branches of each node.
        #[arg(long, default_value_t = 2)]
        branching: usize,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Search a position of a game, 1 to DEPTH plies deep.
    Position {
        /// A built-in game or a rules file.
        #[arg(long, default_value = "march-blitz")]
        game: String,
        /// The position [default: the start of the game].
        #[arg(long, value_name = "FEN")]
        position: Option<String>,
        /// The greatest depth, in plies.
        #[arg(long, value_parser = clap::value_parser!(u8).range(1..))]
        depth: u8,
        /// Whose judgement to use at the end of the search.
        #[arg(long, value_name = "AGENT", default_value = "material")]
        with: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Searches and prints what was found.
///
/// # Errors
/// If the tree, the game, the position or the agent is not what it should be.
pub fn run(args: Args) -> anyhow::Result<()> {
    match args.command {
        Command::Tree {
            leaves,
            branching,
            json,
        } => search_tree(
            Tree::new(branching, leaves).map_err(UsageError::wrap)?,
            json,
        ),
        Command::Position {
            game,
            position,
            depth,
            with,
            json,
        } => {
            let search = PositionSearch {
                position,
                depth: depth.into(),
                with: with.parse().map_err(UsageError::wrap)?,
                json,
            };
            with_game(&game, search).map_err(UsageError::blame_name)?
        }
    }
}

/// What a search of one depth found.
#[derive(Debug, Clone, Serialize)]
struct Row {
    depth: u32,
    #[serde(flatten)]
    verdict: Verdict,
    /// Best play of both sides.
    line: Vec<String>,
    nodes: Nodes,
    /// b^(d/2): the root of the number of lines of play, which is near the least
    /// that alpha-beta must look at.
    ///
    /// Source: Knuth and Moore (1975), corollary 1.
    bound: Option<f64>,
}

/// Visited positions; a count that would take long is left out.
#[derive(Debug, Clone, Copy, Serialize)]
struct Nodes {
    minimax: Option<u64>,
    alpha_beta: Option<u64>,
    /// Alpha-beta with move ordering.
    ordering: Option<u64>,
    /// With ordering, a transposition table and all shallower searches.
    table: u64,
}

/// What a search says of a position, for the side to move.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Verdict {
    value: Number,
    /// In how many plies the game is won or lost, if that is seen.
    decided_in_plies: Option<u32>,
}

/// A value in the evaluator's own unit.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(untagged)]
enum Number {
    /// A piece count, or what a leaf of a tree holds.
    Count(i32),
    /// A network's judgement, from -1 (lost) to 1 (won).
    Judgement(f32),
}

impl Verdict {
    pub(super) fn new<M>(found: &Found<M>, counts_material: bool) -> Verdict {
        let value = if counts_material {
            Number::Count(MaterialEvaluator::count(found.value))
        } else {
            Number::Judgement(found.value.get())
        };
        Verdict {
            value,
            decided_in_plies: found.decided_in_plies,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (won, text) = match self.value {
            Number::Count(count) => (count > 0, format!("{count:+}")),
            Number::Judgement(value) => (value > 0.0, format!("{value:+.3}")),
        };
        let text = match self.decided_in_plies {
            Some(plies) if won => format!("won in {plies}"),
            Some(plies) => format!("lost in {plies}"),
            None => text,
        };
        f.pad(&text)
    }
}

impl Row {
    fn line_text(&self) -> String {
        self.line.join(" ")
    }

    fn counts_text(&self) -> String {
        let count = |count: Option<u64>| count.map_or("-".to_string(), |count| count.to_string());
        format!(
            "{:>12} {:>12} {:>12} {:>12} {:>9}",
            count(self.nodes.minimax),
            count(self.nodes.alpha_beta),
            count(self.nodes.ordering),
            self.nodes.table,
            self.bound
                .map_or("-".to_string(), |bound| format!("{bound:.0}"))
        )
    }
}

/// The columns of [`Row::counts_text`].
fn counts_header() -> String {
    let [minimax, plain, ordering, table] = ["minimax", "alpha-beta", "+ ordering", "+ table"];
    format!(
        "{minimax:>12} {plain:>12} {ordering:>12} {table:>12} {:>9}",
        "b^(d/2)"
    )
}

/// Searches one position with each set of means.
struct Comparison<'a, G: Game, F> {
    game: &'a G,
    position: &'a G::Position,
    /// Makes a fresh evaluator.
    evaluator: F,
    /// Whether values are piece counts.
    counts_material: bool,
}

/// A count is left out if the depth before took more positions than this.
const PATIENCE_NODES: u64 = 20_000_000;

impl<G: Game, E: Evaluator<G>, F: Fn() -> E> Comparison<'_, G, F> {
    /// Searches one depth; `before` is the depth before it.
    fn row(&self, depth: u32, before: Option<&Row>) -> Row {
        let affordable = |count: fn(&Nodes) -> Option<u64>| {
            before.is_none_or(|row| count(&row.nodes).is_some_and(|n| n <= PATIENCE_NODES))
        };
        let lines = affordable(|nodes| nodes.minimax)
            .then(|| perft(self.game, self.position, depth as usize));
        let plain =
            affordable(|nodes| nodes.alpha_beta).then(|| self.search(depth, false, false).0.nodes);
        let ordering =
            affordable(|nodes| nodes.ordering).then(|| self.search(depth, true, false).0.nodes);
        let (found, line) = self.search(depth, true, true);
        Row {
            depth,
            verdict: Verdict::new(&found, self.counts_material),
            line,
            nodes: Nodes {
                // Minimax visits every line of play, and where it begins.
                minimax: lines.as_ref().map(|lines| 1 + lines.iter().sum::<u64>()),
                alpha_beta: plain,
                ordering,
                table: found.nodes,
            },
            bound: lines.and_then(|lines| Some((*lines.last()? as f64).sqrt())),
        }
    }

    fn search(&self, depth: u32, ordering: bool, table: bool) -> (Found<G::Move>, Vec<String>) {
        let options = Options {
            ordering,
            table,
            all_best: false,
            prefer_sooner_wins: true,
        };
        let mut search = AlphaBeta::new((self.evaluator)(), options);
        let found = search.search(self.game, self.position, Limits::depth(depth));
        let line = search.line(self.game, self.position, found.depth);
        let line = line.into_iter().map(|mv| self.game.format_move(mv));
        (found, line.collect())
    }
}

fn search_tree(tree: Tree, json: bool) -> anyhow::Result<()> {
    let comparison = Comparison {
        game: &tree,
        position: &tree.start(),
        evaluator: || MaterialEvaluator,
        counts_material: true,
    };
    let row = comparison.row(tree.height() as u32, None);
    if json {
        return print(serde_json::to_string(&row)?);
    }
    print(format_args!("value  {}", row.verdict))?;
    print(format_args!(
        "line   {} (branches from the left)",
        row.line_text()
    ))?;
    print(format_args!(
        "\nvisited nodes (+ table: all shallower searches included)\n{}\n{}",
        counts_header(),
        row.counts_text()
    ))
}

struct PositionSearch {
    position: Option<String>,
    depth: u32,
    with: AgentSpec,
    json: bool,
}

/// [`Row`]s of a position, and the last of them again as the result.
#[derive(Serialize)]
struct PositionReport {
    game: String,
    position: String,
    with: String,
    #[serde(flatten)]
    result: Row,
    depths: Vec<Row>,
}

impl GameVisitor for PositionSearch {
    type Output = anyhow::Result<()>;

    fn visit<G: Game>(self, game: Arc<G>) -> anyhow::Result<()> {
        let game = &*game;
        let position = open_position(game, self.position.as_deref())?;
        let agent = prepare_agent(game, &self.with)?;
        let comparison = Comparison {
            game,
            position: &position,
            evaluator: || agent.evaluator(),
            counts_material: agent.counts_material(),
        };
        if !self.json {
            print(game.draw(&position))?;
            print(format_args!(
                "depth  {:>10} {}  line",
                "value",
                counts_header()
            ))?;
        }
        let mut rows: Vec<Row> = Vec::new();
        for depth in 1..=self.depth {
            let row = comparison.row(depth, rows.last());
            if !self.json {
                let (counts, line) = (row.counts_text(), row.line_text());
                print(format_args!(
                    "{depth:>5}  {:>10} {counts}  {line}",
                    row.verdict
                ))?;
            }
            rows.push(row);
        }
        if !self.json {
            return Ok(());
        }
        print(serde_json::to_string(&PositionReport {
            game: game.name().to_string(),
            position: game.format_position(&position),
            with: self.with.to_string(),
            result: rows.last().expect("the depth is 1 or more").clone(),
            depths: rows,
        })?)
    }
}
