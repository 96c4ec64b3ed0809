// The page: puts its parts together.

import { Columns, follow } from "../captions/columns.js";
import { at } from "../captions/elements.js";
import { originalOf } from "../captions/languages.js";
import { widthOf } from "../captions/width.js";
import { makeWanted } from "../forms/wanted.js";
import { Memory } from "../net/memory.js";
import { ask, insist } from "../net/server.js";
import { Session } from "../net/session.js";
import { planOf } from "../speech/plan.js";
import { makePlayer } from "../speech/player.js";
import { makeSound } from "../speech/sound.js";
import { makeSpeaking } from "../speech/speaking.js";
import { listenToTyping } from "../speech/typing.js";
import { watchLag } from "./behind.js";
import { makeOperator } from "./operator.js";
import { Panel } from "./panel.js";
import { keptSentence, showLinks } from "./share.js";
import { notice, problem, showModel, showState } from "./status.js";
import { addViewTools } from "./viewtools.js";


const whole = new Intl.NumberFormat("en");
const GONE = "The server does not answer";
const SENTENCES = { waiting: "Reconnecting… Nothing is lost." };

const offer = await insist("v1/offer", () => notice("Connecting to the server…"));
notice("");
showModel(at("model"), offer);
at("kept").textContent = keptSentence(offer.transcript_seconds);
const memory = new Memory(sessionStorage, () => problem("The browser's storage is full: a reload would lose captions."));
let session = null;
/** The same updates by plain re-translation, to compare. */
let plain = null;
/** The captions, and the language of those of what is spoken; null before the first session. */
let columns = null;
let original = null;
/** Cells of a line, where the address asks for lines that never change, and what makes them. */
const reading = widthOf(location.search, problem);
const { ReadingLines } = reading ? await import("../captions/reading.js") : {};
let lines = null;
/** The placeholder before the first caption. */
const empty = at("captions").firstElementChild;
const wanted = makeWanted(at("wanted"), offer);
const panel = new Panel(at("panel"));
const attend = makeOperator(problem);
addViewTools(at("tools"), { resized: () => columns?.resized(), only: true });
const sound = makeSound(at("recording"), at("sound"));
const player = makePlayer(memory, (...update) => session?.send(...update), showControls, sound);
const speaking = makeSpeaking(offer, { ready, language: wanted.language, changed: showControls, problem });
/** Whether the session was started by typing, which then keeps the focus. */
let byTyping = false;
const typing = listenToTyping(at("typed"), () => ready(true));
at("wanted").room.addEventListener("change", showRoom);
at("wanted").addEventListener("input", () => typing.release());

/** The session, started if necessary, by typing or by a button; null if the form is invalid. */
function ready(typed = false) {
  if (session) return session;
  const start = wanted.read(typed);
  byTyping = typed;
  refuse(!start && typed ? wanted.reason : "");
  if (!start) return null;
  memory.clear();
  panel.clear(start.method);
  listenTo(new Session(memory), start);
  session.begin(start);
  comparePlain();
  return session;
}

/** Show below the typed text why it was not sent; it stays there. */
function refuse(reason) {
  at("refused").hidden = !reason;
  at("refused").textContent = reason && `${reason.replace(/\.?$/, ".")} Press Enter to try again.`;
}

/** Show the events of a new or restored session. */
function listenTo(made, start) {
  session = made;
  problem("");
  wanted.show(start);
  wanted.lock(true);
  let name = memory.session?.name;
  original = originalOf(start);
  const transcript = () => `v1/sessions/${name}/transcript?format=txt`;
  columns = new Columns(at("captions"), at("announcer"), start.targets, original, transcript, true);
  lines?.stop();
  lines = reading ? new ReadingLines(session, reading) : null;
  attend(session, columns, !lines);
  session.addEventListener("update", ({ detail }) => {
    showText(detail);
    plain?.send(detail.utterance, detail.text, detail.final);
  });
  follow(lines ?? session, () => columns);
  session.addEventListener("stats", ({ detail }) => panel.show(detail));
  watchLag(session, (line) => notice(line, "lag"));
  let begun = Boolean(memory.session?.token);
  session.addEventListener("problem", ({ detail }) => {
    const quiet = byTyping && detail.fatal && !begun;
    if (detail.fatal && !begun) notBegun();
    if (quiet) refuse(detail.message);
    if (!wanted.complain(detail, quiet) && !quiet) problem(detail.message);
  });
  const showShare = () => showLinks(at("share"), { ...start, source_language: original, session: name }, offer.transcripts);
  showShare();
  at("share").hidden = false; // also after the end, since the transcript stays available for a while
  session.addEventListener("started", ({ detail }) => {
    begun = true;
    name = detail.session;
    showShare();
  });
  session.addEventListener("state", ({ detail }) => {
    showState(detail, SENTENCES);
    if (detail === "over") left(begun);
  });
  showControls();
}

/** Show the links of the chosen room, which need no session. */
function showRoom() {
  at("share").hidden = !wanted.room();
  showLinks(at("share"), { room: wanted.room(), targets: [] }, offer.transcripts);
}

