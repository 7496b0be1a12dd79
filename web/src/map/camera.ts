// The map's camera: which part of the world the canvas shows.
//
// In: a camera, a point in CSS pixels, a factor. Out: a new camera, or a point. World units are those of the layouts, in which
// neighbours are about 100 apart. Pure.

export interface Point {
  x: number;
  y: number;
}

export interface Camera {
  /** The world's point in the middle of the canvas. */
  x: number;
  y: number;
  /** CSS pixels for each world unit. */
  scale: number;
}

export interface Size {
  width: number;
  height: number;
}

export interface Insets {
  top: number;
  right: number;
  bottom: number;
  left: number;
}

const SCALE_MIN = 0.01;
const SCALE_MAX = 8;
/** A small network is not blown up to fill the canvas. */
const SCALE_FIT_MAX = 2.4;

export function toScreen(camera: Camera, size: Size, point: Point): Point {
  return { x: (point.x - camera.x) * camera.scale + size.width / 2, y: (point.y - camera.y) * camera.scale + size.height / 2 };
}

export function toWorld(camera: Camera, size: Size, point: Point): Point {
  return { x: (point.x - size.width / 2) / camera.scale + camera.x, y: (point.y - size.height / 2) / camera.scale + camera.y };
}

/** Zooms so that the world's point under `at` stays where it is. */
export function zoom(camera: Camera, size: Size, at: Point, factor: number): Camera {
  const scale = Math.min(SCALE_MAX, Math.max(SCALE_MIN, camera.scale * factor));
  const fixed = toWorld(camera, size, at);
  return { scale, x: fixed.x - (at.x - size.width / 2) / scale, y: fixed.y - (at.y - size.height / 2) / scale };
}

export function pan(camera: Camera, dx: number, dy: number): Camera {
  return { ...camera, x: camera.x - dx / camera.scale, y: camera.y - dy / camera.scale };
}

/** Shows all points within the canvas, less the insets. */
export function fit(points: Iterable<Point>, size: Size, insets: Insets): Camera {
  let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const { x, y } of points) {
    left = Math.min(left, x);
    right = Math.max(right, x);
    top = Math.min(top, y);
    bottom = Math.max(bottom, y);
  }
  if (left > right) return { x: 0, y: 0, scale: 1 };
  const width = Math.max(80, size.width - insets.left - insets.right);
  const height = Math.max(80, size.height - insets.top - insets.bottom);
  const scale = Math.max(SCALE_MIN, Math.min(SCALE_FIT_MAX, width / Math.max(1, right - left), height / Math.max(1, bottom - top)));
  const x = (left + right) / 2 + (insets.right - insets.left) / 2 / scale;
  const y = (top + bottom) / 2 + (insets.bottom - insets.top) / 2 / scale;
  return { x, y, scale };
}

export function between(from: Camera, to: Camera, part: number): Camera {
  const mix = (a: number, b: number) => a + (b - a) * part;
  // Zooming looks even if the logarithm of the scale is.
  return { x: mix(from.x, to.x), y: mix(from.y, to.y), scale: Math.exp(mix(Math.log(from.scale), Math.log(to.scale))) };
}
