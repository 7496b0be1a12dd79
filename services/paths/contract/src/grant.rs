//! The grant of a caller of `paths`.
//!
//! In: the bytes that the kernel hands to the service. Out: whether a question is within the grant.

use crate::declaration::{READ, SLICE_LINKS, WRITE};
use crate::question::Question;
use contract::{Part, Permitted};
use flow::{Match, relation, text};
use view::Wanted;

/// The packets and priorities within which an app may have intents. Text: a match in the syntax of ovs-ofctl. The words
/// `priority=FROM-TO` bound the priority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The packets.
    pub packets: Match,
    /// The lowest and the highest priority.
    pub priority: (u16, u16),
}

impl Region {
    /// Reads the text.
    ///
    /// # Errors
    /// A sentence about the wrong part.
    pub fn parse(region: &str) -> Result<Region, String> {
        let (mut priority, mut fields) = ((0, u16::MAX), Vec::new());
        for word in region.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word.strip_prefix("priority=") {
                None => fields.push(word),
                Some(bounds) => {
                    let (low, high) = bounds.split_once('-').unwrap_or((bounds, bounds));
                    let number = |text: &str| {
                        text.parse::<u16>().map_err(|_| format!("{text:?} is no priority: write 0 to 65535"))
                    };
                    priority = (number(low)?, number(high)?);
                }
            }
        }
        let packets = text::parse_match(&fields.join(",")).map_err(|why| why.to_string())?;
        Ok(Region { packets, priority })
    }

    /// Whether an intent with this selector and priority is within the region.
    pub fn has(&self, wanted: &Wanted) -> bool {
        let (low, high) = self.priority;
        (low..=high).contains(&wanted.priority)
            && relation::within(&wanted.selector, std::slice::from_ref(&self.packets))
    }
}

/// The part of an app's grant that concerns intents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// The app may list and follow intents and paths.
    pub read: bool,
    /// Where the app may have intents. `None`: nowhere. Without regions: everywhere.
    pub write: Option<Vec<Region>>,
    /// The slices whose links the app may follow. `None`: of none.
    pub slice_links: Option<Permitted>,
}

