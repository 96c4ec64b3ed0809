// Statistics: the share of the output that came from drafts, and the savings over plain re-translation.

import { element } from "../captions/elements.js";
import { nameOf } from "../captions/languages.js";
import { Rate, figuresOf, plainFigures } from "./figures.js";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const percent = new Intl.NumberFormat("en", { style: "percent" });

const milliseconds = (value) => `${whole.format(value)} ms`;

/** Figure -> name, format and meaning. */
const FIGURES = {
  passes: ["Model passes", whole.format, "How often the model ran. One pass verifies a whole draft, or decodes one token."],
  perPass: ["Tokens per pass", fine.format, "Output tokens divided by model passes. Decoding token by token stays below 1."],
  speed: ["Tokens per second", whole.format, "Output tokens a second, over the last ten seconds."],
  lag: ["Median lag", milliseconds, "Time from speech, or from the arrival of text at the server, to its caption. Half of the last 200 captions were faster."],
  lag95: ["95th percentile lag", milliseconds, "95 of 100 captions came faster than this after their words were spoken or, as text, had reached the server."],
  kept: ["Draft acceptance", percent.format, "Share of drafted tokens that were kept (A/D). The draft is the translation shown before."],
  erasure: ["Normalized erasure", fine.format, "Words that were shown and retracted, per word of the final captions (NE). At 0, nothing shown was ever retracted."],
};

export class Panel {
  #place;
  #rate = new Rate();
  #plainRate = new Rate();

  /** @param {HTMLElement} place holds the table, a list for the bars, and a line that explains figures */
  constructor(place) {
    this.#place = place;
    const explained = place.querySelector(".explained");
    place.querySelector("tbody").append(...Object.entries(FIGURES).map((figure) => rowOf(figure, explained)));
  }

  /** Start over, for another session by a decoding method. */
  clear(method) {
    this.#place.querySelector("#method-name").textContent = method;
    this.#rate = new Rate();
    this.clearPlain();
    for (const cell of this.#place.querySelectorAll("tbody td")) cell.textContent = "–";
    this.#place.querySelector(".bars").replaceChildren();
    this.#reveal(false);
  }

  clearPlain() {
    this.#plainRate = new Rate();
    this.#write("plain", Object.fromEntries(Object.keys(FIGURES).map((name) => [name, null])));
  }

  /** Counts of the session. */
  show(stats) {
    this.#write("own", figuresOf(stats, this.#rate));
    this.#write("plain", plainFigures(stats));
    const bars = Object.entries(stats.targets).map(([target, counts]) => barOf(target, counts));
    this.#place.querySelector(".bars").replaceChildren(...bars);
    this.#reveal(true);
  }

  #reveal(any) {
    this.#place.querySelector(".none").hidden = any;
    this.#place.querySelector(".figures").hidden = !any;
  }

  /**
   * Measurements of plain re-translation, which runs beside the session; its passes are computed from counts.
   * If the session's lag counts from speech, that of plain re-translation, which gets text, cannot be compared.
   */
  showPlain(stats, spoken) {
    const { speed, lag, lag95, erasure } = figuresOf(stats, this.#plainRate);
    this.#write("plain", { speed, erasure, lag: spoken ? null : lag, lag95: spoken ? null : lag95 });
  }

  #write(column, figures) {
    for (const [name, value] of Object.entries(figures)) {
      this.#place.querySelector(`[data-${column}="${name}"]`).textContent = value === null ? "–" : FIGURES[name][1](value);
    }
  }
}

/** A row of the table; its meaning is shown on hover and focus. */
function rowOf([name, [title, , meaning]], explained) {
  const term = element("span", { className: "term", tabIndex: 0, textContent: title });
  const about = element("span", { id: `about-${name}`, hidden: true, textContent: meaning });
  term.setAttribute("aria-describedby", about.id);
  const cells = ["own", "plain"].map((column) => {
    const cell = element("td", { textContent: "–" });
    cell.dataset[column] = name;
    return cell;
  });
  const row = element("tr", {}, element("th", { scope: "row" }, term, about), ...cells);
  for (const event of ["pointerenter", "focusin", "click"]) row.addEventListener(event, () => (explained.textContent = meaning));
  return row;
}

/** The share of a language's tokens that came from drafts. */
function barOf(target, { tokens, accepted }) {
  const share = tokens ? accepted / tokens : 0;
  const label = `${nameOf(target)}: ${whole.format(accepted)} from drafts, ${whole.format(tokens - accepted)} decoded`;
  const meter = { value: share, textContent: percent.format(share), ariaLabel: `${nameOf(target)}, share of output tokens taken from drafts (A/O)` };
  return element("li", {}, element("span", { textContent: label }), element("meter", meter));
}
