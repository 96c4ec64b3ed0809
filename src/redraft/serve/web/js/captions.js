// The captions of one language: final ones in a live region, which screen readers read out, those that may still change
// below it.  Lines only grow, and the view stays at the end unless somebody has scrolled up.

import { mark } from "./languages.js";

/** Pixels from the end within which the view counts as being at the end. */
const NEAR = 48;
/** Milliseconds at the beginning within which captions are those of before: they are not read out again. */
const SETTLING = 1000;

export class Captions {
  #view;
  #finals;
  #partials;
  #rows = new Map();
  #ended = new Set();
  #most;
  #earlier;
  /** Whether the view stays at the end. */
  #following = true;

  /**
   * @param {HTMLElement} view what scrolls
   * @param {string} tag the language
   * @param {object} options
   * @param {boolean} [options.spoken] whether screen readers read final captions out
   * @param {number} options.most how many final captions are kept
   * @param {string} [options.earlier] said above them once there were more
   */
  constructor(view, tag, { spoken = true, most, earlier = "" }) {
    this.#view = view;
    this.#most = most;
    this.#finals = document.createElement("div");
    this.#partials = document.createElement("div");
    this.#finals.className = "finals";
    this.#partials.className = "partials";
    this.#finals.setAttribute("role", "log");
    this.#finals.setAttribute("aria-live", "off");
    if (spoken) setTimeout(() => this.#finals.setAttribute("aria-live", "polite"), SETTLING);
    for (const part of [this.#finals, this.#partials]) mark(part, tag);
    this.#earlier = Object.assign(document.createElement("p"), { className: "earlier", textContent: earlier, hidden: true });
    view.append(this.#earlier, this.#finals, this.#partials);
    const distance = () => view.scrollHeight - view.scrollTop - view.clientHeight;
    view.addEventListener("scroll", () => (this.#following = distance() < NEAR), { passive: true });
    new ResizeObserver(() => this.#resized()).observe(view);
  }

  /** Show a caption that may still change. */
  partial(utterance, stable, unstable = "") {
    if (this.#ended.has(utterance)) return;
    this.#show(utterance, stable, unstable);
  }

  /** Show a final caption; one that is there already is passed over. */
  final(utterance, text) {
    if (this.#ended.has(utterance)) return;
    this.#ended.add(utterance);
    this.#keepingEnd(() => {
      const row = this.#show(utterance, text, "");
      this.#finals.append(row);
      this.#rows.delete(utterance);
      if (this.#finals.childElementCount > this.#most) this.#trim();
    });
  }

  /** Remove the oldest final captions; who reads others sees nothing move. */
  #trim() {
    const before = this.#view.scrollHeight;
    while (this.#finals.childElementCount > this.#most) this.#finals.firstElementChild.remove();
    this.#earlier.hidden = !this.#earlier.textContent;
    this.#view.scrollTop -= before - this.#view.scrollHeight;
  }

  #show(utterance, stable, unstable) {
    const row = this.#rows.get(utterance) ?? newRow();
    this.#rows.set(utterance, row);
    this.#keepingEnd(() => {
      if (!row.isConnected) {
        this.#release();
        this.#partials.append(row);
      }
      row.firstChild.textContent = stable;
      row.lastChild.textContent = unstable;
      grow(row);
    });
    return row;
  }

  /** A new row moves what is above it anyway: final captions no longer hold more room than they need. */
  #release() {
    const { lastElementChild } = this.#finals;
    if (lastElementChild) lastElementChild.style.minHeight = "";
  }

  #keepingEnd(change) {
    change();
    if (this.#following) this.#view.scrollTop = this.#view.scrollHeight;
  }

  /** Heights that held for another width hold no longer. */
  #resized() {
    for (const row of this.#finals.children) row.style.minHeight = "";
    for (const row of this.#rows.values()) row.style.minHeight = "";
    for (const row of this.#rows.values()) grow(row);
    this.#keepingEnd(() => {});
  }
}

/** What does not change any more, and what may. */
function newRow() {
  const row = document.createElement("p");
  row.append(document.createElement("span"), document.createElement("span"));
  row.lastChild.className = "unstable";
  return row;
}

/** Never let a row become lower than it was: what stands below would jump. */
function grow(row) {
  const height = row.getBoundingClientRect().height;
  if (height > (parseFloat(row.style.minHeight) || 0)) row.style.minHeight = `${height}px`;
}
