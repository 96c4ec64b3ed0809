// Links for viewers, for streaming programs, and to the transcript.

import { nameOf } from "../captions/languages.js";
import { copyButton, qrButton } from "./link-buttons.js";

/** Formats for people, and for programs. */
const FORMS = { txt: "Text", srt: "SRT", vtt: "VTT" };
const MORE = { jsonl: "JSONL" };

/**
 * Fill the lists with the links of a session; before it has a name, with their titles only.
 *
 * @param {HTMLElement} place has a list for each kind of link
 * @param {object} about
 * @param {string} [about.session] the session's public name
 * @param {string} [about.room] name of its room, whose links stay the same from session to session
 * @param {string[]} about.targets its languages
 */
export function showLinks(place, { session: name, room, targets }) {
  const session = name && encodeURIComponent(name);
  const transcript = (form, language = "") => session && `v1/sessions/${session}/transcript?format=${form}${language}${form === "txt" ? "&original=true" : ""}`;
  const of = (text, forms, language) =>
    item(
      Object.assign(document.createElement("span"), { textContent: text }),
      ...Object.entries(forms).map(([form, label]) => link(transcript(form, language), label, { download: "", ariaLabel: `${text}: ${label}` })),
    );
  place.querySelector("#links").replaceChildren(
    shared(session && (room ? `watch/${room}` : `watch?session=${session}`), "Viewers' page"),
    item(link(session && `overlay-form?${room ? `room=${room}` : `session=${session}`}`, "Overlay for OBS", { target: "_blank", rel: "noopener" })),
  );
  place.querySelector("#transcripts").replaceChildren(
    ...targets.map((tag) => of(nameOf(tag), FORMS, `&language=${encodeURIComponent(tag)}`)),
    of("All together", { ...FORMS, ...MORE }),
  );
}

/** Seconds for which the server keeps transcripts. */
export function keptSentence(seconds) {
  if (!seconds) return "The server does not keep the transcript after the session ends.";
  const [count, unit] = [[3600, "hour"], [60, "minute"], [1, "second"]].map(([size, unit]) => [seconds / size, unit]).find(([count]) => count >= 1);
  const time = new Intl.NumberFormat("en", { style: "unit", unit, unitDisplay: "long", maximumFractionDigits: 1 }).format(count);
  return `The server keeps the transcript for ${time} after the session ends.`;
}

/** A link with a button that copies it. */
function shared(path, text) {
  const url = path && new URL(path, location.href).href;
  const buttons = [qrButton(() => url), copyButton(() => url, text)];
  for (const button of buttons) button.disabled = !url;
  return item(link(url, text, { target: "_blank", rel: "noopener" }), ...buttons);
}

function item(...parts) {
  const made = document.createElement("li");
  made.append(...parts);
  return made;
}

function link(href, text, attributes) {
  return Object.assign(document.createElement("a"), { ...(href && { href }), textContent: text, ...attributes });
}
