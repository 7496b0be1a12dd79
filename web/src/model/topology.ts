// What can be computed from the model: cables, names, load, alerts. Pure functions.
//
// In: what is known, or tables of it. Out: values to draw. It keeps nothing.

import type { Known, Table } from './model.ts';
import type { App, Counters, Host, Intent, Link, Path, Switch } from './objects.ts';

/** A cable between two switches: one or two links. */
export interface Cable {
  /** The id of its first link. */
  id: string;
  a: string;
  b: string;
  /** From `a` to `b`, and back. */
  there: Link;
  back: Link | null;
  up: boolean;
}

/** `of:…/3` is the port 3 of a switch. */
export function switchOf(connectPoint: string): string {
  return connectPoint.slice(0, connectPoint.lastIndexOf('/'));
}

export function portOf(connectPoint: string): string {
  return connectPoint.slice(connectPoint.lastIndexOf('/') + 1);
}

export function reverseOf(link: Link): string {
  return `${link.to}-${link.from}`;
}

/** Each pair of opposite links once. */
export function cablesOf(links: Table<Link>): Cable[] {
  const cables: Cable[] = [];
  for (const link of links.values()) {
    const back = links.get(reverseOf(link)) ?? null;
    if (back && back.id < link.id) continue;
    const up = link.state === 'up' && back?.state !== 'down';
    cables.push({ id: link.id, a: switchOf(link.from), b: switchOf(link.to), there: link, back, up });
  }
  return cables;
}

/** The cable that a link is a direction of. */
export function cableId(links: Table<Link>, linkId: string): string {
  const link = links.get(linkId);
  if (!link) return linkId;
  const back = reverseOf(link);
  return links.has(back) && back < linkId ? back : linkId;
}

/** How full a link is, from 0 to 1; nothing if its capacity or its counters are unknown. */
export function loadOf(link: Link | null, counters: Table<Counters>): number | null {
  if (!link || link.capacityKbps === 0) return null;
  const sent = counters.get(link.from);
  return sent ? Math.min(1, sent.txBps / (link.capacityKbps * 1000)) : null;
}

export function switchName(sw: Switch | undefined, id: string): string {
  return sw?.annotations.name || shortId(id);
}

/** `of:00000000000000a2` becomes `s162`, as the number that operators give. */
export function shortId(id: string): string {
  const digits = id.startsWith('of:') ? id.slice(3) : id;
  const number = /^[0-9a-f]{1,16}$/i.test(digits) ? BigInt(`0x${digits}`) : null;
  return number !== null && number < 1_000_000n ? `s${number}` : id;
}

export function hostName(host: Host | undefined, id: string): string {
  return host?.annotations.name || host?.addresses.find((address) => !address.startsWith('fe80:')) || id;
}

/** `of:…1/3` becomes `Vienna 3`. */
export function placeName(model: Known, connectPoint: string): string {
  const id = switchOf(connectPoint);
  return `${switchName(model.switches.get(id), id)} ${portOf(connectPoint)}`;
}

export function linkName(model: Known, id: string): string {
  const link = model.links.get(id);
  return link ? `${placeName(model, link.from)} – ${placeName(model, link.to)}` : id;
}

/** The name of a host or connect point that an intent names as its end. */
export function endName(model: Known, end: string): string {
  return end.includes('/') ? placeName(model, end) : hostName(model.hosts.get(end), end);
}

export function intentName(model: Known, intent: Intent): string {
  const between = intent.type === 'host_to_host' ? ' ↔ ' : ' → ';
  return intent.ends.map((end) => endName(model, end)).join(between) || `Intent ${intent.id}`;
}

/** The paths of an intent. A way back over the same cables as the way there is left out. */
export function pathsOf(model: Known, intent: string): Path[] {
  const found = [...model.paths.values()].filter((path) => path.intent === intent).sort((x, y) => (x.id < y.id ? -1 : 1));
  const turned = ({ links }: Path) => links.map((id) => id.split('-').reverse().join('-')).reverse().join();
  return found.filter((path) => path.leg !== 1 || !found.some((other) => other.leg === 0 && other.role === path.role && other.links.join() === turned(path)));
}

/** The name of any object by its key, `kind/id`. */
export function nameOf(model: Known, key: string): string {
  const slash = key.indexOf('/');
  const id = key.slice(slash + 1);
  switch (key.slice(0, slash)) {
    case 'switch': return switchName(model.switches.get(id), id);
    case 'port': return placeName(model, id);
    case 'link': return linkName(model, id);
    case 'host': return hostName(model.hosts.get(id), id);
    case 'intent': {
      const intent = model.intents.get(id);
      return intent ? intentName(model, intent) : `Intent ${id}`;
    }
    default: return id;
  }
}

/** The switch where the end of an intent is. */
export function endSwitch(model: Known, end: string): string | null {
  if (end.includes('/')) return switchOf(end);
  const host = model.hosts.get(end);
  return host ? switchOf(host.at) : null;
}

export interface Counts {
  switches: [up: number, all: number];
  cables: [up: number, all: number];
  hosts: number;
  intents: [installed: number, all: number];
}

