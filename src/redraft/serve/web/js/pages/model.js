// The model that translates, with a warning about the demo model.

/**
 * @param {HTMLElement} place
 * @param {object} offer of the server
 */
export function showModel(place, { model, demo }) {
  const name = Object.assign(document.createElement("strong"), { textContent: model });
  const rest = demo ? ", a small demo model that makes mistakes." : ".";
  place.replaceChildren("Translated by ", name, rest);
}
