// Resamples audio by windowed sinc interpolation.  Does not use the browser.

/** Zero crossings of the filter on each side; more make it steeper. */
const CROSSINGS = 24;
/** Cutoff of the filter, relative to the narrower band, to avoid aliasing. */
const EDGE = 0.92;

export class Resampler {
  #phases;
  #step;
  #half;
  #cut;
  #kernels = new Map();
  #input;
  /** Number of input samples before the kept ones, and of the next output. */
  #before;
  #next = 0;

  /**
   * @param {number} from input samples per second
   * @param {number} to output samples per second
   */
  constructor(from, to) {
    const common = divisor(from, to);
    this.#phases = to / common;
    this.#step = from / common;
    this.#cut = EDGE * Math.min(1, to / from);
    this.#half = Math.ceil(CROSSINGS / this.#cut);
    this.#input = new Float32Array(this.#half); // silence before the beginning
    this.#before = -this.#half;
  }

  /** Resample more input; both are a Float32Array. */
  push(input) {
    this.#input = joined(this.#input, input);
    const end = this.#before + this.#input.length;
    const made = [];
    for (let place; (place = Math.floor((this.#next * this.#step) / this.#phases)) + this.#half < end; this.#next++) {
      const kernel = this.#kernel((this.#next * this.#step) % this.#phases);
      const first = place - this.#half + 1 - this.#before;
      let sum = 0;
      for (let tap = 0; tap < kernel.length; tap++) sum += kernel[tap] * this.#input[first + tap];
      made.push(sum);
    }
    const used = Math.floor((this.#next * this.#step) / this.#phases) - this.#half + 1 - this.#before;
    if (used > 0) {
      this.#input = this.#input.slice(used);
      this.#before += used;
    }
    return Float32Array.from(made);
  }

  /** The weights of the inputs around an output at a phase between two of them. */
  #kernel(phase) {
    if (!this.#kernels.has(phase)) {
      const weights = Array.from({ length: 2 * this.#half }, (_, tap) => this.#weight(tap - this.#half + 1 - phase / this.#phases));
      const sum = weights.reduce((total, weight) => total + weight, 0);
      this.#kernels.set(phase, Float32Array.from(weights, (weight) => weight / sum));
    }
    return this.#kernels.get(phase);
  }

  #weight(distance) {
    const angle = Math.PI * distance * this.#cut;
    const sinc = angle ? Math.sin(angle) / angle : 1;
    return sinc * Math.cos((Math.PI / 2) * Math.min(1, Math.abs(distance) / this.#half)) ** 2;
  }
}

function joined(first, second) {
  const made = new Float32Array(first.length + second.length);
  made.set(first);
  made.set(second, first.length);
  return made;
}

function divisor(a, b) {
  return b ? divisor(b, a % b) : a;
}
