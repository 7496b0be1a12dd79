//! `burnet tls`: shows which certificates may be used for which datapath ids on the running node.
//!
//! In: the node's answer. Out: text or JSON. The node decides.

use super::{ask, json, table::columns, unexpected};
use crate::cli::CommandError;
use crate::cli::tls::TlsCommand;
use operator::contract::{Answer, PinView, Question};

/// Prints the pins, as text or JSON.
pub fn tls(command: &TlsCommand) -> Result<String, CommandError> {
    match command {
        TlsCommand::Pins { asking } => {
            let Answer::Pins(pins) = ask(asking, &Question::Pins)? else { return Err(unexpected()) };
            if asking.json { json(&pins) } else { Ok(text(&pins)) }
        }
        TlsCommand::Forget { datapath, asking } => {
            let question = Question::ForgetPin { datapath: *datapath };
            let Answer::Done = ask(asking, &question)? else { return Err(unexpected()) };
            if asking.json {
                return json(&serde_json::json!({ "forgotten": datapath.to_string() }));
            }
            Ok(format!("{datapath} is not pinned any more; the next certificate that claims it is pinned\n"))
        }
    }
}

fn text(pins: &[PinView]) -> String {
    if pins.is_empty() {
        return "no datapath id is pinned; with southbound.tls, the first certificate that claims an id is pinned to it\n"
            .to_owned();
    }
    let up = |pin: &PinView| if pin.up { "yes" } else { "no" }.to_owned();
    let rows: Vec<[String; 3]> =
        pins.iter().map(|pin| [pin.datapath.to_string(), up(pin), pin.certificate.clone()]).collect();
    columns(["DATAPATH", "UP", "CERTIFICATE (SHA-256)"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::DatapathId;

    #[test]
    fn each_id_is_listed_with_its_certificate() {
        let pin = PinView { datapath: DatapathId(1), certificate: "AB:CD".to_owned(), up: true };
        let text = text(&[pin]);
        assert!(
            text.contains("of:0000000000000001") && text.contains("yes") && text.contains("AB:CD"),
            "{text}"
        );
    }
}
