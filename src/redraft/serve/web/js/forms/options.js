// The options of a session besides its languages.  The server checks their ranges; its error is shown at the field.

import { at, element } from "../captions/elements.js";
import { makeField, valueOf } from "./fields.js";

const NUMBER = { inputMode: "decimal", maxLength: 20, spellcheck: false };

/** A field for a boolean of the protocol. */
const makeSwitch = (name, label, help, initial) => ({ name, label, help, words: ["yes", "no"], initial: initial ? "yes" : "no" });
const switchesOf = (offer) => [
  makeSwitch("take_over", "Take over", "Replaces the session that is running in the room.", false),
  ...(offer.recogniser ? [makeSwitch("sentences", "Whole sentences", "Cuts what the server recognises into sentences, whatever the pauses.", offer.sentences)] : []),
];

/**
 * @param {HTMLFormElement} form of the fields
 * @param {HTMLElement} place where they go
 * @param {object} offer what the server offers
 */
export function makeOptions(form, place, offer) {
  const box = element("div", { className: "method" });
  const fields = switchesOf(offer);
  const switches = fields.map(({ name }) => name);
  place.append(...[...fields, { name: "method", label: "Method", help: "", words: offer.methods }].map(makeField), box);
  const { method } = form.elements;
  const about = () => offer.about[method.value];
  const showMethod = () => {
    at("method-help").textContent = `${about().summary}.`;
    const [first, ...more] = about().options.map(fieldOf).map(makeField);
    const open = Boolean(box.querySelector("details[open]"));
    const title = element("summary", { textContent: `More of ${method.value}` });
    box.replaceChildren(first, element("details", { open }, title, ...more));
  };
  method.addEventListener("change", showMethod);
  showMethod();
  return {
    /** Their fields of the message `start`, without empty ones. */
    read() {
      const value = (name) => valueOf(form.elements.namedItem(name));
      const options = about().options.map(({ name }) => [name, value(name)]).filter(([, found]) => found !== undefined);
      const chosen = switches.map((name) => [name, value(name) === "yes"]);
      return { method: method.value, ...Object.fromEntries(chosen), options: Object.fromEntries(options) };
    },
    /** Show the options of a session. */
    show({ method: name, options = {}, ...rest }) {
      method.value = name;
      showMethod();
      const known = { take_over: false, ...rest, ...options };
      for (const name of switches) if (known[name] !== undefined) known[name] = known[name] ? "yes" : "no";
      for (const control of form.querySelectorAll("#options [name]:not([name^=glossary])")) {
        if (control.name !== "method" && control.tagName !== "SELECT") control.value = known[control.name] ?? "";
        else if (known[control.name] !== undefined) control.value = known[control.name];
      }
    },
  };
}

/** The field for an option of a method, as the server describes it. */
function fieldOf({ name, help, allowed, default: initial, words }) {
  const description = words.length ? help : `${help}: ${allowed}`;
  return { name, label: name, help: `${description}.`, initial, words: words.length ? words : undefined, attributes: words.length ? {} : NUMBER };
}
