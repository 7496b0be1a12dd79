//! `burnet app new`: a folder with an app that compiles, and a test that passes.
//!
//! ```text
//!   a name, where to, where the SDK is ──> Cargo.toml, app.toml, src/lib.rs, src/main.rs, README.md, .gitignore
//! ```
//!
//! The folder is created completely or not at all. It overwrites nothing, compiles nothing, and contains no path of
//! the machine on which Burnet was built.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use monitor::APP_NAME_BYTES_MAX;
use rustix::fs::{CWD, RenameFlags};

use crate::cli::{AppNewArgs, CommandError};

const MANIFEST: &str = include_str!("new_app/Cargo.toml.txt");
const MEMBER_MANIFEST: &str = include_str!("new_app/member.toml.txt");
const LIBRARY: &str = include_str!("new_app/lib.rs.txt");
const PROGRAM: &str = include_str!("new_app/main.rs.txt");
const APP_MANIFEST: &str = include_str!("new_app/app.toml.txt");
const README: &str = include_str!("new_app/README.md.txt");
/// For apps outside of a Burnet checkout only. Apps in the checkout are built in, and so can run trusted.
const EXPORT: &str = include_str!("new_app/export.rs.txt");
const TRUSTED: &str = include_str!("new_app/trusted.md.txt");

/// Words that rustc reserves, and short names of crates of the standard library.
const WORDS_IN_USE: [&str; 51] = [
    "abstract", "alloc", "as", "async", "await", "become", "box", "break", "const", "continue", "core",
    "crate", "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in",
    "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return",
    "self", "static", "std", "struct", "super", "test", "trait", "true", "try", "type", "unsafe", "use",
    "where", "while",
];
/// Crates that an app depends on, or that Cargo reserves.
const CRATES_IN_USE: [&str; 2] = ["burnet-sdk", "proc-macro"];

/// Writes the app. A relative path starts at the current folder. Returns the next steps, for the operator.
///
/// # Errors
/// The name is not valid, the folder exists already, the SDK was not found, or the system refuses to write.
pub fn new_app(args: &AppNewArgs) -> Result<String, CommandError> {
    let current_dir = std::env::current_dir()
        .map_err(|error| cannot_be(format!("the current folder cannot be used ({error}): go to another")))?;
    new_app_from(&current_dir, args)
}

fn new_app_from(current_dir: &Path, args: &AppNewArgs) -> Result<String, CommandError> {
    check_name(&args.name)?;
    let parent = current_dir.join(args.dir.as_deref().unwrap_or(Path::new("")));
    let parent = parent.canonicalize().map_err(|error| {
        cannot_be(format!("the folder {} cannot be used ({error}): make it first", parent.display()))
    })?;
    let app = NewApp { name: &args.name, home: home(args, current_dir, &parent)? };
    let folder = parent.join(&args.name);
    put_in_place(&app.files()?, &folder)?;
    Ok(app.next_steps(&folder))
}

fn cannot_be(sentence: impl Into<String>) -> CommandError {
    CommandError::Usage(sentence.into())
}

/// Accepts a name that Cargo, rustc and a node all accept.
fn check_name(name: &str) -> Result<(), CommandError> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let shaped = name.bytes().all(plain)
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.len() <= APP_NAME_BYTES_MAX;
    if !shaped {
        return Err(cannot_be(format!(
            "{name:?} cannot be an app's name: write small letters, digits and hyphens, a letter first and no hyphen \
             last, at most {APP_NAME_BYTES_MAX}, for example my-app"
        )));
    }
    if WORDS_IN_USE.contains(&name) || CRATES_IN_USE.contains(&name) {
        return Err(cannot_be(format!(
            "{name} is a reserved name in Rust: choose another name, for example {name}-app"
        )));
    }
    Ok(())
}

/// Where the app is created.
#[derive(Debug, PartialEq, Eq)]
enum Home {
    /// In `apps/` of a Burnet checkout, as a member of its workspace.
    Checkout,
    /// Anywhere else, with the SDK at this path.
    Outside(PathBuf),
}

fn home(args: &AppNewArgs, current_dir: &Path, parent: &Path) -> Result<Home, CommandError> {
    let checkout = current_dir.ancestors().find(|folder| is_sdk(&folder.join("sdk/rust")));
    if let Some(sdk) = &args.sdk {
        return named_sdk(&current_dir.join(sdk)).map(Home::Outside);
    }
    let Some(checkout) = checkout else {
        return Err(cannot_be(
            "the SDK was not found: give its path with --sdk PATH (sdk/rust in a Burnet checkout), or run this command in a checkout",
        ));
    };
    let checkout = checkout.canonicalize().unwrap_or_else(|_| checkout.to_owned());
    if parent != checkout.join("apps") {
        return Ok(Home::Outside(checkout.join("sdk/rust")));
    }
    if checkout.join("crates").join(&args.name).exists() {
        return Err(cannot_be(format!("{} is one of Burnet's own crates: choose another name", args.name)));
    }
    Ok(Home::Checkout)
}

/// The SDK that `--sdk` names: its folder, or a checkout that contains it.
fn named_sdk(path: &Path) -> Result<PathBuf, CommandError> {
    let candidates = [path.to_owned(), path.join("sdk/rust")];
    let found = candidates.iter().find(|folder| is_sdk(folder)).and_then(|folder| folder.canonicalize().ok());
    found.ok_or_else(|| {
        cannot_be(format!(
            "{} is not Burnet's SDK: give the path of sdk/rust in a Burnet checkout",
            path.display()
        ))
    })
}

