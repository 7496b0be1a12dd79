// How the page is built. In: `index.html` and `src`. Out: `dist`, the same bytes for the same sources and lock file on every
// machine. It downloads nothing.

import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';
import { notices } from './build/notices.mjs';

export default defineConfig({
  plugins: [svelte(), notices()],
  // The page finds its files beside itself, whatever path it is served at.
  base: './',
  build: {
    target: 'es2022',
    // No file becomes a data: address, which the content security policy would refuse.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 400,
  },
  worker: { format: 'es' },
  server: { port: 5173, proxy: { '/api': 'http://127.0.0.1:8180' } },
});
