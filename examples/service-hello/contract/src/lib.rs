//! The contract of the service `hello`: the question, the answer, and what a caller's grant permits.
//!
//! ```text
//!   caller: Greet ──to_bytes──> payload of a query ──from_bytes──> Greet :service
//!   node:   the part of the caller's grant ──from_bytes──> Grant :service
//! ```
//!
//! In: typed values, or bytes. Out: the other of the two. It sends nothing.

use contract::Part;

/// The name by which apps call the service.
pub const SERVICE: &str = "hello";

/// The capability to have people greeted whose names begin with given prefixes.
pub const GREET: &str = "hello.greet";

/// The quota: how often the service greets for one app.
pub const GREETINGS: &str = "hello.greetings";

/// The quota of an app for which nothing is written. `service/app.toml` declares the same number.
pub const GREETINGS_DEFAULT: u64 = 100;

/// The maximum length of a name in bytes. A longer name is refused.
pub const NAME_BYTES_MAX: usize = 64;

/// The statuses of answers. The two refusals mean the same for every service.
pub mod status {
    /// The payload is the greeting.
    pub const GREETED: u16 = 0;
    /// The service knows too many people.
    pub const CROWDED: u16 = 1;
    /// The grant does not permit the question. The payload is a sentence that begins with the capability.
    pub const NOT_GRANTED: u16 = 0xff80;
    /// The quota is used up. The payload is a sentence that begins with the quota.
    pub const OVER_QUOTA: u16 = 0xff81;
    /// The question is damaged. The payload is a sentence.
    pub const BAD_QUESTION: u16 = 0xff82;
}

/// The question: greet this person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greet<'a> {
    /// The person's name.
    pub name: &'a str,
}

impl<'a> Greet<'a> {
    /// The payload of the query.
    pub fn to_bytes(self) -> Vec<u8> {
        self.name.as_bytes().to_vec()
    }

    /// Reads a payload.
    ///
    /// # Errors
    /// A sentence. The caller has made a mistake.
    pub fn from_bytes(payload: &'a [u8]) -> Result<Greet<'a>, &'static str> {
        let name = std::str::from_utf8(payload).map_err(|_| "the name is not UTF-8")?;
        match name.len() {
            0 => Err("the name is empty"),
            1..=NAME_BYTES_MAX if !name.chars().any(char::is_control) => Ok(Greet { name }),
            1..=NAME_BYTES_MAX => Err("the name has a control character"),
            _ => Err("the name is longer than 64 bytes"),
        }
    }
}

/// What a caller may do, from the part of its grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant(Part);

impl Grant {
    /// Reads the bytes that come with a call.
    ///
    /// # Errors
    /// A sentence for the log: the node and the service have different versions.
    pub fn from_bytes(bytes: &[u8]) -> Result<Grant, String> {
        Part::from_bytes(bytes).map(Grant)
    }

    /// Whether the caller may follow the greetings: it may if it may also request one.
    pub fn may_follow(&self) -> bool {
        self.0.permitted(GREET).is_some()
    }

    /// Checks one greeting of a caller that had `so_far` greetings.
    ///
    /// # Errors
    /// The status and the sentence for the caller.
    pub fn check(&self, greet: Greet<'_>, so_far: u64) -> Result<(), (u16, String)> {
        let Some(permitted) = self.0.permitted(GREET) else {
            return Err((status::NOT_GRANTED, format!("{GREET}: the app does not hold this capability")));
        };
        if !permitted.begins(greet.name) {
            let why = format!("{GREET}: it is not granted for the name {:?}", greet.name);
            return Err((status::NOT_GRANTED, why));
        }
        let most = self.0.hard(GREETINGS).unwrap_or(GREETINGS_DEFAULT);
        if so_far >= most {
            return Err((status::OVER_QUOTA, format!("{GREETINGS}: the hard limit {most} is reached")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_question_is_refused() {
        let check = |payload: &[u8], expected| assert_eq!(Greet::from_bytes(payload), Err(expected));
        check(b"", "the name is empty");
        check(&[0xff], "the name is not UTF-8");
        check(b"a\nb", "the name has a control character");
        check(&[b'a'; NAME_BYTES_MAX + 1], "the name is longer than 64 bytes");
        let longest = "a".repeat(NAME_BYTES_MAX);
        assert_eq!(Greet::from_bytes(&Greet { name: &longest }.to_bytes()), Ok(Greet { name: &longest }));
    }

    #[test]
    fn a_grant_permits_what_it_says() {
        let check = |part: &str, name: &str, so_far: u64, expected: Option<u16>| {
            let grant = Grant::from_bytes(part.as_bytes()).unwrap();
            assert_eq!(
                grant.check(Greet { name }, so_far).err().map(|(status, _)| status),
                expected,
                "{part}"
            );
        };
        check("", "Ada", 0, Some(status::NOT_GRANTED));
        check(r#"{"capabilities":{"hello.other":true}}"#, "Ada", 0, Some(status::NOT_GRANTED));
        check(r#"{"capabilities":{"hello.greet":["B"]}}"#, "Ada", 0, Some(status::NOT_GRANTED));
        check(r#"{"capabilities":{"hello.greet":["B","A"]}}"#, "Ada", 0, None);
        let two = r#"{"capabilities":{"hello.greet":true},"quotas":{"hello.greetings":2}}"#;
        check(two, "Ada", 1, None);
        check(two, "Ada", 2, Some(status::OVER_QUOTA));
        check(r#"{"capabilities":{"hello.greet":true}}"#, "Ada", GREETINGS_DEFAULT, Some(status::OVER_QUOTA));
        assert!(Grant::from_bytes(b"{").is_err());
    }
}
