//! A whole figure: its heading, its panels beside each other, its notes.

use super::chart::{Area, chart, cut, timeline};
use super::svg::{Anchor, FAINT, Font, Svg};
use super::{Content, Figure, LineKind, Panel, TextLine};

/// Pixels of one panel.
const PANEL_WIDTH: f64 = 470.0;
const TIMELINE_WIDTH: f64 = 820.0;
const TEXT_WIDTH: f64 = 430.0;
const PANEL_HEIGHT: f64 = 330.0;
const HEADING: f64 = 44.0;
const PANEL_TITLE: f64 = 26.0;
const NOTE_LINE: f64 = 16.0;
const TEXT_LINE: f64 = 17.0;
const EDGE: f64 = 14.0;

pub(super) fn figure(figure: &Figure) -> String {
    let width = figure.panels.iter().map(|panel| width_of(panel) + EDGE).sum::<f64>() + EDGE;
    let tallest = figure.panels.iter().map(height_of).fold(PANEL_HEIGHT, f64::max);
    let notes: Vec<String> =
        figure.notes.iter().flat_map(|note| wrapped(note, NOTE, width - 2.0 * EDGE)).collect();
    let height = HEADING + PANEL_TITLE + tallest + NOTE_LINE * notes.len() as f64 + 2.0 * EDGE;
    let mut svg = Svg::new(width, height);
    svg.text((EDGE, 28.0), Font { bold: true, ..Font::of(16.0) }, Anchor::Start, &figure.title);
    let mut left = EDGE;
    for panel in &figure.panels {
        draw_panel(panel, left, tallest, &mut svg);
        left += width_of(panel) + EDGE;
    }
    for (number, line) in notes.iter().enumerate() {
        let y = HEADING + PANEL_TITLE + tallest + EDGE + NOTE_LINE * (number as f64 + 0.5);
        svg.text((EDGE, y), NOTE, Anchor::Start, line);
    }
    svg.finish()
}

const NOTE: Font = Font { colour: "#444444", ..Font::of(11.0) };

fn width_of(panel: &Panel) -> f64 {
    match &panel.content {
        Content::Chart(_) => PANEL_WIDTH,
        Content::Timeline(_) => TIMELINE_WIDTH,
        Content::Text(_) => TEXT_WIDTH,
    }
}

fn height_of(panel: &Panel) -> f64 {
    match &panel.content {
        Content::Text(lines) => TEXT_LINE * set(lines).len() as f64 + 10.0,
        _ => PANEL_HEIGHT,
    }
}

fn draw_panel(panel: &Panel, left: f64, height: f64, svg: &mut Svg) {
    let width = width_of(panel);
    svg.rect((left, HEADING), (width, height + PANEL_TITLE), "none", FAINT);
    let bold = Font { bold: true, ..Font::of(13.0) };
    svg.text((left + 10.0, HEADING + 18.0), bold, Anchor::Start, &cut(&panel.title, bold, width - 20.0));
    let area = Area { x: left + 6.0, y: HEADING + PANEL_TITLE, width: width - 12.0, height };
    match &panel.content {
        Content::Chart(content) => chart(content, area, svg),
        Content::Timeline(content) => timeline(content, area, svg),
        Content::Text(lines) => draw_text(lines, area, svg),
    }
}

/// The lines, broken where they are too long.
fn set(lines: &[TextLine]) -> Vec<(String, LineKind)> {
    let broken = |line: &TextLine| {
        let kind = line.kind;
        wrapped(&line.text, font(kind), TEXT_WIDTH - 30.0)
            .into_iter()
            .map(move |text| (text, kind))
            .collect::<Vec<_>>()
    };
    lines.iter().flat_map(broken).collect()
}

fn font(kind: LineKind) -> Font {
    let plain = Font::of(11.5);
    match kind {
        LineKind::Plain => plain,
        LineKind::Heading => Font { bold: true, ..plain },
        LineKind::Good => Font { mono: true, colour: "#0072b2", ..Font::of(10.5) },
        LineKind::Bad => Font { mono: true, colour: "#b34700", ..Font::of(10.5) },
    }
}

