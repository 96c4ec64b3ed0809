// The browser's own speech recognition, where there is one.

const Recognition = globalThis.SpeechRecognition ?? globalThis.webkitSpeechRecognition;

export const canRecognise = Boolean(Recognition);
export const NOT_HERE = "This browser has no speech recognition. Chrome, Edge and Safari have it. You can also type or paste a text.";

/** What recognition cannot go on after: how the microphone is then, and why. */
const HOPELESS = {
  "not-allowed": ["denied", "The browser blocks the microphone on this page. Check its settings; the page also needs https."],
  "service-not-allowed": ["denied", "The browser does not allow speech recognition here."],
  "language-not-supported": ["error", "The browser does not recognise this language."],
  "audio-capture": ["error", "There is no microphone."],
};

export class BrowserRecognition {
  #recognition = null;
  /** What takes the results; null once it is over, since browsers still give some then. */
  #session = null;
  #told;

  /**
   * @param {object} told
   * @param {(state: string) => void} told.state told "asking", "listening", "off", "denied" or "error"
   * @param {(sentence: string) => void} told.problem told what goes wrong
   */
  constructor(told) {
    this.#told = told;
  }

  get listening() {
    return this.#recognition !== null;
  }

  /** Listen until `stop`; what is heard goes to the session. */
  start(session, language) {
    const recognition = new Recognition();
    this.#session = session;
    let run = session.nextRun();
    Object.assign(recognition, { lang: language, continuous: true, interimResults: true });
    recognition.onstart = () => this.#recognition === recognition && this.#told.state("listening");
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
      this.#told.problem(sentence);
    };
    // Browsers stop listening after a silence, and count results from 0 when they begin again.
    recognition.onend = () => {
      if (this.#session !== session) return;
      session.finishOpen((utterance) => utterance.startsWith(`${run}.`));
      if (this.#recognition !== recognition) return;
      run = session.nextRun();
      setTimeout(() => this.#recognition === recognition && recognition.start(), 300);
    };
    this.#recognition = recognition;
    this.#told.state("asking");
    recognition.start();
  }

  stop(state = "off") {
    const recognition = this.#recognition;
    this.#recognition = null;
    recognition?.stop();
    this.#told.state(state);
  }

  /** Have nothing to do with the session any more. */
  leave() {
    if (this.listening) this.stop();
    this.#session = null;
  }
}
