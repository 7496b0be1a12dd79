//! The interface that an agent works on, and whether it is free.
//!
//! In: a name, and what tc says about the interface. Out: a [`Device`], whose name is safe in commands, or a reason. It runs nothing.

use std::fmt;

/// The handle of the root queueing discipline, by which this program knows its own. `bed9` has no meaning.
pub(super) const MAJOR: &str = "bed9";

/// The most bytes of an interface's name (IFNAMSIZ without the final zero).
const NAME_MAX: usize = 15;

/// The name of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device(String);

/// Why an interface cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadDevice {
    /// This is no name of an interface.
    Name(String),
    /// Another program, or the operator, shapes there.
    Taken {
        /// The interface.
        device: String,
        /// The root queueing discipline, as tc shows it.
        qdisc: String,
    },
}

impl fmt::Display for BadDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadDevice::Name(name) => write!(f, "`{name}` is not the name of an interface"),
            BadDevice::Taken { device, qdisc } => write!(
                f,
                "{device} has a queueing discipline that is not Burnet's ({qdisc}); \
                 remove it with `tc qdisc del dev {device} root`, or use another interface"
            ),
        }
    }
}

impl std::error::Error for BadDevice {}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Device {
    /// Checks a name. It goes into commands of tc and nft, so that only letters, digits and `-_.@:` are allowed, where it
    /// does not look like an option.
    ///
    /// # Errors
    ///
    /// This is no name of an interface, or one that is too unusual.
    pub fn new(name: &str) -> Result<Self, BadDevice> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@:".contains(&byte);
        let is_name = (1..=NAME_MAX).contains(&name.len())
            && name.bytes().all(is_plain)
            && name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        if is_name { Ok(Device(name.to_owned())) } else { Err(BadDevice::Name(name.to_owned())) }
    }

    /// The name of the table of nftables. A table's name has fewer kinds of characters than an interface's.
    pub(super) fn table(&self) -> String {
        let mut table = "burnet_edge_".to_owned();
        for byte in self.0.bytes() {
            match byte {
                b if b.is_ascii_alphanumeric() => table.push(char::from(b)),
                b => table.push_str(&format!("_{b:02x}")),
            }
        }
        table
    }

    /// What the root queueing discipline is, by the output of `tc qdisc show dev DEVICE`.
    ///
    /// # Errors
    ///
    /// Somebody else made one.
    pub(super) fn root(&self, shown: &str) -> Result<Root, BadDevice> {
        let root = shown.lines().find(|line| line.split_whitespace().any(|word| word == "root"));
        let Some(root) = root else { return Ok(Root::Default) };
        let mut words = root.split_whitespace().skip(1);
        match (words.next(), words.next()) {
            // The kernel's own default has the handle 0.
            (Some(_), Some("0:")) => Ok(Root::Default),
            (Some("htb"), Some(handle)) if handle == format!("{MAJOR}:") => Ok(Root::Ours),
            _ => Err(BadDevice::Taken { device: self.0.clone(), qdisc: root.trim().to_owned() }),
        }
    }
}

/// The root queueing discipline of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Root {
    /// That which the kernel makes.
    Default,
    /// One of an earlier run of this program.
    Ours,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_be_commands_are_refused() {
        for name in ["", "-x", "a b", "a;b", "a\nb", "a\"", "a/b", "é", "sixteen-letters-"] {
            assert_eq!(Device::new(name), Err(BadDevice::Name(name.to_owned())));
        }
        assert_eq!(Device::new("a b").unwrap_err().to_string(), "`a b` is not the name of an interface");
        for name in ["eth0", "h1-eth0", "eth0.5", "veth@if3", "0x"] {
            assert_eq!(Device::new(name).unwrap().to_string(), name);
        }
    }

    #[test]
    fn different_names_have_different_tables() {
        let table = |name| Device::new(name).unwrap().table();
        assert_eq!(table("h1-eth0"), "burnet_edge_h1_2deth0");
        assert_ne!(table("a-2d"), table("a_2d"));
    }

    #[test]
    fn what_others_made_is_not_touched() {
        let device = Device::new("eth0").unwrap();
        let check = |shown: &str, expected: Result<Root, &str>| {
            let got = device.root(shown);
            assert_eq!(got.map_err(|why| why.to_string()), expected.map_err(str::to_owned), "{shown}");
        };
        let taken = "eth0 has a queueing discipline that is not Burnet's (qdisc htb 1: root refcnt 2 r2q 10 default 0x3); \
                     remove it with `tc qdisc del dev eth0 root`, or use another interface";
        check("qdisc htb 1: root refcnt 2 r2q 10 default 0x3\n", Err(taken));
        check("", Ok(Root::Default));
        check("qdisc noqueue 0: root refcnt 2 \n", Ok(Root::Default));
        check("qdisc mq 0: root \nqdisc fq_codel 0: parent :1 limit 10240p\n", Ok(Root::Default));
        check(
            "qdisc htb bed9: root refcnt 2 r2q 10 default 0x3\nqdisc bfifo 1001: parent bed9:1001\n",
            Ok(Root::Ours),
        );
        check("qdisc ingress ffff: parent ffff:fff1 ---------------- \n", Ok(Root::Default));
    }
}
