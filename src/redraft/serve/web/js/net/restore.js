// The messages that follow `start` if a restarted server has lost the session.

/** Bytes of one `restore` message, if the server accepts as much. */
const LENGTH = 16_000;
const encoder = new TextEncoder();

/** Length of a message in bytes. */
export const bytesOf = (message) => encoder.encode(JSON.stringify(message)).length;

/**
 * The state of the session: first what viewers may see, then the captions.
 *
 * @param {import("./memory.js").Memory} memory
 * @param {number} most maximum length of a message in bytes
 * @param {(final: object) => void} tooLong called with captions for which a message would be too long
 */
export function* restoring({ session: { paused, hidden = [] }, finals }, most, tooLong) {
  if (paused) yield { type: "pause" };
  yield* pieces("hidden", hidden.map((key) => JSON.parse(key)), most, () => {});
  yield* pieces("finals", [...finals.values()].filter(Boolean), most, tooLong);
}

/** Messages with all of these items that fit. */
function* pieces(field, items, most, tooLong) {
  const empty = bytesOf({ type: "restore", [field]: [] });
  let held = [];
  let length = empty;
  for (const item of items) {
    const more = bytesOf(item) + 1; // with a comma
    if (empty + more > most) {
      tooLong(item);
      continue;
    }
    if (held.length && length + more > Math.min(most, LENGTH)) {
      yield { type: "restore", [field]: held };
      [held, length] = [[], empty];
    }
    held.push(item);
    length += more;
  }
  if (held.length) yield { type: "restore", [field]: held };
}
