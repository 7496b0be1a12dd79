//! Labels of links, as the tenant's controllers receive them on the OpenFlow connection.
//!
//! ```text
//!   Event::Label ──> the port where the link begins ──> paper: port status with the label     in each description of the port too
//!                                                   ──> speed: port status with the speed     in each description of the port too
//!                                                   ──> experimenter: a message of its own    on request too
//! ```
//!
//! In: labels of physical ports, requests. Out: messages. It computes no label, and never damps: the service of labels does.

use crate::controller::Asker;
use crate::label::{LabelForm, LinkLabel};
use crate::port::{ShownSpeed, VirtualPort};
use crate::refusal::{BAD_EXPERIMENTER, Refusal};
use crate::virtual_switch::{Turn, VirtualSwitch};
use flow::PortNo;
use openflow::labels::{LabelMessage, NO_LABEL, PortLabel};
use openflow::message::{Experimenter, PORT_MODIFIED};
use openflow::{Body, Message, Version};

impl VirtualSwitch {
    /// The link that begins at a physical port has this label from now on.
    pub(crate) fn on_label(&mut self, port: PortNo, label: Option<LinkLabel>, turn: &mut Turn<'_>) {
        let Some(shown) = self.space.shown(port) else { return };
        let Some(port) = self.space.port_mut(shown) else { return };
        if std::mem::replace(&mut port.label, label) == label {
            return;
        }
        match self.label_form {
            LabelForm::None => {}
            LabelForm::Paper => self.tell_port(shown, PORT_MODIFIED, turn),
            LabelForm::Speed => {
                // A speed of 0 is an unknown one.
                let is_stale = self.are_labels_stale;
                let shown_speed =
                    |label: LinkLabel| ShownSpeed { kbps: label.written_kbps().max(1), is_stale };
                port.shown_speed = label.map(shown_speed);
                self.tell_port_to(shown, PORT_MODIFIED, |version| version != Version::V1_0, turn);
            }
            LabelForm::Experimenter => {
                let none = PortLabel { port: shown, label_kbps: NO_LABEL, capacity_kbps: 0 };
                self.tell_labels(vec![label.map_or(none, |label| label.of_port(shown))], turn);
            }
        }
    }

    /// All labels may be too high, or no longer.
    pub(crate) fn on_stale(&mut self, is_stale: bool, turn: &mut Turn<'_>) {
        if std::mem::replace(&mut self.are_labels_stale, is_stale) == is_stale {
            return;
        }
        match self.label_form {
            LabelForm::None | LabelForm::Paper => {}
            LabelForm::Speed => self.show_stale(is_stale, turn),
            LabelForm::Experimenter => self.tell_labels(Vec::new(), turn),
        }
    }

    fn show_stale(&mut self, is_stale: bool, turn: &mut Turn<'_>) {
        let labelled: Vec<PortNo> =
            self.space.ports().filter(|it| it.shown_speed.is_some()).map(|it| it.plan.shown_as).collect();
        for shown in labelled {
            let speed = self.space.port_mut(shown).and_then(|port| port.shown_speed.as_mut());
            speed.into_iter().for_each(|speed| speed.is_stale = is_stale);
            self.tell_port_to(shown, PORT_MODIFIED, |version| version != Version::V1_0, turn);
        }
    }

    fn tell_labels(&self, labels: Vec<PortLabel>, turn: &mut Turn<'_>) {
        let message = LabelMessage::Labels { is_stale: self.are_labels_stale, more: false, labels };
        for (controller, _, version) in self.open() {
            let body = Body::Experimenter(message.to_experimenter(version));
            self.tell(controller, &Message { version, xid: 0, body }, turn);
        }
    }

    /// A controller whose first barrier was answered is told all labels. Then one that sends no message of this experimenter knows them too.
    pub(crate) fn tell_first_labels(&mut self, to: Asker, turn: &mut Turn<'_>) {
        let Some(it) = self.controllers.get_mut(to.controller).filter(|it| it.serial == to.serial) else {
            return;
        };
        if self.label_form == LabelForm::Experimenter && !std::mem::replace(&mut it.has_labels, true) {
            let body = Body::Experimenter(self.all_labels().to_experimenter(to.version));
            self.answer(Asker { xid: 0, ..to }, body, turn);
        }
    }

    fn all_labels(&self) -> LabelMessage {
        let label = |port: &VirtualPort| {
            port.facts.as_ref()?;
            Some(port.label?.of_port(port.plan.shown_as))
        };
        // A switch of a slice has fewer ports than a message has room for.
        let labels = self.space.ports().filter_map(label).collect();
        LabelMessage::Labels { is_stale: self.are_labels_stale, more: false, labels }
    }

    /// The answer to a message of an experimenter.
    pub(crate) fn answer_experimenter(&self, asker: Asker, message: &Experimenter) -> Result<Body, Refusal> {
        let unknown = || Refusal::new(BAD_EXPERIMENTER, "a slice knows no experimenter's messages");
        if self.label_form != LabelForm::Experimenter {
            return Err(unknown());
        }
        match LabelMessage::read(message)?.ok_or_else(unknown)? {
            LabelMessage::Request => Ok(Body::Experimenter(self.all_labels().to_experimenter(asker.version))),
            LabelMessage::Labels { .. } => {
                Err(Refusal::new(BAD_EXPERIMENTER, "a switch says labels, and a controller does not"))
            }
        }
    }

    /// The label in the field behind a port.
    pub(crate) fn label_of(&self, shown: PortNo) -> u32 {
        let label = self.space.port(shown).and_then(|port| port.label);
        label.map_or(NO_LABEL, LinkLabel::written_kbps)
    }
}
