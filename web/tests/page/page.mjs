// The page in a real browser, over a network that the mock server plays.
//
// In: the built page in `dist`, Debian's Chromium. Out: tests. Each has a server and a tab of its own; none depends on the machine's speed.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';
import { start } from '../../mock/server.mjs';
import { click, drawn as drawnOf, hasFault, isOnRoute, isRed, panel, PATIENCE_MS, placeOf, resized, settled, still } from '../map.mjs';

const CHROMIUM = process.env.BURNET_CHROMIUM ?? '/usr/bin/chromium';
const DESKTOP = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 844 };

let browser;
before(async () => {
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
});
after(() => browser?.close());

/** A test with a server and an open page. Errors in the console, and requests to other servers, fail it. */
function pageTest(name, { viewport = DESKTOP, server = {}, ready = true, hasTouch = false, expected = [] }, body) {
  test(`page: ${name}`, async () => {
    const { port, state, close } = await start({ size: 20, still: true, ...server });
    const context = await browser.newContext({ viewport, hasTouch, colorScheme: 'dark' });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    const faults = [];
    page.on('console', (message) => message.type() === 'error' && !expected.some((part) => message.text().includes(part)) && faults.push(message.text()));
    page.on('pageerror', (error) => faults.push(String(error)));
    page.on('request', (request) => new URL(request.url()).host !== `127.0.0.1:${port}` && faults.push(`a request to ${request.url()}`));
    try {
      await page.goto(`http://127.0.0.1:${port}/`);
      if (ready) await drawn(page, state);
      await body({ page, state, world: state.world, port });
      assert.deepEqual(faults, []);
    } finally {
      await context.close();
      close();
    }
  });
}

/** Waits until the map of this network stands still. */
const drawn = (page, state) => drawnOf(page, [...state.world.tables.switch.keys()][0]);

const hostsOf = (world) => [...world.tables.host.keys()];

pageTest('shows the figures of the network, and asks no other server', {}, async ({ page }) => {
  const figures = page.getByLabel('State of the network');
  await figures.getByText('Switches').waitFor();
  assert.match(await figures.innerText(), /Switches\s*20/);
  assert.match(await figures.innerText(), /Links\s*32/);
  await page.getByText('Live').waitFor();
});

