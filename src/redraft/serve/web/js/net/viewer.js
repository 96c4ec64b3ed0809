// Watches a session, or the sessions of a room one after the other: waits for a missing session, and reconnects as long as
// the page is open.
//
// Events: "partial", "final", "hidden", "paused", "done" and "problem" (an error) with the server's message, "about" with
// the session's description, "state" with a word of STATES.  After a drop all final captions come again, possibly corrected.
// "restart" precedes the first caption of new languages, whose captions so far follow in order.

import { sameOf } from "../captions/languages.js";
import { Backoff } from "./backoff.js";
import { address, ask } from "./server.js";

const ABSENT = 404;
/** State of a room -> state shown. */
const ROOM_STATES = { waiting: "before", live: "live", over: "next" };
const CAPTIONS = ["partial", "final"];

export class Viewer extends EventTarget {
  #session;
  #room;
  #server;
  #backoff = new Backoff();
  /** Languages wanted, last requested and received; empty for all. */
  #languages;
  #asked = [];
  #received = [];
  /** The connection; null while waiting to reconnect. */
  #socket = null;
  #waiting = 0;
  #gone = false;

  /**
   * @param {object} of what is watched: a session or a room
   * @param {string} [of.session] the session's public name
   * @param {string} [of.room] the room's name
   * @param {string | URL} [of.server] the server's address, by default that of the page
   * @param {string[]} [languages] languages to receive; empty for all
   */
  constructor({ session, room, server = location.href }, languages = []) {
    super();
    this.#session = encodeURIComponent(session ?? "");
    this.#room = encodeURIComponent(room ?? "");
    this.#server = server;
    this.#languages = languages;
  }

  async connect() {
    this.#socket = null;
    if (this.#room) {
      this.#listen(`v1/rooms/${this.#room}/watch`);
      return;
    }
    const { status, body } = await ask(new URL(`v1/sessions/${this.#session}`, this.#server));
    if (this.#gone) return;
    if (body === null) {
      this.#wait(status === ABSENT ? "absent" : "waiting");
      return;
    }
    this.#emit("about", body);
    this.#listen(`v1/watch/${this.#session}`);
  }

  /**
   * Change the languages; reconnects if some of them are not received yet.
   *
   * @param {string[]} languages
   */
  choose(languages) {
    this.#languages = languages;
    if (!this.#socket || covers(this.#asked, languages)) return;
    this.#leave();
    this.connect();
  }

  /** End it: no event follows. */
  disconnect() {
    this.#gone = true;
    clearTimeout(this.#waiting);
    if (this.#socket) this.#leave();
  }

  #leave() {
    const socket = this.#socket;
    socket.onmessage = socket.onclose = null;
    socket.onopen = () => socket.close(); // closing it earlier is an error
    if (socket.readyState === WebSocket.OPEN) socket.close();
  }

  #listen(path) {
    let over = false;
    const query = new URLSearchParams(this.#languages.map((tag) => ["language", tag]));
    const socket = new WebSocket(address(this.#languages.length ? `${path}?${query}` : path, this.#server));
    this.#socket = socket;
    this.#asked = this.#languages;
    socket.onopen = () => {
      this.#backoff.connected();
      if (!this.#room) this.#emit("state", "live");
    };
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      if (message.type === "error") {
        this.#emit("problem", message);
        return;
      }
      over ||= message.type === "done";
      if (CAPTIONS.includes(message.type)) this.#receive();
      if (message.type === "room") this.#showRoom(message);
      else this.#emit(message.type, message);
      if (message.type === "paused") this.#emit("state", message.paused ? "paused" : "live");
    };
    socket.onclose = () => (over ? this.#emit("state", "over") : this.#wait("waiting"));
  }

  /** Handle a caption; what was shown before stays until the first one. */
  #receive() {
    if (!covers(this.#received, this.#asked)) this.#emit("restart");
    this.#received = this.#asked;
  }

  #showRoom(message) {
    if (message.session) this.#emit("about", message);
    this.#emit("state", ROOM_STATES[message.state]);
  }

  #wait(state) {
    this.#socket = null;
    this.#emit("state", state);
    this.#waiting = setTimeout(() => this.connect(), this.#backoff.next());
  }

  #emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

/** Whether some languages contain others; empty stands for all. */
const covers = (some, others) => !some.length || (others.length > 0 && others.every((tag) => sameOf(tag, some)));
