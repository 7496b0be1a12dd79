//! A chart and a timeline, drawn into a box.
//!
//! In: what is to be drawn, and where. Out: elements of SVG. Values beyond an axis are drawn at its end, never outside of the box.

use super::scale::short;
use super::svg::{Anchor, FAINT, Font, INK, Svg};
use super::{Axis, Chart, Point, ReferenceLine, Row, Scale, Series, Shape, Style, Tick, Timeline};

/// A rectangle, in pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

const SMALL: Font = Font::of(11.0);
const LABEL: Font = Font::of(12.0);

/// Room for the y axis and its label, and for the x axis and its.
const LEFT: f64 = 62.0;
const BELOW: f64 = 44.0;
const LEGEND_LINE: f64 = 17.0;
/// Beyond so many points a line has no markers: they would only make it thick.
const MARKED_POINTS: usize = 24;
/// A bar that is higher holds its number.
const FOOT: f64 = 18.0;
/// Bars of one x take so much of its room.
const BAR_ROOM: f64 = 0.72;
/// Names that are longer than their room are set askew by being cut; what is cut ends so.
const CUT: &str = "…";

struct Look {
    colour: &'static str,
    dash: &'static str,
}

fn look(style: Style) -> Look {
    let (colour, dash) = match style {
        Style::Ours => ("#0072b2", ""),
        Style::Other => ("#009e73", "10 4"),
        Style::Baseline => ("#d55e00", "6 3"),
        Style::Paper => ("#000000", "2 3"),
        Style::Reference => ("#cc79a7", ""),
    };
    Look { colour, dash }
}

pub(super) fn chart(chart: &Chart, area: Area, svg: &mut Svg) {
    let legend = LEGEND_LINE * chart.series.len().max(1) as f64 + 6.0;
    let plot = Area {
        x: area.x + LEFT,
        y: area.y + legend,
        width: (area.width - LEFT - 12.0).max(1.0),
        height: (area.height - legend - BELOW).max(1.0),
    };
    chart.series.iter().enumerate().for_each(|(line, series)| {
        legend_entry(series, (area.x + LEFT, area.y + LEGEND_LINE * line as f64 + 10.0), svg);
    });
    x_axis(&chart.x, plot, svg);
    y_axis(&chart.y, plot, svg);
    marks(&chart.marks, &chart.x.scale, Some(&chart.y.scale), plot, svg);
    let bars: Vec<&Series> = chart.series.iter().filter(|series| series.shape == Shape::Bars).collect();
    for series in &chart.series {
        match bars.iter().position(|bar| std::ptr::eq(*bar, series)) {
            Some(place) => draw_bars(chart, series, (place, bars.len()), plot, svg),
            None => draw_line(chart, series, plot, svg),
        }
    }
}

fn legend_entry(series: &Series, at: (f64, f64), svg: &mut Svg) {
    let Look { colour, dash } = look(series.style);
    match series.shape {
        Shape::Bars => svg.rect((at.0, at.1 - 5.0), (24.0, 10.0), colour, INK),
        Shape::Line => {
            svg.line(at, (at.0 + 24.0, at.1), colour, 2.0, dash);
            marker(series.style, (at.0 + 12.0, at.1), svg);
        }
    }
    svg.text((at.0 + 31.0, at.1 + 4.0), SMALL, Anchor::Start, &series.name);
}

fn x_axis(axis: &Axis, plot: Area, svg: &mut Svg) {
    let bottom = plot.y + plot.height;
    svg.line((plot.x, bottom), (plot.x + plot.width, bottom), INK, 1.0, "");
    let ticks = axis.scale.ticks();
    let room = plot.width / ticks.len().max(1) as f64;
    for (value, text) in &ticks {
        let x = plot.x + axis.scale.part(*value) * plot.width;
        svg.line((x, bottom), (x, bottom + 4.0), INK, 1.0, "");
        svg.text((x, bottom + 16.0), SMALL, Anchor::Middle, &cut(text, SMALL, room));
    }
    svg.text((plot.x + plot.width / 2.0, bottom + 36.0), LABEL, Anchor::Middle, &axis.label);
}

