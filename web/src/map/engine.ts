// The map while it is shown: two canvases, the camera, and the loop that draws.
//
//   scene, loads, highlights, colours ──→ MapEngine ──→ pixels
//   pointer and wheel ──────────────────→     └──→ on.choose, on.hover, on.moved
//
// In: what to draw, gestures. Out: pixels and what the operator pointed at. It draws only if something changed or moves, the
// lower canvas only if the network or the camera changed. While the map is dragged, it copies a picture. It knows no session and
// changes no object of the network.

import { between, fit, pan, toScreen, toWorld, zoom, type Camera, type Insets, type Point, type Size } from './camera.ts';
import { Backdrop } from './backdrop.ts';
import { isMoving, NO_HIGHLIGHTS, type Highlights } from './highlight.ts';
import type { Land } from './land.ts';
import { Overlay } from './overlay.ts';
import { hostAt, hostsVisible, isSpread, LABELS_MAX, paint, radiusOf, type Colours, type Frame, type LabelPlaces, type Options } from './paint.ts';
import { emptyScene, find, type Found, type Scene } from './scene.ts';

export interface Listener {
  choose(found: Found | null): void;
  hover(found: Found | null, pointer: Point | null): void;
  /** The operator dragged a switch to another place. */
  moved(id: string, to: Point): void;
}

const MOVE_MS = 420;
const DIM_MS = 250;
/** How much of the network is seen behind a path. */
const DIMMED = 0.42;
/** A pointer that moves less is a click. */
const CLICK_PX = 5;
/** A finger rolls further than a mouse. */
const TAP_PX = 10;
/** Text and lines are not sharper above this, but each frame costs more. */
const PIXEL_RATIO_MAX = 2;

interface Glide {
  startMs: number;
  camera: { from: Camera; to: Camera } | null;
  switches: { id: string; from: Point; to: Point }[];
}

/** What has to be drawn again: all because the network changed, all because it is seen from elsewhere, the lower canvas, the upper one. */
type Stale = 'content' | 'lower' | 'dim' | 'upper';

interface Drag {
  at: Point;
  far: boolean;
  switchId: string | null;
}

export class MapEngine {
  /** How much of each side is covered or should stay free. */
  insets: Insets = { top: 100, right: 64, bottom: 76, left: 64 };

  private scene = emptyScene();
  private loads = new Float32Array(0);
  private highlights: Highlights = NO_HIGHLIGHTS;
  private colours: Colours | null = null;
  private options: Options = { showLoad: true, showHosts: true };
  private land: Land | null = null;
  private landScale = 1;
  private camera: Camera = { x: 0, y: 0, scale: 1 };
  private size: Size = { width: 0, height: 0 };
  private names: LabelPlaces = () => undefined;
  private glide: Glide | null = null;
  /** How strongly the network is dimmed, from 0 to 1: now, and when the change is over. */
  private dim = { now: 0, from: 0, to: 0, startMs: 0 };
  private drags = new Map<number, Drag>();
  private panning = false;
  private stale = { lower: true, upper: true };
  private asked = 0;
  private fitted = false;
  private readonly still = matchMedia('(prefers-reduced-motion: reduce)').matches;
  private readonly resizes: ResizeObserver;
  private readonly gestures = new AbortController();
  private readonly context: CanvasRenderingContext2D;
  private readonly backdrop: Backdrop;
  private readonly overlay: Overlay;

  /** `input` gets the gestures; it is as large as the lower canvas. */
  constructor(
    private lower: HTMLCanvasElement,
    upper: HTMLCanvasElement,
    private input: HTMLElement,
    private on: Listener,
  ) {
    // Without transparency, the browser copies the canvas and does not blend it with what is behind.
    this.context = lower.getContext('2d', { alpha: false })!;
    this.backdrop = new Backdrop(lower);
    this.overlay = new Overlay(upper);
    this.resizes = new ResizeObserver(() => this.resize());
    this.resizes.observe(lower);
    this.listen();
  }

  close(): void {
    this.resizes.disconnect();
    this.gestures.abort();
    cancelAnimationFrame(this.asked);
  }

  // --- What to draw ---

