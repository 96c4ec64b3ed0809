// Speech: the choice between the server's and the browser's recogniser, the buttons, and the microphone's state.

import { at, write } from "../captions/elements.js";
import { BrowserRecognition, NOT_HERE, canRecognise } from "./browser-recognition.js";
import { ServerRecognition } from "./server-recognition.js";


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

export class Speaking {
  #ready;
  #changed;
  #language;
  #recognisers;
  #by;
  #state = "off";
  #silent = 0;

  /**
   * @param {object} offer what the server offers
   * @param {object} page
   * @param {() => import("../net/session.js").Session | null} page.ready returns the session, started if necessary
   * @param {() => string} page.language returns the language that is spoken; empty if several are
   * @param {() => void} page.changed called when listening starts or stops
   * @param {(sentence: string) => void} page.problem called with errors
   */
  constructor(offer, { ready, language, changed, problem }) {
    this.#ready = ready;
    this.#language = language;
    this.#changed = changed;
    const on = { state: (state) => this.#show(state), level: (peak) => this.#level(peak), problem };
    this.#recognisers = { [BROWSER]: new BrowserRecognition(on), [SERVER]: new ServerRecognition(offer.audio_backlog, on) };
    this.#by = offer.recogniser ? SERVER : BROWSER;
    at("recognisers").hidden = !offer.recogniser;
    at("server-hint").textContent = `The audio goes to this server, which recognises it with ${offer.recogniser} and does not keep it.`;
    for (const radio of document.querySelectorAll("[name=recogniser]")) {
      radio.checked = radio.value === this.#by;
      radio.addEventListener("change", () => this.#choose(radio.value));
    }
    at("listen").addEventListener("click", () => this.#toggle(problem));
    at("mute").addEventListener("click", () => this.#recognisers[SERVER].pause(!this.#paused));
    this.#choose(this.#by);
    this.#show("off");
  }

  get listening() {
    return Object.values(this.#recognisers).some((each) => each.listening);
  }

  /** Release the microphone. */
  stop() {
    for (const each of Object.values(this.#recognisers)) if (each.listening) each.stop();
  }

  /** The session is over. */
  leave() {
    this.stop();
    for (const each of Object.values(this.#recognisers)) each.leave();
  }

  get #paused() {
    return this.#state === "paused";
  }

  #choose(by) {
    if (this.listening) this.stop();
    this.#by = by;
    const impossible = by === BROWSER && !canRecognise;
    at("own-hint").textContent = by === BROWSER ? (impossible ? NOT_HERE : OWN) : "";
    at("server-hint").hidden = by !== SERVER;
    at("listen").setAttribute("aria-disabled", String(impossible));
  }

  #toggle(problem) {
    if (this.listening) {
      this.stop();
      return;
    }
    if (this.#by === BROWSER && !(canRecognise && this.#language())) {
      problem(canRecognise ? ONE : NOT_HERE);
      return;
    }
    const session = this.#ready();
    if (!session) return;
    problem("");
    this.#recognisers[this.#by].start(session, this.#language());
    this.#changed();
  }

  #show(state) {
    this.#state = state;
    this.#silent = 0;
    at("microphone").dataset.state = state;
    this.#write(WORDS[state]);
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
    this.#write(this.#silent > SILENT ? NO_SOUND : WORDS.listening);
  }

  #write(words) {
    write(at("microphone").querySelector("span"), words);
  }
}
