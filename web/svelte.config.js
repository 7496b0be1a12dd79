// How Svelte compiles the page: TypeScript in components, and styles in files, because the content security policy forbids
// inline styles of other origin.
import { vitePreprocess } from '@sveltejs/vite-plugin-svelte';

export default { preprocess: vitePreprocess(), compilerOptions: { runes: true } };
