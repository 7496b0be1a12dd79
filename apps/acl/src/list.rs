//! The access list: an ordered list of entries, of which the first that matches a packet decides.
//!
//! ```text
//!   "permit tcp,nw_dst=10.0.0.5,tp_dst=443", "deny ip,nw_dst=10.0.0.0/24" ──> matches to drop, or rules in order
//! ```
//!
//! In: lines of the settings. Out: rules for a switch, or a sentence that says which line is wrong. It sends nothing.
//!
//! A permitted packet goes on to the rules of other apps. A switch does that only from one table to the next. Without a next
//! table, the list has only rules that drop, and what a line permits is cut out of the lines behind it. An address can be cut
//! out as prefixes. A field that has no masks, such as a protocol, cannot.

use burnet_sdk::flow::relation::overlaps;
use burnet_sdk::flow::text::parse_match;
use burnet_sdk::flow::{Match, MatchEntry};

/// The most rules in one switch. With more the app refuses to start: flow tables are small.
pub const RULES_MAX: usize = 1_000;

/// The priority of the first rule. Each further one has the next lower.
pub const HIGHEST_PRIORITY: u16 = 52_000;

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Other apps decide.
    Permit,
    /// It is dropped.
    Deny,
}

/// An entry of the list.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// What it decides.
    pub verdict: Verdict,
    /// For which packets.
    pub matching: Match,
}

/// A rule for a switch. Earlier rules come first.
pub type Rule = Entry;

