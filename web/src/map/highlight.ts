// Draws what the operator looks at, above the network: the selection, paths, a trace, an intent that is being drawn.
//
//   paintRoutes: lines ──→ paintDots: what moves on them ──→ paintMarks: switches, hosts, names, rings
//
// In: a scene and highlights. Out: pixels in three layers, of which only the dots change from frame to frame, and the box around
// all of them. Keeps nothing.

import { at, endsOf, FONT, hostAt, labelWidth, radiusOf, type Frame, type LabelPlaces } from './paint.ts';
import type { Point } from './camera.ts';
import type { HostMark, Scene, SwitchMark } from './scene.ts';

export interface Route {
  /** Link ids in their order. */
  links: readonly string[];
  /** A backup path is dashed and does not move. */
  role: 'working' | 'backup' | 'preview' | 'trace';
  /** Hosts or connect points where it begins and ends. */
  ends: readonly string[];
}

export interface Highlights {
  selected: { kind: string; id: string } | null;
  hovered: { kind: string; id: string } | null;
  routes: readonly Route[];
  /** The first end of an intent that is being drawn, and where the pointer is. */
  draft: { end: string; pointer: Point | null } | null;
  /** Switches where a trace ends badly. */
  faults: readonly string[];
}

export const NO_HIGHLIGHTS: Highlights = { selected: null, hovered: null, routes: [], draft: null, faults: [] };

/** Whether the upper canvas has to be drawn in each frame. */
export function isMoving(highlights: Highlights): boolean {
  return highlights.routes.some(hasDots);
}

function hasDots({ role }: Route): boolean {
  return role === 'working' || role === 'trace';
}

const RANK = { backup: 0, preview: 1, working: 2, trace: 3 };

/** The routes as they lie above each other. */
function inOrder({ routes }: Highlights): Route[] {
  return [...routes].sort((a, b) => RANK[a.role] - RANK[b.role]);
}

/** The lowest layer: the lines of all routes. */
export function paintRoutes(frame: Frame, scene: Scene, highlights: Highlights): void {
  for (const route of inOrder(highlights)) paintLine(frame, route, pointsOf(frame, scene, route));
}

function paintLine({ context, colours }: Frame, { role }: Route, pieces: readonly Piece[]): void {
  const path = new Path2D();
  for (const [from, to] of pieces) {
    path.moveTo(from.x, from.y);
    path.lineTo(to.x, to.y);
  }
  context.lineCap = 'round';
  context.strokeStyle = colours.accent;
  if (role === 'backup' || role === 'preview') {
    context.lineWidth = role === 'backup' ? 2 : 3;
    context.setLineDash(role === 'backup' ? [2, 6] : [8, 6]);
    context.stroke(path);
    context.setLineDash([]);
  } else {
    context.globalAlpha = 0.28;
    context.lineWidth = 9;
    context.stroke(path);
    context.globalAlpha = 1;
    context.lineWidth = 3.2;
    context.stroke(path);
  }
  context.lineCap = 'butt';
}

/** The highest layer: switches and hosts of routes with their names, and rings. */
export function paintMarks(frame: Frame, scene: Scene, names: LabelPlaces, highlights: Highlights): void {
  for (const route of inOrder(highlights)) {
    for (const mark of switchesOf(scene, route)) paintSwitch(frame, mark, names(mark.id));
    for (const host of endsOfRoute(scene, route)) paintHost(frame, host);
  }
  if (highlights.hovered) paintRing(frame, scene, highlights.hovered, 0.55);
  if (highlights.selected) paintRing(frame, scene, highlights.selected, 1);
  if (highlights.draft) paintDraft(frame, scene, highlights.draft);
  for (const id of highlights.faults) paintFault(frame, scene.byId.get(id));
}

/** A host where a route begins or ends, with its name on the side away from its switch. */
function paintHost(frame: Frame, host: HostMark): void {
  const { context, colours } = frame;
  const { x, y } = hostAt(frame, host);
  context.beginPath();
  context.roundRect(x - 5, y - 5, 10, 10, 3);
  context.fillStyle = colours.accent;
  context.fill();
  const right = Math.cos(host.angle) >= 0;
  name(frame, host.label, right ? x + 9 : x - 9, y - 6, right ? 'left' : 'right');
}

