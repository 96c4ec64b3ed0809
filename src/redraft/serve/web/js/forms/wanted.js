// The form for a session's languages and options.

import { AUTO, COMMON, nameOf } from "../captions/languages.js";
import { complain, makeField } from "./fields.js";
import { makeGlossary } from "./glossary.js";
import { makeOptions } from "./options.js";
import { roomOf } from "./room.js";
import { byName, makeBoxes } from "./targets.js";

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

/**
 * @param {HTMLFormElement} form
 * @param {object} offer what the server offers
 */
export function makeWanted(form, offer) {
  const { source_language: spoken } = form.elements;
  const within = (selector) => form.querySelector(selector);
  const targets = offer.target_languages.length ? offer.target_languages : COMMON;
  const sources = offer.source_languages.length ? offer.source_languages : COMMON;
  spoken.append(...byName(sources).map((tag) => new Option(nameOf(tag), tag)));
  spoken.value = sources.includes("en") ? "en" : sources[0];
  if (sources.length > 1) spoken.append(new Option(ANY, AUTO));
  /** The languages that are spoken besides the first one, and the target languages. */
  const also = makeBoxes(within("#also .chips"), within("#also-find"), "also_spoken", sources);
  const usual = USUAL.filter((tag) => targets.includes(tag)).slice(0, offer.most_targets);
  const into = makeBoxes(within(".targets"), within("#find"), "target", targets, usual);
  within(".key").hidden = !offer.key;
  if (offer.key) within(".key").append(makeField(KEY));
  within(".room").append(makeField(ROOM));
  const { key, room } = form.elements;
  const roomName = () => roomOf(room.value);
  room.value = new URLSearchParams(location.search).get("room") ?? "";
  room.addEventListener("change", () => (room.value = roomName()));
  const glossary = makeGlossary(within("#options"), offer.most_glossary);
  const options = makeOptions(form, within("#options"), offer);
  let reason = "";

  const language = () => (spoken.value === AUTO || also.chosen().length ? "" : spoken.value);

  /** Offer what goes with the languages that are spoken: one alone is not translated into itself. */
  const adapt = () => {
    within("#also").hidden = spoken.value === AUTO || spoken.length < 2;
    if (spoken.value === AUTO) also.show([]);
    also.exclude(spoken.value);
    within("#also span").textContent = also.chosen().map(nameOf).join(", ");
    into.exclude(...(language() ? [spoken.value] : []));
    glossary.offer(spoken.value, into.chosen());
  };
  for (const part of [spoken, ...form.querySelectorAll(".chips")]) part.addEventListener("change", adapt);
  adapt();

  return {
    /** The language that is spoken; empty if several are. */
    language,
    /** The name of the room, empty if there is none. */
    room: roomName,
    /** Why `read` returned null. */
    get reason() {
      return reason;
    },
    /**
     * The fields of the message `start`; null, with an error at the field, if they are invalid.
     *
     * @param {boolean} [quiet] leave the focus where it is; `reason` has the error
     */
    read(quiet = false) {
      into.validate();
      key?.setCustomValidity(key.value.trim() ? "" : NO_KEY);
      within("#choices").open = true; // errors must be visible
      if (!(quiet ? form.checkValidity() : form.reportValidity())) {
        reason = [...form.elements].find((each) => each.validationMessage)?.validationMessage ?? "";
        return null;
      }
      room.value = roomName();
      const languages = { source_language: spoken.value, also_spoken: also.chosen(), targets: into.chosen() };
      try {
        return { ...languages, room: room.value || undefined, ...options.read(), glossary: glossary.read(), key: key?.value.trim() };
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
        reason = error.message;
        complain(form, reason, "glossary", quiet);
        return null;
      }
    },
    /** Show the choices of a session. */
    show({ source_language, also_spoken = [], targets, key: given, room: name, ...rest }) {
      spoken.value = source_language;
      also.show(also_spoken);
      into.show(targets);
      if (key) key.value = given ?? "";
      room.value = name ?? "";
      options.show(rest);
      adapt();
      const first = source_language === AUTO ? ANY : [source_language, ...also_spoken].map(nameOf).join(", ");
      within("#chosen").textContent = `${first} to ${targets.map(nameOf).join(", ")}`;
    },
    /** Disable the form during a session. */
    lock(locked) {
      within("fieldset").disabled = locked;
      within("#choices").open = !locked;
      if (!locked) within("#chosen").textContent = "";
    },
    /**
     * Show the server's error at its field; false if it names none.
     *
     * @param {boolean} [quiet] leave the focus where it is
     */
    complain: ({ message, field }, quiet = false) => complain(form, message, field, quiet),
  };
}
