// The viewer's choice of languages: one or several, of which the one that is spoken may be one.  Kept in the address, so
// that it survives a reload and can be shared.

import { button, press } from "../captions/elements.js";
import { mark, ownNameOf, sameOf } from "../captions/languages.js";
import { t } from "../captions/words.js";

/**
 * @param {HTMLElement} place where the buttons go
 * @param {string[]} languages those of the session; the first one is spoken
 * @param {(shown: string[]) => void} chosen called with the choice in this order, now and after each change
 */
export function pickLanguages(place, languages, chosen) {
  const wanted = new URLSearchParams(location.search).getAll("language").map((tag) => sameOf(tag, languages)).filter(Boolean);
  let shown = new Set(wanted.length ? wanted : [ownLanguage(languages, languages[0])]);
  let several = shown.size > 1;
  const choices = languages.map((tag) => {
    // It switches to a language or, with several, shows or hides it; the last one stays.
    const made = button(ownNameOf(tag), () => {
      if (!several) shown.clear();
      if (!shown.delete(tag) || !shown.size) shown.add(tag);
    });
    mark(made, tag);
    return made;
  });
  const sideBySide = button(t("Side by side"), () => {
    several = !several;
    shown = new Set(several ? languages : [ownLanguage([...shown], languages[0])]);
  });
  const show = () => {
    choices.forEach((choice, index) => press(choice, shown.has(languages[index])));
    press(sideBySide, several);
    chosen(languages.filter((tag) => shown.has(tag)));
  };
  place.hidden = false;
  place.replaceChildren(...choices, ...(languages.length > 1 ? [sideBySide] : []));
  place.onclick = () => {
    const address = new URL(location.href);
    address.searchParams.delete("language");
    for (const each of shown) address.searchParams.append("language", each);
    history.replaceState(null, "", address);
    show();
  };
  show();
  place.querySelector("[aria-pressed=true]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
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
