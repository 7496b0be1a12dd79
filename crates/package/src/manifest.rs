//! The manifest `app.toml`: an app's description and its requests.
//!
//! ```text
//!   text ──> Manifest::parse ──> Manifest ──> asks()         all that it asks for
//!        └─> the line and what to write instead └─> asks_beyond()  what it asks for more than another version
//! ```
//!
//! In: the text of the file. Out: validated types. It reads no file, and grants nothing.

pub mod amounts;
mod asks;
pub mod bounds;
pub mod capabilities;
mod keys;
pub mod needs;
mod parts;
pub mod quotas;
pub mod services;
pub mod switches;
pub mod system;
pub mod vendors;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use semver::Version;
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use amounts::{Amount, Limits};
pub use asks::Ask;
pub use capabilities::{Capabilities, RuleWrite};
pub use needs::Needs;
pub use parts::parts;
pub use quotas::Quotas;
pub use services::ServiceTable;
pub use system::System;

use crate::path::PackagePath;
use crate::toml_text::{self, Fault};

/// The file's name in a package.
pub const MANIFEST_PATH: &str = "app.toml";

/// The maximum size of a manifest in bytes.
pub const MANIFEST_BYTES_MAX: usize = 64 << 10;

/// The maximum length of an app's name in bytes. A node prints it in every line of the app's output.
pub const NAME_BYTES_MAX: usize = 64;

/// The maximum length of a description and of an author, in bytes: one line.
pub const LINE_BYTES_MAX: usize = 200;

/// The maximum number of authors.
pub const AUTHORS_MAX: usize = 64;

/// The maximum number of lines of `[files]`. Each may be a folder.
pub const FILES_MAX: usize = 256;

const NOT_FALSE: &str = "an app gets only what it requests: leave the key out instead of writing false";

/// A whole `app.toml`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The app's name.
    pub name: AppName,
    /// Its version.
    #[serde(deserialize_with = "version")]
    pub version: Version,
    /// Its purpose, in one line.
    #[serde(deserialize_with = "line")]
    pub description: String,
    /// Its authors.
    #[serde(default, deserialize_with = "lines")]
    pub authors: Vec<String>,
    /// The kind of its program.
    pub kind: Kind,
    /// The version of the app boundary for which it was built.
    #[serde(deserialize_with = "abi")]
    pub abi: u32,
    /// Its program by architecture.
    #[serde(deserialize_with = "entry")]
    pub entry: BTreeMap<Architecture, PackagePath>,
    /// The source paths of the package's files at build time, relative to the manifest's folder.
    #[serde(default, deserialize_with = "files")]
    pub files: BTreeMap<PackagePath, String>,
    /// What it declares, if it is a service for other apps.
    pub service: Option<ServiceTable>,
    /// The requested capabilities in the network.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// The requested access to the machine.
    #[serde(default)]
    pub system: System,
    /// The requested limits of resources.
    #[serde(default)]
    pub limits: Limits,
    /// The requested quotas.
    #[serde(default)]
    pub quotas: Quotas,
    /// Its default settings, which the operator can override.
    #[serde(default, deserialize_with = "settings")]
    pub settings: Map<String, Value>,
}

/// Gives the capabilities and quotas of services their declarations.
///
/// # Errors
/// None of these services declares a name, or it declares another form.
pub fn resolve(
    capabilities: &mut Capabilities,
    quotas: &mut Quotas,
    services: &[contract::Service],
) -> Result<(), String> {
    services::resolve(&mut capabilities.services, services)?;
    services::resolve(&mut quotas.services, services)
}

/// Whether a name can be used in a path and on a command line. Because it starts with a letter or digit, it is not an
/// option, a hidden folder, `.` or `..`.
pub(crate) fn is_plain_name(text: &str, bytes_max: usize) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let begins = text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric());
    begins && text.len() <= bytes_max && text.bytes().all(plain)
}

/// The name of an app: 1 to [`NAME_BYTES_MAX`] letters, digits, `-`, `_` and `.`, starting with a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct AppName(String);

impl AppName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for AppName {
    type Error = String;

    fn try_from(text: String) -> Result<AppName, String> {
        if is_plain_name(&text, NAME_BYTES_MAX) {
            return Ok(AppName(text));
        }
        Err(format!(
            "{text:?} cannot be an app's name: write 1 to {NAME_BYTES_MAX} letters, digits, '-', '_' or '.', a letter or \
             digit first"
        ))
    }
}

impl From<AppName> for String {
    fn from(name: AppName) -> String {
        name.0
    }
}

impl fmt::Display for AppName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The kind of an app's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", try_from = "String")]
pub enum Kind {
    /// A native program.
    Native,
    /// A Python program. The operator's interpreter runs it.
    Python,
    /// A shared object with the app's C table; the only kind that can run trusted.
    SharedObject,
}

impl TryFrom<String> for Kind {
    type Error = String;

    fn try_from(text: String) -> Result<Kind, String> {
        match text.as_str() {
            "native" => Ok(Kind::Native),
            "python" => Ok(Kind::Python),
            "shared-object" => Ok(Kind::SharedObject),
            "wasm" => Err("there is no WebAssembly zone yet: build the app as \"native\"".to_owned()),
            _ => {
                Err(format!("{text:?} is no kind of app: write \"native\", \"python\" or \"shared-object\""))
            }
        }
    }
}

