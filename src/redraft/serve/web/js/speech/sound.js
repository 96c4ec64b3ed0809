// The recording of the demo talk, played beside its captions.

/** Maximum difference in seconds between sound and captions. */
const DRIFT = 0.2;

export class Sound {
  #audio;
  #now = () => 0;

  /**
   * @param {HTMLAudioElement} audio the recording
   * @param {HTMLInputElement} wanted checkbox that turns the sound on
   */
  constructor(audio, wanted) {
    this.#audio = audio;
    const mute = () => {
      audio.muted = !wanted.checked;
      // A reloaded page may not play anything before a click.
      if (wanted.checked && audio.dataset.playing) this.#start();
    };
    wanted.addEventListener("change", mute);
    mute();
  }

  /**
   * @param {() => number} now returns the position in seconds
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
      // Stopped before the start, not allowed before a click, or an unsupported format.
    }
  }

  #follow() {
    if (Math.abs(this.#audio.currentTime - this.#now()) > DRIFT) this.#audio.currentTime = this.#now();
  }
}
