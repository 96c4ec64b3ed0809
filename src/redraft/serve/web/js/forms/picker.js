// The viewer's choice of languages: one or several, of which the one that is spoken may be one.  Kept in the address, so
// that it survives a reload and can be shared.

import { button, press } from "../captions/elements.js";
import { mark, ownNameOf, sameOf } from "../captions/languages.js";
import { t } from "../captions/words.js";

export class LanguagePicker {
  #chosen;
  #shown;
  #several;
  #buttons = new Map();

  /**
   * @param {HTMLElement} place where the buttons go
   * @param {string[]} languages those of the session; the first one is spoken
   * @param {(shown: string[]) => void} chosen called with the choice in this order, now and after each change
   */
  constructor(place, languages, chosen) {
    const given = new URLSearchParams(location.search);
    const wanted = given.getAll("language").map((tag) => sameOf(tag, languages)).filter(Boolean);
    this.#chosen = chosen;
    this.#shown = new Set(wanted.length ? wanted : [ownLanguage(languages, languages[0])]);
    this.#several = this.#shown.size > 1;
    place.hidden = false;
    const several = button(t("Side by side"), () => this.#toggleSeveral());
    for (const tag of languages) this.#buttons.set(tag, this.#button(tag));
    place.replaceChildren(...this.#buttons.values(), ...(languages.length > 1 ? [several] : []));
    place.onclick = () => {
      this.#write();
      this.#show(several);
    };
    this.#show(several);
    place.querySelector("[aria-pressed=true]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  #button(tag) {
    const made = button(ownNameOf(tag), () => this.#choose(tag));
    mark(made, tag);
    return made;
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
    else this.#shown = new Set([ownLanguage([...this.#shown], [...this.#buttons.keys()][0])]);
  }

  #show(several) {
    for (const [tag, button] of this.#buttons) press(button, this.#shown.has(tag));
    press(several, this.#several);
    this.#chosen([...this.#buttons.keys()].filter((tag) => this.#shown.has(tag)));
  }

  #write() {
    const address = new URL(location.href);
    address.searchParams.delete("language");
    for (const each of this.#shown) address.searchParams.append("language", each);
    history.replaceState(null, "", address);
  }
}

/** The first of these languages that the browser's user prefers, or else the first translation. */
function ownLanguage(tags, spoken) {
  const languageOf = (tag) => tag.toLowerCase().split("-")[0];
  for (const own of navigator.languages) {
    const found = tags.find((tag) => tag.toLowerCase() === own.toLowerCase()) ?? tags.find((tag) => languageOf(tag) === languageOf(own));
    if (found) return found;
  }
  return tags.find((tag) => tag !== spoken) ?? spoken;
}
