// The recording of the demo talk, played beside its captions.

/** Maximum difference in seconds between sound and captions. */
const DRIFT = 0.2;

/**
 * @param {HTMLAudioElement} audio the recording
 * @param {HTMLInputElement} wanted checkbox that turns the sound on
 */
export function makeSound(audio, wanted) {
  /** Returns the position in seconds; null when it is not played. */
  let now = null;

  const follow = () => {
    if (now && Math.abs(audio.currentTime - now()) > DRIFT) audio.currentTime = now();
  };
  const start = async () => {
    follow();
    try {
      await audio.play();
      follow();
    } catch {
      // Stopped before the start, not allowed before a click, or an unsupported format.
    }
  };
  const mute = () => {
    audio.muted = !wanted.checked;
    if (wanted.checked && now) start(); // a reloaded page may not play anything before a click
  };
  wanted.addEventListener("change", mute);
  mute();
  return {
    /** Play where `position` says, in seconds, and so much faster than real time. */
    play(position, speed) {
      now = position;
      audio.playbackRate = audio.defaultPlaybackRate = speed;
      start();
    },
    stop() {
      now = null;
      audio.pause();
    },
  };
}
