// Starts `burnet demo`, a real node with a network of 22 switches, intents, traffic and failing links.
//
// In: the program in BURNET_BINARY. Out: the address of its page, once everything is installed. The demo ends with `stop`.

import { spawn } from 'node:child_process';

export const BINARY = process.env.BURNET_BINARY ?? '';
/** Only there to end a hang. */
const PATIENCE_MS = 120_000;
/** What the demo says when everything has been checked once, and it goes on. */
const READY = 'this goes on until Ctrl-C';

/** Resolves with the address of the page, and a function that ends the demo. */
export function startDemo() {
  const demo = spawn(BINARY, ['demo', '--rest', '127.0.0.1:0'], { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  const ended = new Promise((resolve) => demo.on('close', resolve));
  const stop = async () => (demo.kill('SIGTERM'), ended);
  return new Promise((resolve, reject) => {
    const fail = (why) => (clearTimeout(timer), void stop(), reject(new Error(`the demo ${why}:\n${said}`)));
    const timer = setTimeout(() => fail('was not ready in time'), PATIENCE_MS);
    const onOutput = (piece) => {
      said += piece;
      const address = /the page: (http:\/\/\S+)/.exec(said)?.[1];
      if (!address || !said.includes(READY)) return;
      clearTimeout(timer);
      resolve({ address, stop });
    };
    demo.stdout.on('data', onOutput);
    demo.stderr.on('data', onOutput);
    demo.on('error', (error) => fail(`cannot be started: ${error}`));
    demo.on('close', (code) => fail(`ended with ${code}`));
  });
}
