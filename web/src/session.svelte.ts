// What the page shows now, and what the operator can do: the one place that acts.
//
//   stream ──→ reduce ──→ model ──→ components ──→ actions of this session ──→ requests
//                                      └── selection, view, drawing: also here
//
// In: events of the stream, actions of components. Out: state that components read. A component never changes this state by itself.

import { setToken, request, items, sentenceOf, Problem } from './api/client.ts';
import { decodeApp, decodeAudit, decodeEvidence, decodeIncident, decodeNode, decodeObject, decodeSlice, decodeSliceFlow, decodeSliceLabel, decodeSliceNetwork, decodeSliceVnic, decodeTrace, present } from './api/decode.ts';
import { follow, type Connection } from './api/events.ts';
import { addressOf, parseAddress, type View } from './address.ts';
import { emptyModel, reduce, type Known, type StreamEvent } from './model/model.ts';
import { alertsOf, cablesOf, countsOf, endName, endSwitch, intentName } from './model/topology.ts';
import type { App, AuditRecord, Evidence, Incident, Intent, NodeInfo, Selection, Slice, SliceDetail, Trace } from './model/objects.ts';

export interface Drawing {
  purpose: 'intent' | 'trace';
  first: string | null;
  protection: 'restored' | 'protected';
  bandwidthMbps: number | null;
}

export interface Toast {
  id: number;
  text: string;
  tone: 'good' | 'bad' | 'plain';
  action: { label: string; run: () => void } | null;
}

export type Theme = 'dark' | 'light';

const THEME = 'burnet.theme';
/** Apps are asked for this often; the stream does not carry them. */
const APPS_EVERY_MS = 2000;
/** Nobody sees a load change more often. */
const COUNTERS_EVERY_MS = 500;
const NODE_EVERY_MS = 10_000;
const TOAST_MS = 7000;
/** More than these would cover the page. The oldest goes. */
const TOASTS_MAX = 4;

class Session {
  model = $state.raw(emptyModel());
  connection = $state.raw<Connection>({ state: 'connecting' });
  node = $state.raw<NodeInfo | null>(null);
  apps = $state.raw<readonly App[]>([]);
  appsProblem = $state<string | null>(null);
  view = $state<View>('network');
  selected = $state.raw<Selection | null>(null);
  drawing = $state.raw<Drawing | null>(null);
  trace = $state.raw<(Trace & { ends: [string, string] }) | null>(null);
  toasts = $state.raw<readonly Toast[]>([]);
  overlay = $state<'help' | 'search' | null>(null);
  theme = $state<Theme>('dark');
  /** Counts up when the map should move to the selection. */
  reveal = $state(0);

  // Each table by itself: who reads one is not disturbed by changes of the others.
  switches = $derived(this.model.switches);
  ports = $derived(this.model.ports);
  links = $derived(this.model.links);
  hosts = $derived(this.model.hosts);
  intents = $derived(this.model.intents);
  paths = $derived(this.model.paths);
  /** The counters as they are drawn: a little later than in the model, so that many small updates are one. */
  counters = $state.raw<Known['counters']>(new Map());
  known = $derived<Known>({
    switches: this.switches, ports: this.ports, links: this.links, hosts: this.hosts, intents: this.intents, paths: this.paths, counters: this.counters,
  });
  cables = $derived(cablesOf(this.links));
  counts = $derived(countsOf(this.known, this.cables));
  alerts = $derived(alertsOf(this.known, this.cables, this.apps));

  private stream: ReturnType<typeof follow> | null = null;
  private nextToast = 1;
  private countersDue: ReturnType<typeof setTimeout> | undefined;

  start(): void {
    const wished = localStorage.getItem(THEME);
    this.setTheme(wished === 'dark' || wished === 'light' ? wished : matchMedia('(prefers-color-scheme: light)').matches ? 'light' : 'dark');
    this.readAddress();
    addEventListener('hashchange', () => this.readAddress());
    this.connect();
    setInterval(() => void this.loadApps(), APPS_EVERY_MS);
    setInterval(() => void this.loadNode(), NODE_EVERY_MS);
  }

  private connect(): void {
    this.stream?.close();
    this.stream = follow({
      events: (batch) => this.onEvents(batch),
      connection: (connection) => this.onConnection(connection),
    });
  }

  private onEvents(batch: readonly StreamEvent[]): void {
    this.model = reduce(this.model, batch);
    if (this.model.counters === this.counters || this.countersDue) return;
    const wait = this.counters.size === 0 ? 0 : COUNTERS_EVERY_MS;
    this.countersDue = setTimeout(() => {
      this.countersDue = undefined;
      this.counters = this.model.counters;
    }, wait);
  }

