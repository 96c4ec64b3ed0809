// Announces final captions to screen readers: each is added to an invisible live region, and later removed.

import { mark } from "./languages.js";

/** Milliseconds after loading within which captions are old ones, which are not announced again. */
const SETTLING = 1000;
/** Number of captions kept in the region; removals are not announced. */
const MOST = 3;

export class Announcer {
  #region;
  #from = performance.now() + SETTLING;

  /** @param {HTMLElement} region */
  constructor(region) {
    this.#region = region;
    region.replaceChildren();
  }

  say(text, tag) {
    if (performance.now() < this.#from) return;
    const line = Object.assign(document.createElement("p"), { textContent: text });
    mark(line, tag);
    this.#region.append(line);
    if (this.#region.childElementCount > MOST) this.#region.firstElementChild.remove();
  }

  /** Empty the region. */
  unsay(text) {
    for (const line of [...this.#region.children]) if (line.textContent === text) line.remove();
  }
}
