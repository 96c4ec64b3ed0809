// The glossary: terms and their translations, for each target language, kept in the browser for the next session.

import { nameOf } from "../captions/languages.js";
import { makeField } from "./fields.js";

const STORED = "redraft.glossary";

/**
 * @param {HTMLElement} place where the fields go
 * @param {number} most maximum number of entries for a language
 */
export function makeGlossary(place, most) {
  /** Source language -> target language -> its lines. */
  const texts = JSON.parse(localStorage.getItem(STORED) ?? "{}");
  let source = "";
  place.append(
    makeField({ name: "glossary_language", label: "Glossary", help: "", words: [] }),
    makeField({
      name: "glossary",
      label: "Terms",
      help: `One entry per line, at most ${most} for a language. Kept in this browser. Not every model supports glossaries.`,
      attributes: { rows: 3, maxLength: 50_000, placeholder: "term = translation", dir: "auto", spellcheck: false },
    }),
  );
  const language = place.querySelector("[name=glossary_language]");
  const box = place.querySelector("[name=glossary]");
  const linesOf = (tag) => texts[source]?.[tag] ?? "";
  const show = () => {
    box.value = linesOf(language.value);
    box.setAttribute("aria-label", `Terms and their translations into ${nameOf(language.value)}`);
  };
  place.querySelector("[for=field-glossary]").className = "hidden";
  language.addEventListener("change", show);
  box.addEventListener("input", () => {
    texts[source] = { ...texts[source], [language.value]: box.value || undefined };
    localStorage.setItem(STORED, JSON.stringify(texts));
  });
  return {
    /** Offer these target languages of a session. */
    offer(sourceLanguage, targets) {
      const shown = language.value;
      source = sourceLanguage;
      language.replaceChildren(...targets.map((tag) => new Option(nameOf(tag), tag, false, tag === shown)));
      show();
    },
    /**
     * The pairs of terms of each target language that has some.
     *
     * @throws {RangeError} a line is no pair; its language is shown then
     */
    read() {
      const found = {};
      for (const { value: tag, text: name } of language.options) {
        const lines = linesOf(tag).split("\n").filter((line) => line.trim());
        const pairs = lines.map((line) => line.split(/=(.*)/s, 2).map((part) => part.trim()));
        const wrong = pairs.findIndex(([term, wanted]) => !term || !wanted);
        if (wrong >= 0) {
          language.value = tag;
          show();
          throw new RangeError(`glossary: "${lines[wrong].trim()}", for ${name}, must be a term, "=" and its translation`);
        }
        if (pairs.length) found[tag] = pairs;
      }
      return found;
    },
  };
}
