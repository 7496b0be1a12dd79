//! `burnet slice plan` and `burnet slice fit`: what slices get of a network, or why not.

use burnet::slice_plan::judge::{Judged, judge, judge_keeping};
use burnet::slice_plan::substrate::Substrate;
use burnet::slice_plan::{described, shown};
use config::ConfigFile;
use config::slices::{Slice, link_name, switch_name};
use emulator::SwitchOptions;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use test_bed::Bed;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/slices").join(name)
}

fn text_of(name: &str) -> String {
    std::fs::read_to_string(example(name)).unwrap()
}

/// What the command prints, what it complains about, and its exit code.
fn run(words: &[&str]) -> (String, String, i32) {
    let done =
        Command::new(env!("CARGO_BIN_EXE_burnet")).args(words).env_remove("BURNET_SOCKET").output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(done.stdout), text(done.stderr), done.status.code().unwrap())
}

fn slices(text: &str) -> Vec<Slice> {
    ConfigFile::parse(text, Path::new("slices.toml")).unwrap().slices
}

fn substrate(network: &str) -> Substrate {
    Substrate::new(described::read(network).unwrap()).unwrap()
}

fn judged(network: &str, text: &str) -> Vec<Judged> {
    judge(&mut substrate(network), &slices(text), true).unwrap()
}

fn unknown(network: &str, text: &str, expected: &str) {
    let why = judge(&mut substrate(network), &slices(text), false).unwrap_err().to_string();
    assert_eq!(why, expected, "{text}");
}

/// The links of a slice's plan, in one word each.
fn links(judged: &Judged) -> Vec<String> {
    judged.result.as_ref().unwrap().links.iter().map(|link| link_name(link.id)).collect()
}

fn why(judged: &Judged) -> &str {
    &judged.result.as_ref().unwrap_err().why
}

/// A section with VNICs.
fn section(name: &str, more: &str, vnics: &[(&str, &str, &str)]) -> String {
    let vnics: Vec<_> = vnics
        .iter()
        .map(|(name, port, rate)| format!("{name} = {{ port = '{port}', rate = '{rate}' }}"))
        .collect();
    format!(
        "[slice.{name}]\ncontrollers = ['h:1']\nisolation = 'vlan'\n{more}\nvnics = {{ {} }}\n",
        vnics.join(", ")
    )
}

#[test]
fn both_tenants_of_the_papers_figure_fit_and_fill_the_fabric() {
    let (network, file) = (example("fig1a.toml"), example("slices.toml"));
    let words = ["slice", "plan", file.to_str().unwrap(), "--network", network.to_str().unwrap()];
    let (text, complaint, code) = run(&words);
    assert_eq!((complaint.as_str(), code), ("", 0), "{text}");
    for line in [
        "slice red: fits",
        "  isolation  vlan, tag 101",
        "  switches   s1 s2 s3 s4 s5 s7",
        "  B     s7:1  server 3  8.0M  2.0M",
        "  s1:1-s3:1  4.0M   6.0M",
        "slice blue: fits",
        "  E     s6:1  server 2  10.0M  0",
        "  s2:2-s4:2  6.0M   0",
    ] {
        assert!(text.lines().any(|there| there == line), "{line:?} is missing:\n{text}");
    }
    let (text, _, code) = run(&[&words[..], &["--json"]].concat());
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&value["fits"], code), (&true.into(), 0));
    let vnic = &value["slices"][1]["vnics"][0];
    assert_eq!((&vnic["port"], &vnic["rate_bps"]), (&"of:0000000000000006/1".into(), &10_000_000.into()));
    let (text, _, code) = run(&["slice", "fit", words[2], "--network", words[4]]);
    assert_eq!((text.as_str(), code), ("slice red: fits\nslice blue: fits\n", 0));
}

