// Watches somebody else's session: reads only, waits for one that is not there, and connects again for as long as the
// page is open.
//
// Events: "partial", "final", "done" and "problem" (an error) with the server's message, "about" with what is known of the session,
// "state" with a word of STATES.  After a drop all final captions come again: whoever shows them passes over those that
// are there.

import { ask } from "./ask.js";
import { Backoff } from "./backoff.js";
import { address } from "./session.js";

const ABSENT = 404;

export class Viewer extends EventTarget {
  #name;
  #backoff = new Backoff();

  /** @param {string} name the session's public name */
  constructor(name) {
    super();
    this.#name = encodeURIComponent(name);
  }

  async connect() {
    const { status, body } = await ask(`/v1/sessions/${this.#name}`);
    if (body === null) {
      this.#wait(status === ABSENT ? "absent" : "waiting");
      return;
    }
    this.#tell("about", body);
    this.#listen();
  }

  #listen() {
    let over = false;
    const socket = new WebSocket(address(`/v1/watch/${this.#name}`));
    socket.onopen = () => this.#tell("state", "live");
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      if (message.type === "error") {
        this.#tell("problem", message);
        return;
      }
      this.#backoff.reset();
      over ||= message.type === "done";
      this.#tell(message.type, message);
    };
    socket.onclose = () => (over ? this.#tell("state", "over") : this.#wait("waiting"));
  }

  #wait(state) {
    this.#tell("state", state);
    setTimeout(() => this.connect(), this.#backoff.next());
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
