//! The example slices on the network of the paper's Fig. 1a, with packets.

use super::show::rehearse;
use crate::cli::{Cli, LabCommand};
use burnet::cli::slice::{SliceCommand, SliceRehearseArgs};
use burnet::slice_plan::described;
use burnet::slice_plan::judge::{Judged, judge};
use burnet::slice_plan::packets::{HeardError, Packets};
use burnet::slice_plan::rehearse::{self, Flow, Options, Rehearsed};
use burnet::slice_plan::substrate::{Description, Substrate};
use clap::Parser;
use config::ConfigFile;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/slices")
}

/// These slices on the network of Fig. 1a at a thousandth of its rates.
fn of(slices: &str) -> (Description, Vec<Judged>) {
    let text = std::fs::read_to_string(folder().join("fig1a.toml")).expect("the network");
    let description = described::read(&text).expect("a description");
    let slices = ConfigFile::parse(slices, Path::new("slices.toml")).expect("slices").slices;
    let mut substrate = Substrate::new(description.clone()).expect("a network");
    let judged = judge(&mut substrate, &slices, false).expect("known names");
    (description, judged)
}

fn example() -> String {
    std::fs::read_to_string(folder().join("slices.toml")).expect("the slices")
}

/// The options of a command line.
fn args(options: &str) -> SliceRehearseArgs {
    let line = format!("burnet slice rehearse slices.toml --packets {options}");
    match Cli::try_parse_from(line.split_whitespace()).map(|cli| cli.command) {
        Ok(LabCommand::Slice(args)) => match args.command {
            SliceCommand::Rehearse(args) => args,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn with_packets(slices: &str, args: &SliceRehearseArgs) -> Result<Rehearsed, String> {
    let (description, judged) = of(slices);
    rehearse(&description, &judged, args)
}

fn packets(seen: &Rehearsed) -> &Packets {
    seen.packets.as_ref().expect("packets")
}

/// The rates of each flow in each phase, in Mb/s.
fn rates(seen: &Rehearsed) -> Vec<Vec<f64>> {
    seen.flows
        .iter()
        .map(|flow| flow.got_bps.iter().flatten().map(|bps| *bps as f64 / 1e6).collect())
        .collect()
}

/// The same with a model for the traffic, and with packets: rates within a tenth, and the same paths and labels of the slices' own directions.
fn check_oracle(options: &str) {
    let args = args(options);
    let (description, judged) = of(&example());
    let fluid = Options { choose: args.choose.into(), rest_ms: args.seconds * 1_000 };
    let expected = rehearse::rehearse(&description, &judged, &args.flows, fluid).expect("a rehearsal");
    let seen = with_packets(&example(), &args).expect("a rehearsal with packets");
    for (flow, other) in rates(&expected).iter().zip(&rates(&seen)) {
        assert_eq!(flow.len(), other.len());
        let is_near = flow.iter().zip(other).all(|(one, two)| (one - two).abs() <= 0.1 * one);
        assert!(is_near, "{options}: {:?} and {:?}", rates(&expected), rates(&seen));
    }
    let paths = |seen: &Rehearsed| seen.flows.iter().map(|flow| flow.path.clone()).collect::<Vec<_>>();
    assert_eq!(paths(&expected), paths(&seen), "{options}");
    assert_eq!(packets(&seen).crossed, 0);
    assert_eq!(errors(&seen), Vec::<String>::new());
}

/// What tenants got for errors.
fn errors(seen: &Rehearsed) -> Vec<String> {
    let errors = packets(seen).tenants.iter().flat_map(|it| it.errors.iter().map(|it| (&it.0, it.1)));
    let shown = |(it, count): (&HeardError, u64)| {
        format!("{count} {} {} at {}: {}", it.error, it.message, it.switch, it.why.as_deref().unwrap_or("-"))
    };
    errors.map(shown).collect()
}

const FLOWS: &str = "--flow red:A-B --flow blue:E-F --flow blue:C-D";

#[test]
fn packets_get_what_the_model_says_with_labels_as_in_figure_4a() {
    check_oracle(FLOWS);
}

#[test]
fn packets_get_what_the_model_says_without_labels_as_in_figure_4b() {
    check_oracle(&format!("{FLOWS} --choose hash"));
    check_oracle("--flow red:A-B@0 --flow blue:E-F@0 --flow blue:C-D@0 --choose hash");
}

#[test]
fn the_same_input_has_the_same_digest_and_another_seed_another_one() {
    let run = |options: &str| with_packets(&example(), &args(options)).expect("a rehearsal");
    let (one, two) = (run(FLOWS), run(FLOWS));
    assert_eq!(one, two);
    assert_ne!(packets(&one).digest, 0);
    assert_ne!(packets(&one).digest, packets(&run(&format!("{FLOWS} --seed 2"))).digest);
}

#[test]
fn a_tenant_hears_its_labels_in_each_form() {
    for form in ["none", "paper", "experimenter", "speed"] {
        let slices = example().replace("labels = \"paper\"", &format!("labels = \"{form}\""));
        assert!(slices.contains(form));
        let seen = with_packets(&slices, &args(FLOWS)).expect("a rehearsal");
        // Blue has heard that red is on the one spine, or both would be there.
        assert_ne!(seen.flows[0].path[2], seen.flows[1].path[2], "{form}");
        assert_eq!(seen.flows[0].path[2], seen.flows[2].path[2], "{form}");
        assert!(seen.flows.iter().all(Flow::is_content), "{form}: {:?}", rates(&seen));
        let version = if form == "paper" { "1.0" } else { "1.3" };
        assert_eq!(packets(&seen).tenants[1].openflow, version);
    }
}

#[test]
fn a_flow_that_came_to_an_overbooked_link_moves_when_its_tenant_hears() {
    // Both choose before they have heard of each other.
    let seen = with_packets(&example(), &args("--flow red:A-B@0 --flow blue:E-F@0")).expect("a rehearsal");
    assert_ne!(seen.flows[0].path[2], seen.flows[1].path[2]);
    assert!(seen.flows.iter().all(Flow::is_content), "{:?}", rates(&seen));
}

#[test]
fn a_rule_outside_of_its_slice_gets_the_error_of_openflow_with_the_reason() {
    let run = |rule: &str| {
        let seen =
            with_packets(&example(), &args(&format!("--flow red:A-B --rule {rule}"))).expect("it runs");
        assert!(seen.flows.iter().all(Flow::is_content), "{rule}: the flows go on");
        errors(&seen)
    };
    // Port 2 of s5 is blue's.
    let errors_of = run("red:s5:in_port=2,actions=output:1@0.5");
    assert_eq!(errors_of.len(), 1, "{errors_of:?}");
    assert!(
        errors_of[0].starts_with("1 OFPET_") && errors_of[0].contains("OFPT_FLOW_MOD at s5"),
        "{errors_of:?}"
    );
    assert!(errors_of[0].contains("port 2"), "{errors_of:?}");
    assert_eq!(run("red:s5:in_port=1,actions=output:3@0.5"), Vec::<String>::new());
    // A tenant of 1.0 gets the error of 1.0.
    let errors_of = run("blue:s5:in_port=2,actions=output:1");
    assert!(errors_of[0].contains("OFPET_BAD_ACTION, OFPBAC_BAD_OUT_PORT"), "{errors_of:?}");
}

#[test]
fn a_full_table_is_reported() {
    let seen = with_packets(&example(), &args(&format!("{FLOWS} --table-entries 6"))).expect("it runs");
    let errors = errors(&seen);
    let is_full = |error: &String| error.contains("ALL_TABLES_FULL") || error.contains("TABLE_FULL");
    assert!(
        errors.iter().any(is_full) && errors.iter().filter(|it| is_full(it)).all(|it| !it.ends_with(": -")),
        "{errors:?}"
    );
    assert!(packets(&seen).rules.iter().all(|it| it.entries <= 6), "{:?}", packets(&seen).rules);
}

/// Three slices, one of each isolation, whose links are trees.
const TREE: &str = r#"
[slice.red]
controllers = ["127.0.0.1:6701"]
isolation = "vlan"
tag = 101
links = ["s3:1-s1:1", "s4:1-s1:2", "s5:3-s3:3", "s7:3-s4:3"]
[slice.red.vnics]
A = { port = "s5:1", rate = "4M" }
B = { port = "s7:1", rate = "4M" }

[slice.blue]
controllers = ["127.0.0.1:6702"]
isolation = "flowspace"
matches = [
    "dl_vlan=0xffff,ip,nw_src=10.7.0.0/16,nw_dst=10.7.0.0/16",
    "dl_vlan=0xffff,arp,arp_spa=10.7.0.0/16,arp_tpa=10.7.0.0/16",
]
links = ["s3:2-s2:1", "s4:2-s2:2", "s5:3-s3:3", "s7:3-s4:3"]
own_ports = ["s5:2", "s7:2"]
[slice.blue.vnics]
C = { port = "s5:2", rate = "2M" }
D = { port = "s7:2", rate = "2M" }

[slice.green]
controllers = ["127.0.0.1:6703"]
isolation = "address"
addresses = "10.0.0.0/24"
prefix = "172.16.1.0/24"
hosts = { "10.0.0.1" = "s6:1", "10.0.0.2" = "s8:1" }
links = ["s3:1-s1:1", "s4:1-s1:2", "s6:3-s3:4", "s8:3-s4:4"]
[slice.green.vnics]
E = { port = "s6:1", rate = "3M" }
F = { port = "s8:1", rate = "3M" }
"#;

#[test]
fn a_learning_controller_and_slices_of_each_isolation_are_rehearsed_too() {
    let seen = with_packets(TREE, &args("--learning red")).expect("it runs");
    assert!(seen.flows.iter().all(Flow::is_content), "{:?} {:?}", rates(&seen), packets(&seen));
    assert_eq!((packets(&seen).crossed, packets(&seen).storms), (0, 0));
    assert_eq!(packets(&seen).tenants[0].openflow, "1.0");
}

#[test]
fn a_slice_that_only_observes_gets_no_errors() {
    let observer = "[slice.eye]\ncontrollers = ['127.0.0.1:1']\nisolation = 'flowspace'\nmatches = ['']\nread_only = true\n\
                    ports = ['s3:1', 's3:2', 's1:1']\n";
    let seen = with_packets(&(example() + observer), &args("--flow red:A-B")).expect("it runs");
    assert_eq!((packets(&seen).tenants.len(), errors(&seen)), (3, Vec::new()));
    assert!(packets(&seen).rules.iter().all(|it| it.slice != "eye" || it.rules == 0));
    assert!(seen.flows.iter().all(Flow::is_content), "{:?} {:?}", rates(&seen), packets(&seen).log);
}

#[test]
fn packets_that_circulate_end_the_rehearsal() {
    // The links that are chosen for red have a loop, and its controller floods.
    let why = with_packets(&example(), &args("--flow red:A-B --learning red")).expect_err("it has no end");
    assert!(why.contains("packets circulate"), "{why}");
}

#[test]
fn what_cannot_be_rehearsed_with_packets_is_named() {
    let check = |slices: &str, options: &str, expected: &str| {
        let why = with_packets(slices, &args(options)).expect_err("it cannot");
        assert!(why.contains(expected), "{options}: {why}");
    };
    check(&example(), "--learning pink", "there is no slice pink; there are red, blue");
    check(&example(), "--rule pink:s5:actions=drop", "there is no slice pink");
    check(&example(), "--flow red:A-X", "slice red has no two VNICs A-X; it has A, B");
    let port = TREE.replace("\"s7:1\", rate", "\"s5:1\", rate");
    check(&port, "", "red:A and red:B are behind one port, s5:1");
    let figure = std::fs::read_to_string(folder().join("fig1a.toml")).expect("the network");
    let on = |network: &str, slices: &str| {
        let description = described::read(network).expect("a description");
        let slices = ConfigFile::parse(slices, Path::new("slices.toml")).expect("slices").slices;
        let judged = judge(&mut Substrate::new(description.clone()).expect("a network"), &slices, false);
        super::show::rehearse(&description, &judged.expect("known names"), &args("")).expect_err("too much")
    };
    let why = on(&figure.replace("10M", "100G"), &example());
    assert!(why.contains("frames are more than the 10000000"), "{why}");
    let cable = |number: u32| format!("[[link]]\nbetween = \"s{number}:60-s{}:61\"\n", number + 1);
    let line: String = (100..360).map(cable).collect();
    let why = on(&(figure.clone() + &line), &example());
    assert!(why.contains("269 switches are more than the 256"), "{why}");
    let observer = |number: u32| {
        format!(
            "[slice.eye{number}]\ncontrollers = ['127.0.0.1:1']\nisolation = 'flowspace'\nmatches = ['ip']\nread_only = true\n\
             ports = ['s1:1']\n"
        )
    };
    let many: String = (0..63).map(observer).collect();
    let why = on(&figure, &(example() + &many));
    assert!(why.contains("65 slices are more than the 64"), "{why}");
    let long = TREE.replace(r#""s3:1-s1:1", "s4:1-s1:2""#, r#""s3:1-s4:1""#);
    let why = on(&figure, &long);
    assert!(why.contains("slice red: link s3:1-s4:1 is no cable"), "{why}");
}
