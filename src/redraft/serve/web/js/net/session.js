// A session on the server: updates out, captions in; survives drops of the connection and reloads of the page.
//
// Events carry the server's message as `detail`: "started", "partial", "final" (again, if it was corrected), "stats",
// "listening" and "recognised" (of audio), "pause", "hide", "done", and "failed" for an error in place of a final
// caption.  Also "problem" {code, message, fatal}, "update" (sent, queued or recognised) and "state": "connecting", "live",
// "waiting" (to retry) or "over".

import { Backoff, PASSING } from "./backoff.js";
import { Connection, whenBack } from "./connection.js";
import { Control } from "./control.js";
import { Source, keyOf } from "../captions/events.js";
import { bytesOf, pieces } from "./pieces.js";
import { address } from "./server.js";

const PROTOCOL = 1;
/** Messages that are dispatched unchanged. */
const FORWARDED = new Set(["started", "partial", "stats", "listening", "recognised", "pause", "hide", "done"]);

export class Session extends Source {
  #memory;
  #control;
  /** The connection, perhaps a closed one; null before the session and after it. */
  #connection = null;
  /** Timer of the next attempt to connect, 0 if none waits, and what ends looking for one that can come earlier. */
  #retry = 0;
  #forget = () => {};
  #backoff = new Backoff();
  #unsent = new Map();
  #refusal = null;
  #server = "";
  /** Maximum length of a message in bytes. */
  #most = 0;
  /** The newest "state"; empty before the session and when it was left. */
  #state = "";
  #speaking = false;

  /** @param {import("./memory.js").Memory} memory the stored state */
  constructor(memory) {
    super();
    this.#memory = memory;
    this.#control = new Control(memory);
  }

  get memory() {
    return this.#memory;
  }

  /** Whether audio is sent or still being recognised, so that the server's recogniser ends utterances. */
  get speaking() {
    return this.#speaking;
  }

  set speaking(speaking) {
    this.#speaking = speaking;
    this.#flush();
  }

  /** Begin a session; `wanted` has the fields of the message `start`. */
  begin(wanted) {
    this.#memory.note({ start: wanted, begun: Date.now(), runs: 0 });
    this.#connect();
  }

  resume() {
    this.#connect();
  }

