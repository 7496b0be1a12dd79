//! `burnet annotate`: notes about a switch, a port, a link or a host.
//!
//! In: parsed options. Out: the object with its notes. The service that knows the object keeps them.

use super::{client, failed};
use crate::cli::CommandError;
use crate::cli::network::AnnotateArgs;
use crate::commands::json;
use serde_json::{Map, Value, json};

/// Sets or removes notes.
pub fn annotate(args: &AnnotateArgs) -> Result<String, CommandError> {
    let target = format!("/api/v1/{}/{}", collection(&args.object), super::encoded(&args.object));
    let notes = notes(&args.notes).map_err(failed)?;
    let changed = client(&args.asking)?.ask("PATCH", &target, Some(&json!({ "annotations": notes })));
    let changed = changed.map_err(failed)?;
    if args.asking.json {
        return json(&changed);
    }
    let left = changed["annotations"].as_object().cloned().unwrap_or_default();
    let line = |(name, value): (&String, &Value)| format!("{name}={}\n", value.as_str().unwrap_or_default());
    Ok(left.iter().map(line).collect())
}

/// The collection of an object, by the form of its name.
fn collection(object: &str) -> &'static str {
    match object.split(':').count() {
        // Two ends with a dash between them.
        _ if object.contains('/') && object.contains('-') => "links",
        _ if object.contains('/') => "ports",
        6 => "hosts",
        _ => "switches",
    }
}

fn notes(list: &[String]) -> Result<Map<String, Value>, String> {
    let note = |text: &String| {
        let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
            format!("{text}: write NAME=VALUE, for example name=Vienna, or NAME= to remove the note")
        })?;
        Ok((name.to_owned(), if value.is_empty() { Value::Null } else { value.into() }))
    };
    list.iter().map(note).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_object_says_its_kind() {
        let check = |object: &str, expected: &str| assert_eq!(collection(object), expected, "{object}");
        check("1", "switches");
        check("of:0000000000000001", "switches");
        check("00:00:00:00:00:00:00:01", "switches");
        check("of:1/2", "ports");
        check("1/2-2/1", "links");
        check("00:00:00:00:00:01", "hosts");
        check("00:00:00:00:00:01.100", "hosts");
    }

    #[test]
    fn a_note_without_a_value_is_removed() {
        let read = |text: &str| notes(&[text.to_owned()]);
        assert_eq!(read("name=Vienna").unwrap()["name"], "Vienna");
        assert_eq!(read("name=").unwrap()["name"], Value::Null);
        for wrong in ["name", "=x", ""] {
            assert!(read(wrong).unwrap_err().contains("NAME=VALUE"), "{wrong}");
        }
    }
}
