// The microphone, as frames of 16-bit samples at 16 kHz.

const RATE = 16_000;

/** Errors of opening it. */
const PROBLEMS = {
  NotAllowedError: ["denied", "The browser does not allow this page to use the microphone. Allow it in the site's settings, then try again."],
  NotFoundError: ["error", "No microphone was found."],
  NotReadableError: ["error", "The microphone cannot be used. Perhaps another program is using it."],
};
const INSECURE = "Browsers allow the microphone only on https pages and on the server's own machine.";

export class Microphone {
  #on;
  #stream = null;
  #context = null;
  #pausing = false;
  /** End time of the last frame in milliseconds; 0 before the first. */
  #last = 0;

  /**
   * @param {object} on callbacks
   * @param {(samples: Int16Array, peak: number) => void} on.frame called with 0.1 s of audio and its peak, 0 to 1
   * @param {(samples: number) => void} on.missed called with the number of samples that the browser has lost
   * @param {(state: string, sentence?: string) => void} on.state called with "asking", "listening", "paused", "denied" or "error"
   */
  constructor(on) {
    this.#on = on;
  }

  async open() {
    this.#on.state("asking");
    if (!navigator.mediaDevices?.getUserMedia || !globalThis.AudioWorkletNode) {
      this.#on.state("error", INSECURE);
      return;
    }
    const context = (this.#context = new AudioContext());
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1 } });
      if (context !== this.#context) {
        release(stream); // `stop` was called meanwhile
        return;
      }
      this.#stream = stream;
      await this.#connect(context, stream);
    } catch (error) {
      if (context !== this.#context) return;
      this.close();
      const [state, sentence] = PROBLEMS[error.name] ?? ["error", `The microphone cannot be opened: ${error.message}`];
      this.#on.state(state, sentence);
    }
  }

  async #connect(context, stream) {
    await context.audioWorklet.addModule(new URL("capture.js", import.meta.url));
    await context.resume();
    if (context !== this.#context) return;
    const capture = new AudioWorkletNode(context, "capture", { numberOfOutputs: 0 });
    capture.port.onmessage = ({ data }) => context === this.#context && this.#onFrame(data);
    context.createMediaStreamSource(stream).connect(capture);
    const [track] = stream.getAudioTracks();
    track.onended = () => this.#lost();
    track.onmute = track.onunmute = context.onstatechange = () => this.#show();
    this.#show();
  }

  #onFrame({ samples, peak, time }) {
    // While the browser suspends the audio, its clock stops.
    const missing = this.#last ? Math.round(((time - this.#last) / 1000) * RATE) - samples.length : 0;
    if (missing > RATE) this.#on.missed(missing);
    this.#last = time;
    this.#on.frame(samples, peak);
  }

  /** Pause or resume; a paused microphone sends silence. */
  pause(pausing) {
    this.#pausing = pausing;
    for (const track of this.#stream?.getAudioTracks() ?? []) track.enabled = !pausing;
    if (!pausing) this.#context?.resume();
    this.#show();
  }

  /** Whether the browser has suspended the audio by itself. */
  get suspended() {
    return this.#context !== null && this.#context.state !== "running";
  }

  #show() {
    if (!this.#stream) return;
    const [track] = this.#stream.getAudioTracks();
    if (this.#pausing) this.#on.state("paused");
    else if (this.suspended) this.#on.state("paused", "The browser has paused the microphone. Press Resume to continue.");
    else if (track.muted) this.#on.state("paused", "The system has muted the microphone.");
    else this.#on.state("listening");
  }

  #lost() {
    this.close();
    this.#on.state("error", "The microphone has been disconnected.");
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
