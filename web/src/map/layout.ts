// Where the switches are on the map.
//
//   graph, kind of layout, earlier positions ──→ layout() ──→ one point for each switch
//
// In: plain numbers. Out: points in world units, neighbours about 100 apart; the same input gives the same points. It knows no
// network object, and runs in a worker because a large graph takes a second.

import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY, type SimulationNodeDatum } from 'd3-force';
import type { Point } from './camera.ts';

export type LayoutKind = 'geography' | 'force' | 'circle' | 'layered';

export interface Graph {
  /** Longitude and latitude in degrees of each switch, where known. */
  places: readonly (Point | null)[];
  /** Pairs of indices. */
  edges: readonly (readonly [number, number])[];
  /** Whether hosts are connected to the switch. */
  edgeSwitch: readonly boolean[];
  /** Where the switch was before, where it was. */
  before: readonly (Point | null)[];
}

/** The distance of neighbours. */
export const SPACING = 100;

export function layout(kind: LayoutKind, graph: Graph): Point[] {
  switch (kind) {
    case 'geography': return geography(graph);
    case 'force': return force(graph);
    case 'circle': return circle(graph);
    case 'layered': return layered(graph);
  }
}

/** Web Mercator, in units of radians. */
export function mercator({ x: longitude, y: latitude }: Point): Point {
  const bounded = Math.max(-85, Math.min(85, latitude));
  const y = Math.log(Math.tan(Math.PI / 4 + (bounded * Math.PI) / 360));
  return { x: (longitude * Math.PI) / 180, y: -y };
}

/** World units for a radian, so that switches of this graph are about `SPACING` apart. */
export function geographyScale(graph: Pick<Graph, 'places' | 'edges'>): number {
  const lengths = graph.edges.flatMap(([a, b]) => {
    const [from, to] = [graph.places[a], graph.places[b]];
    if (!from || !to) return [];
    const [p, q] = [mercator(from), mercator(to)];
    return [Math.hypot(p.x - q.x, p.y - q.y)];
  });
  const sorted = lengths.filter((length) => length > 0).sort((x, y) => x - y);
  const median = sorted[sorted.length >> 1];
  return median ? (SPACING * 1.3) / median : 2000;
}

/** Where the place is known, there; other switches beside their neighbours. */
function geography(graph: Graph): Point[] {
  const scale = geographyScale(graph);
  const known = graph.places.map((place) => {
    if (!place) return null;
    const { x, y } = mercator(place);
    return { x: x * scale, y: y * scale };
  });
  return apart(known.every((point) => point !== null) ? (known as Point[]) : settle(graph, known, 0.3));
}

/** Switches at the same place are drawn on a small circle around it, so that each can be seen and clicked. */
function apart(points: readonly Point[]): Point[] {
  const together = new Map<string, number[]>();
  points.forEach(({ x, y }, index) => {
    const place = `${Math.round(x)} ${Math.round(y)}`;
    together.set(place, [...(together.get(place) ?? []), index]);
  });
  const moved = [...points];
  for (const indices of together.values()) {
    if (indices.length === 1) continue;
    const radius = Math.max(SPACING * 0.2, (indices.length * SPACING * 0.3) / (2 * Math.PI));
    indices.forEach((index, rank) => {
      const angle = (rank / indices.length) * 2 * Math.PI + Math.PI / 4;
      const { x, y } = points[index]!;
      moved[index] = { x: x + radius * Math.cos(angle), y: y + radius * Math.sin(angle) };
    });
  }
  return moved;
}

function force(graph: Graph): Point[] {
  const kept = graph.before.filter((point) => point !== null).length;
  // A few new switches join the others, which stay where the operator knows them.
  const few = kept > 0 && kept >= graph.before.length * 0.8;
  return few ? settle(graph, graph.before, 0.3) : settle(graph, graph.before.map(() => null), 1);
}

interface Body extends SimulationNodeDatum {
  x: number;
  y: number;
}

/** Lets free switches find their place among fixed ones. */
function settle(graph: Graph, fixed: readonly (Point | null)[], alpha: number): Point[] {
  const start = startOf(graph, fixed);
  const bodies: Body[] = start.map((point, i) => ({ ...point, ...(fixed[i] ? { fx: point.x, fy: point.y } : {}) }));
  const links = graph.edges.map(([source, target]) => ({ source, target }));
  const large = bodies.length > 600;
  const simulation = forceSimulation(bodies)
    .force('charge', forceManyBody().strength(-SPACING * 4).theta(large ? 1.2 : 0.9).distanceMax(SPACING * (large ? 12 : 20)))
    .force('link', forceLink(links).distance(SPACING * 0.8).strength(large ? 0.7 : 0.5).iterations(large ? 2 : 1))
    .force('apart', forceCollide(SPACING * 0.3))
    .force('x', forceX(0).strength(0.025))
    .force('y', forceY(0).strength(0.035))
    .alpha(alpha)
    .stop();
  simulation.tick(large ? 160 : 320);
  return bodies.map(({ x, y }) => ({ x, y }));
}

