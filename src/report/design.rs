//! The design report of a game as text and as a page.

use super::{Line, Page, histograms, line_chart, markdown_table, share_chart};
use crate::grade::{DesignReport, FirstMove, PlayReport, WHERE_BALANCE_SHOWS};

/// A table with a title, and the chart that a page shows with it.
struct Table {
    title: &'static str,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    chart: Option<String>,
}

/// The report as text.
pub fn design_text(report: &DesignReport) -> String {
    let mut text = format!("{} ({})\n{}\n", report.title, report.game, report.start);
    for paragraph in paragraphs(report) {
        text += &format!("\n{paragraph}\n");
    }
    for table in tables(report) {
        let header: Vec<&str> = table.header.iter().map(String::as_str).collect();
        let body = markdown_table(&header, &table.rows);
        text += &format!("\n{}\n\n{body}", table.title);
    }
    text
}

/// The report as a page.
pub fn design_page(report: &DesignReport) -> Page {
    let mut page = Page::new(format!("{}: design report", report.title));
    page.text(&format!("{}, start {}", report.game, report.start));
    for paragraph in paragraphs(report) {
        page.text(&paragraph);
    }
    for table in tables(report) {
        let header: Vec<&str> = table.header.iter().map(String::as_str).collect();
        page.heading(table.title).table(&header, &table.rows);
        if let Some(chart) = table.chart {
            page.chart(&chart);
        }
    }
    page
}

fn paragraphs(report: &DesignReport) -> Vec<String> {
    let exact = &report.exact;
    let value = match (exact.value, &exact.unknown_because) {
        (Some(value), _) => format!(
            "a {} for the first player ({} nodes)",
            value.name(),
            exact.nodes
        ),
        (None, Some(reason)) => reason.clone(),
        (None, None) => "unknown".to_string(),
    };
    let mut paragraphs = vec![
        format!("Exact value of the start: {value}."),
        WHERE_BALANCE_SHOWS.to_string(),
        "Each agent plays against itself, from random openings of 2 to 4 plies.".to_string(),
    ];
    paragraphs.extend(report.no_network.clone());
    paragraphs
}

fn tables(report: &DesignReport) -> Vec<Table> {
    vec![
        play_table(&report.play),
        endings_table(&report.play),
        lengths_table(&report.play),
        branching_table(&report.play),
        first_moves_table(report),
    ]
}

fn strings(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| cell.to_string()).collect()
}

fn play_table(play: &[PlayReport]) -> Table {
    let rows = play.iter().map(|play| {
        let ahead = play
            .ahead_loses
            .map_or(String::new(), |share| share.to_string());
        vec![
            play.agent.clone(),
            play.games.to_string(),
            play.distinct_games.to_string(),
            play.first_player.to_string(),
            play.ahead_games.to_string(),
            ahead,
        ]
    });
    let shares = play
        .iter()
        .map(|play| (play.agent.clone(), play.first_player));
    let chart = share_chart(
        "the first player's share of the points",
        &shares.collect::<Vec<_>>(),
    );
    Table {
        title: "Who wins",
        header: strings(&[
            "play of",
            "games",
            "distinct",
            "first player scores",
            "with more material half-way",
            "of these lost",
        ]),
        rows: rows.collect(),
        chart: Some(chart),
    }
}

fn lengths_table(play: &[PlayReport]) -> Table {
    let rows = play.iter().map(|play| {
        let quartiles = play.lengths.quartiles.iter().map(u64::to_string);
        let mean = format!("{:.1}", play.lengths.mean);
        [play.agent.clone(), mean]
            .into_iter()
            .chain(quartiles)
            .collect()
    });
    let counts = play
        .iter()
        .map(|play| (&*play.agent, &*play.lengths.histogram));
    let chart = histograms("plies", "share of the games", &counts.collect::<Vec<_>>());
    Table {
        title: "How long games last, in plies",
        header: strings(&[
            "play of",
            "mean",
            "shortest",
            "lower quartile",
            "median",
            "upper quartile",
            "longest",
        ]),
        rows: rows.collect(),
        chart: Some(chart),
    }
}

fn endings_table(play: &[PlayReport]) -> Table {
    let rows = play.iter().flat_map(|play| {
        play.endings.iter().map(|(ending, counts)| {
            let [won, drawn, lost] = counts;
            let games = counts.iter().sum::<u64>() as f64;
            vec![
                play.agent.clone(),
                ending.clone(),
                format!("{:.1}%", 100.0 * games / play.games as f64),
                won.to_string(),
                drawn.to_string(),
                lost.to_string(),
            ]
        })
    });
    Table {
        title: "How games end, for the first player",
        header: strings(&["play of", "ending", "games", "won", "drawn", "lost"]),
        rows: rows.collect(),
        chart: None,
    }
}

fn branching_table(play: &[PlayReport]) -> Table {
    const STEP: usize = 4;
    let longest = play
        .iter()
        .map(|play| play.branching.len())
        .max()
        .unwrap_or(0);
    let number = |mean: f64| format!("{mean:.1}");
    let line = |name: String, cell: &dyn Fn(&PlayReport) -> String| -> Vec<String> {
        [name].into_iter().chain(play.iter().map(cell)).collect()
    };
    let plies = (0..longest).step_by(STEP);
    let by_ply = plies.map(|ply| {
        line(ply.to_string(), &|play| {
            play.branching
                .get(ply)
                .copied()
                .map_or(String::new(), number)
        })
    });
    let mean = line("mean".to_string(), &|play| number(play.mean_branching));
    let lines = play.iter().map(|play| Line {
        name: play.agent.clone(),
        points: (0..)
            .map(f64::from)
            .zip(play.branching.iter().copied())
            .collect(),
    });
    let chart = line_chart("ply", "legal moves", &lines.collect::<Vec<_>>());
    Table {
        title: "Legal moves by ply",
        header: line("ply".to_string(), &|play| play.agent.clone()),
        rows: by_ply.chain([mean]).collect(),
        chart: Some(chart),
    }
}

fn first_moves_table(report: &DesignReport) -> Table {
    let mut moves = report.first_moves.clone();
    // Stable: without a network the order of the rules stays.
    moves.sort_by(|a, b| {
        let key = |mv: &FirstMove| (mv.exact, mv.network.unwrap_or(0.0));
        let ((exact_a, network_a), (exact_b, network_b)) = (key(a), key(b));
        exact_b.cmp(&exact_a).then(network_b.total_cmp(&network_a))
    });
    let rows = moves.into_iter().map(|mv| {
        vec![
            mv.mv,
            mv.network
                .map_or(String::new(), |value| format!("{value:+.3}")),
            mv.exact.map_or("unknown", |value| value.name()).to_string(),
        ]
    });
    Table {
        title: "First moves, valued for the first player",
        header: strings(&["move", "network", "exact"]),
        rows: rows.collect(),
        chart: None,
    }
}
