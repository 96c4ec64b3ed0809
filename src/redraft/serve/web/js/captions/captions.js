// Captions by utterance: a row each, with a cell for every language, so that translations of one sentence stand side by
// side.  Cells never shrink, and the view follows the end unless the reader scrolls up.
//
// Event "follow": the view has started or stopped following the end.

import { element } from "./elements.js";
import { mark } from "./languages.js";

/** Distance in pixels within which the view counts as being at the end. */
const NEAR = 48;
/** Events of scrolling, and the milliseconds for which a held key or a flick continues to scroll. */
const GESTURES = ["wheel", "touchmove", "keydown", "pointerdown"];
const AFTER = 1000;

export class Captions extends EventTarget {
  /** The element that holds the rows. */
  rows = element("div", { className: "rows", role: "rowgroup" });
  following = true;
  /** Languages that are shown. */
  shown;
  #view;
  #languages;
  #announcer;
  #owner;
  #most;
  #onTrim;
  /** Utterance -> its name, its row (null once removed), its cells by key, the keys with a final caption, and whether it
      has ever had a partial one. */
  #utterances = new Map();
  /** The last scroll position. */
  #top = 0;
  /** Time of the reader's last scrolling action, and whether a pointer is down, as on the scrollbar. */
  #gesture = -AFTER;
  #held = false;
  #frame = 0;

