// What the operator asks of viewers' captions: to pause, hide and correct them.  Kept, also over a reload, until the server
// has confirmed it, since a connection may drop before that.

import { keyOf } from "./memory.js";

/** Type of an answer -> type of the message that it confirms. */
const ANSWERS = { paused: "pause", hidden: "hide", final: "correct" };

export class Control {
  #memory;
  #unsent = new Map();

  /** @param {import("./memory.js").Memory} memory keeps what viewers see, and the messages that are not confirmed */
  constructor(memory) {
    this.#memory = memory;
  }

  /** Queue a message "pause", "hide" or "correct"; it replaces an earlier one with the same subject. */
  ask(message) {
    this.#note(message.type, message);
    this.#memory.note({ asked: { ...this.#asked, [subjectOf(message)]: message } });
    this.#unsent.set(subjectOf(message), message);
  }

  /** After a reconnection, queue all messages that are not confirmed. */
  again() {
    this.#unsent = new Map(Object.entries(this.#asked));
  }

  /**
   * Take the messages to send.
   *
   * @param {boolean} pauses only those that must precede updates
   */
  take(pauses) {
    const taken = [...this.#unsent].filter(([, message]) => !pauses || message.paused);
    for (const [subject] of taken) this.#unsent.delete(subject);
    return taken.map(([, message]) => message);
  }

  /** The server has done something, asked here or not, or refused it. */
  answered(answer) {
    const type = answer.type === "error" ? answer.request : ANSWERS[answer.type];
    const subject = subjectOf({ ...answer, type });
    const mine = this.#asked[subject];
    if (answer.type === "error") {
      this.#forget(subject);
      if (type === "hide") this.#note("hide", { ...answer, hidden: false });
    } else if (!mine) this.#note(type, answer);
    else if (["paused", "hidden", "text"].every((field) => same(mine[field], answer[field]))) this.#forget(subject);
  }

  /** What viewers get from now on; corrections are part of the captions. */
  #note(type, message) {
    if (type === "pause") this.#memory.note({ paused: message.paused });
    if (type !== "hide") return;
    const key = keyOf(message);
    const others = (this.#memory.session.hidden ?? []).filter((each) => each !== key);
    this.#memory.note({ hidden: message.hidden ? [...others, key] : others });
  }

  /** Subject -> message that is not confirmed. */
  get #asked() {
    return this.#memory.session.asked ?? {};
  }

  #forget(subject) {
    const { [subject]: _, ...asked } = this.#asked;
    this.#memory.note({ asked });
  }
}

/** Whether an answer does what was asked; servers send texts as one line. */
const same = (asked, done) => asked === undefined || asked === done || (typeof asked === "string" && plain(asked) === plain(done));
const plain = (text) => text.replace(/\s+/gu, " ").trim();

/** What a message is about. */
const subjectOf = ({ type, utterance, language }) => JSON.stringify(type === "pause" ? [type] : [type, utterance, language]);
