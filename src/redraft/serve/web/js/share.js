// Links for others: to watch, for streaming programs, and to the transcript.

import { nameOf } from "./languages.js";

const FORMS = ["txt", "srt", "vtt", "jsonl"];

/** Fill the list with the links of a session. */
export function showLinks(list, name, targets) {
  const session = encodeURIComponent(name);
  const overlays = targets.map((tag) => [`/overlay?session=${session}&target=${encodeURIComponent(tag)}`, `Overlay, ${nameOf(tag)}`]);
  const rows = [[`/watch?session=${session}`, "Watch, read-only"], ...overlays].map(([path, text]) => {
    const url = new URL(path, location.href).href;
    return item(link(url, text, { target: "_blank", rel: "noopener" }), copyButton(url, text));
  });
  const transcripts = FORMS.map((form) =>
    link(`/v1/sessions/${session}/transcript?format=${form}`, form.toUpperCase(), { download: `transcript.${form}` }),
  );
  list.replaceChildren(...rows, item("Transcript: ", ...transcripts));
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
