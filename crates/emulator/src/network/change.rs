//! What is done to a network while it runs: links, switches and hosts fail, come back and move.
//!
//! In: a [`Change`], which names things as the topology does. Out: it is done, or why not; what switches tell their controllers of
//! it is among the effects. Never changes anything if it refuses.

use flow::PortNo;
use std::fmt;
use std::time::Duration;

use super::plugs::Plug;
use super::{Network, NetworkEffects};
use crate::link::LinkQuality;
use crate::topology::Endpoint;
use software_switch::{Effects, Switch};

/// The highest number that a port may have (OFPP_MAX of 1.0, which is the lower one).
const PORT_MAX: u32 = 0xff00;

/// Something that is done to a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A link is taken down or up again.
    Link {
        /// The nodes at its ends, `s1-s2`; where several links are between them, with ports: `s1.3-s2.1`.
        link: String,
        /// Up or down.
        up: bool,
    },
    /// A link becomes better or worse.
    Quality {
        /// The link, as above.
        link: String,
        /// What it is from now on. Frames that are on it arrive as they would have.
        quality: LinkQuality,
    },
    /// A switch is switched off or on again. Its connections end, its rules are gone, and its links are down meanwhile.
    Switch {
        /// Its name, `s1`.
        switch: String,
        /// Up or down.
        up: bool,
    },
    /// A host is switched off or on again. It forgets whom it knew, and its flows end.
    Host {
        /// Its name, `h1`.
        host: String,
        /// Up or down.
        up: bool,
    },
    /// A host is unplugged and plugged in elsewhere, and announces itself there as a migrated virtual machine does.
    Move {
        /// The host's name.
        host: String,
        /// Name of the switch to which it goes.
        switch: String,
        /// By which port; `None`: the one behind the highest that is in use.
        port: Option<PortNo>,
    },
}

/// In words, as what happens: `link s1.3-s2.1 goes down`.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let goes = |up: &bool| if *up { "comes back" } else { "goes down" };
        match self {
            Change::Link { link, up } => write!(f, "link {link} {}", goes(up)),
            Change::Quality { link, quality } => write!(f, "link {link} is {quality}"),
            Change::Switch { switch, up } => write!(f, "switch {switch} {}", goes(up)),
            Change::Host { host, up } => write!(f, "host {host} {}", goes(up)),
            Change::Move { host, switch, port: None } => write!(f, "host {host} moves to {switch}"),
            Change::Move { host, switch, port: Some(port) } => {
                write!(f, "host {host} moves to port {port} of {switch}")
            }
        }
    }
}

/// Why something cannot be done. It is the operator's to put right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CannotChange {
    /// There is no such thing.
    Unknown {
        /// `switch`, `host` or `link`.
        kind: &'static str,
        /// What it was called.
        name: String,
        /// Names that there are.
        known: String,
    },
    /// Another link is plugged in there.
    PortInUse {
        /// The switch's name.
        switch: String,
        /// Its port.
        port: PortNo,
    },
    /// No port has such a number.
    NoSuchPort {
        /// The number.
        port: PortNo,
    },
    /// A host without a link cannot be moved.
    NotPluggedIn {
        /// The host's name.
        host: String,
    },
    /// The emulation has ended.
    Ended,
}

impl fmt::Display for CannotChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CannotChange::Unknown { kind, name, known } => {
                write!(f, "there is no {kind} '{name}' in this network; there are {known}")
            }
            CannotChange::PortInUse { switch, port } => {
                write!(
                    f,
                    "port {port} of {switch} has a link already; name another, or none for the next free one"
                )
            }
            CannotChange::NoSuchPort { port } => write!(f, "{port} is no port's number; 1 to {PORT_MAX} are"),
            CannotChange::NotPluggedIn { host } => write!(f, "{host} has no link that could be moved"),
            CannotChange::Ended => f.write_str("the emulation has ended"),
        }
    }
}

impl std::error::Error for CannotChange {}

/// How many names an error shows.
const NAMES_SHOWN: usize = 4;

