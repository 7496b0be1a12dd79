//! Keys, building, signing, verifying and installing, without a node.

use super::world::{HEARS, World, change};
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_package_that_nobody_vouches_for_is_not_installed() {
    let world = World::new();
    let file = world.built("1.0.0", HEARS).to_str().unwrap().to_owned();
    world.refused(&format!("app verify {file}"), 1, "my-app-1.0.0.burnet is unsigned");
    world.refused(&format!("app install {file} --grant-all"), 1, "is unsigned");
    world.done("key new mallory");
    world.done(&format!("app sign {file} --key mallory --role operator"));
    world.refused(&format!("app install {file} --grant-all"), 1, "has no signature of a trusted key");
    world.refused("app show my-app", 2, "my-app is not installed");
    fs::write(world.path("burnet.toml"), "[packages]\nrequire = 'none'\n").unwrap();
    world.done(&format!("app install {file} --grant-all --config burnet.toml"));
}

#[test]
fn a_package_that_was_altered_is_not_installed() {
    let world = World::new();
    let file = world.signed("1.0.0", HEARS);
    let sound = fs::read(&file).unwrap();
    let place = sound.windows(6).position(|bytes| bytes == b"exit 0").unwrap();
    let mut altered = sound.clone();
    altered[place + 5] = b'1';
    fs::write(&file, &altered).unwrap();
    world.refused(&format!("app install {file} --grant-all"), 1, "altered: bin/my-app has other content");
    fs::write(&file, &sound[..sound.len() / 2]).unwrap();
    world.refused(&format!("app verify {file}"), 1, "is not a valid package: it is cut short");
    fs::write(&file, [sound.as_slice(), b"x"].concat()).unwrap();
    world.refused(&format!("app sign {file} --key alice"), 1, "it has data after its end");
    // The signatures of one package on another.
    let other = world.built("1.0.1", HEARS);
    let signed = package::Package::read(&sound).unwrap();
    let bytes = fs::read(&other).unwrap();
    let mut forged = package::Package::read(&bytes).unwrap();
    forged.signatures_mut().add(signed.signatures().all()[0].clone()).unwrap();
    fs::write(&other, forged.to_bytes()).unwrap();
    world.refused(
        &format!("app install {} --grant-all", other.display()),
        1,
        "was altered: a signature does not match its content",
    );
}

#[test]
fn what_has_expired_or_was_revoked_does_not_count() {
    let world = World::new();
    let file = world.signed("1.0.0", HEARS);
    world.done("key trust $/state/keys/alice.pub --role developer --expires 30d");
    world.done(&format!("app verify {file}"));
    let store = world.path("state/trust.toml");
    let text = fs::read_to_string(&store).unwrap();
    let until = text.lines().find(|line| line.starts_with("expires = ")).unwrap();
    change(&store, until, "expires = \"2020-01-01T00:00:00Z\"");
    world.refused(&format!("app install {file} --grant-all"), 1, "expired key");
    assert!(world.done("key list").contains("expired at 2020-01-01T00:00:00Z"));
    world.refused(
        "key trust $/state/keys/alice.pub --role developer --expires 2020-01-01",
        2,
        "would already be expired",
    );
    world.trust("alice", "developer");
    world.done(&format!("app install {file} --grant-all"));
    assert!(world.done("app show").contains("as it was signed"));
    world.done("key distrust alice");
    assert!(world.done("app show").contains("is signed with a revoked key"));
    world.refused(&format!("app install {file} --grant-all"), 1, "revoked key");
    world.refused("key trust $/state/keys/alice.pub --role developer", 2, "was revoked at");
}