fn y_axis(axis: &Axis, plot: Area, svg: &mut Svg) {
    for (value, text) in axis.scale.ticks() {
        let y = y_of(&axis.scale, value, plot);
        svg.line((plot.x, y), (plot.x + plot.width, y), FAINT, 1.0, "");
        svg.text((plot.x - 6.0, y + 4.0), SMALL, Anchor::End, &text);
    }
    svg.line((plot.x, plot.y), (plot.x, plot.y + plot.height), INK, 1.0, "");
    svg.text_upwards((plot.x - LEFT + 13.0, plot.y + plot.height / 2.0), LABEL, &axis.label);
}

fn y_of(scale: &Scale, value: f64, plot: Area) -> f64 {
    plot.y + (1.0 - scale.part(value)) * plot.height
}

fn marks(marks: &[ReferenceLine], x: &Scale, y: Option<&Scale>, plot: Area, svg: &mut Svg) {
    let Look { colour, .. } = look(Style::Reference);
    for mark in marks {
        match (mark, y) {
            (ReferenceLine::Horizontal(value, word), Some(scale)) => {
                let y = y_of(scale, *value, plot);
                svg.line((plot.x, y), (plot.x + plot.width, y), colour, 1.5, "8 4");
                svg.text((plot.x + plot.width - 3.0, y - 4.0), SMALL, Anchor::End, word);
            }
            (ReferenceLine::Horizontal(..), None) => {}
            (ReferenceLine::Vertical(value, word), _) => {
                let at = plot.x + x.part(*value) * plot.width;
                svg.line((at, plot.y), (at, plot.y + plot.height), colour, 1.5, "8 4");
                // On whichever side there is room.
                let (place, anchor) =
                    if x.part(*value) > 0.6 { (at - 4.0, Anchor::End) } else { (at + 4.0, Anchor::Start) };
                svg.text((place, plot.y + 11.0), SMALL, anchor, word);
            }
        }
    }
}

fn draw_line(chart: &Chart, series: &Series, plot: Area, svg: &mut Svg) {
    let Look { colour, dash } = look(series.style);
    let place = |point: &Point| {
        (plot.x + chart.x.scale.part(point.x) * plot.width, y_of(&chart.y.scale, point.y, plot))
    };
    let points: Vec<(f64, f64)> = series.points.iter().map(place).collect();
    for (point, at) in series.points.iter().zip(&points) {
        spread(point, at.0, &chart.y.scale, plot, svg);
    }
    if points.len() > 1 {
        svg.polyline(&points, colour, dash);
    }
    if points.len() <= MARKED_POINTS {
        points.iter().for_each(|at| marker(series.style, *at, svg));
    }
}

fn draw_bars(chart: &Chart, series: &Series, (place, of): (usize, usize), plot: Area, svg: &mut Svg) {
    let Look { colour, .. } = look(series.style);
    let names = match &chart.x.scale {
        Scale::Names(names) => names.len(),
        _ => series.points.len(),
    };
    let room = plot.width / names.max(1) as f64 * BAR_ROOM;
    let width = room / of.max(1) as f64;
    for point in &series.points {
        let left = plot.x + chart.x.scale.part(point.x) * plot.width - room / 2.0 + width * place as f64;
        let top = y_of(&chart.y.scale, point.y, plot);
        svg.rect((left, top), (width, plot.y + plot.height - top), colour, INK);
        spread(point, left + width / 2.0, &chart.y.scale, plot, svg);
        let text = short(point.y);
        if SMALL.width_of(&text) <= width + 8.0 {
            // At the foot of the bar, where neither its spread nor a mark's word is; a low bar has it above.
            let foot = plot.y + plot.height;
            let is_high = foot - top > FOOT;
            let font = if is_high { Font { colour: "#ffffff", ..SMALL } } else { SMALL };
            svg.text(
                (left + width / 2.0, if is_high { foot - 5.0 } else { top - 4.0 }),
                font,
                Anchor::Middle,
                &text,
            );
        }
    }
}

fn spread(point: &Point, x: f64, scale: &Scale, plot: Area, svg: &mut Svg) {
    let Some((least, most)) = point.spread else { return };
    let (low, high) = (y_of(scale, least, plot), y_of(scale, most, plot));
    svg.line((x, low), (x, high), INK, 1.0, "");
    for y in [low, high] {
        svg.line((x - 3.0, y), (x + 3.0, y), INK, 1.0, "");
    }
}

