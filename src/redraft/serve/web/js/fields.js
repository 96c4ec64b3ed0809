// Labelled fields with a word of help, and room for what the server finds wrong with them.

/**
 * @param {object} about the field
 * @param {string} about.name what the protocol calls it
 * @param {string} about.label what people call it
 * @param {string} about.help what it is, and what is allowed
 * @param {string | number} [about.usual] what counts if it is left empty
 * @param {string[]} [about.words] the choices, where there are some
 * @param {(word: string) => string} [about.wording] what people call a choice
 * @param {object} [about.attributes] of the control; with `rows` it takes several lines
 */
export function makeField({ name, label, help, usual, words, wording = (word) => word, attributes = {} }) {
  const place = element("div", { className: attributes.rows ? "field tall" : "field" });
  const control = words ? element("select") : element(attributes.rows ? "textarea" : "input", { autocomplete: "off" });
  if (words) control.append(...words.map((word) => new Option(wording(word), word, word === usual, word === usual)));
  else if (usual !== undefined) control.placeholder = usual;
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

/** What a field holds: a number where it is one, the text as it stands where it is none, undefined if empty or absent. */
export function valueOf(control) {
  const text = control?.value.trim() ?? "";
  if (text === "") return undefined;
  return control.tagName === "SELECT" || Number.isNaN(Number(text)) ? text : Number(text);
}

/** Show a sentence at a field, or at the one that its first words name; false if there is no such field. */
export function complain(form, sentence, name) {
  const words = name ? [name] : sentence.split(/\W+/).slice(0, 4);
  const control = words.map((word) => form.elements.namedItem(word)).find((found) => found instanceof Element && wrongOf(found));
  if (!control) return false;
  wrongOf(control).textContent = sentence;
  wrongOf(control).hidden = false;
  control.setAttribute("aria-invalid", "true");
  for (let part = control.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
  control.focus();
  return true;
}

function clear(control) {
  control.removeAttribute("aria-invalid");
  wrongOf(control).hidden = true;
}

const wrongOf = (control) => document.getElementById(`${control.name}-wrong`);
const element = (tag, properties = {}) => Object.assign(document.createElement(tag), properties);
