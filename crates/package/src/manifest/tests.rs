//! Manifests that are refused, by table and line; what is asked for, and what is asked for beyond.

use super::*;

const HEAD: &str =
    "name = 'my-app'\nversion = '1.0.0'\ndescription = 'It.'\nkind = 'native'\nabi = 2\nentry.any = 'main'\n";

fn manifest(tables: &str) -> Manifest {
    Manifest::parse(&format!("{HEAD}{tables}")).unwrap()
}

/// `expected` is what is said of the tables behind the head, lines counted from 1 there.
fn refused(tables: &str, expected: &str) {
    let mut fault = Manifest::parse(&format!("{HEAD}{tables}")).unwrap_err();
    fault.line -= HEAD.lines().count();
    assert_eq!(fault.to_string(), expected, "{tables}");
}

/// As above, for one capability.
fn refused_capability(line: &str, expected: &str) {
    refused(&format!("[capabilities]\n{line}"), &format!("line 2: {expected}"));
}

/// The head with one line in place of another.
fn refused_head(key: &str, value: &str, expected: &str) {
    let line = |line: &str| {
        if line.starts_with(key) { format!("{key} = {value}\n") } else { format!("{line}\n") }
    };
    let text: String = HEAD.lines().map(line).collect();
    let fault = Manifest::parse(&text).unwrap_err().to_string();
    assert!(fault.contains(expected), "{key} = {value}: {fault}");
}

#[test]
fn a_head_that_cannot_be_is_refused() {
    refused_head("name", "''", "\"\" cannot be an app's name");
    refused_head("name", "'..'", "a letter or digit first");
    refused_head("name", "'-rf'", "a letter or digit first");
    refused_head("name", "'a/b'", "\"a/b\" cannot be");
    refused_head("name", "\"a\\u001b[31m\"", "\\u{1b}");
    refused_head("version", "'1.0'", "\"1.0\" is no version");
    refused_head("version", "1.0", "line 2");
    refused_head("description", "\"a\\nb\"", "line 3: write one line");
    refused_head("kind", "'wasm'", "there is no WebAssembly zone yet");
    refused_head("kind", "'java'", "write \"native\", \"python\" or \"shared-object\"");
    refused_head("abi", "0", "0 is not a version of the app boundary");
    refused_head("abi", "-1", "-1 is not a version of the app boundary");
    refused_head("entry.any", "'../../bin/sh'", "leaves the package");
    refused_head("entry", "{}", "an app needs a program");
    refused_head("entry", "{ sparc = 'main' }", "sparc");
    let without = HEAD.replace("name = 'my-app'\n", "");
    assert!(Manifest::parse(&without).unwrap_err().to_string().contains("missing field `name`"));
    let long = format!("{HEAD}#{}", "x".repeat(MANIFEST_BYTES_MAX));
    assert!(Manifest::parse(&long).unwrap_err().to_string().contains("more than the limit of 65536"));
}

#[test]
fn what_services_alone_hold_cannot_be_asked_for() {
    for (name, value) in [("audit", "true"), ("resource", "{}"), ("security", "false")] {
        let said = "only services of the node have this capability: leave it out";
        refused_capability(&format!("'system.{name}' = {value}"), said);
    }
    refused_capability("'system.audits' = true", "unknown key `system.audits`: did you mean `system.audit`?");
}

#[test]
fn an_unknown_key_is_refused_with_its_neighbour() {
    refused("[capabilites]", "line 1: unknown key `capabilites`: did you mean `capabilities`?");
    refused_capability("'packet.ins' = true", "unknown key `packet.ins`: did you mean `packet.in`?");
    refused_capability(
        "packet.in = true",
        "`packet` alone is no key: put quotes around the whole name, as in \"packet.in\"",
    );
    refused_capability("'packet.in' = { matches = ['arp'] }", "unknown key `matches`: did you mean `match`?");
    refused(
        "[limits]\nmemory = 1",
        "line 2: unknown key `memory`: the keys here are cpu_percent, memory_bytes, open_files, threads, file_bytes",
    );
    refused(
        "[system]\n'net.bind' = ['x:1']",
        "line 2: unknown key `net.bind`: the keys here are net.connect, net.listen, fs.read, fs.write, spawn",
    );
}

