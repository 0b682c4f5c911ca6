//! `tanren games`: which games there are, their rules, checks of both, and reports on
//! their design.

mod report;

use std::fmt::Write as _;
use std::io::Write;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Subcommand;
use serde_json::json;

use crate::game::conformance::{self, Report};
use crate::game::{Game, PlaneLegend, PlaneShape, perft};
use crate::games::leaper::betza::Leap;
use crate::games::leaper::{Kind, Leaper, Rules, Stuck, slow};
use crate::games::{self, AnyGame, BoardGame, GAMES, GameVisitor};
use crate::random::Seed;

use super::{UsageError, position_or_start};

/// Depth to which `check` compares perft with the slow twin.
const CHECK_DEPTH: usize = 3;

/// Arguments of `tanren games`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the built-in games.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show the rules of a game.
    Show {
        /// A built-in game or a rules file.
        game: String,
        /// Print only the rules file, to start your own from it.
        #[arg(long, conflicts_with = "json")]
        toml: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Check a game: its rules file, then its laws in random games.
    Check {
        /// A built-in game or a rules file.
        game: String,
        /// Random games to play.
        #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
        games: u32,
        /// Seed of the random games.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Count the lines of play of each length.
    Perft {
        /// A built-in game or a rules file.
        game: String,
        /// The greatest length, in plies.
        #[arg(long, value_parser = clap::value_parser!(u8).range(1..))]
        depth: u8,
        /// Where to begin, instead of the start of the game.
        #[arg(long, value_name = "FEN")]
        position: Option<String>,
        /// Print JSON: {"perft": [16, 256, ...]}.
        #[arg(long)]
        json: bool,
    },
    /// Report on the design of a game: who wins, how, and after how long.
    Report(report::Args),
}

/// Runs `tanren games`; results go to stdout.
///
/// # Errors
/// If there is no such game, its rules are wrong, or a check fails.
pub fn run(args: Args) -> anyhow::Result<()> {
    let out = &mut std::io::stdout().lock();
    match args.action {
        Action::List { json } => list(json, out),
        Action::Show { game, toml, json } => show(&game, toml, json, out),
        Action::Check {
            game,
            games,
            seed,
            json,
        } => check(&game, games as usize, Seed(seed), json, out),
        Action::Perft {
            game,
            depth,
            position,
            json,
        } => {
            let counts = games::with_game(
                &game,
                Perft {
                    depth: depth.into(),
                    position,
                },
            )
            .map_err(UsageError::blame_name)??;
            print_perft(&counts, json, out)
        }
        Action::Report(args) => report::run(args, out),
    }
}

fn list(json: bool, out: &mut impl Write) -> anyhow::Result<()> {
    let games: Vec<_> = GAMES
        .iter()
        .map(|entry| (entry, describe((entry.build)())))
        .collect();
    if json {
        let rows: Vec<_> = games
            .iter()
            .map(|(entry, game)| {
                json!({
                    "name": entry.name,
                    "title": game.title,
                    "about": entry.about,
                    "board": game.board,
                })
            })
            .collect();
        writeln!(out, "{}", json!(rows))?;
        return Ok(());
    }
    writeln!(out, "{:<16}{:<24}{:<7}about", "game", "title", "board")?;
    for (entry, game) in games {
        writeln!(
            out,
            "{:<16}{:<24}{:<7}{}",
            entry.name, game.title, game.board, entry.about
        )?;
    }
    Ok(())
}

/// What can be said of any game.
struct Description {
    name: String,
    title: String,
    /// Such as `6x6`, files first.
    board: String,
    start: String,
    drawing: String,
    max_plies: usize,
    shape: PlaneShape,
    legend: PlaneLegend,
}

fn describe(game: AnyGame) -> Description {
    game.visit(Describe)
}

struct Describe;

impl GameVisitor for Describe {
    type Output = Description;

    fn visit<G: BoardGame>(self, game: Arc<G>) -> Description {
        let start = game.start();
        let (files, ranks) = game.board_size();
        Description {
            name: game.name().to_string(),
            title: game.title().to_string(),
            board: format!("{files}x{ranks}"),
            start: game.format_position(&start),
            drawing: game.draw(&start),
            max_plies: game.max_plies(),
            shape: game.plane_shape(),
            legend: game.plane_legend(),
        }
    }
}

fn show(spec: &str, toml: bool, json: bool, out: &mut impl Write) -> anyhow::Result<()> {
    let game = games::load(spec).map_err(UsageError::blame_name)?;
    let rules = game.as_leaper().map(|game| game.rules().clone());
    let source = rules.as_ref().map(|rules| &rules.source);
    if toml {
        let source = source.with_context(|| format!("{spec} is coded, it has no rules file"))?;
        write!(out, "{source}")?;
        return Ok(());
    }
    let about = describe(game);
    if json {
        let object = json!({
            "name": about.name,
            "title": about.title,
            "board": about.board,
            "start": about.start,
            "max_plies": about.max_plies,
            "input": about.shape,
            "input_legend": about.legend,
            "toml": source,
        });
        writeln!(out, "{object}")?;
        return Ok(());
    }
    writeln!(
        out,
        "{} ({})\n\n{}\nstart: {}\n",
        about.title, about.name, about.drawing, about.start
    )?;
    if let Some(rules) = &rules {
        writeln!(out, "{}", describe_rules(rules))?;
    } else if let Some(entry) = GAMES.iter().find(|entry| entry.name == spec) {
        writeln!(out, "{}\n", entry.about)?;
    }
    let shape = about.shape;
    writeln!(out, "A game lasts at most {} plies.", about.max_plies)?;
    writeln!(
        out,
        "Network input: {} planes of {} rows and {} columns, {} numbers: {}. In a plane {}.",
        shape.planes,
        shape.rows,
        shape.columns,
        shape.inputs(),
        about.legend.planes.join(", "),
        about.legend.squares
    )?;
    if let Some(source) = source {
        writeln!(
            out,
            "\nThe rules file (--toml prints it alone):\n\n{}",
            source.trim_end()
        )?;
    }
    Ok(())
}

fn describe_rules(rules: &Rules) -> String {
    let mut text = String::from(
        "Upper case is the first player and moves up, lower case the second and moves down.\n\n",
    );
    for kind in &rules.kinds {
        text += &describe_kind(kind);
    }
    text += "+ moves or captures, m only moves, x only captures (first player's view)\n\n";
    text += "The game ends:\n";
    for line in describe_ends(rules) {
        let _ = writeln!(text, "- {line}");
    }
    text
}

/// A piece's leaps as a diagram, the piece in the middle.
fn describe_kind(kind: &Kind) -> String {
    let mut text = format!(
        "{} ({}), {}, worth {}:\n",
        kind.name, kind.letter, kind.notation, kind.value
    );
    let reach = kind
        .leaps
        .iter()
        .map(|leap| leap.files.abs().max(leap.ranks.abs()));
    let reach = reach.max().unwrap_or(0);
    for ranks in (-reach..=reach).rev() {
        for files in -reach..=reach {
            let leap = kind
                .leaps
                .iter()
                .find(|leap| (leap.files, leap.ranks) == (files, ranks));
            let mark = match leap {
                _ if (files, ranks) == (0, 0) => kind.letter.to_ascii_uppercase(),
                Some(Leap {
                    moves: true,
                    captures: true,
                    ..
                }) => '+',
                Some(Leap { moves: true, .. }) => 'm',
                Some(_) => 'x',
                None => '.',
            };
            text.push(' ');
            text.push(mark);
        }
        text.push('\n');
    }
    text.push('\n');
    text
}

fn describe_ends(rules: &Rules) -> Vec<String> {
    let name = |kind: usize| &rules.kinds[kind].name;
    let mut lines = Vec::new();
    if let Some(kind) = rules.capture {
        lines.push(format!(
            "a side that has lost its last {} loses (Catch)",
            name(kind)
        ));
    }
    if let Some(kind) = rules.goal {
        lines.push(format!(
            "a side with a {} on the far rank wins (Try)",
            name(kind)
        ));
    }
    let stuck = match rules.stuck {
        Stuck::Loss => "loses",
        Stuck::Draw => "draws",
        Stuck::Win => "wins",
    };
    lines.push(format!("a side to move without a move {stuck} (stuck)"));
    if let Some(plies) = rules.max_plies {
        lines.push(format!(
            "after {plies} plies the game is a draw (max plies)"
        ));
    }
    lines
}

struct Conformance {
    games: usize,
    seed: Seed,
}

impl GameVisitor for Conformance {
    type Output = Report;

    fn visit<G: Game>(self, game: Arc<G>) -> Report {
        conformance::check(&*game, self.games, &mut self.seed.stream("games check"))
    }
}

fn check(
    spec: &str,
    games: usize,
    seed: Seed,
    json: bool,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let game = games::load(spec).map_err(UsageError::blame_name)?;
    let twin = game.as_leaper().map(|leaper| {
        let mut rng = seed.stream("games check twin");
        (
            slow_perft(leaper),
            slow::compare(leaper, CHECK_DEPTH, games, &mut rng),
        )
    });
    let mut report = game.visit(Conformance { games, seed });
    let slow_perft = twin.map(|(counts, difference)| {
        report.failures.extend(difference);
        counts
    });
    if json {
        let passed = report.failures.is_empty();
        let object = json!({
            "game": spec, "passed": passed, "report": report, "slow_perft": slow_perft,
        });
        writeln!(out, "{object}")?;
    } else {
        write!(
            out,
            "{}",
            describe_report(spec, &report, slow_perft.as_deref())
        )?;
    }
    if !report.failures.is_empty() {
        bail!(
            "{spec} breaks {} of the laws of a game",
            report.failures.len()
        );
    }
    Ok(())
}

fn slow_perft(leaper: &Leaper) -> Vec<u64> {
    slow::slow_perft(leaper, &leaper.start(), CHECK_DEPTH)
}

fn describe_report(spec: &str, report: &Report, slow_perft: Option<&[u64]>) -> String {
    let endings: Vec<String> = report
        .endings
        .iter()
        .map(|(ending, times)| format!("{ending} {times}"))
        .collect();
    let mut text = format!(
        "{spec}: {} random games, {} positions\n\
         checked: moves, results, texts, colour flip, left-right mirror, network input, table keys\n\
         endings: {}; longest game {} plies\n",
        report.games,
        report.positions,
        endings.join(", "),
        report.longest_plies
    );
    if let Some(counts) = slow_perft {
        let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
        let counts = counts.join(", ");
        let _ = writeln!(
            text,
            "compared with a slow second generator: perft {counts}, and {} more random games",
            report.games
        );
    }
    for failure in &report.failures {
        let _ = writeln!(text, "BROKEN {failure}");
    }
    if report.failures.is_empty() {
        text += "all laws hold\n";
    }
    text
}

struct Perft {
    depth: usize,
    position: Option<String>,
}

impl GameVisitor for Perft {
    type Output = anyhow::Result<Vec<u64>>;

    fn visit<G: Game>(self, game: Arc<G>) -> anyhow::Result<Vec<u64>> {
        let position = position_or_start(&*game, self.position.as_deref())?;
        Ok(perft::perft(&*game, &position, self.depth))
    }
}

fn print_perft(counts: &[u64], json: bool, out: &mut impl Write) -> anyhow::Result<()> {
    if json {
        writeln!(out, "{}", json!({ "perft": counts }))?;
        return Ok(());
    }
    writeln!(out, "plies  lines of play")?;
    for (plies, count) in (1..).zip(counts) {
        writeln!(out, "{plies:>5}  {count}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(run: impl FnOnce(&mut Vec<u8>) -> anyhow::Result<()>) -> String {
        let mut out = Vec::new();
        run(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_game_is_listed_and_shown() {
        let listed = printed(|out| list(false, out));
        for entry in GAMES {
            assert!(listed.contains(entry.name), "{listed}");
            let shown = printed(|out| show(entry.name, false, false, out));
            assert!(shown.contains("a b c d e f"), "{shown}");
        }
    }

    #[test]
    fn rules_are_drawn_for_people() {
        let shown = printed(|out| show("breakthrough-6", false, false, out));
        assert!(
            shown.contains("pawn (p), mfWfF, worth 1:\n + m +\n . P .\n . . .\n"),
            "{shown}"
        );
        assert!(
            shown.contains("- a side with a pawn on the far rank wins (Try)\n"),
            "{shown}"
        );
    }

    #[test]
    fn toml_alone_is_the_rules_file() {
        let shown = printed(|out| show("march-blitz", true, false, out));
        assert_eq!(shown, games::leaper::MARCH_BLITZ);
        let error = show("connect-four", true, false, &mut Vec::new()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "connect-four is coded, it has no rules file"
        );
    }

    #[test]
    fn perft_has_the_json_that_scripts_read() {
        assert_eq!(
            printed(|out| print_perft(&[16, 256], true, out)),
            "{\"perft\":[16,256]}\n"
        );
    }

    #[test]
    fn a_good_game_passes_the_check() {
        let text = printed(|out| check("march-blitz", 20, Seed(1), false, out));
        assert!(text.contains("perft 16, 256, 3776"), "{text}");
        assert!(text.ends_with("all laws hold\n"), "{text}");
    }

    #[test]
    fn broken_laws_are_printed() {
        let failure = conformance::Failure {
            law: "two flips do nothing",
            position: "1k/K1 w".to_string(),
            detail: "K1/1k w".to_string(),
        };
        let report = Report {
            failures: vec![failure],
            ..Report::default()
        };
        let text = describe_report("mine.toml", &report, None);
        assert!(
            text.ends_with("BROKEN two flips do nothing: in 1k/K1 w: K1/1k w\n"),
            "{text}"
        );
    }
}
