//! Changes of a running network: links, switches and hosts fail, recover and move.
//!
//! In: a [`Change`], with the names of the topology. Out: success, or the reason why not. The switches' messages to
//! their controllers are among the effects. If it refuses a change, it changes nothing.

use flow::PortNo;
use std::fmt;
use std::time::Duration;

use super::plugs::Plug;
use super::{Network, NetworkEffects, speed_kbps};
use crate::link::LinkQuality;
use crate::topology::Endpoint;
use software_switch::{Effects, Switch};

/// The highest port number (OFPP_MAX of 1.0, which is lower than 1.3's).
const PORT_MAX: u32 = 0xff00;

/// A change of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A link goes down or up.
    Link {
        /// The nodes at its ends, `s1-s2`. If there are several links between them, with ports: `s1.3-s2.1`.
        link: String,
        /// Whether it goes up.
        up: bool,
    },
    /// A link gets another quality.
    Quality {
        /// The link, as above.
        link: String,
        /// The new quality. Frames that are on the link arrive as before.
        quality: LinkQuality,
    },
    /// A switch is switched off or on. When it goes off, its connections end, its rules are deleted, and its links
    /// are down until it is on again.
    Switch {
        /// Its name, `s1`.
        switch: String,
        /// Whether it is switched on.
        up: bool,
    },
    /// A host is switched off or on. When it goes off, it forgets its neighbours, and its flows end.
    Host {
        /// Its name, `h1`.
        host: String,
        /// Whether it is switched on.
        up: bool,
    },
    /// A host is unplugged and connected elsewhere. It announces itself there, as a migrated virtual machine does.
    Move {
        /// The host's name.
        host: String,
        /// The name of the new switch.
        switch: String,
        /// The new port. `None`: the one after the highest used port.
        port: Option<PortNo>,
    },
    /// A host sends no faster to another one, as if its server shaped it. Pings and queries are not shaped.
    Shape {
        /// The host that sends.
        from: String,
        /// The host that receives.
        to: String,
        /// For all flows together. `None`: as fast as the link.
        bits_per_s: Option<u64>,
    },
}

/// The change as text, `link s1.3-s2.1 goes down`.
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
            Change::Shape { from, to, bits_per_s: Some(rate) } => {
                write!(f, "host {from} sends {rate} bit/s to {to} at most")
            }
            Change::Shape { from, to, bits_per_s: None } => {
                write!(f, "host {from} sends to {to} as it likes")
            }
        }
    }
}

