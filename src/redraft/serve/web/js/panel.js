// The panel: how much of the output came from drafts, and what that spares against plain re-translation.

import { figuresOf, plainFigures, Rate } from "./figures.js";
import { nameOf } from "./languages.js";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const percent = new Intl.NumberFormat("en", { style: "percent" });

/** Figure -> how it is written. */
const FORMS = {
  lag: (value) => `${whole.format(value)} ms`,
  lag95: (value) => `${whole.format(value)} ms`,
  speed: (value) => whole.format(value),
  passes: (value) => whole.format(value),
  perPass: (value) => fine.format(value),
  kept: (value) => percent.format(value),
  erasure: (value) => fine.format(value),
};

export class Panel {
  #place;
  #rate = new Rate();
  #plainRate = new Rate();

  /** @param {HTMLElement} place holds the table, whose cells are named by figure, and a list for the bars */
  constructor(place) {
    this.#place = place;
  }

  /** Begin anew, for another session. */
  clear() {
    this.#rate = new Rate();
    this.clearPlain();
    for (const cell of this.#place.querySelectorAll("tbody td")) cell.textContent = "–";
    this.#place.querySelector(".bars").replaceChildren();
    this.#reveal(false);
  }

  clearPlain() {
    this.#plainRate = new Rate();
    this.#write("plain", Object.fromEntries(Object.keys(FORMS).map((name) => [name, null])));
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

  /** What was measured of plain re-translation, which runs beside the session; its passes follow from counts. */
  showPlain(stats) {
    const { speed, lag, lag95, erasure } = figuresOf(stats, this.#plainRate);
    this.#write("plain", { speed, lag, lag95, erasure });
  }

  #write(column, figures) {
    for (const [name, value] of Object.entries(figures)) {
      this.#place.querySelector(`[data-${column}="${name}"]`).textContent = value === null ? "–" : FORMS[name](value);
    }
  }
}

/** The share of a language's tokens that was taken over from drafts. */
function barOf(target, { tokens, accepted }) {
  const item = document.createElement("li");
  const label = document.createElement("span");
  const meter = document.createElement("meter");
  const share = tokens ? accepted / tokens : 0;
  label.textContent = `${nameOf(target)}: ${whole.format(accepted)} kept, ${whole.format(tokens - accepted)} re-decoded`;
  meter.value = share;
  meter.textContent = percent.format(share);
  meter.setAttribute("aria-label", `${nameOf(target)}, share of the output kept from drafts`);
  item.append(label, meter);
  return item;
}
