//! What must hold for any package file and any manifest. The fuzz targets call it with what they find, and a test of the package
//! crate with what was kept (`corpus/<target>`).
//!
//! In: any bytes. Out: nothing, or a panic that says what does not hold.

use package::file::NewFile;
use package::{Manifest, Package, PackagePath};

/// The decoder of this name: that of its fuzz target.
pub fn check(target: &str) -> Option<fn(&[u8])> {
    Some(match target {
        "package_file" => package_file,
        "app_manifest" => app_manifest,
        _ => return None,
    })
}

/// A package that is read is written as itself, and its paths stay in a folder.
pub fn package_file(bytes: &[u8]) {
    let Ok(read) = Package::read(bytes) else { return };
    let written = read.to_bytes();
    assert_eq!(Package::read(&written).as_ref(), Ok(&read));
    for (file, content) in read.files() {
        assert_eq!(file.size, content.len());
        let path = std::path::Path::new(file.path.as_str());
        assert!(path.components().all(|part| matches!(part, std::path::Component::Normal(_))), "{path:?}");
    }
}

/// A manifest that is read asks for nothing beyond itself, and its tables print as JSON that reads the same. With its programs it
/// makes a package.
pub fn app_manifest(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(manifest) = Manifest::parse(text) else { return };
    assert_eq!(manifest.asks_beyond(&manifest), []);
    let json = serde_json::to_string(&manifest.capabilities).expect("capabilities are printed");
    assert_eq!(
        serde_json::from_str::<package::manifest::Capabilities>(&json).ok().as_ref(),
        Some(&manifest.capabilities)
    );
    let path = |text: &str| PackagePath::try_from(text.to_owned()).expect("a path");
    let mut files = vec![NewFile { path: path("app.toml"), executable: false, bytes: bytes.to_vec() }];
    for entry in manifest.entry.values() {
        files.push(NewFile { path: entry.clone(), executable: true, bytes: Vec::new() });
    }
    if let Ok(made) = Package::make(files) {
        package_file(&made.to_bytes());
    }
}
