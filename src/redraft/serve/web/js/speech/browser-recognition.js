// The browser's own speech recognition, where there is one.

const Recognition = globalThis.SpeechRecognition ?? globalThis.webkitSpeechRecognition;

export const canRecognise = Boolean(Recognition);
export const NOT_HERE = "This browser has no speech recognition. Chrome, Edge and Safari have it. You can also type or paste a text.";

/** Errors that end recognition: the microphone's state, and the reason. */
const HOPELESS = {
  "not-allowed": ["denied", "The browser blocks the microphone on this page. Check its settings; the page also needs https."],
  "service-not-allowed": ["denied", "The browser does not allow speech recognition here."],
  "language-not-supported": ["error", "The browser does not recognise this language."],
  "audio-capture": ["error", "There is no microphone."],
};

export class BrowserRecognition {
  #recognition = null;
  /** Receives the results; null after the end, when browsers still send some. */
  #session = null;
  #on;

  /**
   * @param {object} on callbacks
   * @param {(state: string) => void} on.state called with "asking", "listening", "off", "denied" or "error"
   * @param {(sentence: string) => void} on.problem called with errors
   */
  constructor(on) {
    this.#on = on;
  }

  get listening() {
    return this.#recognition !== null;
  }

  /** Listen until `stop`; results go to the session. */
  start(session, language) {
    const recognition = new Recognition();
    this.#session = session;
    let run = session.nextRun();
    Object.assign(recognition, { lang: language, continuous: true, interimResults: true });
    recognition.onstart = () => this.#recognition === recognition && this.#on.state("listening");
    recognition.onresult = ({ resultIndex, results }) => {
      if (this.#session !== session) return;
      for (let index = resultIndex; index < results.length; index++) {
        session.send(`${run}.${index}`, results[index][0].transcript.trim(), results[index].isFinal);
      }
    };
    recognition.onerror = ({ error }) => {
      if (error === "no-speech" || error === "aborted") return;
      const [state, sentence] = HOPELESS[error] ?? ["asking", `Speech recognition failed (${error}); trying again.`];
      if (error in HOPELESS) this.stop(state);
      this.#on.problem(sentence);
    };
    // Browsers stop listening after a silence, and number results from 0 after a restart.
    recognition.onend = () => {
      if (this.#session !== session) return;
      session.finishOpen((utterance) => utterance.startsWith(`${run}.`));
      if (this.#recognition !== recognition) return;
      run = session.nextRun();
      setTimeout(() => this.#recognition === recognition && recognition.start(), 300);
    };
    this.#recognition = recognition;
    this.#on.state("asking");
    recognition.start();
  }

  stop(state = "off") {
    const recognition = this.#recognition;
    this.#recognition = null;
    recognition?.stop();
    this.#on.state(state);
  }

  /** Detach from the session. */
  leave() {
    if (this.listening) this.stop();
    this.#session = null;
  }
}
