// What is spoken, as the browser's own recognition hears it, where there is one.

const Recognition = globalThis.SpeechRecognition ?? globalThis.webkitSpeechRecognition;

export const canListen = Boolean(Recognition);
export const DEAF = "This browser has no speech recognition. Chrome, Edge and Safari have; or type, or paste a text.";

/** What recognition cannot go on after. */
const HOPELESS = {
  "not-allowed": "The browser blocks the microphone on this page. Check its settings; the page also needs https.",
  "service-not-allowed": "The browser does not allow speech recognition here.",
  "language-not-supported": "The browser does not recognise this language.",
  "audio-capture": "There is no microphone.",
};

export class Speech {
  #recognition = null;
  #changed;
  #problem;

  /**
   * @param {() => void} changed called when listening begins or ends
   * @param {(sentence: string) => void} problem told what goes wrong
   */
  constructor(changed, problem) {
    this.#changed = changed;
    this.#problem = problem;
  }

  get listening() {
    return this.#recognition !== null;
  }

  /** Listen until `stop`; what is heard goes to the session. */
  start(language, session) {
    const recognition = new Recognition();
    let run = session.nextRun();
    Object.assign(recognition, { lang: language, continuous: true, interimResults: true });
    recognition.onresult = ({ resultIndex, results }) => {
      for (let index = resultIndex; index < results.length; index++) {
        session.send(`${run}.${index}`, results[index][0].transcript.trim(), results[index].isFinal);
      }
    };
    recognition.onerror = ({ error }) => {
      if (error === "no-speech" || error === "aborted") return;
      this.#problem(HOPELESS[error] ?? `Speech recognition failed (${error}); trying again.`);
      if (error in HOPELESS) this.stop();
    };
    // Browsers stop listening after a silence, and count results from 0 when they begin again.
    recognition.onend = () => {
      session.finishOpen((utterance) => utterance.startsWith(`${run}.`));
      if (this.#recognition !== recognition) return;
      run = session.nextRun();
      setTimeout(() => this.#recognition === recognition && recognition.start(), 300);
    };
    this.#recognition = recognition;
    recognition.start();
    this.#changed();
  }

  stop() {
    const recognition = this.#recognition;
    this.#recognition = null;
    recognition?.stop();
    this.#changed();
  }
}
