// How long is waited before connecting again, in milliseconds: doubled from try to try, and varied, so that many
// clients do not come back all at once.

/** Codes of refusals after which the same may go well a little later. */
export const PASSING = new Set(["capacity", "draining", "limit", "slow", "engine"]);

const FIRST = 200;
const LONGEST = 10_000;

export class Backoff {
  #wait = FIRST;

  /** The next wait. */
  next() {
    const wait = this.#wait * (0.5 + Math.random() / 2);
    this.#wait = Math.min(2 * this.#wait, LONGEST);
    return wait;
  }

  /** A connection came about: the next wait is short again. */
  reset() {
    this.#wait = FIRST;
  }
}
