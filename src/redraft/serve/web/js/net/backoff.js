// Delays in milliseconds before reconnecting: doubled with every attempt, with jitter, so that clients do not all return
// at once.

/** Error codes after which a retry may succeed. */
export const PASSING = new Set(["capacity", "draining", "limit", "slow", "engine"]);

const FIRST = 200;
const LONGEST = 10_000;

export class Backoff {
  #wait = FIRST;
  #since = null;

  /** The next delay; short again if the last connection has lasted. */
  next() {
    if (this.#since !== null && performance.now() - this.#since > LONGEST) this.reset();
    this.#since = null;
    const wait = this.#wait * (0.5 + Math.random() / 2);
    this.#wait = Math.min(2 * this.#wait, LONGEST);
    return wait;
  }

  /** A connection has begun; it may fail again at once, for what is sent on it. */
  connected() {
    this.#since = performance.now();
  }

  /** There was progress: start with short delays again. */
  reset() {
    this.#wait = FIRST;
  }
}
