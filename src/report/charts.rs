//! Charts as SVG text.

use std::cmp::Ordering;
use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use crate::stats::{Elo, Proportion};

/// A learning curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// What the legend calls it.
    pub name: String,
    /// In the order of learning.
    pub points: Vec<CurvePoint>,
}

/// A measured strength along a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurvePoint {
    /// Where on the x axis: games or seconds.
    pub x: f64,
    /// Score in [0, 1].
    pub score: f64,
    /// Lower end of its 95% interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A rated contestant.
#[derive(Debug, Clone, PartialEq)]
pub struct Rated {
    /// What the chart calls it.
    pub name: String,
    /// Rating.
    pub elo: Elo,
}

const SIZE: (u32, u32) = (800, 420);

/// Distinguishable also without colour vision.
///
/// Source: Okabe, Ito, "Color universal design" (2008).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];

type DrawingError = DrawingAreaErrorKind<<SVGBackend<'static> as DrawingBackend>::ErrorType>;

/// A line through points.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// What the legend calls it.
    pub name: String,
    /// From left to right.
    pub points: Vec<(f64, f64)>,
}

/// Scores over games or seconds (`x_label` says which), each with its interval.
pub fn learning_curves(x_label: &str, y_label: &str, curves: &[Curve]) -> String {
    curve_chart(
        [x_label, y_label],
        1.0,
        SeriesLabelPosition::LowerRight,
        curves,
    )
}

/// Like [`learning_curves`], for shares that should fall.
pub fn error_curves(x_label: &str, y_label: &str, curves: &[Curve]) -> String {
    let points = curves.iter().flat_map(|curve| &curve.points);
    let highest = points.map(|point| point.high).fold(0.01, f64::max);
    let legend = SeriesLabelPosition::UpperRight;
    curve_chart([x_label, y_label], (1.1 * highest).min(1.0), legend, curves)
}

fn curve_chart(
    [x_label, y_label]: [&str; 2],
    y_max: f64,
    legend: SeriesLabelPosition,
    curves: &[Curve],
) -> String {
    svg(|area| {
        let points = curves.iter().flat_map(|curve| &curve.points);
        let x_max = 1.02 * points.map(|point| point.x).fold(1.0, f64::max);
        let mut chart = plane(area, 0.0..x_max, 0.0..y_max)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc(x_label)
            .y_desc(y_label)
            .y_label_formatter(&percent)
            .x_label_formatter(&|x| {
                if x_max < 20.0 {
                    format!("{x:.1}")
                } else {
                    thousands(*x)
                }
            })
            .draw()?;
        for (curve, colour) in curves.iter().zip(COLOURS.iter().cycle()) {
            let line = curve.points.iter().map(|point| (point.x, point.score));
            chart
                .draw_series(LineSeries::new(line, colour.stroke_width(2)))?
                .label(&curve.name)
                .legend(move |at| stroke(at, *colour));
            chart.draw_series(curve.points.iter().map(|point| {
                let CurvePoint {
                    x,
                    score,
                    low,
                    high,
                } = *point;
                ErrorBar::new_vertical(x, low, score, high, colour.filled(), 6)
            }))?;
        }
        draw_legend(&mut chart, legend)
    })
}

/// Lines over a common x axis, from 0 up.
pub fn line_chart(x_label: &str, y_label: &str, lines: &[Line]) -> String {
    svg(|area| {
        let points = || lines.iter().flat_map(|line| &line.points);
        let x_max = points().map(|point| point.0).fold(1.0, f64::max);
        let y_max = 1.05 * points().map(|point| point.1).fold(0.01, f64::max);
        let mut chart = plane(area, 0.0..x_max, 0.0..y_max)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc(x_label)
            .y_desc(y_label)
            .draw()?;
        for (line, colour) in lines.iter().zip(COLOURS.iter().cycle()) {
            chart
                .draw_series(LineSeries::new(
                    line.points.iter().copied(),
                    colour.stroke_width(2),
                ))?
                .label(&line.name)
                .legend(move |at| stroke(at, *colour));
        }
        // Where the lines are not.
        let first_to_last =
            |line: &Line| line.points.first()?.1.partial_cmp(&line.points.last()?.1);
        let corner = match lines.first().and_then(first_to_last) {
            Some(Ordering::Greater) => SeriesLabelPosition::UpperRight,
            _ => SeriesLabelPosition::LowerRight,
        };
        draw_legend(&mut chart, corner)
    })
}

