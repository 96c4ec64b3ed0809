// The glossary: terms and their translations, for each target language, kept in the browser for the next session.

import { nameOf } from "../captions/languages.js";
import { makeField } from "./fields.js";

const STORED = "redraft.glossary";

export class Glossary {
  #language;
  #box;
  #sourceLanguage = "";
  /** Source language -> target language -> its lines. */
  #texts = JSON.parse(localStorage.getItem(STORED) ?? "{}");

  /**
   * @param {HTMLElement} place where the fields go
   * @param {number} most maximum number of entries for a language
   */
  constructor(place, most) {
    place.append(
      makeField({ name: "glossary_language", label: "Glossary", help: "", words: [] }),
      makeField({
        name: "glossary",
        label: "Terms",
        help: `One entry per line, at most ${most} for a language. Kept in this browser. Not every model supports glossaries.`,
        attributes: { rows: 3, maxLength: 50_000, placeholder: "term = translation", dir: "auto", spellcheck: false },
      }),
    );
    this.#language = place.querySelector("[name=glossary_language]");
    this.#box = place.querySelector("[name=glossary]");
    place.querySelector("[for=field-glossary]").className = "hidden";
    this.#language.addEventListener("change", () => this.#show());
    this.#box.addEventListener("input", () => this.#write());
  }

  /** Offer these target languages of a session. */
  offer(sourceLanguage, targets) {
    const shown = this.#language.value;
    this.#sourceLanguage = sourceLanguage;
    this.#language.replaceChildren(...targets.map((tag) => new Option(nameOf(tag), tag, false, tag === shown)));
    this.#show();
  }

  /**
   * The pairs of terms of each target language that has some.
   *
   * @throws {RangeError} a line is no pair; its language is shown then
   */
  read() {
    const found = {};
    for (const { value: tag, text: name } of this.#language.options) {
      const lines = this.#lines(tag).split("\n").filter((line) => line.trim());
      const pairs = lines.map((line) => line.split(/=(.*)/s, 2).map((part) => part.trim()));
      const wrong = pairs.findIndex(([term, wanted]) => !term || !wanted);
      if (wrong >= 0) {
        this.#language.value = tag;
        this.#show();
        throw new RangeError(`glossary: "${lines[wrong].trim()}", for ${name}, must be a term, "=" and its translation`);
      }
      if (pairs.length) found[tag] = pairs;
    }
    return found;
  }

  #lines(tag) {
    return this.#texts[this.#sourceLanguage]?.[tag] ?? "";
  }

  #show() {
    this.#box.value = this.#lines(this.#language.value);
    this.#box.setAttribute("aria-label", `Terms and their translations into ${nameOf(this.#language.value)}`);
  }

  #write() {
    this.#texts[this.#sourceLanguage] = { ...this.#texts[this.#sourceLanguage], [this.#language.value]: this.#box.value || undefined };
    localStorage.setItem(STORED, JSON.stringify(this.#texts));
  }
}
