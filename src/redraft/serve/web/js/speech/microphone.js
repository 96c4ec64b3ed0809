// The microphone, as frames of 16-bit samples at 16 kHz.

const RATE = 16_000;

/** Errors of opening it. */
const PROBLEMS = {
  NotAllowedError: ["denied", "The browser does not allow this page to use the microphone. Allow it in the site's settings, then try again."],
  NotFoundError: ["error", "No microphone was found."],
  NotReadableError: ["error", "The microphone cannot be used. Perhaps another program is using it."],
};
const INSECURE = "Browsers allow the microphone only on https pages and on the server's own machine.";

/**
 * @param {object} on callbacks
 * @param {(samples: Int16Array, peak: number) => void} on.frame called with 0.1 s of audio and its peak, 0 to 1
 * @param {(samples: number) => void} on.missed called with the number of samples that the browser has lost
 * @param {(state: string, sentence?: string) => void} on.state called with "asking", "listening", "paused", "denied" or "error"
 */
export function makeMicrophone(on) {
  let stream = null;
  let context = null;
  let pausing = false;
  /** End time of the last frame in milliseconds; 0 before the first. */
  let last = 0;

  async function open() {
    on.state("asking");
    if (!navigator.mediaDevices?.getUserMedia || !globalThis.AudioWorkletNode) {
      on.state("error", INSECURE);
      return;
    }
    const ours = (context = new AudioContext());
    try {
      const opened = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1 } });
      if (ours !== context) {
        release(opened); // `close` was called meanwhile
        return;
      }
      stream = opened;
      await connect(ours, opened);
    } catch (error) {
      if (ours !== context) return;
      close();
      const [state, sentence] = PROBLEMS[error.name] ?? ["error", `The microphone cannot be opened: ${error.message}`];
      on.state(state, sentence);
    }
  }

  async function connect(ours, opened) {
    await ours.audioWorklet.addModule(new URL("capture.js", import.meta.url));
    await ours.resume();
    if (ours !== context) return;
    const capture = new AudioWorkletNode(ours, "capture", { numberOfOutputs: 0 });
    capture.port.onmessage = ({ data }) => ours === context && take(data);
    ours.createMediaStreamSource(opened).connect(capture);
    const [track] = opened.getAudioTracks();
    track.onended = lost;
    track.onmute = track.onunmute = ours.onstatechange = show;
    show();
  }

  function take({ samples, peak, time }) {
    // While the browser suspends the audio, its clock stops.
    const missing = last ? Math.round(((time - last) / 1000) * RATE) - samples.length : 0;
    if (missing > RATE) on.missed(missing);
    last = time;
    on.frame(samples, peak);
  }

  /** Pause or resume; a paused microphone sends silence. */
  function pause(wanted) {
    pausing = wanted;
    for (const track of stream?.getAudioTracks() ?? []) track.enabled = !pausing;
    if (!pausing) context?.resume();
    show();
  }

  /** Whether the browser has suspended the audio by itself. */
  const suspended = () => context !== null && context.state !== "running";

  function show() {
    if (!stream) return;
    const [track] = stream.getAudioTracks();
    if (pausing) on.state("paused");
    else if (suspended()) on.state("paused", "The browser has paused the microphone. Press Resume to continue.");
    else if (track.muted) on.state("paused", "The system has muted the microphone.");
    else on.state("listening");
  }

  function lost() {
    close();
    on.state("error", "The microphone has been disconnected.");
  }

  /** Release the device. */
  function close() {
    release(stream);
    context?.close();
    stream = context = null;
    pausing = false;
    last = 0;
  }

  return { open, pause, suspended, close };
}

function release(stream) {
  for (const track of stream?.getTracks() ?? []) {
    track.onended = track.onmute = track.onunmute = null;
    track.stop();
  }
}