export function countsOf(model: Known, cables: readonly Cable[]): Counts {
  return {
    switches: [count(model.switches.values(), (sw) => sw.state === 'up'), model.switches.size],
    cables: [cables.filter((cable) => cable.up).length, cables.length],
    hosts: model.hosts.size,
    intents: [count(model.intents.values(), (intent) => intent.state === 'installed'), model.intents.size],
  };
}

function count<T>(items: Iterable<T>, test: (item: T) => boolean): number {
  let found = 0;
  for (const item of items) if (test(item)) found += 1;
  return found;
}

export interface Alert {
  key: string;
  severity: 'high' | 'medium';
  title: string;
  detail: string;
  /** 0: not known. */
  sinceMs: number;
}

/** A link above this share of its capacity is an alert. */
export const HOT = 0.9;

/** What is wrong now, the worst first. It ends by itself when its cause ends. */
export function alertsOf(model: Known, cables: readonly Cable[], apps: readonly App[]): Alert[] {
  const alerts = [...switchAlerts(model), ...linkAlerts(model, cables), ...intentAlerts(model), ...appAlerts(apps)];
  return alerts.sort((x, y) => rankOf(x) - rankOf(y) || y.sinceMs - x.sinceMs);
}

/** A disconnected switch comes first: it is the cause of what its links and intents report. */
function rankOf({ key, severity }: Alert): number {
  if (severity !== 'high') return 2;
  return key.startsWith('switch/') ? 0 : 1;
}

function* switchAlerts(model: Known): Generator<Alert> {
  for (const sw of model.switches.values()) {
    if (sw.state === 'up') continue;
    const title = `Switch ${switchName(sw, sw.id)} is disconnected`;
    yield { key: `switch/${sw.id}`, severity: 'high', title, detail: 'It has no session with this node.', sinceMs: sw.sinceMs };
  }
}

function* linkAlerts(model: Known, cables: readonly Cable[]): Generator<Alert> {
  for (const cable of cables) {
    if (cable.up) continue;
    const failed = cable.there.state === 'down' ? cable.there : cable.back!;
    yield { key: `link/${cable.id}`, severity: 'high', title: `Link ${cableName(model, cable)} is down`, detail: 'No frames pass.', sinceMs: failed.sinceMs };
  }
  const load = (cable: Cable) => Math.max(loadOf(cable.there, model.counters) ?? 0, loadOf(cable.back, model.counters) ?? 0);
  const full = cables.map((cable) => ({ cable, load: load(cable) })).filter((one) => one.cable.up && one.load >= HOT);
  const worst = full.reduce((x, y) => (y.load > x.load ? y : x), full[0]!);
  if (!worst) return;
  const title = full.length === 1 ? `Link ${cableName(model, worst.cable)} is almost full` : `${full.length} links are almost full`;
  const detail = `${full.length === 1 ? 'It' : cableName(model, worst.cable)} carries ${Math.round(worst.load * 100)} % of its capacity.`;
  yield { key: `link/${worst.cable.id}`, severity: 'medium', title, detail, sinceMs: 0 };
}

export function cableName(model: Known, { a, b }: Cable): string {
  return `${switchName(model.switches.get(a), a)} – ${switchName(model.switches.get(b), b)}`;
}

function* intentAlerts(model: Known): Generator<Alert> {
  for (const intent of model.intents.values()) {
    if (intent.state !== 'failed' && intent.state !== 'waiting') continue;
    const title = `Intent ${intentName(model, intent)} ${intent.state === 'failed' ? 'failed' : 'has no path'}`;
    yield { key: `intent/${intent.id}`, severity: 'high', title, detail: intent.reason ?? 'No reason is known.', sinceMs: intent.sinceMs };
  }
}

const STOPPED = new Map([
  ['quarantined', 'It stays stopped until you restart it.'],
  ['refused', 'Its package failed verification.'],
  ['backing off', 'It failed, and the node restarts it soon.'],
]);

function* appAlerts(apps: readonly App[]): Generator<Alert> {
  for (const app of apps) {
    const stopped = STOPPED.get(app.state);
    const key = `app/${app.id}`;
    if (stopped) {
      yield { key, severity: 'high', title: `App ${app.id} is ${app.state}`, detail: app.lastEnd ?? stopped, sinceMs: app.sinceMs };
    }
    for (const { resource, used, soft } of aboveSoft(app)) {
      const detail = `It uses ${Math.round((used / soft) * 100)} % of its soft limit.`;
      yield { key, severity: 'medium', title: `App ${app.id} uses much ${resource}`, detail, sinceMs: 0 };
    }
  }
}

function aboveSoft(app: App): { resource: string; used: number; soft: number }[] {
  const values = app.samples.at(-1)?.values ?? {};
  return app.limits.flatMap(({ resource, soft }) => {
    const used = usedOf(values, resource);
    return used !== null && soft > 0 && used > soft ? [{ resource, used, soft }] : [];
  });
}

/** The value of a sample that a limit is about: the limit `memory` is about the value `memory_bytes`. */
export function usedOf(values: Readonly<Record<string, number>>, resource: string): number | null {
  const name = resource in values ? resource : Object.keys(values).find((key) => key.startsWith(`${resource}_`));
  return name === undefined ? null : (values[name] ?? null);
}
