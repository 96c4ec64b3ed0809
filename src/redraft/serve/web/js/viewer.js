// Watches somebody else's session, or those of a room one after the other: reads only, waits for a session that is not
// there, and connects again for as long as the page is open.
//
// Events: "partial", "final", "hidden", "paused", "done" and "problem" (an error) with the server's message, "about" with
// what is known of the session, "state" with a word of STATES.  After a drop all final captions come again, maybe with
// another text.  "restart" comes before the first caption where languages are new: all of theirs so far come, in order.

import { ask } from "./ask.js";
import { Backoff } from "./backoff.js";
import { address } from "./address.js";

const ABSENT = 404;
/** How a room stands -> how that is shown. */
const ROOM_STATES = { waiting: "before", live: "live", over: "next" };
const CAPTIONS = ["partial", "final"];

export class Viewer extends EventTarget {
  #session;
  #room;
  #backoff = new Backoff();
  /** Languages that are wanted, that were asked for last, and that have come so far; all if there are none. */
  #languages;
  #asked = [];
  #received = [];
  /** The connection; null while another one is about to be made. */
  #socket = null;

  /**
   * @param {object} of what is watched: a session or a room
   * @param {string} [of.session] the session's public name
   * @param {string} [of.room] the room's name
   * @param {string[]} [languages] the only ones whose captions are sent; all if there are none
   */
  constructor({ session, room }, languages = []) {
    super();
    this.#session = encodeURIComponent(session ?? "");
    this.#room = encodeURIComponent(room ?? "");
    this.#languages = languages;
  }

  async connect() {
    this.#socket = null;
    if (this.#room) {
      this.#listen(`/v1/rooms/${this.#room}/watch`);
      return;
    }
    const { status, body } = await ask(`/v1/sessions/${this.#session}`);
    if (body === null) {
      this.#wait(status === ABSENT ? "absent" : "waiting");
      return;
    }
    this.#tell("about", body);
    this.#listen(`/v1/watch/${this.#session}`);
  }

  /**
   * Want other languages.  If not all of them are received, the connection is made again.
   *
   * @param {string[]} languages
   */
  choose(languages) {
    this.#languages = languages;
    if (!this.#socket || covers(this.#asked, languages)) return;
    const socket = this.#socket;
    socket.onmessage = socket.onclose = null;
    socket.onopen = () => socket.close(); // to close it before that is an error
    if (socket.readyState === WebSocket.OPEN) socket.close();
    this.connect();
  }

  #listen(path) {
    let over = false;
    const query = new URLSearchParams(this.#languages.map((tag) => ["language", tag]));
    const socket = new WebSocket(address(this.#languages.length ? `${path}?${query}` : path));
    this.#socket = socket;
    this.#asked = this.#languages;
    socket.onopen = () => this.#room || this.#tell("state", "live");
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      if (message.type === "error") {
        this.#tell("problem", message);
        return;
      }
      this.#backoff.reset();
      over ||= message.type === "done";
      if (CAPTIONS.includes(message.type)) this.#receive();
      if (message.type === "room") this.#showRoom(message);
      else this.#tell(message.type, message);
      if (message.type === "paused") this.#tell("state", message.paused ? "paused" : "live");
    };
    socket.onclose = () => (over ? this.#tell("state", "over") : this.#wait("waiting"));
  }

  /** A caption has come.  What was shown so far stays until then. */
  #receive() {
    if (!covers(this.#received, this.#asked)) this.#tell("restart");
    this.#received = this.#asked;
  }

  #showRoom(message) {
    if (message.session) this.#tell("about", message);
    this.#tell("state", ROOM_STATES[message.state]);
  }

  #wait(state) {
    this.#socket = null;
    this.#tell("state", state);
    setTimeout(() => this.connect(), this.#backoff.next());
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

/** Whether some languages contain others, where none stands for all. */
const covers = (some, others) => !some.length || (others.length > 0 && others.every((tag) => some.includes(tag)));
