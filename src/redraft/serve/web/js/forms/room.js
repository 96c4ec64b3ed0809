// What a page is about: the room or the session in its address, or one that its form asks for.

const SESSION = /^[0-9a-f]{32}$/;

/** The name of a room as the server allows it: "Hall 1" is hall-1.  A name without such letters stays, to be refused. */
export function roomOf(text) {
  const plain = text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  return plain.replace(/[^a-z0-9_]+/g, "-").replace(/^[-_]+|-+$/g, "") || text.trim();
}

/** What a text names, as part of a query: a session by its 32 hexadecimal digits, or else a room. */
export const named = (text) => (SESSION.test(text.trim()) ? ["session", text.trim()] : ["room", roomOf(text)]);

/**
 * The `session` and the `room` of the page's address; where it has neither, a form asks, and opens the page again.
 *
 * @param {HTMLElement} place has the form, with one field, `name`
 */
export function ofAddress(place) {
  const form = place.querySelector("form");
  const given = new URLSearchParams(location.search);
  const of = { session: given.get("session"), room: given.get("room") };
  place.hidden = Boolean(of.session || of.room);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const address = new URL(location.href);
    address.searchParams.set(...named(form.elements.namedItem("name").value));
    location.assign(address);
  });
  return of;
}
