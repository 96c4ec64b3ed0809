// What a server is told that was started again, and has forgotten a session: messages that follow `start`.

/** Characters of one `restore` message; servers take at least as many bytes. */
const LENGTH = 5_000;

/** What there is already: before anything is said that viewers could see, whether they are to see it. */
export function* restoring({ session: { paused, hidden = [] }, finals: known }) {
  if (paused) yield { type: "pause" };
  let finals = [];
  let length = 0;
  for (const [key, final] of [...known].filter(([, each]) => each)) {
    finals.push(hidden.includes(key) ? { ...final, hidden: true } : final);
    length += JSON.stringify(final).length;
    if (length > LENGTH) {
      yield { type: "restore", finals };
      [finals, length] = [[], 0];
    }
  }
  if (finals.length) yield { type: "restore", finals };
}

/** Which utterances are hidden, of those that are unfinished too; the server confirms it. */
export function* hiding({ session: { hidden = [] } }) {
  for (const key of hidden) {
    const [utterance, language] = JSON.parse(key);
    yield { type: "hide", utterance, language };
  }
}
