// What the operator has decided about viewers' captions: to pause, hide and correct them, and who speaks.  Kept, also over a reload, and
// declared to the server on every connection.  Decisions on one subject are numbered; the highest number counts.

export class Control {
  #memory;
  /** Decisions that have not been sent on this connection, by subject. */
  #news = new Map();

  /** @param {import("./memory.js").Memory} memory keeps the decisions */
  constructor(memory) {
    this.#memory = memory;
  }

  /** Decide, by a message "pause", "hide", "correct" or "name"; a later one on the same subject replaces it. */
  decide(message) {
    const decision = 1 + (this.#known[subjectOf(message)]?.decision ?? 0);
    this.#keep({ ...message, decision });
    this.#news.delete(subjectOf(message));
    this.#news.set(subjectOf(message), { ...message, decision });
  }

  /** Take the decisions to send. */
  take() {
    const taken = [...this.#news.values()];
    this.#news.clear();
    return taken;
  }

  /** All decisions, for a new connection. */
  declaration() {
    this.#news.clear();
    return Object.values(this.#known);
  }

  /** Adopt a decision of another program, which the server reports, if it is later than ours. */
  reported(message) {
    const { type, utterance, language, speaker, name, hidden, paused, text, decision } = message; // a later server may send more
    if (decision > (this.#known[subjectOf(message)]?.decision ?? 0)) this.#keep({ type, utterance, language, speaker, name, hidden, paused, text, decision });
  }

  /** Keep a decision as the last one: what was hidden before captions were released must be hidden before that. */
  #keep(message) {
    const { [subjectOf(message)]: _, ...others } = this.#known;
    this.#memory.note({ decisions: { ...others, [subjectOf(message)]: message } });
  }

  /** Subject -> the latest decision. */
  get #known() {
    return this.#memory.session.decisions ?? {};
  }
}

/** What a message is about. */
const subjectOf = ({ type, utterance, language, speaker }) =>
  JSON.stringify({ pause: [type], name: [type, speaker] }[type] ?? [type, utterance, language]);

/** The speakers of updates who have got a name, given what the memory of a session keeps; themselves if none has. */
export function speakersNamed(name, session) {
  const named = Object.values(session?.decisions ?? {}).filter((each) => each.type === "name" && each.name === name);
  return named.length ? named.map(({ speaker }) => speaker) : [name];
}

/** Whether a session is paused, given what its memory keeps. */
export const isPaused = (session) => Boolean(session?.decisions?.[subjectOf({ type: "pause" })]?.paused);