pageTest('a click on a switch, a link or a host shows it', {}, async ({ page, world }) => {
  await click(page, 'switch', 'of:0000000000000011');
  await panel(page).getByRole('heading', { name: 'Vienna' }).waitFor();
  await panel(page).getByText('Emulated switch').waitFor();
  const link = [...world.tables.link.keys()][0];
  await click(page, 'link', link);
  await panel(page).getByRole('heading', { name: 'Lisbon – Madrid' }).waitFor();
  await click(page, 'host', hostsOf(world)[5]);
  await panel(page).getByRole('heading', { name: '10.0.6.10' }).waitFor();
  await panel(page).getByRole('button', { name: 'Barcelona', exact: true }).click();
  await panel(page).getByRole('heading', { name: 'Barcelona' }).waitFor();
  assert.match(page.url(), /#\/network\/switch\/of:0000000000000003$/);
  await page.goBack();
  await panel(page).getByRole('heading', { name: '10.0.6.10' }).waitFor();
});

pageTest('the keyboard reaches views, search, help and the map', {}, async ({ page }) => {
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('/');
  await page.keyboard.type('vienna');
  await page.getByRole('listbox').getByRole('option').first().waitFor();
  await page.keyboard.press('Enter');
  await panel(page).getByRole('heading', { name: 'Vienna', exact: true }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('complementary', { name: 'Overview' }).waitFor();
  await page.keyboard.press('2');
  await page.getByRole('table', { name: 'Switches' }).waitFor();
  await page.keyboard.press('1');
  await page.getByRole('application').focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Enter');
  await page.getByRole('complementary', { name: 'Selected switch' }).waitFor();
});

pageTest('an intent is drawn with two clicks, and withdrawn', {}, async ({ page, world }) => {
  const hosts = hostsOf(world);
  const [one, two] = [hosts[0], hosts[33]];
  const known = new Set(world.tables.intent.keys());
  await page.keyboard.press('i');
  await page.getByText('Click the first host.').waitFor();
  await click(page, 'host', one);
  await page.getByText('Click the second host.').waitFor();
  await click(page, 'host', two);
  await panel(page).getByText('installed', { exact: true }).first().waitFor();
  const added = [...world.tables.intent.values()].find((intent) => !known.has(intent.id));
  assert.deepEqual([added.type, added.one, added.two, added.protection], ['host_to_host', one, two, 'restored']);
  for (const name of ['Lisbon', 'Vienna']) await panel(page).getByRole('button', { name, exact: true }).waitFor();
  await panel(page).getByRole('button', { name: 'Withdraw' }).click();
  await page.getByText(`Intent ${added.id} withdrawn`).first().waitFor();
  assert.equal(world.tables.intent.has(added.id), false);
});

pageTest('an intent is drawn by keyboard alone', {}, async ({ page, world }) => {
  const count = world.tables.intent.size;
  await page.keyboard.press('i');
  for (const address of ['10.0.3.10', '10.0.40.10']) {
    await page.keyboard.press('/');
    await page.keyboard.type(address);
    await page.getByRole('listbox').getByRole('option').first().waitFor();
    await page.keyboard.press('Enter');
  }
  await panel(page).getByText('installed', { exact: true }).first().waitFor();
  assert.equal(world.tables.intent.size, count + 1);
});

pageTest('an intent that the node refuses says why', { expected: ['422'] }, async ({ page, world }) => {
  const [one, two] = hostsOf(world);
  await page.keyboard.press('i');
  await click(page, 'host', one);
  world.placeOf = () => null;
  await click(page, 'host', two);
  await page.getByText('is no known host. (one)').waitFor();
});

pageTest('a link that fails turns red, and its intents get another path', {}, async ({ page, world }) => {
  const path = world.tables.path.get('1.0');
  const failed = path.links[1];
  await page.keyboard.press('/');
  await page.keyboard.type('intent 1');
  await page.getByRole('listbox').getByRole('option').first().waitFor();
  await page.keyboard.press('Enter');
  await panel(page).getByText('installed', { exact: true }).first().waitFor();
  await still(page, { kind: 'link', id: failed });
  assert.equal(await isRed(page, failed), false);
  await page.keyboard.press('Escape');
  world.setLink(failed, 'down');
  await page.getByText(/^Link .* is down$/).first().waitFor();
  await page.waitForFunction(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(true)))));
  assert.equal(await isRed(page, failed), true);
  assert.match(await page.getByLabel('State of the network').innerText(), /31\s*\/\s*32/);
  await page.getByRole('complementary', { name: 'Overview' }).getByText('installed').first().waitFor();
  assert.equal(world.tables.path.get('1.0').links.includes(failed), false);
  world.setLink(failed, 'up');
  await page.getByText(/is up again/).first().waitFor();
  await page.waitForFunction(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(true)))));
  assert.equal(await isRed(page, failed), false);
});

pageTest('a lost connection is told, and what happened meanwhile is shown after it', { expected: ['Failed to load resource', 'ERR_'] }, async ({ page, state, world }) => {
  state.awayUntilMs = Date.now() + 3_600_000;
  for (const client of state.streams) client.end();
  await page.getByRole('alert').getByText('Connection lost').waitFor();
  assert.match(await page.getByLabel('State of the network').innerText(), /Switches\s*20/);
  world.remove('host', hostsOf(world)[0]);
  world.setSwitch('of:0000000000000011', 'down');
  state.awayUntilMs = 0;
  await page.getByRole('button', { name: 'Connect now' }).click();
  await page.getByText('Live').waitFor();
  await page.getByText('Switch Vienna is disconnected').waitFor();
  await page.getByRole('alert').waitFor({ state: 'detached' });
  assert.match(await page.getByLabel('State of the network').innerText(), /Hosts\s*39/);
});

pageTest('a node that asks for a token gets it', { server: { token: 'sesame' }, ready: false, expected: ['401'] }, async ({ page, state }) => {
  await page.getByRole('dialog', { name: 'Token' }).waitFor();
  await page.getByLabel('Token', { exact: true }).last().fill('wrong');
  await page.getByRole('button', { name: 'Open' }).click();
  await page.getByText('This token is not known.').waitFor();
  await page.getByLabel('Token', { exact: true }).last().fill('sesame');
  await page.getByRole('button', { name: 'Open' }).click();
  await page.getByText('Live').waitFor();
  await drawn(page, state);
  await page.reload();
  await page.getByText('Live').waitFor();
});

