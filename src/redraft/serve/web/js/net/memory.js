// State that survives a reload, in the tab's sessionStorage: the session, final captions, unanswered updates.
//
// Every final caption has its own entry, so that adding one does not rewrite the others.

const PREFIX = "redraft.";

export class Memory {
  #storage;
  #onFull;
  #full = false;

  /**
   * @param {Storage | null} storage where to keep it; null keeps it until a reload only
   * @param {() => void} onFull called when the storage is full, so that a reload would lose captions
   */
  constructor(storage = null, onFull = () => {}) {
    this.#storage = storage;
    this.#onFull = onFull;
    this.load();
  }

  load() {
    /**
     * The session: {start, token, server, connection, name, targets, begun, runs, ending, decisions}, or null.
     * `decisions` has what the operator has decided about viewers' captions, see control.js.
     */
    this.session = this.read("session");
    /** Newest update of each utterance that is not finished in every language. */
    this.open = new Map(Object.entries(this.read("open") ?? {}));
    /** Key of utterance and language -> final caption, or null if translation failed. */
    this.finals = new Map();
    for (let entry; (entry = this.read(`final.${this.finals.size}`)); ) this.finals.set(entry.key, entry.final);
  }

  read(name) {
    return JSON.parse(this.#storage?.getItem(PREFIX + name) ?? null);
  }

  write(name, value) {
    try {
      this.#storage?.setItem(PREFIX + name, JSON.stringify(value));
    } catch {
      if (!this.#full) this.#onFull(); // once is enough
      this.#full = true;
    }
  }

  forget(name) {
    this.#storage?.removeItem(PREFIX + name);
  }

  /** Change fields of the session. */
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

  /** Keep a final caption; it replaces an earlier one of the same key. */
  keepFinal(key, final) {
    const place = this.finals.has(key) ? [...this.finals.keys()].indexOf(key) : this.finals.size;
    this.write(`final.${place}`, { key, final });
    this.finals.set(key, final);
  }

  clear() {
    for (let n = 0; n < this.finals.size; n++) this.forget(`final.${n}`);
    this.forget("session");
    this.forget("open");
    this.#full = false;
    this.load();
  }
}
