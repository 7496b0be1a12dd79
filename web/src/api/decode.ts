// From JSON of the REST interface to the page's objects.
//
// In: any JSON. Out: an object whose every member has its type, or nothing if the JSON is no such object. A missing member gets
// a neutral value, because an older node may not send it. It never throws.

import type { StreamEvent } from '../model/model.ts';
import type { App, AuditRecord, Counters, Evidence, Host, Incident, Intent, Link, NodeInfo, Path, Port, Sample, Slice, SliceFlow, SliceLabel, SliceNetwork, SliceVnic, Switch, Trace, TraceStep, ViewObject } from '../model/objects.ts';

type Json = Record<string, unknown>;

const object = (value: unknown): Json => (typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {});
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const text = (value: unknown, otherwise = ''): string => (typeof value === 'string' ? value : typeof value === 'number' ? String(value) : otherwise);
const number = (value: unknown, otherwise = 0): number => (typeof value === 'number' && Number.isFinite(value) ? value : otherwise);
const numberOrNull = (value: unknown): number | null => (typeof value === 'number' && Number.isFinite(value) ? value : null);
const textOrNull = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);
const texts = (value: unknown): string[] => list(value).filter((item): item is string => typeof item === 'string');

function textMap(value: unknown): Record<string, string> {
  return Object.fromEntries(Object.entries(object(value)).filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
}

export function decodeObject(value: unknown): ViewObject | null {
  const from = object(value);
  const id = text(from.id);
  if (id === '') return null;
  switch (from.kind) {
    case 'switch': return decodeSwitch(id, from);
    case 'port': return decodePort(id, from);
    case 'link': return decodeLink(id, from);
    case 'host': return decodeHost(id, from);
    case 'intent': return decodeIntent(id, from);
    case 'path': return decodePath(id, from);
    default: return null;
  }
}

function decodeSwitch(id: string, from: Json): Switch {
  return {
    kind: 'switch', id, state: from.state === 'down' ? 'down' : 'up', openflow: text(from.openflow), nTables: number(from.n_tables),
    nBuffers: number(from.n_buffers), description: textMap(from.description), sinceMs: number(from.since_ms), annotations: textMap(from.annotations),
  };
}

function decodePort(id: string, from: Json): Port {
  return {
    kind: 'port', id, name: text(from.name), mac: text(from.mac), live: from.live !== false, enabled: from.enabled !== false,
    speedKbps: number(from.speed_kbps),
  };
}

function decodeLink(id: string, from: Json): Link | null {
  const [start, end, more] = id.split('-');
  if (!start || !end || more !== undefined) return null;
  return {
    kind: 'link', id, from: start, to: end, found: text(from.found), state: from.state === 'down' ? 'down' : 'up',
    capacityKbps: number(from.capacity_kbps), latencyUs: numberOrNull(from.latency_us), sinceMs: number(from.since_ms),
  };
}

function decodeHost(id: string, from: Json): Host | null {
  const at = text(from.at);
  if (at === '') return null;
  return {
    kind: 'host', id, addresses: texts(from.addresses), at, sinceMs: number(from.since_ms), configured: from.configured === true,
    annotations: textMap(from.annotations),
  };
}

function decodeIntent(id: string, from: Json): Intent {
  return {
    kind: 'intent', id, name: text(from.name), type: text(from.type), ends: intentEnds(from), state: text(from.state, 'requested'), reason: textOrNull(from.reason),
    owner: text(from.owner), priority: numberOrNull(from.priority), protection: textOrNull(from.protection),
    bandwidthKbps: numberOrNull(object(from.constraints).bandwidth_kbps), sinceMs: number(from.since_ms),
  };
}

/** Intents of all types name their ends in members of these names, each one end or a list. */
function intentEnds(from: Json): string[] {
  const named = ['one', 'two', 'from', 'to'].flatMap((member) => (typeof from[member] === 'string' ? [from[member] as string] : texts(from[member])));
  return named.filter((end) => end !== '');
}

/** The id of a path is `7.0`: the intent and the leg; `7.0b` is the backup. */
function decodePath(id: string, from: Json): Path {
  const [, leg = '0', backup = ''] = /\.(\d+)(b?)$/.exec(id) ?? [];
  return {
    kind: 'path', id, intent: text(from.intent, id.split('.')[0]), links: texts(from.links), leg: Number(leg), role: backup ? 'backup' : 'working',
    latencyUs: numberOrNull(from.latency_us),
  };
}

export function decodeCounters(value: unknown): Counters | null {
  const from = object(value);
  const id = text(from.id);
  if (id === '') return null;
  return {
    id, atMs: number(from.at_ms), rxBps: number(from.rx_bps), txBps: number(from.tx_bps),
    errors: number(from.rx_errors) + number(from.tx_errors), dropped: number(from.rx_dropped) + number(from.tx_dropped),
  };
}

export function decodeApp(value: unknown): App | null {
  const from = object(value);
  const id = text(from.id);
  if (id === '') return null;
  return {
    kind: 'app', id, role: from.role === 'service' ? 'service' : 'app', state: text(from.state).replaceAll('_', ' '), zoneKind: text(from.zone_kind),
    pid: numberOrNull(from.pid), restarts: number(from.restarts), sinceMs: number(from.since_ms), lastEnd: textOrNull(from.last_end),
    events: number(from.events), dropped: number(from.dropped), commands: number(from.commands), refusals: number(from.refusals),
    limits: list(from.limits).map(object).map((limit) => ({ resource: text(limit.resource), soft: number(limit.soft), hard: number(limit.hard) })),
    samples: list(from.samples).map(decodeSample),
  };
}

function decodeSample(value: unknown): Sample {
  const { unix_ms, ...rest } = object(value);
  return { atMs: number(unix_ms), values: Object.fromEntries(Object.entries(rest).map(([name, used]) => [name, number(used)])) };
}

/** What happened, in the words of `burnet incidents`. */
const INCIDENTS: Record<string, string> = {
  app_ended: 'ended', zone_fault: 'was ended for a fault', demoted: 'lost its trust', quarantined: 'is quarantined', refused: 'was refused',
  kernel_ended: 'The kernel process ended', node_restarted: 'The node restarted', safe_mode: 'The node is in safe mode', process_error: 'The node gave up',
};

export function decodeIncident(value: unknown): Incident | null {
  const from = object(value);
  const atMs = number(from.unix_ms);
  const app = text(from.app);
  const words = INCIDENTS[text(from.what)] ?? text(from.what).replaceAll('_', ' ');
  // What services report is about the network: the sentence needs no app as its subject.
  const isOfNode = text(from.source, 'monitor') === 'monitor';
  const what = isOfNode && app !== '' ? `App ${app} ${words}` : words.charAt(0).toUpperCase() + words.slice(1);
  const why = [text(from.reason), text(object(from.finding).sentence)].filter((part) => part !== '').join('. ');
  return { id: text(from.id, text(from.number, `${atMs}`)), atMs, app, what, why, action: text(from.then) };
}

export function decodeEvidence(value: unknown): Evidence {
  const from = object(value);
  const [code, signal, called] = [numberOrNull(from.exit_code), numberOrNull(from.signal), texts(from.called)];
  const facts: [string, string][] = [];
  if (code !== null) facts.push(['Exit code', String(code)]);
  if (signal !== null) facts.push(['Signal', `${signal}${from.core_dumped === true ? ', a core dump was left' : ''}`]);
  if (called.length > 0) facts.push(['Called by the kernel', called.join(', ')]);
  // What a service published about the network: any members.
  for (const [name, detail] of Object.entries(object(from.details))) facts.push([name.replaceAll('_', ' '), typeof detail === 'string' ? detail : JSON.stringify(detail)]);
  const log = list(from.log).map(object).map((line) => ({ atMs: number(line.unix_ms), line: text(line.line) }));
  return { facts, output: texts(from.last_lines), log, samples: list(from.samples).map(decodeSample) };
}

/** Records of what was not allowed (docs/reference/audit.md). */
const REFUSALS = new Set(['refused', 'denied', 'switch_refused', 'switch_cut_off', 'package_refused']);

export function decodeAudit(value: unknown): AuditRecord | null {
  const from = object(value);
  const what = text(from.what);
  if (what === '') return null;
  const times = number(from.count, 1);
  const detail = [text(from.capability), text(from.text), times > 1 ? `${times} times` : ''].filter((part) => part !== '').join(' · ');
  const about = text(from.app) || text(from.switch);
  return { id: text(from.line), atMs: number(from.unix_ms), who: text(from.who), what, about, detail, ok: !REFUSALS.has(what) };
}

export function decodeNode(value: unknown): NodeInfo {
  const from = object(value);
  return { version: text(from.version), uptimeMs: number(from.uptime_ms), role: text(from.role, 'viewer'), name: text(from.name) };
}

const VERDICTS = ['delivered', 'dropped', 'punted', 'looped', 'unknown'] as const;

export function decodeTrace(value: unknown): Trace {
  const from = object(value);
  const verdict = VERDICTS.find((known) => known === from.verdict) ?? 'unknown';
  return { verdict, reason: text(from.reason), steps: list(from.steps).map(decodeStep), links: texts(from.links) };
}

function decodeStep(value: unknown): TraceStep {
  const from = object(value);
  return {
    switch: text(from.switch), inPort: textOrNull(text(from.in_port)), table: numberOrNull(from.table), rule: text(from.rule),
    owner: text(from.owner), action: text(from.action), outPort: textOrNull(text(from.out_port)), packets: numberOrNull(from.packets),
    intent: textOrNull(text(from.intent)), rewrites: text(from.rewrites), notes: texts(from.notes),
  };
}

/** One message of the stream. Messages that a newer node sends and this page does not know are nothing. */
export function decodeEvent(value: unknown, nowMs: number): StreamEvent | null {
  const from = object(value);
  switch (from.event) {
    case 'begin': return { event: 'begin' };
    case 'complete': return { event: 'complete' };
    case 'missed': return { event: 'missed', count: number(from.count) };
    case 'remove': return { event: 'remove', key: text(from.key), atMs: number(from.at_ms, nowMs) };
    case 'counters': return { event: 'counters', items: present(list(from.items).map(decodeCounters)), atMs: number(from.at_ms, nowMs) };
    case 'incident': {
      const incident = decodeIncident(from.incident);
      return incident && { event: 'incident', incident };
    }
    case 'put': {
      const put = decodeObject(from.object);
      return put && { event: 'put', object: put, atMs: number(from.at_ms, nowMs) };
    }
    default: return null;
  }
}

export function present<T>(items: readonly (T | null)[]): T[] {
  return items.filter((item): item is T => item !== null);
}

export function decodeSlice(value: unknown): Slice | null {
  const from = object(value);
  const id = text(from.id);
  if (id === '') return null;
  const pair = (name: string): [number, number] => [number(from[`${name}_up`]), number(from[name])];
  return {
    id, state: text(from.state), switches: pair('switches'), connections: pair('connections'), rules: number(from.rules), refused: number(from.refused_total),
    flows: numberOrNull(from.flows), lastEnd: textOrNull(from.last_end), note: textOrNull(from.note), unfit: number(from.links_unfit),
  };
}

export function decodeSliceNetwork(value: unknown): SliceNetwork | null {
  const from = object(value);
  if (!Array.isArray(from.switches)) return null;
  const named = (list: unknown) => (Array.isArray(list) ? list : []).map(object).filter(({ id }) => text(id) !== '');
  return {
    switches: named(from.switches).map((it) => ({ id: text(it.id), shownAs: text(it.shown_as), up: it.up === true })),
    links: named(from.links).map((it) => ({ id: text(it.id), up: it.up === true, doesNotFit: textOrNull(it.does_not_fit) })),
    vnics: Object.entries(object(from.vnics)).map(([name, port]) => [name, text(port)]),
    cut: from.cut === true,
  };
}

export function decodeSliceLabel(value: unknown): SliceLabel | null {
  const from = object(value);
  const link = text(from.link);
  return link === '' ? null : { link, capacityKbps: number(from.capacity_kbps), labelKbps: number(from.label_kbps) };
}

export function decodeSliceVnic(value: unknown): SliceVnic | null {
  const from = object(value);
  const name = text(from.vnic);
  if (name === '') return null;
  return { name, promisedBps: number(from.promised_bps), sendsBps: number(from.sends_bps), receivesBps: number(from.receives_bps), whyLess: text(from.why_less) };
}

export function decodeSliceFlow(value: unknown): SliceFlow | null {
  const from = object(value);
  const [start, end] = [text(from.from), text(from.to)];
  if (start === '' || end === '') return null;
  return { from: start, to: end, links: texts(from.links), counts: from.counts === true, rateBps: number(from.rate_bps), measuredBps: numberOrNull(from.measured_bps), shaped: textOrNull(from.shaped), capBps: numberOrNull(from.cap_bps) };
}
