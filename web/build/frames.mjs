// Measures the frames of the page while events arrive: the time between frames, how long the page's thread is busy for each, and how long
// all processes of the browser are.
//
//   [BURNET_DIST="FOLDER …"] [BURNET_SECONDS=6] node build/frames.mjs [SIZE …]
//
// In: `dist`, or the folders in BURNET_DIST, one after the other for each size; the seconds of each measurement. Out: a line for each situation.
// Without a graphics card, Chromium draws with the processor, so a figure here is an upper bound. It changes no file.

import { chromium } from 'playwright-core';
import { start } from '../mock/server.mjs';

const SECONDS = Number(process.env.BURNET_SECONDS ?? 6);
const folders = process.env.BURNET_DIST?.split(' ') ?? [undefined];
const sizes = process.argv.slice(2).map(Number);
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });

const browserClient = await browser.newBrowserCDPSession();
/** The processor time of each process of the browser, in seconds, by the id of the process. */
async function cpuOfAll() {
  const { processInfo } = await browserClient.send('SystemInfo.getProcessInfo');
  return new Map(processInfo.map(({ id, cpuTime }) => [id, cpuTime]));
}

/** Frames of some seconds, while `during` goes on. */
async function measure(page, client, during) {
  const metrics = async () => Object.fromEntries((await client.send('Performance.getMetrics')).metrics.map(({ name, value }) => [name, value]));
  const [before, cpuBefore] = [await metrics(), await cpuOfAll()];
  const frames = page.evaluate(
    (ms) =>
      new Promise((resolve) => {
        const times = [];
        const step = (now) => (times.push(now), now - times[0] < ms ? requestAnimationFrame(step) : resolve(times));
        requestAnimationFrame(step);
      }),
    SECONDS * 1000,
  );
  const stop = during ? await during() : null;
  const times = await frames;
  await stop?.();
  const [after, cpuAfter] = [await metrics(), await cpuOfAll()];
  const gaps = times.slice(1).map((time, i) => time - times[i]).sort((x, y) => x - y);
  const at = (part) => gaps[Math.min(gaps.length - 1, Math.floor(gaps.length * part))].toFixed(1);
  const busy = ((after.TaskDuration - before.TaskDuration) * 1000) / gaps.length;
  const all = ([...cpuAfter].reduce((sum, [id, time]) => sum + time - (cpuBefore.get(id) ?? 0), 0) * 1000) / gaps.length;
  const script = ((after.ScriptDuration - before.ScriptDuration) * 1000) / gaps.length;
  return `${(gaps.length / SECONDS).toFixed(1).padStart(5)} frames/s, gap p50 ${at(0.5)} p95 ${at(0.95)} p99 ${at(0.99)} ms, busy ${busy.toFixed(1)} ms a frame, of it script ${script.toFixed(1)}; all processes ${all.toFixed(1)} ms`;
}

for (const [size, dist] of (sizes.length > 0 ? sizes : [20, 205, 2000]).flatMap((size) => folders.map((folder) => [size, folder]))) {
  // Without failures: an intent that has lost its path would have nothing to show.
  const server = await start({ size, pace: 0, dist });
  const name = `${dist ? `${dist}: ` : ''}${size} switches`;
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  const client = await page.context().newCDPSession(page);
  // Time that the thread ran, not time that passed: other programs of the machine do not count.
  await client.send('Performance.enable', { timeDomain: 'threadTicks' });
  await page.goto(`http://127.0.0.1:${server.port}/`);
  await page.waitForTimeout(size > 500 ? 8000 : 3000);
  console.log(`${name}, counters arrive: ${await measure(page, client)}`);
  await page.evaluate(() => (location.hash = '#/network/intent/1'));
  await page.waitForTimeout(800);
  console.log(`${name}, a path moves: ${await measure(page, client)}`);
  await page.evaluate(() => (location.hash = '#/network'));
  const drag = async () => {
    await page.mouse.move(500, 450);
    await page.mouse.down();
    let on = true;
    const moves = (async () => {
      for (let i = 0; on; i += 1) await page.mouse.move(500 + 120 * Math.sin(i / 20), 450 + 80 * Math.cos(i / 20));
    })();
    return async () => ((on = false), await moves, page.mouse.up());
  };
  console.log(`${name}, the map is dragged: ${await measure(page, client, drag)}`);
  await page.close();
  server.close();
}
await browser.close();
