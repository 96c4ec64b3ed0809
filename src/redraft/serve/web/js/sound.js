// The recording of the demo talk, played beside its captions.

/** Seconds by which sound and captions may differ after the recording has been loaded. */
const DRIFT = 0.2;

export class Sound {
  #audio;
  #now = () => 0;

  /**
   * @param {HTMLAudioElement} audio the recording
   * @param {HTMLInputElement} wanted a checkbox: whether it is to be heard
   */
  constructor(audio, wanted) {
    this.#audio = audio;
    const mute = () => {
      audio.muted = !wanted.checked;
      // A page that was reloaded may play nothing before it is clicked.
      if (wanted.checked && audio.dataset.playing) this.#start();
    };
    wanted.addEventListener("change", mute);
    mute();
  }

  /**
   * @param {() => number} now seconds of the recording that have passed
   * @param {number} speed how much faster than real time
   */
  play(now, speed) {
    this.#now = now;
    this.#audio.dataset.playing = "true";
    this.#audio.playbackRate = this.#audio.defaultPlaybackRate = speed;
    this.#start();
  }

  stop() {
    delete this.#audio.dataset.playing;
    this.#audio.pause();
  }

  async #start() {
    this.#follow();
    try {
      await this.#audio.play();
      this.#follow();
    } catch {
      // Stopped before it had begun, not allowed before a click, or a format that the browser lacks.
    }
  }

  #follow() {
    if (Math.abs(this.#audio.currentTime - this.#now()) > DRIFT) this.#audio.currentTime = this.#now();
  }
}
