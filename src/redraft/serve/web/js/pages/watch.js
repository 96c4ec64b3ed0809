// The viewers' page: captions of a session in the languages that the viewer chooses.

import { Columns, SOURCE } from "../captions/columns.js";
import { sameOf } from "../captions/languages.js";
import { widthOf } from "../captions/width.js";
import { speak, t } from "../captions/words.js";
import { LanguagePicker } from "../forms/picker.js";
import { PASSING } from "../net/backoff.js";
import { insist } from "../net/server.js";
import { Viewer } from "../net/viewer.js";
import { qrButton } from "./link-buttons.js";
import { problem, showModel, showState } from "./status.js";
import { addViewTools } from "./viewtools.js";

speak(navigator.languages);

const at = (id) => document.getElementById(id);
const given = new URLSearchParams(location.search);
/** What is watched, from the address. */
const of = { session: given.get("session"), room: given.get("room") };
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
  next: "The talk is over. Waiting for the next one in this room…",
};
/** Replaces `absent` once the session has been seen. */
const BACK = "Waiting for the speaker to reconnect…";

let viewer = null;
let columns = null;
/** Creates empty columns for the languages that are shown. */
let restart = () => {};
/** Utterance -> `seq` of the newest update that any caption translates. */
const newest = new Map();
/** Errors in the address. */
let unknown = "";
/** Why the server closed the connection, unless a retry may succeed soon. */
let refusal = "";

addViewTools(at("tools"), { resized: () => columns?.resized() });
if (named) at("tools").append(qrButton(() => location.href));

/** The languages in the address; without them, all are received, so that switching is immediate. */
const languagesOf = ({ search }) => new URLSearchParams(search).getAll("language");

/** Show the languages of a session, which may change when it resumes. */
function showColumns({ targets, source_language, session = of.session }) {
  const transcript = () => `v1/sessions/${encodeURIComponent(session)}/transcript?format=txt`;
  let shown = new Set();
  restart = () => {
    newest.clear();
    columns = new Columns(at("captions"), at("announcer"), targets, source_language, transcript);
    columns.showOnly(shown);
  };
  restart();
  new LanguagePicker(at("languages"), targets, (chosen, original) => {
    shown = new Set([...(original ? [SOURCE] : []), ...chosen]);
    columns.showOnly(shown);
    if (languagesOf(location).length) viewer.choose(chosen);
  });
  const others = languagesOf(location).filter((tag) => !sameOf(tag, targets));
  unknown = others.length ? `This session has no captions in ${others.join(", ")}. It has ${targets.join(", ")}.` : "";
}

/** Show the source of a caption, unless another language has shown a newer update. */
function original({ utterance, seq, source }, final) {
  if (!source || seq < (newest.get(utterance) ?? 0)) return;
  newest.set(utterance, seq);
  columns.showSource({ utterance, text: source, final });
}

function watch(of) {
  const source = new Viewer(of, languagesOf(location));
  viewer = reading ? new ReadingLines(source, reading) : source;
  let about = "";
  viewer.addEventListener("about", ({ detail }) => {
    const found = JSON.stringify([detail.session, detail.targets, detail.source_language]);
    at("captions").parentElement.hidden = false;
    if (found !== about) showColumns(detail);
    if (of.session) SENTENCES.absent = BACK;
    about = found;
  });
  viewer.addEventListener("restart", () => restart());
  viewer.addEventListener("partial", ({ detail }) => {
    original(detail, false);
    columns.partial(detail);
  });
  viewer.addEventListener("final", ({ detail }) => {
    original(detail, true);
    columns.final(detail);
  });
  viewer.addEventListener("hidden", ({ detail }) => columns.remove(detail));
  viewer.addEventListener("problem", ({ detail }) => {
    if (detail.fatal) refusal = PASSING.has(detail.code) ? "" : detail.code === "room" ? t("This room does not exist.") : detail.message;
    else if (detail.final) columns.failed(detail);
  });
  viewer.addEventListener("state", ({ detail }) => {
    if (detail === "live") refusal = "";
    const refused = detail === "waiting" && refusal;
    showState(refused ? "idle" : detail, refused ? {} : SENTENCES); // one banner for one event
    if (refused || detail === "live") problem(refused || wrong || unknown);
  });
  viewer.connect();
}

at("which").addEventListener("submit", (event) => {
  event.preventDefault();
  const address = new URL(location.href);
  address.searchParams.set("session", at("name").value.trim());
  location.assign(address);
});

at("which").hidden = named;
if (named) {
  watch(of);
  showModel(at("model"), await insist("v1/offer", () => {}));
}
