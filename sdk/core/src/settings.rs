//! An app's settings, from `[app.NAME.settings]` of the configuration.
//!
//! They never change while the app runs: new settings need a restart.

use serde::de::DeserializeOwned;

/// The settings of one app, as a JSON object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings(serde_json::Map<String, serde_json::Value>);

impl Settings {
    /// Parses the object. An error is a sentence for the operator.
    pub fn from_json(json: &[u8]) -> Result<Settings, String> {
        serde_json::from_slice(json)
            .map(Settings)
            .map_err(|error| format!("its settings are not a JSON object: {error}"))
    }

    /// The settings as a type of the app. With `#[serde(deny_unknown_fields, default)]` on that type, an unknown key is an error that
    /// names the key, and missing keys keep their defaults.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, String> {
        serde_json::from_value(serde_json::Value::Object(self.0.clone()))
            .map_err(|error| format!("its settings are wrong: {error}"))
    }
}

impl From<serde_json::Map<String, serde_json::Value>> for Settings {
    fn from(object: serde_json::Map<String, serde_json::Value>) -> Self {
        Settings(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct Own {
        idle_timeout_s: u16,
    }

    fn check(json: &str, expected: Result<u16, &str>) {
        let read = Settings::from_json(json.as_bytes()).and_then(|settings| settings.read::<Own>());
        match (read, expected) {
            (Ok(own), Ok(expected)) => assert_eq!(own.idle_timeout_s, expected),
            (Err(refusal), Err(part)) => assert!(refusal.contains(part), "{refusal}"),
            (read, expected) => panic!("{json}: {read:?} and not {expected:?}"),
        }
    }

    #[test]
    fn a_wrong_setting_is_refused_by_its_name() {
        check("[]", Err("not a JSON object"));
        check(r#"{"idle_timeout": 1}"#, Err("unknown field `idle_timeout`"));
        check(r#"{"idle_timeout_s": 70000}"#, Err("70000"));
    }

    #[test]
    fn what_is_left_out_keeps_its_default() {
        check("{}", Ok(0));
        check(r#"{"idle_timeout_s": 5}"#, Ok(5));
    }
}