fn draw_text(lines: &[TextLine], area: Area, svg: &mut Svg) {
    for (number, (text, kind)) in set(lines).into_iter().enumerate() {
        let y = area.y + TEXT_LINE * (number as f64 + 0.8);
        svg.text((area.x + 6.0, y), font(kind), Anchor::Start, &text);
    }
}

/// A text in lines that fit, broken between words; a word that is longer than a line is broken too.
fn wrapped(text: &str, font: Font, room: f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace().flat_map(|word| pieces(word, font, room)) {
        let line = lines.last().cloned().unwrap_or_default();
        let longer = if line.is_empty() { word.clone() } else { format!("{line} {word}") };
        match lines.last_mut() {
            Some(last) if font.width_of(&longer) <= room || last.is_empty() => *last = longer,
            _ => lines.push(word),
        }
    }
    lines
}

fn pieces(word: &str, font: Font, room: f64) -> Vec<String> {
    let each = font.width_of("n").max(1.0);
    let characters: Vec<char> = word.chars().collect();
    characters.chunks(((room / each) as usize).max(1)).map(|piece| piece.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Axis, Chart, Point, ReferenceLine, Row, Scale, Series, Shape, Style, Tick, Timeline};

    #[test]
    fn text_is_broken_between_words_and_a_long_word_within() {
        let font = Font::of(10.0);
        assert_eq!(wrapped("", font, 60.0), [""]);
        assert_eq!(wrapped("one two three", font, 60.0), ["one two", "three"]);
        assert_eq!(wrapped("abcdefghijklmno", font, 60.0), ["abcdefghij", "klmno"]);
    }

    /// One of everything that a figure may hold.
    fn one_of_everything() -> Figure {
        let axis = |label: &str, scale| Axis { label: label.to_owned(), scale };
        let series =
            |name: &str, shape, style, points| Series { name: name.to_owned(), shape, style, points };
        let chart = Chart {
            x: axis("switches", Scale::Doubling(1.0, 4.0)),
            y: axis("flows a second", Scale::from_zero([9.0e5])),
            series: vec![
                series(
                    "ours",
                    Shape::Line,
                    Style::Ours,
                    vec![Point { x: 1.0, y: 5e5, spread: Some((4e5, 6e5)) }, Point::at(4.0, 9e5)],
                ),
                series(
                    "the paper's",
                    Shape::Line,
                    Style::Paper,
                    vec![Point::at(1.0, 1e5), Point::at(4.0, 2e5)],
                ),
            ],
            marks: vec![ReferenceLine::Horizontal(8e5, "the link".to_owned())],
        };
        let bars = Chart {
            x: axis("", Scale::Names(vec!["a".into(), "a name that is much too long for its room".into()])),
            y: axis("%", Scale::Linear(0.0, 100.0)),
            series: vec![series(
                "bars",
                Shape::Bars,
                Style::Baseline,
                vec![Point::at(0.0, 50.0), Point::at(1.0, 400.0)],
            )],
            marks: vec![],
        };
        let rows = vec![Row {
            name: "B to C".to_owned(),
            ticks: vec![(0.5, Tick::Good), (1.0, Tick::Held), (1.5, Tick::Bad)],
        }];
        let timeline = Timeline {
            x: axis("s", Scale::Linear(0.0, 2.0)),
            rows,
            marks: vec![ReferenceLine::Vertical(1.0, "crash".to_owned())],
        };
        let text = vec![TextLine { text: "tried <this> & that".to_owned(), kind: LineKind::Bad }];
        let panel = |title: &str, content| Panel { title: title.to_owned(), content };
        Figure {
            title: "One of everything".to_owned(),
            panels: vec![
                panel("lines", Content::Chart(chart)),
                panel("bars", Content::Chart(bars)),
                panel("when", Content::Timeline(timeline)),
                panel("words", Content::Text(text)),
            ],
            notes: vec!["A note.".to_owned()],
        }
    }

    /// With `BURNET_BLESS=1` the test writes the file again. Look at it then.
    #[test]
    fn a_figure_is_drawn_like_the_reviewed_one() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/figure.svg");
        let drawn = one_of_everything().to_svg();
        if std::env::var_os("BURNET_BLESS").is_some() {
            std::fs::write(file, &drawn).unwrap();
        }
        assert_eq!(drawn, std::fs::read_to_string(file).unwrap_or_default());
    }
}
