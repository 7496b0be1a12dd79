// The picture of a slice's network.
//
//   SliceNetwork, labels ──→ picture() ──→ switches, links with the label of each direction, all with points
//
// In: what the node told. Out: plain shapes. It draws nothing.

import type { Point } from '../map/camera.ts';
import { layout } from '../map/layout.ts';
import { bitrate } from '../text.ts';
import type { SliceLabel, SliceNetwork } from './objects.ts';

export interface SliceSwitch {
  id: string;
  name: string;
  /** What the tenant sees, if it is another name. */
  shownAs: string | null;
  up: boolean;
  at: Point;
  /** The names of its VNICs. */
  vnics: string[];
}

/** What one direction of a link has left. */
export interface Direction {
  text: string;
  at: Point;
  /** The part of the capacity that is left, from 0 to 1. */
  left: number;
}

export interface SliceLink {
  id: string;
  name: string;
  up: boolean;
  from: Point;
  to: Point;
  directions: Direction[];
}

export interface SlicePicture {
  switches: SliceSwitch[];
  links: SliceLink[];
  /** The left upper corner and the size. */
  box: [x: number, y: number, width: number, height: number];
}

/** `of:0000000000000003/1` in the words of a slices file: `s3:1`. */
export function portName(id: string): string {
  return `${switchName(id.slice(0, 19))}:${id.slice(20)}`;
}

/** `of:0000000000000003` in the words of a slices file: `s3`. */
export function switchName(id: string): string {
  const number = Number.parseInt(id.slice(3, 19), 16);
  return number <= 0xffff ? `s${number}` : id;
}

export function linkName(id: string): string {
  return id.split('-').map(portName).join('-');
}

/** A sentence of the node with ports in the words of a slices file. */
export function withPortNames(text: string): string {
  return text.replace(/of:[0-9a-f]{16}\/\d+/g, portName);
}

/** The first words of a note: that the slice waits or does not fit, without the reason. */
export function noteHead(note: string): string {
  return note.split(': ')[0] ?? note;
}

const switchOf = (port: string) => port.slice(0, port.lastIndexOf('/'));

/** The label of a direction stands at this part of the way, so that both of a link can be read. */
const LABEL_AT = 0.3;
const MARGIN = 60;

export function picture(network: SliceNetwork, labels: readonly SliceLabel[]): SlicePicture {
  const place = new Map(network.switches.map(({ id }, index) => [id, index]));
  const ends = network.links.map(({ id }) => id.split('-').map((end) => place.get(switchOf(end))));
  const edges = ends.filter((pair): pair is [number, number] => pair.length === 2 && pair.every((end) => end !== undefined));
  const vnics = network.switches.map(({ id }) => network.vnics.filter(([, port]) => switchOf(port) === id).map(([name]) => name));
  const nowhere = network.switches.map(() => null);
  const points = layout('layered', { places: nowhere, before: nowhere, edges, edgeSwitch: vnics.map((names) => names.length > 0) })
    .map(({ x, y }) => ({ x: x * 2, y }));
  const switches = network.switches.map(({ id, shownAs, up }, index) => ({
    id, name: switchName(id), shownAs: shownAs === id ? null : shownAs, up, at: points[index]!, vnics: vnics[index]!,
  }));
  const known = new Map(labels.map((label) => [label.link, label]));
  const links = network.links.flatMap(({ id, up }, index): SliceLink[] => {
    const [from, to] = ends[index]!.map((end) => (end === undefined ? undefined : points[end]));
    if (!from || !to) return [];
    const back = id.split('-').reverse().join('-');
    const directions = [directed(known.get(id), from, to), directed(known.get(back), to, from)].filter((it) => it !== null);
    return [{ id, name: linkName(id), up, from, to, directions }];
  });
  return { switches, links, box: boxOf(points) };
}

function directed(label: SliceLabel | undefined, from: Point, to: Point): Direction | null {
  if (!label) return null;
  const at = { x: from.x + (to.x - from.x) * LABEL_AT, y: from.y + (to.y - from.y) * LABEL_AT };
  return { text: bitrate(label.labelKbps * 1000), at, left: label.capacityKbps > 0 ? label.labelKbps / label.capacityKbps : 0 };
}

function boxOf(points: readonly Point[]): SlicePicture['box'] {
  const [xs, ys] = [points.map(({ x }) => x), points.map(({ y }) => y)];
  const [x, y] = [Math.min(0, ...xs) - MARGIN, Math.min(0, ...ys) - MARGIN];
  return [x, y, Math.max(0, ...xs) + MARGIN - x, Math.max(0, ...ys) + MARGIN - y];
}
