// Computes the figures of the panel from the server's counts.

/** Window in milliseconds for tokens per second. */
const WINDOW = 10_000;

const sum = (targets, name) => Object.values(targets).reduce((total, counts) => total + counts[name], 0);
const ratio = (part, whole) => (whole > 0 ? part / whole : null);

/** Recent tokens per second; null before the second count. */
export class Rate {
  #counts = [];

  add(tokens, now = performance.now()) {
    this.#counts.push({ tokens, now });
    while (this.#counts.length > 2 && now - this.#counts[0].now > WINDOW) this.#counts.shift();
    const [first, last] = [this.#counts[0], this.#counts.at(-1)];
    return ratio(1000 * (last.tokens - first.tokens), last.now - first.now);
  }
}

/** The figures of a session, from the server's message `stats` and its `Rate`; null for ratios without data. */
export function figuresOf({ targets, lag_ms, lag_p95_ms }, rate) {
  const [tokens, passes, drafted, accepted] = ["tokens", "passes", "drafted", "accepted"].map((name) => sum(targets, name));
  return {
    lag: lag_ms,
    lag95: lag_p95_ms,
    speed: rate.add(tokens),
    passes,
    perPass: ratio(tokens, passes),
    kept: ratio(accepted, drafted),
    erasure: ratio(sum(targets, "erased"), sum(targets, "shown")),
  };
}

/** What plain re-translation would have needed for the same outputs, computed from counts. */
export function plainFigures({ targets }) {
  const passes = sum(targets, "plain_passes");
  return { passes, perPass: ratio(sum(targets, "tokens"), passes) };
}
