// Captions for streaming programs: big, on a transparent ground, the last lines only.

import { Captions } from "./captions.js";
import { optionsOf } from "./overlay-options.js";
import { Viewer } from "./viewer.js";

/** Final captions that are kept: more than fit. */
const MOST = 12;
const TITLES = { live: "live", over: "ended", waiting: "reconnecting", absent: "waiting for the session" };

const place = document.getElementById("overlay");

function problem(sentence) {
  const line = document.getElementById("problem");
  line.textContent = sentence;
  line.hidden = !sentence;
}

function style({ size, lines, colour, outline, align, unstable }) {
  const values = { size: `${size}px`, lines, colour, outline, align };
  for (const [name, value] of Object.entries(values)) place.style.setProperty(`--${name}`, value);
  place.dataset.unstable = unstable;
}

function show(options) {
  let target = options.target;
  let captions = null;
  const viewer = new Viewer(options.session);
  // Without a language in the address, the first one that is spoken of.
  const shown = (message) => {
    target ??= message.target;
    captions ??= new Captions(place, target, { spoken: false, most: MOST });
    return message.target === target;
  };
  viewer.addEventListener("partial", ({ detail }) => {
    if (shown(detail)) captions.partial(detail.utterance, detail.stable, detail.unstable);
  });
  viewer.addEventListener("final", ({ detail }) => {
    if (shown(detail)) captions.final(detail.utterance, detail.text);
  });
  // Viewers of the stream are not shown what is amiss; the operator finds it in the title.
  viewer.addEventListener("problem", ({ detail }) => (document.title = `Redraft: ${detail.sentence}`));
  viewer.addEventListener("state", ({ detail }) => (document.title = `Redraft: overlay, ${TITLES[detail]}`));
  viewer.connect();
}

try {
  const options = optionsOf(location.search);
  style(options);
  show(options);
} catch (error) {
  if (!(error instanceof RangeError)) throw error;
  problem(error.message);
}
