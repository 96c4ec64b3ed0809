// Links for others: for viewers, for streaming programs, and to the transcript.

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
    shared(`/watch?session=${session}`, "Captions for viewers"),
    item(link(`/overlay?session=${session}`, "Overlay for OBS", { target: "_blank", rel: "noopener" })),
  );
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
