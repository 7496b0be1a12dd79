//! The requests and default settings of an app: a manifest without the head that a package needs. A Python file may
//! have it in its comments.
//!
//! ```text
//!   # /// burnet
//!   # [capabilities]
//!   # "packet.in" = true
//!   # ///
//! ```
//!
//! The block has the form of Python's inline metadata (PEP 723), so other tools skip it. It comes before the first line
//! that is neither empty nor a comment.
//!
//! In: a manifest, or the text of a program. Out: [`Needs`], or the faulty line. It reads no file, and grants nothing.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Capabilities, Limits, MANIFEST_BYTES_MAX, Manifest, Quotas, System};
use crate::toml_text::{self, Fault};

/// The first line of the block.
pub const OPENS: &str = "# /// burnet";

/// Its last line.
pub const CLOSES: &str = "# ///";

/// The requests of an app, and its default settings.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Needs {
    /// What it declares, if it is a service for other apps. A block in comments has no name, so it declares nothing.
    #[serde(skip)]
    pub service: Option<contract::Service>,
    /// The requested capabilities in the network.
    pub capabilities: Capabilities,
    /// The requested access to the machine.
    pub system: System,
    /// The requested limits of resources.
    pub limits: Limits,
    /// The requested quotas.
    pub quotas: Quotas,
    /// Its default settings, which the operator can override.
    #[serde(deserialize_with = "super::settings")]
    pub settings: Map<String, Value>,
}

impl From<&Manifest> for Needs {
    fn from(manifest: &Manifest) -> Needs {
        Needs {
            // It was valid when the manifest was read.
            service: manifest.declared().unwrap_or_default(),
            capabilities: manifest.capabilities.clone(),
            system: manifest.system.clone(),
            limits: manifest.limits.clone(),
            quotas: manifest.quotas.clone(),
            settings: manifest.settings.clone(),
        }
    }
}

impl Needs {
    /// Only the requests whose names were granted. Settings need no grant.
    #[must_use]
    pub fn only(self, granted: impl Fn(&str) -> bool) -> Needs {
        Needs {
            service: self.service,
            capabilities: self.capabilities.only(&granted),
            system: self.system.only(&granted),
            limits: self.limits.only(&granted),
            quotas: self.quotas.only(&granted),
            settings: self.settings,
        }
    }

    /// Reads the block in the comments of a program. `None` if it has none.
    ///
    /// # Errors
    /// The faulty line of the program: of the block or in it.
    pub fn in_comments(program: &str) -> Result<Option<Needs>, Fault> {
        let Some((first_line, text)) = block(program)? else { return Ok(None) };
        if text.len() > MANIFEST_BYTES_MAX {
            let reason = format!(
                "{} bytes are more than the limit of {MANIFEST_BYTES_MAX} for a manifest",
                text.len()
            );
            return Err(Fault { line: first_line, reason });
        }
        toml_text::parse(&text)
            .map(Some)
            .map_err(|Fault { line, reason }| Fault { line: first_line + line, reason })
    }

    /// All requests in one line, with the names of a manifest.
    pub fn summary(&self) -> String {
        let all = [
            summary_of(&self.capabilities, ""),
            summary_of(&self.system, ""),
            summary_of(&self.limits, "limits."),
            summary_of(&self.quotas, "quotas."),
        ];
        let all: Vec<String> = all.into_iter().flatten().collect();
        if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
    }
}

/// The line of the program that opens the block, from 1, and the text within.
fn block(program: &str) -> Result<Option<(usize, String)>, Fault> {
    let mut lines = program.lines().enumerate().map(|(index, line)| (index + 1, line.trim_end()));
    let mut is_top = true;
    for (number, line) in lines.by_ref() {
        if line == OPENS && is_top {
            return within(number, &mut lines).map(|text| Some((number, text)));
        } else if line == OPENS {
            let reason = format!("`{OPENS}` comes after the first line of code: move the block above it");
            return Err(Fault { line: number, reason });
        }
        is_top &= line.is_empty() || line.starts_with('#');
    }
    Ok(None)
}

