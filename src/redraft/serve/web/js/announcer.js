// Reads final captions out to screen readers: each is put into a live region that nobody sees, and removed again.

import { mark } from "./languages.js";

/** Milliseconds at the beginning within which captions are those of before: they are not read out again. */
const SETTLING = 1000;
/** Captions that stay in the region; removing one is not read out. */
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

  /** Remove what is not to be found any more. */
  unsay(text) {
    for (const line of [...this.#region.children]) if (line.textContent === text) line.remove();
  }
}
