// A session of one's own on the server: updates out, captions in, whatever happens to the connection or the page.
//
// Events carry the server's message as `detail`: "started", "partial", "final" (again, if it was corrected), "stats",
// "paused", "hidden", "done", and "failed" for an error in place of a final caption.  Besides there are
// "problem" {code, message, fatal}, "said" (an update that was sent or will be) and "state": "connecting", "live",
// "waiting" (to try again) or "over".

import { Backoff } from "./backoff.js";

const PROTOCOL = 1;
/** What a server refuses that may go well a little later. */
const PASSING = new Set(["capacity", "draining", "limit", "slow", "engine"]);
/** Characters of one `restore` message; servers take at least as many bytes. */
const RESTORE = 5_000;

export const keyOf = ({ utterance, language }) => JSON.stringify([utterance, language]);

/** The address of a websocket of this server. */
export function address(path) {
  const url = new URL(path, location.href);
  url.protocol = url.protocol.replace("http", "ws");
  return url;
}

export class Session extends EventTarget {
  #memory;
  #socket = null;
  #backoff = new Backoff();
  #unsent = new Map();
  #refusal = null;
  #server = "";
  #live = false;
  #waiting = false;

  /** @param {import("./memory.js").Memory} memory what is known already */
  constructor(memory) {
    super();
    this.#memory = memory;
  }

  get memory() {
    return this.#memory;
  }

  /** Begin a session; `wanted` has the fields of the message `start`. */
  begin(wanted) {
    this.#memory.note({ start: wanted, begun: Date.now(), runs: 0 });
    this.#connect();
  }

  /** Go on with the session that the memory holds. */
  resume() {
    this.#connect();
  }