/// The contents of the block that this line opens.
fn within<'p>(opens: usize, lines: &mut impl Iterator<Item = (usize, &'p str)>) -> Result<String, Fault> {
    let mut text = String::new();
    for (_, line) in lines {
        if line == CLOSES {
            return Ok(text);
        }
        let Some(words) = line.strip_prefix("# ").or_else(|| (line == "#").then_some("")) else { break };
        text.push_str(words);
        text.push('\n');
    }
    Err(Fault { line: opens, reason: format!("this block is not closed: end it with a line `{CLOSES}`") })
}

/// Each key of a table with its bounds, if it has any.
fn summary_of(table: &impl Serialize, prefix: &str) -> Vec<String> {
    let Ok(Value::Object(table)) = serde_json::to_value(table) else { return Vec::new() };
    let one = |(name, value): (String, Value)| match value {
        Value::Bool(true) => format!("{prefix}{name}"),
        Value::Object(bounds) if bounds.is_empty() => format!("{prefix}{name}"),
        bounds => format!("{prefix}{name} {bounds}"),
    };
    table.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(program: &str, line: usize, part: &str) {
        let fault = Needs::in_comments(program).unwrap_err();
        assert_eq!(fault.line, line, "{fault}");
        assert!(fault.reason.contains(part), "{fault}");
    }

    #[test]
    fn a_block_that_is_damaged_is_refused_with_the_programs_own_line() {
        refused("#!/bin/x\n# /// burnet\n# [capabilities]\nimport x\n# ///\n", 2, "is not closed");
        refused("# /// burnet\n# [capabilities]", 1, "is not closed");
        refused("# /// burnet\n#[capabilities]\n# ///\n", 1, "is not closed");
        refused(
            "\n# /// burnet\n# [capabilities]\n# 'packet.ins' = true\n# ///\n",
            4,
            "did you mean `packet.in`?",
        );
        refused("# /// burnet\n# name = 'x'\n# ///\n", 2, "unknown key `name`");
        refused("import x\n# /// burnet\n# ///\n", 2, "move the block above it");
        let long = format!("# /// burnet\n{}# ///\n", "# #xxxxxxxxxxxx\n".repeat(MANIFEST_BYTES_MAX / 8));
        refused(&long, 1, "more than the limit of 65536");
    }

    #[test]
    fn a_block_is_read_from_the_comments_at_the_top() {
        let program = "#!/usr/bin/env python3\n# A hub.\n\n# /// burnet\n# [capabilities]\n# 'packet.in' = true\n#\n\
                       # [settings]\n# a = 1\n# ///\nimport burnet\n# /// burnet\n";
        let needs = Needs::in_comments(program).unwrap().unwrap();
        assert_eq!(needs.summary(), "packet.in");
        assert_eq!(needs.settings["a"], 1);
        assert_eq!(Needs::in_comments("# A hub.\nimport burnet\n").unwrap(), None);
        assert_eq!(Needs::in_comments("# /// burnet\n# ///\n").unwrap(), Some(Needs::default()));
    }

    #[test]
    fn what_is_asked_for_is_one_line_with_its_bounds() {
        let text = "[capabilities]\n'packet.in' = true\n'packet.out' = { ports = ['FLOOD'] }\n'rule.write' = { priority = [1, 9] }\n\
                    [system]\nspawn = true\n[limits]\nthreads = 8\n[quotas]\ncommands_per_s = 1000";
        let needs: Needs = toml_text::parse(text).unwrap();
        assert_eq!(
            needs.summary(),
            "packet.in, packet.out {\"ports\":[\"FLOOD\"]}, rule.write {\"priority\":[1,9]}, spawn, limits.threads 8, \
             quotas.commands_per_s 1000"
        );
        assert_eq!(needs.only(|name| name == "spawn").summary(), "spawn");
        assert_eq!(Needs::default().summary(), "nothing");
    }
}
