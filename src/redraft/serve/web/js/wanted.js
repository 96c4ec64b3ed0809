// The form with what a session begins with: languages, method, how much is held back.

import { COMMON, nameOf } from "./languages.js";

const USUAL = ["de", "zh", "ja"];

const option = (value, text) => new Option(text, value);

export class WantedForm {
  #form;

  /**
   * @param {HTMLFormElement} form
   * @param {object} offer what the server offers
   */
  constructor(form, offer) {
    this.#form = form;
    const targets = offer.target_languages.length ? offer.target_languages : COMMON;
    const sources = offer.source_languages.length ? offer.source_languages : COMMON;
    form.source.append(...sources.map((tag) => option(tag, nameOf(tag))));
    form.source.value = sources.includes("en") ? "en" : sources[0];
    form.method.append(...offer.methods.map((name) => option(name, name)));
    form.key.closest("label").hidden = !offer.key;
    const chosen = USUAL.filter((tag) => targets.includes(tag)).slice(0, offer.most_targets);
    form.querySelector(".targets").append(...targets.map((tag) => choice(tag, chosen.includes(tag))));
  }

  /** The fields of the message `start`; null, with a word to the user, where they do not do. */
  read() {
    const { source, method, mask, key } = this.#form;
    const targets = [...this.#form.querySelectorAll("[name=target]:checked")].map((box) => box.value);
    const first = this.#form.querySelector("[name=target]");
    first.setCustomValidity(targets.length ? "" : "Choose at least one language.");
    this.#form.querySelector("details").open = true; // what is closed cannot be complained about
    if (!this.#form.reportValidity()) return null;
    return { source: source.value, targets, method: method.value, mask_k: Number(mask.value), key: key.value || undefined };
  }

  /** Show what a session began with. */
  show({ source, targets, method, mask_k }) {
    Object.assign(this.#form.source, { value: source });
    Object.assign(this.#form.method, { value: method });
    Object.assign(this.#form.mask, { value: mask_k });
    for (const box of this.#form.querySelectorAll("[name=target]")) box.checked = targets.includes(box.value);
    this.#form.querySelector("#chosen").textContent = `${source} → ${targets.join(", ")}`;
  }

  /** While a session lasts, nothing of it can be changed. */
  lock(locked) {
    this.#form.querySelector("fieldset").disabled = locked;
    this.#form.querySelector("details").open = !locked;
    if (!locked) this.#form.querySelector("#chosen").textContent = "";
  }
}

function choice(tag, checked) {
  const label = document.createElement("label");
  const box = Object.assign(document.createElement("input"), { type: "checkbox", name: "target", value: tag, checked });
  label.className = "chip";
  label.append(box, nameOf(tag));
  return label;
}
