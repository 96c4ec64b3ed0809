// The microphone: opened, paused and released; what it gives comes as frames of 16-bit samples at 16 kHz.

const RATE = 16_000;

/** What can go wrong when it is opened. */
const PROBLEMS = {
  NotAllowedError: ["denied", "The browser does not allow this page to use the microphone. Allow it in the site's settings, then try again."],
  NotFoundError: ["error", "No microphone was found."],
  NotReadableError: ["error", "The microphone cannot be used. Perhaps another program is using it."],
};
const INSECURE = "Browsers allow the microphone only on https pages and on the server's own machine.";

export class Microphone {
  #told;
  #stream = null;
  #context = null;
  #pausing = false;
  /** When the last frame was complete, in milliseconds; 0 before the first. */
  #last = 0;

  /**
   * @param {object} told
   * @param {(samples: Int16Array, peak: number) => void} told.heard takes 0.1 s of audio, and the loudest sample in it, 0 to 1
   * @param {(samples: number) => void} told.missed told how many samples the browser has left out
   * @param {(state: string, sentence?: string) => void} told.state told "asking", "listening", "paused", "denied" or "error"
   */
  constructor(told) {
    this.#told = told;
  }

  async open() {
    this.#told.state("asking");
    if (!navigator.mediaDevices?.getUserMedia || !globalThis.AudioWorkletNode) {
      this.#told.state("error", INSECURE);
      return;
    }
    const context = (this.#context = new AudioContext());
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1 } });
      if (context !== this.#context) {
        release(stream); // stopped meanwhile
        return;
      }
      this.#stream = stream;
      await this.#connect(context, stream);
    } catch (error) {
      if (context !== this.#context) return;
      this.close();
      const [state, sentence] = PROBLEMS[error.name] ?? ["error", `The microphone cannot be opened: ${error.message}`];
      this.#told.state(state, sentence);
    }
  }

  async #connect(context, stream) {
    await context.audioWorklet.addModule("/js/capture.js");
    await context.resume();
    if (context !== this.#context) return;
    const capture = new AudioWorkletNode(context, "capture", { numberOfOutputs: 0 });
    capture.port.onmessage = ({ data }) => context === this.#context && this.#heard(data);
    context.createMediaStreamSource(stream).connect(capture);
    const [track] = stream.getAudioTracks();
    track.onended = () => this.#lost();
    track.onmute = track.onunmute = context.onstatechange = () => this.#show();
    this.#show();
  }

  #heard({ samples, peak, time }) {
    // Where the browser has stopped the audio for a while, its clock has stood still.
    const missing = this.#last ? Math.round(((time - this.#last) / 1000) * RATE) - samples.length : 0;
    if (missing > RATE) this.#told.missed(missing);
    this.#last = time;
    this.#told.heard(samples, peak);
  }

  /** Pause, or go on; a paused microphone gives silence. */
  pause(pausing) {
    this.#pausing = pausing;
    for (const track of this.#stream?.getAudioTracks() ?? []) track.enabled = !pausing;
    if (!pausing) this.#context?.resume();
    this.#show();
  }

  get pausing() {
    return this.#pausing;
  }

  /** Whether the browser has stopped the audio, without being asked. */
  get suspended() {
    return this.#context !== null && this.#context.state !== "running";
  }

  #show() {
    if (!this.#stream) return;
    const [track] = this.#stream.getAudioTracks();
    if (this.#pausing) this.#told.state("paused");
    else if (this.suspended) this.#told.state("paused", "The browser has paused the microphone. Press Resume to go on.");
    else if (track.muted) this.#told.state("paused", "The system has muted the microphone.");
    else this.#told.state("listening");
  }

  #lost() {
    this.close();
    this.#told.state("error", "The microphone has been disconnected.");
  }

  /** Release the device. */
  close() {
    release(this.#stream);
    this.#context?.close();
    this.#stream = this.#context = null;
    this.#pausing = false;
    this.#last = 0;
  }
}

function release(stream) {
  for (const track of stream?.getTracks() ?? []) {
    track.onended = track.onmute = track.onunmute = null;
    track.stop();
  }
}
