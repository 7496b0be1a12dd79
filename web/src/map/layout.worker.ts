// Runs a layout beside the page, so that the page stays responsive.
//
// In: `{ job, kind, graph }`. Out: `{ job, points }`, in the order of the jobs.

import { layout, type Graph, type LayoutKind } from './layout.ts';

self.onmessage = ({ data }: MessageEvent<{ job: number; kind: LayoutKind; graph: Graph }>) => {
  self.postMessage({ job: data.job, points: layout(data.kind, data.graph) });
};