#[test]
fn a_bound_that_bounds_nothing_or_all_is_refused() {
    refused_capability("'packet.in' = false", NOT_FALSE);
    refused_capability("'stats.read' = false", NOT_FALSE);
    refused_capability("'query' = false", NOT_FALSE);
    refused_capability("'query' = []", "the list is empty and would grant nothing: leave the key out");
    refused_capability(
        "'query' = ['']",
        "\"\" is not a valid name: write 1 to 128 bytes without control characters",
    );
    refused_capability(
        "'packet.in' = { match = [''] }",
        "a match without fields has no effect: leave `match` out",
    );
    refused_capability(
        "'packet.in' = { match = ['arp,ip'] }",
        "\"arp,ip\" is not a match: 'ip' at offset 4: eth_type is given twice, with two values",
    );
    refused_capability(
        "'packet.in' = { match = ['eth_type=0x0806,ip_dts=10.0.0.1'] }",
        "\"eth_type=0x0806,ip_dts=10.0.0.1\" is not a match: 'ip_dts=10.0.0.1' at offset 16: expected a field (in_port, dl_src, nw_dst, tp_src, eth_dst …) or a shorthand (ip, arp, tcp …)",
    );
    refused_capability(
        "'packet.in' = { match = ['ip,arp_op=1'] }",
        "\"ip,arp_op=1\" matches no packet: its fields contradict each other",
    );
    refused_capability(
        "'packet.out' = { ports = [0] }",
        "0 is no port that a packet can be sent to: write a number from 1, or a name such as \"FLOOD\"",
    );
    refused_capability(
        "'packet.out' = { ports = ['ANY'] }",
        "\"ANY\" is no port that a packet can be sent to: write a number from 1, or a name such as \"FLOOD\"",
    );
    refused_capability(
        "'packet.out' = { ports = [-1] }",
        "-1 is no port that a packet can be sent to: write a number from 1, or a name such as \"FLOOD\"",
    );
    refused_capability("'rule.write' = { tables = [255] }", "255 is not a table: write 0 to 254");
    refused_capability(
        "'rule.write' = { priority = [200, 100] }",
        "[200, 100] is not a range of priorities: write [LOWEST, HIGHEST], 0 to 65535",
    );
    refused_capability(
        "'rule.write' = { priority = [0, 65536] }",
        "[0, 65536] is not a range of priorities: write [LOWEST, HIGHEST], 0 to 65535",
    );
    refused_capability(
        "'rule.write' = { datapaths = ['s1'] }",
        "'s1' is not a datapath id: write it as 1, 0x1, 00:00:00:00:00:00:00:01, of:0000000000000001 or 16 hexadecimal digits",
    );
    let many = vec!["'arp'"; bounds::MATCHES_MAX + 1].join(",");
    refused_capability(
        &format!("'packet.in' = {{ match = [{many}] }}"),
        "65 entries are more than the limit of 64",
    );
}

#[test]
fn amounts_that_make_no_sense_are_refused() {
    let forms = "write a number from 1, or { soft = NUMBER, hard = NUMBER }";
    refused("[quotas]\ncommands_per_s = -1", &format!("line 2: {forms}"));
    refused("[quotas]\ncommands_per_s = { soft = 1 }", &format!("line 2: {forms}"));
    refused("[quotas]\ncommands_per_s = { hard = 1, hrd = 2 }", &format!("line 2: {forms}"));
    refused("[quotas]\ncommands_per_s = 0", "line 2: a hard limit of 0 refuses everything: write 1 or more");
    refused(
        "[quotas]\ncommands_per_s = { soft = 3, hard = 2 }",
        "line 2: the soft limit 3 is above the hard limit 2: the warning would come too late",
    );
    let little = "line 2: an app cannot start with 10 bytes of memory: write 4194304 (4 MiB) or more";
    refused("[limits]\nmemory_bytes = 10", little);
    refused("[limits]\nmemory_bytes = { soft = 5, hard = 10 }", little);
    refused("[limits]\nopen_files = 3", "line 2: an app cannot start with 3 descriptors: write 16 or more");
}

