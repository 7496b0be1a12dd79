// What the map draws, as plain data: switches, cables and hosts with their places.
//
//   model, cables, positions ──→ sceneOf() ──→ Scene ──→ paint
//                                                   └──→ find the object under the pointer
//
// In: the model and the places of its switches. Out: a scene. Pure; it holds no canvas.

import type { Table, Tables } from '../model/model.ts';
import type { Counters } from '../model/objects.ts';
import type { Cable } from '../model/topology.ts';
import { hostName, loadOf, switchName, switchOf } from '../model/topology.ts';
import type { Point } from './camera.ts';

export interface SwitchMark extends Point {
  id: string;
  label: string;
  up: boolean;
  degree: number;
  hosts: HostMark[];
}

export interface HostMark {
  id: string;
  label: string;
  at: SwitchMark;
  /** The direction from its switch. */
  angle: number;
}

export interface CableMark {
  id: string;
  cable: Cable;
  a: SwitchMark;
  b: SwitchMark;
  up: boolean;
  /** Sideways, in pixels: parallel cables lie beside each other. */
  shift: number;
}

export interface Scene {
  switches: SwitchMark[];
  byId: Map<string, SwitchMark>;
  cables: CableMark[];
  cableById: Map<string, CableMark>;
  hosts: HostMark[];
  hostById: Map<string, HostMark>;
}

export function emptyScene(): Scene {
  return { switches: [], byId: new Map(), cables: [], cableById: new Map(), hosts: [], hostById: new Map() };
}

export function sceneOf(model: Pick<Tables, 'switches' | 'hosts'>, cables: readonly Cable[], places: ReadonlyMap<string, Point>): Scene {
  const scene = emptyScene();
  for (const sw of model.switches.values()) {
    const place = places.get(sw.id);
    if (!place) continue;
    const mark = { id: sw.id, label: switchName(sw, sw.id), up: sw.state === 'up', degree: 0, hosts: [], x: place.x, y: place.y };
    scene.switches.push(mark);
    scene.byId.set(sw.id, mark);
  }
  addCables(scene, cables);
  addHosts(scene, model.hosts);
  return scene;
}

/** Parallel cables are this many pixels apart. */
const PARALLEL_GAP = 7;

function addCables(scene: Scene, cables: readonly Cable[]): void {
  const parallel = new Map<string, CableMark[]>();
  for (const cable of cables) {
    const [a, b] = [scene.byId.get(cable.a), scene.byId.get(cable.b)];
    if (!a || !b) continue;
    const mark = { id: cable.id, cable, a, b, up: cable.up && a.up && b.up, shift: 0 };
    a.degree += 1;
    b.degree += 1;
    scene.cables.push(mark);
    scene.cableById.set(cable.id, mark);
    if (cable.back) scene.cableById.set(cable.back.id, mark);
    const pair = a.id < b.id ? `${a.id} ${b.id}` : `${b.id} ${a.id}`;
    const beside = parallel.get(pair);
    if (beside) beside.push(mark);
    else parallel.set(pair, [mark]);
  }
  for (const beside of parallel.values()) {
    if (beside.length === 1) continue;
    beside.forEach((mark, i) => {
      const turned = mark.a.id < mark.b.id ? 1 : -1;
      mark.shift = turned * (i - (beside.length - 1) / 2) * PARALLEL_GAP;
    });
  }
}

function addHosts(scene: Scene, hosts: Tables['hosts']): void {
  for (const host of hosts.values()) {
    const at = scene.byId.get(switchOf(host.at));
    if (!at) continue;
    const mark = { id: host.id, label: hostName(host, host.id), at, angle: 0 };
    at.hosts.push(mark);
    scene.hosts.push(mark);
    scene.hostById.set(host.id, mark);
  }
  const directions = new Map<SwitchMark, number[]>();
  for (const { a, b } of scene.cables) {
    const angle = Math.atan2(b.y - a.y, b.x - a.x);
    (directions.get(a) ?? directions.set(a, []).get(a)!).push(angle);
    (directions.get(b) ?? directions.set(b, []).get(b)!).push(angle + Math.PI);
  }
  for (const mark of scene.switches) if (mark.hosts.length > 0) spread(mark.hosts, directions.get(mark) ?? []);
}

