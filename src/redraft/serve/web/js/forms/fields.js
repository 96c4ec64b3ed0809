// Labelled form fields with help and error messages.

import { at, element } from "../captions/elements.js";

/**
 * @param {object} about the field
 * @param {string} about.name name in the protocol
 * @param {string} about.label visible name
 * @param {string} about.help description and allowed values
 * @param {string | number} [about.initial] default value
 * @param {string[]} [about.words] choices
 * @param {(word: string) => string} [about.wording] visible name of a choice
 * @param {object} [about.attributes] of the control; `rows` makes it a text area
 */
export function makeField({ name, label, help, initial, words, wording = (word) => word, attributes = {} }) {
  const place = element("div", { className: attributes.rows ? "field tall" : "field" });
  const control = words ? element("select") : element(attributes.rows ? "textarea" : "input", { autocomplete: "off" });
  if (words) control.append(...words.map((word) => new Option(wording(word), word, word === initial, word === initial)));
  else if (initial !== undefined) control.placeholder = initial;
  Object.assign(control, { name, id: `field-${name}`, ...attributes });
  control.setAttribute("aria-describedby", `${name}-help ${name}-wrong`);
  control.addEventListener("input", () => clear(control));
  place.append(
    element("label", { htmlFor: control.id, textContent: label }),
    control,
    element("p", { id: `${name}-help`, className: "help", textContent: help }),
    element("p", { id: `${name}-wrong`, className: "wrong", hidden: true }),
  );
  return place;
}

/** The value of a field, as a number if it is one; undefined if empty or absent. */
export function valueOf(control) {
  const text = control?.value.trim() ?? "";
  if (text === "") return undefined;
  return control.tagName === "SELECT" || Number.isNaN(Number(text)) ? text : Number(text);
}

/**
 * Show an error at its field; false if the form does not have it.
 *
 * @param {string} [field] name in the protocol, with dots before the names in it, such as `options.beta`
 * @param {boolean} [quiet] leave the focus where it is
 */
export function complain(form, sentence, field = "", quiet = false) {
  const control = field.split(".").map((name) => form.elements.namedItem(name)).find((found) => found instanceof Element && wrongOf(found));
  if (!control) return false;
  wrongOf(control).textContent = sentence;
  wrongOf(control).hidden = false;
  control.setAttribute("aria-invalid", "true");
  for (let part = control.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
  if (!quiet) control.focus();
  return true;
}

function clear(control) {
  control.removeAttribute("aria-invalid");
  wrongOf(control).hidden = true;
}

const wrongOf = (control) => at(`${control.name}-wrong`);
