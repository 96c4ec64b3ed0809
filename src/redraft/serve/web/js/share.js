// Links for others: for viewers, for streaming programs, and to the transcript.

import { copyButton } from "./copy.js";
import { qrButton } from "./qr.js";

const FORMS = { txt: "Text", srt: "SRT", vtt: "VTT", jsonl: "JSONL" };

/**
 * Fill the lists with the links of a session.
 *
 * @param {HTMLElement} place has a list for each kind of link
 * @param {object} started
 * @param {string} started.session the session's public name
 * @param {string} [started.room] name of its room, whose links stay the same from session to session
 */
export function showLinks(place, { session: name, room }) {
  const session = encodeURIComponent(name);
  const forms = Object.entries(FORMS).map(([form, text]) =>
    item(link(`/v1/sessions/${session}/transcript?format=${form}`, text, { download: `transcript.${form}` })),
  );
  place.querySelector("#links").replaceChildren(
    shared(room ? `/watch/${room}` : `/watch?session=${session}`, "Viewers' page"),
    item(link(`/overlay-form?${room ? `room=${room}` : `session=${session}`}`, "Overlay for OBS", { target: "_blank", rel: "noopener" })),
  );
  place.querySelector("#transcripts").replaceChildren(...forms);
}

/** A link to be passed on. */
function shared(path, text) {
  const url = new URL(path, location.href).href;
  return item(link(url, text, { target: "_blank", rel: "noopener" }), qrButton(() => url), copyButton(() => url, text));
}

function item(...parts) {
  const made = document.createElement("li");
  made.append(...parts);
  return made;
}

function link(href, text, attributes) {
  return Object.assign(document.createElement("a"), { href, textContent: text, ...attributes });
}
