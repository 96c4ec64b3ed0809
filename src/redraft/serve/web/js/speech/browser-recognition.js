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

/**
 * @param {object} on callbacks
 * @param {(state: string) => void} on.state called with "asking", "listening", "off", "denied" or "error"
 * @param {(sentence: string) => void} on.problem called with errors
 */
export function makeBrowserRecognition(on) {
  let listening = null;
  /** Receives the results; null after the end, when browsers still send some. */
  let receiver = null;

  /** Listen until `stop`; results go to the session. */
  function start(session, language) {
    const recognition = new Recognition();
    receiver = session;
    let run = session.nextRun();
    Object.assign(recognition, { lang: language, continuous: true, interimResults: true });
    recognition.onstart = () => listening === recognition && on.state("listening");
    recognition.onresult = ({ resultIndex, results }) => {
      if (receiver !== session) return;
      for (let index = resultIndex; index < results.length; index++) {
        session.send(`${run}.${index}`, results[index][0].transcript.trim(), results[index].isFinal);
      }
    };
    recognition.onerror = ({ error }) => {
      if (error === "no-speech" || error === "aborted") return;
      const [state, sentence] = HOPELESS[error] ?? ["asking", `Speech recognition failed (${error}); trying again.`];
      if (error in HOPELESS) stop(state);
      on.problem(sentence);
    };
    // Browsers stop listening after a silence, and number results from 0 after a restart.
    recognition.onend = () => {
      if (receiver !== session) return;
      session.finishOpen((utterance) => utterance.startsWith(`${run}.`));
      if (listening !== recognition) return;
      run = session.nextRun();
      setTimeout(() => listening === recognition && recognition.start(), 300);
    };
    listening = recognition;
    on.state("asking");
    recognition.start();
  }

  function stop(state = "off") {
    const recognition = listening;
    listening = null;
    recognition?.stop();
    on.state(state);
  }

  /** Detach from the session. */
  function leave() {
    if (listening) stop();
    receiver = null;
  }

  return { start, stop, leave, listening: () => listening !== null };
}