#[test]
fn what_is_asked_of_the_machine_is_plain() {
    let place = "is no place to connect to: write ADDRESS:PORT, for example \"10.0.0.5:5432\"";
    for text in
        ["10.0.0.5", "10.0.0.5:0", "10.0.0.5:65536", ":80", "a b:80", "::1:80", "[x]:80", "db.example:80"]
    {
        refused(&format!("[system]\n'net.connect' = ['{text}']"), &format!("line 2: \"{text}\" {place}"));
    }
    refused(
        "[system]\n'net.listen' = ['localhost:8181']",
        "line 2: \"localhost:8181\" is no address to listen on: write ADDRESS:PORT with a port from 1, for example \
         \"127.0.0.1:8181\" or \"[::1]:8181\", or \"unix:NAME\"",
    );
    let path = "is no path to grant: write an absolute one without .., for example \"/etc/hosts\"";
    for text in ["", "etc/hosts", "/etc/../root"] {
        refused(&format!("[system]\n'fs.read' = ['{text}']"), &format!("line 2: \"{text}\" {path}"));
    }
    let danger =
        |text: &str| manifest(&format!("[system]\n'net.listen' = [{text}]")).asks()[0].danger.clone();
    assert_eq!(danger("'127.0.0.1:8181', 'unix:web'"), None);
    assert_eq!(danger("'127.0.0.1:8181', '0.0.0.0:8182'").as_deref(), Some("other machines can reach it"));
    let asked = manifest(
        "[system]\n'net.connect' = ['[::1]:80']\n'net.listen' = ['[::1]:81']\n'fs.read' = ['/etc//hosts/']\nspawn = true",
    );
    let words: Vec<String> = asked.asks().into_iter().map(|ask| ask.words).collect();
    assert_eq!(
        words,
        [
            "connect to [::1]:80",
            "accept connections on [::1]:81",
            "read on this machine /etc/hosts",
            "start other programs"
        ]
    );
}

#[test]
fn nothing_is_asked_for_that_was_not_written() {
    assert_eq!(manifest("").asks(), []);
    assert_eq!(manifest("").capabilities, Capabilities::default());
}

#[test]
fn what_is_asked_for_is_said_in_plain_words() {
    let asked = manifest(
        "[capabilities]\n'packet.in' = true\n'packet.out' = { ports = [2, 'FLOOD', 1] }\n\
         'rule.write' = { match = ['ip,nw_dst=10.0.0.0/24', 'arp'], tables = [0], priority = [100, 200], datapaths = ['1'], rules_per_datapath = 1000 }\n\
         'store.write' = ['my-app/']\n'query' = ['paths']\n'publish' = true\n\
         [limits]\nmemory_bytes = { soft = 50000000, hard = 64000000 }\nthreads = 8\n",
    );
    let words: Vec<String> = asked.asks().iter().map(|ask| format!("{}: {}", ask.name, ask.words)).collect();
    assert_eq!(
        words,
        [
            "packet.in: receive the packet-ins of switches",
            "packet.out: send packets of its own, to ports 1, 2, FLOOD",
            "rule.write: write rules into switches for packets of ip,nw_dst=10.0.0.0/24 or arp, in tables 0, \
             with priorities 100 to 200, of switches of:0000000000000001, at most 1000 in a switch",
            "store.write: write the keys of the store that begin with my-app/",
            "query: ask the services paths",
            "publish: publish on every topic",
            "limits.memory_bytes: have up to 64000000 bytes of memory, and you are told at 50000000",
            "limits.threads: have up to 8 threads and processes",
        ]
    );
}