  private onConnection(connection: Connection): void {
    const before = this.connection.state;
    this.connection = connection;
    if (connection.state === 'tenant') this.view = 'slices';
    if (connection.state !== 'live' || before === 'live') return;
    void this.loadNode();
    void this.loadApps();
  }

  retryNow(): void {
    this.stream?.retryNow();
  }

  unlock(token: string): void {
    setToken(token.trim());
    this.connect();
  }

  // --- What the operator looks at ---

  private readAddress(): void {
    const { view, selected } = parseAddress(location.hash);
    this.view = view;
    this.selected = selected;
    if (selected) this.reveal += 1;
  }

  private writeAddress(): void {
    const address = addressOf(this.view, this.selected);
    if (location.hash !== address) history.pushState(null, '', address);
  }

  show(view: View): void {
    this.view = view;
    this.writeAddress();
  }

  select(selected: Selection | null, options: { reveal?: boolean } = {}): void {
    this.selected = selected;
    if (selected) this.trace = null;
    if (options.reveal) this.reveal += 1;
    this.writeAddress();
  }

  /** Selects an object by its key, `kind/id`, and shows it on the map if it has a place there. */
  open(key: string): void {
    const slash = key.indexOf('/');
    const kind = key.slice(0, slash) as Selection['kind'];
    if (kind !== 'app') this.view = 'network';
    this.select({ kind, id: key.slice(slash + 1) }, { reveal: true });
  }

  setTheme(theme: Theme): void {
    this.theme = theme;
    document.documentElement.dataset.theme = theme;
  }

  switchTheme(): void {
    this.setTheme(this.theme === 'dark' ? 'light' : 'dark');
    localStorage.setItem(THEME, this.theme);
  }

  /** Escape: ends the innermost thing. */
  back(): void {
    if (this.overlay) this.overlay = null;
    else if (this.drawing) this.drawing = null;
    else if (this.trace) this.trace = null;
    else if (this.selected) this.select(null);
  }

  // --- Intents and traces ---

  draw(purpose: Drawing['purpose']): void {
    this.view = 'network';
    this.trace = null;
    this.select(null);
    this.drawing = { purpose, first: null, protection: 'restored', bandwidthMbps: null };
  }

  setDrawing(change: Partial<Drawing>): void {
    if (this.drawing) this.drawing = { ...this.drawing, ...change };
  }

  /** An end of the intent or trace that is being drawn: a host, or a connect point. */
  chooseEnd(end: string): void {
    const { drawing } = this;
    if (!drawing) return;
    if (drawing.first === null) return this.setDrawing({ first: end });
    if (drawing.first === end) return this.toast('Choose another host for the second end.', 'plain');
    this.drawing = null;
    if (drawing.purpose === 'intent') void this.addIntent(drawing, end);
    else void this.traceBetween(drawing.first, end);
  }

  private async addIntent({ first, protection, bandwidthMbps }: Drawing, second: string): Promise<void> {
    const [a, b] = [first!, second];
    const hosts = !a.includes('/') && !b.includes('/');
    const ends = hosts ? { type: 'host_to_host', one: a, two: b } : { type: 'point_to_point', from: this.placeOf(a), to: this.placeOf(b) };
    const constraints = bandwidthMbps ? { constraints: { bandwidth_kbps: Math.round(bandwidthMbps * 1000) } } : {};
    try {
      const added = decodeObject({ ...((await request('intents', { method: 'POST', body: { ...ends, ...constraints, protection } })) as object), kind: 'intent' });
      if (added?.kind !== 'intent') throw new Error('no intent in the answer');
      this.select({ kind: 'intent', id: added.id }, { reveal: true });
      const undo = { label: 'Withdraw', run: () => void this.withdraw(added) };
      this.toast(`Intent ${added.id} added: ${endName(this.model, a)} ↔ ${endName(this.model, b)}`, 'good', undo);
    } catch (error) {
      this.fault('The intent was not added', error);
    }
  }

  /** A connect point: the end itself, or where the host is. */
  private placeOf(end: string): string {
    return this.model.hosts.get(end)?.at ?? end;
  }

  async withdraw(intent: Intent): Promise<void> {
    try {
      await request(`intents/${intent.id}`, { method: 'DELETE' });
      if (this.selected?.kind === 'intent' && this.selected.id === intent.id) this.select(null);
      this.toast(`Intent ${intent.id} withdrawn: ${intentName(this.model, intent)}`, 'plain');
    } catch (error) {
      this.fault(`Intent ${intent.id} was not withdrawn`, error);
    }
  }

  /** The links of the way that the node would choose; nothing if there is none. */
  async routeBetween(from: string, to: string, signal: AbortSignal): Promise<string[]> {
    const answer = (await request(`routes?from=${encodeURIComponent(from)}&to=${encodeURIComponent(to)}`, { signal })) as { items?: { links?: string[] }[] };
    return answer.items?.[0]?.links ?? [];
  }