/** A start on a spiral in the order of a walk, so that neighbours begin near each other. */
function startOf(graph: Graph, fixed: readonly (Point | null)[]): Point[] {
  const neighbours = neighboursOf(graph);
  const spiral: Point[] = [];
  walk(neighbours).forEach((index, rank) => {
    const radius = SPACING * 0.6 * Math.sqrt(rank);
    const angle = rank * 2.39996;
    spiral[index] = { x: radius * Math.cos(angle), y: radius * Math.sin(angle) };
  });
  return fixed.map((point, index) => {
    if (point) return point;
    const near = neighbours[index]!.map((other) => fixed[other]).filter((other) => other != null);
    if (near.length === 0) return spiral[index]!;
    const middle = near.reduce((sum, { x, y }) => ({ x: sum.x + x / near.length, y: sum.y + y / near.length }), { x: 0, y: 0 });
    return { x: middle.x + (spiral[index]!.x % 40), y: middle.y + (spiral[index]!.y % 40) + 30 };
  });
}

export function neighboursOf(graph: Pick<Graph, 'edges' | 'places'>): number[][] {
  const neighbours: number[][] = graph.places.map(() => []);
  for (const [a, b] of graph.edges) {
    neighbours[a]?.push(b);
    neighbours[b]?.push(a);
  }
  return neighbours;
}

/** All switches, breadth first, each part of the network after the other. */
function walk(neighbours: readonly number[][]): number[] {
  const order: number[] = [];
  const seen = new Set<number>();
  for (let root = 0; root < neighbours.length; root += 1) {
    if (seen.has(root)) continue;
    seen.add(root);
    const queue = [root];
    for (let i = 0; i < queue.length; i += 1) {
      order.push(queue[i]!);
      for (const next of neighbours[queue[i]!]!) {
        if (!seen.has(next)) {
          seen.add(next);
          queue.push(next);
        }
      }
    }
  }
  return order;
}

/** A circle in the order of the switches' angles in the force layout, which keeps most links short. */
function circle(graph: Graph): Point[] {
  const near = settle(graph, graph.before.map(() => null), 1);
  const order = near.map((_, index) => index).sort((a, b) => Math.atan2(near[a]!.y, near[a]!.x) - Math.atan2(near[b]!.y, near[b]!.x));
  const radius = Math.max(SPACING * 1.2, (order.length * SPACING * 0.5) / (2 * Math.PI));
  const points: Point[] = [];
  order.forEach((index, rank) => {
    const angle = (rank / order.length) * 2 * Math.PI - Math.PI / 2;
    points[index] = { x: radius * Math.cos(angle), y: radius * Math.sin(angle) };
  });
  return points;
}

/** Rows by the distance from the switches with hosts, which are the lowest row; each row in the order of its neighbours. */
function layered(graph: Graph): Point[] {
  const neighbours = neighboursOf(graph);
  const depth = depths(neighbours, graph.edgeSwitch);
  const rows: number[][] = [];
  walk(neighbours).forEach((index) => (rows[depth[index]!] ??= []).push(index));
  const full = wrapped(rows.filter((row) => row !== undefined));
  untangle(full, neighbours);
  const points: Point[] = [];
  full.forEach((row, level) => {
    const gap = SPACING * 0.8;
    row.forEach((index, rank) => (points[index] = { x: (rank - (row.length - 1) / 2) * gap, y: -level * SPACING * 1.5 }));
  });
  return points;
}

function depths(neighbours: readonly number[][], edgeSwitch: readonly boolean[]): number[] {
  const anyHost = edgeSwitch.some((edge) => edge);
  const most = Math.max(...neighbours.map((list) => list.length), 0);
  const everyHost = edgeSwitch.every((edge) => edge);
  // Without a difference in hosts, the switches with few links are the edge.
  const isEdge = (index: number) => (anyHost && !everyHost ? edgeSwitch[index]! : neighbours[index]!.length <= Math.max(1, most / 3));
  const depth = neighbours.map((_, index): number => (isEdge(index) ? 0 : -1));
  let frontier = depth.flatMap((value, index) => (value === 0 ? [index] : []));
  for (let level = 1; frontier.length > 0; level += 1) {
    const next = new Set(frontier.flatMap((index) => neighbours[index]!).filter((index) => depth[index] === -1));
    for (const index of next) depth[index] = level;
    frontier = [...next];
  }
  return depth.map((value) => Math.max(0, value));
}

/** A row that is much wider than the whole is high becomes several. */
function wrapped(rows: number[][]): number[][] {
  const total = rows.reduce((sum, row) => sum + row.length, 0);
  const widest = Math.max(12, Math.ceil(Math.sqrt(total) * 2.2));
  return rows.flatMap((row) => {
    const parts = Math.ceil(row.length / widest);
    const size = Math.ceil(row.length / parts);
    return Array.from({ length: parts }, (_, part) => row.slice(part * size, (part + 1) * size));
  });
}

/** Sorts each row by the mean place of its neighbours in other rows, some times up and down. */
function untangle(rows: number[][], neighbours: readonly number[][]): void {
  const place = new Map<number, number>();
  const level = new Map<number, number>();
  rows.forEach((row, y) => row.forEach((index, x) => (place.set(index, x - row.length / 2), level.set(index, y))));
  for (let round = 0; round < 8; round += 1) {
    for (const row of round % 2 === 0 ? rows : [...rows].reverse()) {
      const mean = new Map(row.map((index) => {
        const others = neighbours[index]!.filter((other) => level.get(other) !== level.get(index));
        const sum = others.reduce((total, other) => total + place.get(other)!, 0);
        return [index, others.length > 0 ? sum / others.length : place.get(index)!];
      }));
      row.sort((a, b) => mean.get(a)! - mean.get(b)!);
      row.forEach((index, x) => place.set(index, x - row.length / 2));
    }
  }
}