/** A text that is legible above lines. */
function name({ context, colours }: Frame, text: string, x: number, y: number, align: CanvasTextAlign): void {
  context.font = FONT;
  context.textAlign = align;
  context.textBaseline = 'top';
  context.lineWidth = 3;
  context.lineJoin = 'round';
  context.strokeStyle = colours.background;
  context.strokeText(text, x, y);
  context.fillStyle = colours.text;
  context.fillText(text, x, y);
}

export type Piece = readonly [Point, Point];

/** The pieces of a route on the screen, in the direction of its packets, from its first to its last end. */
function pointsOf(frame: Pick<Frame, 'camera' | 'size'>, scene: Scene, route: Route): Piece[] {
  const pieces: Piece[] = [];
  for (const id of route.links) {
    const mark = scene.cableById.get(id);
    if (!mark) continue;
    const [a, b] = endsOf(frame, mark);
    pieces.push(mark.cable.there.id === id ? [a, b] : [b, a]);
  }
  const { first, last } = hostsOf(scene, route);
  if (first) pieces.unshift([hostAt(frame, first), at(frame, first.at)]);
  if (last && last !== first) pieces.push([at(frame, last.at), hostAt(frame, last)]);
  return pieces;
}

function hostsOf(scene: Scene, { ends }: Route): { first: HostMark | undefined; last: HostMark | undefined } {
  return { first: scene.hostById.get(ends[0] ?? ''), last: scene.hostById.get(ends.at(-1) ?? '') };
}

/** The hosts where a route begins and ends, each once. */
function endsOfRoute(scene: Scene, route: Route): Set<HostMark> {
  const { first, last } = hostsOf(scene, route);
  return new Set([first, last].filter((host) => host !== undefined));
}

/** The switches that a route passes. */
function switchesOf(scene: Scene, route: Route): Set<SwitchMark> {
  const cables = route.links.flatMap((id) => scene.cableById.get(id) ?? []);
  return new Set([...cables.flatMap(({ a, b }) => [a, b]), ...[...endsOfRoute(scene, route)].map((host) => host.at)]);
}

/** The pieces of a route on which dots move. */
export type Trail = readonly Piece[];

export function trailsOf(frame: Pick<Frame, 'camera' | 'size'>, scene: Scene, highlights: Highlights): Trail[] {
  return inOrder(highlights).filter(hasDots).map((route) => pointsOf(frame, scene, route));
}

/** The distance of two dots, and how fast they move, in pixels and pixels a second. */
const [GAP, SPEED] = [46, 70];

/** The middle layer: small dots that go along the routes show their directions. */
export function paintDots(context: CanvasRenderingContext2D, trails: readonly Trail[], colour: string, nowMs: number): void {
  if (trails.length === 0) return;
  context.beginPath();
  for (const pieces of trails) {
    let offset = ((nowMs / 1000) * SPEED) % GAP;
    for (const [from, to] of pieces) {
      const length = Math.hypot(to.x - from.x, to.y - from.y);
      for (; offset < length; offset += GAP) {
        const part = offset / length;
        const [x, y] = [from.x + (to.x - from.x) * part, from.y + (to.y - from.y) * part];
        context.moveTo(x + 2.4, y);
        context.arc(x, y, 2.4, 0, 7);
      }
      offset -= length;
    }
  }
  context.fillStyle = colour;
  context.fill();
}

/** A part of the screen. */
export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** The box around all that is drawn here, or a little more; nothing if nothing is drawn. */
export function boundsOf(frame: Frame, scene: Scene, names: LabelPlaces, highlights: Highlights): Box | null {
  const box = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  const add = ({ x, y }: Point, wide: number, high = wide) => {
    box.left = Math.min(box.left, x - wide);
    box.right = Math.max(box.right, x + wide);
    box.top = Math.min(box.top, y - high);
    box.bottom = Math.max(box.bottom, y + high);
  };
  const radius = radiusOf(frame.camera);
  for (const route of highlights.routes) {
    for (const piece of pointsOf(frame, scene, route)) for (const point of piece) add(point, 8);
    for (const mark of switchesOf(scene, route)) {
      const place = names(mark.id) ?? at(frame, mark);
      add(place, labelWidth(frame.context, mark.label) + 4, radius + NAME_HEIGHT);
      add(at(frame, mark), radius + 4);
    }
    for (const host of endsOfRoute(scene, route)) add(hostAt(frame, host), labelWidth(frame.context, host.label) + 14, NAME_HEIGHT);
  }
  for (const found of [highlights.hovered, highlights.selected]) {
    if (!found) continue;
    const mark = found.kind === 'link' ? scene.cableById.get(found.id) : undefined;
    const places = mark ? endsOf(frame, mark) : [placeOf(frame, scene, found.kind, found.id)];
    for (const place of places) if (place) add(place, radius + 12);
  }
  const { draft } = highlights;
  const start = draft && placeOf(frame, scene, kindOfEnd(draft.end), draft.end);
  if (start) for (const point of [start, draft.pointer ?? start]) add(point, 14);
  for (const id of highlights.faults) {
    const mark = scene.byId.get(id);
    if (mark) add(at(frame, mark), radius + 12);
  }
  return box.left < box.right ? box : null;
}