  setScene(scene: Scene): void {
    const shown = this.scene.byId;
    const dragged = [...this.drags.values()].map((drag) => drag.switchId);
    const switches = scene.switches.flatMap((mark) => {
      const { id, x, y } = mark;
      const before = shown.get(id);
      if (before && dragged.includes(id)) Object.assign(mark, { x: before.x, y: before.y });
      else if (before && (before.x !== x || before.y !== y)) return [{ id, from: { x: before.x, y: before.y }, to: { x, y } }];
      return [];
    });
    this.scene = scene;
    if (switches.length > 0 && !this.still) this.startGlide({ switches });
    else if (this.glide) this.glide.switches = [];
    if (!this.fitted && scene.switches.length > 0 && this.size.width > 0) this.fit(false);
    this.draw('content');
  }

  setLoads(loads: Float32Array): void {
    this.loads = loads as Float32Array<ArrayBuffer>;
    this.draw('content');
  }

  setHighlights(highlights: Highlights): void {
    this.highlights = highlights;
    this.draw('upper');
  }

  setColours(colours: Colours): void {
    this.colours = colours;
    this.draw('content');
  }

  setOptions(options: Options): void {
    this.options = options;
    this.draw('content');
  }

  setLand(land: Land | null, scale: number): void {
    this.land = land;
    this.landScale = scale;
    this.draw('content');
  }

  /** Whether the network is dimmed, so that a path is seen better. */
  setDim(dim: boolean): void {
    const to = dim ? 1 : 0;
    if (this.dim.to === to) return;
    this.dim = this.still ? { now: to, from: to, to, startMs: 0 } : { ...this.dim, from: this.dim.now, to, startMs: performance.now() };
    this.draw('dim');
  }

  /** Whether the network is not yet drawn as it will be. The dots of a path do not count: they never rest. */
  get isMoving(): boolean {
    return this.stale.lower || this.stale.upper || this.glide !== null || this.dim.now !== this.dim.to;
  }

  // --- The camera ---

  fit(glide = true): void {
    this.fitted = true;
    this.moveTo(fit(this.targets(), this.size, this.insets), glide);
  }

  zoomBy(factor: number): void {
    this.moveTo(zoom(this.glide?.camera?.to ?? this.camera, this.size, this.middle(), factor), true);
  }

  /** Moves if not all of the switches are to be seen. */
  reveal(ids: readonly string[]): void {
    const points = ids.flatMap((id) => this.scene.byId.get(id) ?? []);
    const { top, right, bottom, left } = this.insets;
    const seen = ({ x, y }: Point) => x > left * 0.6 && y > top * 0.6 && x < this.size.width - right * 0.6 && y < this.size.height - bottom * 0.8;
    const spread = points.map((point) => toScreen(this.camera, this.size, point));
    const wide = Math.max(...spread.map(({ x }) => x)) - Math.min(...spread.map(({ x }) => x));
    if (points.length === 0 || (spread.every(seen) && (points.length === 1 || wide > 60))) return;
    const target = fit(points, this.size, this.insets);
    this.moveTo({ ...target, scale: Math.min(target.scale, Math.max(1, this.camera.scale)) }, true);
  }

  switchAt(id: string): Point | null {
    const mark = this.scene.byId.get(id);
    return mark ? toScreen(this.camera, this.size, mark) : null;
  }

  /** Where a host or the middle of a cable is on the canvas. */
  placeOf(found: Found): Point | null {
    if (found.kind === 'switch') return this.switchAt(found.id);
    if (found.kind === 'host') {
      const host = this.scene.hostById.get(found.id);
      return host ? hostAt({ camera: this.camera, size: this.size }, host) : null;
    }
    const mark = this.scene.cableById.get(found.id);
    if (!mark) return null;
    const [a, b] = [toScreen(this.camera, this.size, mark.a), toScreen(this.camera, this.size, mark.b)];
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
  }

  private moveTo(camera: Camera, glide: boolean): void {
    if (glide && !this.still) return this.startGlide({ camera: { from: this.camera, to: camera } });
    this.camera = camera;
    if (this.glide) this.glide.camera = null;
    this.draw('lower');
  }

  /** Where the switches will be when they have moved. */
  private targets(): Point[] {
    const moving = new Map(this.glide?.switches.map(({ id, to }) => [id, to]));
    return this.scene.switches.map((mark) => moving.get(mark.id) ?? mark);
  }

  private middle(): Point {
    return { x: this.size.width / 2, y: this.size.height / 2 };
  }

  private startGlide(part: Partial<Glide>): void {
    const camera = part.camera ?? this.glide?.camera;
    const going = (this.glide?.switches ?? []).flatMap(({ id, to }) => {
      const mark = this.scene.byId.get(id);
      return mark ? [{ id, from: { x: mark.x, y: mark.y }, to }] : [];
    });
    const switches = part.switches ?? going;
    this.glide = { startMs: performance.now(), camera: camera ? { from: this.camera, to: camera.to } : null, switches };
    for (const { id, from } of switches) Object.assign(this.scene.byId.get(id)!, from);
    this.draw('content');
  }

