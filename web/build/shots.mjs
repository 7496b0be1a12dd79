// Takes pictures of the page as a developer wants to look at it: sizes, colours, views. Out: PNG files in the folder given.
//
//   node build/shots.mjs FOLDER [NAME …]

import { mkdirSync } from 'node:fs';
import { chromium } from 'playwright-core';
import { start } from '../mock/server.mjs';

const [folder = 'shots', ...only] = process.argv.slice(2);
const desktop = { width: 1440, height: 900 };
const phone = { width: 390, height: 844 };
const first = (page, kind) => page.evaluate(async (name) => (await (await fetch(`/api/v1/${name}?limit=1`)).json()).items[0].id, kind);
const busy = async ({ state }) => {
  const links = [...state.world.tables.link.keys()];
  state.world.setLink(links[20], 'down');
};

const SHOTS = [
  { name: 'guide', size: 20, view: { width: 1200, height: 740 }, before: busy, hash: () => '#/network/intent/1' },
  { name: 'wan-dark', size: 20, view: desktop, before: busy },
  { name: 'wan-light', size: 20, view: desktop, theme: 'light', before: busy },
  { name: 'wan-phone', size: 20, view: phone, before: busy },
  { name: 'wan-intent', size: 20, view: desktop, hash: () => '#/network/intent/1' },
  { name: 'wan-intent-phone', size: 20, view: phone, theme: 'light', hash: () => '#/network/intent/1' },
  { name: 'wan-switch', size: 20, view: desktop, hash: async (page) => `#/network/switch/${await first(page, 'switches')}` },
  { name: 'wan-link', size: 20, view: desktop, theme: 'light', hash: async (page) => `#/network/link/${await first(page, 'links')}` },
  { name: 'wan-draw', size: 20, view: desktop, keys: ['i'] },
  { name: 'wan-trace', size: 20, view: desktop, theme: 'light', keys: ['t'], hosts: ['10.0.3.10', '10.0.30.10'] },
  { name: 'wan-lost', size: 20, view: desktop, before: ({ state }) => ((state.awayUntilMs = Infinity), state.streams.forEach((client) => client.end())) },
  { name: 'empty', size: 0, view: desktop },
  { name: 'draw-phone', size: 20, view: phone, keys: ['i'] },
  { name: 'mid-dark', size: 205, view: desktop, before: busy },
  { name: 'mid-light-layers', size: 205, view: desktop, theme: 'light', keys: ['l', 'l'] },
  { name: 'mid-circle', size: 205, view: desktop, keys: ['l'] },
  { name: 'big-dark', size: 2000, view: desktop, wait: 9000 },
  { name: 'big-layers', size: 2000, view: desktop, keys: ['l', 'l'], wait: 9000 },
  { name: 'inventory', size: 205, view: desktop, keys: ['2'] },
  { name: 'intents', size: 20, view: desktop, keys: ['3'] },
  { name: 'apps', size: 20, view: desktop, keys: ['4'] },
  { name: 'apps-phone', size: 20, view: phone, theme: 'light', keys: ['4'] },
  { name: 'incidents', size: 20, view: desktop, theme: 'light', keys: ['5'], before: busy },
  { name: 'audit', size: 20, view: desktop, keys: ['6'] },
  { name: 'help', size: 20, view: desktop, keys: ['?'] },
  { name: 'search', size: 20, view: desktop, keys: ['/'], type: 'vi' },
  { name: 'lock', size: 20, view: desktop, token: 'secret' },
];

mkdirSync(folder, { recursive: true });
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
for (const shot of SHOTS.filter(({ name }) => only.length === 0 || only.includes(name))) {
  const server = await start({ size: shot.size, token: shot.token });
  const page = await browser.newPage({ viewport: shot.view, colorScheme: shot.theme ?? 'dark', deviceScaleFactor: shot.view === phone ? 2 : 1, hasTouch: shot.view === phone });
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && console.log(shot.name, message.text()));
  page.on('pageerror', (error) => console.log(shot.name, error.message));
  await page.goto(`http://127.0.0.1:${server.port}/`);
  await page.waitForTimeout(1200);
  await shot.before?.(server);
  if (shot.hash) await page.evaluate((hash) => (location.hash = hash), await shot.hash(page));
  for (const key of shot.keys ?? []) await page.keyboard.press(key);
  for (const host of shot.hosts ?? []) {
    await page.keyboard.press('/');
    await page.keyboard.type(host);
    await page.getByRole('listbox').getByRole('option').first().waitFor();
    await page.keyboard.press('Enter');
  }
  if (shot.type) await page.keyboard.type(shot.type);
  await page.waitForTimeout(shot.wait ?? 2500);
  await page.screenshot({ path: `${folder}/${shot.name}.png` });
  console.log(shot.name);
  await page.close();
  server.close();
}
await browser.close();