/// How often each whole number occurs, as shares, one translucent histogram over the
/// other. A histogram is a name, and counts from 0 on.
pub fn histograms(x_label: &str, y_label: &str, histograms: &[(&str, &[u64])]) -> String {
    svg(|area| {
        let share =
            |count: u64, counts: &[u64]| count as f64 / counts.iter().sum::<u64>().max(1) as f64;
        let bars = |counts: &[u64]| -> Vec<(f64, f64)> {
            let shares = counts.iter().map(|&count| share(count, counts));
            (0..)
                .map(f64::from)
                .zip(shares)
                .filter(|bar| bar.1 > 0.0)
                .collect()
        };
        let all: Vec<(f64, f64)> = histograms.iter().flat_map(|h| bars(h.1)).collect();
        let x_min = all
            .iter()
            .map(|bar| bar.0)
            .fold(f64::INFINITY, f64::min)
            .min(0.0);
        let x_max = all.iter().map(|bar| bar.0).fold(1.0, f64::max);
        let y_max = 1.05 * all.iter().map(|bar| bar.1).fold(0.01, f64::max);
        let mut chart = plane(area, x_min - 0.5..x_max + 0.5, 0.0..y_max)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .disable_x_mesh()
            .x_desc(x_label)
            .y_desc(y_label)
            .y_label_formatter(&percent)
            .x_label_formatter(&|x| format!("{x:.0}"))
            .draw()?;
        for ((name, counts), colour) in histograms.iter().zip(COLOURS.iter().cycle()) {
            chart
                .draw_series(bars(counts).into_iter().map(|(x, y)| {
                    let corners = [(x - 0.45, 0.0), (x + 0.45, y)];
                    Rectangle::new(corners, colour.mix(0.5).filled())
                }))?
                .label(*name)
                .legend(move |at| stroke(at, *colour));
        }
        draw_legend(&mut chart, SeriesLabelPosition::UpperRight)
    })
}

/// Ratings with their intervals, the strongest on top.
pub fn elo_chart(rated: &[Rated]) -> String {
    let mut rated = rated.to_vec();
    rated.sort_by(|a, b| a.elo.elo.total_cmp(&b.elo.elo));
    let low = rated.iter().map(|r| r.elo.low).fold(0.0, f64::min);
    let high = rated.iter().map(|r| r.elo.high).fold(0.0, f64::max);
    let margin = 0.05 * (high - low).max(20.0);
    let rows = rated.into_iter().map(|r| {
        let Elo { elo, low, high } = r.elo;
        (r.name, [low, elo, high])
    });
    let elo = |x: &f64| format!("{x:.0}");
    let range = low - margin..high + margin;
    interval_chart("Elo, BabyAI = 0", &elo, range, &rows.collect::<Vec<_>>())
}

/// Shares with their intervals, from 0 to 100%, the first on top.
pub fn share_chart(x_label: &str, shares: &[(String, Proportion)]) -> String {
    let rows = shares.iter().rev().map(|(name, share)| {
        let Proportion { score, low, high } = *share;
        (name.clone(), [low, score, high])
    });
    interval_chart(x_label, &percent, 0.0..1.0, &rows.collect::<Vec<_>>())
}

