//! Boxes and arrows from text.
//!
//! ```text
//! size 90 40                                    width and height, in units of 10 pixels
//! group node 1 1 88 38 The node                 a frame: name, x, y, width, height, title
//! box kernel 30 5 20 6 plain Kernel | decides   a box: name, x, y, width, height, style, lines of text
//! arrow switch kernel 0.5 packet-in             an arrow: from, to, where along the common side, label
//! ```
//!
//! In: such lines; empty lines and lines with `#` are skipped. Out: SVG. It computes no layout: the source places the boxes.

use super::escaped;
use std::collections::HashMap;
use std::fmt::Write;

/// Pixels in one unit of the source.
const UNIT: f64 = 10.0;

/// The height of a line of text, in pixels.
const LINE: f64 = 17.0;

/// A rectangle in pixels.
#[derive(Debug, Clone, Copy)]
struct Area {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

/// What stands at the head of each picture: its colours work on a light and a dark page.
const STYLE: &str = "<style>text{font:13px sans-serif;fill:#1f2933}.title{font-weight:bold}.label{font-size:12px;fill:#52606d}\
.group{fill:#f5f7fa;stroke:#9aa5b1;stroke-dasharray:5 4}.plain{fill:#e3f2fd;stroke:#2680c2}.app{fill:#e8f5e9;stroke:#3f9142}\
.outside{fill:#fff3e0;stroke:#de911d}.line{stroke:#52606d;stroke-width:1.5;fill:none}</style>\
<defs><marker id=\"tip\" markerWidth=\"9\" markerHeight=\"8\" refX=\"8\" refY=\"4\" orient=\"auto\">\
<path d=\"M0 0 L9 4 L0 8 z\" fill=\"#52606d\"/></marker></defs>";

/// The picture of a source; an error names the line.
pub fn svg(source: &str) -> Result<String, String> {
    let mut picture = Picture::default();
    for (index, line) in source.lines().enumerate() {
        let line = line.trim();
        if !line.is_empty() && !line.starts_with('#') {
            picture.read(line).map_err(|error| format!("line {}: {error}", index + 1))?;
        }
    }
    let Picture { width, height, body, .. } = picture;
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\n{STYLE}\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{body}</svg>\n"
    ))
}

/// What was read so far.
#[derive(Debug, Default)]
struct Picture {
    width: f64,
    height: f64,
    boxes: HashMap<String, Area>,
    body: String,
}

impl Picture {
    fn read(&mut self, line: &str) -> Result<(), String> {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        match kind {
            "size" => self.size(rest),
            "group" => self.group(rest),
            "box" => self.add_box(rest),
            "arrow" => self.arrow(rest),
            _ => Err(format!("expected size, group, box or arrow, found '{kind}'")),
        }
    }

    fn size(&mut self, rest: &str) -> Result<(), String> {
        let ([width, height], _) = numbers(rest)?;
        (self.width, self.height) = (width * UNIT, height * UNIT);
        Ok(())
    }

    fn group(&mut self, rest: &str) -> Result<(), String> {
        let (name, rest) = rest.split_once(' ').ok_or("a group needs a name")?;
        let (area, title) = area(rest)?;
        self.boxes.insert(name.to_owned(), area);
        self.rectangle(area, "group");
        self.text(area.x + 12.0, area.y + 20.0, "title", "start", title);
        Ok(())
    }

    fn add_box(&mut self, rest: &str) -> Result<(), String> {
        let (name, rest) = rest.split_once(' ').ok_or("a box needs a name")?;
        let (area, rest) = area(rest)?;
        let (style, text) = rest.split_once(' ').ok_or("a box needs a style and text")?;
        if !["plain", "app", "outside"].contains(&style) {
            return Err(format!("expected plain, app or outside, found '{style}'"));
        }
        self.rectangle(area, style);
        let lines: Vec<&str> = text.split('|').map(str::trim).collect();
        let top = area.y + (area.height - LINE * lines.len() as f64) / 2.0 + 13.0;
        for (index, line) in lines.iter().enumerate() {
            let class = if index == 0 { "title" } else { "detail" };
            self.text(area.x + area.width / 2.0, top + LINE * index as f64, class, "middle", line);
        }
        self.boxes.insert(name.to_owned(), area);
        Ok(())
    }

