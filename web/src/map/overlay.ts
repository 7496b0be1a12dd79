// The upper canvas. It is only as large as what it shows, and what stands still on it is painted once.
//
//   scene, highlights ──paint, at a change──→ two pictures: below and above the moving dots
//                                                   └──step, at each frame──→ upper canvas
//
// In: a frame without a canvas, what is highlighted, the time. Out: pixels. It decides nothing.

import { hiddenCanvas } from './backdrop.ts';
import { boundsOf, paintDots, paintMarks, paintRoutes, trailsOf, type Box, type Highlights, type Trail } from './highlight.ts';
import type { Frame, LabelPlaces } from './paint.ts';
import type { Scene } from './scene.ts';

/** The edges of the canvas are multiples of this, so that a small movement does not take new memory. */
const GRID_PX = 16;

export class Overlay {
  private readonly context: CanvasRenderingContext2D;
  private readonly below: CanvasRenderingContext2D;
  private readonly above: CanvasRenderingContext2D;
  private box: Box | null = null;
  private ratio = 1;
  private trails: Trail[] = [];

  constructor(private canvas: HTMLCanvasElement) {
    this.context = canvas.getContext('2d')!;
    this.below = hiddenCanvas(canvas).getContext('2d')!;
    this.above = hiddenCanvas(canvas).getContext('2d')!;
    canvas.hidden = true;
  }

  /** Paints what stands still, and remembers what moves. `ratio`: pixels for each CSS pixel. */
  paint(view: Omit<Frame, 'context'>, ratio: number, scene: Scene, names: LabelPlaces, highlights: Highlights): void {
    const found = boundsOf({ ...view, context: this.context }, scene, names, highlights);
    this.box = found && within(found, view.size.width, view.size.height);
    this.ratio = ratio;
    this.canvas.hidden = this.box === null;
    if (!this.box) return;
    this.place(this.box);
    paintRoutes(this.begin(this.below, view), scene, highlights);
    paintMarks(this.begin(this.above, view), scene, names, highlights);
    this.trails = trailsOf(view, scene, highlights);
  }

  /** The next frame. */
  step(colour: string, nowMs: number): void {
    if (!this.box) return;
    const { context, below, above } = this;
    context.resetTransform();
    context.globalCompositeOperation = 'copy';
    context.drawImage(below.canvas, 0, 0);
    context.globalCompositeOperation = 'source-over';
    this.look(context);
    paintDots(context, this.trails, colour, nowMs);
    context.resetTransform();
    context.drawImage(above.canvas, 0, 0);
  }

  /** Puts the canvas where the box is. */
  private place({ left, top, right, bottom }: Box): void {
    const [width, height] = [right - left, bottom - top];
    Object.assign(this.canvas.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
    const pixels = { width: Math.round(width * this.ratio), height: Math.round(height * this.ratio) };
    for (const { canvas } of [this.context, this.below, this.above]) {
      if (canvas.width !== pixels.width || canvas.height !== pixels.height) Object.assign(canvas, pixels);
    }
  }

  private begin(context: CanvasRenderingContext2D, view: Omit<Frame, 'context'>): Frame {
    context.resetTransform();
    context.clearRect(0, 0, context.canvas.width, context.canvas.height);
    this.look(context);
    return { ...view, context };
  }

  /** The places of the map, on a canvas that begins at the box. */
  private look(context: CanvasRenderingContext2D): void {
    const { ratio, box } = this;
    context.setTransform(ratio, 0, 0, ratio, -box!.left * ratio, -box!.top * ratio);
  }
}

/** The part of a box that is on the map, with its edges on the grid; nothing if no part is. */
function within(box: Box, width: number, height: number): Box | null {
  const down = (value: number) => Math.max(0, Math.floor(value / GRID_PX) * GRID_PX);
  const up = (value: number, most: number) => Math.min(most, Math.ceil(value / GRID_PX) * GRID_PX);
  const cut = { left: down(box.left), top: down(box.top), right: up(box.right, width), bottom: up(box.bottom, height) };
  return cut.left < cut.right && cut.top < cut.bottom ? cut : null;
}
