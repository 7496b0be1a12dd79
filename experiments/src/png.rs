//! PNG from SVG, by `rsvg-convert` of Debian's librsvg2-bin.
//!
//! In: an SVG file. Out: a PNG file beside it, one and a half times as large. If the program is missing, it makes no
//! PNG and reports that.

use std::path::Path;
use std::process::{Command, Stdio};

/// Writes `NAME.png` beside `NAME.svg`.
///
/// # Errors
/// Why there is none, as a sentence.
pub fn beside(svg: &Path) -> Result<(), String> {
    let mut command = Command::new("rsvg-convert");
    command.args(["--zoom", "1.5", "--output"]).arg(svg.with_extension("png")).arg(svg).stdin(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("no PNG of {}: rsvg-convert ended with {status}", svg.display())),
        Err(error) => Err(format!("no PNG: rsvg-convert cannot be run ({error}); apt install librsvg2-bin")),
    }
}
