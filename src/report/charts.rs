//! Charts as SVG text.

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::stats::Elo;

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

type Drawn<'a> = Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>>;

/// Scores over games or seconds (`x_label` says which), each with its interval.
pub fn learning_curves(x_label: &str, y_label: &str, curves: &[Curve]) -> String {
    svg(|area| {
        let points = curves.iter().flat_map(|curve| &curve.points);
        let x_max = 1.02 * points.map(|point| point.x).fold(1.0, f64::max);
        let mut chart = ChartBuilder::on(area)
            .margin(16)
            .x_label_area_size(44)
            .y_label_area_size(56)
            .build_cartesian_2d(0.0..x_max, 0.0..1.0)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc(x_label)
            .y_desc(y_label)
            .y_label_formatter(&|score| format!("{:.0}%", 100.0 * score))
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
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(3))
                });
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
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.2))
            .draw()
    })
}

/// Ratings with their intervals, the strongest on top.
pub fn elo_chart(rated: &[Rated]) -> String {
    let mut rated = rated.to_vec();
    rated.sort_by(|a, b| a.elo.elo.total_cmp(&b.elo.elo));
    svg(|area| {
        let low = rated.iter().map(|r| r.elo.low).fold(0.0, f64::min);
        let high = rated.iter().map(|r| r.elo.high).fold(0.0, f64::max);
        let margin = 0.05 * (high - low).max(20.0);
        let names = rated
            .iter()
            .map(|r| r.name.chars().count())
            .max()
            .unwrap_or(0);
        let mut chart = ChartBuilder::on(area)
            .margin(16)
            .x_label_area_size(44)
            .y_label_area_size(24 + 7 * names as u32)
            .build_cartesian_2d(
                low - margin..high + margin,
                (0..rated.len()).into_segmented(),
            )?;
        let name = |at: &SegmentValue<usize>| match at {
            SegmentValue::CenterOf(index) => rated.get(*index).map_or("", |r| &r.name).to_string(),
            _ => String::new(),
        };
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .disable_y_mesh()
            .x_desc("Elo, BabyAI = 0")
            .y_label_formatter(&name)
            .y_labels(rated.len())
            .draw()?;
        chart.draw_series(rated.iter().enumerate().map(|(index, r)| {
            let y = SegmentValue::CenterOf(index);
            let Elo { elo, low, high } = r.elo;
            ErrorBar::new_horizontal(y, low, elo, high, COLOURS[0].filled(), 10)
        }))?;
        Ok(())
    })
}

fn svg(draw: impl FnOnce(&DrawingArea<SVGBackend<'_>, Shift>) -> Drawn<'static>) -> String {
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
        // Nothing to show is no reason to fail.
        assert!(learning_curves("games", "score", &[]).starts_with("<svg"));
        assert!(elo_chart(&[]).starts_with("<svg"));
    }
}
