//! What is found of slices in a ring of three switches, as far as it is known.

use super::*;
use crate::slice_plan::described;
use burnet_sdk::view::LinkId;
use config::ConfigFile;
use config::slices::parse_link;
use std::path::Path;

/// A ring of three switches, with two servers at s1 and s2 each.
const RING: &str = "link_rate = '10M'\nnic_rate = '10M'\n[[link]]\nbetween = 's1:3-s2:3'\n[[link]]\nbetween = 's2:4-s3:3'\n\
                    [[link]]\nbetween = 's1:4-s3:4'\n[[nic]]\nports = ['s1:1']\n[[nic]]\nports = ['s1:2']\n\
                    [[nic]]\nports = ['s2:1']\n[[nic]]\nports = ['s2:2']\n";

fn network(text: &str) -> Description {
    described::read(text).unwrap()
}

/// The same network, in which a cable is down.
fn without(cable: &str) -> Description {
    let (mut network, id) = (network(RING), parse_link(cable).unwrap());
    let cable = network.links.iter_mut().filter(|link| [id, id.reversed()].contains(&link.id));
    cable.for_each(|link| link.state = LinkState::Down);
    network
}

fn slice(name: &str, port: u16, rate: &str, more: &str) -> String {
    format!(
        "[slice.{name}]\ncontrollers = ['127.0.0.1:1']\nisolation = 'vlan'\ntag = {port}\n\
         vnics = {{ A = {{ port = 's1:{port}', rate = '{rate}' }}, B = {{ port = 's2:{port}', rate = '{rate}' }} }}\n{more}\n"
    )
}

fn slices(text: &str) -> Vec<Slice> {
    ConfigFile::parse(text, Path::new("t")).unwrap().slices
}

fn choice(slice: &str, cables: &[&str]) -> Choices {
    let links: Vec<LinkId> = cables.iter().map(|cable| parse_link(cable).unwrap()).collect();
    [(slice.to_owned(), links)].into()
}

/// For each slice: its links, and its note. No note names another slice, because the tenant reads it.
fn shown(findings: &[Finding]) -> Vec<(String, String)> {
    let names = |it: &Finding, other: &Finding| {
        it.slice.name != other.slice.name && it.note().is_some_and(|note| note.contains(&other.slice.name))
    };
    let naming = findings.iter().find(|it| findings.iter().any(|other| names(it, other)));
    assert_eq!(naming, None, "it names another slice");
    let links = |slice: &Slice| -> Vec<String> {
        slice.links.iter().flatten().map(|link| config::slices::link_name(link.id)).collect()
    };
    let text = |it: &Finding| (links(&it.slice).join(" "), it.note().unwrap_or_default());
    findings.iter().map(text).collect()
}

#[track_caller]
fn check(network: Description, text: &str, choices: &Choices, may_choose: bool, expected: &[(&str, &str)]) {
    let found = look(network, &slices(text), choices, may_choose).unwrap();
    let found = shown(&found);
    assert_eq!(
        found.iter().map(|(links, note)| (links.as_str(), note.as_str())).collect::<Vec<_>>(),
        expected
    );
}

#[test]
fn a_slice_with_links_is_judged_when_the_network_has_what_it_names() {
    let blue = slice("blue", 1, "8M", "links = ['s1:3-s2:3']");
    let none = Choices::new();
    let links = "s1:3-s2:3";
    check(
        Description::default(),
        &blue,
        &none,
        false,
        &[(links, "not judged yet: s1, s2 are not connected")],
    );
    let half = network("nic_rate = '10M'\n[[nic]]\nports = ['s1:1', 's1:3']");
    check(half, &blue, &none, false, &[(links, "not judged yet: s2 is not connected")]);
    let unjoined = network(
        "nic_rate = '10M'\n[[nic]]\nports = ['s1:1']\n[[nic]]\nports = ['s2:1', 's2:3']\n[[nic]]\nports = ['s1:3']",
    );
    let why = "not judged yet: port s1:3 leads to a server: write the port of a link";
    check(unjoined, &blue, &none, false, &[(links, why)]);
    check(network(RING), &blue, &none, false, &[(links, "")]);
    let much = slice("blue", 1, "11M", "links = ['s1:3-s2:3']");
    let why = "does not fit: A asks for 11.0M; the NIC of s1:1 has 10.0M of 10.0M left";
    check(network(RING), &much, &none, false, &[(links, why)]);
}

