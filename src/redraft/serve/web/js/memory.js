// What must outlive a reload of the page, in the tab's sessionStorage: the session, final captions, open updates.
//
// Every final caption has an entry of its own, so that adding one does not write all others again.

export const keyOf = ({ utterance, language }) => JSON.stringify([utterance, language]);

const PREFIX = "redraft.";

/** Keeps nothing beyond the page: for sessions that a reload may end. */
export class Volatile {
  #items = new Map();
  getItem(name) {
    return this.#items.get(name) ?? null;
  }
  setItem(name, value) {
    this.#items.set(name, value);
  }
  removeItem(name) {
    this.#items.delete(name);
  }
}

export class Memory {
  #storage;
  #onFull;

  /**
   * @param {Storage} storage where to keep it
   * @param {() => void} onFull called when the storage takes no more, so that a reload would lose something
   */
  constructor(storage, onFull = () => {}) {
    this.#storage = storage;
    this.#onFull = onFull;
    this.load();
  }

  load() {
    /**
     * The session: {start, token, server, name, targets, begun, runs, ending, paused, hidden}; null where there
     * is none.
     * `hidden` has the keys of captions that viewers do not see.
     */
    this.session = this.read("session");
    /** Newest update of each utterance that is not translated into every language yet. */
    this.open = new Map(Object.entries(this.read("open") ?? {}));
    /** Key of utterance and language -> final caption, or null where there is none. */
    this.finals = new Map();
    for (let entry; (entry = this.read(`final.${this.finals.size}`)); ) this.finals.set(entry.key, entry.final);
  }

  read(name) {
    const text = this.#storage.getItem(PREFIX + name);
    return text === null ? null : JSON.parse(text);
  }

  write(name, value) {
    try {
      this.#storage.setItem(PREFIX + name, JSON.stringify(value));
    } catch {
      this.#onFull();
    }
  }

  forget(name) {
    this.#storage.removeItem(PREFIX + name);
  }

  /** Change some of what is known of the session. */
  note(changes) {
    this.session = { ...this.session, ...changes };
    this.write("session", this.session);
  }

  keepOpen(update) {
    this.open.set(update.utterance, update);
    this.write("open", Object.fromEntries(this.open));
  }

  dropOpen(utterance) {
    this.open.delete(utterance);
    this.write("open", Object.fromEntries(this.open));
  }

  /** Keep a final caption, in the place of an earlier one of the same key. */
  keepFinal(key, final) {
    const place = this.finals.has(key) ? [...this.finals.keys()].indexOf(key) : this.finals.size;
    this.write(`final.${place}`, { key, final });
    this.finals.set(key, final);
  }

  clear() {
    for (let n = 0; n < this.finals.size; n++) this.forget(`final.${n}`);
    this.forget("session");
    this.forget("open");
    this.load();
  }
}
