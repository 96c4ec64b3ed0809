// The form for a session's languages and options.

import { COMMON, nameOf } from "../captions/languages.js";
import { complain, makeField } from "./fields.js";
import { Options } from "./options.js";
import { roomOf } from "./room.js";
import { Targets } from "./targets.js";

const USUAL = ["de", "zh", "ja"];
const KEY = {
  name: "key",
  label: "API key",
  help: "This server needs one. Ask its operator.",
  attributes: { type: "password", maxLength: 200, required: true, autocomplete: "current-password", spellcheck: false },
};
const NO_KEY = "Enter the API key that the operator of this server gave you.";

const ROOM_HELP = "A name, so that viewers' links stay the same from talk to talk.";
const ROOM = {
  name: "room",
  label: "Room",
  help: ROOM_HELP,
  attributes: { title: ROOM_HELP, maxLength: 63, autocapitalize: "none", spellcheck: false, placeholder: "such as hall-1" },
};

export class WantedForm {
  #form;
  #options;
  #targets;
  /** Why `read` returned null. */
  reason = "";

  /**
   * @param {HTMLFormElement} form
   * @param {object} offer what the server offers
   */
  constructor(form, offer) {
    this.#form = form;
    const targets = offer.target_languages.length ? offer.target_languages : COMMON;
    const sources = offer.source_languages.length ? offer.source_languages : COMMON;
    const byName = [...sources].sort((one, other) => nameOf(one).localeCompare(nameOf(other), "en"));
    form.source_language.append(...byName.map((tag) => new Option(nameOf(tag), tag)));
    form.source_language.value = sources.includes("en") ? "en" : sources[0];
    const chosen = USUAL.filter((tag) => targets.includes(tag)).slice(0, offer.most_targets);
    this.#targets = new Targets(form.querySelector(".targets"), form.querySelector("#find"), targets, chosen);
    form.source_language.addEventListener("change", () => this.#targets.exclude(form.source_language.value));
    this.#targets.exclude(form.source_language.value);
    const place = form.querySelector(".key");
    place.hidden = !offer.key;
    if (offer.key) place.append(makeField(KEY));
    form.querySelector(".room").append(makeField(ROOM));
    form.elements.room.value = new URLSearchParams(location.search).get("room") ?? "";
    form.elements.room.addEventListener("change", () => (form.elements.room.value = this.room));
    this.#options = new Options(form, form.querySelector("#options"), offer);
    const offerGlossary = () => this.#options.offer(form.source_language.value, this.#targets.chosen);
    for (const part of [form.source_language, form.querySelector(".targets")]) part.addEventListener("change", offerGlossary);
    offerGlossary();
  }

  /** The name of the room, empty if there is none. */
  get room() {
    return roomOf(this.#form.elements.room.value);
  }

  /**
   * The fields of the message `start`; null, with an error at the field, if they are invalid.
   *
   * @param {boolean} [quiet] leave the focus where it is; `reason` has the error
   */
  read(quiet = false) {
    const { source_language, key, room } = this.#form.elements;
    this.#targets.validate();
    key?.setCustomValidity(key.value.trim() ? "" : NO_KEY);
    this.#form.querySelector("#choices").open = true; // errors must be visible
    if (!(quiet ? this.#form.checkValidity() : this.#form.reportValidity())) {
      this.reason = [...this.#form.elements].find((each) => each.validationMessage)?.validationMessage ?? "";
      return null;
    }
    room.value = this.room;
    const options = this.#options.read(quiet);
    if (!options) this.reason = this.#options.reason;
    return options && { source_language: source_language.value, targets: this.#targets.chosen, room: room.value || undefined, ...options, key: key?.value.trim() };
  }

  /** Show the choices of a session. */
  show({ source_language, targets, key, room, ...options }) {
    this.#form.elements.source_language.value = source_language;
    this.#targets.exclude(source_language);
    if (this.#form.elements.key) this.#form.elements.key.value = key ?? "";
    this.#form.elements.room.value = room ?? "";
    this.#options.show(options);
    this.#targets.show(targets);
    this.#options.offer(source_language, targets);
    this.#form.querySelector("#chosen").textContent = `${nameOf(source_language)} to ${targets.map(nameOf).join(", ")}`;
  }

  /** Disable the form during a session. */
  lock(locked) {
    this.#form.querySelector("fieldset").disabled = locked;
    this.#form.querySelector("#choices").open = !locked;
    if (!locked) this.#form.querySelector("#chosen").textContent = "";
  }

  /**
   * Show the server's error at its field; false if it names none.
   *
   * @param {boolean} [quiet] leave the focus where it is
   */
  complain({ message, field }, quiet = false) {
    return complain(this.#form, message, field, quiet);
  }
}
