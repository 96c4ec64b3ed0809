// The form for a session's languages and options.

import { complain, makeField } from "./fields.js";
import { COMMON, nameOf } from "./languages.js";
import { Options } from "./options.js";

const USUAL = ["de", "zh", "ja"];
const KEY = {
  name: "key",
  label: "API key",
  help: "This server needs one. Ask its operator.",
  attributes: { type: "password", maxLength: 200, required: true, autocomplete: "current-password", spellcheck: false },
};
const NO_KEY = "Enter the API key that the operator of this server gave you.";

export class WantedForm {
  #form;
  #options;

  /**
   * @param {HTMLFormElement} form
   * @param {object} offer what the server offers
   */
  constructor(form, offer) {
    this.#form = form;
    const targets = offer.target_languages.length ? offer.target_languages : COMMON;
    const sources = offer.source_languages.length ? offer.source_languages : COMMON;
    form.source.append(...sources.map((tag) => new Option(nameOf(tag), tag)));
    form.source.value = sources.includes("en") ? "en" : sources[0];
    const chosen = USUAL.filter((tag) => targets.includes(tag)).slice(0, offer.most_targets);
    form.querySelector(".targets").append(...targets.map((tag) => choice(tag, chosen.includes(tag))));
    const place = form.querySelector(".key");
    place.hidden = !offer.key;
    if (offer.key) place.append(makeField(KEY));
    this.#options = new Options(form, form.querySelector("#options"), offer);
  }

  /** The fields of the message `start`; null, with an error at the field, if they are invalid. */
  read() {
    const { source, key } = this.#form.elements;
    const targets = [...this.#form.querySelectorAll("[name=target]:checked")].map((box) => box.value);
    const first = this.#form.querySelector("[name=target]");
    first.setCustomValidity(targets.length ? "" : "Choose at least one language.");
    key?.setCustomValidity(key.value.trim() ? "" : NO_KEY);
    this.#form.querySelector("#choices").open = true; // errors must be visible
    if (!this.#form.reportValidity()) return null;
    const options = this.#options.read();
    return options && { source: source.value, targets, ...options, key: key?.value.trim() };
  }

  /** Show the choices of a session. */
  show({ source, targets, key, ...options }) {
    this.#form.elements.source.value = source;
    if (this.#form.elements.key) this.#form.elements.key.value = key ?? "";
    this.#options.show(options);
    for (const box of this.#form.querySelectorAll("[name=target]")) box.checked = targets.includes(box.value);
    this.#form.querySelector("#chosen").textContent = `${nameOf(source)} to ${targets.map(nameOf).join(", ")}`;
  }

  /** Disable the form during a session. */
  lock(locked) {
    this.#form.querySelector("fieldset").disabled = locked;
    this.#form.querySelector("#choices").open = !locked;
    if (!locked) this.#form.querySelector("#chosen").textContent = "";
  }

  /** Show the server's error at its field; false if it names none. */
  complain({ code, message }) {
    if (code === "key") return complain(this.#form, message, "key");
    return ["option", "protocol", "room"].includes(code) && complain(this.#form, message);
  }
}

function choice(tag, checked) {
  const label = document.createElement("label");
  const box = Object.assign(document.createElement("input"), { type: "checkbox", name: "target", value: tag, checked });
  label.className = "chip";
  label.append(box, nameOf(tag));
  return label;
}
