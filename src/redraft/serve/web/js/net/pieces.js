// Messages with many items, such as those that restore a session on a server that lacks it.

/** Bytes of one message, if the server accepts as much. */
const LENGTH = 16_000;
const encoder = new TextEncoder();

/** Length of a message in bytes. */
export const bytesOf = (message) => encoder.encode(JSON.stringify(message)).length;

/**
 * Messages with all of these items that fit.
 *
 * @param {string} type of the messages
 * @param {string} field the field with the items
 * @param {object[]} items
 * @param {number} most maximum length of a message in bytes
 * @param {(item: object) => void} tooLong called with items for which a message would be too long
 */
export function* pieces(type, field, items, most, tooLong) {
  const empty = bytesOf({ type, [field]: [] });
  let held = [];
  let length = empty;
  for (const item of items) {
    const more = bytesOf(item) + 1; // with a comma
    if (empty + more > most) {
      tooLong(item);
      continue;
    }
    if (held.length && length + more > Math.min(most, LENGTH)) {
      yield { type, [field]: held };
      [held, length] = [[], empty];
    }
    held.push(item);
    length += more;
  }
  if (held.length) yield { type, [field]: held };
}
