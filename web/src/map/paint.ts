// Draws the network on a canvas.
//
// In: a scene, the loads of its cables, the camera, colours. Out: pixels. Lines of one look are one path, so that thousands of
// cables cost a few strokes. It decides nothing. It keeps the sizes of labels, and the memory in which it places them.

import type { Camera, Point, Size } from './camera.ts';
import { toScreen } from './camera.ts';
import type { CableMark, HostMark, Scene, SwitchMark } from './scene.ts';

export interface Colours {
  background: string;
  surface: string;
  text: string;
  muted: string;
  line: string;
  accent: string;
  good: string;
  bad: string;
  land: string;
  shore: string;
  /** From an idle to a full link. */
  ramp: readonly string[];
}

export interface Frame {
  context: CanvasRenderingContext2D;
  size: Size;
  camera: Camera;
  colours: Colours;
  /** How many names it may draw. */
  labelsMax: number;
}

export interface Options {
  showLoad: boolean;
  showHosts: boolean;
}

/** The upper ends of the classes of load; what is above is the last class. */
export const LOAD_CLASSES = [0.1, 0.3, 0.5, 0.7, 0.9] as const;

/** Above this number of labels a frame would take too long, and nobody reads them. */
export const LABELS_MAX = 220;
/** Below this scale, cables have one colour for both directions, and hosts are left out. */
const FAR = 0.22;

export const FONT = '500 11px Inter, ui-sans-serif, system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';

export function radiusOf(camera: Camera): number {
  return Math.max(2.2, Math.min(8.5, 7 * camera.scale ** 0.55));
}

export function at(frame: Pick<Frame, 'camera' | 'size'>, point: Point): Point {
  return toScreen(frame.camera, frame.size, point);
}

/** Where a host is drawn. */
export function hostAt(frame: Pick<Frame, 'camera' | 'size'>, host: HostMark): Point {
  const from = at(frame, host.at);
  const distance = Math.max(15, Math.min(46, 34 * frame.camera.scale ** 0.7));
  return { x: from.x + Math.cos(host.angle) * distance, y: from.y + Math.sin(host.angle) * distance };
}

export function hostsVisible(scene: Scene, camera: Camera, options: Options): boolean {
  return options.showHosts && camera.scale > FAR && (scene.hosts.length <= 600 || camera.scale > 0.8);
}

/** More hosts than this at a switch are drawn as their number. */
export const HOSTS_SPREAD_MAX = 12;

export function isSpread(host: HostMark): boolean {
  return host.at.hosts.length <= HOSTS_SPREAD_MAX;
}

/** Draws all, and tells where the names of switches are. */
export function paint(frame: Frame, scene: Scene, loads: Float32Array, options: Options): LabelPlaces {
  paintCables(frame, scene, loads, options);
  if (hostsVisible(scene, frame.camera, options)) paintHosts(frame, scene);
  paintSwitches(frame, scene);
  return paintLabels(frame, scene, options);
}

/** The upper left corner of the name of a switch, by its id; nothing if it has none. */
export type LabelPlaces = (id: string) => Point | undefined;

function widthOf(mark: CableMark, camera: Camera): 0 | 1 | 2 {
  const gbps = mark.cable.there.capacityKbps / 1_000_000;
  if (camera.scale < FAR) return 0;
  return gbps >= 40 ? 2 : gbps >= 10 ? 1 : 0;
}

const WIDTHS = [1.5, 2.3, 3.3];

/** The index of the class of a load; −1 if the load is unknown. */
export function loadClass(load: number): number {
  if (load < 0) return -1;
  const found = LOAD_CLASSES.findIndex((end) => load < end);
  return found === -1 ? LOAD_CLASSES.length : found;
}

