//! `burnet plan`, `apply` and `rollback` on a whole node with emulated switches.

use emulator::SwitchOptions;
use std::net::TcpListener;
use test_bed::{Bed, Node};

fn bed() -> Bed {
    Bed::new(env!("CARGO_BIN_EXE_burnet"))
}

fn node(bed: &Bed) -> Node {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    bed.node().config(&format!("[network.northbound]\nlisten = ['{address}']\n")).log("info").start_ready()
}

/// What a command prints, or its error with the exit code.
fn run(bed: &Bed, words: &[&str]) -> Result<String, (i32, String)> {
    let done = bed.run(words);
    match done.status.success() {
        true => Ok(String::from_utf8(done.stdout).unwrap()),
        false => Err((done.status.code().unwrap_or(-1), String::from_utf8(done.stderr).unwrap())),
    }
}

fn file(bed: &Bed, command: &[&str], text: &str) -> Result<String, (i32, String)> {
    let file = bed.file("network.toml", text);
    let path = file.to_str().unwrap();
    run(bed, &[command, &["-f", path]].concat())
}

const HOSTS: &str = "name = 'campus'
[[host]]
id = '00:00:00:00:00:01'
at = '1/1'
addresses = ['10.0.0.1']
[[host]]
id = '00:00:00:00:00:02'
at = '2/1'
addresses = ['10.0.0.2']
";

const INTENT: &str = "[[intent]]
name = 'web'
type = 'host_to_host'
one = '00:00:00:00:00:01'
two = '00:00:00:00:00:02'
";

const RULES: &str = "[[rules]]
name = 'no-telnet'
rules = [{ switch = '1', priority = 40000, match = { in_port = 1, eth_type = '0x0800', ip_proto = 6, tcp_dst = 23 }, instructions = [] }]
";

fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing:\n{text}");
    }
}

#[test]
fn a_bad_file_changes_nothing_and_a_good_one_is_applied_once_and_taken_back() {
    let bed = bed();
    let node = node(&bed);
    let _network = node.network("linear,2", &SwitchOptions::default());
    node.wait("the link is known", |_| run(&bed, &["links"]).is_ok_and(|links| links.lines().count() >= 3));

    let (code, why) = file(&bed, &["apply"], &format!("{HOSTS}{INTENT}typo = 1\n")).unwrap_err();
    assert_eq!(code, 2, "{why}");
    contains(&why, &["network.toml:15: [[intent]] 1, typo: "]);
    let (code, why) = file(
        &bed,
        &["apply"],
        &format!(
            "{}{INTENT}",
            HOSTS.replace(
                "[[host]]\nid = '00:00:00:00:00:01'",
                "protected = ['1/2']\n[[host]]\nid = '00:00:00:00:00:01'"
            )
        ),
    )
    .unwrap_err();
    assert_eq!(code, 1, "{why}");
    contains(&why, &["nothing was changed, because the plan is refused"]);
    assert!(run(&bed, &["hosts"]).unwrap().contains("no hosts"), "nothing is half done");

    let all = format!("{HOSTS}{INTENT}{RULES}");
    contains(
        &file(&bed, &["plan"], &all).unwrap(),
        &["4 to add, 0 to change, 0 to withdraw", "time: not known"],
    );
    let applied = file(&bed, &["apply", "--wait"], &all).unwrap();
    contains(&applied, &["4 to add", "version 1 of campus is in place after"]);
    contains(&run(&bed, &["intents"]).unwrap(), &["campus/web", "installed"]);
    let told = run(&bed, &["explain", "10.0.0.1", "10.0.0.2", "tcp_dst=23"]).unwrap();
    contains(&told, &["dropped", "owner: northbound, set \"campus/no-telnet\""]);
    contains(&run(&bed, &["explain", "10.0.0.1", "10.0.0.2"]).unwrap(), &["10.0.0.1 -> 10.0.0.2: delivered"]);

    let again = file(&bed, &["apply", "--wait"], &all).unwrap();
    contains(
        &again,
        &["0 to add, 0 to change, 0 to withdraw, 4 unchanged", "nothing to change; campus has version 1"],
    );

    let faster = all.replace("name = 'web'", "name = 'web'\npriority = 30000");
    contains(&file(&bed, &["plan"], &faster).unwrap(), &["0 to add, 1 to change", "if it goes as before"]);
    contains(&file(&bed, &["apply", "--wait"], &faster).unwrap(), &["version 2 of campus is in place"]);
    let back = run(&bed, &["rollback", "campus", "--wait"]).unwrap();
    contains(&back, &["0 to add, 1 to change, 0 to withdraw", "version 3 of campus is in place"]);
    let intents = run(&bed, &["intents", "--json"]).unwrap();
    contains(&intents, &["\"priority\": 20000"]);
    let empty = run(&bed, &["rollback", "campus", "--wait"]).unwrap();
    contains(&empty, &["0 to add, 0 to change, 4 to withdraw", "version 4 of campus is in place"]);
    contains(&run(&bed, &["intents"]).unwrap(), &["no intents"]);
    let (_, why) = run(&bed, &["rollback", "campus"]).unwrap_err();
    contains(&why, &["there is no version before"]);
}