/** The height of a name with its outline. */
const NAME_HEIGHT = 18;

/** A switch of a route, with its name over the dim one of the lower canvas, or below it if that has none. */
function paintSwitch(frame: Frame, mark: SwitchMark, place: Point | undefined): void {
  const { context, colours, camera } = frame;
  const { x, y } = at(frame, mark);
  const radius = radiusOf(camera) + 0.5;
  context.beginPath();
  context.arc(x, y, radius, 0, 7);
  context.fillStyle = colours.background;
  context.fill();
  context.lineWidth = 2.4;
  context.strokeStyle = mark.up ? colours.accent : colours.bad;
  context.stroke();
  if (place) name(frame, mark.label, place.x, place.y, 'left');
  else name(frame, mark.label, x, y + radius + 3, 'center');
}

function paintRing(frame: Frame, scene: Scene, { kind, id }: { kind: string; id: string }, strength: number): void {
  const { context, colours } = frame;
  context.globalAlpha = strength;
  context.strokeStyle = colours.accent;
  if (kind === 'link') {
    const mark = scene.cableById.get(id);
    if (mark) {
      const [a, b] = endsOf(frame, mark);
      context.lineWidth = 10;
      context.globalAlpha = 0.3 * strength;
      context.lineCap = 'round';
      context.beginPath();
      context.moveTo(a.x, a.y);
      context.lineTo(b.x, b.y);
      context.stroke();
      context.lineCap = 'butt';
    }
  } else {
    const place = placeOf(frame, scene, kind, id);
    if (place) ring(context, place, kind === 'host' ? 9 : radiusOf(frame.camera) + 5, strength);
  }
  context.globalAlpha = 1;
}

function ring(context: CanvasRenderingContext2D, { x, y }: Point, radius: number, strength: number): void {
  context.lineWidth = 2.4;
  context.beginPath();
  context.arc(x, y, radius, 0, 7);
  context.stroke();
  context.globalAlpha = 0.14 * strength;
  context.fillStyle = context.strokeStyle;
  context.fill();
}

function placeOf(frame: Frame, scene: Scene, kind: string, id: string): Point | null {
  if (kind === 'host') {
    const host = scene.hostById.get(id);
    return host ? hostAt(frame, host) : null;
  }
  const mark = scene.byId.get(kind === 'port' ? id.slice(0, id.lastIndexOf('/')) : id);
  return mark ? at(frame, mark) : null;
}

/** An end is a host or a connect point. */
function kindOfEnd(end: string): 'host' | 'port' {
  return end.includes('/') ? 'port' : 'host';
}

function paintDraft(frame: Frame, scene: Scene, draft: { end: string; pointer: Point | null }): void {
  const { context, colours } = frame;
  const from = placeOf(frame, scene, kindOfEnd(draft.end), draft.end);
  if (!from) return;
  context.strokeStyle = colours.accent;
  ring(context, from, 10, 1);
  context.globalAlpha = 1;
  if (!draft.pointer) return;
  context.lineWidth = 1.6;
  context.setLineDash([4, 5]);
  context.beginPath();
  context.moveTo(from.x, from.y);
  context.lineTo(draft.pointer.x, draft.pointer.y);
  context.stroke();
  context.setLineDash([]);
}

function paintFault(frame: Frame, mark: SwitchMark | undefined): void {
  if (!mark) return;
  const { context, colours } = frame;
  context.strokeStyle = colours.bad;
  ring(context, at(frame, mark), radiusOf(frame.camera) + 8, 1);
  context.globalAlpha = 1;
}