  /** A name that no utterance of this session has begun with yet. */
  nextRun() {
    this.#memory.note({ runs: this.#memory.session.runs + 1 });
    return String(this.#memory.session.runs);
  }

  /** Send the whole text of an utterance so far. */
  send(utterance, text, final) {
    const earlier = this.#memory.open.get(utterance);
    const seq = (earlier?.seq ?? -1) + 1;
    const time = Math.max(0, Date.now() - this.#memory.session.begun) / 1000;
    const begun = earlier?.begun ?? time; // the server may never get the first update: it is not sent again
    const update = { type: "update", utterance, seq, text, final, time, begun };
    this.#memory.keepOpen(update);
    this.#unsent.delete(utterance);
    this.#unsent.set(utterance, update);
    this.#tell("said", update);
    this.#flush();
  }

  /** Make final what was left open, of utterances whose name `chosen` accepts. */
  finishOpen(chosen = () => true) {
    const left = [...this.#memory.open.values()].filter((update) => !update.final && chosen(update.utterance));
    for (const { utterance, text } of left) this.send(utterance, text, true);
  }

  /** No more updates will come. */
  end() {
    this.finishOpen();
    this.#memory.note({ ending: true });
    this.#flush();
  }

  /** Say what viewers are to see: `pause`, `hide` or `correct`; false without a connection. */
  control(message) {
    if (this.#live) this.#say(message);
    return this.#live;
  }

  /** Leave at once, whatever is still under way. */
  leave() {
    const socket = this.#socket;
    this.#socket = null;
    this.#live = false;
    socket?.close();
  }

  #connect() {
    if (!this.#waiting) this.#tell("state", "connecting");
    const socket = new WebSocket(address("/v1/live"));
    const { start, token, server } = this.#memory.session;
    this.#socket = socket;
    this.#refusal = null;
    socket.onopen = () => this.#say({ type: "start", protocol: PROTOCOL, ...start, token, server });
    socket.onmessage = ({ data }) => socket === this.#socket && this.#hear(JSON.parse(data));
    socket.onclose = () => socket === this.#socket && this.#closed();
  }

  #say(message) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  #flush() {
    if (!this.#live) return;
    for (const update of this.#unsent.values()) this.#say(update);
    this.#unsent.clear();
    if (this.#memory.session.ending) this.#say({ type: "end" });
  }

  #hear(message) {
    if (message.type === "partial" || message.type === "final") this.#restored(); // what came before has arrived
    const hear = {
      started: () => this.#started(message),
      final: () => this.#concluded(message, message),
      paused: () => this.#memory.note({ paused: message.paused }),
      hidden: () => this.#hide(message),
      error: () => this.#failed(message),
      done: () => this.#done(),
    }[message.type];
    hear?.();
    if (["started", "partial", "stats", "paused", "hidden", "done"].includes(message.type)) this.#tell(message.type, message);
  }

  #started({ token, session, targets, resumed, server }) {
    const start = { ...this.#memory.session.start, take_over: undefined }; // done once
    this.#memory.note({ token, name: session, targets, start });
    this.#backoff.reset();
    this.#server = server;
    if (resumed || !this.#memory.finals.size) this.#restored();
    if (!resumed) this.#restore();
    this.#unsent = new Map(this.#memory.open);
    this.#live = true;
    this.#waiting = false;
    this.#flush();
    if (!resumed) this.#hideOpen();
    this.#tell("state", "live");
  }

  /** Tell a server that has not the latest of the session what it lacks. */
  #restore() {
    const { paused, hidden = [] } = this.#memory.session;
    if (paused) this.#say({ type: "pause" }); // before there is anything that viewers could see
    let finals = [];
    let length = 0;
    for (const [key, final] of [...this.#memory.finals].filter(([, each]) => each)) {
      finals.push(hidden.includes(key) ? { ...final, hidden: true } : final);
      length += JSON.stringify(final).length;
      if (length > RESTORE) {
        this.#say({ type: "restore", finals });
        [finals, length] = [[], 0];
      }
    }
    if (finals.length) this.#say({ type: "restore", finals });
  }

  /** The server has all of the session, so that it may be resumed there. */
  #restored() {
    if (this.#memory.session.server !== this.#server) this.#memory.note({ server: this.#server });
  }

  #hide({ utterance, language, hidden }) {
    const key = keyOf({ utterance, language });
    const others = (this.#memory.session.hidden ?? []).filter((each) => each !== key);
    this.#memory.note({ hidden: hidden ? [...others, key] : others });
  }

  /** Tell a restarted server which unfinished utterances are hidden, and have all that are confirmed. */
  #hideOpen() {
    for (const key of this.#memory.session.hidden ?? []) {
      const [utterance, language] = JSON.parse(key);
      this.#say({ type: "hide", utterance, language });
    }
  }

  /** An utterance has ended in a language; what comes a second time is acknowledged again and passed over. */
  #concluded({ utterance, language }, final) {
    const key = keyOf({ utterance, language });
    const { finals, session } = this.#memory;
    if (!finals.has(key)) {
      this.#memory.keepFinal(key, final);
      if (final) this.#tell("final", final);
      if (session.targets.every((each) => finals.has(keyOf({ utterance, language: each })))) this.#memory.dropOpen(utterance);
    } else if (final?.corrected) {
      this.#memory.keepFinal(key, final);
      this.#tell("final", final);
    }
    this.#say({ type: "ack", utterance, language });
  }

  #failed(error) {
    if (error.fatal) this.#refusal = error;
    else if (error.final) this.#concluded(error, null);
    else if (error.code === "stale" && error.utterance) this.#memory.dropOpen(error.utterance);
    if (error.final) this.#tell("failed", error);
    if (!error.fatal) this.#tell("problem", error);
  }

  #done() {
    this.leave();
    this.#tell("state", "over");
  }

  #closed() {
    this.#live = false;
    const refusal = this.#refusal;
    if (refusal && !(this.#memory.session.token && PASSING.has(refusal.code))) {
      this.#socket = null;
      this.#tell("state", "over");
      this.#tell("problem", refusal);
      return;
    }
    if (!this.#waiting) this.#tell("state", "waiting");
    this.#waiting = true;
    const left = this.#socket;
    setTimeout(() => left === this.#socket && this.#connect(), this.#backoff.next());
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
