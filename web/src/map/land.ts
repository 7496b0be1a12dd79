// The shapes of the continents and borders behind a network of which the places are known.
//
// In: Natural Earth's borders (public domain), from the package world-atlas, which is a part of the page: nothing comes
// from other servers. Out: two paths in radians of Web Mercator, which the engine
// scales as the layout did.

import type { MultiLineString, Position } from 'geojson';
import { feature, mesh } from 'topojson-client';
import type { GeometryCollection, Topology } from 'topojson-specification';
import { mercator } from './layout.ts';

export interface Land {
  ground: Path2D;
  borders: Path2D;
}

export async function loadLand(): Promise<Land> {
  const atlas = (await import('world-atlas/countries-110m.json')).default as unknown as Topology<{ countries: GeometryCollection; land: GeometryCollection }>;
  const ground = new Path2D();
  for (const { geometry } of feature(atlas, atlas.objects.land).features) {
    const polygons = geometry.type === 'Polygon' ? [geometry.coordinates] : geometry.type === 'MultiPolygon' ? geometry.coordinates : [];
    for (const ring of polygons.flat()) trace(ground, ring, true);
  }
  const borders = new Path2D();
  const inner: MultiLineString = mesh(atlas, atlas.objects.countries, (a, b) => a !== b);
  for (const line of inner.coordinates) trace(borders, line, false);
  return { ground, borders };
}

function trace(path: Path2D, points: readonly Position[], closed: boolean): void {
  let before = NaN;
  points.forEach(([longitude = 0, latitude = 0]) => {
    const { x, y } = mercator({ x: longitude, y: latitude });
    // A line over the 180th meridian would cross the whole map.
    const jumps = !(Math.abs(longitude - before) < 180);
    before = longitude;
    if (jumps) path.moveTo(x, y);
    else path.lineTo(x, y);
  });
  if (closed) path.closePath();
}