  private async traceBetween(from: string, to: string): Promise<void> {
    try {
      const answer = await request(`explain?from=${encodeURIComponent(from)}&to=${encodeURIComponent(to)}`);
      this.select(null);
      this.trace = { ...decodeTrace(answer), ends: [from, to] };
      this.reveal += 1;
    } catch (error) {
      this.fault('The packet was not traced', error);
    }
  }

  closeTrace(): void {
    this.trace = null;
  }

  /** The switches that the selection lies on, so that the map can show all of it. */
  switchesOfSelection(): string[] {
    const { model, selected, trace } = this;
    if (trace) return trace.steps.map((step) => step.switch);
    if (!selected) return [];
    if (selected.kind === 'switch') return [selected.id];
    if (selected.kind === 'intent') {
      const paths = [...model.paths.values()].filter((path) => path.intent === selected.id);
      const ends = model.intents.get(selected.id)?.ends.flatMap((end) => endSwitch(model, end) ?? []) ?? [];
      return [...ends, ...paths.flatMap((path) => path.links.flatMap(endsOfLink))];
    }
    if (selected.kind === 'link') return endsOfLink(selected.id);
    const place = selected.kind === 'port' ? selected.id : model.hosts.get(selected.id)?.at;
    return place ? [place.slice(0, place.lastIndexOf('/'))] : [];
  }

  // --- The node ---

  async loadApps(): Promise<void> {
    if (this.connection.state !== 'live' || document.hidden) return;
    try {
      this.apps = present((await items('apps?limit=1000')).map(decodeApp));
      this.appsProblem = null;
    } catch (error) {
      this.appsProblem = sentenceOf(error);
    }
  }

  private async loadNode(): Promise<void> {
    if (this.connection.state !== 'live' || document.hidden) return;
    this.node = await request('node').then(decodeNode, () => this.node);
  }

  async orderApp(app: App, order: 'start' | 'stop' | 'restart'): Promise<void> {
    try {
      await request(`apps/${app.id}/${order}`, { method: 'POST' });
      this.toast(`App ${app.id}: ${order} requested`, 'plain');
      await this.loadApps();
    } catch (error) {
      this.fault(`App ${app.id} was not changed`, error);
    }
  }

  incidents(): Promise<Incident[]> {
    return offered(items('incidents?limit=200', 200)).then((found) => present(found.map(decodeIncident)));
  }

  evidence(id: string): Promise<Evidence> {
    return request(`incidents/${encodeURIComponent(id)}/evidence`).then(decodeEvidence);
  }

  audit(): Promise<AuditRecord[]> {
    return offered(items('audit?limit=200', 200)).then((found) => present(found.map(decodeAudit)));
  }

  // --- Slices ---

  slices(): Promise<Slice[]> {
    return offered(items('slices')).then((found) => present(found.map(decodeSlice)));
  }

  async slice(id: string): Promise<SliceDetail> {
    const of = `slices/${encodeURIComponent(id)}`;
    // While its process starts, there is no network, and the rest is there.
    const network = request(`${of}/network`).then(decodeSliceNetwork, () => null);
    const [labels, vnics, flows] = await Promise.all([request(`${of}/labels`), items(`${of}/vnics`), items(`${of}/flows`)]);
    const answer = labels as { items?: unknown[]; stale?: unknown } | null;
    return {
      id,
      network: await network,
      labels: present((answer?.items ?? []).map(decodeSliceLabel)),
      stale: answer?.stale === true,
      vnics: present(vnics.map(decodeSliceVnic)),
      flows: present(flows.map(decodeSliceFlow)),
    };
  }

  // --- Messages ---

  toast(text: string, tone: Toast['tone'], action: Toast['action'] = null): void {
    const id = this.nextToast++;
    this.toasts = [...this.toasts, { id, text, tone, action }].slice(-TOASTS_MAX);
    setTimeout(() => this.dismiss(id), TOAST_MS);
  }

  dismiss(id: number): void {
    this.toasts = this.toasts.filter((toast) => toast.id !== id);
  }

  private fault(what: string, error: unknown): void {
    if (error instanceof Problem && error.status === 401) this.connection = { state: 'locked', why: error.message };
    else this.toast(`${what}. ${sentenceOf(error)}`, 'bad');
  }
}

/** An older node does not have every collection; its own words about that are for programmers. */
function offered<T>(answer: Promise<T>): Promise<T> {
  return answer.catch((error: unknown) => {
    throw error instanceof Problem && error.status === 404 ? new Problem(404, 'Not offered', 'This version of the node does not offer it.', null) : error;
  });
}

function endsOfLink(id: string): string[] {
  return id.split('-').map((place) => place.slice(0, place.lastIndexOf('/')));
}

export const session = new Session();
