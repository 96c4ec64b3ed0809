// Plays timed updates, and continues after a reload.

export class Player {
  #memory;
  #send;
  #changed;
  #sound;
  #timer = null;

  /**
   * @param {import("./memory.js").Memory} memory where plan and position are kept
   * @param {(utterance: string, text: string, final: boolean) => void} send takes an update
   * @param {() => void} changed called when playing begins or ends
   * @param {import("./sound.js").Sound} sound the recording of a recorded plan
   */
  constructor(memory, send, changed, sound) {
    this.#memory = memory;
    this.#send = send;
    this.#changed = changed;
    this.#sound = sound;
  }

  /** The run that is being played, or null. */
  get run() {
    return this.#memory.read("position")?.run ?? null;
  }

  /**
   * @param {{utterance: string, text: string, final: boolean, time: number}[]} plan updates, in the order of time
   * @param {string} run prefix of its utterances' names
   * @param {number} speed how much faster than real time
   * @param {boolean} recorded whether the plan belongs to the recording of the talk
   */
  play(plan, run, speed, recorded) {
    this.#memory.write("plan", plan);
    this.#memory.write("position", { run, speed, recorded, next: 0 });
    this.resume();
  }

  resume() {
    const plan = this.#memory.read("plan");
    const position = this.#memory.read("position");
    if (!plan || !position) return;
    clearTimeout(this.#timer);
    this.#changed();
    const time = (place) => (plan[place]?.time ?? 0) * (1000 / position.speed);
    const begun = performance.now() - time(position.next - 1);
    if (position.recorded) this.#sound.play(() => ((performance.now() - begun) * position.speed) / 1000, position.speed);
    const step = () => {
      while (position.next < plan.length && begun + time(position.next) <= performance.now()) {
        const { utterance, text, final } = plan[position.next];
        position.next += 1;
        this.#memory.write("position", position);
        this.#send(`${position.run}.${utterance}`, text, final);
      }
      if (position.next < plan.length) this.#timer = setTimeout(step, begun + time(position.next) - performance.now());
      else this.stop();
    };
    step();
  }

  stop() {
    clearTimeout(this.#timer);
    this.#sound.stop();
    this.#memory.forget("plan");
    this.#memory.forget("position");
    this.#changed();
  }
}