/// The architecture of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Architecture {
    /// Intel and AMD, 64 bits.
    #[serde(rename = "x86_64")]
    X86_64,
    /// ARM, 64 bits.
    #[serde(rename = "aarch64")]
    Aarch64,
    /// All of them.
    #[serde(rename = "any")]
    Any,
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Architecture::X86_64 => "x86_64",
            Architecture::Aarch64 => "aarch64",
            Architecture::Any => "any",
        })
    }
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// The first fault, with its line.
    pub fn parse(text: &str) -> Result<Manifest, Fault> {
        if text.len() > MANIFEST_BYTES_MAX {
            let reason = format!(
                "{} bytes are more than the limit of {MANIFEST_BYTES_MAX} for a manifest",
                text.len()
            );
            return Err(Fault { line: 1, reason });
        }
        let manifest: Manifest = toml_text::parse(text)?;
        // A name that cannot be declared has no place of its own in the text.
        manifest.declared().map_err(|reason| Fault { line: 1, reason })?;
        Ok(manifest)
    }

    /// What it declares as a service. `None` if it is none.
    ///
    /// # Errors
    /// A declared name is not this service's to declare. [`Self::parse`] checks it.
    pub fn declared(&self) -> Result<Option<contract::Service>, String> {
        self.service
            .as_ref()
            .map(|service| service.declare(&self.name, &capabilities::keys().all()))
            .transpose()
    }

    /// Finds the declarations of the capabilities and quotas of services that are not built in.
    ///
    /// # Errors
    /// None of these services declares a name.
    pub fn resolve(&mut self, services: &[contract::Service]) -> Result<(), String> {
        resolve(&mut self.capabilities, &mut self.quotas, services)
    }

    /// The program for an architecture, named as in [`std::env::consts::ARCH`].
    pub fn entry_for(&self, architecture: &str) -> Option<&PackagePath> {
        let own = self.entry.iter().find(|(one, _)| one.to_string() == architecture);
        own.map(|(_, path)| path).or_else(|| self.entry.get(&Architecture::Any))
    }

    /// All its requests.
    pub fn asks(&self) -> Vec<Ask> {
        let mut all = asks::All::default();
        self.visit(self, &mut all);
        all.0
    }

    /// Its requests that another version did not have, or had with narrower bounds.
    pub fn asks_beyond(&self, before: &Manifest) -> Vec<Ask> {
        let mut beyond = asks::WiderRequests::default();
        self.visit(before, &mut beyond);
        beyond.0
    }

    fn visit(&self, before: &Manifest, visitor: &mut impl asks::Visit) {
        self.capabilities.visit(&before.capabilities, visitor);
        self.system.visit(&before.system, visitor);
        self.limits.visit(&before.limits, visitor);
        self.quotas.visit(&before.quotas, visitor);
    }
}

fn version<'de, D: Deserializer<'de>>(input: D) -> Result<Version, D::Error> {
    let text = String::deserialize(input)?;
    Version::parse(&text).map_err(|error| {
        D::Error::custom(format!("{text:?} is no version ({error}): write one such as \"1.0.0\""))
    })
}

fn abi<'de, D: Deserializer<'de>>(input: D) -> Result<u32, D::Error> {
    let number = i64::deserialize(input)?;
    u32::try_from(number)
        .ok()
        .filter(|version| *version > 0)
        .ok_or_else(|| D::Error::custom(format!("{number} is not a version of the app boundary: write 1")))
}

fn line<'de, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    let text = String::deserialize(input)?;
    if text.is_empty() || text.len() > LINE_BYTES_MAX || text.chars().any(char::is_control) {
        return Err(D::Error::custom(format!("write one line of 1 to {LINE_BYTES_MAX} bytes")));
    }
    Ok(text)
}

fn lines<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Line(#[serde(deserialize_with = "line")] String);

    let lines: Vec<Line> = bounds::list(input, AUTHORS_MAX)?;
    Ok(lines.into_iter().map(|Line(text)| text).collect())
}

fn entry<'de, D: Deserializer<'de>>(input: D) -> Result<BTreeMap<Architecture, PackagePath>, D::Error> {
    let entry = BTreeMap::deserialize(input)?;
    if entry.is_empty() {
        return Err(D::Error::custom(
            "an app needs a program: write for example x86_64 = \"bin/x86_64/my-app\"",
        ));
    }
    Ok(entry)
}

fn files<'de, D: Deserializer<'de>>(input: D) -> Result<BTreeMap<PackagePath, String>, D::Error> {
    let files: BTreeMap<PackagePath, String> = BTreeMap::deserialize(input)?;
    if files.len() > FILES_MAX {
        let many = format!("{} lines are more than the limit of {FILES_MAX}: name folders", files.len());
        return Err(D::Error::custom(many));
    }
    if files.keys().any(|path| path.as_str() == MANIFEST_PATH) {
        return Err(D::Error::custom("app.toml is always in the package: leave it out"));
    }
    Ok(files)
}

fn settings<'de, D: Deserializer<'de>>(input: D) -> Result<Map<String, Value>, D::Error> {
    let table = toml::Table::deserialize(input)?;
    toml_text::json_object(table).map_err(D::Error::custom)
}