fn marker(style: Style, at: (f64, f64), svg: &mut Svg) {
    let Look { colour, .. } = look(style);
    let (x, y) = at;
    match style {
        Style::Ours => svg.circle(at, 3.5, colour),
        Style::Other => svg.polygon(
            &[(x - 3.5, y - 3.5), (x + 3.5, y - 3.5), (x + 3.5, y + 3.5), (x - 3.5, y + 3.5)],
            colour,
        ),
        Style::Baseline => svg.polygon(&[(x, y - 4.5), (x + 4.5, y + 3.5), (x - 4.5, y + 3.5)], colour),
        Style::Paper => svg.polygon(&[(x, y - 5.0), (x + 5.0, y), (x, y + 5.0), (x - 5.0, y)], colour),
        Style::Reference => {
            svg.line((x - 4.0, y - 4.0), (x + 4.0, y + 4.0), colour, 2.0, "");
            svg.line((x - 4.0, y + 4.0), (x + 4.0, y - 4.0), colour, 2.0, "");
        }
    }
}

/// Room for the names of a timeline's rows.
const ROW_NAMES: f64 = 258.0;

pub(super) fn timeline(timeline: &Timeline, area: Area, svg: &mut Svg) {
    let plot = Area {
        x: area.x + ROW_NAMES,
        y: area.y + 22.0,
        width: (area.width - ROW_NAMES - 12.0).max(1.0),
        height: (area.height - BELOW - 22.0).max(1.0),
    };
    timeline_legend((area.x + ROW_NAMES, area.y + 8.0), svg);
    x_axis(&timeline.x, plot, svg);
    marks(&timeline.marks, &timeline.x.scale, None, plot, svg);
    let each = (plot.height - 16.0).max(1.0) / timeline.rows.len().max(1) as f64;
    for (number, row) in timeline.rows.iter().enumerate() {
        let middle = plot.y + 16.0 + each * (number as f64 + 0.5);
        svg.text((plot.x - 8.0, middle + 4.0), SMALL, Anchor::End, &cut(&row.name, SMALL, ROW_NAMES - 8.0));
        svg.line((plot.x, middle), (plot.x + plot.width, middle), FAINT, 1.0, "");
        draw_ticks(row, &timeline.x.scale, plot, middle, (each * 0.32).min(12.0), svg);
    }
}

fn timeline_legend(at: (f64, f64), svg: &mut Svg) {
    let words = [
        (Tick::Good, "answered, as it should be"),
        (Tick::Held, "not answered, as it should be"),
        (Tick::Bad, "not as it should be"),
    ];
    let mut x = at.0;
    for (tick, word) in words {
        draw_tick(tick, (x + 4.0, at.1), 6.0, svg);
        svg.text((x + 12.0, at.1 + 4.0), SMALL, Anchor::Start, word);
        x += SMALL.width_of(word) + 26.0;
    }
}

fn draw_ticks(row: &Row, scale: &Scale, plot: Area, middle: f64, half: f64, svg: &mut Svg) {
    for (at, tick) in &row.ticks {
        draw_tick(*tick, (plot.x + scale.part(*at) * plot.width, middle), half, svg);
    }
}

fn draw_tick(tick: Tick, (x, y): (f64, f64), half: f64, svg: &mut Svg) {
    let ours = look(Style::Ours).colour;
    let bad = look(Style::Baseline).colour;
    match tick {
        Tick::Good => svg.line((x, y - half), (x, y + half), ours, 1.5, ""),
        Tick::Held => svg.line((x, y - half / 2.0), (x, y + half / 2.0), "#8c8c8c", 1.5, ""),
        Tick::Bad => {
            svg.line((x - 2.5, y - half), (x + 2.5, y + half), bad, 1.5, "");
            svg.line((x - 2.5, y + half), (x + 2.5, y - half), bad, 1.5, "");
        }
    }
}

/// As much of a text as fits.
pub(super) fn cut(text: &str, font: Font, room: f64) -> String {
    if font.width_of(text) <= room.max(24.0) {
        return text.to_owned();
    }
    let mut kept: Vec<char> = text.chars().collect();
    while !kept.is_empty() && font.width_of(&kept.iter().collect::<String>()) > room.max(24.0) - font.size {
        kept.pop();
    }
    kept.into_iter().collect::<String>().trim_end().to_owned() + CUT
}