/// What the second asks for beyond the first, by name.
fn beyond(before: &str, now: &str, expected: &[&str]) {
    let asks = manifest(now).asks_beyond(&manifest(before));
    let names: Vec<&str> = asks.iter().map(|ask| ask.name.as_str()).collect();
    assert_eq!(names, expected, "{before} then {now}");
}

#[test]
fn what_is_wider_than_before_is_found() {
    let rule = |bounds: &str| format!("[capabilities]\n'rule.write' = {{ {bounds} }}");
    let capability = |line: &str| format!("[capabilities]\n{line}");
    beyond("", &capability("'stats.read' = true"), &["stats.read"]);
    beyond(&rule("tables = [0]"), &rule("tables = [0, 1]"), &["rule.write"]);
    beyond(&rule("tables = [0]"), &capability("'rule.write' = true"), &["rule.write"]);
    beyond(&rule("priority = [100, 200]"), &rule("priority = [99, 200]"), &["rule.write"]);
    beyond(
        &rule("match = ['ip,nw_dst=10.0.0.0/8']"),
        &rule("match = ['ip,nw_dst=10.0.0.0/7']"),
        &["rule.write"],
    );
    beyond(&rule("ports = [1]"), &rule("ports = [2]"), &["rule.write"]);
    beyond(&rule("datapaths = ['1']"), &rule("datapaths = ['2']"), &["rule.write"]);
    let at = |rest: &str| rule(&format!("ports = [1], switches = {{ {rest} }}"));
    beyond(&at("'1' = { ports = [2] }"), &at("'1' = { ports = [2, 3] }"), &["rule.write"]);
    beyond(&at("'1' = { ports = [2] }"), &at("'1' = { match = ['ip'] }"), &["rule.write"]);
    beyond(&at("'1' = { ports = [2] }"), &at("'2' = { ports = [2] }"), &["rule.write"]);
    beyond(&at("'1' = { ports = [2] }"), &at("'1' = { own_ports = [2] }"), &["rule.write"]);
    beyond(
        &at("'1' = { match = ['ip'] }"),
        &at("'1' = { match = ['ip'], own_ports = [1] }"),
        &["rule.write"],
    );
    beyond(&rule("own_ports = [1]"), &rule("ports = [1], own_ports = [1, 2]"), &[]);
    beyond(
        &rule("match = ['ip'], own_ports = [1]"),
        &rule("match = ['ip'], own_ports = [1, 2]"),
        &["rule.write"],
    );
    beyond(&at("'1' = { ports = [2] }"), &rule("ports = [1]"), &["rule.write"]);
    beyond(&at("'1' = { ports = [2] }"), &rule("ports = [1], datapaths = ['1']"), &["rule.write"]);
    beyond(&rule("rules_per_datapath = 10"), &rule("rules_per_datapath = 11"), &["rule.write"]);
    beyond(&capability("'query' = ['a']"), &capability("'query' = ['b']"), &["query"]);
    beyond(&capability("'query' = ['a']"), &capability("'query' = true"), &["query"]);
    beyond(&capability("'store.read' = ['a/']"), &capability("'store.read' = ['a']"), &["store.read"]);
    beyond("[system]\n'fs.read' = ['/a/b']", "[system]\n'fs.read' = ['/a']", &["fs.read"]);
    beyond("[system]\n'fs.read' = ['/a/b']", "[system]\n'fs.read' = ['/a/bc']", &["fs.read"]);
    beyond(
        "[system]\n'net.connect' = ['10.0.0.1:1']",
        "[system]\n'net.connect' = ['10.0.0.1:2']",
        &["net.connect"],
    );
    beyond(
        "[system]\n'net.listen' = ['127.0.0.1:8181']",
        "[system]\n'net.listen' = ['127.0.0.1:8182']",
        &["net.listen"],
    );
    beyond("[limits]\nthreads = 1", "[limits]\nthreads = 2", &["limits.threads"]);
    beyond("", "[quotas]\nstore_bytes = 1", &["quotas.store_bytes"]);
    // The node's own limit may be wider than the one that is left out.
    beyond("[quotas]\ncommands_per_s = 10", "", &["quotas.commands_per_s"]);
    beyond(
        "[limits]\nmemory_bytes = 64000000",
        "[limits]\nthreads = 1",
        &["limits.memory_bytes", "limits.threads"],
    );
}

