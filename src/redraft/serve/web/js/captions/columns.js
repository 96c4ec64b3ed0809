// Captions in several languages: in columns if there is room, else one below the other, sentence by sentence.

import { Announcer } from "./announcer.js";
import { Captions } from "./captions.js";
import { choose } from "./choose.js";
import { mark, nameOf, ownNameOf } from "./languages.js";
import { t } from "./words.js";

/** Maximum number of rows, so that long sessions do not slow the page down. */
const MOST = 500;
/** Minimum width of a readable column in pixels, at standard type size. */
const NARROW = 170;

/** Key of captions in the source language. */
export const SOURCE = "";

export class Columns {
  #place;
  #languages;
  #captions;
  #announcer;
  #shown;
  #stopChoosing = () => {};
  #head = element("div", { className: "head", role: "row" });
  #newest = element("button", { type: "button", className: "newest", textContent: t("Jump to newest"), hidden: true });

  /**
   * @param {HTMLElement} place where they go
   * @param {HTMLElement} region live region for screen readers
   * @param {string[]} targets languages
   * @param {string} sourceLanguage the language spoken, if it is known; gets the first column
   * @param {() => string} transcript returns the address of the transcript, which has captions that are no longer shown
   */
  constructor(place, region, targets, sourceLanguage, transcript) {
    this.#place = place;
    this.#languages = new Map([
      [SOURCE, { tag: sourceLanguage, name: t("Original"), english: sourceLanguage && nameOf(sourceLanguage) }],
      ...targets.map((tag) => [tag, { tag, name: ownNameOf(tag), english: nameOf(tag) }]),
    ]);
    this.#announcer = new Announcer(region);
    const link = element("a", { textContent: t("Earlier captions"), target: "_blank", rel: "noopener" });
    const earlier = element("p", { className: "earlier", hidden: true });
    earlier.append(link);
    const onTrim = () => {
      link.href = transcript();
      earlier.hidden = false;
    };
    const view = element("div", { className: "view", tabIndex: 0, role: "group", ariaLabel: "Captions" }); // scrolled by keyboard
    const table = element("div", { className: "table", role: "table", ariaLabel: "Captions" });
    this.#captions = new Captions(view, this.#languages, { most: MOST, onTrim });
    this.#head.append(...[...this.#languages].map(([key, language]) => titleOf(key, language)));
    table.append(this.#head, this.#captions.rows);
    view.append(earlier, table);
    place.replaceChildren(view, this.#newest);
    this.#newest.addEventListener("click", () => {
      this.#captions.toNewest();
      view.focus();
    });
    this.#captions.addEventListener("follow", () => (this.#newest.hidden = this.#captions.following));
    new ResizeObserver(() => this.#arrange()).observe(place);
    this.showOnly(new Set(this.#languages.keys()));
  }

  /** Show only these languages, of which `SOURCE` may be one; the others are updated too. */
  showOnly(keys) {
    this.#shown = keys;
    for (const title of this.#head.children) title.hidden = !keys.has(title.dataset.key);
    this.#captions.showOnly(keys);
    this.#arrange();
  }

  /** The type size has changed. */
  resized() {
    this.#arrange();
    this.#captions.resized();
  }

  /** The fewer columns there are, the larger the type. */
  #arrange() {
    const { clientWidth, style, classList } = this.#place;
    const scale = parseFloat(getComputedStyle(this.#place).getPropertyValue("--scale")) || 1;
    style.setProperty("--columns", this.#shown.size);
    classList.toggle("single", this.#shown.size === 1);
    const stacked = clientWidth < this.#shown.size * NARROW * scale;
    if (stacked === classList.contains("stacked")) return;
    classList.toggle("stacked", stacked);
    this.#captions.resized();
  }

  showSource({ utterance, text, final }) {
    this.#captions[final ? "final" : "partial"](SOURCE, { utterance, text });
  }

  partial(message) {
    this.#captions.partial(message.language, message);
  }

  final(message) {
    const { language, text } = message;
    const fresh = this.#captions.final(language, message);
    if (fresh && this.#shown.has(language)) this.#announcer.say(text, language);
  }

  /** Mark what the operator has hidden from viewers. */
  mark({ utterance, language, hidden }) {
    this.#captions.mark(utterance, language, hidden);
  }

  /**
   * Let the user choose a translation, by pointer or keyboard.
   *
   * @param {((caption: object) => void) | null} chosen called with a caption, see choose.js; null ends it
   */
  choose(chosen) {
    this.#place.toggleAttribute("data-editing", Boolean(chosen));
    this.#stopChoosing();
    this.#stopChoosing = chosen ? choose(this.#captions.rows, chosen) : () => {};
  }

  /** The operator has hidden a caption; the original of a sentence that is hidden in all languages goes, too. */
  remove({ utterance, language }) {
    this.#announcer.unsay(this.#captions.remove(utterance, language));
    if (!this.#captions.hasOther(utterance, SOURCE)) this.#captions.remove(utterance, SOURCE);
  }

  /** Translation has failed: there will be no final caption. */
  failed({ utterance, language }) {
    this.#captions.final(language, { utterance, text: t("Not translated"), failed: true });
  }
}

/** The language's own name, followed by the English one if it differs. */
function titleOf(key, { tag, name, english }) {
  const title = element("div", { role: "columnheader" });
  const own = element("span", { textContent: name });
  title.dataset.key = key;
  title.append(own);
  if (key === SOURCE) title.className = "source";
  else mark(own, tag);
  title.dir = own.dir; // above the text of its column
  if (english && english !== name) title.append(element("small", { textContent: english }));
  return title;
}

const element = (tag, properties = {}) => Object.assign(document.createElement(tag), properties);
