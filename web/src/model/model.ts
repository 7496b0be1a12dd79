// What the page knows of the network: a pure reducer over the events of the stream.
//
//   batch of events ──→ reduce(model, batch) ──→ the next model
//
// In: a model and events in their order. Out: a new model; tables that no event touched are the same objects, so that a
// comparison by identity finds what changed. It reads no clock, and sends and draws nothing.

import type { Counters, Incident, Kind, ViewObject, Switch, Port, Link, Host, Intent, Path } from './objects.ts';

export type Table<T> = ReadonlyMap<string, T>;

/** The objects of the network. */
export interface Tables {
  switches: Table<Switch>;
  ports: Table<Port>;
  links: Table<Link>;
  hosts: Table<Host>;
  intents: Table<Intent>;
  paths: Table<Path>;
}

/** What the page draws. */
export interface Known extends Tables {
  /** By port. */
  counters: Table<Counters>;
}

export interface Model extends Known {
  /** A snapshot under way. The tables above stay as they were until it is complete, so the page never shows half a network. */
  pending: Tables | null;
  /** Bits a second that all ports together send: now, and one value for each round of counters. */
  totalBps: number;
  traffic: readonly { atMs: number; bps: number }[];
  /** The last changes, newest last. */
  changes: readonly Change[];
  incidents: readonly Incident[];
  /** Whether the snapshot of the present stream is complete. */
  synced: boolean;
  /** How many changes the service left out because the page was too slow. */
  missed: number;
}

export interface Change {
  atMs: number;
  /** `kind/id` */
  key: string;
  text: string;
  tone: 'good' | 'bad' | 'plain';
}

export type StreamEvent =
  | { event: 'begin' }
  | { event: 'put'; object: ViewObject; atMs: number }
  | { event: 'remove'; key: string; atMs: number }
  | { event: 'complete' }
  | { event: 'counters'; items: readonly Counters[]; atMs: number }
  | { event: 'incident'; incident: Incident }
  | { event: 'missed'; count: number };

/** Enough for the last minutes of a network that flaps. Older changes are dropped; the server keeps its own log. */
export const CHANGES_MAX = 500;
/** What the incident list holds. Older ones are dropped. */
export const INCIDENTS_MAX = 200;
/** Ten minutes of totals at one a five seconds. Older ones are dropped. */
export const TRAFFIC_MAX = 120;

const TABLES = {
  switch: 'switches',
  port: 'ports',
  link: 'links',
  host: 'hosts',
  intent: 'intents',
  path: 'paths',
} as const satisfies Record<Kind, keyof Tables>;

function emptyTables(): Tables {
  return { switches: new Map(), ports: new Map(), links: new Map(), hosts: new Map(), intents: new Map(), paths: new Map() };
}

export function emptyModel(): Model {
  const lists = { traffic: [], changes: [], incidents: [] };
  return { ...emptyTables(), ...lists, pending: null, counters: new Map(), totalBps: 0, synced: false, missed: 0 };
}

export function reduce(model: Model, batch: readonly StreamEvent[]): Model {
  if (batch.length === 0) return model;
  const draft = new Draft(model);
  for (const event of batch) draft.apply(event);
  return draft.finish();
}

/** The next model under construction. It copies a table at the first change to it. */
class Draft {
  private next: Model;
  private tables: Tables;
  private counters: Map<string, Counters> | null = null;
  private owned = new Set<keyof Tables>();
  private changes: Change[] = [];

  constructor(model: Model) {
    this.next = { ...model };
    this.tables = { ...(model.pending ?? tablesOf(model)) };
  }

  apply(event: StreamEvent): void {
    switch (event.event) {
      case 'begin':
        this.settle();
        this.next.pending = this.tables = emptyTables();
        this.next.synced = false;
        return;
      case 'complete':
        // The tables under construction become the ones to show.
        this.next.pending = null;
        this.next.synced = true;
        return;
      case 'put':
        return this.put(event.object, event.atMs);
      case 'remove':
        return this.remove(event.key, event.atMs);
      case 'counters':
        return this.count(event.items, event.atMs);
      case 'incident':
        this.next.incidents = [...this.next.incidents, event.incident].slice(-INCIDENTS_MAX);
        return;
      case 'missed':
        this.next.missed += event.count;
        return;
    }
  }

  finish(): Model {
    this.settle();
    if (this.changes.length > 0) this.next.changes = [...this.next.changes, ...this.changes].slice(-CHANGES_MAX);
    return this.next;
  }

