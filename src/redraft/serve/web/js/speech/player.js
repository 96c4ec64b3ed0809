// Plays timed updates, no faster than the server answers, and continues after a reload.

/** Number of unanswered utterances at which the next one waits, and the milliseconds between two looks. */
const MOST_OPEN = 32;
const LOOK = 50;

/**
 * @param {import("../net/memory.js").Memory} memory where plan and position are kept
 * @param {(utterance: string, text: string, final: boolean) => void} send takes an update
 * @param {() => void} changed called when playing begins, ends or has gone on
 * @param {ReturnType<typeof import("./sound.js").makeSound>} sound the recording of a recorded plan
 */
export function makePlayer(memory, send, changed, sound) {
  /** What is played and how far; stored as well, unless the storage is full. */
  let plan = memory.read("plan");
  let position = memory.read("position");
  let timer = null;

  /**
   * @param {{utterance: string, text: string, final: boolean, time: number}[]} updates in the order of time
   * @param {string} run prefix of its utterances' names
   * @param {number} speed how much faster than real time
   * @param {boolean} recorded whether the plan belongs to the recording of the talk
   */
  function play(updates, run, speed, recorded) {
    plan = updates;
    position = { run, speed, recorded, next: 0 };
    memory.write("plan", plan);
    memory.write("position", position);
    resume();
  }

  function resume() {
    if (!plan || !position) return;
    const [updates, reached] = [plan, position]; // whatever an update leads to
    clearTimeout(timer);
    const time = (place) => (updates[place]?.time ?? 0) * (1000 / reached.speed);
    const begun = performance.now() - time(reached.next - 1);
    if (reached.recorded) sound.play(() => ((performance.now() - begun) * reached.speed) / 1000, reached.speed);
    const step = () => {
      while (reached.next < updates.length && begun + time(reached.next) <= performance.now() && memory.open.size < MOST_OPEN) {
        const { utterance, text, final } = updates[reached.next];
        reached.next += 1;
        send(`${reached.run}.${utterance}`, text, final);
      }
      memory.write("position", reached);
      if (reached.next >= updates.length) {
        stop();
        return;
      }
      const due = begun + time(reached.next) - performance.now();
      timer = setTimeout(step, due > 0 ? due : LOOK);
      changed();
    };
    step();
  }

  function stop() {
    clearTimeout(timer);
    sound.stop();
    plan = position = null;
    memory.forget("plan");
    memory.forget("position");
    changed();
  }

  return {
    play,
    resume,
    stop,
    /** The run that is being played, or null. */
    get run() {
      return position?.run ?? null;
    },
    /** The speed of the run. */
    get speed() {
      return position?.speed ?? 1;
    },
    /** Number of utterances of the plan that were sent, and of all; null if nothing is played. */
    get progress() {
      if (!position || !plan) return null;
      return { sent: Number(plan[position.next - 1]?.utterance ?? 0), all: Number(plan.at(-1).utterance) };
    },
  };
}
