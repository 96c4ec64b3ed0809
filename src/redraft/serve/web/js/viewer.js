// Watches somebody else's session: reads only, and connects again for as long as the page is open.
//
// Events: "partial", "final", "done" and "problem" with the server's message, "state" as of a session.  After a drop all
// final captions come again: whoever shows them passes over those that are there.

import { Backoff } from "./backoff.js";
import { address } from "./session.js";

export class Viewer extends EventTarget {
  #path;
  #backoff = new Backoff();

  /** @param {string} name the session's public name */
  constructor(name) {
    super();
    this.#path = `/v1/watch/${encodeURIComponent(name)}`;
  }

  connect() {
    let over = false;
    const socket = new WebSocket(address(this.#path));
    this.#tell("state", "connecting");
    socket.onopen = () => this.#tell("state", "live");
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      if (message.type === "error") {
        if (message.fatal) this.#tell("problem", message);
        return;
      }
      this.#backoff.reset();
      over ||= message.type === "done";
      this.#tell(message.type, message);
    };
    socket.onclose = () => {
      this.#tell("state", over ? "over" : "waiting");
      if (!over) setTimeout(() => this.connect(), this.#backoff.next());
    };
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
