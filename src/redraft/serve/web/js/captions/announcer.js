// Announces final captions to screen readers: each is added to an invisible live region, and later removed.

import { element } from "./elements.js";
import { mark } from "./languages.js";

/** Age in milliseconds from which on a caption is an old one, which is not announced again. */
const OLD = 3000;
/** Number of captions kept in the region; removals are not announced. */
const MOST = 3;

export class Announcer {
  #region;

  /** @param {HTMLElement} region */
  constructor(region) {
    this.#region = region;
    region.replaceChildren();
  }

  /** Say a final caption; one from before the reader came has an age in milliseconds. */
  say(text, tag, age = 0) {
    if (age >= OLD) return;
    const line = element("p", { textContent: text });
    mark(line, tag);
    this.#region.append(line);
    if (this.#region.childElementCount > MOST) this.#region.firstElementChild.remove();
  }

  /** Take back what may not have been said yet. */
  unsay(text) {
    for (const line of [...this.#region.children]) if (line.textContent === text) line.remove();
  }
}
