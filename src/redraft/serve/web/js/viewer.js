// Watches somebody else's session, or those of a room one after the other: reads only, waits for a session that is not
// there, and connects again for as long as the page is open.
//
// Events: "partial", "final", "hidden", "paused", "done" and "problem" (an error) with the server's message, "about" with
// what is known of the session, "state" with a word of STATES.  After a drop all final captions come again, maybe with
// another text.

import { ask } from "./ask.js";
import { Backoff } from "./backoff.js";
import { address } from "./address.js";

const ABSENT = 404;
/** How a room stands -> how that is shown. */
const ROOM_STATES = { waiting: "before", live: "live", over: "next" };

export class Viewer extends EventTarget {
  #session;
  #room;
  #backoff = new Backoff();

  /**
   * @param {object} of what is watched: one of these
   * @param {string} [of.session] the session's public name
   * @param {string} [of.room] the room's name
   */
  constructor({ session, room }) {
    super();
    this.#session = encodeURIComponent(session ?? "");
    this.#room = encodeURIComponent(room ?? "");
  }

  async connect() {
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

  #listen(path) {
    let over = false;
    const socket = new WebSocket(address(path));
    socket.onopen = () => this.#room || this.#tell("state", "live");
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      if (message.type === "error") {
        this.#tell("problem", message);
        return;
      }
      this.#backoff.reset();
      over ||= message.type === "done";
      if (message.type === "room") this.#showRoom(message);
      else this.#tell(message.type, message);
      if (message.type === "paused") this.#tell("state", message.paused ? "paused" : "live");
    };
    socket.onclose = () => (over ? this.#tell("state", "over") : this.#wait("waiting"));
  }

  #showRoom(message) {
    if (message.session) this.#tell("about", message);
    this.#tell("state", ROOM_STATES[message.state]);
  }

  #wait(state) {
    this.#tell("state", state);
    setTimeout(() => this.connect(), this.#backoff.next());
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
