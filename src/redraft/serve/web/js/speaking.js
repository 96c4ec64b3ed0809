// Speaking: who recognises it, the server or the browser, its buttons, and how the microphone is, wherever one looks.

import { Ear } from "./ear.js";
import { canListen, DEAF, Speech } from "./speech.js";

const at = (id) => document.getElementById(id);

const WORDS = {
  off: "Microphone off",
  asking: "Waiting for the microphone",
  listening: "Listening",
  paused: "Microphone paused",
  denied: "Microphone not allowed",
  error: "Microphone stopped",
};
/** Frames of a tenth of a second without any sound after which that is said. */
const SILENT = 50;
const NO_SOUND = "No sound from the microphone";
const OWN = "Your browser recognises the speech. Some browsers send the audio to their vendor for that.";
const BROWSER = "browser";
const SERVER = "server";

export class Speaking {
  #ready;
  #changed;
  #language;
  #hears;
  #by;
  #state = "off";
  #silent = 0;

  /**
   * @param {object} offer what the server offers
   * @param {object} page
   * @param {() => import("./session.js").Session | null} page.ready gives the session, begun if need be
   * @param {() => string} page.language gives the language spoken
   * @param {() => void} page.changed called when listening begins or ends
   * @param {(sentence: string) => void} page.problem told what goes wrong
   */
  constructor(offer, { ready, language, changed, problem }) {
    this.#ready = ready;
    this.#language = language;
    this.#changed = changed;
    const told = { state: (state) => this.#show(state), level: (peak) => this.#level(peak), problem };
    this.#hears = { [BROWSER]: new Speech(told), [SERVER]: new Ear(offer.audio_backlog, told) };
    this.#by = offer.recogniser ? SERVER : BROWSER;
    at("ears").hidden = !offer.recogniser;
    at("server-hint").textContent = `The audio goes to this server, which recognises it with ${offer.recogniser} and does not keep it.`;
    for (const radio of document.querySelectorAll("[name=ear]")) {
      radio.checked = radio.value === this.#by;
      radio.addEventListener("change", () => this.#choose(radio.value));
    }
    at("listen").addEventListener("click", () => this.#toggle(problem));
    at("mute").addEventListener("click", () => this.#hears[SERVER].pause(!this.#paused));
    this.#choose(this.#by);
    this.#show("off");
  }

  get listening() {
    return Object.values(this.#hears).some((each) => each.listening);
  }

  /** Release the microphone. */
  stop() {
    for (const each of Object.values(this.#hears)) if (each.listening) each.stop();
  }

  /** The session is over. */
  leave() {
    this.stop();
    for (const each of Object.values(this.#hears)) each.leave();
  }

  get #paused() {
    return this.#state === "paused";
  }

  #choose(by) {
    if (this.listening) this.stop();
    this.#by = by;
    const deaf = by === BROWSER && !canListen;
    at("own-hint").textContent = by === BROWSER ? (deaf ? DEAF : OWN) : "";
    at("server-hint").hidden = by !== SERVER;
    at("listen").setAttribute("aria-disabled", String(deaf));
  }

  #toggle(problem) {
    if (this.listening) {
      this.stop();
      return;
    }
    if (this.#by === BROWSER && !canListen) {
      problem(DEAF);
      return;
    }
    const session = this.#ready();
    if (!session) return;
    problem("");
    this.#hears[this.#by].start(session, this.#language());
    this.#changed();
  }

  #show(state) {
    this.#state = state;
    this.#silent = 0;
    at("microphone").dataset.state = state;
    write(WORDS[state]);
    at("level").hidden = this.#by !== SERVER || state !== "listening";
    at("level").value = 0;
    at("listen").textContent = this.listening ? "Stop listening" : "Listen";
    at("mute").hidden = this.#by !== SERVER || !["listening", "paused"].includes(state);
    at("mute").textContent = this.#paused ? "Resume" : "Pause";
    this.#changed();
  }

  #level(peak) {
    if (this.#state !== "listening") return;
    this.#silent = peak ? 0 : this.#silent + 1;
    at("level").value = peak ? Math.max(0, 1 + Math.log10(peak) / 3) : 0; // from -60 dB
    write(this.#silent > SILENT ? NO_SOUND : WORDS.listening);
  }
}

/** Screen readers read what is written: the same is not written again. */
function write(words) {
  const place = at("microphone").querySelector("span");
  if (place.textContent !== words) place.textContent = words;
}
