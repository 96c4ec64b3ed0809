// Speech recognition on the server: sends the microphone's audio over the session's connection.
//
// Audio is kept until the utterance that it belongs to has been recognised to its end, so that after a drop, or on a
// server that was started again, nothing of it is missing.

import { Microphone } from "./microphone.js";

const RATE = 16_000;
/** Seconds less than the server takes at once that are kept: it gets new audio meanwhile. */
const SPARE = 3;

export class ServerRecognition {
  #told;
  #most;
  #session = null;
  #stop = new AbortController();
  #microphone;
  /** The stream of audio: its name, when it began, and how many samples there have been; null before the first. */
  #stream = null;
  /** Frames that are not recognised yet, each with its position. */
  #kept = [];
  /** Utterances that have ended, and whether another one is under way. */
  #ended = 0;
  #open = false;
  /** Whether the server has said what it wants next. */
  #sending = false;
  #stopping = false;

  /**
   * @param {number} backlog seconds of audio that the server takes at once
   * @param {object} told see `Microphone`; besides
   * @param {(peak: number) => void} told.level told how loud it is, 0 to 1
   * @param {(sentence: string) => void} told.problem told what goes wrong
   */
  constructor(backlog, told) {
    this.#most = Math.max(1, backlog - SPARE) * RATE;
    this.#told = told;
    this.#microphone = new Microphone({
      heard: (samples, peak) => this.#heard(samples, peak),
      missed: (samples) => this.#missed(samples),
      state: (state, sentence = "") => this.#show(state, sentence),
    });
  }

  /** Whether the microphone is in use, or asked for. */
  get listening() {
    return this.#session !== null && !this.#stopping;
  }

  get pausing() {
    return this.#microphone.pausing;
  }

  pause(pausing) {
    this.#microphone.pause(pausing);
  }

  /** Listen until `stop`; what is recognised goes to the session. */
  start(session) {
    if (this.#stream) session.say({ type: "audio_end" }); // of what was stopped a moment ago
    this.leave();
    this.#session = session;
    session.speaking = true;
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    session.addEventListener("started", () => this.#begin(), { signal });
    session.addEventListener("listening", ({ detail }) => this.#answered(detail), { signal });
    session.addEventListener("recognised", ({ detail }) => this.#recognised(detail), { signal });
    session.addEventListener("state", ({ detail }) => detail !== "live" && (this.#sending = false), { signal });
    this.#microphone.open();
  }

  /** Release the microphone; what was said last is still recognised. */
  stop(state = "off") {
    this.#microphone.close();
    if (this.listening) {
      this.#stopping = true;
      if (!this.#stream) this.leave();
      else if (this.#sending) this.#session.say({ type: "audio_end" });
    }
    this.#told.state(state);
  }

  /** Have nothing to do with the session any more. */
  leave() {
    this.#microphone.close();
    this.#stop.abort();
    if (this.#session) this.#session.speaking = false;
    this.#session = this.#stream = null;
    this.#kept = [];
    this.#ended = 0;
    this.#open = this.#sending = this.#stopping = false;
  }

  // From the microphone

  #show(state, sentence) {
    if (state === "denied" || state === "error") this.stop(state);
    else this.#told.state(state);
    if (sentence) this.#told.problem(sentence);
  }

  #heard(samples, peak) {
    if (this.#stopping) return;
    this.#told.level(peak);
    const first = !this.#stream;
    if (first) this.#session.memory.note({ spoken: true });
    this.#stream ??= { name: this.#session.nextRun(), time: this.#session.clock() - samples.length / RATE, samples: 0 };
    this.#kept.push({ at: this.#stream.samples, samples });
    this.#stream.samples += samples.length;
    while (this.#stream.samples - this.#kept[0].at > this.#most) this.#kept.shift();
    if (first) this.#begin();
    else if (this.#sending) this.#session.sendAudio(samples);
  }

  #missed(samples) {
    if (!this.#stream) return;
    this.#stream.samples += samples;
    this.#kept = [];
    this.#begin();
  }

  // To and from the server

  /** Tell the server of the stream, on every connection anew. */
  #begin() {
    if (!this.#stream) return;
    const { name, time, samples } = this.#stream;
    this.#sending = false;
    this.#session.say({
      type: "audio",
      stream: name,
      rate: RATE,
      time: Math.max(0, time),
      samples: this.#kept[0]?.at ?? samples,
      utterance: this.#ended + 1,
    });
  }

  #answered({ stream, listening, received, recognised }) {
    if (stream !== this.#stream?.name) return;
    if (!listening) {
      this.#over();
      return;
    }
    if (!this.#open) this.#forget(recognised - RATE); // speech is noticed a little late
    if (this.#sending) return;
    this.#sending = true;
    for (const { at, samples } of this.#kept) {
      if (at + samples.length > received) this.#session.sendAudio(samples.subarray(Math.max(0, received - at)));
    }
    if (this.#stopping) this.#session.say({ type: "audio_end" });
  }

  /** The server listens no longer: since this was wanted, or for a reason that it has told. */
  #over() {
    this.#session.finishSpoken();
    this.#sending = false;
    if (!this.#stopping && this.#microphone.suspended) return; // goes on when the browser does
    const wanted = this.#stopping;
    this.leave();
    if (!wanted) this.#told.state("error");
  }

  #recognised({ stream, utterance, final, recognised }) {
    if (stream !== this.#stream?.name) return;
    this.#open = !final;
    if (!final) return;
    this.#ended = Math.max(this.#ended, Number(utterance.slice(stream.length + 1)));
    this.#forget(recognised);
  }

  /** Drop what is recognised. */
  #forget(position) {
    while (this.#kept.length && this.#kept[0].at + this.#kept[0].samples.length <= position) this.#kept.shift();
  }
}
