// The time as components show it: one value for all, a new one each second.

class Now {
  ms = $state(Date.now());

  constructor() {
    setInterval(() => (this.ms = Date.now()), 1000);
  }
}

export const now = new Now();