impl Network {
    /// Does it, or refuses it.
    ///
    /// # Errors
    /// A name that nothing has, or a port that is taken: then nothing is changed.
    pub fn change(
        &mut self,
        change: &Change,
        now: Duration,
        effects: &mut NetworkEffects,
    ) -> Result<(), CannotChange> {
        self.pass_to(now);
        match change {
            Change::Link { link, up } => self.set_link(self.link_named(link)?, *up, effects),
            Change::Quality { link, quality } => self.set_link_quality(self.link_named(link)?, *quality),
            Change::Switch { switch, up } => self.set_switch(self.switch_named(switch)?, *up, effects),
            Change::Host { host, up } => self.set_host(self.host_named(host)?, *up, effects),
            Change::Move { host, switch, port } => {
                let (host, switch) = (self.host_named(host)?, self.switch_named(switch)?);
                self.move_host(host, switch, *port, effects)?;
            }
        }
        Ok(())
    }

    /// The index of the switch of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn switch_named(&self, name: &str) -> Result<usize, CannotChange> {
        let place = self.switches.iter().position(|switch| switch.name() == name);
        place.ok_or_else(|| {
            unknown("switch", name, self.switches.iter().map(|switch| switch.name().to_owned()))
        })
    }

    /// The index of the host of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn host_named(&self, name: &str) -> Result<usize, CannotChange> {
        let place = self.hosts.iter().position(|host| host.name() == name);
        place.ok_or_else(|| unknown("host", name, self.hosts.iter().map(|host| host.name().to_owned())))
    }

    /// The index of the link between two nodes, in either order: `s1-s2`, or `s1.3-s2` where the port matters.
    ///
    /// # Errors
    /// There is none.
    pub fn link_named(&self, name: &str) -> Result<usize, CannotChange> {
        let is_end = |end: Endpoint, word: &str| self.end_names(end).iter().any(|known| known == word);
        // A name may have a '-' of its own, so each is tried.
        let splits = name.match_indices('-').map(|(at, _)| (&name[..at], &name[at + 1..]));
        let found = splits.into_iter().find_map(|(one, two)| {
            self.cables.iter().position(|cable| {
                let ends = (cable.link.one, cable.link.two);
                is_end(ends.0, one) && is_end(ends.1, two) || is_end(ends.0, two) && is_end(ends.1, one)
            })
        });
        found.ok_or_else(|| unknown("link", name, (0..self.cables.len()).map(|link| self.link_name(link))))
    }

    /// A link's name, with ports: `s1.3-h2`. No such link: empty.
    pub fn link_name(&self, link: usize) -> String {
        let full = |end| self.end_names(end).pop().unwrap_or_default();
        self.cables
            .get(link)
            .map(|cable| format!("{}-{}", full(cable.link.one), full(cable.link.two)))
            .unwrap_or_default()
    }

    /// What an end of a link is called, the exact name last.
    fn end_names(&self, end: Endpoint) -> Vec<String> {
        match end {
            Endpoint::Host { index } => {
                self.hosts.get(index).map(|host| host.name().to_owned()).into_iter().collect()
            }
            Endpoint::Switch { index, port } => {
                let name = self.switches.get(index).map(|switch| switch.name().to_owned());
                name.into_iter().flat_map(|name| [name.clone(), format!("{name}.{port}")]).collect()
            }
        }
    }

    /// Takes a link down or up again. The switches at its ends tell their controllers. A link stays down as long as what
    /// is at one of its ends is down.
    pub fn set_link(&mut self, link: usize, up: bool, effects: &mut NetworkEffects) {
        let Some(cable) = self.cables.get_mut(link) else { return };
        cable.is_cut = !up;
        self.look_at_link(link, effects);
    }

    /// Makes a link better or worse. Frames that are on it arrive as they would have.
    pub fn set_link_quality(&mut self, link: usize, quality: LinkQuality) {
        let Some(cable) = self.cables.get_mut(link) else { return };
        cable.link.quality = quality;
        self.tell_hosts_of_rate(link);
    }

    /// Switches a switch off or on again. It loses its connections, rules, groups and kept packets; its links are down
    /// until it is on again.
    pub fn set_switch(&mut self, index: usize, up: bool, effects: &mut NetworkEffects) {
        let Some(is_up) = self.switches_up.get_mut(index).filter(|is_up| **is_up != up) else { return };
        *is_up = up;
        if !up {
            self.switches[index] = self.blank_switch(index);
            self.disconnect(index, effects);
            self.set_due_of_switch(index);
        }
        let links: Vec<usize> = self.plugs.of_switch(index).collect();
        links.into_iter().for_each(|link| self.follow_link(link, effects));
        self.prune(effects);
    }

    /// The same switch as it comes from the factory, with its ports.
    fn blank_switch(&self, index: usize) -> Switch {
        let old = &self.switches[index];
        let mut switch = Switch::new(old.datapath_id(), old.name(), self.options.clone());
        for port in &self.ports_made[index] {
            switch.add_port(*port, self.clock, &mut Effects::default());
            switch.set_link(*port, false, &mut Effects::default());
        }
        switch
    }

    /// Whether a switch is on.
    pub fn is_switch_up(&self, index: usize) -> bool {
        self.switches_up.get(index).copied().unwrap_or(false)
    }

    /// Whether a host is on.
    pub fn is_host_up(&self, index: usize) -> bool {
        self.hosts_up.get(index).copied().unwrap_or(false)
    }

    /// Switches a host off or on again. It forgets its neighbours, and its flows and pings end.
    pub fn set_host(&mut self, index: usize, up: bool, effects: &mut NetworkEffects) {
        let Some(is_up) = self.hosts_up.get_mut(index).filter(|is_up| **is_up != up) else { return };
        *is_up = up;
        if !up {
            self.at_host(index, effects, |host, _| host.fail());
        }
        if let Some(plug) = self.plugs.get(Endpoint::Host { index }) {
            self.look_at_link(plug.link, effects);
        }
    }

    /// Plugs a host in elsewhere: the old port loses its link, the new one is added or gets one, and the host announces itself.
    /// A link that was cut is whole again.
    ///
    /// # Errors
    /// The new port is in use or no port, or the host has no link.
    pub fn move_host(
        &mut self,
        host: usize,
        switch: usize,
        port: Option<PortNo>,
        effects: &mut NetworkEffects,
    ) -> Result<(), CannotChange> {
        let at_host = Endpoint::Host { index: host };
        let plug = self.plugs.get(at_host).ok_or_else(|| CannotChange::NotPluggedIn {
            host: self.hosts.get(host).map(|host| host.name().to_owned()).unwrap_or_default(),
        })?;
        let port = self.free_port(switch, port)?;
        self.set_link(plug.link, false, effects);
        let link = &mut self.cables[plug.link].link;
        let far_end = if link.one == at_host { &mut link.two } else { &mut link.one };
        let to = Endpoint::Switch { index: switch, port };
        let from = std::mem::replace(far_end, to);
        self.plugs.set(from, None);
        let way = plug.way.reverse();
        self.plugs.set(to, Some(Plug { link: plug.link, way }));
        self.make_port(switch, port, effects);
        self.set_link(plug.link, true, effects);
        self.at_host(host, effects, |host, out| host.announce(out));
        Ok(())
    }

    fn free_port(&self, switch: usize, wanted: Option<PortNo>) -> Result<PortNo, CannotChange> {
        let port = wanted.unwrap_or(PortNo(self.plugs.highest_port(switch) + 1));
        if port.0 == 0 || port.0 > PORT_MAX {
            return Err(CannotChange::NoSuchPort { port });
        }
        if self.plugs.get(Endpoint::Switch { index: switch, port }).is_some() {
            let switch = self.switches.get(switch).map(|switch| switch.name().to_owned()).unwrap_or_default();
            return Err(CannotChange::PortInUse { switch, port });
        }
        Ok(port)
    }

    /// Whether a link passes frames follows from itself and from what is at its ends. Tells the switches if that changed.
    fn look_at_link(&mut self, link: usize, effects: &mut NetworkEffects) {
        self.follow_link(link, effects);
        self.prune(effects);
    }

    /// The same without looking after the spanning tree, for who has several links.
    fn follow_link(&mut self, link: usize, effects: &mut NetworkEffects) {
        let Some(cable) = self.cables.get(link) else { return };
        let ends = [cable.link.one, cable.link.two];
        let is_on = |end: &Endpoint| match *end {
            Endpoint::Switch { index, .. } => self.is_switch_up(index),
            Endpoint::Host { index } => self.is_host_up(index),
        };
        let up = !cable.is_cut && ends.iter().all(is_on);
        self.cables[link].set_up(up);
        for end in ends {
            if let Endpoint::Switch { index, port } = end {
                self.at_switch(index, effects, |switch, out| switch.set_link(port, up, out));
            }
        }
    }
}

fn unknown(kind: &'static str, name: &str, all: impl ExactSizeIterator<Item = String>) -> CannotChange {
    let count = all.len();
    let mut names: Vec<String> = all.take(NAMES_SHOWN).collect();
    if count > NAMES_SHOWN {
        names.push(format!("{} more", count - NAMES_SHOWN));
    }
    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    CannotChange::Unknown { kind, name: name.to_owned(), known }
}