/// Reads a line: `permit` or `deny`, and a match in the syntax of `ovs-ofctl`, or `any`.
///
/// # Errors
/// A sentence with the line.
pub fn read(line: &str) -> Result<Entry, String> {
    let (word, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
    let verdict = match word {
        "permit" => Verdict::Permit,
        "deny" => Verdict::Deny,
        _ => return Err(format!("`{line}` in its setting `rules` begins with neither permit nor deny")),
    };
    let matching = match rest.trim() {
        "any" => Match::any(),
        "" => return Err(format!("`{line}` in its setting `rules` has no match: write any for all packets")),
        text => parse_match(text)
            .map_err(|bad| format!("`{line}` in its setting `rules` has no valid match: {bad}"))?,
    };
    Ok(Entry { verdict, matching })
}

/// The rules for switches in which permitted packets go on to the next table: the entries, and the default behind them.
///
/// # Errors
/// There are too many.
pub fn for_two_tables(entries: &[Entry], default: Verdict) -> Result<Vec<Rule>, String> {
    let last = Entry { verdict: default, matching: Match::any() };
    let rules: Vec<Rule> = entries.iter().cloned().chain([last]).collect();
    check_count(rules.len()).map(|()| rules)
}

/// The rules for switches without a next table: what is to be dropped.
///
/// # Errors
/// What a line permits cannot be cut out of a line behind it, or there are too many rules.
pub fn for_one_table(entries: &[Entry], default: Verdict) -> Result<Vec<Rule>, String> {
    let last = Entry { verdict: Verdict::Deny, matching: Match::any() };
    let all = entries.iter().chain((default == Verdict::Deny).then_some(&last));
    let (mut permitted, mut rules): (Vec<(usize, &Match)>, Vec<Rule>) = Default::default();
    for (number, entry) in all.enumerate() {
        if entry.verdict == Verdict::Permit {
            permitted.push((number, &entry.matching));
            continue;
        }
        let mut pieces = vec![entry.matching.clone()];
        for (permit, exception) in &permitted {
            pieces = cut_all(&pieces, exception).map_err(|Uncuttable| {
                format!(
                    "line {} of its setting `rules` permits a part of what line {} denies, and a switch with one table cannot make \
                     this exception: set next_table",
                    permit + 1,
                    number + 1
                )
            })?;
            check_count(rules.len() + pieces.len())?;
        }
        rules.extend(pieces.into_iter().map(|matching| Rule { verdict: Verdict::Deny, matching }));
    }
    check_count(rules.len()).map(|()| rules)
}

fn check_count(count: usize) -> Result<(), String> {
    match count <= RULES_MAX {
        true => Ok(()),
        false => {
            Err(format!("its setting `rules` needs {count} rules in each switch; at most {RULES_MAX} can be"))
        }
    }
}

/// A field of the exception has no masks.
#[derive(Debug)]
struct Uncuttable;

fn cut_all(pieces: &[Match], exception: &Match) -> Result<Vec<Match>, Uncuttable> {
    let mut left = Vec::new();
    for piece in pieces {
        if overlaps(piece, exception) {
            cut(piece, exception, &mut left)?;
        } else {
            left.push(piece.clone());
        }
    }
    Ok(left)
}

/// A match without the packets of another: for each bit that only the other fixes, the packets with the opposite bit.
fn cut(whole: &Match, exception: &Match, left: &mut Vec<Match>) -> Result<(), Uncuttable> {
    let mut within = whole.clone();
    for entry in exception.entries() {
        let MatchEntry::Field { field, value, mask } = entry else { return Err(Uncuttable) };
        let wanted = mask.unwrap_or(field.full_mask());
        let (mut fixed_value, mut fixed) = within.get(*field).unwrap_or_default();
        let open = wanted & !fixed;
        if open != 0 && !field.maskable() {
            return Err(Uncuttable);
        }
        for bit in (0..field.bits()).rev().map(|place| 1_u128 << place).filter(|bit| open & bit != 0) {
            let mut opposite = within.clone();
            opposite.set_masked(*field, fixed_value | (!value & bit), fixed | bit);
            left.push(opposite);
            (fixed_value, fixed) = (fixed_value | (value & bit), fixed | bit);
            within.set_masked(*field, fixed_value, fixed);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use burnet_sdk::flow::frame::FrameFields;
    use burnet_sdk::flow::text::match_to_string;
    use proptest::prelude::*;

    fn entries(lines: &[&str]) -> Vec<Entry> {
        lines.iter().map(|line| read(line).unwrap()).collect()
    }

    #[test]
    fn a_wrong_line_is_refused_with_its_text() {
        let check = |line: &str, part: &str| assert!(read(line).unwrap_err().contains(part), "{line}");
        check("", "neither permit nor deny");
        check("drop ip", "`drop ip` in its setting `rules` begins with neither");
        check("deny", "has no match: write any");
        check("deny ip,nw_src=10.0.0.300", "has no valid match");
        assert_eq!(read("deny any").unwrap().matching, Match::any());
    }

    #[test]
    fn what_a_line_permits_is_cut_out_of_those_behind_it() {
        let rules = for_one_table(
            &entries(&["permit ip,nw_src=10.0.0.5", "deny ip,nw_src=10.0.0.4/30"]),
            Verdict::Permit,
        );
        let text: Vec<_> = rules.unwrap().iter().map(|rule| match_to_string(&rule.matching)).collect();
        assert_eq!(text, ["ip,nw_src=10.0.0.6/31", "ip,nw_src=10.0.0.4"]);
        let apart =
            for_one_table(&entries(&["permit tcp", "deny udp", "deny arp"]), Verdict::Permit).unwrap();
        assert_eq!(apart.len(), 2, "they have no packet in common");
        let covered = for_one_table(&entries(&["permit ip", "deny tcp"]), Verdict::Permit).unwrap();
        assert!(covered.is_empty(), "nothing is left to deny");
    }

    #[test]
    fn an_exception_that_one_table_cannot_make_is_refused_with_both_lines() {
        let check = |lines: &[&str], default, part: &str| {
            let why = for_one_table(&entries(lines), default).unwrap_err();
            assert!(why.contains(part), "{why}");
        };
        check(
            &["deny arp", "permit tcp", "deny ip"],
            Verdict::Permit,
            "line 2 of its setting `rules` permits a part of what line 3",
        );
        check(&["permit ip"], Verdict::Deny, "line 1 of its setting `rules` permits a part of what line 2");
        let many = vec!["deny arp"; RULES_MAX + 1];
        check(&many, Verdict::Permit, "at most 1000 can be");
        assert!(for_two_tables(&entries(&many), Verdict::Permit).is_err());
        assert_eq!(for_one_table(&[], Verdict::Deny).unwrap().len(), 1);
    }

    /// What the list says of a packet: the first entry that matches it.
    fn first(list: &[Entry], default: Verdict, packet: &FrameFields) -> Verdict {
        list.iter().find(|entry| entry.matching.matches(packet)).map_or(default, |entry| entry.verdict)
    }

    fn line() -> impl Strategy<Value = String> {
        let verdict = prop::sample::select(vec!["permit", "deny"]);
        let source = (0..4_u8, 24..=32_u8).prop_map(|(last, bits)| format!(",nw_src=10.0.0.{last}/{bits}"));
        let target = (0..4_u8, 28..=32_u8).prop_map(|(last, bits)| format!(",nw_dst=10.0.0.{last}/{bits}"));
        let part = |part: BoxedStrategy<String>| prop_oneof![Just(String::new()), part];
        let protocol =
            prop::sample::select(vec!["ip", "tcp", "tcp,tp_dst=80", "udp", "arp", "tcp6,tp_dst=80"]);
        (verdict, protocol, part(source.boxed()), part(target.boxed())).prop_map(
            |(verdict, protocol, source, target)| match protocol {
                "arp" | "tcp6,tp_dst=80" => format!("{verdict} {protocol}"),
                _ => format!("{verdict} {protocol}{source}{target}"),
            },
        )
    }

    fn packet() -> impl Strategy<Value = FrameFields> {
        let kind = prop::sample::select(vec![(0x0800_u16, 6_u8), (0x0800, 17), (0x0806, 0), (0x86dd, 6)]);
        (kind, 0..6_u8, 0..6_u8, prop::sample::select(vec![80_u16, 443])).prop_map(
            |((kind, protocol), from, to, port)| {
                let mut frame = vec![0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1];
                frame.extend(kind.to_be_bytes());
                if kind == 0x0800 {
                    frame.extend([
                        0x45, 0, 0, 28, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, from, 10, 0, 0, to,
                    ]);
                } else if kind == 0x86dd {
                    frame.extend([0x60, 0, 0, 0, 0, 8, protocol, 64]);
                    frame.extend([0; 32]);
                } else {
                    frame.extend([0, 1, 8, 0, 6, 4, 0, 1]);
                }
                frame.extend([0, 7]);
                frame.extend(port.to_be_bytes());
                frame.extend([0; 20]);
                FrameFields::read(&frame)
            },
        )
    }

    proptest! {
        /// Both forms decide on each packet as the list does, read from the top.
        #[test]
        fn the_rules_decide_as_the_list(lines in proptest::collection::vec(line(), 0..8), packets in proptest::collection::vec(packet(), 1..40), denies: bool) {
            let list: Vec<Entry> = lines.iter().map(|line| read(line).unwrap()).collect();
            let default = if denies { Verdict::Deny } else { Verdict::Permit };
            let two = for_two_tables(&list, default).unwrap();
            let one = for_one_table(&list, default);
            for packet in &packets {
                let expected = first(&list, default, packet);
                prop_assert_eq!(first(&two, Verdict::Permit, packet), expected);
                if let Ok(one) = &one {
                    prop_assert_eq!(first(one, Verdict::Permit, packet), expected, "{:?}", lines);
                }
            }
        }
    }
}
