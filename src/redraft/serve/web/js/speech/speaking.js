// Speech: the choice between the server's and the browser's recogniser, the buttons, and the microphone's state.

import { at, write } from "../captions/elements.js";
import { NOT_HERE, canRecognise, makeBrowserRecognition } from "./browser-recognition.js";
import { makeServerRecognition } from "./server-recognition.js";


const WORDS = {
  off: "Microphone off",
  asking: "Waiting for the microphone",
  listening: "Listening",
  paused: "Microphone paused",
  denied: "Microphone not allowed",
  error: "Microphone stopped",
};
/** Silent frames of a tenth of a second after which a warning is shown. */
const SILENT = 50;
const NO_SOUND = "No sound from the microphone";
const OWN = "Your browser recognises the speech. Some browsers send the audio to their vendor for that.";
const ONE = "The browser recognises one language at a time. Choose one under Translation, or let the server recognise the speech.";
const BROWSER = "browser";
const SERVER = "server";

/**
 * @param {object} offer what the server offers
 * @param {object} page
 * @param {() => import("../net/session.js").Session | null} page.ready returns the session, started if necessary
 * @param {() => string} page.language returns the language that is spoken; empty if several are
 * @param {() => void} page.changed called when listening starts or stops
 * @param {(sentence: string) => void} page.problem called with errors
 */
export function makeSpeaking(offer, { ready, language, changed, problem }) {
  const on = { state: show, level, problem };
  const recognisers = { [BROWSER]: makeBrowserRecognition(on), [SERVER]: makeServerRecognition(offer.audio_backlog, on) };
  const all = Object.values(recognisers);
  let by = offer.recogniser ? SERVER : BROWSER;
  let state = "off";
  let silent = 0;

  const listening = () => all.some((each) => each.listening());

  const say = (words) => write(at("microphone").querySelector("span"), words);

  /** Release the microphone. */
  function stop() {
    for (const each of all) if (each.listening()) each.stop();
  }

  /** The session is over. */
  function leave() {
    stop();
    for (const each of all) each.leave();
  }

  function choose(chosen) {
    if (listening()) stop();
    by = chosen;
    const impossible = by === BROWSER && !canRecognise;
    at("own-hint").textContent = by === BROWSER ? (impossible ? NOT_HERE : OWN) : "";
    at("server-hint").hidden = by !== SERVER;
    at("listen").setAttribute("aria-disabled", String(impossible));
  }

  function toggle() {
    if (listening()) {
      stop();
      return;
    }
    if (by === BROWSER && !(canRecognise && language())) {
      problem(canRecognise ? ONE : NOT_HERE);
      return;
    }
    const session = ready();
    if (!session) return;
    problem("");
    recognisers[by].start(session, language());
    changed();
  }

  function show(shown) {
    state = shown;
    silent = 0;
    at("microphone").dataset.state = state;
    say(WORDS[state]);
    at("level").hidden = by !== SERVER || state !== "listening";
    at("level").value = 0;
    at("listen").textContent = listening() ? "Stop listening" : "Listen";
    at("mute").hidden = by !== SERVER || !["listening", "paused"].includes(state);
    at("mute").textContent = state === "paused" ? "Resume" : "Pause";
    changed();
  }

  function level(peak) {
    if (state !== "listening") return;
    silent = peak ? 0 : silent + 1;
    at("level").value = peak ? Math.max(0, 1 + Math.log10(peak) / 3) : 0; // from -60 dB
    say(silent > SILENT ? NO_SOUND : WORDS.listening);
  }

  at("recognisers").hidden = !offer.recogniser;
  at("server-hint").textContent = `The audio goes to this server, which recognises it with ${offer.recogniser} and does not keep it.`;
  for (const radio of document.querySelectorAll("[name=recogniser]")) {
    radio.checked = radio.value === by;
    radio.addEventListener("change", () => choose(radio.value));
  }
  at("listen").addEventListener("click", toggle);
  at("mute").addEventListener("click", () => recognisers[SERVER].pause(state !== "paused"));
  choose(by);
  show("off");
  return { stop, leave };
}
