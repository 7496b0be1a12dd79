// Draws what the operator looks at, above the network: the selection, paths, a trace, an intent that is being drawn.
//
// In: a scene and highlights. Out: pixels on the upper canvas, which alone is drawn anew while something moves. Keeps nothing.

import { at, endsOf, FONT, hostAt, radiusOf, type Frame, type LabelPlaces } from './paint.ts';
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
  return highlights.routes.some((route) => route.role === 'working' || route.role === 'trace');
}

export function paintHighlights(frame: Frame, scene: Scene, names: LabelPlaces, highlights: Highlights, nowMs: number): void {
  const rank = { backup: 0, preview: 1, working: 2, trace: 3 };
  for (const route of [...highlights.routes].sort((a, b) => rank[a.role] - rank[b.role])) paintRoute(frame, scene, names, route, nowMs);
  if (highlights.hovered) paintRing(frame, scene, highlights.hovered, 0.55);
  if (highlights.selected) paintRing(frame, scene, highlights.selected, 1);
  if (highlights.draft) paintDraft(frame, scene, highlights.draft);
  for (const id of highlights.faults) paintFault(frame, scene.byId.get(id));
}

function paintRoute(frame: Frame, scene: Scene, names: LabelPlaces, route: Route, nowMs: number): void {
  const { context, colours } = frame;
  const path = new Path2D();
  const switches = new Set<SwitchMark>();
  const points = pointsOf(frame, scene, route, switches);
  points.forEach(([from, to]) => (path.moveTo(from.x, from.y), path.lineTo(to.x, to.y)));
  context.lineCap = 'round';
  context.strokeStyle = colours.accent;
  if (route.role === 'backup' || route.role === 'preview') {
    context.lineWidth = route.role === 'backup' ? 2 : 3;
    context.setLineDash(route.role === 'backup' ? [2, 6] : [8, 6]);
    context.stroke(path);
    context.setLineDash([]);
  } else {
    context.globalAlpha = 0.28;
    context.lineWidth = 9;
    context.stroke(path);
    context.globalAlpha = 1;
    context.lineWidth = 3.2;
    context.stroke(path);
    paintPackets(frame, points, nowMs);
  }
  context.lineCap = 'butt';
  for (const mark of switches) paintSwitch(frame, mark, names.get(mark.id));
  for (const end of new Set([route.ends[0], route.ends.at(-1)])) {
    const host = scene.hostById.get(end ?? '');
    if (host) paintHost(frame, host);
  }
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

/** The pieces of a route on the screen, in the direction of its packets, from its first to its last end. */
function pointsOf(frame: Frame, scene: Scene, route: Route, switches: Set<SwitchMark>): [Point, Point][] {
  const pieces: [Point, Point][] = [];
  for (const id of route.links) {
    const mark = scene.cableById.get(id);
    if (!mark) continue;
    const [a, b] = endsOf(frame, mark);
    pieces.push(mark.cable.there.id === id ? [a, b] : [b, a]);
    switches.add(mark.a).add(mark.b);
  }
  const [first, last] = [scene.hostById.get(route.ends[0] ?? ''), scene.hostById.get(route.ends.at(-1) ?? '')];
  if (first) {
    pieces.unshift([hostAt(frame, first), at(frame, first.at)]);
    switches.add(first.at);
  }
  if (last && last !== first) {
    pieces.push([at(frame, last.at), hostAt(frame, last)]);
    switches.add(last.at);
  }
  return pieces;
}

/** Small dots that go along the route show its direction. */
function paintPackets(frame: Frame, pieces: readonly [Point, Point][], nowMs: number): void {
  const { context, colours } = frame;
  const gap = 46;
  let offset = ((nowMs / 1000) * 70) % gap;
  const dots = new Path2D();
  for (const [from, to] of pieces) {
    const length = Math.hypot(to.x - from.x, to.y - from.y);
    for (; offset < length; offset += gap) {
      const part = offset / length;
      const [x, y] = [from.x + (to.x - from.x) * part, from.y + (to.y - from.y) * part];
      dots.moveTo(x + 2.4, y);
      dots.arc(x, y, 2.4, 0, 7);
    }
    offset -= length;
  }
  context.fillStyle = colours.background;
  context.fill(dots);
}

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

function paintDraft(frame: Frame, scene: Scene, draft: { end: string; pointer: Point | null }): void {
  const { context, colours } = frame;
  const kind = draft.end.includes('/') ? 'port' : 'host';
  const from = placeOf(frame, scene, kind, draft.end);
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
