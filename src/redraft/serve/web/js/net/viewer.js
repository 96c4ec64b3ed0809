// Watches a session, or the sessions of a room one after the other: waits for a missing session, and reconnects as long as
// the page is open.
//
// A session that is over is looked for again from time to time, since its speaker may come back.
//
// Events: "partial", "final", "hide", "pause", "done" and "problem" (an error) with the server's message, "failed" for an
// error in place of a final caption, "about" with the session's description, "state" with a word of STATES.  After a drop all
// final captions come again, possibly corrected.  "restart" precedes the first caption of new languages, whose captions so
// far follow in order.

import { sameOf } from "../captions/languages.js";
import { Backoff } from "./backoff.js";
import { Connection, whenBack } from "./connection.js";
import { Source } from "../captions/events.js";
import { address, ask } from "./server.js";

const ABSENT = 404;
/** Milliseconds between two looks at a session that is over. */
const AGAIN = 30_000;
/** State of a room -> state shown. */
const ROOM_STATES = { waiting: "before", live: "live", over: "next" };
const CAPTIONS = ["partial", "final"];

export class Viewer extends Source {
  #session;
  #room;
  #server;
  #backoff = new Backoff();
  /** Languages wanted, last requested and received; empty for all targets. */
  #languages;
  #asked = [];
  #received = [];
  #targets = [];
  /** The connection; null while waiting to reconnect. */
  #connection = null;
  #waiting = 0;
  /** Whether the session was over when it was last seen, and all of its captions came. */
  #over = false;
  /** Number of the last look at the session; an earlier one is given up. */
  #turn = 0;
  #forget = whenBack(() => this.#waiting && this.connect());

  /**
   * @param {object} of what is watched: a session or a room
   * @param {string} [of.session] the session's public name
   * @param {string} [of.room] the room's name
   * @param {string | URL} [of.server] the server's address, by default that of the page
   * @param {string[]} [languages] languages to receive; empty for all targets
   */
  constructor({ session, room, server = location.href }, languages = []) {
    super();
    this.#session = encodeURIComponent(session ?? "");
    this.#room = encodeURIComponent(room ?? "");
    this.#server = server;
    this.#languages = languages;
  }

  async connect() {
    const turn = ++this.#turn;
    clearTimeout(this.#waiting);
    this.#waiting = 0;
    if (this.#room) {
      this.#listen(`v1/rooms/${this.#room}/watch`);
      return;
    }
    const { status, body, error } = await ask(new URL(`v1/sessions/${this.#session}`, this.#server));
    if (turn !== this.#turn) return;
    if (this.#over && (body === null || body.done)) {
      this.#wait("over", AGAIN);
    } else if (body === null) {
      if (error && status !== ABSENT) this.emit("problem", { ...error, fatal: true });
      this.#wait(status === ABSENT ? "absent" : "waiting");
    } else {
      this.#over = false;
      this.#about(body);
      this.#listen(`v1/watch/${this.#session}`);
    }
  }

  /**
   * Change the languages; reconnects if some of them are not received yet.
   *
   * @param {string[]} languages
   */
  choose(languages) {
    this.#languages = languages;
    if ((!this.#connection && !this.#over) || this.#covers(this.#asked, languages)) return;
    this.#over = false;
    this.#connection?.close();
    this.connect();
  }

  /** End it: no event follows. */
  disconnect() {
    this.#turn += 1;
    this.#forget();
    clearTimeout(this.#waiting);
    this.#connection?.close();
  }

  #listen(path) {
    this.#over = false;
    const query = new URLSearchParams(this.#languages.map((tag) => ["language", tag]));
    this.#asked = this.#languages;
    this.#connection = new Connection(address(this.#languages.length ? `${path}?${query}` : path, this.#server), {
      open: () => {
        this.#backoff.connected();
        if (!this.#room) this.emit("state", "live");
      },
      message: (message) => this.#handle(message),
      close: () => (this.#over ? this.#wait("over", AGAIN) : this.#wait("waiting")),
    });
  }

  #handle(message) {
    this.#over ||= message.type === "done";
    if (CAPTIONS.includes(message.type)) this.#receive();
    if (message.type === "room") this.#showRoom(message);
    else this.emit(message.type === "error" ? "problem" : message.type, message);
    if (message.type === "error" && message.final) this.emit("failed", message);
    if (message.type === "pause") this.emit("state", message.paused ? "paused" : "live");
  }

  /** Handle a caption; what was shown before stays until the first one. */
  #receive() {
    if (!this.#covers(this.#received, this.#asked)) this.emit("restart");
    this.#received = this.#asked;
  }

  #showRoom(message) {
    if (message.session) this.#about(message);
    this.emit("state", ROOM_STATES[message.state]);
  }

  #about(description) {
    this.#targets = description.targets;
    this.emit("about", description);
  }

  /** Whether some languages contain others. */
  #covers(some, others) {
    if (!some.length && !others.length) return true;
    return others.length > 0 && others.every((tag) => sameOf(tag, some.length ? some : this.#targets));
  }

  #wait(state, milliseconds = this.#backoff.next()) {
    this.#connection = null;
    this.emit("state", state);
    this.#waiting = setTimeout(() => this.connect(), milliseconds);
  }
}
