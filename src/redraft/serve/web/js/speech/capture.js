// Runs on the browser's audio thread: converts the microphone's signal to frames of 0.1 s of 16-bit samples at 16 kHz, and
// posts each with its peak, 0 to 1, and its end time in milliseconds.

import { Resampler } from "./resample.js";

const RATE = 16_000;
const FRAME = RATE / 10;

class Capture extends AudioWorkletProcessor {
  #resampler = new Resampler(sampleRate, RATE);
  #frame = new Int16Array(FRAME);
  #filled = 0;
  #peak = 0;

  process([channels]) {
    if (channels.length) for (const sample of this.#resampler.push(mixed(channels))) this.#add(Math.max(-1, Math.min(1, sample)));
    return true;
  }

  #add(sample) {
    this.#frame[this.#filled++] = Math.round(sample * 32767);
    this.#peak = Math.max(this.#peak, Math.abs(sample));
    if (this.#filled < FRAME) return;
    // Taken here, since the page may be too busy to receive it at once.
    this.port.postMessage({ samples: this.#frame, peak: this.#peak, time: Date.now() }, [this.#frame.buffer]);
    this.#frame = new Int16Array(FRAME);
    this.#filled = this.#peak = 0;
  }
}

function mixed(channels) {
  if (channels.length === 1) return channels[0];
  return channels[0].map((_, place) => channels.reduce((sum, channel) => sum + channel[place], 0) / channels.length);
}

registerProcessor("capture", Capture);