pageTest('a packet is traced through the network', {}, async ({ page, world }) => {
  const hosts = hostsOf(world);
  await page.keyboard.press('t');
  await click(page, 'host', hosts[2]);
  await click(page, 'host', hosts[20]);
  const trace = page.getByRole('complementary', { name: 'Trace' });
  await trace.getByText('delivered').waitFor();
  await trace.getByRole('button', { name: 'Madrid', exact: true }).waitFor();
  const links = world.route(hosts[2], hosts[20]);
  for (const link of links) assert.ok(await isOnRoute(page, link), `${link} is not drawn`);
  await page.keyboard.press('Escape');
  await trace.waitFor({ state: 'detached' });
  assert.equal(await isOnRoute(page, links[0]), false);
});

pageTest('a packet that is dropped has a red ring at its last switch', {}, async ({ page, world }) => {
  const hosts = hostsOf(world);
  const at = world.placeOf(hosts[2]);
  for (const link of world.tables.link.keys()) if (link.startsWith(`${at}/`)) world.setLink(link, 'down');
  await page.keyboard.press('t');
  await click(page, 'host', hosts[2]);
  await click(page, 'host', hosts[20]);
  await page.getByRole('complementary', { name: 'Trace' }).getByText('dropped').waitFor();
  assert.equal(await hasFault(page, at), true);
  assert.equal(await hasFault(page, world.placeOf(hosts[20])), false);
});

/** Keeps the pixels of a canvas in the page under a name. They stay there: millions of numbers would take seconds to reach the test. */
const keep = (page, name, selector) =>
  page.evaluate(
    ([name, selector]) => {
      const canvas = [...document.querySelectorAll(selector)].at(-1);
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      globalThis.kept = { ...globalThis.kept, [name]: data };
    },
    [name, selector],
  );

/** How many values of two kept pictures differ by more than rounding. Pictures of different sizes differ in all. */
const differences = (page, one, two) =>
  page.evaluate(
    ([one, two]) => {
      const [a, b] = [globalThis.kept[one], globalThis.kept[two]];
      return a.length === b.length ? a.reduce((sum, value, i) => sum + (Math.abs(value - b[i]) > 40 ? 1 : 0), 0) : Infinity;
    },
    [one, two],
  );

/** The network. */
const NETWORK = '.map > canvas:not([hidden])';

pageTest('a map that is dragged shows the same as after it', {}, async ({ page }) => {
  const id = 'of:0000000000000011';
  const from = await placeOf(page, { kind: 'switch', id });
  await settled(page);
  await keep(page, 'before', NETWORK);
  const { x, y } = await page.locator('.input').boundingBox();
  await page.mouse.move(x + 60, y + 300);
  await page.mouse.down();
  // Further than the picture from which a drag copies. Names are placed in cells of 5 pixels, so they stay if the steps are whole cells.
  for (let step = 1; step <= 12; step += 1) await page.mouse.move(x + 60 + 20 * step, y + 300 - 5 * step);
  await settled(page);
  await keep(page, 'during', NETWORK);
  const to = await placeOf(page, { kind: 'switch', id });
  assert.deepEqual([Math.round(to.x - from.x), Math.round(to.y - from.y)], [240, -60]);
  await page.mouse.up();
  await settled(page);
  await keep(page, 'after', NETWORK);
  assert.ok((await differences(page, 'before', 'during')) > 10_000, 'the map has not moved');
  const changed = await differences(page, 'during', 'after');
  assert.ok(changed < 500, `${changed} values changed when the map was let go`);
});

/** The names that are painted above a path: the picture of the upper canvas that does not move. */
const NAMES_ABOVE = '.input canvas';