  private stepGlide(nowMs: number): void {
    if (!this.glide) return;
    const part = Math.min(1, (nowMs - this.glide.startMs) / MOVE_MS);
    const eased = 1 - (1 - part) ** 3;
    if (this.glide.camera) this.camera = between(this.glide.camera.from, this.glide.camera.to, eased);
    for (const { id, from, to } of this.glide.switches) {
      const mark = this.scene.byId.get(id);
      if (mark) Object.assign(mark, { x: from.x + (to.x - from.x) * eased, y: from.y + (to.y - from.y) * eased });
    }
    this.mark(this.glide.switches.length > 0 ? 'content' : 'lower');
    if (part === 1) this.glide = null;
  }

  private stepDim(nowMs: number): void {
    if (this.dim.now === this.dim.to) return;
    const part = Math.max(0, Math.min(1, (nowMs - this.dim.startMs) / DIM_MS));
    this.dim.now = part === 1 ? this.dim.to : this.dim.from + (this.dim.to - this.dim.from) * part;
    // The last frame is no copy: the names of the network are placed anew, and those of a path above it must follow.
    this.mark(part === 1 ? 'lower' : 'dim');
  }

  // --- Drawing ---

  private draw(what: Stale): void {
    this.mark(what);
    this.ask();
  }

  private mark(what: Stale): void {
    if (what === 'content') this.backdrop.forget();
    if (what !== 'upper') this.stale.lower = true;
    if (what !== 'dim') this.stale.upper = true;
  }

  private ask(): void {
    this.asked ||= requestAnimationFrame((nowMs) => this.frame(nowMs));
  }

  private frame(nowMs: number): void {
    this.asked = 0;
    if (!this.colours || this.size.width === 0) return;
    this.stepGlide(nowMs);
    this.stepDim(nowMs);
    if (this.stale.lower) this.drawLower(this.colours);
    const moving = isMoving(this.highlights) && !this.still;
    if (this.stale.upper) this.overlay.paint(this.view(this.colours), this.ratio, this.scene, this.names, this.highlights);
    if (this.stale.upper || moving) this.overlay.step(this.colours.background, this.still ? 0 : nowMs);
    this.stale = { lower: false, upper: false };
    if (moving || this.glide !== null || this.dim.now !== this.dim.to) this.ask();
  }

  private drawLower(colours: Colours): void {
    const frame = { ...this.view(colours), context: this.context };
    this.context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    const isCopied = this.panning || this.dim.now !== this.dim.to;
    this.names = isCopied ? this.backdrop.show(frame, this.ratio, (it) => this.paint(it)) : this.paint(frame);
    if (this.dim.now === 0) return;
    this.context.globalAlpha = this.dim.now * (1 - DIMMED);
    this.context.fillStyle = colours.background;
    this.context.fillRect(0, 0, this.size.width, this.size.height);
    this.context.globalAlpha = 1;
  }

  private paint(frame: Frame): LabelPlaces {
    frame.context.fillStyle = frame.colours.background;
    frame.context.fillRect(0, 0, frame.size.width, frame.size.height);
    if (this.land) this.drawLand(frame, this.land);
    return paint(frame, this.scene, this.loads, this.options);
  }

  private view(colours: Colours): Omit<Frame, 'context'> {
    return { size: this.size, camera: this.camera, colours, labelsMax: LABELS_MAX };
  }

  /** Pixels of the canvas for each CSS pixel. */
  private get ratio(): number {
    return this.lower.width / this.size.width;
  }

  private drawLand(frame: Frame, land: Land): void {
    const { context, camera, size, colours } = frame;
    const scale = camera.scale;
    context.save();
    context.translate(size.width / 2 - camera.x * scale, size.height / 2 - camera.y * scale);
    context.scale(scale * this.landScale, scale * this.landScale);
    context.fillStyle = colours.land;
    context.fill(land.ground);
    context.strokeStyle = colours.shore;
    context.lineWidth = 1 / (scale * this.landScale);
    context.stroke(land.ground);
    context.stroke(land.borders);
    context.restore();
  }