#[test]
fn links_that_were_chosen_before_stay_while_they_fit_whatever_else_is_in_the_file() {
    const DIRECT: &[&str] = &["s1:3-s2:3"];
    const AROUND: &[&str] = &["s1:4-s3:4", "s2:4-s3:3"];
    let network = "link_rate = '10M'\nnic_rate = '10M'\n[[link]]\nbetween = 's1:3-s2:3'\n\
                   [[link]]\nbetween = 's2:4-s3:3'\n[[link]]\nbetween = 's1:4-s3:4'\n\
                   [[nic]]\nports = ['s1:1']\n[[nic]]\nports = ['s2:1']\n[[nic]]\nports = ['s1:2']\n[[nic]]\nports = ['s2:2']\n";
    let blue = section("blue", "tag = 1", &[("A", "s1:1", "8M"), ("B", "s2:1", "8M")]);
    let red = section("red", "tag = 2", &[("C", "s1:2", "8M"), ("D", "s2:2", "8M")]);
    let link = |(a, from, b, to): (u8, u8, u8, u8)| {
        format!("of:000000000000000{a}/{from}-of:000000000000000{b}/{to}").parse().unwrap()
    };
    let check = |text: &str, before: &[(u8, u8, u8, u8)], of_blue: &[&str], of_red: &[&str]| {
        let chosen = ("blue".to_owned(), before.iter().copied().map(link).collect());
        let chosen = [chosen].into_iter().filter(|_| !before.is_empty()).collect();
        let judged = judge_keeping(&mut substrate(network), &slices(text), false, &chosen).unwrap();
        let order: Vec<&str> = judged.iter().map(|it| it.slice.name.as_str()).collect();
        let written: Vec<String> = slices(text).into_iter().map(|it| it.name).collect();
        assert_eq!(order, written, "in the order of the file");
        let of = |name: &str| links(judged.iter().find(|it| it.slice.name == name).unwrap());
        assert_eq!((of("blue"), of("red")), (own(of_blue), own(of_red)), "{text} {before:?}");
    };
    let (direct, around) = ([(1, 3, 2, 3)], [(1, 4, 3, 4), (2, 4, 3, 3)]);
    let (red_first, blue_first) = (red.clone() + &blue, blue + &red);
    check(&red_first, &[], AROUND, DIRECT);
    for text in [&red_first, &blue_first] {
        check(text, &direct, DIRECT, AROUND);
        check(text, &around, AROUND, DIRECT);
    }
    // These do not join the switches, or are not there.
    check(&blue_first, &around[..1], DIRECT, AROUND);
    check(&blue_first, &[(1, 9, 2, 9)], DIRECT, AROUND);
}

