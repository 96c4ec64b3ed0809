// Speech recognition on the server: sends the microphone's audio over the session's connection.
//
// Audio is kept until its utterance has been recognised to the end, so that nothing is missing after a drop or a restart of
// the server.

import { makeMicrophone } from "./microphone.js";

const RATE = 16_000;
/** Seconds by which less is kept than the server accepts at once, since it gets new audio meanwhile. */
const SPARE = 3;

/**
 * @param {number} backlog seconds of audio that the server accepts at once
 * @param {object} on callbacks, see `makeMicrophone`, and
 * @param {(peak: number) => void} on.level called with the peak, 0 to 1
 * @param {(sentence: string) => void} on.problem called with errors
 */
export function makeServerRecognition(backlog, on) {
  const most = Math.max(1, backlog - SPARE) * RATE;
  const microphone = makeMicrophone({ frame, missed, state: show });
  let session = null;
  let ending = new AbortController();
  /** The stream of audio: its name, start time and number of samples so far; null before the first. */
  let stream = null;
  /** Frames that are not yet recognised, each with its position. */
  let kept = [];
  /** Number of finished utterances, and whether another one is open. */
  let ended = 0;
  let open = false;
  /** Whether the server has reported the position it wants next. */
  let sending = false;
  let stopping = false;

  /** Whether the microphone is in use or requested. */
  const listening = () => session !== null && !stopping;

  /** Listen until `stop`; recognised text goes to the session. */
  function start(begun) {
    if (stream) begun.say({ type: "audio_end" }); // for the stream that was just stopped
    leave();
    session = begun;
    session.speaking = true;
    ending = new AbortController();
    const { signal } = ending;
    session.addEventListener("started", begin, { signal });
    session.addEventListener("listening", ({ detail }) => answered(detail), { signal });
    session.addEventListener("recognised", ({ detail }) => recognised(detail), { signal });
    session.addEventListener("state", ({ detail }) => detail !== "live" && (sending = false), { signal });
    microphone.open();
  }

  /** Release the microphone; pending audio is still recognised. */
  function stop(state = "off") {
    microphone.close();
    if (listening()) {
      stopping = true;
      if (!stream) leave();
      else if (sending) session.say({ type: "audio_end" });
    }
    on.state(state);
  }

  /** Detach from the session. */
  function leave() {
    microphone.close();
    ending.abort();
    if (session) session.speaking = false;
    session = stream = null;
    kept = [];
    ended = 0;
    open = sending = stopping = false;
  }

  // From the microphone

  function show(state, sentence = "") {
    if (state === "denied" || state === "error") stop(state);
    else on.state(state);
    if (sentence) on.problem(sentence);
  }

  function frame(samples, peak) {
    if (stopping) return;
    on.level(peak);
    const first = !stream;
    if (first) session.memory.note({ spoken: true });
    stream ??= { name: session.nextRun(), time: session.clock() - samples.length / RATE, samples: 0 };
    kept.push({ at: stream.samples, samples });
    stream.samples += samples.length;
    while (stream.samples - kept[0].at > most) kept.shift();
    if (first) begin();
    else if (sending) session.sendAudio(samples);
  }

  function missed(samples) {
    if (!stream) return;
    stream.samples += samples;
    kept = [];
    begin();
  }

  // To and from the server

  /** Announce the stream to the server, on every connection. */
  function begin() {
    if (!stream) return;
    const { name, time, samples } = stream;
    sending = false;
    session.say({
      type: "audio",
      stream: name,
      rate: RATE,
      time: Math.max(0, time),
      samples: kept[0]?.at ?? samples,
      utterance: ended + 1,
    });
  }

  function answered({ stream: name, listening, received, recognised: position }) {
    if (name !== stream?.name) return;
    if (!listening) {
      over();
      return;
    }
    if (!open) forget(position - RATE); // speech is noticed a little late
    if (sending) return;
    sending = true;
    for (const { at, samples } of kept) {
      if (at + samples.length > received) session.sendAudio(samples.subarray(Math.max(0, received - at)));
    }
    if (stopping) session.say({ type: "audio_end" });
  }

  /** The server has stopped listening, on request or because of an error that it has reported. */
  function over() {
    session.finishSpoken();
    sending = false;
    if (!stopping && microphone.suspended()) return; // resumes with the browser
    const wanted = stopping;
    leave();
    if (!wanted) on.state("error");
  }

  function recognised({ stream: name, utterance, final, recognised: position }) {
    if (name !== stream?.name) return;
    open = !final;
    if (!final) return;
    ended = Math.max(ended, Number(utterance.slice(name.length + 1)));
    forget(position);
  }

  /** Drop recognised audio. */
  function forget(position) {
    while (kept.length && kept[0].at + kept[0].samples.length <= position) kept.shift();
  }

  return { start, stop, leave, listening, pause: microphone.pause };
}
