// The viewer's choice of languages: one or several, with or without the original.  Kept in the address, so that it
// survives a reload and can be shared.

import { mark, ownNameOf, sameOf } from "../captions/languages.js";
import { t } from "../captions/words.js";

export class LanguagePicker {
  #chosen;
  #shown;
  #original;
  #several;
  #buttons = new Map();

  /**
   * @param {HTMLElement} place where the buttons go
   * @param {string[]} targets languages of the session
   * @param {(shown: string[], original: boolean) => void} chosen called with the choice, now and after each change
   */
  constructor(place, targets, chosen) {
    const given = new URLSearchParams(location.search);
    const wanted = given.getAll("language").map((tag) => sameOf(tag, targets)).filter(Boolean);
    this.#chosen = chosen;
    this.#shown = new Set(wanted.length ? wanted : [ownLanguage(targets)]);
    this.#original = given.get("original") === "true";
    this.#several = this.#shown.size > 1;
    place.hidden = false;
    const several = toggle(t("Side by side"), () => this.#toggleSeveral());
    const original = toggle(t("Original"), () => (this.#original = !this.#original));
    if (targets.length > 1) for (const tag of targets) this.#buttons.set(tag, this.#button(tag));
    place.replaceChildren(...this.#buttons.values(), ...(targets.length > 1 ? [several] : []), original);
    place.onclick = () => {
      this.#write();
      this.#show(several, original);
    };
    this.#show(several, original);
    place.querySelector("[aria-pressed=true]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  #button(tag) {
    const button = toggle(ownNameOf(tag), () => this.#choose(tag));
    mark(button, tag);
    return button;
  }

  /** Switch to a language or, with several, show or hide it; the last one stays. */
  #choose(tag) {
    if (!this.#several) this.#shown.clear();
    if (!this.#shown.delete(tag)) this.#shown.add(tag);
    if (!this.#shown.size) this.#shown.add(tag);
  }

  #toggleSeveral() {
    this.#several = !this.#several;
    if (this.#several) this.#shown = new Set(this.#buttons.keys());
    else this.#shown = new Set([ownLanguage([...this.#shown])]);
  }

  #show(several, original) {
    for (const [tag, button] of this.#buttons) press(button, this.#shown.has(tag));
    press(several, this.#several);
    press(original, this.#original);
    this.#chosen([...this.#shown], this.#original);
  }

  #write() {
    const address = new URL(location.href);
    address.searchParams.delete("language");
    address.searchParams.delete("original");
    for (const each of this.#shown) address.searchParams.append("language", each);
    if (this.#original) address.searchParams.append("original", "true");
    history.replaceState(null, "", address);
  }
}

/** The first of these languages that the browser's user prefers, or else the first. */
function ownLanguage(tags) {
  const languageOf = (tag) => tag.toLowerCase().split("-")[0];
  for (const own of navigator.languages) {
    const found = tags.find((tag) => tag.toLowerCase() === own.toLowerCase()) ?? tags.find((tag) => languageOf(tag) === languageOf(own));
    if (found) return found;
  }
  return tags[0];
}

function toggle(text, pressed) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: text });
  button.addEventListener("click", pressed);
  return button;
}

const press = (button, pressed) => button.setAttribute("aria-pressed", String(pressed));
