// Reading mode: complete lines that never change (docs/design.md), shown when the text has gone past them and they have
// stood, or waited, long enough; as redraft.captions.formats.rows, and tests/captions/reading.json for both.

import { Source, keyOf } from "./events.js";

/** The server's rules of where a line may be broken (redraft.captions.breaks). */
const { default: RULES } = await import("./breaks.js");
const pattern = (name, flags = "u") => new RegExp(RULES[name], flags);
const UNIT = pattern("unit", "gu");
const SPACE = pattern("space", "gu");
const RUN = pattern("run", "gu");
const BEFORE_CONSONANT = pattern("before_consonant");
const BEHIND = pattern("behind", "uy");
/** The score above which a Thai word ends at a place. */
const HALF = Object.values(RULES.thai).flatMap(Object.values).reduce((sum, each) => sum + each, 0) / 2;
/** What takes two cells, Unicode's East_Asian_Width W and F, and none: marks, and what has no form of its own. */
const WIDE =
  /(?!\p{RI})[\u1100-\u115f\u2329\u232a\u2630-\u2637\u268a-\u268f\u2e80-\u303e\u3041-\u3247\u3250-\ua4cf\ua960-\ua97f\uac00-\ud7af\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{16fe0}-\u{18dff}\u{1aff0}-\u{1b2ff}\u{1d300}-\u{1d376}\u{1f200}-\u{1f265}\u{20000}-\u{3fffd}\p{Emoji_Presentation}]/u;
const NONE = /(?![\u00ad\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}])[\p{Mn}\p{Me}\p{Cf}\p{Cc}\p{Zl}\p{Zp}\u1160-\u11ff\u3164\ud7b0-\ud7fb]/u;
/** Emoji of several characters, which take two cells together. */
const JOINED = /^(?:\p{RI}\p{RI}|\p{Emoji}\ufe0f|\p{Emoji_Presentation})/u;
/** Seconds for which a line must have stood, and for which it waits at most. */
const PATIENCE = 1;
const LONGEST = 4;
/** Milliseconds between two looks at lines that wait. */
const TICK = 250;

const SEGMENTER = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** The characters of a text with their marks, also those of Burmese that are graphemes of their own. */
function characters(text) {
  const found = [];
  for (const { segment } of SEGMENTER.segment(text)) {
    if (found.length && /^\p{Mc}/u.test(segment)) found.push(found.pop() + segment);
    else found.push(segment);
  }
  return found;
}

/** The width of a text in character cells. */
export const cells = (text) => characters(text).reduce((sum, each) => sum + cellsOf(each), 0);

function cellsOf(grapheme) {
  if (JOINED.test(grapheme)) return 2;
  return Math.min(2, [...grapheme].reduce((sum, each) => sum + (NONE.test(each) ? 0 : WIDE.test(each) ? 2 : 1), 0));
}

/** Units in lines of at most `width` cells; a line is broken within a word only if that is longer. */
export function broken(units, width) {
  const lines = [];
  let used = 0;
  for (const word of words(units)) {
    const whole = cells(word.join("").trimEnd()) <= width;
    for (const part of whole ? [word] : word.map((unit) => [unit])) {
      const text = part.join("");
      if (!lines.length || used + cells(text.trimEnd()) > width) {
        lines.push([]);
        used = 0;
      }
      lines.at(-1).push(...part);
      used += cells(text);
    }
  }
  return lines;
}

/** The units of each word. */
function words(units) {
  const inside = new Set();
  for (const { 0: run, index } of units.join("").matchAll(RUN)) {
    for (let place = 1; place < run.length; place++) if (!ends(run, place)) inside.add(index + place);
  }
  const found = [];
  let end = 0;
  for (const unit of units) {
    if (!inside.has(end)) found.push([]);
    found.at(-1).push(unit);
    end += unit.length;
  }
  return found;
}

/** Whether a word or syllable of a run ends at a place within it. */
function ends(run, place) {
  BEHIND.lastIndex = place;
  if (BEFORE_CONSONANT.test(run[place - 1]) || BEHIND.test(run)) return false;
  if (run < "\u0e01" || run > "\u0e5c") return true; // not Thai
  let score = 0;
  for (const [name, scores] of Object.entries(RULES.thai)) {
    const from = place + Number(name[2]) - (name[0] === "B" ? 3 : 4); // UW4, BW3 and TW4 begin at the place
    const to = from + "UBT".indexOf(name[0]) + 1; // of one, two and three characters
    if (from >= 0 && to <= run.length) score += scores[run.slice(from, to)] ?? 0;
  }
  return score > HALF;
}

/** How many of `units` stand for those before a place of the text that went on with `behind`, as `seam` in
    redraft.captions.align: the beginning of `units` with the smallest sum of edit distances on both sides. */