  private resize(): void {
    const { width, height } = this.lower.getBoundingClientRect();
    if (width === 0 || height === 0) return;
    this.size = { width, height };
    const ratio = Math.min(PIXEL_RATIO_MAX, devicePixelRatio || 1);
    this.lower.width = Math.round(width * ratio);
    this.lower.height = Math.round(height * ratio);
    if (!this.fitted && this.scene.switches.length > 0) this.fit(false);
    // Setting a size clears a canvas, so it is drawn at once and not with the next frame.
    this.stale = { lower: true, upper: true };
    cancelAnimationFrame(this.asked);
    this.frame(performance.now());
  }

  // --- Gestures ---

  private listen(): void {
    const { input, gestures } = this;
    const options = { signal: gestures.signal };
    input.addEventListener('pointerdown', (event) => this.onDown(event), options);
    input.addEventListener('pointermove', (event) => this.onMove(event), options);
    input.addEventListener('pointerup', (event) => this.onUp(event), options);
    input.addEventListener('pointercancel', (event) => this.endDrag(event), options);
    input.addEventListener('pointerleave', () => this.on.hover(null, null), options);
    input.addEventListener('wheel', (event) => this.onWheel(event), { ...options, passive: false });
  }

  private onDown(event: PointerEvent): void {
    if (event.button > 0) return;
    this.input.setPointerCapture(event.pointerId);
    const found = event.pointerType === 'mouse' && this.drags.size === 0 ? this.find(event) : null;
    this.drags.set(event.pointerId, { at: pointOf(event), far: false, switchId: found?.kind === 'switch' ? found.id : null });
  }

  private onMove(event: PointerEvent): void {
    const drag = this.drags.get(event.pointerId);
    const point = pointOf(event);
    if (!drag) return this.on.hover(this.find(event), point);
    const [dx, dy] = [point.x - drag.at.x, point.y - drag.at.y];
    if (!drag.far && Math.hypot(dx, dy) < (event.pointerType === 'mouse' ? CLICK_PX : TAP_PX)) return;
    drag.far = true;
    if (this.drags.size === 2) this.pinch(event.pointerId, drag.at, point);
    else if (drag.switchId) this.dragSwitch(drag.switchId, point);
    else this.pan(dx, dy);
    drag.at = point;
  }

  private pan(dx: number, dy: number): void {
    this.panning = true;
    this.moveTo(pan(this.camera, dx, dy), false);
  }

  private endDrag(event: PointerEvent): Drag | undefined {
    const drag = this.drags.get(event.pointerId);
    this.drags.delete(event.pointerId);
    // The picture has names that are not on the canvas; they took the places of others.
    if (this.panning) this.draw('lower');
    this.panning = false;
    return drag;
  }

  private onUp(event: PointerEvent): void {
    const drag = this.endDrag(event);
    if (!drag) return;
    const mark = drag.switchId ? this.scene.byId.get(drag.switchId) : undefined;
    if (drag.far && mark) this.on.moved(mark.id, { x: mark.x, y: mark.y });
    if (!drag.far) this.on.choose(this.find(event));
  }

  private onWheel(event: WheelEvent): void {
    event.preventDefault();
    const step = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? event.deltaY * 16 : event.deltaY;
    this.moveTo(zoom(this.camera, this.size, pointOf(event), Math.exp(-step * (event.ctrlKey ? 0.01 : 0.0016))), false);
  }

  private pinch(moved: number, from: Point, to: Point): void {
    const other = [...this.drags].find(([id]) => id !== moved)?.[1].at;
    if (!other) return;
    // Each step has another scale, for which a copy would have to be painted first.
    this.panning = false;
    const factor = Math.hypot(to.x - other.x, to.y - other.y) / Math.max(1, Math.hypot(from.x - other.x, from.y - other.y));
    const panned = pan(this.camera, (to.x - from.x) / 2, (to.y - from.y) / 2);
    this.moveTo(zoom(panned, this.size, { x: (to.x + other.x) / 2, y: (to.y + other.y) / 2 }, factor), false);
  }

  private dragSwitch(id: string, to: Point): void {
    Object.assign(this.scene.byId.get(id) ?? {}, toWorld(this.camera, this.size, to));
    this.draw('content');
  }

  private find(event: PointerEvent): Found | null {
    const view = { camera: this.camera, size: this.size };
    const hosts = hostsVisible(this.scene, this.camera, this.options);
    return find(
      this.scene,
      pointOf(event),
      (point) => toScreen(this.camera, this.size, point),
      (host) => (hosts && isSpread(host) ? hostAt(view, host) : null),
      radiusOf(this.camera),
      event.pointerType !== 'mouse',
    );
  }
}

function pointOf(event: MouseEvent): Point {
  return { x: event.offsetX, y: event.offsetY };
}
