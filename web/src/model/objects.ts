// The objects that the page shows, in the words of the glossary.
//
// They are what the REST interface sends (docs/reference/rest.md), checked by `api/decode.ts`. Nothing here is computed.

export type Annotations = Readonly<Record<string, string>>;
export type UpDown = 'up' | 'down';

export interface Switch {
  kind: 'switch';
  id: string;
  state: UpDown;
  openflow: string;
  nTables: number;
  nBuffers: number;
  description: Readonly<Record<string, string>>;
  sinceMs: number;
  annotations: Annotations;
}

export interface Port {
  kind: 'port';
  id: string;
  name: string;
  mac: string;
  live: boolean;
  enabled: boolean;
  speedKbps: number;
}

/** One direction of a link. */
export interface Link {
  kind: 'link';
  id: string;
  from: string;
  to: string;
  found: string;
  state: UpDown;
  capacityKbps: number;
  latencyUs: number | null;
  sinceMs: number;
}

export interface Host {
  kind: 'host';
  id: string;
  addresses: readonly string[];
  at: string;
  sinceMs: number;
  configured: boolean;
  annotations: Annotations;
}

export interface Intent {
  kind: 'intent';
  id: string;
  /** The name that its owner gave it, if any. */
  name: string;
  type: string;
  /** Hosts and connect points, in the order in which the intent names them. */
  ends: readonly string[];
  state: string;
  reason: string | null;
  owner: string;
  priority: number | null;
  protection: string | null;
  bandwidthKbps: number | null;
  sinceMs: number;
}

export interface Path {
  kind: 'path';
  id: string;
  intent: string;
  links: readonly string[];
  /** Of the ways of an intent: 0 is the first; between two hosts, 1 is the way back. */
  leg: number;
  role: 'working' | 'backup';
  latencyUs: number | null;
}

export type ViewObject = Switch | Port | Link | Host | Intent | Path;
export type Kind = ViewObject['kind'];

export interface Limit {
  resource: string;
  soft: number;
  hard: number;
}

export interface Sample {
  atMs: number;
  values: Readonly<Record<string, number>>;
}

export interface App {
  kind: 'app';
  id: string;
  role: 'app' | 'service';
  state: string;
  zoneKind: string;
  pid: number | null;
  restarts: number;
  sinceMs: number;
  lastEnd: string | null;
  events: number;
  dropped: number;
  commands: number;
  refusals: number;
  limits: readonly Limit[];
  samples: readonly Sample[];
}

export interface Incident {
  id: string;
  atMs: number;
  app: string;
  what: string;
  why: string;
  action: string;
}

/** What the node kept of an incident. */
export interface Evidence {
  /** Names and values, such as the exit code. */
  facts: readonly (readonly [string, string])[];
  /** The last lines that the process printed. */
  output: readonly string[];
  /** The log lines of the node before the incident. */
  log: readonly { atMs: number; line: string }[];
  /** What the app used before the incident. */
  samples: readonly Sample[];
}

export interface AuditRecord {
  id: string;
  atMs: number;
  who: string;
  what: string;
  /** The app or switch that it is about, if any. */
  about: string;
  detail: string;
  ok: boolean;
}

/** The counters of one port: frames and bits a second that it receives and sends. */
export interface Counters {
  id: string;
  atMs: number;
  rxBps: number;
  txBps: number;
  errors: number;
  dropped: number;
}

export interface NodeInfo {
  version: string;
  uptimeMs: number;
  role: string;
  name: string;
}

/** One step of a packet's way through a switch. */
export interface TraceStep {
  switch: string;
  inPort: string | null;
  table: number | null;
  rule: string;
  owner: string;
  action: string;
  outPort: string | null;
  packets: number | null;
  /** The intent that wants the rule, if one does. */
  intent: string | null;
  /** What it changes in the packet; empty if nothing. */
  rewrites: string;
  /** What an operator should know of this step. */
  notes: readonly string[];
}

export interface Trace {
  verdict: 'delivered' | 'dropped' | 'punted' | 'looped' | 'unknown';
  reason: string;
  steps: readonly TraceStep[];
  links: readonly string[];
}

/** What an operator can select. */
export interface Selection {
  kind: 'switch' | 'port' | 'link' | 'host' | 'intent' | 'app';
  id: string;
}

/** A slice of a tenant. Pairs are how many are up, and of how many. */
export interface Slice {
  id: string;
  state: string;
  switches: [number, number];
  connections: [number, number];
  rules: number;
  refused: number;
  flows: number | null;
  lastEnd: string | null;
  /** Why it does not fit, waits for the network, or is not judged yet, in the words of `burnet slice list`. */
  note: string | null;
  /** How many of its links lead over hops that do not carry what is promised. */
  unfit: number;
}

/** What all other slices leave of one direction of a link. */
export interface SliceLabel {
  link: string;
  capacityKbps: number;
  labelKbps: number;
}

/** What a VNIC is promised, and what its flows get: as measured, or their nominal rates where nobody meters. */
export interface SliceVnic {
  name: string;
  promisedBps: number;
  sendsBps: number;
  receivesBps: number;
  whyLess: string;
}

export interface SliceFlow {
  from: string;
  to: string;
  links: string[];
  counts: boolean;
  rateBps: number;
  /** What the meter of its receiver measured. Null: nobody meters it. */
  measuredBps: number | null;
  /** How its sender is shaped. Null: the slice has not said it. */
  shaped: string | null;
  /** What its sender may send, because a link is overbooked. */
  capBps: number | null;
}

/** The network that the tenant of a slice sees, by physical names: `of:0000000000000003`, and `of:0000000000000003/1` for a port. */
export interface SliceNetwork {
  switches: { id: string; shownAs: string; up: boolean }[];
  /** One direction of each. */
  links: { id: string; up: boolean; doesNotFit: string | null }[];
  /** The name of each VNIC, and its port. */
  vnics: [name: string, port: string][];
  /** Whether parts are left out. */
  cut: boolean;
}

export interface SliceDetail {
  id: string;
  /** Null: its process has not told it. */
  network: SliceNetwork | null;
  labels: SliceLabel[];
  stale: boolean;
  vnics: SliceVnic[];
  flows: SliceFlow[];
}