/// Named numbers with their intervals (low, estimate, high), the last on top.
fn interval_chart(
    x_label: &str,
    x_text: &dyn Fn(&f64) -> String,
    range: Range<f64>,
    rows: &[(String, [f64; 3])],
) -> String {
    svg(|area| {
        let names = rows.iter().map(|(name, _)| name.chars().count()).max();
        // Both ends of the range count: a segment for each row. A single one has no label.
        let last = rows.len().max(2) - 1;
        let mut chart = ChartBuilder::on(area)
            .margin(16)
            .x_label_area_size(44)
            .y_label_area_size(24 + 7 * names.unwrap_or(0) as u32)
            .build_cartesian_2d(range, (0..last).into_segmented())?;
        let name = |at: &SegmentValue<usize>| match at {
            SegmentValue::CenterOf(index) => rows.get(*index).map_or("", |row| &row.0).to_string(),
            _ => String::new(),
        };
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .disable_y_mesh()
            .x_desc(x_label)
            .x_label_formatter(x_text)
            .y_label_formatter(&name)
            .y_labels(rows.len().max(1))
            .draw()?;
        chart.draw_series(
            rows.iter()
                .enumerate()
                .map(|(index, (_, [low, middle, high]))| {
                    let y = SegmentValue::CenterOf(index);
                    ErrorBar::new_horizontal(y, *low, *middle, *high, COLOURS[0].filled(), 10)
                }),
        )?;
        Ok(())
    })
}

type Plane<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

fn plane<'a, 'b>(
    area: &'a DrawingArea<SVGBackend<'b>, Shift>,
    x: Range<f64>,
    y: Range<f64>,
) -> Result<Plane<'a, 'b>, DrawingError> {
    ChartBuilder::on(area)
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(56)
        .build_cartesian_2d(x, y)
}

fn draw_legend<'a, 'b: 'a>(
    chart: &mut Plane<'a, 'b>,
    position: SeriesLabelPosition,
) -> Result<(), DrawingError> {
    chart
        .configure_series_labels()
        .position(position)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.2))
        .draw()
}

/// The mark of a series in the legend.
fn stroke((x, y): (i32, i32), colour: RGBColor) -> PathElement<(i32, i32)> {
    PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(3))
}

fn percent(share: &f64) -> String {
    format!("{:.0}%", 100.0 * share)
}

fn svg(
    draw: impl FnOnce(&DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), DrawingError>,
) -> String {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        area.fill(&WHITE)
            .and_then(|()| draw(&area))
            .and_then(|()| area.present())
            .expect("drawing into a string does not fail");
    }
    text
}

/// `1200000` as `1,200,000`.
fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(thousands(1_200_000.0), "1,200,000");
        assert_eq!(thousands(999.4), "999");
        assert_eq!(thousands(0.0), "0");
    }

    #[test]
    fn charts_name_what_they_show() {
        let point = CurvePoint {
            x: 10.0,
            score: 0.5,
            low: 0.4,
            high: 0.6,
        };
        let curve = Curve {
            name: "a run".to_string(),
            points: vec![point],
        };
        let chart = learning_curves("games", "score", &[curve]);
        assert!(chart.starts_with("<svg") && chart.contains("a run") && chart.contains("games"));
        let rated = Rated {
            name: "conv-1".to_string(),
            elo: Elo {
                elo: 500.0,
                low: 450.0,
                high: 550.0,
            },
        };
        assert!(elo_chart(&[rated]).contains("conv-1"));
        assert!(error_curves("games", "blunders", &[]).contains("blunders"));
        let share = Proportion::wilson(3.0, 10.0);
        assert!(share_chart("score", &[("easy".to_string(), share)]).contains("easy"));
        let line = Line {
            name: "a line".to_string(),
            points: vec![(0.0, 16.0), (1.0, 15.0)],
        };
        assert!(line_chart("plies", "moves", &[line]).contains("a line"));
        assert!(histograms("plies", "games", &[("easy", &[0, 3, 1])]).contains("easy"));
        // Nothing to show is no reason to fail.
        assert!(line_chart("plies", "moves", &[]).starts_with("<svg"));
        assert!(histograms("plies", "games", &[]).starts_with("<svg"));
        assert!(share_chart("score", &[]).starts_with("<svg"));
        assert!(learning_curves("games", "score", &[]).starts_with("<svg"));
        assert!(elo_chart(&[]).starts_with("<svg"));
    }
}