  /** Puts the tables under construction where they belong. */
  private settle(): void {
    if (this.next.pending) this.next.pending = this.tables;
    else Object.assign(this.next, this.tables);
    this.owned.clear();
  }

  private put(object: ViewObject, atMs: number): void {
    const table = this.table(TABLES[object.kind]);
    const before = table.get(object.id);
    table.set(object.id, object);
    // A snapshot brings what was there before, not what happened.
    const change = this.next.pending ? null : describe(before, object);
    if (change) this.changes.push({ atMs, key: `${object.kind}/${object.id}`, ...change });
  }

  private remove(key: string, atMs: number): void {
    const slash = key.indexOf('/');
    const kind = key.slice(0, slash);
    if (!isKind(kind)) return;
    const gone = this.table(TABLES[kind]).delete(key.slice(slash + 1));
    if (!gone || this.next.pending || !LOGGED.has(kind)) return;
    this.changes.push(kind === 'intent' ? { atMs, key, text: 'withdrawn', tone: 'plain' } : { atMs, key, text: 'removed', tone: 'bad' });
  }

  private count(items: readonly Counters[], atMs: number): void {
    this.counters ??= new Map(this.next.counters);
    let bps = this.next.totalBps;
    for (const item of items) {
      bps += item.txBps - (this.counters.get(item.id)?.txBps ?? 0);
      this.counters.set(item.id, item);
    }
    this.next.counters = this.counters;
    this.next.totalBps = bps;
    const last = this.next.traffic.at(-1);
    // Counters of many switches within a short time are one point of the total.
    const same = last !== undefined && atMs - last.atMs < TRAFFIC_STEP_MS;
    const before = same ? this.next.traffic.slice(0, -1) : this.next.traffic;
    this.next.traffic = [...before, { atMs: same ? last.atMs : atMs, bps }].slice(-TRAFFIC_MAX);
  }

  private table(name: keyof Tables): Map<string, ViewObject> {
    if (!this.owned.has(name)) {
      this.tables = { ...this.tables, [name]: new Map(this.tables[name] as Table<ViewObject>) };
      this.owned.add(name);
    }
    return this.tables[name] as Map<string, ViewObject>;
  }
}

function tablesOf({ switches, ports, links, hosts, intents, paths }: Model): Tables {
  return { switches, ports, links, hosts, intents, paths };
}

/** Shorter than the time between two rounds of counters, longer than one round. */
const TRAFFIC_STEP_MS = 2000;

/** The kinds whose removal an operator wants to read of. Ports and paths go with their switches and intents. */
const LOGGED = new Set(['switch', 'link', 'host', 'intent']);

function isKind(text: string): text is Kind {
  return Object.hasOwn(TABLES, text);
}

/** What happened to an object, in words; nothing if only details changed. */
export function describe(before: ViewObject | undefined, after: ViewObject): Pick<Change, 'text' | 'tone'> | null {
  switch (after.kind) {
    case 'switch':
    case 'link':
      return describeState(before as Switch | Link | undefined, after);
    case 'port': {
      if (!before || (before as Port).live === after.live) return null;
      return after.live ? { text: 'is live', tone: 'good' } : { text: 'lost its signal', tone: 'bad' };
    }
    case 'host':
      if (!before) return { text: `appeared at ${after.at}`, tone: 'plain' };
      return (before as Host).at === after.at ? null : { text: `moved to ${after.at}`, tone: 'plain' };
    case 'intent':
      return describeIntent(before as Intent | undefined, after);
    case 'path':
      return null;
  }
}

function describeState(before: Switch | Link | undefined, after: Switch | Link): Pick<Change, 'text' | 'tone'> | null {
  if (before?.state === after.state) return null;
  if (after.state === 'down') return { text: after.kind === 'switch' ? 'disconnected' : 'failed', tone: 'bad' };
  if (!before) return { text: after.kind === 'switch' ? 'connected' : 'found', tone: 'good' };
  return { text: after.kind === 'switch' ? 'connected again' : 'is up again', tone: 'good' };
}

function describeIntent(before: Intent | undefined, after: Intent): Pick<Change, 'text' | 'tone'> | null {
  if (before?.state === after.state) return null;
  const reason = after.reason ? `: ${after.reason}` : '';
  return { text: `${after.state}${reason}`, tone: intentTone(after.state) };
}

export function intentTone(state: string): Change['tone'] {
  if (state === 'installed') return 'good';
  return state === 'failed' || state === 'waiting' ? 'bad' : 'plain';
}
