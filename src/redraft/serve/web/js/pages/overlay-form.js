// The form that builds the address of an overlay, with a preview.

import { COMMON, mark, nameOf } from "../captions/languages.js";
import { makeField } from "../forms/fields.js";
import { OPTIONS, optionsOf, style } from "../forms/overlay-options.js";
import { ask, insist } from "../net/server.js";
import { copyButton } from "./link-buttons.js";
import { notice, problem } from "./status.js";

const at = (id) => document.getElementById(id);

/** Size in pixels of the canvas in the preview. */
const CANVAS = 1920;
/** Opacity of a new box: the last two hexadecimal digits of its colour. */
const BOX = "000000cc";
const ABSENT = "No such session is running. The overlay waits for it.";

/** Visible names of the choices. */
const WORDING = {
  start: "Left (right in Arabic, Hebrew …)",
  center: "Centred",
  end: "Right (left in Arabic, Hebrew …)",
  dim: "Dimmed",
  plain: "Like the others",
  hide: "Hidden",
  no: "No",
  yes: "Yes",
};
/** Language -> a final caption and a partial one with its unstable part; English for all other languages. */
const SAMPLES = {
  ar: ["كان يوم اثنين في مارس، وكان الجو باردًا جدًا.", "كل صباح كنت أستقل القطار", "إلى مكتبي"],
  de: ["Es war ein Montag im März, und es war sehr kalt.", "Jeden Morgen nahm ich den Zug", "in mein Büro"],
  en: ["It was a Monday in March, and it was very cold.", "Every morning I took the train", "to my office"],
  es: ["Era un lunes de marzo y hacía mucho frío.", "Todas las mañanas tomaba el tren", "a mi oficina"],
  fr: ["C'était un lundi de mars et il faisait très froid.", "Chaque matin, je prenais le train", "pour aller au bureau"],
  ja: ["三月の月曜日で、とても寒い日でした。", "毎朝、電車に乗って", "会社へ"],
  zh: ["那是三月的一个星期一，天气很冷。", "每天早上我坐火车", "去办公室"],
};

const form = at("overlay-options");
const given = new URLSearchParams(location.search);

const number = (name, label, help) => {
  const { least, most } = OPTIONS[name][0];
  return { name, label, help: `${help} From ${least} to ${most}.`, attributes: { type: "number", min: least, max: most, value: OPTIONS[name][1] ?? "" } };
};
const choice = (name, label, help) => ({ name, label, help, words: OPTIONS[name][0].words, initial: OPTIONS[name][1], wording: (word) => WORDING[word] });
const colour = (name, label, value) => ({ name, label, help: "", attributes: { type: "color", value } });

/** The session's languages; null if there is no session. */
async function targetsOf(kind, name) {
  const { body } = await ask(`v1/${kind}s/${encodeURIComponent(name)}`);
  const found = body?.targets.length ? body.targets : null;
  notice(found ? "" : ABSENT);
  return found;
}

async function build() {
  const kind = given.has("room") ? "room" : "session";
  const name = given.get(kind) ?? "";
  const { target_languages: known } = await insist("v1/offer", () => notice("Connecting to the server…"));
  notice("");
  const targets = name ? await targetsOf(kind, name) : null;
  const languages = {
    name: "language",
    label: "Language",
    help: "",
    words: targets ?? ["", ...(known.length ? known : COMMON)],
    initial: targets?.[0] ?? "",
    wording: (tag) => (tag ? nameOf(tag) : "First to arrive"),
  };
  const fields = [
    { name: kind, label: kind === "room" ? "Room" : "Session", help: "", attributes: { rows: 2, value: name, spellcheck: false } },
    languages,
    number("size", "Text size", "In pixels of the canvas."),
    number("lines", "Lines", "Number of lines shown."),
    choice("align", "Alignment", ""),
    colour("colour", "Text", OPTIONS.colour[1]),
    colour("outline", "Outline", OPTIONS.outline[1]),
    choice("unstable", "Unstable words", "Words that a second translation has not confirmed yet."),
    number("reading", "Whole lines", "Characters per line. A line appears once it is complete and never changes. If empty, words appear immediately."),
    number("clear", "Clear after", "Seconds of silence; 0 keeps the last caption."),
    { name: "box", label: "Box behind the text", help: "", words: ["no", "yes"], initial: "no", wording: (word) => WORDING[word] },
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
  for (const [name, [, initial]] of Object.entries(OPTIONS)) {
    const text = String(values[name] ?? "").trim();
    if (text && text !== String(initial)) found.set(name, text.replace(/^#/, ""));
  }
  return found.toString();
}

function show() {
  for (const name of ["background", "opacity"]) form.elements[name].closest(".field").hidden = form.elements.box.value === "no";
  const url = new URL(`overlay?${query()}`, location.href);
  try {
    const options = optionsOf(url.search);
    preview(options);
    problem("");
    at("address").textContent = url.href;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    problem(`${error.message}.`);
    at("address").textContent = "";
  }
}

/** Show a sample with these options. */
function preview(options) {
  style(at("sample"), { ...options, size: (options.size * at("preview").clientWidth) / CANVAS });
  const [base] = (options.language ?? "en").split("-");
  const language = SAMPLES[base] ? base : "en";
  const [caption, stable, unstable] = SAMPLES[language];
  const [first, second] = at("sample").querySelectorAll("p");
  for (const line of [first, second]) mark(line, language);
  first.textContent = caption;
  second.firstElementChild.textContent = stable;
  second.lastElementChild.textContent = unstable;
}

at("address-tools").append(copyButton(() => at("address").textContent, "overlay"));
await build();
document.querySelector("main").hidden = false; // all at once, so that nothing moves
const defaults = Object.fromEntries(Object.entries(OPTIONS).map(([name, [, initial]]) => [name, initial]));
preview(defaults);
show();