/** Puts the hosts of a switch into the widest gap between its cables. */
function spread(hosts: HostMark[], directions: readonly number[]): void {
  const turn = 2 * Math.PI;
  const sorted = directions.map((angle) => ((angle % turn) + turn) % turn).sort((x, y) => x - y);
  let [start, gap] = [-Math.PI / 2 - Math.PI, turn];
  sorted.forEach((angle, i) => {
    const next = i + 1 < sorted.length ? sorted[i + 1]! : sorted[0]! + turn;
    if (i === 0 || next - angle > gap) [start, gap] = [angle, next - angle];
  });
  const step = Math.min(0.7, gap / (hosts.length + 1));
  const middle = start + gap / 2;
  hosts.forEach((host, i) => (host.angle = middle + (i - (hosts.length - 1) / 2) * step));
}

/** The load of both directions of each cable, 0 to 1; −1 if unknown. */
export function loadsOf(scene: Scene, counters: Table<Counters>): Float32Array {
  const loads = new Float32Array(scene.cables.length * 2);
  scene.cables.forEach(({ cable }, i) => {
    loads[2 * i] = loadOf(cable.there, counters) ?? -1;
    loads[2 * i + 1] = loadOf(cable.back, counters) ?? -1;
  });
  return loads;
}

export interface Found {
  kind: 'switch' | 'link' | 'host';
  id: string;
}

/** How far the pointer may be from an object, in pixels. A finger is less exact. */
const REACH = { mouse: 6, touch: 16 };

/** The object under a point of the screen. `at` gives the screen's place of a switch, `hostAt` that of a host if it is drawn. */
export function find(
  scene: Scene,
  point: Point,
  at: (mark: Point) => Point,
  hostAt: (mark: HostMark) => Point | null,
  radius: number,
  touch: boolean,
): Found | null {
  const reach = touch ? REACH.touch : REACH.mouse;
  const host = nearest(scene.hosts, (mark) => hostAt(mark), point, 4 + reach);
  const sw = nearest(scene.switches, at, point, radius + reach);
  if (host && (!sw || host.distance < sw.distance)) return { kind: 'host', id: host.mark.id };
  if (sw) return { kind: 'switch', id: sw.mark.id };
  let best: { id: string; distance: number } | null = null;
  for (const mark of scene.cables) {
    const distance = distanceToSegment(point, at(mark.a), at(mark.b), mark.shift);
    if (distance <= reach && (!best || distance < best.distance)) best = { id: mark.id, distance };
  }
  return best && { kind: 'link', id: best.id };
}

function nearest<T>(marks: readonly T[], at: (mark: T) => Point | null, point: Point, within: number): { mark: T; distance: number } | null {
  let best: { mark: T; distance: number } | null = null;
  for (const mark of marks) {
    const place = at(mark);
    if (!place) continue;
    const distance = Math.hypot(place.x - point.x, place.y - point.y);
    if (distance <= within && (!best || distance < best.distance)) best = { mark, distance };
  }
  return best;
}

export function distanceToSegment(point: Point, from: Point, to: Point, shift = 0): number {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const length = Math.hypot(dx, dy) || 1;
  const [ox, oy] = [from.x - (dy / length) * shift, from.y + (dx / length) * shift];
  const along = Math.max(0, Math.min(1, ((point.x - ox) * dx + (point.y - oy) * dy) / (length * length)));
  return Math.hypot(ox + along * dx - point.x, oy + along * dy - point.y);
}

/** The nearest switch in a direction, for the arrow keys. */
export function neighbourTowards(scene: Scene, from: SwitchMark, dx: number, dy: number): SwitchMark | null {
  let best: { mark: SwitchMark; cost: number } | null = null;
  for (const mark of scene.switches) {
    const [x, y] = [mark.x - from.x, mark.y - from.y];
    const ahead = x * dx + y * dy;
    const aside = Math.abs(x * dy - y * dx);
    if (mark === from || ahead <= 0 || aside > ahead * 1.7) continue;
    const cost = ahead + 2 * aside;
    if (!best || cost < best.cost) best = { mark, cost };
  }
  return best?.mark ?? null;
}
