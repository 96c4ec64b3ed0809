// Which languages of a session are shown; kept in the address, so that it outlives a reload and can be passed on.

import { mark, ownNameOf } from "./languages.js";

export class LanguagePicker {
  #targets;
  #columns;
  #shown;

  /**
   * @param {HTMLElement} place where the buttons go; left empty where there is nothing to choose
   * @param {string[]} targets languages of the session
   * @param {import("./columns.js").Columns} columns
   */
  constructor(place, targets, columns) {
    const wanted = new URLSearchParams(location.search).getAll("target").filter((tag) => targets.includes(tag));
    this.#targets = targets;
    this.#columns = columns;
    this.#shown = new Set(wanted.length ? wanted : targets);
    place.hidden = targets.length < 2;
    place.replaceChildren(...targets.map((tag) => this.#button(tag)));
    columns.showOnly(this.#shown);
  }

  #button(tag) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: ownNameOf(tag) });
    mark(button, tag);
    const show = () => button.setAttribute("aria-pressed", String(this.#shown.has(tag)));
    button.addEventListener("click", () => {
      this.#toggle(tag);
      show();
    });
    show();
    return button;
  }

  /** Show or hide a language; the last one stays. */
  #toggle(tag) {
    if (!this.#shown.delete(tag)) this.#shown.add(tag);
    if (!this.#shown.size) this.#shown.add(tag);
    this.#columns.showOnly(this.#shown);
    const address = new URL(location.href);
    address.searchParams.delete("target");
    if (this.#shown.size < this.#targets.length) for (const each of this.#shown) address.searchParams.append("target", each);
    history.replaceState(null, "", address);
  }
}