fn is_sdk(folder: &Path) -> bool {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
    let manifest: toml::Table = toml::from_str(&manifest).unwrap_or_default();
    let name = manifest.get("package").and_then(|package| package.get("name"));
    name.and_then(toml::Value::as_str) == Some("burnet-sdk")
}

/// The app to write.
struct NewApp<'n> {
    name: &'n str,
    home: Home,
}

impl NewApp<'_> {
    /// The files, as path within the app's folder and text.
    fn files(&self) -> Result<Vec<(&'static str, String)>, CommandError> {
        let manifest = match &self.home {
            Home::Checkout => self.fill(MEMBER_MANIFEST),
            Home::Outside(sdk) => self.fill(MANIFEST).replace("@SDK@", &in_toml(sdk)?),
        };
        let mut files = vec![
            ("Cargo.toml", manifest),
            ("app.toml", self.fill(APP_MANIFEST)),
            ("src/lib.rs", self.fill(LIBRARY)),
            ("src/main.rs", self.fill(PROGRAM)),
            ("README.md", self.fill(README)),
        ];
        if self.home != Home::Checkout {
            files.push((".gitignore", "/target\n*.burnet\n".to_owned()));
        }
        Ok(files)
    }

    fn fill(&self, template: &str) -> String {
        let [test, build, binary] = self.commands();
        let outside = |text: &str| if self.home == Home::Checkout { String::new() } else { text.to_owned() };
        // Texts that contain placeholders themselves come first.
        let words = [
            ("@EXPORT@", outside(EXPORT)),
            ("@TRUSTED@", outside(TRUSTED)),
            ("@NAME@", self.name.to_owned()),
            ("@CRATE@", self.name.replace('-', "_")),
            ("@TYPE@", self.type_name()),
            ("@TEST@", test),
            ("@BUILD@", build),
            ("@BINARY@", binary),
            ("@APP@", self.app_argument()),
            ("@ARCH@", std::env::consts::ARCH.to_owned()),
        ];
        words.iter().fold(template.to_owned(), |text, (place, word)| text.replace(place, word))
    }

    /// How to test and build it, and where its program is then.
    fn commands(&self) -> [String; 3] {
        let name = self.name;
        match self.home {
            Home::Checkout => [
                format!("cargo test --package {name}"),
                format!("cargo build --release --package {name}"),
                format!("../../target/release/{name}"),
            ],
            Home::Outside(_) => [
                "cargo test".to_owned(),
                "cargo build --release".to_owned(),
                format!("./target/release/{name}"),
            ],
        }
    }

    /// The argument with which a node runs it after it was built. For an app in the checkout it is the folder with
    /// its manifest.
    fn app_argument(&self) -> String {
        match self.home {
            Home::Checkout => ".".to_owned(),
            Home::Outside(_) => self.commands()[2].clone(),
        }
    }

    /// The name in the case of types. It gets a suffix if the app's own source already uses that word.
    fn type_name(&self) -> String {
        let capitalised = |word: &str| {
            let mut letters = word.chars();
            letters
                .next()
                .map(|first| first.to_ascii_uppercase())
                .into_iter()
                .chain(letters)
                .collect::<String>()
        };
        let name: String = self.name.split('-').map(capitalised).collect();
        let taken = LIBRARY.split(|letter: char| !letter.is_alphanumeric()).any(|word| word == name);
        if taken { name + "App" } else { name }
    }

    fn next_steps(&self, folder: &Path) -> String {
        let [test, build, _] = self.commands();
        let app = self.app_argument();
        format!(
            "{} is in {}. Next:\n\n  cd {}\n  {test}\n  {build}\n  burnet run --app {app}\n",
            self.name,
            folder.display(),
            folder.display()
        )
    }
}

fn in_toml(path: &Path) -> Result<String, CommandError> {
    let text = path.to_str().ok_or_else(|| {
        cannot_be(format!(
            "{} cannot be written into a Cargo.toml: the SDK's path must be UTF-8",
            path.display()
        ))
    })?;
    Ok(toml::Value::from(text).to_string())
}

/// Writes the files beside `folder` under another name, and then renames them. So other processes see all of the
/// files or none.
fn put_in_place(files: &[(&str, String)], folder: &Path) -> Result<(), CommandError> {
    if folder.symlink_metadata().is_ok() {
        return Err(there_already(folder));
    }
    let ending = format!("new-{}", std::process::id());
    let draft = folder.with_extension(ending);
    let done = write(files, &draft)
        .and_then(|()| Ok(rustix::fs::renameat_with(CWD, &draft, CWD, folder, RenameFlags::NOREPLACE)?));
    done.map_err(|error| {
        // If a file cannot be written, it may not be removable either. The first error is the one to report.
        let _ = fs::remove_dir_all(&draft);
        match error.kind() {
            io::ErrorKind::AlreadyExists => there_already(folder),
            _ => CommandError::DidNotWork(format!("{} cannot be written: {error}", folder.display())),
        }
    })
}

fn there_already(folder: &Path) -> CommandError {
    cannot_be(format!("{} already exists: choose another name or another --dir", folder.display()))
}

fn write(files: &[(&str, String)], draft: &Path) -> io::Result<()> {
    fs::create_dir(draft)?;
    fs::create_dir(draft.join("src"))?;
    files.iter().try_for_each(|(path, text)| fs::write(draft.join(path), text))
}

#[cfg(test)]
mod tests;
