// A choice of languages: by name, with a search field if there are many.

import { element } from "../captions/elements.js";
import { nameOf, ownNameOf } from "../captions/languages.js";

/** Number of languages from which on they can be searched. */
const MANY = 12;
const NONE = "Choose at least one language.";

export class LanguageBoxes {
  #place;
  #find;

  /**
   * @param {HTMLElement} place where the boxes go
   * @param {HTMLInputElement} find search field
   * @param {string} name of the boxes
   * @param {string[]} tags languages offered
   * @param {string[]} [chosen] those that are checked at first; they stand first
   */
  constructor(place, find, name, tags, chosen = []) {
    this.#place = place;
    this.#find = find;
    const byName = [...tags].sort((one, other) => nameOf(one).localeCompare(nameOf(other), "en"));
    const ordered = [...byName.filter((tag) => chosen.includes(tag)), ...byName.filter((tag) => !chosen.includes(tag))];
    place.append(...ordered.map((tag) => choice(name, tag, chosen.includes(tag))));
    find.hidden = tags.length < MANY;
    find.addEventListener("input", () => this.#filter());
    find.addEventListener("keydown", (event) => event.key === "Enter" && this.#take(event));
  }

  get #boxes() {
    return [...this.#place.querySelectorAll("input")];
  }

  /** The chosen languages. */
  get chosen() {
    return this.#boxes.filter((box) => box.checked).map((box) => box.value);
  }

  /** Check these languages only. */
  show(tags) {
    for (const box of this.#boxes) box.checked = tags.includes(box.value);
  }

  /** Do not offer these languages. */
  exclude(...tags) {
    for (const box of this.#boxes) {
      box.disabled = tags.some((tag) => same(box.value, tag));
      if (box.disabled) box.checked = false;
    }
    this.#filter();
  }

  /** Mark the form as invalid if nothing is chosen. */
  validate() {
    for (const box of this.#boxes) box.setCustomValidity("");
    const seen = this.#boxes.find((box) => !box.parentElement.hidden);
    if (!this.chosen.length) seen?.setCustomValidity(NONE);
  }

  /** Show the languages whose name or tag contains the searched text, and those that are chosen. */
  #filter() {
    const text = plain(this.#find.value.trim());
    for (const box of this.#boxes) {
      const found = [nameOf(box.value), ownNameOf(box.value), box.value].some((name) => plain(name).includes(text));
      box.parentElement.hidden = box.disabled || !(found || box.checked);
    }
  }

  /** Choose the language that was found. */
  #take(event) {
    event.preventDefault();
    const text = plain(this.#find.value.trim());
    const found = this.#boxes.filter((box) => !box.parentElement.hidden && !box.checked);
    const exact = found.filter((box) => plain(nameOf(box.value)) === text);
    const [box] = exact.length ? exact : found;
    if (!text || !box) return;
    box.checked = true;
    box.dispatchEvent(new Event("change", { bubbles: true }));
    this.#find.value = "";
    this.#filter();
  }
}

function choice(name, tag, checked) {
  return element("label", { className: "chip" }, element("input", { type: "checkbox", name, value: tag, checked }), nameOf(tag));
}

/** Without case and accents. */
const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

/** Whether two tags are the same language in the same script. */
function same(one, other) {
  const [a, b] = [one, other].map((tag) => {
    try {
      return new Intl.Locale(tag).maximize();
    } catch {
      return { language: tag };
    }
  });
  return a.language === b.language && a.script === b.script;
}
