// The options of the overlay: parsed from its address, and applied to it or to its preview.

const number = (least, most) => ({
  least,
  most,
  allowed: `a number from ${least} to ${most}`,
  read: (text) => (/^\d{1,4}(\.\d{1,2})?$/.test(text) && Number(text) >= least && Number(text) <= most ? Number(text) : null),
});
const word = (...words) => ({ words, allowed: words.join(", "), read: (text) => (words.includes(text) ? text : null) });
const colour = {
  allowed: "3, 6 or 8 hexadecimal digits",
  read: (text) => (/^([0-9a-f]{3}|[0-9a-f]{6}|[0-9a-f]{8})$/i.test(text) ? `#${text}` : null),
};
const pattern = (form, allowed) => ({ allowed, read: (text) => (form.test(text) ? text : null) });
const LANGUAGES = /^[A-Za-z0-9 ()_-]{1,100}(,[A-Za-z0-9 ()_-]{1,100}){0,3}$/;

/** Name -> [kind, default]. */
export const OPTIONS = {
  session: [pattern(/^[0-9a-f]{32}$/, "the name of a session, 32 hexadecimal digits"), null],
  room: [pattern(/^[a-z0-9][a-z0-9_-]{0,62}$/, "the name of a room, 1 to 63 lower-case letters, digits, hyphens and underscores"), null],
  /** One below the other. */
  language: [{ allowed: "languages of the session, at most four, with commas between them", read: (text) => (LANGUAGES.test(text) ? text.split(",") : null) }, []],
  font: [pattern(/^[\p{L}\p{N} ,_-]{1,200}$/u, "names of fonts, with commas between them"), null],
  size: [number(8, 400), 48],
  lines: [number(1, 20), 2],
  colour: [colour, "#ffffff"],
  outline: [colour, "#000000"],
  background: [colour, "transparent"],
  align: [word("start", "center", "end"), "center"],
  unstable: [word("hide", "dim", "plain"), "hide"],
  clear: [number(0, 600), 8],
  reading: [number(16, 80), null],
};

/**
 * @param {string | URLSearchParams} query of the address
 * @throws {RangeError} names the option and its allowed values
 */
export function optionsOf(query) {
  const given = new URLSearchParams(query);
  for (const name of given.keys()) {
    if (!(name in OPTIONS)) throw new RangeError(`${name.slice(0, 40)} is not an option: there are ${Object.keys(OPTIONS).join(", ")}`);
  }
  const found = {};
  for (const [name, [kind, initial]] of Object.entries(OPTIONS)) {
    found[name] = given.has(name) ? kind.read(given.getAll(name).join(",")) : initial;
    if (given.has(name) && found[name] === null) throw new RangeError(`${name} must be ${kind.allowed}`);
  }
  if ((found.session === null) === (found.room === null)) throw new RangeError("room is missing, the name of the room whose captions are shown");
  return found;
}

/** Style captions; what is not chosen is left to the style sheets of the page, as `--size: 60px` at the element. */
export function style(place, { size, lines, colour, outline, background, align, unstable, font }) {
  for (const [name, value] of Object.entries({ size, lines, colour, outline, background, align, font })) {
    if (value !== OPTIONS[name][1]) place.style.setProperty(`--${name}`, name === "size" ? `${value}px` : value);
    else place.style.removeProperty(`--${name}`);
  }
  Object.assign(place.dataset, { unstable, align });
  place.classList.toggle("boxed", background !== "transparent");
}
