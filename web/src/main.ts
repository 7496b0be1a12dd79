// Starts the page: the session, then the components that draw it.

import { mount } from 'svelte';
import App from './App.svelte';
import './app.css';
import { session } from './session.svelte.ts';

session.start();
mount(App, { target: document.getElementById('app')! });
