// Captions for streaming programs: the last lines, large, on a transparent background, as the element `redraft-captions`.

const TITLES = {
  live: "live",
  over: "ended",
  next: "waiting for the next session",
  waiting: "reconnecting",
  absent: "waiting for the session",
  before: "waiting for the session",
  paused: "paused",
};

const captions = document.createElement("redraft-captions");
// The title is for the operator; the audience does not see it.
let reason = "";
const show = (words) => (document.title = `Redraft: ${words}`);
captions.addEventListener("problem", ({ detail }) => detail.fatal && show((reason = detail.message)));
captions.addEventListener("state", ({ detail }) => {
  if (detail !== "waiting") reason = "";
  show(reason || `overlay, ${TITLES[detail]}`);
});
captions.id = "overlay";
captions.query = location.search;
document.querySelector("main").append(captions);