/// The hosts of the network, each by the last digits of its address.
fn hosts(bed: &Bed) -> Vec<String> {
    let list = run(bed, &["hosts"]).unwrap();
    let of = |line: &str| Some(line.split_once("00:00:00:00:00:")?.1.get(..2)?.to_owned());
    list.lines().filter_map(of).collect()
}

#[test]
fn an_apply_that_fails_in_the_middle_is_visible_and_goes_on_or_returns() {
    let bed = bed();
    let node = node(&bed);
    let _network = node.network("linear,2", &SwitchOptions::default());
    node.wait("the ports are known", |_| run(&bed, &["ports"]).is_ok_and(|ports| ports.contains("0002/1")));
    file(&bed, &["apply"], &format!("name = 'other'\n{RULES}")).unwrap();
    file(&bed, &["apply"], HOSTS).unwrap();
    let expect = |list: &[&str]| node.wait(&format!("the hosts are {list:?}"), |_| hosts(&bed) == list);
    expect(&["01", "02"]);
    // Its rule is that of the other file, so its second step fails. Its third one would remove host 2.
    let next = format!(
        "{}{RULES}",
        HOSTS.replace("00:00:00:00:00:02", "00:00:00:00:00:03").replace("10.0.0.2", "10.0.0.3")
    );
    let (_, why) = file(&bed, &["apply"], &next).unwrap_err();
    contains(&why, &["done so far: host 00:00:00:00:00:03; 2 of 3 steps are left", "burnet rollback campus"]);
    expect(&["01", "02", "03"]);
    let planned = file(&bed, &["plan"], HOSTS).unwrap();
    contains(&planned, &["version 2 was not completed", "returns to version 1", "- host 00:00:00:00:00:03"]);

    let back = run(&bed, &["rollback", "campus"]).unwrap();
    contains(&back, &["1 to withdraw", "version 3 of campus is applied"]);
    expect(&["01", "02"]);

    file(&bed, &["apply"], &next).unwrap_err();
    expect(&["01", "02", "03"]);
    // A third file removes what the interrupted one has added.
    let (only, _) = HOSTS.split_at(HOSTS.rfind("[[host]]").unwrap());
    contains(&file(&bed, &["plan"], only).unwrap(), &["2 to withdraw"]);
    run(&bed, &["rollback", "other"]).unwrap();
    let done = file(&bed, &["apply"], &next).unwrap();
    contains(&done, &["version 4 was not completed", "version 4 of campus is applied"]);
    expect(&["01", "03"]);
    let planned = file(&bed, &["plan"], &next).unwrap();
    contains(&planned, &["3 unchanged"]);
    assert!(!planned.contains("not completed"), "{planned}");
}

#[test]
fn versions_survive_a_restart_of_the_node() {
    let bed = bed();
    let first = node(&bed);
    let network = first.network("linear,2", &SwitchOptions::default());
    first.wait("the ports are known", |_| {
        run(&bed, &["ports"]).is_ok_and(|ports| ports.contains("of:0000000000000002/1"))
    });
    file(&bed, &["apply"], HOSTS).unwrap();
    drop(first);
    drop(network);
    let second = node(&bed);
    // A host is visible as soon as its port is.
    let _network = second.network("linear,2", &SwitchOptions::default());
    second.wait("the hosts are there again", |_| {
        run(&bed, &["hosts"]).is_ok_and(|hosts| hosts.contains("10.0.0.2"))
    });
    let back = run(&bed, &["rollback", "campus"]).unwrap();
    contains(&back, &["2 to withdraw", "version 2 of campus is applied"]);
}