export function seam(before, behind, units) {
  const same = before.findIndex((unit, place) => unit !== units[place]);
  if (same < 0) return before.length;
  const old = before.slice(same);
  const rest = units.slice(same, same + 2 * (old.length + behind.length) + 1);
  const [left, known] = distances(old, rest, (count) => count);
  const [right, following] = distances([...behind].reverse(), [...rest].reverse(), () => 0).map((each) => each.reverse());
  const rank = (count) => {
    const ends = count > 0 && rest[count - 1] === old.at(-1);
    const begins = behind.length > 0 && count < rest.length && rest[count] === behind[0];
    const all = left[count] + right[count];
    return [all, -known[count] - following[count], !(ends || begins), !ends, Math.abs(count - old.length)];
  };
  const worse = (one, other) => one.map((each, at) => each - other[at]).find(Boolean) > 0;
  return same + [...left.keys()].reduce((best, count) => (worse(rank(best), rank(count)) ? count : best));
}

/** The edit distance of units to each beginning of others, which costs `first` before them, and what both have in
    common. */
function distances(old, units, first) {
  let [row, common] = [[...units.keys(), units.length].map(first), [...units, 0].fill(0)];
  for (const unit of old) {
    const [next, more] = [[row[0] + 1], [0]];
    units.forEach((each, at) => {
      next.push(Math.min(row[at + 1] + 1, next[at] + 1, row[at] + (unit !== each)));
      more.push(unit === each ? common[at] + 1 : Math.max(common[at + 1], more[at]));
    });
    [row, common] = [next, more];
  }
  return [row, common];
}

/** The lines of one utterance in one language. */
export class Reading {
  #width;
  #begun = [];
  #behind = [];
  #waiting = [];

  constructor(width) {
    this.#width = width;
  }

  /** The lines that are complete now; `now` is in seconds. */
  read({ text, final }, now) {
    const units = text.replace(SPACE, " ").trim().match(UNIT) ?? [];
    const bare = units.map((unit) => unit.replace(/ $/u, ""));
    const place = seam(this.#begun, this.#behind, bare);
    if (place < units.length) { // else what is missing may come back
      this.#behind = bare.slice(place);
      if (place >= this.#begun.length) this.#begun = bare.slice(0, place);
    }
    const lines = broken(units.slice(place), this.#width);
    const full = final ? lines : lines.slice(0, -1);
    this.#waiting = full.map((line, place) => {
      const before = this.#waiting[place];
      const same = before && before.line.join("") === line.join("");
      return { line, stood: same ? before.stood : now, waited: before?.waited ?? now };
    });
    return this.due(final ? Infinity : now);
  }

  /** The lines that have become complete since. */
  due(now) {
    const found = [];
    while (this.#waiting.length && (now - this.#waiting[0].stood >= PATIENCE || now - this.#waiting[0].waited >= LONGEST)) {
      const { line } = this.#waiting.shift();
      this.#begun.push(...this.#behind.splice(0, line.length));
      found.push(line.join("").trim());
    }
    return found;
  }
}

const seconds = () => performance.now() / 1000;

/** A viewer or a session whose captions are lines, each final and with a name of its own. */
export class ReadingLines extends Source {
  #width;
  #timer = setInterval(() => this.#pass(seconds()), TICK);
  /** Utterance and language -> number of lines and, until it has ended, its newest caption and what breaks it. */
  #known = new Map();

  constructor(source, width) {
    super();
    this.#width = width;
    source.addEventListener("restart", () => this.#known.clear());
    this.forward(source, ["about", "pause", "done", "failed", "problem", "state", "restart"]);
    source.addEventListener("partial", ({ detail }) => this.read(detail, false));
    source.addEventListener("final", ({ detail }) => this.read(detail, true));
    source.addEventListener("hide", ({ detail }) => this.#hide(detail));
  }

  stop() {
    clearInterval(this.#timer);
  }

  /** Take a caption; lines that are complete come as "final". */
  read(caption, final) {
    const key = keyOf(caption);
    const now = seconds();
    this.#pass(now); // what is due is not revised
    if (!this.#known.has(key)) {
      this.#pass(Infinity, caption.language); // the utterances before may never have a final caption
      this.#known.set(key, { reading: new Reading(this.#width), count: 0 });
    }
    const known = this.#known.get(key);
    if (known.hidden) Object.assign(known, { reading: new Reading(this.#width), count: 0, hidden: false }); // it is shown again
    if (!known.reading) return; // after a drop all that there was comes again
    known.caption = caption;
    this.#show(known, known.reading.read({ text: caption.text, final }, now));
    if (final) this.#end(key);
  }

  /** Show the lines, of one language or of all, that are complete by now. */
  #pass(now, language) {
    for (const known of this.#known.values()) {
      if (known.reading && (!language || known.caption.language === language)) this.#show(known, known.reading.due(now));
    }
  }

  #show(known, lines) {
    for (const text of lines) {
      known.count += 1;
      this.emit("final", { ...known.caption, utterance: `${known.caption.utterance}.${known.count}`, text, source: "" });
    }
  }

  /** Take no more captions of an utterance; returns the number of its lines. */
  #end(key) {
    const count = this.#known.get(key)?.count ?? 0;
    this.#known.set(key, { count });
    return count;
  }

  #hide(detail) {
    for (let count = this.#end(keyOf(detail)); count; count--) {
      this.emit("hide", { ...detail, utterance: `${detail.utterance}.${count}` });
    }
    this.#known.get(keyOf(detail)).hidden = detail.hidden;
  }
}