impl Grant {
    /// Reads the bytes that come with a call. No bytes grant nothing.
    ///
    /// # Errors
    /// A sentence for the log: the node and the service have different versions, or a region is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Result<Grant, String> {
        let part = Part::from_bytes(bytes)?;
        let write = match part.permitted(WRITE) {
            None => None,
            Some(Permitted::All) => Some(Vec::new()),
            Some(Permitted::Only(regions)) => {
                let read = |region: &String| Region::parse(region).map_err(|why| format!("{WRITE}: {why}"));
                let regions = regions.iter().map(read).collect::<Result<Vec<_>, _>>()?;
                // An empty list permits nothing.
                (!regions.is_empty()).then_some(regions)
            }
        };
        let slice_links = part.permitted(SLICE_LINKS).cloned();
        Ok(Grant { read: part.permitted(READ).is_some(), write, slice_links })
    }

    /// Whether the app may follow the tables.
    ///
    /// # Errors
    /// A sentence for the caller, which begins with the missing capability.
    pub fn check_follow(&self) -> Result<(), String> {
        self.read.then_some(()).ok_or_else(|| contract::not_held(READ))
    }

    /// Whether the app may follow the links of this slice, or those of all slices ([`crate::ALL_SLICES`]).
    ///
    /// # Errors
    /// A sentence for the caller, which begins with the missing capability.
    pub fn check_follow_links(&self, slice: &str) -> Result<(), String> {
        match &self.slice_links {
            None => Err(contract::not_held(SLICE_LINKS)),
            Some(permitted) if permitted.names(slice) => Ok(()),
            Some(_) => Err(format!("{SLICE_LINKS}: slice {slice} is not one that is granted")),
        }
    }

    /// Whether the app may ask this.
    ///
    /// # Errors
    /// A sentence for the caller, which begins with the missing capability.
    pub fn check(&self, question: &Question) -> Result<(), String> {
        if !question.writes() {
            return self.check_follow();
        }
        match question.wanted() {
            Some(wanted) => self.check_wanted(wanted),
            None => self.write.as_ref().map(drop).ok_or_else(|| contract::not_held(WRITE)),
        }
    }

    /// Whether the app may have this intent.
    ///
    /// # Errors
    /// A sentence for the caller, which begins with the missing capability.
    pub fn check_wanted(&self, wanted: &Wanted) -> Result<(), String> {
        let regions = self.write.as_ref().ok_or_else(|| contract::not_held(WRITE))?;
        let is_within = regions.is_empty() || regions.iter().any(|region| region.has(wanted));
        let why = || format!("{WRITE}: the selector and the priority are within no region that is granted");
        is_within.then_some(()).ok_or_else(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADD: &str = r#"{"op":"add","intent":{"type":"point_to_point","from":"1/1","to":"2/2","priority":7,"selector":{"eth_type":"0x0800","ipv4_dst":"10.1.0.0/16"}}}"#;

    #[test]
    fn a_capability_permits_its_own_questions_within_its_regions_only() {
        let check = |capabilities: &str, question: &str, expected: Option<&str>| {
            let part = format!("{{\"capabilities\":{{{capabilities}}}}}");
            let grant = Grant::from_bytes(part.as_bytes()).unwrap();
            let question = Question::from_bytes(question.as_bytes()).unwrap();
            let refused = grant.check(&question).err();
            assert_eq!(refused.as_deref(), expected, "{part}");
        };
        let (read, write) = (
            "intent.read: the app does not hold this capability",
            Some("intent.write: the app does not hold this capability"),
        );
        check("", r#"{"op":"list"}"#, Some(read));
        check("", ADD, write);
        check(r#""intent.read":true"#, r#"{"op":"counts"}"#, None);
        check(r#""intent.read":true"#, ADD, write);
        check(r#""intent.read":true"#, r#"{"op":"withdraw","id":1}"#, write);
        check(r#""intent.write":true"#, ADD, None);
        check(r#""intent.write":["dl_type=0x800,nw_dst=10.0.0.0/8"]"#, ADD, None);
        check(r#""intent.write":["dl_type=0x800,nw_dst=10.0.0.0/8,priority=1-7"]"#, ADD, None);
        let outside =
            Some("intent.write: the selector and the priority are within no region that is granted");
        check(r#""intent.write":["dl_type=0x800,nw_dst=10.1.1.0/24"]"#, ADD, outside);
        check(r#""intent.write":["priority=1-6"]"#, ADD, outside);
        check(r#""intent.write":["priority=8"]"#, ADD, outside);
    }

    #[test]
    fn an_app_follows_the_links_of_the_granted_slices_only() {
        let check = |capabilities: &str, slice: &str, expected: Option<&str>| {
            let part = format!("{{\"capabilities\":{{{capabilities}}}}}");
            let refused = Grant::from_bytes(part.as_bytes()).unwrap().check_follow_links(slice).err();
            assert_eq!(refused.as_deref(), expected, "{part}");
        };
        let own = r#""slice.links":["blue"]"#;
        check(r#""intent.read":true"#, "blue", Some("slice.links: the app does not hold this capability"));
        check(own, "blue", None);
        check(own, "red", Some("slice.links: slice red is not one that is granted"));
        check(own, crate::ALL_SLICES, Some("slice.links: slice * is not one that is granted"));
        check(r#""slice.links":true"#, crate::ALL_SLICES, None);
    }

    #[test]
    fn a_damaged_grant_is_refused() {
        let check = |part: &str, why: &str| {
            let refused = Grant::from_bytes(part.as_bytes()).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        };
        check("{", "");
        check(r#"{"capabilities":{"intent.write":["priority=x"]}}"#, "\"x\" is no priority");
        check(r#"{"capabilities":{"intent.write":["nowhere=1"]}}"#, "nowhere");
        assert_eq!(Grant::from_bytes(b"").unwrap(), Grant::default());
    }
}
