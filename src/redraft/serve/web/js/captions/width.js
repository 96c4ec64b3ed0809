// Whether an address asks for reading mode, for which alone reading.js is needed.

/** The width of lines that an address asks for, 0 if it does not; `problem` gets the message about an invalid one. */
export function widthOf(search, problem) {
  const given = new URLSearchParams(search).get("reading");
  if (given === null) return 0;
  if (/^\d+$/.test(given) && given >= 16 && given <= 80) return Number(given);
  problem("reading must be a whole number from 16 to 80, the character cells of a line.");
  return 0;
}
