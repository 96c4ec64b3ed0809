// Captions in several languages side by side, a column each.

import { Captions } from "./captions.js";
import { mark, nameOf, ownNameOf } from "./languages.js";

/** Final captions that a column keeps: a long session must not make the page slow. */
const MOST = 500;
const EARLIER = "Earlier captions are in the transcript.";

export class Columns {
  #captions = new Map();
  #sections = new Map();
  #place;

  /**
   * @param {HTMLElement} place where the columns go
   * @param {string[]} targets languages
   * @param {string | null} source the language spoken, which gets a column too; null shows none
   */
  constructor(place, targets, source = null) {
    this.#place = place;
    place.replaceChildren();
    if (source !== null) this.#add("", source, "Spoken", { spoken: false });
    for (const target of targets) this.#add(target, target, ownNameOf(target));
    this.#count();
  }

  /** The fewer columns there are, the larger the type. */
  #count() {
    const shown = [...this.#sections.values()].filter((section) => !section.hidden);
    this.#place.style.setProperty("--columns", shown.length);
  }

  #add(key, tag, title, options) {
    const section = sectionOf(tag, title);
    section.classList.toggle("source", key === "");
    this.#place.append(section);
    this.#sections.set(key, section);
    this.#captions.set(key, new Captions(section.lastElementChild, tag, { most: MOST, earlier: EARLIER, ...options }));
  }

  /** Hide all languages but these; what is hidden goes on. */
  showOnly(targets) {
    for (const [key, section] of this.#sections) section.hidden = !targets.has(key);
    this.#count();
  }

  said({ utterance, text, final }) {
    const captions = this.#captions.get("");
    if (final) captions?.final(utterance, text);
    else captions?.partial(utterance, text);
  }

  partial({ utterance, target, stable, unstable }) {
    this.#captions.get(target)?.partial(utterance, stable, unstable);
  }

  final({ utterance, target, text }) {
    this.#captions.get(target)?.final(utterance, text);
  }
}

function sectionOf(tag, title) {
  const section = document.createElement("section");
  const heading = document.createElement("h2");
  const view = document.createElement("div");
  section.className = "column";
  heading.append(...titleOf(title, tag));
  view.className = "view";
  view.tabIndex = 0; // to be scrolled by keyboard
  view.setAttribute("role", "group");
  view.setAttribute("aria-label", `${title}, ${nameOf(tag)}`);
  section.append(heading, view);
  return section;
}

/** The title, and after it the language's English name where that is another. */
function titleOf(title, tag) {
  const own = document.createElement("span");
  const english = document.createElement("small");
  own.textContent = title;
  english.textContent = nameOf(tag);
  if (title === ownNameOf(tag)) mark(own, tag);
  return title === english.textContent ? [own] : [own, english];
}
