//! Figures of panels side by side. Each panel is a chart, a timeline or lines of text. A heading is above, notes are
//! below.
//!
//! ```text
//!   Figure ──draw──> SVG, as text
//! ```
//!
//! The colours are those of Okabe and Ito (2008), which are distinct with any colour vision. Series also differ in
//! dashes and markers. It never reads a file, and the same figure always gives the same bytes.

mod chart;
mod draw;
mod parts;
mod scale;
mod svg;

pub use parts::{axis, line, panel, quote, series};
pub use scale::Scale;

/// A figure: its title, panels and notes.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    /// The heading.
    pub title: String,
    /// The panels, from left to right.
    pub panels: Vec<Panel>,
    /// The lines below the panels.
    pub notes: Vec<String>,
}

/// A part of a figure.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Its heading.
    pub title: String,
    /// Its content.
    pub content: Content,
}

/// The content of a panel.
#[derive(Clone, Debug)]
pub enum Content {
    /// Values over numbers or over names.
    Chart(Chart),
    /// Events over time, in rows.
    Timeline(Timeline),
    /// Lines of text.
    Text(Vec<TextLine>),
}

/// Two axes and the series between them.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The horizontal value or axis.
    pub x: Axis,
    /// The vertical value or axis.
    pub y: Axis,
    /// The series, in drawing order.
    pub series: Vec<Series>,
    /// Lines through the whole panel, each with a label.
    pub marks: Vec<ReferenceLine>,
}

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The quantity and its unit.
    pub label: String,
    /// Its scale: even, by doubling, by factors of ten, or names.
    pub scale: Scale,
}

/// A series of points.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Line or bars.
    pub shape: Shape,
    /// Its colour, dash and marker.
    pub style: Style,
    /// The points. On a scale of names, x is the index of the name, from 0.
    pub points: Vec<Point>,
}

/// A point, and its spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The horizontal value or axis.
    pub x: f64,
    /// The vertical value or axis.
    pub y: f64,
    /// The minimum and the maximum, if there were several measurements.
    pub spread: Option<(f64, f64)>,
}

impl Point {
    /// A point without a spread.
    pub const fn at(x: f64, y: f64) -> Point {
        Point { x, y, spread: None }
    }
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A line, with markers if there are few points.
    Line,
    /// Bars. At the same x, the bars of all series stand next to each other.
    Bars,
}

/// Colour, dash and marker: five that are easy to tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// The design: blue, solid, round.
    Ours,
    /// Our alternative: green, long dashes, square.
    Other,
    /// The baseline: vermilion, dashes, triangle.
    Baseline,
    /// The paper: black, dotted, diamond.
    Paper,
    /// A reference: purple, solid, cross.
    Reference,
}

/// A line through the whole panel.
#[derive(Clone, Debug)]
pub enum ReferenceLine {
    /// At this y.
    Horizontal(f64, String),
    /// At this x.
    Vertical(f64, String),
}

/// Events over time.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// The time axis: its unit and its start.
    pub x: Axis,
    /// The rows, from top to bottom.
    pub rows: Vec<Row>,
    /// As in a chart; horizontal marks are ignored.
    pub marks: Vec<ReferenceLine>,
}

/// A row of a timeline.
#[derive(Clone, Debug)]
pub struct Row {
    /// The label at its left.
    pub name: String,
    /// The time and the event.
    pub ticks: Vec<(f64, Tick)>,
}

/// An event in a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tick {
    /// Answered, as expected: blue, full height.
    Good,
    /// Not answered, as expected: grey, half height.
    Held,
    /// The opposite of the expected: vermilion, with a cross.
    Bad,
}

/// A line of text.
#[derive(Clone, Debug)]
pub struct TextLine {
    /// The text.
    pub text: String,
    /// Its kind.
    pub kind: LineKind,
}

/// The kind of a line of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// Ordinary text.
    Plain,
    /// A heading.
    Heading,
    /// As it should be.
    Good,
    /// As it should not be.
    Bad,
}

impl Figure {
    /// As SVG 1.1.
    pub fn to_svg(&self) -> String {
        draw::figure(self)
    }
}