pageTest('the names of a path are where those of the network are, also after it was dimmed', { server: { size: 205 } }, async ({ page }) => {
  const open = async () => {
    await page.keyboard.press('/');
    await page.keyboard.type('intent 3');
    await page.getByRole('listbox').getByRole('option').first().waitFor();
    await page.keyboard.press('Enter');
    // The map begins to move when it shows the path, not when the panel opens.
    await page.locator('.input canvas').first().waitFor({ state: 'visible' });
    await settled(page);
  };
  // The map moves to the path. When it is opened again, the map is only dimmed.
  await open();
  await page.keyboard.press('Escape');
  await page.locator('.input canvas').first().waitFor({ state: 'hidden' });
  await settled(page);
  await open();
  await keep(page, 'before', NAMES_ABOVE);
  // Another size and back: all is painted anew.
  await resized(page, { width: 1290, height: 800 });
  await resized(page, DESKTOP);
  await keep(page, 'after', NAMES_ABOVE);
  assert.ok(await page.evaluate(() => globalThis.kept.before.some((value) => value > 0)), 'no name is painted');
  const changed = await differences(page, 'before', 'after');
  assert.ok(changed < 500, `${changed} values changed when the map was painted anew`);
});

pageTest('a phone shows all views, and a tap opens a sheet', { viewport: PHONE, hasTouch: true }, async ({ page }) => {
  const place = await placeOf(page, { kind: 'switch', id: 'of:000000000000000d' });
  await page.touchscreen.tap(place.x, place.y);
  await panel(page).getByRole('heading', { name: 'Stockholm' }).waitFor();
  await panel(page).getByRole('button', { name: 'Close' }).click();
  for (const view of ['Inventory', 'Intents', 'Apps', 'Incidents', 'Audit', 'Slices', 'Network']) {
    await page.getByRole('navigation').getByRole('button', { name: view }).click();
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${view} is ${wide} pixels too wide`);
  }
});

pageTest('apps, incidents and the audit log are shown', { expected: ['404'] }, async ({ page }) => {
  await page.keyboard.press('4');
  await page.getByRole('button', { name: /^dhcp quarantined/ }).click();
  await panel(page).getByText(/exceeded its memory limit/).waitFor();
  await page.keyboard.press('5');
  await page.getByText('App dhcp is quarantined').first().waitFor();
  await page.getByText('App qos ended').waitFor();
  await page.getByRole('button', { name: 'Evidence: App qos ended' }).click();
  const evidence = page.getByRole('region', { name: 'Evidence of incident 1' });
  for (const text of ['Exit code', 'no room for 4', 'Memory before it: 67 MiB', /uses more than a soft limit/]) await evidence.getByText(text).first().waitFor();
  await page.getByRole('button', { name: 'Evidence: App qos ended' }).click();
  await evidence.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Evidence: App dhcp is quarantined' }).click();
  await page.getByRole('region', { name: 'Evidence of incident 2' }).getByText(/evidence of incident 2 cannot be read: the node may have deleted it/).waitFor();
  await page.keyboard.press('6');
  await page.getByRole('button', { name: 'Refused only' }).click();
  await page.getByText(/connection to 192.0.2.7:443 is not granted/).first().waitFor();
});

pageTest('a slice is shown with its labels, what its VNICs are promised and get, and how their senders are shaped', {}, async ({ page }) => {
  await page.keyboard.press('7');
  await page.getByRole('region', { name: 'Labels of blue' }).getByText('s3:1-s1:1').waitFor();
  await page.getByRole('button', { name: /^red running/ }).click();
  const labels = page.getByRole('region', { name: 'Labels of red' });
  await labels.getByText('2 Mbit/s').waitFor();
  const map = page.getByRole('img', { name: 'The network of the slice' });
  await map.getByText('2 Mbit/s').waitFor();
  await map.getByText('E', { exact: true }).waitFor();
  assert.equal(await map.locator('line.down').count(), 1);
  await page.getByRole('button', { name: /^red running/ }).getByText('1 link does not fit').waitFor();
  await page.getByRole('button', { name: /^red running/ }).getByText('does not fit', { exact: true }).waitFor();
  const note = page.getByText('Slice red: does not fit: its VNICs can put 3.0M on link s3:1-s1:1, which has 2.0M of 10.0M left.');
  await note.waitFor();
  await page.getByText('Link s3:1-s1:1 does not fit: hop s3:1-s1:1 lacks 1.0M: its VNICs can put 3.0M there, and 2.0M of 10.0M is left.').waitFor();
  assert.equal(await map.locator('.switch').count(), 4);
  await page.getByRole('region', { name: 'VNICs of red' }).getByText('F receives all that it may').waitFor();
  const flows = page.getByRole('region', { name: 'Flows of red' });
  await flows.getByText('8 Mbit/s').waitFor();
  await flows.getByText('shaped by agent 2, capped at 4 Mbit/s').waitFor();
  await flows.getByText('3.9 Mbit/s').waitFor();
  await page.getByRole('button', { name: /^blue running/ }).click();
  await page.getByText('does not fit: hop').waitFor({ state: 'detached' });
  await note.waitFor({ state: 'detached' });
  await page.getByRole('region', { name: 'Flows of blue' }).getByText('–', { exact: true }).first().waitFor();
});

pageTest('a tenant sees its slices, and no other view', { expected: ['403'] }, async ({ page }) => {
  const refusal = { status: 403, contentType: 'application/problem+json', body: JSON.stringify({ title: 'The role does not permit this', status: 403 }) };
  await page.route('**/api/v1/stream*', (route) => route.fulfill(refusal));
  await page.reload();
  await page.getByRole('region', { name: 'Labels of blue' }).getByText('s3:1-s1:1').waitFor();
  assert.equal(await page.getByRole('navigation').count(), 0);
  await page.keyboard.press('1');
  await page.getByRole('region', { name: 'VNICs of blue' }).waitFor();
  await page.getByRole('button', { name: /^red running/ }).click();
  await page.getByText('Slice red: does not fit: its VNICs').waitFor();
});

pageTest('the layouts move the switches, also while the network changes', {}, async ({ page, world }) => {
  const ids = [...world.tables.switch.keys()];
  await page.getByRole('button', { name: 'Circle' }).click();
  world.setLink([...world.tables.link.keys()][0], 'down');
  await page.waitForFunction(
    (ids) => {
      const points = ids.map((id) => globalThis.burnet.placeOf({ kind: 'switch', id }));
      const middle = points.reduce((sum, { x, y }) => ({ x: sum.x + x / ids.length, y: sum.y + y / ids.length }), { x: 0, y: 0 });
      const far = points.map(({ x, y }) => Math.hypot(x - middle.x, y - middle.y));
      return Math.max(...far) - Math.min(...far) < 1;
    },
    ids,
    { timeout: PATIENCE_MS },
  );
});

pageTest('dark and light are remembered', {}, async ({ page }) => {
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  assert.equal(await theme(), 'dark');
  await page.getByRole('button', { name: 'Light colours' }).click();
  assert.equal(await theme(), 'light');
  await page.reload();
  await page.getByRole('button', { name: 'Dark colours' }).waitFor();
  assert.equal(await theme(), 'light');
});

pageTest('everything that can be focused has a name', {}, async ({ page }) => {
  for (const key of ['1', '2', '3', '4', '5', '6', 'i', '/', '?']) {
    await page.keyboard.press(key);
    await page.waitForFunction(() => new Promise((resolve) => requestAnimationFrame(() => resolve(true))));
    const nameless = await page.evaluate(() =>
      [...document.querySelectorAll('button, a, input, select, [tabindex="0"]')]
        .filter((element) => element.checkVisibility())
        .filter((element) => !(element.getAttribute('aria-label') || element.innerText?.trim() || element.labels?.length))
        .map((element) => element.outerHTML.slice(0, 120)),
    );
    assert.deepEqual(nameless, [], `after ${key}`);
    if (key === 'i' || key === '/') await page.keyboard.press('Escape');
  }
});

pageTest('2,000 switches can be searched and opened', { server: { size: 2000 }, ready: false }, async ({ page, state }) => {
  await drawn(page, state);
  await page.keyboard.press('/');
  await page.keyboard.type('r1999');
  await page.getByRole('listbox').getByRole('option').first().waitFor();
  await page.keyboard.press('Enter');
  await panel(page).getByRole('heading', { name: 'r1999' }).waitFor();
  await page.keyboard.press('2');
  await page.getByRole('table', { name: 'Switches' }).waitFor();
  const rows = await page.getByRole('row').count();
  assert.ok(rows < 100, `${rows} rows were made for 2,000 switches`);
});