#[test]
fn a_key_file_that_others_can_read_signs_nothing() {
    let world = World::new();
    let file = world.built("1.0.0", "");
    let key = world.path("state/keys/alice.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    world.refused(&format!("app sign {} --key alice", file.display()), 1, "by others (mode 0644)");
    world.refused(&format!("app sign {} --key bob", file.display()), 1, "burnet key new bob makes one");
}

#[test]
fn what_is_asked_for_needs_a_yes_and_an_update_that_asks_for_more_another() {
    let world = World::new();
    let first = world.signed("1.0.0", HEARS);
    world.refused(&format!("app install {first}"), 2, "there is no terminal to ask on: add --grant-all");
    let said = world.done(&format!("app install {first} --grant-all"));
    assert!(said.contains("my-app 1.0.0 is installed, with all its requests granted"), "{said}");
    assert!(
        world
            .done("app show my-app")
            .contains("granted  packet.in  receive the packet-ins of switches for packets of arp")
    );

    let same = world.signed("1.1.0", HEARS);
    let said = world.done(&format!("app install {same}"));
    assert!(said.contains("requests no more than before"), "{said}");

    let more = world.signed("1.2.0", "[capabilities]\n'packet.in' = true\n'stats.read' = true\n");
    world.refused(&format!("app install {more}"), 2, "add --grant-all");
    let output = world.burnet(&format!("app install {more} --grant-all"));
    let shown = String::from_utf8(output.stderr).unwrap();
    assert!(shown.contains("It requests more than before:"), "{shown}");
    assert!(shown.contains("(before: receive the packet-ins of switches for packets of arp)"), "{shown}");
    assert!(shown.contains("stats.read"), "{shown}");
}

#[test]
fn what_was_taken_away_stays_away_with_an_update() {
    let world = World::new();
    let tables = "[capabilities]\n'packet.in' = true\n'packet.out' = true\n";
    world.done(&format!("app install {} --grant-all", world.signed("1.0.0", tables)));
    world.refused(
        "app revoke my-app rule.write",
        2,
        "does not request rule.write; it requests packet.in, packet.out",
    );
    world.refused("app revoke my-app", 2, "name what my-app may no longer do");
    world.done("app revoke my-app packet.out");
    world.done(&format!("app install {}", world.signed("1.0.1", tables)));
    let shown = world.done("app show my-app");
    assert!(shown.contains("granted  packet.in") && shown.contains("refused  packet.out"), "{shown}");
    world.done("app grant my-app");
    assert!(world.done("app show my-app").contains("granted  packet.out"));
}

#[test]
fn an_older_version_is_not_installed_over_a_newer_one_unless_it_is_meant() {
    let world = World::new();
    let old = world.signed("1.0.0", HEARS);
    world.done(&format!("app install {} --grant-all", world.signed("1.0.1", HEARS)));
    world.refused(
        &format!("app install {old} --grant-all"),
        1,
        "my-app 1.0.0 is older than 1.0.1, which is installed",
    );
    world.done(&format!("app install {old} --grant-all --allow-downgrade"));
    assert!(world.done("app show").contains("1.0.0"));
}

#[test]
fn an_operators_signature_can_be_required() {
    let world = World::new();
    fs::write(world.path("burnet.toml"), "[packages]\nrequire = 'operator'\n").unwrap();
    let file = world.signed("1.0.0", "");
    world.refused(
        &format!("app install {file} --config burnet.toml"),
        1,
        "an operator signature is required",
    );
    world.done(&format!("app sign {file} --key alice --role operator"));
    world.refused(&format!("app install {file} --config burnet.toml"), 1, "trusted only as a developer key");
    world.done("key new boss");
    world.trust("boss", "operator");
    world.done(&format!("app sign {file} --key boss --role operator"));
    let said = world.done(&format!("app install {file} --config burnet.toml"));
    assert!(said.contains("is installed; it requests nothing"), "{said}");
}

#[test]
fn tampering_with_what_is_installed_is_shown_and_mended_by_installing_again() {
    let world = World::new();
    let file = world.signed("1.0.0", HEARS);
    world.done(&format!("app install {file} --grant-all"));
    fs::write(world.folder("my-app").join("bin/my-app"), "#!/bin/sh\nrm -rf /\n").unwrap();
    assert!(world.done("app show").contains("was altered on disk: bin/my-app has other content"));
    world.refused("app grant my-app", 1, "was altered on disk");
    // A damaged package does not show what it requested before, so the operator must grant all again.
    world.refused(&format!("app install {file}"), 2, "add --grant-all");
    world.done(&format!("app install {file} --grant-all"));
    assert!(world.done("app show").contains("as it was signed"));
    assert!(world.done("app remove my-app").contains("my-app is removed"));
    world.refused("app remove my-app", 2, "my-app is not installed");
    assert!(!world.path("state/apps/my-app").exists());
}

#[test]
fn only_a_shared_object_gets_a_word_for_trusted_mode() {
    let world = World::new();
    world.done(&format!("app install {} --grant-all", world.signed("1.0.0", "")));
    world.refused(
        "app trust my-app",
        2,
        "my-app is a separate program and cannot run inside the kernel process",
    );
}

#[test]
fn what_cannot_be_built_is_said_with_its_line() {
    let world = World::new();
    world.refused("app build $/nowhere", 2, "a package begins with its manifest");
    fs::write(world.path("app/app.toml"), "name = 'a'\nversion = '1'\n").unwrap();
    world.refused("app build $/app", 2, "app/app.toml, line 2: \"1\" is no version");
    let file = world.built("1.0.0", "");
    fs::remove_file(world.path("app/bin/my-app")).unwrap();
    world.refused("app build $/app", 2, "bin/my-app cannot be read");
    let before = fs::read(&file).unwrap();
    world.built("1.0.0", "");
    assert!(before == fs::read(&file).unwrap(), "the same folder makes the same bytes");
}