#[test]
fn bounds_of_single_switches_are_said_with_their_switch() {
    let asked = manifest(
        "[capabilities]\n'packet.out' = { ports = [1], datapaths = ['2'], switches = { '1' = { match = ['arp'], ports = [7], own_ports = [8] } } }",
    );
    assert_eq!(
        asked.asks()[0].words,
        "send packets of its own, to ports 1, of switches of:0000000000000001, of:0000000000000002, \
         at of:0000000000000001: packets of arp and ports 7 and its own ports 8"
    );
}

#[test]
fn bounds_of_single_switches_are_refused_where_they_would_mean_nothing() {
    let fault = |capability: &str, switches: &str| {
        let text = format!("{HEAD}[capabilities]\n'{capability}' = {{ switches = {switches} }}");
        Manifest::parse(&text).unwrap_err().to_string()
    };
    let check = |capability: &str, switches: &str, expected: &str| {
        let said = fault(capability, switches);
        assert!(said.contains(expected), "{said}");
    };
    check("rule.write", "{}", "the table is empty");
    check("rule.write", "{ '1' = {}, '0x1' = {} }", "there twice");
    check("rule.write", "{ 'x' = {} }", "is not a datapath id");
    check("rule.write", "{ '1' = { tables = [0] } }", "unknown key `tables`");
    check("packet.in", "{ '1' = { ports = [1] } }", "packet.in has only `match` and `own_ports`");
    check("rule.write", "{ '1' = { own_ports = ['FLOOD'] } }", "FLOOD cannot be an app's own port");
    check("port.write", "{ '1' = { match = ['ip'] } }", "port.write has only those");
    check("port.write", "{ '1' = { own_ports = [1] } }", "port.write has only those");
}

#[test]
fn what_is_as_wide_or_narrower_is_not() {
    let rule = |bounds: &str| format!("[capabilities]\n'rule.write' = {{ {bounds} }}");
    let capability = |line: &str| format!("[capabilities]\n{line}");
    beyond(&capability("'stats.read' = true"), "", &[]);
    beyond(&capability("'rule.write' = true"), &rule("tables = [0]"), &[]);
    beyond(
        &rule("match = ['ip,nw_dst=10.0.0.0/8']"),
        &rule("match = ['tcp,nw_dst=10.1.0.0/16', 'ip,nw_dst=10.2.0.0/16']"),
        &[],
    );
    beyond(
        &rule("match = ['ip,nw_dst=10.0.0.0/9', 'ip,nw_dst=10.128.0.0/9']"),
        &rule("match = ['ip,nw_dst=10.0.0.0/8']"),
        &[],
    );
    let at = |rest: &str| rule(&format!("ports = [1], switches = {{ {rest} }}"));
    beyond(&rule("ports = [1, 2]"), &at("'1' = { ports = [2] }, '2' = { match = ['ip'] }"), &[]);
    beyond(&at("'1' = { ports = [2, 3] }, '2' = {}"), &at("'1' = { ports = [3] }"), &[]);
    beyond(&at("'1' = { ports = [1] }"), &rule("ports = [1], datapaths = ['1']"), &[]);
    beyond(&at("'1' = { own_ports = [7, 8] }"), &at("'1' = { ports = [1, 8], own_ports = [7] }"), &[]);
    beyond(&capability("'store.read' = ['a/']"), &capability("'store.read' = ['a/b/', 'a/c']"), &[]);
    beyond("[system]\n'fs.read' = ['/a']", "[system]\n'fs.read' = ['/a/b']", &[]);
    beyond("[limits]\nthreads = 2", "[limits]\nthreads = { soft = 1, hard = 2 }", &[]);
}