#[test]
fn a_slice_that_does_not_fit_takes_nothing_and_one_that_is_promised_nothing_is_not_judged() {
    let both =
        slice("blue", 1, "11M", "links = ['s1:3-s2:3']") + &slice("red", 2, "9M", "links = ['s1:3-s2:3']");
    let why = "does not fit: A asks for 11.0M; the NIC of s1:1 has 10.0M of 10.0M left";
    check(network(RING), &both, &Choices::new(), true, &[("s1:3-s2:3", why), ("s1:3-s2:3", "")]);
    let plain =
        "[slice.blue]\ncontrollers = ['127.0.0.1:1']\nisolation = 'vlan'\ntag = 3\nports = ['s9:1']\n";
    check(network(RING), plain, &Choices::new(), true, &[("", "")]);
}

#[test]
fn links_are_chosen_when_they_may_be_and_a_slice_that_runs_comes_first() {
    let blue = slice("blue", 1, "8M", "");
    let none = Choices::new();
    check(
        Description::default(),
        &blue,
        &none,
        true,
        &[("", "waits for the network: s1, s2 are not connected")],
    );
    check(network(RING), &blue, &none, false, &[("", "waits for the network: its links are being found")]);
    check(network(RING), &blue, &none, true, &[("s1:3-s2:3", "")]);
    let much = slice("blue", 1, "11M", "");
    let why = "does not fit: A asks for 11.0M; the NIC of s1:1 has 10.0M of 10.0M left";
    check(network(RING), &much, &none, true, &[("", why)]);
    // Blue comes first in the file, but red has the short way already.
    let both = blue + &slice("red", 2, "8M", "links = ['s1:3-s2:3']");
    check(network(RING), &both, &none, true, &[("s1:4-s3:4 s2:4-s3:3", ""), ("s1:3-s2:3", "")]);
}

#[test]
fn a_choice_stays_over_failures_and_no_link_that_is_down_is_chosen() {
    let blue = slice("blue", 1, "8M", "");
    let long = choice("blue", &["s1:4-s3:4", "s2:4-s3:3"]);
    check(network(RING), &blue, &long, true, &[("s1:4-s3:4 s2:4-s3:3", "")]);
    check(without("s1:4-s3:4"), &blue, &long, true, &[("s1:4-s3:4 s2:4-s3:3", "")]);
    check(without("s1:3-s2:3"), &blue, &Choices::new(), true, &[("s1:4-s3:4 s2:4-s3:3", "")]);
    let why = "not judged yet: s1, s2, s3 are not connected";
    check(Description::default(), &blue, &long, true, &[("s1:4-s3:4 s2:4-s3:3", why)]);
}

#[test]
fn when_an_operator_asks_a_choice_that_does_not_fit_is_replaced_if_another_does() {
    let again = |text: &str, choices: &Choices| {
        let found = look_again(&network(RING), &slices(text), choices).unwrap();
        shown(&found).into_iter().map(|(links, note)| format!("{links}: {note}")).collect::<Vec<_>>()
    };
    let short = choice("blue", &["s1:3-s2:3"]);
    let blue = slice("blue", 1, "8M", "");
    assert_eq!(again(&blue, &short), ["s1:3-s2:3: "]);
    let red = slice("red", 2, "8M", "links = ['s1:3-s2:3']");
    // Red is judged first, so the choice of blue does not fit.
    assert_eq!(again(&(red.clone() + &blue), &short), ["s1:3-s2:3: ", "s1:4-s3:4 s2:4-s3:3: "]);
    let much = slice("blue", 1, "11M", "");
    let why = "s1:3-s2:3: does not fit: A asks for 11.0M; the NIC of s1:1 has 10.0M of 10.0M left";
    assert_eq!(again(&much, &short), [why]);
}
