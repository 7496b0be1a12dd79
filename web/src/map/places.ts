// Asks the worker for the places of the switches.
//
//   model, kind of layout ──→ graph ──→ worker ──→ places by switch
//
// In: the network and a kind of layout. Out: a place for each switch, later. A newer question replaces an older one.

import type { Known } from '../model/model.ts';
import type { Switch } from '../model/objects.ts';
import type { Cable } from '../model/topology.ts';
import { switchOf } from '../model/topology.ts';
import type { Point } from './camera.ts';
import { geographyScale, type Graph, type LayoutKind } from './layout.ts';
import LayoutWorker from './layout.worker.ts?worker';

export type PlaceMap = ReadonlyMap<string, Point>;

export class Places {
  private worker = new LayoutWorker();
  private job = 0;
  private answered = 0;

  constructor(private found: (places: PlaceMap) => void) {}

  ask(kind: LayoutKind, ids: readonly string[], graph: Graph): void {
    const job = ++this.job;
    this.worker.onmessage = ({ data }: MessageEvent<{ job: number; points: Point[] }>) => {
      if (data.job !== job) return;
      this.answered = job;
      this.found(new Map(ids.map((id, i) => [id, data.points[i]!])));
    };
    this.worker.postMessage({ job, kind, graph });
  }

  /** Whether the newest question has no answer yet. */
  get isAsking(): boolean {
    return this.answered !== this.job;
  }

  close(): void {
    this.worker.terminate();
  }
}

/** The network as the layouts see it; switches in the order of `ids`. */
export function graphOf(model: Known, cables: readonly Cable[], ids: readonly string[], before: PlaceMap): Graph {
  const index = new Map(ids.map((id, i) => [id, i]));
  const withHosts = new Set([...model.hosts.values()].map((host) => switchOf(host.at)));
  return {
    places: ids.map((id) => degreesOf(model.switches.get(id)?.annotations ?? {})),
    edges: cables.flatMap(({ a, b }) => (index.has(a) && index.has(b) ? [[index.get(a)!, index.get(b)!] as const] : [])),
    edgeSwitch: ids.map((id) => withHosts.has(id)),
    before: ids.map((id) => before.get(id) ?? null),
  };
}

/** A text that is another one if the switch has another place on earth. */
export function placeTextOf({ id, annotations }: Switch): string {
  return `${id} ${annotations.longitude ?? ''} ${annotations.latitude ?? ''}`;
}

/** Longitude and latitude from annotations, if they are numbers. */
function degreesOf({ longitude, latitude }: Readonly<Record<string, string>>): Point | null {
  const [x, y] = [Number(longitude ?? 'none'), Number(latitude ?? 'none')];
  return Number.isFinite(x) && Number.isFinite(y) && Math.abs(x) <= 180 && Math.abs(y) <= 90 ? { x, y } : null;
}

/** Whether most of the switches have a place on earth. */
export function hasGeography(graph: Graph): boolean {
  return graph.places.filter((place) => place !== null).length > graph.places.length / 2;
}

export { geographyScale };
