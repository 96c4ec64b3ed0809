// The form for a session's languages and options.

import { AUTO, COMMON, nameOf } from "../captions/languages.js";
import { complain, makeField } from "./fields.js";
import { Options } from "./options.js";
import { roomOf } from "./room.js";
import { LanguageBoxes } from "./targets.js";

const USUAL = ["de", "zh", "ja"];
const KEY = {
  name: "key",
  label: "API key",
  help: "This server needs one. Ask its operator.",
  attributes: { type: "password", maxLength: 200, required: true, autocomplete: "current-password", spellcheck: false },
};
const ANY = "Any language";
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
  /** The languages that are spoken besides the first one, and the target languages. */
  #also;
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
    if (sources.length > 1) form.source_language.append(new Option(ANY, AUTO));
    this.#also = new LanguageBoxes(form.querySelector("#also .chips"), form.querySelector("#also-find"), "also_spoken", sources);
    const chosen = USUAL.filter((tag) => targets.includes(tag)).slice(0, offer.most_targets);
    this.#targets = new LanguageBoxes(form.querySelector(".targets"), form.querySelector("#find"), "target", targets, chosen);
    const place = form.querySelector(".key");
    place.hidden = !offer.key;
    if (offer.key) place.append(makeField(KEY));
    form.querySelector(".room").append(makeField(ROOM));
    form.elements.room.value = new URLSearchParams(location.search).get("room") ?? "";
    form.elements.room.addEventListener("change", () => (form.elements.room.value = this.room));
    this.#options = new Options(form, form.querySelector("#options"), offer);
    for (const part of [form.source_language, ...form.querySelectorAll(".chips")]) part.addEventListener("change", () => this.#adapt());
    this.#adapt();
  }

  /** The language that is spoken; empty if several are. */
  get language() {
    const { value } = this.#form.elements.source_language;
    return value === AUTO || this.#also.chosen.length ? "" : value;
  }

  /** Offer what goes with the languages that are spoken: one alone is not translated into itself. */
  #adapt() {
    const { value } = this.#form.elements.source_language;
    this.#form.querySelector("#also").hidden = value === AUTO || this.#form.source_language.length < 2;
    if (value === AUTO) this.#also.show([]);
    this.#also.exclude(value);
    this.#form.querySelector("#also span").textContent = this.#also.chosen.map(nameOf).join(", ");
    this.#targets.exclude(...(this.language ? [value] : []));
    this.#options.offer(value, this.#targets.chosen);
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
    const languages = { source_language: source_language.value, also_spoken: this.#also.chosen, targets: this.#targets.chosen };
    try {
      return { ...languages, room: room.value || undefined, ...this.#options.read(), key: key?.value.trim() };
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.reason = error.message;
      this.complain({ message: this.reason, field: "glossary" }, quiet);
      return null;
    }
  }

  /** Show the choices of a session. */
  show({ source_language, also_spoken = [], targets, key, room, ...options }) {
    this.#form.elements.source_language.value = source_language;
    this.#also.show(also_spoken);
    this.#targets.show(targets);
    if (this.#form.elements.key) this.#form.elements.key.value = key ?? "";
    this.#form.elements.room.value = room ?? "";
    this.#options.show(options);
    this.#adapt();
    const spoken = source_language === AUTO ? ANY : [source_language, ...also_spoken].map(nameOf).join(", ");
    this.#form.querySelector("#chosen").textContent = `${spoken} to ${targets.map(nameOf).join(", ")}`;
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