#[test]
fn what_was_written_prints_as_json_that_reads_the_same() {
    let asked = manifest(
        "[capabilities]\n'packet.in' = { match = ['arp'], datapaths = ['1'] }\n'packet.out' = { ports = [1, 'FLOOD'] }\n\
         'rule.write' = { match = ['ip'], tables = [0], priority = [1, 2], ports = [3], rules_per_datapath = 4, \
         switches = { '1' = { match = ['arp'], ports = [1, 'FLOOD'], own_ports = [2] }, '2' = {} }, own_ports = [3] }\n\
         'rule.read' = true\n'port.write' = { switches = { '1' = { ports = [2] } } }\n'store.read' = true\n'store.write' = ['a']\n'query' = ['b']\n\
         [system]\n'net.connect' = ['10.0.0.1:1']\n'fs.write' = ['/a']\nspawn = true\n[limits]\nthreads = 1\n\
         [quotas]\nstore_bytes = { soft = 1, hard = 2 }",
    );
    fn check<T: Serialize + serde::de::DeserializeOwned + PartialEq + fmt::Debug>(one: &T) {
        let json = serde_json::to_string(one).unwrap();
        assert_eq!(serde_json::from_str::<T>(&json).unwrap(), *one, "{json}");
    }
    check(&asked.capabilities);
    check(&asked.system);
    check(&asked.limits);
    check(&asked.quotas);
}

#[test]
fn only_what_is_kept_is_left() {
    let asked = manifest("[capabilities]\n'packet.in' = { match = ['arp'] }\n'stats.read' = true");
    let kept = asked.capabilities.only(|name| name == "packet.in");
    assert_eq!(kept, Capabilities { stats_read: None, ..asked.capabilities.clone() });
    assert_eq!(asked.capabilities.only(|_| false), Capabilities::default());
}

#[test]
fn a_machine_gets_its_own_program_or_the_one_for_all() {
    let asked = manifest("");
    assert_eq!(asked.entry_for("riscv64").map(PackagePath::as_str), Some("main"));
    let text = HEAD.replace("entry.any = 'main'", "entry = { x86_64 = 'a', aarch64 = 'b' }");
    let both = Manifest::parse(&text).unwrap();
    assert_eq!(both.entry_for("x86_64").map(PackagePath::as_str), Some("a"));
    assert_eq!(both.entry_for("aarch64").map(PackagePath::as_str), Some("b"));
    assert_eq!(both.entry_for("riscv64"), None);
}

/// A manifest of the service `hello`, with these lines of `[service]`.
fn hello(lines: &str) -> Result<Manifest, Fault> {
    Manifest::parse(&format!("{}[service]\n{lines}", HEAD.replace("my-app", "hello")))
}

#[test]
fn a_service_declares_only_names_of_its_own() {
    let refused = |lines: &str, part: &str| {
        let fault = hello(lines).unwrap_err().to_string();
        assert!(fault.contains(part), "{lines}: {fault}");
    };
    let permits = "permits = 'be greeted'";
    for name in ["hallo.greet", "packet.in", "greet", "hello.", "hello.gr eet", "system.hello"] {
        refused(&format!("capabilities.'{name}' = {{ {permits} }}"), "cannot declare");
        refused(&format!("quotas.'{name}' = {{ counts = 'greetings' }}"), "cannot declare");
    }
    refused("capabilities.'hello.greet' = {}", "missing field `permits`");
    refused("capabilities.'hello.greet' = { permits = '' }", "write one line");
    refused(&format!("capabilities.'hello.greet' = {{ {permits}, takes = 'numbers' }}"), "unknown variant");
    refused("capabilites = {}", "did you mean `capabilities`?");
    let many: String =
        (0..=services::DECLARED_MAX).map(|i| format!("quotas.'hello.q{i}' = {{ counts = 'x' }}\n")).collect();
    refused(&many, "at most 32");
    let node = HEAD.replace("my-app", "store");
    let store = Manifest::parse(&format!("{node}[service]\ncapabilities.'store.read' = {{ {permits} }}"));
    assert!(store.unwrap_err().to_string().contains("cannot declare"));
}

