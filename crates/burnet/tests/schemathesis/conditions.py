"""Conditions between the members of a request, which a JSON Schema cannot say.

In: a request that schemathesis has made by the schema. Out: the same request, changed so that its members fit each other. Each condition is in
the description of its schema, and in OpenFlow 1.3.5 where one is named. Requests that are wrong on purpose stay as they are.
"""

import json

import schemathesis

# The packets of OpenFlow 1.3.5, 7.2.3.8: what a field needs beside it.
IP, IPV4, IPV6 = ("eth_type", (0x0800, 0x86DD)), ("eth_type", (0x0800,)), ("eth_type", (0x86DD,))
ARP, MPLS, PBB = ("eth_type", (0x0806,)), ("eth_type", (0x8847, 0x8848)), ("eth_type", (0x88E7,))
NEEDS = {
    "ip_dscp": [IP], "ip_ecn": [IP], "ip_proto": [IP], "ipv4_src": [IPV4], "ipv4_dst": [IPV4],
    "tcp_src": [IP, ("ip_proto", (6,))], "tcp_dst": [IP, ("ip_proto", (6,))],
    "udp_src": [IP, ("ip_proto", (17,))], "udp_dst": [IP, ("ip_proto", (17,))],
    "sctp_src": [IP, ("ip_proto", (132,))], "sctp_dst": [IP, ("ip_proto", (132,))],
    "icmpv4_type": [IPV4, ("ip_proto", (1,))], "icmpv4_code": [IPV4, ("ip_proto", (1,))],
    **{name: [ARP] for name in ("arp_op", "arp_spa", "arp_tpa", "arp_sha", "arp_tha")},
    **{name: [IPV6] for name in ("ipv6_src", "ipv6_dst", "ipv6_flabel", "ipv6_exthdr")},
    "icmpv6_type": [IPV6, ("ip_proto", (58,))], "icmpv6_code": [IPV6, ("ip_proto", (58,))],
    "ipv6_nd_target": [IPV6, ("ip_proto", (58,)), ("icmpv6_type", (135, 136))],
    "ipv6_nd_sll": [IPV6, ("ip_proto", (58,)), ("icmpv6_type", (135,))],
    "ipv6_nd_tll": [IPV6, ("ip_proto", (58,)), ("icmpv6_type", (136,))],
    "mpls_label": [MPLS], "mpls_tc": [MPLS], "mpls_bos": [MPLS], "pbb_isid": [PBB],
}

# The names and values of all notes have fewer bytes than the node keeps.
NOTES_BYTES_MAX = 2_000


def number(value):
    try:
        return value if isinstance(value, int) else int(value, 0)
    except ValueError:
        return None


def fit_match(match):
    """Leaves out masks, and fields that lack another one."""
    for name, value in match.items():
        if isinstance(value, str) and "/" in value:
            match[name] = value.split("/")[0]
    # A tag has the bit OFPVID_PRESENT, and without it the whole value is zero (7.2.3.7).
    if number(match.get("vlan_vid", 0)):
        match["vlan_vid"] = number(match["vlan_vid"]) | 0x1000
    while True:
        lacking = [name for name in match if not all(number(match.get(needed, "")) in values for needed, values in NEEDS.get(name, []))]
        # A priority of a VLAN needs a tag, and in_phy_port needs in_port.
        if "vlan_pcp" in match and not (number(match.get("vlan_vid", 0)) or 0) & 0x1000:
            lacking.append("vlan_pcp")
        if "in_phy_port" in match and "in_port" not in match:
            lacking.append("in_phy_port")
        if not lacking:
            return
        for name in set(lacking):
            del match[name]


def switch(text):
    """The number of a datapath id."""
    text = text.lower()
    for start in ("of:", "0x"):
        if text.startswith(start):
            return int(text[len(start):], 16)
    return int(text.replace(":", ""), 16) if ":" in text or len(text) == 16 else int(text)


def once(items, key):
    """The first item with each key."""
    return list({key(item): item for item in reversed(items)}.values())[::-1]


def port(text):
    at, number = text.rsplit("/", 1)
    return switch(at), int(number)


def fit_intent(body):
    fit_match(body.get("selector", {}))
    fit_notes(body)
    kind, wanted = body["type"], body.get("constraints", {})
    avoided = {switch(it) for it in wanted.get("avoid_switches", [])}
    if body.get("protection") == "protected":
        wanted.pop("via", None)
    elif "via" in wanted:
        wanted["via"] = [it for it in wanted["via"] if switch(it) not in avoided]
    if kind == "host_to_host":
        # Another host in the same VLAN.
        one = body["one"]
        body["two"] = ("02" if one[:2] != "02" else "04") + one[2:]
        return
    several = {"multi_to_single": "from", "single_to_multi": "to"}.get(kind)
    if several:
        single = body["to" if several == "from" else "from"]
        others = [it for it in once(body[several], port) if port(it) != port(single)]
        body[several] = others or [f"{switch(single.rsplit('/', 1)[0]) ^ 1:#x}/1"]
        return
    if kind == "explicit":
        body["links"] = []
        body["to"] = f"{body['from'].rsplit('/', 1)[0]}/{port(body['from'])[1] % 99 + 1}"
    elif port(body["from"]) == port(body["to"]):
        body["to"] = f"{body['to'].rsplit('/', 1)[0]}/{port(body['to'])[1] % 99 + 1}"


def fit_notes(body):
    notes, used = body.get("annotations") or {}, 0
    for name in list(notes):
        used += len(name.encode()) + len((notes[name] or "").encode())
        if used > NOTES_BYTES_MAX:
            del notes[name]


def fit_set(body):
    for rule in body.get("rules", []):
        fit_match(rule.get("match", {}))
        rule["instructions"] = once(rule.get("instructions", []), lambda it: it["type"])
        if body.get("permanent", True):
            rule.pop("idle_timeout_s", None)
            rule.pop("hard_timeout_s", None)
    of_rule = lambda it: (switch(it["switch"]), it.get("table_id", 0), it["priority"], json.dumps(it.get("match", {}), sort_keys=True))
    body["rules"] = once(body["rules"], of_rule)
    for name, member in (("groups", "group_id"), ("meters", "meter_id")):
        if name in body:
            body[name] = once(body[name], lambda it, member=member: (switch(it["switch"]), it[member]))


FITTING = {
    ("POST", "/api/v1/hosts"): fit_notes,
    ("PATCH", "/api/v1/hosts/{id}"): fit_notes,
    ("POST", "/api/v1/intents"): fit_intent,
    ("PUT", "/api/v1/intents/{id}"): fit_intent,
    ("PUT", "/api/v1/rule-sets/{id}"): fit_set,
}


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.meta is not None and case.meta.generation.mode.is_negative:
        return
    fit = FITTING.get((case.method.upper(), case.operation.path))
    if fit and isinstance(case.body, dict):
        case.body = json.loads(json.dumps(case.body))
        fit(case.body)
    if case.operation.path == "/api/v1/explain":
        fit_question(case.query)


PACKETS = ["ip", "arp", "icmp,nw_ttl=7", "ip_dst=10.0.0.2,tcp_dst=80", "ipv6_src=fe80::1,udp_src=53", "dl_vlan=5", "eth_type=0x88cc", ""]


def fit_question(query):
    """A packet is written in the syntax of ovs-ofctl. It enters at one place, and only two hosts need no packet."""
    query["packet"] = PACKETS[sum(query.get("packet", "").encode()) % len(PACKETS)]
    if "from" in query:
        query.pop("at", None)
    else:
        query.setdefault("at", "1/1")