    fn arrow(&mut self, rest: &str) -> Result<(), String> {
        let mut words = rest.splitn(3, ' ');
        let mut end = || {
            let name = words.next().unwrap_or_default();
            self.boxes.get(name).copied().ok_or(format!("there is no box or group '{name}' above this line"))
        };
        let (from, to) = (end()?, end()?);
        let ([place], label) = numbers(words.next().unwrap_or_default())?;
        let (x1, y1, x2, y2) = line_between(from, to, place)?;
        let _ = writeln!(
            self.body,
            "<path class=\"line\" marker-end=\"url(#tip)\" d=\"M{x1:.1} {y1:.1} L{x2:.1} {y2:.1}\"/>"
        );
        let is_level = y1 == y2;
        let (x, y) = ((x1 + x2) / 2.0, (y1 + y2) / 2.0);
        match is_level {
            true => self.text(x, y - 6.0, "label", "middle", label),
            false => self.text(x + 7.0, y + 4.0, "label", "start", label),
        }
        Ok(())
    }

    fn rectangle(&mut self, Area { x, y, width, height }: Area, class: &str) {
        let _ = writeln!(
            self.body,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"6\"/>"
        );
    }

    fn text(&mut self, x: f64, y: f64, class: &str, anchor: &str, text: &str) {
        let text = escaped(text);
        let _ = writeln!(
            self.body,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        );
    }
}

/// `N` numbers, and what follows them.
fn numbers<const N: usize>(text: &str) -> Result<([f64; N], &str), String> {
    let (mut found, mut rest) = ([0.0; N], text);
    for number in &mut found {
        let (word, behind) = rest.split_once(' ').unwrap_or((rest, ""));
        *number = word.parse().map_err(|_| format!("expected a number, found '{word}'"))?;
        rest = behind;
    }
    Ok((found, rest))
}

fn area(text: &str) -> Result<(Area, &str), String> {
    let ([x, y, width, height], rest) = numbers(text)?;
    Ok((Area { x: x * UNIT, y: y * UNIT, width: width * UNIT, height: height * UNIT }, rest))
}

/// A level or upright line from the border of one box to that of another, at `place` (0 to 1) of the side that they share.
fn line_between(from: Area, to: Area, place: f64) -> Result<(f64, f64, f64, f64), String> {
    let common = |a: f64, a_len: f64, b: f64, b_len: f64| {
        let (start, end) = (a.max(b), (a + a_len).min(b + b_len));
        (start < end).then_some(start + (end - start) * place)
    };
    if let Some(y) = common(from.y, from.height, to.y, to.height) {
        let is_right = to.x > from.x;
        let (start, end) = if is_right { (from.x + from.width, to.x) } else { (from.x, to.x + to.width) };
        return Ok((start, y, end, y));
    }
    let x = common(from.x, from.width, to.x, to.width)
        .ok_or("the two boxes are neither beside nor above each other")?;
    let is_down = to.y > from.y;
    let (start, end) = if is_down { (from.y + from.height, to.y) } else { (from.y, to.y + to.height) };
    Ok((x, start, x, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, expected: &str) {
        let said = svg(source).unwrap_or_else(|error| error);
        assert!(said.contains(expected), "{source}\n{said}");
    }

    #[test]
    fn a_mistake_names_its_line() {
        check("size 10", "line 1: expected a number, found ''");
        check("size 9 9\n\ncircle a", "line 3: expected size, group, box or arrow, found 'circle'");
        check("box a 1 1 5 5 red A", "line 1: expected plain, app or outside, found 'red'");
        check(
            "box a 1 1 5 5 plain A\narrow a b 0.5 x",
            "line 2: there is no box or group 'b' above this line",
        );
        let apart = "box a 1 1 5 5 plain A\nbox b 20 20 5 5 plain B\narrow a b 0.5 x";
        check(apart, "line 3: the two boxes are neither beside nor above each other");
    }

    #[test]
    fn an_arrow_joins_the_borders_that_face_each_other() {
        let two = "box a 1 1 5 4 plain A\nbox b 10 1 5 4 app B | <two>\nbox c 1 9 5 4 app C\n";
        check(&format!("{two}arrow a b 0.5 to"), "d=\"M60.0 30.0 L100.0 30.0\"");
        check(&format!("{two}arrow b a 0.5 back"), "d=\"M100.0 30.0 L60.0 30.0\"");
        check(&format!("{two}arrow a c 0 down"), "d=\"M10.0 50.0 L10.0 90.0\"");
        check(two, ">&lt;two&gt;</text>");
    }
}
