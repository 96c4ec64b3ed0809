// Speech recognition on the server: sends the microphone's audio over the session's connection.
//
// Audio is kept until its utterance has been recognised to the end, so that nothing is missing after a drop or a restart of
// the server.

import { Microphone } from "./microphone.js";

const RATE = 16_000;
/** Seconds by which less is kept than the server accepts at once, since it gets new audio meanwhile. */
const SPARE = 3;

export class ServerRecognition {
  #on;
  #most;
  #session = null;
  #stop = new AbortController();
  #microphone;
  /** The stream of audio: its name, start time and number of samples so far; null before the first. */
  #stream = null;
  /** Frames that are not yet recognised, each with its position. */
  #kept = [];
  /** Number of finished utterances, and whether another one is open. */
  #ended = 0;
  #open = false;
  /** Whether the server has reported the position it wants next. */
  #sending = false;
  #stopping = false;

  /**
   * @param {number} backlog seconds of audio that the server accepts at once
   * @param {object} on callbacks, see `Microphone`, and
   * @param {(peak: number) => void} on.level called with the peak, 0 to 1
   * @param {(sentence: string) => void} on.problem called with errors
   */
  constructor(backlog, on) {
    this.#most = Math.max(1, backlog - SPARE) * RATE;
    this.#on = on;
    this.#microphone = new Microphone({
      frame: (samples, peak) => this.#onFrame(samples, peak),
      missed: (samples) => this.#missed(samples),
      state: (state, sentence = "") => this.#show(state, sentence),
    });
  }

  /** Whether the microphone is in use or requested. */
  get listening() {
    return this.#session !== null && !this.#stopping;
  }

  pause(pausing) {
    this.#microphone.pause(pausing);
  }

  /** Listen until `stop`; recognised text goes to the session. */
  start(session) {
    if (this.#stream) session.say({ type: "audio_end" }); // for the stream that was just stopped
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

  /** Release the microphone; pending audio is still recognised. */
  stop(state = "off") {
    this.#microphone.close();
    if (this.listening) {
      this.#stopping = true;
      if (!this.#stream) this.leave();
      else if (this.#sending) this.#session.say({ type: "audio_end" });
    }
    this.#on.state(state);
  }

  /** Detach from the session. */
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
    else this.#on.state(state);
    if (sentence) this.#on.problem(sentence);
  }

  #onFrame(samples, peak) {
    if (this.#stopping) return;
    this.#on.level(peak);
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

  /** Announce the stream to the server, on every connection. */
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

  /** The server has stopped listening, on request or because of an error that it has reported. */
  #over() {
    this.#session.finishSpoken();
    this.#sending = false;
    if (!this.#stopping && this.#microphone.suspended) return; // resumes with the browser
    const wanted = this.#stopping;
    this.leave();
    if (!wanted) this.#on.state("error");
  }

  #recognised({ stream, utterance, final, recognised }) {
    if (stream !== this.#stream?.name) return;
    this.#open = !final;
    if (!final) return;
    this.#ended = Math.max(this.#ended, Number(utterance.slice(stream.length + 1)));
    this.#forget(recognised);
  }

  /** Drop recognised audio. */
  #forget(position) {
    while (this.#kept.length && this.#kept[0].at + this.#kept[0].samples.length <= position) this.#kept.shift();
  }
}
