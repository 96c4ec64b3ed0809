// The messages that follow `start` if a restarted server has lost the session.

/** Characters of one `restore` message; servers take at least as many bytes. */
const LENGTH = 5_000;

/** The state of the session: first what viewers may see, then the captions. */
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

/** The hidden utterances, unfinished ones too; the server confirms them. */
export function* hiding({ session: { hidden = [] } }) {
  for (const key of hidden) {
    const [utterance, language] = JSON.parse(key);
    yield { type: "hide", utterance, language };
  }
}
