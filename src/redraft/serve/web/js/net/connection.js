// A websocket that is either alive or closed.  A network that swallows packets closes nothing, so a connection that does
// not open in time, or on which the server has been silent for two of its heartbeats, counts as closed.

/**
 * Milliseconds within which a connection must open, and within which the first message of a server must come, as in
 * deadlines.py.  A busy server may need all of the second for a session that is resumed, too.
 */
const OPENED = 10_000;
const STARTED = 60_000;
/** Heartbeats of the server without any message after which a connection is lost. */
const MISSED = 2;
/** Milliseconds between two heartbeats; null until a server has said it. */
let heartbeat = null;

/**
 * Call something when the network or the page is back: when timers of a sleeping device are late.
 *
 * @param {() => void} back
 * @returns {() => void} ends it
 */
export function whenBack(back) {
  const seen = () => document.visibilityState === "visible" && back();
  const events = [[window, "online", back], [window, "pageshow", seen], [document, "visibilitychange", seen]];
  for (const [target, type, listener] of events) target.addEventListener(type, listener);
  return () => events.forEach(([target, type, listener]) => target.removeEventListener(type, listener));
}

export class Connection {
  #socket;
  #closed;
  #timer = 0;
  /** Time by which it must have been heard of again. */
  #due = Infinity;
  #forget = whenBack(() => performance.now() > this.#due && this.#end());

  /**
   * @param {URL} url
   * @param {object} on
   * @param {() => void} on.open
   * @param {(message: object) => void} on.message
   * @param {() => void} on.close called once, unless `close` was called before
   */
  constructor(url, { open, message, close }) {
    this.#closed = close;
    this.#socket = new WebSocket(url);
    this.#expect(OPENED);
    this.#socket.onopen = () => {
      this.#expect(STARTED);
      open();
    };
    this.#socket.onmessage = ({ data }) => {
      const found = JSON.parse(data);
      heartbeat = found.heartbeat ? 1000 * found.heartbeat : heartbeat;
      this.#expect(heartbeat ? MISSED * heartbeat : STARTED);
      message(found);
    };
    this.#socket.onclose = () => this.#end();
  }

  /** Send a text or bytes; nothing without an open connection. */
  send(data) {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(data);
  }

  /** Close it; no event follows. */
  close() {
    const socket = this.#socket;
    this.#forget();
    clearTimeout(this.#timer);
    socket.onmessage = socket.onclose = null;
    socket.onopen = () => socket.close(); // closing it earlier is an error
    if (socket.readyState === WebSocket.OPEN) socket.close();
  }

  /** Expect something within so many milliseconds. */
  #expect(milliseconds) {
    clearTimeout(this.#timer);
    this.#due = performance.now() + milliseconds;
    this.#timer = setTimeout(() => this.#end(), milliseconds);
  }

  #end() {
    this.close();
    this.#closed();
  }
}