/** Show a caption, in reading mode as lines. */
function show(caption, final) {
  if (lines) lines.read(caption, final);
  else columns[final ? "final" : "partial"](caption);
}

/** Show what was spoken; the server shows it where it is a target. */
function showText({ final, ...update }) {
  if (!memory.session.start.targets.includes(original)) show({ ...update, language: original }, final);
}

/** The session is over, if it had begun; its captions stay until the next one starts. */
function left(begun) {
  player.stop();
  speaking.leave();
  typing.reset(memory.open.values(), begun);
  plain?.leave();
  session = plain = null;
  notice("", "lag");
  attend(null, columns);
  memory.clear();
  wanted.lock(false);
  showControls();
}

/** Return to the state before a session. */
function notBegun() {
  at("captions").replaceChildren(empty);
  showRoom();
  showState("idle", SENTENCES);
}

/** Continue after a reload. */
function restore() {
  const { start } = memory.session;
  listenTo(new Session(memory), start);
  for (const final of [...memory.finals.values()].filter(Boolean)) {
    showText({ utterance: final.utterance, text: final.source, final: true, age_ms: Infinity });
    show({ ...final, age_ms: Infinity }, true);
  }
  for (const update of memory.open.values()) showText(update);
  at("speed").value = player.speed;
  panel.clear(start.method);
  session.resume();
  session.finishOpen((utterance) => !utterance.startsWith(`${player.run}.`));
  player.resume();
}

/** Start or stop plain re-translation of the same updates. */
function comparePlain() {
  plain?.leave();
  plain = null;
  panel.clearPlain();
  if (!session || !at("compare").checked) return;
  plain = new Session(new Memory());
  plain.addEventListener("stats", ({ detail }) => panel.showPlain(detail, Boolean(memory.session?.spoken)));
  plain.addEventListener("state", ({ detail }) => {
    if (detail === "over") at("compare").checked = false;
  });
  plain.addEventListener("problem", ({ detail }) => problem(`Plain re-translation: ${detail.message}`));
  plain.begin({ ...memory.session.start, method: "ar", options: {}, room: undefined });
}

// Display

function showControls() {
  const focused = document.activeElement;
  at("end").hidden = !session;
  const playing = player.run !== null;
  for (const button of document.querySelectorAll(".play")) button.hidden = playing;
  for (const button of document.querySelectorAll(".stop")) button.hidden = !playing;
  const progress = player.progress ?? { sent: 0, all: 1 };
  at("progress").parentElement.hidden = !playing;
  Object.assign(at("progress"), { value: progress.sent, max: progress.all });
  at("progress").nextElementSibling.textContent = `${whole.format(progress.sent)} of ${whole.format(progress.all)} sentences`;
  // Move the focus to the element that replaces the focused one.
  if (focused?.hidden) (focused.form?.querySelector(".play:not([hidden]), .stop:not([hidden])") ?? kind()).focus({ preventScroll: true });
}

// Sources

function play(plan, speed, recorded = false) {
  if (!plan.length || !ready()) return;
  player.play(plan, session.nextRun(), speed, recorded);
  // On a phone the captions are above the pressed button.
  requestAnimationFrame(() => document.querySelector(".stage").scrollIntoView());
}

function stopPlaying() {
  const { run } = player;
  player.stop();
  session?.finishOpen((utterance) => utterance.startsWith(`${run}.`));
}

at("talk-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const begun = ready();
  if (!begun) return;
  const { body } = await ask("v1/talk");
  if (session !== begun) return; // refused or ended while the talk was loading
  if (body) play(body, Number(at("speed").value), true);
  else problem(`${GONE}. Try again in a moment.`);
});
at("paste-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = at("pasted").value.trim();
  const start = session ? memory.session.start : wanted.read();
  if (!text || !start) return;
  const { body, error } = await ask("v1/sentences", { text }, start.key);
  if (body) play(planOf(body.sentences, at("spoken").checked), 1);
  else if (!error || !wanted.complain(error)) problem(error?.message ?? `${GONE}. Try again in a moment.`);
});
at("end").addEventListener("click", () => {
  speaking.stop();
  player.stop();
  session.end();
});
at("compare").addEventListener("change", comparePlain);
for (const button of document.querySelectorAll(".stop")) button.addEventListener("click", stopPlaying);
for (const radio of document.querySelectorAll("[name=kind]")) radio.addEventListener("change", showSource);
at("wanted").addEventListener("submit", (event) => event.preventDefault());

/** The selected kind of source. */
function kind() {
  return document.querySelector("[name=kind]:checked");
}

function showSource() {
  const { value } = kind();
  for (const part of document.querySelectorAll("[data-kind]")) part.hidden = part.dataset.kind !== value;
}

at("edit").hidden = reading > 0; // lines cannot be edited
at("captions").classList.toggle("reading", reading > 0);
at("compare").closest("label").hidden = !offer.methods.includes("ar");
showSource();
showControls();
if (memory.session) restore();
else showRoom();
document.querySelector("main").hidden = false;
