// A picture of the network that is larger than the canvas. While the map is dragged or dimmed, a frame is a copy of its pixels.
//
//   paint ──at the first frame──→ Backdrop ──copy at each frame──→ lower canvas
//
// In: the camera, and a function that paints the network. Out: pixels, and where the names are. It paints again if the map has
// been dragged out of the picture, or if the picture was forgotten. It does not know what it shows.

import type { Camera, Point, Size } from './camera.ts';
import { LABELS_MAX, type Frame, type LabelPlaces } from './paint.ts';

/** How far the map can be dragged before the picture is painted again, in pixels on each side. More would cost memory and time. */
const MARGIN_PX = 160;

interface Picture {
  camera: Camera;
  size: Size;
  ratio: number;
  names: LabelPlaces;
}

/** A canvas that is not shown. It is part of the page, because text on a canvas takes the forms of digits from the page's style. */
export function hiddenCanvas(beside: HTMLElement): HTMLCanvasElement {
  const canvas = document.createElement('canvas');
  canvas.hidden = true;
  beside.parentElement?.append(canvas);
  return canvas;
}

export class Backdrop {
  private readonly canvas: HTMLCanvasElement;
  private readonly context: CanvasRenderingContext2D;
  private picture: Picture | null = null;

  constructor(beside: HTMLElement) {
    this.canvas = hiddenCanvas(beside);
    this.context = this.canvas.getContext('2d', { alpha: false })!;
  }

  /** What is painted has changed. */
  forget(): void {
    this.picture = null;
  }

  /** Fills the canvas of the frame. `ratio`: its pixels for each CSS pixel. */
  show(frame: Frame, ratio: number, paint: (frame: Frame) => LabelPlaces): LabelPlaces {
    const offset = this.picture && offsetOf(this.picture, frame, ratio);
    const picture = offset ? this.picture! : this.paint(frame, ratio, paint);
    const { x, y } = offset ?? { x: 0, y: 0 };
    const { context } = frame;
    context.save();
    context.resetTransform();
    context.drawImage(this.canvas, Math.round((x - MARGIN_PX) * ratio), Math.round((y - MARGIN_PX) * ratio));
    context.restore();
    return (id) => {
      const place = picture.names(id);
      return place && { x: place.x + x - MARGIN_PX, y: place.y + y - MARGIN_PX };
    };
  }

  private paint(frame: Frame, ratio: number, paint: (frame: Frame) => LabelPlaces): Picture {
    const size = { width: frame.size.width + 2 * MARGIN_PX, height: frame.size.height + 2 * MARGIN_PX };
    const [width, height] = [Math.round(size.width * ratio), Math.round(size.height * ratio)];
    const { canvas, context } = this;
    // Setting a size clears the canvas and takes new memory, so it is set only if it changes.
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const part = (size.width * size.height) / (frame.size.width * frame.size.height);
    const names = paint({ ...frame, context, size, labelsMax: Math.round(LABELS_MAX * part) });
    this.picture = { camera: frame.camera, size: frame.size, ratio, names };
    return this.picture;
  }
}

/** How far the map has been dragged since the picture was painted; nothing if the picture does not cover the canvas. */
function offsetOf({ camera, size, ratio }: Picture, frame: Frame, ratioNow: number): Point | null {
  if (camera.scale !== frame.camera.scale || ratio !== ratioNow || size.width !== frame.size.width || size.height !== frame.size.height) return null;
  const offset = { x: (camera.x - frame.camera.x) * camera.scale, y: (camera.y - frame.camera.y) * camera.scale };
  return Math.abs(offset.x) <= MARGIN_PX && Math.abs(offset.y) <= MARGIN_PX ? offset : null;
}
