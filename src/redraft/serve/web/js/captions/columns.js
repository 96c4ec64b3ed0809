// Captions in several languages: in columns if there is room, else one below the other, sentence by sentence.

import { Announcer } from "./announcer.js";
import { Captions } from "./captions.js";
import { choose } from "./choose.js";
import { element } from "./elements.js";
import { mark, nameOf, ownNameOf, withSpoken } from "./languages.js";
import { t } from "./words.js";

/** Maximum number of rows, so that long sessions do not slow the page down. */
const MOST = 500;
/** Minimum width of a readable column in pixels, at standard type size. */
const NARROW = 170;

export class Columns extends Captions {
  #place;
  #stopChoosing = () => {};
  #head = element("div", { className: "head", role: "row" });
  #newest = element("button", { type: "button", className: "newest", textContent: t("Jump to newest"), hidden: true });

  /**
   * @param {HTMLElement} place where they go
   * @param {HTMLElement} region live region for screen readers
   * @param {string[]} targets languages
   * @param {string} spoken the language that is spoken; gets the first column, unless it is a target too
   * @param {() => string} transcript returns the address of the transcript, which has captions that are no longer shown
   * @param {boolean} [owner] whether it is the session's owner who sees them
   */
  constructor(place, region, targets, spoken, transcript, owner = false) {
    const languages = new Map(withSpoken(spoken, targets).map((tag) => [tag, { name: ownNameOf(tag), spoken: !targets.includes(tag) }]));
    const link = element("a", { textContent: t("Earlier captions"), target: "_blank", rel: "noopener" });
    const earlier = element("p", { className: "earlier", hidden: true }, link);
    const onTrim = () => {
      link.href = transcript();
      earlier.hidden = false;
    };
    const view = element("div", { className: "view", tabIndex: 0, role: "group", ariaLabel: "Captions" }); // scrolled by keyboard
    super(view, languages, new Announcer(region), { most: MOST, owner, onTrim });
    this.#place = place;
    this.#head.append(...[...languages].map(([tag, language]) => titleOf(tag, language)));
    view.append(earlier, element("div", { className: "table", role: "table", ariaLabel: "Captions" }, this.#head, this.rows));
    place.replaceChildren(view, this.#newest);
    this.#newest.addEventListener("click", () => {
      this.toNewest();
      view.focus();
    });
    this.addEventListener("follow", () => (this.#newest.hidden = this.following));
    new ResizeObserver(() => this.#arrange()).observe(place);
    this.#arrange();
  }

  showOnly(keys) {
    for (const title of this.#head.children) title.hidden = !keys.has(title.dataset.key);
    super.showOnly(keys);
  }

  resized() {
    this.#arrange();
    super.resized();
  }

  /** The fewer columns there are, the larger the type. */
  #arrange() {
    const { clientWidth, style, classList } = this.#place;
    const scale = parseFloat(getComputedStyle(this.#place).getPropertyValue("--scale")) || 1;
    style.setProperty("--columns", this.shown.size);
    classList.toggle("single", this.shown.size === 1);
    const stacked = clientWidth < this.shown.size * NARROW * scale;
    if (stacked === classList.contains("stacked")) return;
    classList.toggle("stacked", stacked);
    super.resized();
  }

  /**
   * Let the user choose a translation, by pointer or keyboard.
   *
   * @param {((caption: object) => void) | null} chosen called with a caption, see choose.js; null ends it
   */
  choose(chosen) {
    this.#place.toggleAttribute("data-editing", Boolean(chosen));
    this.#stopChoosing();
    this.#stopChoosing = chosen ? choose(this.rows, chosen) : () => {};
  }

  /** Translation has failed: there will be no final caption. */
  failed({ utterance, language }) {
    this.final({ utterance, language, text: t("Not translated"), failed: true });
  }
}

/** Show the captions of a session or of a viewer in the columns that there are when they come. */
export function follow(source, columns) {
  for (const type of ["partial", "final", "hide", "failed"]) source.addEventListener(type, ({ detail }) => columns()[type](detail));
}

/** The language's own name, followed by the English one if it differs; the one that is spoken is said to be. */
function titleOf(tag, { name, spoken }) {
  const own = element("span", { textContent: name });
  const title = element("div", { role: "columnheader" }, own);
  const more = spoken ? t("Original") : nameOf(tag);
  title.dataset.key = tag;
  if (spoken) title.className = "source";
  mark(own, tag);
  title.dir = own.dir; // above the text of its column
  if (more !== name) title.append(element("small", { textContent: more }));
  return title;
}
