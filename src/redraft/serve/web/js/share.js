// Links for others: to watch, for streaming programs, and to the transcript.

import { nameOf } from "./languages.js";

const FORMS = { txt: "Text", srt: "SRT", vtt: "VTT", jsonl: "JSONL" };

/**
 * Fill the lists with the links of a session.
 *
 * @param {HTMLElement} place has a list for each kind of link
 * @param {string} name the session's public name
 * @param {string[]} targets its languages
 */
export function showLinks(place, name, targets) {
  const session = encodeURIComponent(name);
  const overlays = targets.map((tag) =>
    shared(`/overlay?session=${session}&target=${encodeURIComponent(tag)}`, `Overlay, ${nameOf(tag)}`),
  );
  const forms = Object.entries(FORMS).map(([form, text]) =>
    item(link(`/v1/sessions/${session}/transcript?format=${form}`, text, { download: `transcript.${form}` })),
  );
  place.querySelector("#links").replaceChildren(shared(`/watch?session=${session}`, "Watch, read-only"));
  place.querySelector("#overlays").replaceChildren(...overlays);
  place.querySelector("#transcripts").replaceChildren(...forms);
}

/** A link to be passed on. */
function shared(path, text) {
  const url = new URL(path, location.href).href;
  return item(link(url, text, { target: "_blank", rel: "noopener" }), copyButton(url, text));
}

function item(...parts) {
  const made = document.createElement("li");
  made.append(...parts);
  return made;
}

function link(href, text, attributes) {
  return Object.assign(document.createElement("a"), { href, textContent: text, ...attributes });
}

function copyButton(url, text) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Copy" });
  button.setAttribute("aria-label", `Copy the link: ${text}`);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(url);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed";
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  return button;
}
