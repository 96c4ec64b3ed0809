// The form that builds the address of an overlay, with a preview.

import { ask } from "./ask.js";
import { copyButton } from "./copy.js";
import { makeField } from "./fields.js";
import { OPTIONS, optionsOf } from "./overlay-options.js";
import { style } from "./overlay-style.js";
import { notice, problem } from "./problem.js";

const at = (id) => document.getElementById(id);

/** Pixels of the canvas that the preview stands for. */
const CANVAS = 1920;
/** Opacity of a new box, as the last two hexadecimal digits of its colour. */
const BOX = "000000cc";
const ABSENT = "No such session is running. The overlay waits for it.";

const form = at("overlay-options");
const given = new URLSearchParams(location.search);

const number = (name, label, help) => {
  const { least, most } = OPTIONS[name][0];
  return { name, label, help: `${help} From ${least} to ${most}.`, attributes: { type: "number", min: least, max: most, value: OPTIONS[name][1] ?? "" } };
};
const choice = (name, label, help) => ({ name, label, help, words: OPTIONS[name][0].words, usual: OPTIONS[name][1] });
const colour = (name, label, value) => ({ name, label, help: "", attributes: { type: "color", value } });

/** Which languages there are; null where the session is not there, or none has begun in the room. */
async function targetsOf(kind, name) {
  const { body } = await ask(`/v1/${kind}s/${encodeURIComponent(name)}`);
  const found = body?.targets.length ? body.targets : null;
  notice(found ? "" : ABSENT);
  return found;
}

async function build() {
  const kind = given.has("room") ? "room" : "session";
  const name = given.get(kind) ?? "";
  const targets = name ? await targetsOf(kind, name) : null;
  const languages = targets
    ? { name: "language", label: "Language", help: "", words: targets, usual: targets[0] }
    : { name: "language", label: "Language", help: "A tag such as de. If empty, the first one with captions." };
  const fields = [
    { name: kind, label: kind === "room" ? "Room" : "Session", help: "", attributes: { rows: 2, value: name, spellcheck: false } },
    languages,
    number("size", "Text size", "In pixels of the canvas."),
    number("lines", "Lines", "How many are shown."),
    choice("align", "Alignment", ""),
    colour("colour", "Text", OPTIONS.colour[1]),
    colour("outline", "Outline", OPTIONS.outline[1]),
    choice("unstable", "Unstable words", "Words that may still change."),
    number("reading", "Whole lines", "Characters per line. A line appears once it is complete and never changes. If empty, words appear immediately."),
    number("clear", "Clear after", "Seconds of silence; 0 keeps the last caption."),
    { name: "box", label: "Box behind the text", help: "", words: ["no", "yes"], usual: "no" },
    colour("background", "Box", `#${BOX.slice(0, 6)}`),
    { name: "opacity", label: "Opacity of the box", help: "", attributes: { type: "range", min: 0, max: 255, value: parseInt(BOX.slice(6), 16) } },
  ];
  form.replaceChildren(...fields.map(makeField));
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  new ResizeObserver(show).observe(at("preview"));
}

/** The options that differ from their defaults, as a query. */
function query() {
  const values = Object.fromEntries(new FormData(form));
  const opacity = Number(values.opacity).toString(16).padStart(2, "0");
  values.background = values.box === "yes" ? values.background + opacity : OPTIONS.background[1];
  const found = new URLSearchParams();
  for (const [name, [, usual]] of Object.entries(OPTIONS)) {
    const text = String(values[name] ?? "").trim();
    if (text && text !== String(usual)) found.set(name, text.replace(/^#/, ""));
  }
  return found.toString();
}

function show() {
  for (const name of ["background", "opacity"]) form.elements[name].closest(".field").hidden = form.elements.box.value === "no";
  const url = new URL(`/overlay?${query()}`, location.href);
  try {
    const options = optionsOf(url.search);
    style(at("sample"), { ...options, size: (options.size * at("preview").clientWidth) / CANVAS });
    problem("");
    at("address").textContent = url.href;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    problem(`${error.message}.`);
    at("address").textContent = "";
  }
}

at("address-tools").append(copyButton(() => at("address").textContent, "overlay"));
await build();
show();
