// Finds and makes elements.

export const at = (id) => document.getElementById(id);

/** An element with these properties and parts. */
export function element(tag, properties = {}, ...parts) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...parts);
  return made;
}

/** A button that calls `clicked`. */
export function button(text, clicked, properties = {}) {
  const made = element("button", { type: "button", textContent: text, ...properties });
  made.addEventListener("click", clicked);
  return made;
}

/** Write a text, but not an equal one again: screen readers would announce it. */
export function write(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

export const isPressed = (button) => button.getAttribute("aria-pressed") === "true";
export const press = (button, pressed) => button.setAttribute("aria-pressed", String(pressed));