fn own(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn vnics_beyond_a_nic_are_refused_with_what_is_left_and_what_would_fit() {
    let (network, file) = (example("fig1a.toml"), example("too-much.toml"));
    let words = |verb| {
        ["slice", verb, file.to_str().unwrap(), "--network", network.to_str().unwrap()].map(str::to_owned)
    };
    let run = |verb| run(&words(verb).iter().map(String::as_str).collect::<Vec<_>>());
    let why = "slice blue: D asks for 4.0M; the NIC of server 3 has 2.0M of 10.0M left";
    let (text, _, code) = run("plan");
    assert!(text.starts_with("slice red: fits\n") && text.lines().any(|line| line == why), "{text}");
    assert_eq!(code, 1);
    let (text, _, code) = run("fit");
    let expected =
        format!("slice red: fits\n{why}\n  fits with E 5M, F 5M, C 1M, D 2M; or with D 2M alone\n");
    assert_eq!((text, code), (expected, 1));
}

#[test]
fn a_wrong_file_ends_with_exit_code_2_and_its_line() {
    let folder = std::env::temp_dir().join(format!("burnet-slices-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let check = |file: &str, network: &str, expected: &str| {
        let (text, complaint, code) = run(&["slice", "plan", file, "--network", network]);
        assert_eq!((text.as_str(), code), ("", 2), "{complaint}");
        assert_eq!(complaint, format!("burnet: {expected}\n"));
    };
    let network = example("fig1a.toml").to_str().unwrap().to_owned();
    let sound = write("sound.toml", &text_of("slices.toml"));
    let tags = write("tags.toml", &text_of("slices.toml").replace("tag = 102", "tag = 101"));
    check(
        &tags,
        &network,
        &format!("{tags}, line 12: slice blue: tag 101 is in use by slice red (line 3): write another"),
    );
    let port = write("port.toml", &text_of("slices.toml").replace("s8:1", "s8:9"));
    check(
        &port,
        &network,
        &format!(
            "{port}, line 20: slice blue: VNIC F: port s8:9 is not in the network: switch s8 has s8:1, s8:3"
        ),
    );
    let empty = write("empty.toml", "");
    check(
        &empty,
        &network,
        &format!("{empty} has no slices: write a section [slice.NAME], or name another file"),
    );
    let bad = write("bad.toml", "[[link]]\nbetween = 's1:1-s2:1'");
    let expected =
        format!("{bad}, line 2: the link has no rate: write rate = \"10M\", or link_rate for all links");
    check(&sound, &bad, &expected);
    let (_, complaint, code) = run(&["slice", "plan", &sound, "--network", "/nowhere"]);
    assert!(
        complaint.starts_with("burnet: /nowhere cannot be read (No such file") && code == 2,
        "{complaint}"
    );
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_switch_a_port_or_a_link_that_the_network_lacks_is_named() {
    let network = text_of("fig1a.toml");
    let vnic = |port: &str| section("red", "", &[("A", port, "1M")]);
    unknown(
        &network,
        &vnic("s9:1"),
        "line 5: slice red: VNIC A: switch s9 is not in the network: correct its name, or describe its links or NICs",
    );
    unknown(
        &network,
        &vnic("s3:1"),
        "line 5: slice red: VNIC A: port s3:1 leads to another switch: write the port of a server",
    );
    let with = |more: &str| section("red", more, &[]);
    unknown(
        &network,
        &with("switches = ['s1', 's9']"),
        "line 4: slice red: switch s9 is not in the network: correct its name, or describe its links or NICs",
    );
    unknown(
        &network,
        &with("ports = ['s1:1', 's1:7']"),
        "line 4: slice red: port s1:7 is not in the network: switch s1 has s1:1, s1:2",
    );
    unknown(
        &network,
        &with("links = ['s3:1-s1:7']"),
        "line 4: slice red: port s1:7 is not in the network: switch s1 has s1:1, s1:2",
    );
    unknown(
        &network,
        &with("links = ['s5:1-s1:1']"),
        "line 4: slice red: port s5:1 leads to a server: write the port of a link",
    );
}

/// Two ways between s1 and s2: a cable, and one over s3.
const TRIANGLE: &str = "link_rate = '10M'\nnic_rate = '10M'\n[[link]]\nbetween = 's1:1-s2:1'\n[[link]]\nbetween = 's1:2-s3:1'\n[[link]]\nbetween = 's2:2-s3:2'
[[nic]]\nports = ['s1:9', 's1:8']\n[[nic]]\nports = ['s2:9', 's2:8']\n";

#[test]
fn links_are_chosen_around_a_full_one_and_what_was_tried_is_told() {
    let (a, b) = (("A", "s1:9", "6M"), ("B", "s2:9", "6M"));
    let (c, d) = (("C", "s1:8", "4M"), ("D", "s2:8", "4M"));
    let both = section("red", "", &[a, b]) + &section("blue", "", &[c, d]);
    let judged_both = judged(TRIANGLE, &both);
    assert_eq!(
        (links(&judged_both[0]), links(&judged_both[1])),
        (vec!["s1:1-s2:1".to_owned()], vec!["s1:1-s2:1".to_owned()])
    );
    // With less of the cable, blue goes around.
    let reserved = TRIANGLE.replacen("between = 's1:1-s2:1'", "between = 's1:1-s2:1'\nreserved = '2M'", 1);
    let around = judged(&reserved, &both);
    assert_eq!(links(&around[1]), ["s1:2-s3:1", "s2:2-s3:2"]);
    let text = shown::plan_text(&around);
    assert!(
        text.contains("  tried: all shortest paths: its VNICs can put 4.0M on link s1:1-s2:1, which has 2.0M of 10.0M left\n"),
        "{text}"
    );
    // Its switches forbid that.
    let only = section("red", "", &[a, b]) + &section("blue", "switches = ['s1', 's2']", &[c, d]);
    let only = judged(&reserved, &only);
    assert!(
        why(&only[1]).starts_with("slice blue: its VNICs can put 4.0M on link s1:1-s2:1"),
        "{}",
        why(&only[1])
    );
    // What was chosen is the slice's in its plan.
    let plan = around[1].slice.plan().unwrap();
    let ports: Vec<_> = plan.switches.iter().map(|it| (switch_name(it.datapath), it.ports.len())).collect();
    assert_eq!(ports, [("s1".to_owned(), 2), ("s2".to_owned(), 2), ("s3".to_owned(), 2)]);
    assert_eq!(plan.links.len(), 2);
}

#[test]
fn a_link_at_an_own_port_is_not_chosen_for_another_slice() {
    let owner = "[slice.owner]\ncontrollers = ['h:1']\nisolation = 'vlan'\nown_ports = ['s1:1']\n";
    let red = section("red", "", &[("A", "s1:9", "1M"), ("B", "s2:9", "1M")]);
    assert_eq!(links(&judged(TRIANGLE, &red)[0]), ["s1:1-s2:1"]);
    assert_eq!(links(&judged(TRIANGLE, &format!("{red}{owner}"))[0]), ["s1:2-s3:1", "s2:2-s3:2"]);
}

#[test]
fn named_links_carry_what_is_promised_also_over_several_hops() {
    let vnics = [("A", "s1:9", "6M"), ("B", "s2:9", "6M")];
    let direct = section("red", "links = ['s1:1-s2:1']", &vnics);
    assert_eq!(links(&judged(TRIANGLE, &direct)[0]), ["s1:1-s2:1"]);
    let virtual_link = section("red", "links = ['s1:2-s2:2']", &vnics);
    let over = judged(TRIANGLE, &virtual_link);
    assert_eq!(links(&over[0]), ["s1:2-s3:1", "s2:2-s3:2"]);
    let text = shown::plan_text(&over);
    assert!(
        text.contains("  links      as written\n") && text.contains("  virtual link s1:2-s2:2\n"),
        "{text}"
    );
    let none = section("red", "links = []", &vnics);
    assert_eq!(why(&judged(TRIANGLE, &none)[0]), "slice red: no path leads from switch s2 to switch s1");
    let slow = TRIANGLE.replacen("between = 's2:2-s3:2'", "between = 's2:2-s3:2'\nrate = '5M'", 1);
    let refused = judged(&slow, &virtual_link);
    assert_eq!(
        why(&refused[0]),
        "slice red: its VNICs can put 6.0M on link s2:2-s3:2, which has 5.0M of 5.0M left"
    );
    // With a trusted fabric, NICs decide alone.
    let trusted = virtual_link.replace("isolation", "admission = 'edge'\nisolation");
    assert!(judged(&slow, &trusted)[0].result.is_ok());
}

#[test]
fn two_links_of_a_slice_over_several_hops_share_no_cable() {
    // s1 and s2 each with two cables to a switch of their own, and one or two ways between these.
    let cable = |between: &str| format!("[[link]]\nbetween = '{between}'\n");
    let ends = ["s1:1-s3:1", "s1:2-s3:2", "s2:1-s4:1", "s2:2-s4:2", "s3:8-s4:8"].map(cable).concat();
    let one = format!(
        "link_rate = '10M'\nnic_rate = '10M'\n{ends}[[nic]]\nports = ['s1:9']\n[[nic]]\nports = ['s2:9']\n"
    );
    let two = format!("{one}{}{}", cable("s3:9-s5:1"), cable("s5:2-s4:9"));
    let vnics = [("A", "s1:9", "1M"), ("B", "s2:9", "1M")];
    let both = section("red", "links = ['s1:1-s2:1', 's1:2-s2:2']", &vnics);
    let hops = links(&judged(&two, &both)[0]);
    assert_eq!(hops.len(), 7, "{hops:?}");
    let why_not = "slice red: each path along link s1:2-s2:2 uses a cable of another link of the slice, a port of the slice, or a port in own_ports: name another port, or the links between";
    assert_eq!(why(&judged(&one, &both)[0]), why_not);
    // Another slice may use the same cables, and none may use a port in own_ports of another.
    let alone = |name: &str, link: &str| section(name, &format!("links = ['{link}']"), &[]);
    let slices = alone("red", "s1:1-s2:1") + &alone("blue", "s1:2-s2:2");
    assert!(judged(&one, &slices).iter().all(|slice| slice.result.is_ok()));
    let owner = "[slice.owner]\ncontrollers = ['h:1']\nisolation = 'vlan'\nown_ports = ['s3:8']\n";
    let refused = judged(&one, &format!("{}{owner}", alone("red", "s1:1-s2:1")));
    assert!(why(&refused[0]).contains("or a port in own_ports"), "{}", why(&refused[0]));
}

#[test]
fn a_link_of_several_hops_takes_a_way_that_fits_and_counts_as_one_hop() {
    // From s1 over s3 and s4 to s2, and with a hop more over s5. s6 is between s1 and s2, too.
    let cable = |(between, more): (&str, &str)| format!("[[link]]\nbetween = '{between}'\n{more}");
    let network = |over_s5: &str| {
        let cables = [
            ("s1:1-s3:1", ""),
            ("s2:1-s4:1", ""),
            ("s3:8-s4:8", "rate = '5M'\n"),
            ("s3:9-s5:1", over_s5),
            ("s5:2-s4:9", ""),
            ("s1:3-s6:1", ""),
            ("s2:3-s6:2", ""),
        ];
        let nics = "[[nic]]\nports = ['s1:9']\n[[nic]]\nports = ['s2:9']\n";
        format!("link_rate = '10M'\nnic_rate = '10M'\n{}{nics}", cables.map(cable).concat())
    };
    let slice =
        |rate: &str| section("red", "links = ['s1:1-s2:1']", &[("A", "s1:9", rate), ("B", "s2:9", rate)]);
    let over = |rate: &str| links(&judged(&network(""), &slice(rate))[0]);
    assert_eq!(over("5M"), ["s1:1-s3:1", "s2:1-s4:1", "s3:8-s4:8"]);
    assert_eq!(over("6M"), ["s1:1-s3:1", "s2:1-s4:1", "s3:9-s5:1", "s4:9-s5:2"]);
    let less_there = "its VNICs can put 6.0M on link s3:8-s4:8, which has 5.0M of 5.0M left";
    assert!(why(&judged(&network("reserved = '5M'\n"), &slice("6M"))[0]).contains(less_there));
    // Two cables of the slice are longer for the tenant than its link over three.
    let three = slice("5M").replacen("'s1:1-s2:1'", "'s1:1-s2:1', 's1:3-s6:1', 's6:2-s2:3'", 1);
    let got = judged(&network(""), &three)[0].result.clone().unwrap();
    let worst = |hop: &str| {
        let found = got.links.iter().find(|link| link_name(link.id) == hop);
        found.unwrap().worst.unwrap().bps()
    };
    assert_eq!((worst("s3:8-s4:8"), worst("s1:3-s6:1")), (5_000_000, 0));
}

#[test]
fn vnics_that_nothing_holds_to_their_rates_are_named() {
    let vnic = |more: &str| {
        format!(
            "[slice.red]\ncontrollers = ['h:1']\nisolation = 'vlan'\nvnics = {{ A = {{ port = 's1:9', rate = '1M' }}, B = {{ port = 's1:8', rate = '1M'{more} }} }}\n"
        )
    };
    let plan = |more: &str| shown::plan_text(&judged(TRIANGLE, &vnic(more)));
    assert!(!plan("").contains("unshaped"), "{}", plan(""));
    let text = plan(", meter = false");
    assert!(text.contains("\n  unshaped   B\n"), "{text}");
    let agent = ", meter = false, number = 1, mac = '02:00:00:00:00:01', agent = 1";
    assert!(!plan(agent).contains("unshaped"), "{}", plan(agent));
}

#[test]
fn a_slice_that_is_refused_takes_nothing() {
    let red = section("red", "", &[("A", "s1:9", "11M"), ("B", "s2:9", "6M")]);
    let blue = section("blue", "", &[("C", "s1:8", "10M"), ("D", "s2:8", "10M")]);
    let both = judged(TRIANGLE, &format!("{red}{blue}"));
    assert_eq!(why(&both[0]), "slice red: A asks for 11.0M; the NIC of s1:9 has 10.0M of 10.0M left");
    assert!(both[1].result.is_ok());
}

/// Numbers from a seed (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) % bound
    }
}

#[test]
fn what_would_fit_fits_and_one_kilobit_more_of_one_vnic_alone_does_not() {
    let mut random = Random(11);
    let mut refused = 0;
    for round in 0..300 {
        let network = text_of("fig1a.toml");
        let ports = ["s5:1", "s6:1", "s7:1", "s8:1", "s5:2", "s7:2"];
        let mut rates: Vec<u64> = (0..6).map(|_| 1 + random.below(14_000)).collect();
        let text = |rates: &[u64]| {
            let rate = |at: usize| format!("{}k", rates[at]);
            let (red, blue): (Vec<_>, Vec<_>) = (0..6).map(|at| (at, rate(at))).partition(|(at, _)| *at < 2);
            let vnics = |list: &[(usize, String)], name: &str| {
                let names: Vec<_> =
                    list.iter().map(|(at, rate)| (format!("V{at}"), ports[*at], rate.clone())).collect();
                let all: Vec<_> =
                    names.iter().map(|(name, port, rate)| (name.as_str(), *port, rate.as_str())).collect();
                section(
                    name,
                    "links = ['s3:1-s1:1', 's3:2-s2:1', 's4:1-s1:2', 's4:2-s2:2', 's5:3-s3:3', 's6:3-s3:4', 's7:3-s4:3', 's8:3-s4:4']",
                    &all,
                )
            };
            vnics(&red, "red") + &vnics(&blue, "blue")
        };
        let result = judged(&network, &text(&rates));
        let Err(why) = &result[1].result else { continue };
        refused += 1;
        let fit = why.fit.as_ref().unwrap();
        for (name, alone) in &fit.alone {
            let at: usize = name[1..].parse().unwrap();
            let before = rates[at];
            let fits = |rates: &[u64]| judged(&network, &text(rates))[1].result.is_ok();
            if let Some(rate) = alone.filter(|rate| rate.kbps() > 0) {
                rates[at] = rate.kbps();
                assert!(fits(&rates), "round {round}: {name} {rate}");
                rates[at] += 1;
                assert!(!fits(&rates), "round {round}: {name} {rate} is not the greatest");
            }
            rates[at] = before;
        }
        if fit.together.iter().all(|(_, rate)| rate.kbps() > 0) {
            for (name, rate) in &fit.together {
                rates[name[1..].parse::<usize>().unwrap()] = rate.kbps();
            }
            assert!(judged(&network, &text(&rates))[1].result.is_ok(), "round {round}: {fit}");
        }
    }
    assert!(refused > 50, "{refused}");
}

#[test]
fn without_a_description_the_running_node_is_asked() {
    let bed = Bed::new(env!("CARGO_BIN_EXE_burnet"));
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let node = bed
        .node()
        .config(&format!("[network.northbound]\nlisten = ['{address}']\n"))
        .log("info")
        .start_ready();
    let _network = node.network("linear,2", &SwitchOptions::default());
    let links = || String::from_utf8(bed.run(&["links"]).stdout).unwrap();
    node.wait("the link is known", |_| links().lines().count() >= 3);
    let text = section("red", "", &[("A", "s1:1", "1M"), ("B", "s2:1", "1M")]);
    let file = bed.file("slices.toml", &text);
    let done = bed.run(&["slice", "plan", file.to_str().unwrap()]);
    let (text, complaint) =
        (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap());
    assert!(done.status.success() && text.starts_with("slice red: fits\n"), "{text}{complaint}");
    assert!(text.contains("\n  s1:2-s2:2  1.0M"), "{text}");
}