/// The declarations of the service `hello`.
fn declared() -> Vec<contract::Service> {
    let lines = "capabilities.'hello.greet' = { takes = 'prefixes', permits = 'have all greeted', permits_only = 'have greeted', \
                 danger = 'it is loud' }\ncapabilities.'hello.stop' = { permits = 'stop greetings' }\n\
                 quotas.'hello.greetings' = { counts = 'greetings', default = 3 }";
    vec![hello(lines).unwrap().declared().unwrap().unwrap()]
}

#[test]
fn a_capability_of_a_service_that_is_not_there_is_refused_with_what_to_do() {
    let check = |line: &str, services: &[contract::Service], expected: &str| {
        assert_eq!(manifest(line).resolve(services).unwrap_err(), expected, "{line}");
    };
    let greets = "[capabilities]\n'hello.greet' = true";
    check(greets, &[], "`hello.greet` needs the service hello, which is not installed: install it first");
    let mut typo = manifest("[capabilities]\n'hello.gret' = true");
    let said = "no service declares `hello.gret`: did you mean `hello.greet`?";
    assert_eq!(typo.resolve(&declared()).unwrap_err(), said);
    check(
        "[capabilities]\n'hello.shutdown' = true",
        &declared(),
        "the service hello does not declare `hello.shutdown`",
    );
    check("[capabilities]\n'hello.stop' = ['x']", &declared(), "hello.stop takes no list: write true");
    check("[quotas]\n'hello.greet' = 1", &declared(), "the service hello does not declare `hello.greet`");
    refused_capability("'stor.read' = ['a']", "unknown key `stor.read`: did you mean `store.read`?");
    refused_capability("'hello.greet' = false", NOT_FALSE);
    refused_capability(
        "'store.read' = { match = ['a'] }",
        "invalid type: map, expected true, or a list of names",
    );
}

#[test]
fn a_service_says_what_its_capabilities_permit() {
    let mut asked = manifest(
        "[capabilities]\n'hello.greet' = ['a', 'b']\n'hello.stop' = true\n[quotas]\n'hello.greetings' = 2\nstore_bytes = 5",
    );
    let unresolved: Vec<String> = asked.asks().into_iter().map(|ask| ask.words).collect();
    assert_eq!(unresolved[0], "use what the service hello calls hello.greet for a, b");
    asked.resolve(&declared()).unwrap();
    let words: Vec<String> = asked.asks().iter().map(|ask| format!("{}: {}", ask.name, ask.words)).collect();
    assert_eq!(
        words,
        [
            "hello.greet: have greeted a, b",
            "hello.stop: stop greetings",
            "quotas.hello.greetings: have up to 2 greetings",
            "quotas.store_bytes: have up to 5 bytes in the store",
        ]
    );
    assert_eq!(asked.asks()[0].danger.as_deref(), Some("it is loud"));
    let beyond = |before: &str, expected: &[&str]| {
        let more = asked.asks_beyond(&manifest(before));
        let names: Vec<&str> = more.iter().map(|ask| ask.name.as_str()).collect();
        assert_eq!(names, expected, "{before}");
    };
    let rest = "'hello.stop' = true\n[quotas]\n'hello.greetings' = 2\nstore_bytes = 5";
    beyond(&format!("[capabilities]\n'hello.greet' = ['']\n{rest}").replace("['']", "true"), &[]);
    beyond(&format!("[capabilities]\n'hello.greet' = ['a']\n{rest}"), &["hello.greet"]);
    let kept = asked.capabilities.only(|name| name == "hello.stop");
    assert_eq!(kept.services.keys().collect::<Vec<_>>(), ["hello.stop"]);
    let parts = super::parts(&asked.capabilities, &asked.quotas.services);
    // A quota alone gives no part.
    assert_eq!(parts.keys().collect::<Vec<_>>(), ["hello"]);
    assert_eq!((parts["hello"].hard("hello.greetings"), parts["hello"].capabilities.len()), (Some(2), 2));
}