/// Why a change is refused. The operator must correct it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CannotChange {
    /// The name is unknown.
    Unknown {
        /// `switch`, `host` or `link`.
        kind: &'static str,
        /// The unknown name.
        name: String,
        /// Some known names.
        known: String,
    },
    /// Another link uses the port.
    PortInUse {
        /// The switch's name.
        switch: String,
        /// The port in use.
        port: PortNo,
    },
    /// The port number is invalid.
    NoSuchPort {
        /// The invalid number.
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
    /// Makes a change, or refuses it.
    ///
    /// # Errors
    ///
    /// The name is unknown, or the port is in use. Then nothing is changed.
    pub fn change(
        &mut self,
        change: &Change,
        now: Duration,
        effects: &mut NetworkEffects,
    ) -> Result<(), CannotChange> {
        self.pass_to(now);
        match change {
            Change::Link { link, up } => self.set_link(self.link_named(link)?, *up, effects),
            Change::Quality { link, quality } => {
                self.set_link_quality(self.link_named(link)?, *quality, effects);
            }
            Change::Switch { switch, up } => self.set_switch(self.switch_named(switch)?, *up, effects),
            Change::Host { host, up } => self.set_host(self.host_named(host)?, *up, effects),
            Change::Move { host, switch, port } => {
                let (host, switch) = (self.host_named(host)?, self.switch_named(switch)?);
                self.move_host(host, switch, *port, effects)?;
            }
            Change::Shape { from, to, bits_per_s } => {
                let (from, to) = (self.host_named(from)?, self.host_named(to)?);
                let addresses = self.hosts[to].addresses();
                self.at_host(from, effects, |host, _| host.shape(&addresses, *bits_per_s));
            }
        }
        Ok(())
    }

    /// The index of the switch with this name.
    ///
    /// # Errors
    ///
    /// It does not exist.
    pub fn switch_named(&self, name: &str) -> Result<usize, CannotChange> {
        let place = self.switches.iter().position(|switch| switch.name() == name);
        place.ok_or_else(|| {
            unknown("switch", name, self.switches.iter().map(|switch| switch.name().to_owned()))
        })
    }

    /// The index of the host with this name.
    ///
    /// # Errors
    ///
    /// It does not exist.
    pub fn host_named(&self, name: &str) -> Result<usize, CannotChange> {
        let place = self.hosts.iter().position(|host| host.name() == name);
        place.ok_or_else(|| unknown("host", name, self.hosts.iter().map(|host| host.name().to_owned())))
    }

    /// The index of the link between two nodes, in either order: `s1-s2`, or `s1.3-s2` to name a port.
    ///
    /// # Errors
    ///
    /// It does not exist.
    pub fn link_named(&self, name: &str) -> Result<usize, CannotChange> {
        let is_end = |end: Endpoint, word: &str| self.end_names(end).iter().any(|known| known == word);
        // A name may contain a '-', so every split is tried.
        let splits = name.match_indices('-').map(|(at, _)| (&name[..at], &name[at + 1..]));
        let found = splits.into_iter().find_map(|(one, two)| {
            self.cables.iter().position(|cable| {
                let ends = (cable.link.one, cable.link.two);
                is_end(ends.0, one) && is_end(ends.1, two) || is_end(ends.0, two) && is_end(ends.1, one)
            })
        });
        found.ok_or_else(|| unknown("link", name, (0..self.cables.len()).map(|link| self.link_name(link))))
    }

    /// A link's name with ports: `s1.3-h2`. Empty if the link does not exist.
    pub fn link_name(&self, link: usize) -> String {
        let full = |end| self.end_names(end).pop().unwrap_or_default();
        self.cables
            .get(link)
            .map(|cable| format!("{}-{}", full(cable.link.one), full(cable.link.two)))
            .unwrap_or_default()
    }

    /// The names of an end of a link. The exact one is last.
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

    /// Takes a link down or up. The switches at its ends send port statuses. A link stays down while a node at one of
    /// its ends is down.
    pub fn set_link(&mut self, link: usize, up: bool, effects: &mut NetworkEffects) {
        let Some(cable) = self.cables.get_mut(link) else { return };
        cable.is_cut = !up;
        self.look_at_link(link, effects);
    }

    /// Sets a link's quality. Frames that are on the link arrive as before. The switches at its ends report the new speed.
    pub fn set_link_quality(&mut self, link: usize, quality: LinkQuality, effects: &mut NetworkEffects) {
        let Some(cable) = self.cables.get_mut(link) else { return };
        cable.link.quality = quality;
        self.tell_ends_of_rate(link, effects);
    }

    /// Switches a switch off or on. When it goes off, it loses its connections, rules, groups and buffered packets.
    /// Its links are down until it is on again.
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

    /// The same switch without rules and connections, with its ports.
    fn blank_switch(&self, index: usize) -> Switch {
        let old = &self.switches[index];
        let mut switch = Switch::new(old.datapath_id(), old.name(), self.options.clone());
        for port in &self.ports_made[index] {
            switch.add_port(*port, self.clock, &mut Effects::default());
            switch.set_link(*port, false, &mut Effects::default());
            let plug = self.plugs.get(Endpoint::Switch { index, port: *port });
            let quality = plug.map(|plug| self.cables[plug.link].link.quality).unwrap_or_default();
            switch.set_speed(*port, speed_kbps(&quality), &mut Effects::default());
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

    /// Switches a host off or on. When it goes off, it forgets its neighbours, and its flows and pings end.
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

    /// Connects a host elsewhere. The old port loses its link. The new port is added or gets a link. The host
    /// announces itself. A link that was cut works again.
    ///
    /// # Errors
    ///
    /// The new port is in use or invalid, or the host has no link.
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
        self.tell_ends_of_rate(plug.link, effects);
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

    /// Updates whether a link passes frames, which depends on the link and the nodes at its ends. Informs the
    /// switches if it changed.
    fn look_at_link(&mut self, link: usize, effects: &mut NetworkEffects) {
        self.follow_link(link, effects);
        self.prune(effects);
    }

    /// The same without an update of the spanning tree, for callers with several links.
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
