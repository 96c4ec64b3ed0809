// The viewers' page: captions of a session in the languages that the viewer chooses.

import { Columns, follow } from "../captions/columns.js";
import { at } from "../captions/elements.js";
import { sameOf, withSpoken } from "../captions/languages.js";
import { widthOf } from "../captions/width.js";
import { speak, t } from "../captions/words.js";
import { pickLanguages } from "../forms/picker.js";
import { ofAddress } from "../forms/room.js";
import { PASSING } from "../net/backoff.js";
import { insist } from "../net/server.js";
import { Viewer } from "../net/viewer.js";
import { stayAwake } from "./awake.js";
import { qrButton } from "./link-buttons.js";
import { problem, showModel, showState } from "./status.js";
import { addViewTools } from "./viewtools.js";

speak(navigator.languages);

/** What is watched. */
const of = ofAddress(at("which"));
/** Cells of a line, where the address asks for lines that never change, and what is wrong with that. */
let wrong = "";
const reading = widthOf(location.search, (sentence) => (wrong = sentence));
if (reading) document.documentElement.style.setProperty("--cells", reading);
const { ReadingLines } = reading ? await import("../captions/reading.js") : {};
const named = Boolean(of.session || of.room);

const SENTENCES = {
  waiting: "Reconnecting…",
  absent: "Waiting for the session to start…",
  before: "Waiting for the talk to start…",
  paused: "Captions are paused.",
  over: "The talk is over.",
  next: "The talk is over. Waiting for the next one in this room…",
};
/** Replaces `absent` once the session has been seen. */
const BACK = "Waiting for the speaker to reconnect…";

let viewer = null;
let columns = null;
/** Creates empty columns for the languages that are shown. */
let restart = () => {};
/** Errors in the address. */
let unknown = "";
/** Why the server closed the connection, unless a retry may succeed soon. */
let refusal = "";

addViewTools(at("tools"), { resized: () => columns?.resized() });
if (named) at("tools").append(qrButton(() => location.href));

/** The languages in the address. */
const languagesOf = ({ search }) => new URLSearchParams(search).getAll("language");

/** Show the languages of a session, which may change when it resumes. */
function showColumns({ targets, source_language: spoken, session = of.session }) {
  const transcript = (query = "") => `v1/sessions/${encodeURIComponent(session)}/transcript?format=txt${query}`;
  const languages = withSpoken(spoken, targets);
  let shown = [];
  restart = () => {
    columns = new Columns(at("captions"), at("announcer"), targets, spoken, transcript);
    columns.showOnly(new Set(shown));
  };
  restart();
  pickLanguages(at("languages"), languages, (chosen) => {
    shown = chosen;
    columns.showOnly(new Set(shown));
    at("save").href = transcript(shown.map((tag) => `&language=${encodeURIComponent(tag)}`).join(""));
    // Without languages in the address all translations come, so that switching is immediate.
    if (languagesOf(location).length || shown.includes(spoken)) viewer.choose(shown);
  });
  const others = languagesOf(location).filter((tag) => !sameOf(tag, languages));
  unknown = others.length ? `This session has no captions in ${others.join(", ")}. It has ${languages.join(", ")}.` : "";
}

/** What to say about a fatal error; nothing, if a retry may succeed soon. */
function refusalOf({ code, message }) {
  if (code === "room") return t("This room does not exist.");
  if (code === "limit") return t("All places for viewers are taken. This page continues when one is free.");
  return PASSING.has(code) ? "" : message;
}

function watch(of) {
  viewer = new Viewer(of, languagesOf(location));
  const source = reading ? new ReadingLines(viewer, reading) : viewer;
  let about = "";
  source.addEventListener("about", ({ detail }) => {
    const found = JSON.stringify([detail.session, detail.targets, detail.source_language]);
    at("captions").parentElement.hidden = false;
    if (found !== about) showColumns(detail);
    if (of.session) SENTENCES.absent = BACK;
    about = found;
  });
  source.addEventListener("restart", () => restart());
  follow(source, () => columns);
  source.addEventListener("problem", ({ detail }) => detail.fatal && (refusal = refusalOf(detail)));
  source.addEventListener("state", ({ detail }) => {
    if (detail === "live") refusal = "";
    at("save").hidden = !["over", "next"].includes(detail);
    const refused = detail === "waiting" && refusal;
    showState(refused ? "idle" : detail, refused ? {} : SENTENCES); // one banner for one event
    if (refused || detail === "live") problem(refused || wrong || unknown);
  });
  viewer.connect();
}

if (named) {
  watch(of);
  stayAwake(() => (at("awake").hidden = false));
  showModel(at("model"), await insist("v1/offer", () => {}));
}
