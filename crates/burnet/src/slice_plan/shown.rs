//! Judged slices as text and as JSON.
//!
//! In: judged slices. Out: text for operators, values for programs. It decides nothing.

use super::judge::{Got, Judged, Refused};
use crate::commands::table::aligned;
use config::slices::{Addresses, SliceIsolation, Vnic, link_name, port_name, switch_name};
use hose::{Bandwidth, Fit};
use serde_json::{Value, json};

/// What each slice gets, or why not.
pub fn plan_text(judged: &[Judged]) -> String {
    judged.iter().map(one_plan).collect()
}

/// Whether each slice fits, and if not, what would.
pub fn fit_text(judged: &[Judged]) -> String {
    judged.iter().map(one_fit).collect()
}

/// The same for programs.
pub fn value(judged: &[Judged]) -> Value {
    let slices: Vec<Value> = judged.iter().map(one_value).collect();
    json!({ "fits": judged.iter().all(|slice| slice.result.is_ok()), "slices": slices })
}

fn one_plan(judged: &Judged) -> String {
    let mut text = match &judged.result {
        Ok(got) => {
            format!("slice {}: fits\n", judged.slice.name)
                + &facts(judged, got)
                + &vnics(got)
                + &links(judged, got)
        }
        Err(Refused { why, .. }) => format!("{why}\n"),
    };
    for attempt in &judged.tried {
        text += &format!("  tried: {attempt}\n");
    }
    text
}

fn one_fit(judged: &Judged) -> String {
    match &judged.result {
        Ok(_) => format!("slice {}: fits\n", judged.slice.name),
        Err(Refused { why, fit: Some(fit) }) if is_something(fit) => format!("{why}\n  {fit}\n"),
        Err(Refused { why, .. }) => format!("{why}\n  no rates would fit\n"),
    }
}

/// Whether some VNIC would have bandwidth.
fn is_something(fit: &Fit) -> bool {
    let together = fit.together.iter().any(|(_, rate)| *rate > Bandwidth::ZERO);
    together || fit.alone.iter().any(|(_, rate)| rate.is_some())
}

fn isolation(judged: &Judged) -> String {
    match &judged.slice.isolation {
        SliceIsolation::Vlan(tag) => format!("vlan, tag {tag}"),
        SliceIsolation::Flowspace(packets) => {
            let texts = packets.iter().map(|it| format!("`{}`", flow::text::match_to_string(&it.matching)));
            format!("flowspace, {}", texts.collect::<Vec<_>>().join(" or "))
        }
        SliceIsolation::Address(Addresses { prefix, tenant, hosts }) => {
            format!("address, {tenant} as {prefix}, {} hosts", hosts.len())
        }
    }
}

fn facts(judged: &Judged, got: &Got) -> String {
    let switches: Vec<String> = got.switches.iter().map(|switch| switch_name(*switch)).collect();
    let links = if judged.is_chosen { "chosen for its VNICs" } else { "as written" };
    let observer = if judged.slice.is_read_only { "  observer\n" } else { "" };
    let (isolation, switches, unshaped) = (isolation(judged), switches.join(" "), unshaped(judged).join(" "));
    let mut rows = vec![["isolation", &isolation], ["switches", &switches], ["links", links]];
    if !unshaped.is_empty() {
        rows.push(["unshaped", &unshaped]);
    }
    let rows: Vec<_> = rows.into_iter().map(|row| row.map(str::to_owned).to_vec()).collect();
    indented(&rows) + observer
}

/// The VNICs that neither an agent nor a meter holds to their rates, whatever the switches have.
fn unshaped(judged: &Judged) -> Vec<&str> {
    let has_agent = |vnic: &Vnic| vnic.edge.is_some_and(|edge| edge.agent.is_some());
    let all = judged.slice.vnics.iter().filter(|vnic| !vnic.is_metered && !has_agent(vnic));
    all.map(|vnic| vnic.name.as_str()).collect()
}

fn vnics(got: &Got) -> String {
    let heading = ["VNIC", "PORT", "NIC", "RATE", "NIC LEFT"].map(str::to_owned).to_vec();
    let rows = got.vnics.iter().map(|vnic| {
        vec![
            vnic.name.clone(),
            port_name(vnic.at),
            vnic.nic.clone(),
            vnic.rate.to_string(),
            vnic.left.to_string(),
        ]
    });
    with_heading(heading, rows.collect())
}

fn links(judged: &Judged, got: &Got) -> String {
    let heading = ["LINK", "WORST", "LEFT"].map(str::to_owned).to_vec();
    let shown = |bandwidth: Option<Bandwidth>| bandwidth.map_or("-".to_owned(), |it| it.to_string());
    let rows = got.links.iter().map(|link| vec![link_name(link.id), shown(link.worst), shown(link.left)]);
    let mut text = with_heading(heading, rows.collect());
    let is_cable = |id| got.links.iter().any(|link| link.id == id || link.id.reversed() == id);
    for link in judged.slice.links.iter().flatten().filter(|link| !is_cable(link.id)) {
        text += &format!("  virtual link {}\n", link_name(link.id));
    }
    text
}

/// Rows below their heading. Without rows: nothing.
fn with_heading(heading: Vec<String>, mut rows: Vec<Vec<String>>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    rows.insert(0, heading);
    indented(&rows)
}

fn indented(rows: &[Vec<String>]) -> String {
    aligned(rows).lines().map(|line| format!("  {line}\n")).collect()
}

fn one_value(judged: &Judged) -> Value {
    let mut value = json!({
        "name": judged.slice.name,
        "line": judged.slice.line.0,
        "fits": judged.result.is_ok(),
        "isolation": isolation(judged),
        "tried": judged.tried,
    });
    match &judged.result {
        Ok(got) => {
            value["links_are_chosen"] = judged.is_chosen.into();
            value["switches"] = got.switches.iter().map(|it| Value::from(it.to_string())).collect();
            value["vnics"] = vnic_values(got);
            value["unshaped"] = unshaped(judged).into();
            value["links"] = link_values(got);
        }
        Err(Refused { why, fit }) => {
            value["why"] = why.as_str().into();
            if let Some(fit) = fit {
                value["would_fit"] = fit_value(fit);
            }
        }
    }
    value
}

fn vnic_values(got: &Got) -> Value {
    let vnics = got.vnics.iter().map(|vnic| {
        json!({
            "name": vnic.name,
            "port": vnic.at.to_string(),
            "nic": vnic.nic,
            "rate_bps": vnic.rate.bps(),
            "nic_left_bps": vnic.left.bps(),
        })
    });
    vnics.collect()
}

fn link_values(got: &Got) -> Value {
    let links = got.links.iter().map(|link| {
        json!({
            "id": link.id.to_string(),
            "worst_bps": link.worst.map(Bandwidth::bps),
            "left_bps": link.left.map(Bandwidth::bps),
        })
    });
    links.collect()
}

fn fit_value(fit: &Fit) -> Value {
    let rates = |all: &[(String, Bandwidth)]| -> Value {
        all.iter().map(|(name, rate)| json!({ "vnic": name, "rate_bps": rate.bps() })).collect()
    };
    let alone =
        fit.alone.iter().map(|(name, rate)| json!({ "vnic": name, "rate_bps": rate.map(Bandwidth::bps) }));
    json!({ "together": rates(&fit.together), "alone": alone.collect::<Value>() })
}
