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
  #frame = 0;

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
    const row = this.#rows.get(utterance) ?? this.#placed(newRow());
    this.#rows.set(utterance, row);
    write(row, stable, unstable);
    grow(row);
    this.#follow();
  }

  /** Show a final caption; one that is there already is passed over. */
  final(utterance, text) {
    if (this.#ended.has(utterance)) return;
    this.#ended.add(utterance);
    const row = this.#rows.get(utterance) ?? this.#placed(newRow());
    write(row, text, "");
    if (this.#rows.delete(utterance)) grow(row);
    this.#finals.append(row);
    if (this.#finals.childElementCount > this.#most) this.#trim();
    this.#follow();
  }

  /** The row, put in at the end; it moves what is above it anyway, which need no longer hold more room than it fills. */
  #placed(row) {
    const { lastElementChild } = this.#finals;
    if (lastElementChild) lastElementChild.style.minHeight = "";
    this.#partials.append(row);
    return row;
  }

  /** Remove the oldest final captions; who has scrolled up sees nothing move. */
  #trim() {
    const before = this.#following ? 0 : this.#view.scrollHeight;
    while (this.#finals.childElementCount > this.#most) this.#finals.firstElementChild.remove();
    this.#earlier.hidden = !this.#earlier.textContent;
    if (!this.#following) this.#view.scrollTop -= before - this.#view.scrollHeight;
  }

  /** Go on to the end, once a frame, however many captions come within it. */
  #follow() {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => {
      if (this.#following) this.#view.scrollTop = this.#view.scrollHeight;
    });
  }

  /** Heights that held for another width hold no longer. */
  #resized() {
    for (const row of [...this.#finals.children, ...this.#rows.values()]) row.style.minHeight = "";
    for (const row of this.#rows.values()) grow(row);
    this.#follow();
  }
}

function write(row, stable, unstable) {
  row.firstChild.textContent = stable;
  row.lastChild.textContent = unstable;
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
