// Styles the overlay and its preview.

/**
 * @param {HTMLElement} place of the captions
 * @param {object} options as of `optionsOf`
 */
export function style(place, { size, lines, colour, outline, background, align, unstable }) {
  const values = { size: `${size}px`, lines, colour, outline, background, align };
  for (const [name, value] of Object.entries(values)) place.style.setProperty(`--${name}`, value);
  Object.assign(place.dataset, { unstable, align });
  place.classList.toggle("boxed", background !== "transparent");
}
