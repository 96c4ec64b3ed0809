// The form that builds the address of an overlay, with a preview.

import { at } from "../captions/elements.js";
import { COMMON, mark, nameOf } from "../captions/languages.js";
import { makeField } from "../forms/fields.js";
import { OPTIONS, optionsOf, style } from "../forms/overlay-options.js";
import { ofAddress } from "../forms/room.js";
import { ask, insist } from "../net/server.js";
import { copyButton } from "./link-buttons.js";
import { notice, problem } from "./status.js";


/** Size in pixels of the canvas in the preview. */
const CANVAS = 1920;
/** Opacity of a new box: the last two hexadecimal digits of its colour. */
const BOX = "000000cc";

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
const of = ofAddress(at("which"));
const kind = of.room ? "room" : "session";

const number = (name, label, help) => {
  const { least, most } = OPTIONS[name][0];
  return { name, label, help: `${help} From ${least} to ${most}.`, attributes: { type: "number", min: least, max: most, value: OPTIONS[name][1] ?? "" } };
};
const choice = (name, label, help) => ({ name, label, help, words: OPTIONS[name][0].words, initial: OPTIONS[name][1], wording: (word) => WORDING[word] });
const colour = (name, label, value) => ({ name, label, help: "", attributes: { type: "color", value } });

async function build() {
  const { target_languages: known } = await insist("v1/offer", () => notice("Connecting to the server…"));
  notice("");
  const { body } = await ask(`v1/${kind}s/${encodeURIComponent(of[kind])}`);
  const targets = body?.targets.length ? body.targets : null; // before the talk, it may have any
  const words = targets ? [...new Set([...targets, body.source_language])] : known.length ? known : COMMON;
  const language = { name: "language", label: "Language", help: "", words: targets ? words : ["", ...words], initial: targets?.[0] ?? "" };
  const second = { name: "second", label: "Second language", help: "Below the first one.", words: ["", ...words], initial: "" };
  const fields = [
    { ...language, wording: (tag) => (tag ? nameOf(tag) : "First to arrive") },
    { ...second, wording: (tag) => (tag ? nameOf(tag) : "None") },
    { name: "font", label: "Font", help: "Names of fonts on the machine with OBS, separated by commas.", attributes: { maxLength: 200, spellcheck: false } },
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
  values[kind] = of[kind];
  values.language = [values.language, values.second].filter(Boolean).join(",");
  values.background = values.box === "yes" ? values.background + opacity : OPTIONS.background[1];
  const found = new URLSearchParams();
  for (const [name, [, initial]] of Object.entries(OPTIONS)) {
    const text = String(values[name] ?? "").trim();
    const several = name === "language" ? text.split(",") : [text.replace(/^#/, "")];
    if (text && text !== String(initial)) for (const each of several) found.append(name, each);
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
  const [base] = (options.language[0] ?? "en").split("-");
  const language = SAMPLES[base] ? base : "en";
  const [caption, stable, unstable] = SAMPLES[language];
  const [first, second] = at("sample").querySelectorAll("p");
  for (const line of [first, second]) mark(line, language);
  first.textContent = caption;
  second.firstElementChild.textContent = stable;
  second.lastElementChild.textContent = unstable;
}

if (of[kind]) {
  at("address-tools").append(copyButton(() => at("address").textContent, "overlay"));
  await build();
  document.querySelector("main").hidden = false; // all at once, so that nothing moves
  preview(Object.fromEntries(Object.entries(OPTIONS).map(([name, [, initial]]) => [name, initial])));
  show();
}