  /**
   * @param {HTMLElement} view the scrolling element
   * @param {Map<string, {name: string, spoken?: boolean}>} languages by tag, in the order of the cells
   * @param {import("./announcer.js").Announcer} announcer says final captions to screen readers
   * @param {object} options
   * @param {number} options.most maximum number of rows
   * @param {boolean} [options.owner] whether it is the session's owner who sees them, and with them what is hidden from viewers
   * @param {() => void} [options.onTrim] called when the oldest row is removed
   */
  constructor(view, languages, announcer, { most, owner = false, onTrim = () => {} }) {
    super();
    this.#view = view;
    this.#languages = languages;
    this.shown = new Set(languages.keys());
    this.#announcer = announcer;
    this.#most = most;
    this.#owner = owner;
    this.#onTrim = onTrim;
    view.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    for (const type of GESTURES) view.addEventListener(type, (event) => this.#gestured(event), { passive: true });
    for (const type of ["pointerup", "pointercancel", "pointermove"]) view.addEventListener(type, ({ buttons }) => (this.#held &&= buttons > 0));
    new ResizeObserver(() => this.resized()).observe(view);
  }

  /** Show a partial caption, the server's message. */
  partial({ utterance, language: key, text, unstable = "", speaker }) {
    const entry = this.#entry(utterance, speaker);
    if (entry.ended.has(key) || !this.#languages.has(key)) return;
    const cell = this.#write(entry, key, text, unstable);
    cell.classList.remove("removed");
    entry.live = true;
    this.#tidy(entry);
    this.#grow(cell);
  }

  /** Show a final caption or, with `failed`, its substitute. */
  final({ utterance, language: key, text, speaker, age_ms: age, failed = false }) {
    const entry = this.#entry(utterance, speaker);
    if (!this.#languages.has(key)) return;
    const fresh = !entry.ended.has(key);
    const changed = fresh ? this.#conclude(entry, key, text, failed) : !failed && this.#correct(entry, key, text);
    if (changed && !failed && this.shown.has(key)) this.#announcer.say(text, key, age);
  }

  #conclude(entry, key, text, failed) {
    const cell = this.#write(entry, key, "", "");
    cell.textContent = text; // without the mark of an unstable part
    cell.classList.remove("removed");
    cell.classList.add(failed ? "failed" : "final");
    this.#tidy(entry);
    if (entry.live) this.#grow(cell); // not after a reload, when hundreds come at once
    entry.ended.add(key);
    this.#settle(entry);
    return true;
  }

  /** Count a final caption as shown and cleared. */
  pass({ utterance, language: key }) {
    const entry = this.#entry(utterance);
    if (!entry.row) entry.ended.add(key);
  }

  /**
   * The operator has hidden a caption, or shows it again.  Its owner sees it all the same, and marked; viewers see nothing of it,
   * until it comes again.
   */
  hide({ utterance, language: key, hidden = true }) {
    const entry = this.#utterances.get(utterance);
    const cell = entry?.cells.get(key);
    if (this.#owner) cell?.classList.toggle("unseen", hidden);
    if (!cell || this.#owner || !hidden) return;
    this.#announcer.unsay(cell.textContent);
    entry.ended.delete(key);
    cell.classList.remove("final", "failed");
    cell.classList.add("removed");
    empty(cell);
    this.#tidy(entry);
  }

  /** Replace the text of a final caption; false if it is the same, or its row was removed. */
  #correct(entry, key, text) {
    const cell = entry.cells.get(key);
    if (!cell || cell.textContent === text) return false;
    cell.textContent = text;
    cell.classList.replace("failed", "final");
    this.#grow(cell);
    return true;
  }

  /** Show only these languages; the others are updated too. */
  showOnly(keys) {
    this.shown = keys;
    for (const entry of this.#utterances.values()) {
      for (const [key, cell] of entry.cells) cell.hidden = !this.shown.has(key);
      this.#tidy(entry);
    }
    this.resized();
  }

  /** Remove all rows; an unfinished utterance gets a new one. */
  clear() {
    this.rows.replaceChildren();
    for (const [utterance, entry] of this.#utterances) {
      if (this.#complete(entry)) forget(entry);
      else this.#utterances.delete(utterance);
    }
  }

  /** Go to the end and follow it. */
  toNewest() {
    this.#setFollowing(true);
    this.#follow();
  }

  /** Widths or type size have changed: reset the minimum heights of cells. */
  resized() {
    for (const entry of this.#utterances.values()) {
      for (const cell of entry.cells.values()) cell.style.minHeight = "";
      if (!this.#complete(entry)) for (const cell of entry.cells.values()) this.#grow(cell);
    }
    this.#follow();
  }

  /** Whether an utterance has ended in every visible language, or in every target among them; others may never arrive. */
  #complete({ ended }, { sources = true } = {}) {
    return [...this.#languages].every(([key, { spoken }]) => ended.has(key) || !this.shown.has(key) || (spoken && !sources));
  }

  #entry(utterance, speaker) {
    if (!this.#utterances.has(utterance)) {
      this.#utterances.set(utterance, { utterance, row: null, cells: new Map(), ended: new Set(), live: false });
    }
    const entry = this.#utterances.get(utterance);
    entry.speaker = speaker ?? entry.speaker;
    if (entry.row) name(entry);
    return entry;
  }

  /** Return a cell of an utterance, creating its row if necessary. */
  #write(entry, key, text, unstable) {
    if (!entry.row) this.#place(entry);
    const cell = entry.cells.get(key);
    cell.firstChild.textContent = text;
    cell.lastChild.textContent = unstable;
    this.#follow();
    return cell;
  }

  /** Add a row at the end. */
  #place(entry) {
    entry.row = element("div", { className: "utterance", role: "row" });
    entry.row.dataset.utterance = entry.utterance;
    name(entry);
    for (const [key, language] of this.#languages) {
      const cell = newCell(key, language);
      cell.hidden = !this.shown.has(key);
      entry.cells.set(key, cell);
      entry.row.append(cell);
    }
    this.rows.append(entry.row);
    if (this.rows.childElementCount > this.#most) this.#trim();
  }

  /** Remove the oldest row, preferably a finished one, without moving the view of a reader who has scrolled up. */
  #trim() {
    const rows = [...this.rows.children];
    const entryOf = (row) => this.#utterances.get(row.dataset.utterance);
    const oldest = rows.find((row) => this.#complete(entryOf(row), { sources: false })) ?? rows[0];
    const before = this.following ? 0 : this.#view.scrollHeight;
    oldest.remove();
    forget(entryOf(oldest));
    this.#onTrim();
    if (!this.following) this.#view.scrollTop -= before - this.#view.scrollHeight;
  }

  /** Hide a row of which captions were removed, and no other is shown. */
  #tidy({ row, cells }) {
    if (!row) return;
    const removed = (cell) => cell.classList.contains("removed");
    row.hidden = [...cells.values()].some(removed) && [...cells.values()].every((cell) => cell.hidden || removed(cell));
  }

  #gestured({ type, timeStamp }) {
    this.#gesture = timeStamp;
    this.#held ||= type === "pointerdown";
  }

  /** Stop following only if the reader scrolls up; new captions and resizing also move the end away. */
  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.#view;
    const up = scrollTop < this.#top && (this.#held || performance.now() - this.#gesture < AFTER);
    this.#top = scrollTop;
    if (scrollHeight - scrollTop - clientHeight < NEAR) this.#setFollowing(true);
    else if (up) this.#setFollowing(false);
  }

  #setFollowing(following) {
    if (following === this.following) return;
    this.following = following;
    this.dispatchEvent(new Event("follow"));
  }

  /** Never let a cell shrink, since what is below would jump. */
  #grow(cell) {
    const { height } = cell.getBoundingClientRect();
    if (height <= (parseFloat(cell.style.minHeight) || 0)) return;
    cell.style.minHeight = `${height}px`;
    this.#toEnd();
  }

  /** Scroll to the end, at most once per frame. */
  #follow() {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.#toEnd());
  }

  /** Give up the height that a finished row no longer needs, where only what is above moves. */
  #settle(entry) {
    if (!this.following || !this.#complete(entry)) return;
    for (const cell of entry.cells.values()) cell.style.minHeight = "";
    this.#toEnd();
  }

  #toEnd() {
    if (this.following) this.#view.scrollTop = this.#view.scrollHeight;
  }
}

function newCell(key, { name, spoken }) {
  // The part is for style sheets of pages that have the element.
  const cell = element("p", { className: spoken ? "cell source" : "cell", part: "line", role: "cell" });
  cell.dataset.name = name;
  cell.dataset.language = key;
  empty(cell);
  mark(cell, key);
  return cell;
}

/** Set the speaker, whom style sheets show. */
function name({ row, speaker }) {
  if (speaker) row.dataset.speaker = speaker;
}

/** Split off the part that may still change. */
function empty(cell) {
  cell.replaceChildren(element("span"), element("span", { className: "unstable", part: "unstable" }));
}

function forget(entry) {
  entry.row = null;
  entry.cells.clear();
}
