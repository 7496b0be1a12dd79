// Where objects are on the map of an open page, which colours they have, and clicks on them.
//
// In: a page of Playwright, and the kind and id of an object. Out: points on the screen and colours, once the map stands still.
// It judges nothing.

/** Only there to end a hang. */
export const PATIENCE_MS = 60_000;

/** Waits until the map has given the switches their places and stands still. */
export async function drawn(page, id) {
  await page.waitForFunction((id) => globalThis.burnet?.placeOf({ kind: 'switch', id }) != null, id, { timeout: PATIENCE_MS });
  await still(page, { kind: 'switch', id });
}

/** Asks the page until it says yes. `waitForFunction` would take a promise of "no" for a "yes". */
async function until(page, question, argument) {
  const end = Date.now() + PATIENCE_MS;
  while (!(await page.evaluate(question, argument))) if (Date.now() > end) throw new Error('the map does not come to rest');
}

export const still = (page, found) =>
  until(
    page,
    async (found) => {
      const place = () => JSON.stringify(globalThis.burnet.placeOf(found));
      const before = place();
      for (let i = 0; i < 6; i += 1) await new Promise(requestAnimationFrame);
      return before === place();
    },
    found,
  );

/** Waits until the network is drawn as it will stay, with its land. What was asked for last begins some frames later, so it must rest for several frames. */
export const settled = (page) =>
  until(page, async () => {
    for (let i = 0; i < 6; i += 1) {
      await new Promise(requestAnimationFrame);
      if (globalThis.burnet.isMoving()) return false;
    }
    return true;
  });

/** Gives the page another size and waits until the network is drawn for it. */
export async function resized(page, size) {
  await page.setViewportSize(size);
  await page.waitForFunction((width) => innerWidth === width, size.width, { timeout: PATIENCE_MS });
  await settled(page);
}

export async function placeOf(page, found) {
  await still(page, found);
  const [place, box] = [await page.evaluate((found) => globalThis.burnet.placeOf(found), found), await page.locator('.input').boundingBox()];
  return { x: box.x + place.x, y: box.y + place.y };
}

export async function click(page, kind, id) {
  const { x, y } = await placeOf(page, { kind, id });
  await page.mouse.move(x, y);
  await page.mouse.click(x, y);
}

/** The colour of failures and that of paths in the dark page: the least and the most of red, green and blue. */
const [RED, BLUE] = [[[200, 255], [0, 130], [70, 140]], [[60, 140], [130, 200], [200, 255]]];

/** Whether a pixel near the middle of a cable has the colour of a failure. While a path is shown, the network is dimmed and nothing is red. */
export const isRed = (page, id) => hasColour(page, '.map > canvas', { kind: 'link', id }, 9, RED);

/** Whether a path or a trace is drawn over the middle of a cable. */
export const isOnRoute = (page, id) => hasColour(page, '.input canvas', { kind: 'link', id }, 9, BLUE);

/** Whether a ring around a switch says that a trace ends there badly. */
export const hasFault = (page, id) => hasColour(page, '.input canvas', { kind: 'switch', id }, 24, RED);

async function hasColour(page, canvas, found, reach, colour) {
  await settled(page);
  return page.evaluate(
    ({ canvas: name, found, reach, colour }) => {
      const canvas = document.querySelector(name);
      if (canvas.hidden) return false;
      const place = globalThis.burnet.placeOf(found);
      const [x, y, ratio] = [place.x - canvas.offsetLeft, place.y - canvas.offsetTop, canvas.width / canvas.clientWidth];
      const { data } = canvas.getContext('2d').getImageData((x - reach) * ratio, (y - reach) * ratio, 2 * reach * ratio, 2 * reach * ratio);
      for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200 && colour.every(([least, most], of) => data[i + of] >= least && data[i + of] <= most)) return true;
      return false;
    },
    { canvas, found, reach, colour },
  );
}

export const panel = (page) => page.locator('aside');