  /** A new prefix for utterances' names. */
  nextRun() {
    this.#memory.note({ runs: this.#memory.session.runs + 1 });
    return String(this.#memory.session.runs);
  }

  /** Seconds since the session began. */
  clock() {
    return Math.max(0, Date.now() - this.#memory.session.begun) / 1000;
  }

  /** Send the whole text of an utterance so far; ignored after `end`. */
  send(utterance, text, final) {
    if (this.#memory.session.ending) return;
    const earlier = this.#memory.open.get(utterance);
    const time = this.clock();
    const start = earlier?.start ?? time; // the first update is not sent again after a drop
    this.#put({ type: "update", utterance, seq: (earlier?.seq ?? -1) + 1, text, final, time, start });
  }

  #put(...updates) {
    for (const update of updates) {
      this.#memory.keepOpen(update);
      this.#unsent.delete(update.utterance);
      this.#unsent.set(update.utterance, update);
      this.emit("update", update);
    }
    this.#flush();
  }

  sendAudio(samples) {
    if (this.#live) this.#connection.send(samples);
  }

  /** Finish the open utterances that `chosen` accepts; the server finishes those it recognises. */
  finishOpen(chosen = () => true) {
    const left = this.#unfinished.filter((update) => !update.spoken && chosen(update.utterance));
    for (const { utterance, text } of left) this.send(utterance, text, true);
  }

  /** Finish recognised utterances that the server will never finish. */
  finishSpoken() {
    const left = this.#unfinished.filter((update) => update.spoken);
    this.#put(...left.map((update) => ({ ...update, seq: update.seq + 1, final: true, spoken: undefined })));
  }

  get #unfinished() {
    return [...this.#memory.open.values()].filter((update) => !update.final);
  }

  /** End the session after the last update. */
  end() {
    this.finishOpen();
    this.#memory.note({ ending: true });
    this.#flush();
  }

  /** Send a message; false without a connection. */
  say(message) {
    if (this.#live) this.#say(message);
    return this.#live;
  }

  /** Pause, hide or correct viewers' captions, now or after the next reconnection; returns whether it is now. */
  control(message) {
    this.#control.decide(message);
    this.#flush();
    return this.#live;
  }

  leave() {
    this.#forget();
    clearTimeout(this.#retry);
    this.#retry = 0;
    this.#state = "";
    this.#connection?.close();
    this.#connection = null;
  }

  #connect() {
    if (this.#state !== "waiting") this.#turn("connecting");
    clearTimeout(this.#retry);
    this.#retry = 0;
    this.#refusal = null;
    this.#connection = new Connection(address("v1/live"), {
      open: () => this.#start(),
      message: (message) => this.#handle(message),
      close: () => this.#closed(),
    });
    this.#forget();
    this.#forget = whenBack(() => this.#retry && this.#connect());
  }

  #start() {
    const { start, token, server, connection = 0 } = this.#memory.session;
    // Higher than those before, so that a server that reads one of these later knows it; a count that a browser restores
    // after a crash may be out of date.
    const attempt = token && Math.max(connection + 1, Date.now());
    this.#memory.note({ connection: attempt });
    this.#say({ type: "start", protocol: PROTOCOL, ...start, token, server, connection: attempt });
  }

  #say(message) {
    this.#connection?.send(JSON.stringify(message));
  }

  #flush() {
    if (!this.#live) return;
    for (const message of this.#control.take()) this.#sayControl(message); // before updates, whose captions they are about
    for (const update of this.#unsent.values()) this.#sayUpdate({ ...update, spoken: undefined });
    this.#unsent.clear();
    // After all updates: a server that has no others left is done.  What is still being recognised will be some.
    if (this.#memory.session.ending && !this.#speaking) this.#say({ type: "end" });
  }

  /** Send an update; one that is too long for the server will get no answer. */
  #sayUpdate(update) {
    if (bytesOf(update) <= this.#most) {
      this.#say(update);
      return;
    }
    this.#memory.dropOpen(update.utterance);
    this.emit("problem", { code: "limit", message: this.#tooLong("a text"), utterance: update.utterance });
  }

  #sayControl(message) {
    if (bytesOf(message) <= this.#most) this.#say(message);
    else this.#failed({ ...message, type: "error", code: "limit", message: this.#tooLong("a correction"), request: message.type });
  }

  #tooLong(what) {
    return `${what} is longer than this server accepts: at most ${this.#most} bytes as a message`;
  }

  #handle(message) {
    if (message.type === "partial" || message.type === "final") this.#restored(); // the server has processed what was sent before
    const handle = {
      started: () => this.#started(message),
      final: () => this.#concluded(message, message),
      pause: () => this.#control.reported(message),
      hide: () => this.#control.reported(message),
      name: () => this.#control.reported(message),
      recognised: () => this.#recognised(message),
      error: () => this.#failed(message),
      done: () => this.#done(),
    }[message.type];
    handle?.();
    if (FORWARDED.has(message.type)) this.emit(message.type, message);
  }

  #started({ token, session, targets, resumed, server, message_bytes }) {
    const forgotten = this.#memory.session.token !== undefined && !resumed;
    const start = { ...this.#memory.session.start, take_over: undefined }; // only the first time
    this.#memory.note({ token, name: session, targets, start });
    this.#backoff.connected();
    this.#server = server;
    this.#most = message_bytes;
    this.#declare();
    if (forgotten) this.#restore();
    else this.#restored();
    this.#unsent = new Map([...this.#memory.open].filter(([, { spoken, final }]) => !spoken || (final && !resumed)));
    this.#turn("live");
    if (!this.speaking && resumed && this.#memory.session.spoken) this.#say({ type: "audio_end" }); // for audio from before a reload
    if (!this.speaking && !resumed) this.finishSpoken();
    this.#flush();
  }

  /** Declare what viewers may see, before anything else. */
  #declare() {
    const all = this.#control.declaration();
    for (const each of pieces("declare", "decisions", all, this.#most, (message) => this.#sayControl(message))) this.#say(each);
  }

  #restore() {
    const message = this.#tooLong("a caption that could not be restored");
    const tooLong = ({ utterance }) => this.emit("problem", { code: "limit", message, utterance });
    const finals = [...this.#memory.finals.values()].filter(Boolean);
    for (const each of pieces("restore", "finals", finals, this.#most, tooLong)) this.#say(each);
  }

  /** The server has recognised an update; after a restart it must be sent as text. */
  #recognised({ utterance, seq, text, final, time, start, speaker, language }) {
    if (this.#isConcluded(utterance)) return;
    const update = { type: "update", utterance, seq, text, final, time, start, speaker, language, spoken: true };
    this.#memory.keepOpen(update);
    this.emit("update", update);
  }

  #isConcluded(utterance) {
    return this.#memory.session.targets.every((language) => this.#memory.finals.has(keyOf({ utterance, language })));
  }

  /** The server has the complete session, so that it can be resumed there. */
  #restored() {
    if (this.#memory.session.server !== this.#server) this.#memory.note({ server: this.#server });
  }

  /** An utterance has ended in a language; duplicates are acknowledged and ignored. */
  #concluded({ utterance, language }, final) {
    const key = keyOf({ utterance, language });
    const { finals } = this.#memory;
    if (!finals.has(key)) {
      this.#backoff.reset();
      this.#memory.keepFinal(key, final);
      if (final) this.emit("final", final);
      if (this.#isConcluded(utterance)) this.#memory.dropOpen(utterance);
    } else if (final && (final.corrected ?? 0) > (finals.get(key)?.corrected ?? 0)) {
      this.#memory.keepFinal(key, final);
      this.emit("final", final);
    }
    if (final?.corrected) {
      const { text, corrected: decision } = final;
      this.#control.reported({ type: "correct", utterance, language, text, decision });
    }
    this.#say({ type: "ack", utterance, language, corrected: final?.corrected });
  }

  #failed(error) {
    if (error.fatal) this.#refusal = error;
    else if (error.final) this.#concluded(error, null);
    else if (error.request === "update" && error.utterance) this.#memory.dropOpen(error.utterance); // no other answer will come
    if (error.final) this.emit("failed", error);
    if (!error.fatal) this.emit("problem", error);
  }

  #done() {
    this.leave();
    this.#turn("over");
  }

  #closed() {
    const refusal = this.#refusal;
    if (refusal && !(this.#memory.session.token && PASSING.has(refusal.code))) {
      this.#done();
      this.emit("problem", refusal);
      return;
    }
    this.#turn("waiting");
    this.#retry = setTimeout(() => this.#connect(), this.#backoff.next());
  }

  get #live() {
    return this.#state === "live";
  }

  /** Say another state. */
  #turn(state) {
    if (state === this.#state) return;
    this.#state = state;
    this.emit("state", state);
  }
}
