//! A terminal that shows a recorded output, one line after the other.
//!
//! In: the text of a terminal; a line that begins with `$ ` was typed. Out: SVG in which the lines appear in turn. A viewer
//! that plays no animation shows all of them at once. It never changes the text.

use super::escaped;
use std::fmt::Write;

/// The width of a letter and the height of a line, in pixels.
const LETTER: f64 = 7.25;
const LINE: f64 = 18.0;

/// Pixels around the text, and the height of the window's bar.
const MARGIN: f64 = 16.0;
const BAR: f64 = 28.0;

/// Seconds until the next line appears, after a line that was typed and after a line of output.
const AFTER_TYPED: f64 = 0.9;
const AFTER_OUTPUT: f64 = 0.12;

/// The picture of a terminal.
pub fn svg(source: &str) -> Result<String, String> {
    let lines: Vec<&str> = source.trim_end().lines().collect();
    if lines.is_empty() {
        return Err("a terminal without text".to_owned());
    }
    let letters = lines.iter().map(|line| line.chars().count()).max().unwrap_or_default();
    let width = (letters as f64 * LETTER + 2.0 * MARGIN).ceil();
    let height = lines.len() as f64 * LINE + BAR + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\n\
         <style>text{{font:12px monospace;fill:#d9e2ec;white-space:pre;animation:show 0.1s both}}.typed{{fill:#8eedc7;font-weight:bold}}\
         @keyframes show{{from{{opacity:0}}to{{opacity:1}}}}\
         @media(prefers-reduced-motion:reduce){{text{{animation:none}}}}</style>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#102a43\"/>\n\
         <circle cx=\"18\" cy=\"14\" r=\"5\" fill=\"#e12d39\"/><circle cx=\"36\" cy=\"14\" r=\"5\" fill=\"#f0b429\"/>\
         <circle cx=\"54\" cy=\"14\" r=\"5\" fill=\"#3ebd93\"/>\n"
    );
    let mut seconds = 0.3;
    for (index, line) in lines.iter().enumerate() {
        let (class, pause) =
            if line.starts_with("$ ") { (" class=\"typed\"", AFTER_TYPED) } else { ("", AFTER_OUTPUT) };
        let y = BAR + LINE * index as f64 + 13.0;
        let text = escaped(line);
        let length = line.chars().count() as f64 * LETTER;
        if !line.is_empty() {
            let _ = writeln!(
                svg,
                "<text{class} x=\"{MARGIN}\" y=\"{y}\" textLength=\"{length:.1}\" xml:space=\"preserve\" style=\"animation-delay:{seconds:.2}s\">{text}</text>"
            );
        }
        seconds += pause;
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_follow_each_other_and_what_was_typed_stands_out() {
        let svg = svg("$ burnet demo\nh1 -> h2  1 ms\n\nlast\n").unwrap();
        assert!(svg.contains("class=\"typed\"") && svg.contains(">$ burnet demo</text>"), "{svg}");
        assert!(svg.contains("delay:1.20s\">h1 -&gt; h2  1 ms</text>"), "{svg}");
        assert!(svg.contains("delay:1.44s\">last</text>") && svg.matches("<text").count() == 3, "{svg}");
    }

    #[test]
    fn an_empty_terminal_is_refused() {
        assert!(svg("\n").is_err());
    }
}
