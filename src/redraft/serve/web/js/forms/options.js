// The options of a session besides its languages.  The server checks their ranges; its error is shown at the field.

import { at, element } from "../captions/elements.js";
import { makeField, valueOf } from "./fields.js";
import { makeGlossary } from "./glossary.js";

const NUMBER = { inputMode: "decimal", maxLength: 20, spellcheck: false };

/** A field for a boolean of the protocol. */
const makeSwitch = (name, label, help, initial) => ({ name, label, help, words: ["yes", "no"], initial: initial ? "yes" : "no" });
const switchesOf = (offer) => [
  makeSwitch("take_over", "Take over", "Replaces the session that is running in the room.", false),
  ...(offer.recogniser ? [makeSwitch("sentences", "Whole sentences", "Cuts what the server recognises into sentences, whatever the pauses.", offer.sentences)] : []),
];

export class Options {
  #form;
  #offer;
  #method;
  #switches;
  #glossary;

  /**
   * @param {HTMLFormElement} form of the fields
   * @param {HTMLElement} place where they go
   * @param {object} offer what the server offers
   */
  constructor(form, place, offer) {
    this.#form = form;
    this.#offer = offer;
    this.#method = element("div", { className: "method" });
    const switches = switchesOf(offer);
    this.#switches = switches.map(({ name }) => name);
    const fields = [...switches, { name: "method", label: "Method", help: "", words: offer.methods }];
    this.#glossary = makeGlossary(place, offer.most_glossary);
    place.append(...fields.map(makeField), this.#method);
    form.elements.method.addEventListener("change", () => this.#showMethod());
    this.#showMethod();
  }

  /**
   * Their fields of the message `start`, without empty ones.
   *
   * @throws {RangeError} the glossary is invalid
   */
  read() {
    const glossary = this.#glossary.read();
    const value = (name) => valueOf(this.#form.elements.namedItem(name));
    const entries = this.#own.map(({ name }) => [name, value(name)]).filter(([, found]) => found !== undefined);
    const switches = this.#switches.map((name) => [name, value(name) === "yes"]);
    return { method: value("method"), ...Object.fromEntries(switches), options: Object.fromEntries(entries), glossary };
  }

  /** Show the options of a session. */
  show({ method, options = {}, ...rest }) {
    this.#form.elements.method.value = method;
    this.#showMethod();
    const known = { take_over: false, ...rest, ...options };
    for (const name of this.#switches) if (known[name] !== undefined) known[name] = known[name] ? "yes" : "no";
    for (const control of this.#form.querySelectorAll("#options [name]:not([name^=glossary])")) {
      if (control.name !== "method" && control.tagName !== "SELECT") control.value = known[control.name] ?? "";
      else if (known[control.name] !== undefined) control.value = known[control.name];
    }
  }

  get #own() {
    return this.#offer.about[this.#form.elements.method.value].options;
  }

  /** Offer a glossary for these languages. */
  offer(sourceLanguage, targets) {
    this.#glossary.offer(sourceLanguage, targets);
  }

  #showMethod() {
    at("method-help").textContent = `${this.#offer.about[this.#form.elements.method.value].summary}.`;
    const [first, ...more] = this.#own.map(fieldOf).map(makeField);
    const open = Boolean(this.#method.querySelector("details[open]"));
    const title = element("summary", { textContent: `More of ${this.#form.elements.method.value}` });
    this.#method.replaceChildren(first, element("details", { open }, title, ...more));
  }
}

/** The field for an option of a method, as the server describes it. */
function fieldOf({ name, help, allowed, default: initial, words }) {
  const description = words.length ? help : `${help}: ${allowed}`;
  return { name, label: name, help: `${description}.`, initial, words: words.length ? words : undefined, attributes: words.length ? {} : NUMBER };
}
