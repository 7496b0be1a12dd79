//! Profiles that an operator names: built in, or files.
//!
//! In: a name, or the path of a file. Out: the profile, or a sentence that says what is wrong with it, with file and line.

use std::fs;

use burnet::cli::CommandError;
use profile::Profile;

/// The profile with this name, or in this file. A text with a `/` or with the ending `.toml` is a file.
pub(super) fn read(text: &str) -> Result<Profile, CommandError> {
    if !text.contains('/') && !text.ends_with(".toml") {
        return profile::built_in(text).ok_or_else(|| {
            let names: Vec<&str> = profile::built_in::names().collect();
            CommandError::Usage(format!(
                "there is no built-in profile {text}: name one of {}, or a file ending in .toml",
                names.join(", ")
            ))
        });
    }
    let content = fs::read_to_string(text)
        .map_err(|error| CommandError::Usage(format!("the profile {text} cannot be read: {error}")))?;
    Profile::parse(text, &content).map_err(|bad| CommandError::Usage(bad.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_that_is_not_there_is_named() {
        for (text, expected) in
            [("hp", "there is no built-in profile hp"), ("./none.toml", "./none.toml cannot be read")]
        {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(read("fulcrum-monaco").unwrap().name, "fulcrum-monaco");
    }
}
