// Plays timed updates, no faster than the server answers, and continues after a reload.

/** Number of unanswered utterances at which the next one waits, and the milliseconds between two looks. */
const MOST_OPEN = 32;
const LOOK = 50;

export class Player {
  #memory;
  #send;
  #changed;
  #sound;
  #timer = null;
  /** What is played and how far; stored as well, unless the storage is full. */
  #plan = null;
  #position = null;

  /**
   * @param {import("../net/memory.js").Memory} memory where plan and position are kept
   * @param {(utterance: string, text: string, final: boolean) => void} send takes an update
   * @param {() => void} changed called when playing begins, ends or has gone on
   * @param {ReturnType<typeof import("./sound.js").makeSound>} sound the recording of a recorded plan
   */
  constructor(memory, send, changed, sound) {
    this.#memory = memory;
    this.#send = send;
    this.#changed = changed;
    this.#sound = sound;
    this.#plan = memory.read("plan");
    this.#position = memory.read("position");
  }

  /** The run that is being played, or null. */
  get run() {
    return this.#position?.run ?? null;
  }

  /** The speed of the run. */
  get speed() {
    return this.#position?.speed ?? 1;
  }

  /** Number of utterances of the plan that were sent, and of all; null if nothing is played. */
  get progress() {
    if (!this.#position || !this.#plan) return null;
    return { sent: Number(this.#plan[this.#position.next - 1]?.utterance ?? 0), all: Number(this.#plan.at(-1).utterance) };
  }

  /**
   * @param {{utterance: string, text: string, final: boolean, time: number}[]} plan updates, in the order of time
   * @param {string} run prefix of its utterances' names
   * @param {number} speed how much faster than real time
   * @param {boolean} recorded whether the plan belongs to the recording of the talk
   */
  play(plan, run, speed, recorded) {
    this.#plan = plan;
    this.#position = { run, speed, recorded, next: 0 };
    this.#memory.write("plan", plan);
    this.#memory.write("position", this.#position);
    this.resume();
  }

  resume() {
    const [plan, position] = [this.#plan, this.#position];
    if (!plan || !position) return;
    clearTimeout(this.#timer);
    const time = (place) => (plan[place]?.time ?? 0) * (1000 / position.speed);
    const begun = performance.now() - time(position.next - 1);
    if (position.recorded) this.#sound.play(() => ((performance.now() - begun) * position.speed) / 1000, position.speed);
    const step = () => {
      while (position.next < plan.length && begun + time(position.next) <= performance.now() && this.#memory.open.size < MOST_OPEN) {
        const { utterance, text, final } = plan[position.next];
        position.next += 1;
        this.#send(`${position.run}.${utterance}`, text, final);
      }
      this.#memory.write("position", position);
      if (position.next >= plan.length) {
        this.stop();
        return;
      }
      const due = begun + time(position.next) - performance.now();
      this.#timer = setTimeout(step, due > 0 ? due : LOOK);
      this.#changed();
    };
    step();
  }

  stop() {
    clearTimeout(this.#timer);
    this.#sound.stop();
    this.#plan = this.#position = null;
    this.#memory.forget("plan");
    this.#memory.forget("position");
    this.#changed();
  }
}