function paintCables(frame: Frame, scene: Scene, loads: Float32Array, options: Options): void {
  const looks = new Map<number, Path2D>();
  const path = (load: number, width: number): Path2D => {
    const look = (loadClass(options.showLoad ? load : -1) + 1) * WIDTHS.length + width;
    return looks.get(look) ?? looks.set(look, new Path2D()).get(look)!;
  };
  const failed = new Path2D();
  scene.cables.forEach((mark, i) => {
    const [a, b] = endsOf(frame, mark);
    if (isOutside(frame.size, a, b)) return;
    if (!mark.up) return line(failed, a, b);
    const width = widthOf(mark, frame.camera);
    const [there, back] = [loads[2 * i] ?? -1, loads[2 * i + 1] ?? -1];
    if (frame.camera.scale < FAR || loadClass(there) === loadClass(back)) return line(path(Math.max(there, back), width), a, b);
    const middle = { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
    line(path(there, width), a, middle);
    line(path(back, width), b, middle);
  });
  const { context, colours } = frame;
  const thin = Math.max(0.55, Math.min(1.25, frame.camera.scale ** 0.4));
  for (const [look, lines] of [...looks].sort(([x], [y]) => x - y)) {
    const load = Math.floor(look / WIDTHS.length) - 1;
    context.strokeStyle = load < 0 ? colours.line : colours.ramp[load]!;
    context.lineWidth = WIDTHS[look % WIDTHS.length]! * thin;
    context.stroke(lines);
  }
  context.strokeStyle = colours.bad;
  context.lineWidth = 2.2 * thin;
  context.setLineDash([5, 4]);
  context.stroke(failed);
  context.setLineDash([]);
  paintCrosses(frame, scene.cables.filter((mark) => !mark.up));
}

/** A failure is seen by its shape too, not only by its colour. */
function paintCrosses(frame: Frame, cables: readonly CableMark[]): void {
  if (frame.camera.scale < FAR) return;
  const { context, colours } = frame;
  for (const mark of cables) {
    const [a, b] = endsOf(frame, mark);
    const [x, y] = [(a.x + b.x) / 2, (a.y + b.y) / 2];
    context.fillStyle = colours.background;
    context.beginPath();
    context.arc(x, y, 7, 0, 7);
    context.fill();
    context.stroke();
    cross(context, x, y, 2.8);
  }
}

function cross(context: CanvasRenderingContext2D, x: number, y: number, half: number): void {
  context.beginPath();
  context.moveTo(x - half, y - half);
  context.lineTo(x + half, y + half);
  context.moveTo(x + half, y - half);
  context.lineTo(x - half, y + half);
  context.stroke();
}

/** The ends of a cable on the screen, moved sideways if it has parallel ones. */
export function endsOf(frame: Pick<Frame, 'camera' | 'size'>, mark: CableMark): [Point, Point] {
  const [a, b] = [at(frame, mark.a), at(frame, mark.b)];
  if (mark.shift === 0) return [a, b];
  const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
  const [dx, dy] = [(-(b.y - a.y) / length) * mark.shift, ((b.x - a.x) / length) * mark.shift];
  return [{ x: a.x + dx, y: a.y + dy }, { x: b.x + dx, y: b.y + dy }];
}

function line(path: Path2D, from: Point, to: Point): void {
  path.moveTo(from.x, from.y);
  path.lineTo(to.x, to.y);
}

function isOutside({ width, height }: Size, a: Point, b: Point): boolean {
  return (a.x < 0 && b.x < 0) || (a.y < 0 && b.y < 0) || (a.x > width && b.x > width) || (a.y > height && b.y > height);
}

function isVisible({ width, height }: Size, { x, y }: Point, margin: number): boolean {
  return x > -margin && y > -margin && x < width + margin && y < height + margin;
}

function paintHosts(frame: Frame, scene: Scene): void {
  const { context, colours, size } = frame;
  const [spokes, dots] = [new Path2D(), new Path2D()];
  for (const sw of scene.switches) {
    const from = at(frame, sw);
    if (sw.hosts.length === 0 || sw.hosts.length > HOSTS_SPREAD_MAX || !isVisible(size, from, 60)) continue;
    for (const host of sw.hosts) {
      const to = hostAt(frame, host);
      line(spokes, from, to);
      dots.roundRect(to.x - 3.5, to.y - 3.5, 7, 7, 2);
    }
  }
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  context.stroke(spokes);
  context.fillStyle = colours.background;
  context.fill(dots);
  context.strokeStyle = colours.muted;
  context.lineWidth = 1.4;
  context.stroke(dots);
}

function paintSwitches(frame: Frame, scene: Scene): void {
  const radius = radiusOf(frame.camera);
  const [up, down]: [Path2D, Path2D] = [new Path2D(), new Path2D()];
  const downMarks: Point[] = [];
  for (const mark of scene.switches) {
    const point = at(frame, mark);
    if (!isVisible(frame.size, point, radius)) continue;
    const path = mark.up ? up : down;
    path.moveTo(point.x + radius, point.y);
    path.arc(point.x, point.y, radius, 0, 2 * Math.PI);
    if (!mark.up) downMarks.push(point);
  }
  const { context, colours } = frame;
  const small = radius < 3.2;
  context.lineWidth = Math.min(2, radius / 3);
  context.fillStyle = small ? colours.muted : colours.surface;
  context.fill(up);
  context.strokeStyle = colours.muted;
  if (!small) context.stroke(up);
  context.fillStyle = small ? colours.bad : colours.background;
  context.fill(down);
  context.strokeStyle = colours.bad;
  context.stroke(down);
  if (!small) for (const { x, y } of downMarks) cross(context, x, y, radius * 0.4);
}

/** Which cells of the screen hold something that a label must not cover. What is further outside than `OUTSIDE` is free. */
class Occupied {
  private cells = new Uint8Array(0);
  private columns = 0;
  private rows = 0;

  /** All cells of a screen are free. */
  clear({ width, height }: Size): void {
    this.columns = Math.ceil((width + 2 * OUTSIDE) / CELL);
    this.rows = Math.ceil((height + 2 * OUTSIDE) / CELL);
    const count = this.columns * this.rows;
    if (this.cells.length < count) this.cells = new Uint8Array(count);
    else this.cells.fill(0, 0, count);
  }

  /** Takes a rectangle by its upper left corner, if it is free or `force` is set. */
  take(x: number, y: number, width: number, height: number, force = false): boolean {
    const left = Math.max(0, Math.floor((x + OUTSIDE) / CELL));
    const right = Math.min(this.columns - 1, Math.floor((x + width + OUTSIDE) / CELL));
    const top = Math.max(0, Math.floor((y + OUTSIDE) / CELL));
    const bottom = Math.min(this.rows - 1, Math.floor((y + height + OUTSIDE) / CELL));
    for (let row = top; row <= bottom && !force; row += 1) {
      for (let cell = left; cell <= right; cell += 1) if (this.cells[row * this.columns + cell] !== 0) return false;
    }
    for (let row = top; row <= bottom; row += 1) this.cells.fill(1, row * this.columns + left, row * this.columns + right + 1);
    return true;
  }
}

/** One for all frames: they come one after the other. */
const occupied = new Occupied();

/** In a network of up to this many switches, each has its name, even if it covers something. */
const MUST_NAME = 40;
const CELL = 5;
/** How far outside of the screen cells are remembered: further than a name that is partly on it can reach. A multiple of `CELL`. */
const OUTSIDE = 400;
const LABEL_HEIGHT = 11;

const widths = new Map<string, number>();

export function labelWidth(context: CanvasRenderingContext2D, label: string): number {
  const known = widths.get(label);
  if (known !== undefined) return known;
  context.font = FONT;
  const width = context.measureText(label).width;
  // A bound, because host names come and go; at the bound the sizes are measured again.
  if (widths.size > 20_000) widths.clear();
  widths.set(label, width);
  return width;
}

function paintLabels(frame: Frame, scene: Scene, options: Options): LabelPlaces {
  const { context, colours, size, camera, labelsMax } = frame;
  context.font = FONT;
  context.textAlign = 'left';
  context.textBaseline = 'top';
  context.lineWidth = 3;
  context.lineJoin = 'round';
  context.strokeStyle = colours.background;
  occupied.clear(size);
  const radius = radiusOf(camera);
  const hosts = hostsVisible(scene, camera, options);
  occupy(frame, scene, hosts);
  let count = 0;
  const label = (text: string, { x, y }: Point, away: number, colour: string, must: boolean): Point | null => {
    if (count >= labelsMax || !isVisible(size, { x, y }, 20)) return null;
    const width = labelWidth(context, text);
    const free = freeCorner(x, y, away, width) ?? (must ? corner(0, x, y, away, width) : null);
    if (!free) return null;
    count += 1;
    context.strokeText(text, free.x, free.y);
    context.fillStyle = colour;
    context.fillText(text, free.x, free.y);
    return free;
  };
  const places = new Map<string, Point>();
  for (const mark of byImportance(scene.switches)) {
    // Far away, the names of some switches would be noise; those that failed are not.
    if (count >= labelsMax || (camera.scale < FAR && mark.up)) break;
    const place = label(mark.label, at(frame, mark), radius + 3, mark.up ? colours.text : colours.bad, camera.scale > 0.8 || scene.switches.length <= MUST_NAME);
    if (place) places.set(mark.id, place);
  }
  const named = (id: string) => places.get(id);
  if (!hosts || camera.scale < HOST_NAMES) return named;
  for (const host of scene.hosts) if (isSpread(host)) label(host.label, hostAt(frame, host), 6, colours.muted, false);
  return named;
}

/** The places around a point that a name can take. */
const CORNERS = 8;

function freeCorner(x: number, y: number, away: number, width: number): Point | null {
  for (let place = 0; place < CORNERS; place += 1) {
    const found = corner(place, x, y, away, width);
    if (occupied.take(found.x, found.y, width, LABEL_HEIGHT)) return found;
  }
  return null;
}

/** Where a name can be: below, right, left, above, and at the corners between. The first that is free is taken. */
function corner(place: number, x: number, y: number, away: number, width: number): Point {
  const [right, left, above, below] = [x + away + 1, x - away - 1 - width, y - away - LABEL_HEIGHT, y + away];
  switch (place) {
    case 0: return { x: x - width / 2, y: below };
    case 1: return { x: right, y: y - 6 };
    case 2: return { x: left, y: y - 6 };
    case 3: return { x: x - width / 2, y: above };
    case 4: return { x: right - 5, y: below - 5 };
    case 5: return { x: left + 5, y: below - 5 };
    case 6: return { x: right - 5, y: above + 5 };
    default: return { x: left + 5, y: above + 5 };
  }
}

/** Above this scale, hosts have names. */
const HOST_NAMES = 1.7;

function occupy(frame: Frame, scene: Scene, hosts: boolean): void {
  if (frame.camera.scale < FAR) return;
  const radius = radiusOf(frame.camera);
  for (const mark of scene.switches) {
    const { x, y } = at(frame, mark);
    if (isVisible(frame.size, { x, y }, 60)) occupied.take(x - radius, y - radius, 2 * radius, 2 * radius, true);
  }
  if (!hosts) return;
  for (const host of scene.hosts) {
    if (!isSpread(host)) continue;
    const { x, y } = hostAt(frame, host);
    occupied.take(x - 3, y - 3, 6, 6, true);
  }
}

const sorted = new WeakMap<readonly SwitchMark[], SwitchMark[]>();

/** Failed switches first, then those with many cables. */
function byImportance(marks: readonly SwitchMark[]): SwitchMark[] {
  const known = sorted.get(marks);
  if (known) return known;
  const order = [...marks].sort((a, b) => Number(a.up) - Number(b.up) || b.degree - a.degree || (a.id < b.id ? -1 : 1));
  sorted.set(marks, order);
  return order;
}
