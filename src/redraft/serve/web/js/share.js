// Links for others: for viewers, for streaming programs, and to the transcript.

import { copyButton } from "./copy.js";
import { qrButton } from "./qr.js";

const FORMS = { txt: "Text", srt: "SRT", vtt: "VTT", jsonl: "JSONL" };

/**
 * Fill the lists with the links of a session.
 *
 * @param {HTMLElement} place has a list for each kind of link
 * @param {string} name the session's public name
 */
export function showLinks(place, name) {
  const session = encodeURIComponent(name);
  const forms = Object.entries(FORMS).map(([form, text]) =>
    item(link(`/v1/sessions/${session}/transcript?format=${form}`, text, { download: `transcript.${form}` })),
  );
  place.querySelector("#links").replaceChildren(
    shared(`/watch?session=${session}`, "Viewers' page"),
    item(link(`/overlay-form?session=${session}`, "Overlay for OBS", { target: "_blank", rel: "noopener" })),
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
