//! The app `vlan` with emulated switches: frames come out in their network, with and without its tag, and nowhere else.

use super::frames::*;
use super::stage::{App, BOTH, Stage};

/// h1 and h2 are untagged in network 5, h3 is untagged in network 6, h4 is tagged in both.
const SETTINGS: &str = "[[app.vlan.settings.networks]]\nvlan = 5\nuntagged = ['1/1', '1/2']\ntagged = ['1/4']\n\
    [[app.vlan.settings.networks]]\nvlan = 6\nuntagged = ['1/3']\ntagged = ['1/4']";

fn stage(versions: emulator::Versions) -> Stage {
    let stage = Stage::new(&[App("vlan", SETTINGS)], "", "single,5", versions);
    // One for each port, and three for each port of a network. OpenFlow 1.0 has no masks for the third.
    let each = if versions == emulator::Versions::Only10 { 2 } else { 3 };
    stage.wait_for_rules("vlan", 4 + each * 5);
    stage
}

#[test]
fn a_broadcast_stays_in_its_network_and_has_its_tag_where_it_is_tagged() {
    for versions in BOTH {
        let stage = stage(versions);
        stage.reaches("h1", &broadcast(1, &[], 1), "h2");
        stage.reaches_as("h1", &broadcast(1, &[], 2), "h4", &broadcast(1, &[5], 2));
        stage.reaches_as("h4", &broadcast(4, &[6], 3), "h3", &broadcast(4, &[], 3));
        stage.send("h1", &broadcast(1, &[], 4));
        stage.send("h4", &broadcast(4, &[6], 5));
        let (_, before) = stage.hear("h3", "the marker", |frame| frame.ends_with(&5_u64.to_be_bytes()));
        assert!(
            before.iter().all(|frame| frame[..12] == broadcast(4, &[], 3)[..12]),
            "only of network 6: {before:02x?}"
        );
    }
}

#[test]
fn known_hosts_of_a_network_reach_each_other_and_no_host_of_another_network() {
    for versions in BOTH {
        let stage = stage(versions);
        stage.reaches("h2", &broadcast(2, &[], 1), "h1");
        let to = |dst: u8, src: u8, tags: &[u16], number| {
            let mut frame = broadcast(src, tags, number);
            frame[..6].copy_from_slice(&mac(dst));
            frame
        };
        // h1 and h2 have rules of their own, so h4 hears nothing of them.
        stage.node.wait("the pair has a rule", |_| {
            stage.send("h2", &to(1, 2, &[], 2));
            stage.send("h1", &to(2, 1, &[], 2));
            stage.rules("vlan").iter().any(|rule| rule.priority == 20_200)
        });
        stage.forget("h4");
        stage.send("h1", &to(2, 1, &[], 3));
        stage.send("h1", &broadcast(1, &[], 4));
        let (_, before) = stage.hear("h4", "the broadcast", |frame| frame.ends_with(&4_u64.to_be_bytes()));
        assert!(!before.iter().any(|frame| frame.ends_with(&3_u64.to_be_bytes())), "{before:02x?}");
        // The address of h3 is not known in network 5, wherever it was learned.
        stage.reaches_as("h3", &broadcast(3, &[], 5), "h4", &broadcast(3, &[6], 5));
        stage.send("h1", &to(3, 1, &[], 6));
        stage.reaches_as("h4", &broadcast(4, &[6], 7), "h3", &broadcast(4, &[], 7));
        let heard = stage.all("h3");
        assert!(!heard.iter().any(|frame| frame.ends_with(&6_u64.to_be_bytes())), "{heard:02x?}");
    }
}

#[test]
fn frames_of_no_network_and_forged_tags_reach_nobody() {
    for versions in BOTH {
        let stage = stage(versions);
        stage.reaches("h1", &broadcast(1, &[], 1), "h2");
        let kept = [
            // An untagged port takes no tag, not even that of its own network, alone or on top of another.
            ("h1", broadcast(1, &[5], 2)),
            ("h1", broadcast(1, &[5, 6], 3)),
            ("h3", broadcast(3, &[5], 4)),
            // A tagged port takes no frame without a tag, or with that of an unknown network.
            ("h4", broadcast(4, &[], 5)),
            ("h4", broadcast(4, &[7], 6)),
            // Frames for the neighbour alone.
            ("h1", [&[0x01, 0x80, 0xc2, 0, 0, 0], &broadcast(1, &[], 7)[6..]].concat()),
        ];
        for (number, (from, frame)) in (100..).zip(&kept) {
            stage.is_kept_from("h2", (from, frame), ("h1", &broadcast(1, &[], number)));
            stage.send(from, frame);
            stage.send("h4", &broadcast(4, &[6], number));
            let (_, before) = stage.hear("h3", "the marker", |heard| heard.ends_with(&number.to_be_bytes()));
            assert!(
                !before.iter().any(|heard| heard.ends_with(&frame[frame.len() - 8..])),
                "h3 got {frame:02x?}"
            );
        }
    }
}

#[test]
fn a_second_tag_behind_that_of_the_network_stays() {
    for versions in BOTH {
        let stage = stage(versions);
        stage.reaches_as("h4", &broadcast(4, &[5, 9], 1), "h1", &broadcast(4, &[9], 1));
    }
}
