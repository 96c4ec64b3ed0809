// Links for viewers, for streaming programs, and to the transcript.

import { element } from "../captions/elements.js";
import { nameOf, withSpoken } from "../captions/languages.js";
import { copyButton, qrButton } from "./link-buttons.js";

/** Attributes of links that open a page of their own. */
const NEW = { target: "_blank", rel: "noopener" };

/**
 * Fill the lists with the links of a session or a room; before the session has a name, some have titles only.
 *
 * @param {HTMLElement} place has a list for each kind of link
 * @param {object} about
 * @param {string} [about.session] the session's public name
 * @param {string} [about.room] name of its room, whose links stay the same from session to session
 * @param {string[]} about.targets its target languages
 * @param {string} [about.source_language] the language that is spoken
 * @param {Object<string, string>} forms of transcripts, with names for people
 */
export function showLinks(place, { session: name, room, targets, source_language: spoken }, forms) {
  const of = room ? `room=${room}` : name && `session=${name}`;
  const languages = withSpoken(spoken, targets);
  const session = name && encodeURIComponent(name);
  const transcript = (form, tags) => `v1/sessions/${session}/transcript?format=${form}${tags.map((tag) => `&language=${encodeURIComponent(tag)}`).join("")}`;
  const files = (name, tags) =>
    item(
      element("span", { textContent: name }),
      ...Object.entries(forms).map(([form, label]) => link(session && transcript(form, tags), label, { download: "", ariaLabel: `${name}: ${label}` })),
    );
  place.querySelector("#links").replaceChildren(
    shared(of && (room ? `watch/${room}` : `watch?${of}`), "Viewers' page", qrButton),
    shared(of && `overlay?${of}`, "Overlay for OBS", () => link(of && `overlay-form?${of}`, "Design", NEW)),
    ...(room && !location.pathname.endsWith("/rooms") ? [item(link(`rooms/${room}`, "Page of this room", NEW))] : []),
  );
  place.querySelector("h3").hidden = !languages.length;
  place.querySelector("#transcripts").replaceChildren(
    ...languages.map((tag) => files(nameOf(tag), [tag])),
    ...(languages.length ? [files("All together", languages)] : []),
  );
}

/** Seconds for which the server keeps transcripts. */
export function keptSentence(seconds) {
  if (!seconds) return "The server does not keep the transcript after the session ends.";
  const [count, unit] = [[3600, "hour"], [60, "minute"], [1, "second"]].map(([size, unit]) => [seconds / size, unit]).find(([count]) => count >= 1);
  const time = new Intl.NumberFormat("en", { style: "unit", unit, unitDisplay: "long", maximumFractionDigits: 1 }).format(count);
  return `The server keeps the transcript for ${time} after the session ends.`;
}

/** A link with something between it and a button that copies it. */
function shared(path, text, between) {
  const url = path && new URL(path, location.href).href;
  const buttons = [between(() => url), copyButton(() => url, text)];
  for (const button of buttons) button.disabled = !url;
  return item(link(url, text, NEW), ...buttons);
}

export const item = (...parts) => element("li", {}, ...parts);
export const link = (href, text, attributes) => element("a", { ...(href && { href }), textContent: text, ...attributes });
