// A choice of languages: by name, with a search field if there are many.

import { element } from "../captions/elements.js";
import { nameOf, ownNameOf } from "../captions/languages.js";

/** Number of languages from which on they can be searched. */
const MANY = 12;
const NONE = "Choose at least one language.";

/**
 * @param {HTMLElement} place where the boxes go
 * @param {HTMLInputElement} find search field
 * @param {string} name of the boxes
 * @param {string[]} tags languages offered
 * @param {string[]} [checked] those that are checked at first; they stand first
 */
export function makeBoxes(place, find, name, tags, checked = []) {
  const ordered = byName(tags).sort((one, other) => checked.includes(other) - checked.includes(one));
  const boxes = ordered.map((tag) => element("input", { type: "checkbox", name, value: tag, checked: checked.includes(tag) }));
  const chosen = () => boxes.filter((box) => box.checked).map((box) => box.value);
  /** Show the languages whose name or tag contains the searched text, and those that are chosen. */
  const filter = () => {
    const text = plain(find.value.trim());
    for (const box of boxes) {
      const found = [nameOf(box.value), ownNameOf(box.value), box.value].some((name) => plain(name).includes(text));
      box.parentElement.hidden = box.disabled || !(found || box.checked);
    }
  };
  /** Choose the language that was found. */
  const take = (event) => {
    event.preventDefault();
    const text = plain(find.value.trim());
    const found = boxes.filter((box) => !box.parentElement.hidden && !box.checked);
    const box = found.find((box) => plain(nameOf(box.value)) === text) ?? found[0];
    if (!text || !box) return;
    box.checked = true;
    box.dispatchEvent(new Event("change", { bubbles: true }));
    find.value = "";
    filter();
  };
  place.append(...boxes.map((box) => element("label", { className: "chip" }, box, nameOf(box.value))));
  find.hidden = tags.length < MANY;
  find.addEventListener("input", filter);
  find.addEventListener("keydown", (event) => event.key === "Enter" && take(event));
  return {
    chosen,
    /** Check these languages only. */
    show(tags) {
      for (const box of boxes) box.checked = tags.includes(box.value);
    },
    /** Do not offer these languages. */
    exclude(...tags) {
      for (const box of boxes) {
        box.disabled = tags.some((tag) => same(box.value, tag));
        if (box.disabled) box.checked = false;
      }
      filter();
    },
    /** Mark the form as invalid if nothing is chosen. */
    validate() {
      for (const box of boxes) box.setCustomValidity("");
      if (!chosen().length) boxes.find((box) => !box.parentElement.hidden)?.setCustomValidity(NONE);
    },
  };
}

/** Languages in the order of their English names. */
export const byName = (tags) => [...tags].sort((one, other) => nameOf(one).localeCompare(nameOf(other), "en"));

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
