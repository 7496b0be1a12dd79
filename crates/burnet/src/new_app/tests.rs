//! Where an app is written, and when it is not. `tests/new_app.rs` tests that it compiles.

use super::*;

/// A folder of this test's own, removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("burnet-new-app-{name}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Scratch(path.canonicalize().unwrap())
    }

    /// A checkout with the parts of Burnet that the code looks at.
    fn with_checkout(name: &str) -> Scratch {
        let scratch = Scratch::new(name);
        for folder in ["sdk/rust", "apps", "crates/kernel", "examples"] {
            fs::create_dir_all(scratch.0.join(folder)).unwrap();
        }
        fs::write(scratch.0.join("sdk/rust/Cargo.toml"), "[package]\nname = \"burnet-sdk\"\n").unwrap();
        scratch
    }

    fn entries(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.0.join(folder)).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.0.join(path)).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn named(name: &str) -> AppNewArgs {
    AppNewArgs { name: name.to_owned(), dir: None, sdk: None }
}

fn refused(args: &AppNewArgs, current_dir: &Path, expected: &str) {
    let Err(CommandError::Usage(sentence)) = new_app_from(current_dir, args) else { panic!("{args:?}") };
    assert!(sentence.contains(expected), "{sentence}");
}

#[test]
fn what_cannot_be_a_name_is_refused_before_anything_is_written() {
    let scratch = Scratch::with_checkout("names");
    let long = "x".repeat(APP_NAME_BYTES_MAX + 1);
    for name in ["", "-", "My-App", "my_app", "1st", "app-", "../x", "a/b", "ä", "\u{1b}[2J", &long] {
        refused(&named(name), &scratch.0, "cannot be an app's name");
    }
    for name in ["fn", "self", "test", "burnet-sdk"] {
        refused(&named(name), &scratch.0, &format!("for example {name}-app"));
    }
    assert_eq!(scratch.entries("apps").len(), 0);
    assert_eq!(scratch.entries("").len(), 4);
}

#[test]
fn a_folder_that_is_there_already_stays_as_it_is() {
    let scratch = Scratch::with_checkout("existing");
    fs::create_dir(scratch.0.join("mine")).unwrap();
    refused(&named("mine"), &scratch.0, "mine already exists");
    std::os::unix::fs::symlink("/nowhere", scratch.0.join("linked")).unwrap();
    refused(&named("linked"), &scratch.0, "linked already exists");
    assert_eq!(scratch.entries("mine").len(), 0);
}

#[test]
fn without_an_sdk_it_says_what_to_pass() {
    let scratch = Scratch::new("no-sdk");
    refused(&named("mine"), &scratch.0, "give its path with --sdk PATH");
    let elsewhere = AppNewArgs { sdk: Some("/usr".into()), ..named("mine") };
    refused(&elsewhere, &scratch.0, "/usr is not Burnet's SDK");
    let nowhere = AppNewArgs { dir: Some("gone".into()), ..named("mine") };
    refused(&nowhere, &scratch.0, "gone cannot be used");
    assert_eq!(scratch.entries("").len(), 0);
}

#[test]
fn a_half_written_app_is_taken_back() {
    let scratch = Scratch::new("half");
    let files = [("Cargo.toml", String::new()), ("no/such/folder", String::new())];
    let error = put_in_place(&files, &scratch.0.join("mine")).unwrap_err();
    assert!(matches!(error, CommandError::DidNotWork(_)), "{error}");
    assert_eq!(scratch.entries("").len(), 0);
}

#[test]
fn a_name_that_is_a_crate_of_the_checkout_is_refused_there() {
    let scratch = Scratch::with_checkout("crate");
    refused(&named("kernel"), &scratch.0.join("apps"), "one of Burnet's own crates");
}

#[test]
fn in_apps_of_a_checkout_it_is_a_member() {
    let scratch = Scratch::with_checkout("member");
    let next = new_app_from(&scratch.0.join("apps"), &named("mine")).unwrap();
    assert!(next.contains("cargo test --package mine") && next.contains("burnet run --app .\n"), "{next}");
    let manifest = scratch.read("apps/mine/Cargo.toml");
    assert!(
        manifest.contains("burnet-sdk.workspace = true") && !manifest.contains("[workspace]"),
        "{manifest}"
    );
}

#[test]
fn anywhere_else_it_is_a_workspace_of_its_own() {
    let scratch = Scratch::with_checkout("outside");
    let next = new_app_from(&scratch.0.join("examples"), &named("mine")).unwrap();
    assert!(next.contains("burnet run --app ./target/release/mine"), "{next}");
    let manifest: toml::Table = toml::from_str(&scratch.read("examples/mine/Cargo.toml")).unwrap();
    let sdk = manifest["dependencies"]["burnet-sdk"]["path"].as_str();
    assert_eq!(sdk.map(Path::new), Some(scratch.0.join("sdk/rust").as_path()));
    assert!(manifest.contains_key("workspace"));
}

#[test]
fn an_sdk_may_be_named_by_its_checkout_too() {
    let (scratch, elsewhere) = (Scratch::with_checkout("it's \"quoted\""), Scratch::new("elsewhere"));
    let args = AppNewArgs { sdk: Some(scratch.0.clone()), ..named("mine") };
    new_app_from(&elsewhere.0, &args).unwrap();
    let manifest: toml::Table = toml::from_str(&elsewhere.read("mine/Cargo.toml")).unwrap();
    let sdk = manifest["dependencies"]["burnet-sdk"]["path"].as_str();
    assert_eq!(sdk.map(Path::new), Some(scratch.0.join("sdk/rust").as_path()));
}

#[test]
fn every_place_in_every_file_is_filled() {
    for home in [Home::Checkout, Home::Outside("/sdk".into())] {
        let app = NewApp { name: "my-app-2", home };
        for (path, text) in app.files().unwrap() {
            assert!(!text.contains('@'), "{path}: {text}");
        }
    }
}

/// In a checkout the built program is in another folder. In both cases the package contains the built program.
#[test]
fn the_manifest_of_a_new_app_is_one_and_names_its_program() {
    let check = |home: Home, binary: &str| {
        let files = NewApp { name: "my-app", home }.files().unwrap();
        let (_, text) = files.iter().find(|(path, _)| *path == "app.toml").unwrap();
        let manifest = package::Manifest::parse(text).unwrap();
        assert_eq!(manifest.name.as_str(), "my-app");
        let entry = manifest.entry_for(std::env::consts::ARCH).unwrap();
        assert_eq!(manifest.files[entry], binary);
    };
    check(Home::Checkout, "../../target/release/my-app");
    check(Home::Outside("/sdk".into()), "./target/release/my-app");
}

#[test]
fn a_type_is_called_like_the_app_unless_that_is_taken() {
    let check = |name: &str, expected: &str| {
        assert_eq!(NewApp { name, home: Home::Checkout }.type_name(), expected);
    };
    check("my-app", "MyApp");
    check("a-1b", "A1b");
    check("a--b", "AB");
    check("app", "AppApp");
    check("result", "ResultApp");
    check("packet-in", "PacketInApp");
}
