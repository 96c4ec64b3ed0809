// The captions of somebody else's session, to be read only, in the languages that the viewer chooses.

import { Columns } from "./columns.js";
import { LanguagePicker } from "./picker.js";
import { problem } from "./problem.js";
import { showState } from "./state.js";
import { Viewer } from "./viewer.js";

const SENTENCES = {
  waiting: "The connection is lost. It is tried again by itself.",
  absent: "There is no such session now. This page waits for it: captions appear as soon as it begins.",
};

const place = document.getElementById("captions");
const viewer = new Viewer(new URLSearchParams(location.search).get("session") ?? "");
let columns = null;

viewer.addEventListener("about", ({ detail }) => {
  if (columns) return;
  columns = new Columns(place, detail.targets);
  new LanguagePicker(document.getElementById("languages"), detail.targets, columns);
});
viewer.addEventListener("partial", ({ detail }) => columns.partial(detail));
viewer.addEventListener("final", ({ detail }) => columns.final(detail));
viewer.addEventListener("problem", ({ detail }) => problem(detail.sentence));
viewer.addEventListener("state", ({ detail }) => {
  showState(detail, SENTENCES);
  if (detail === "live") problem("");
});
viewer.connect();
