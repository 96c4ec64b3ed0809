// Captions for streaming programs: the last lines, large, on a transparent background.

import { Captions } from "../captions/captions.js";
import { sameOf } from "../captions/languages.js";
import { ReadingLines } from "../captions/reading.js";
import { optionsOf, style } from "../forms/overlay-options.js";
import { Viewer } from "../net/viewer.js";

/** Number of captions kept, more than fit. */
const MOST = 12;
const TITLES = {
  live: "live",
  over: "ended",
  next: "waiting for the next session",
  waiting: "reconnecting",
  absent: "waiting for the session",
  before: "waiting for the session",
  paused: "paused",
};

const place = document.getElementById("overlay");

function problem(sentence) {
  const line = document.getElementById("problem");
  line.textContent = sentence;
  line.hidden = !sentence;
}

function show(options) {
  let language = null;
  let captions = null;
  let silence = 0;
  let session = null;
  const source = new Viewer(options, options.language ? [options.language] : []);
  const viewer = options.reading ? new ReadingLines(source, options.reading) : source;
  /** The captions, if a message is in the language that is shown: the first to come, since only the wanted one comes. */
  const shown = ({ language: tag, age_ms: age = 0 }) => {
    language ??= tag;
    if (tag !== language) return null;
    if (!captions) {
      captions = new Captions(place, new Map([[language, { tag: language, name: "" }]]), { most: MOST });
      place.append(captions.rows);
    }
    if (faded(age)) return captions;
    clearTimeout(silence);
    if (options.clear) silence = setTimeout(() => captions.clear(), options.clear * 1000 - age);
    return captions;
  };
  /** Whether a caption from before the page was loaded would have been cleared by now. */
  const faded = (age = 0) => options.clear > 0 && age >= options.clear * 1000;
  viewer.addEventListener("about", ({ detail: { session: name, targets } }) => {
    if (session !== null && session !== name) {
      captions?.rows.remove();
      captions = null;
      language = null;
    }
    session = name;
    const known = !options.language || sameOf(options.language, targets);
    problem(known ? "" : `This session has no captions in ${options.language}: language must be one of ${targets.join(", ")}.`);
  });
  viewer.addEventListener("partial", ({ detail }) => {
    if (faded(detail.age_ms)) return;
    if (detail.text || options.unstable !== "hide") shown(detail)?.partial(detail.language, detail);
  });
  viewer.addEventListener("final", ({ detail }) => {
    const captions = shown(detail);
    if (faded(detail.age_ms)) captions?.pass(detail.language, detail);
    else captions?.final(detail.language, detail);
  });
  viewer.addEventListener("hidden", ({ detail: { utterance, language } }) => captions?.remove(utterance, language));
  // Problems are shown in the title, for the operator; the audience does not see it.
  viewer.addEventListener("problem", ({ detail }) => detail.fatal && (document.title = `Redraft: ${detail.message}`));
  viewer.addEventListener("state", ({ detail }) => (document.title = `Redraft: overlay, ${TITLES[detail]}`));
  viewer.connect();
}

try {
  const options = optionsOf(location.search);
  style(place, options);
  show(options);
} catch (error) {
  if (!(error instanceof RangeError)) throw error;
  problem(error.message);
}
