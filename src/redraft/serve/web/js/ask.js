// Questions to this server over HTTP.

import { Backoff } from "./backoff.js";

/** The status and, if that is good, what was answered; status 0 where no answer came. */
export async function ask(path) {
  try {
    const answer = await fetch(path);
    return { status: answer.status, body: answer.ok ? await answer.json() : null };
  } catch {
    return { status: 0, body: null };
  }
}

/** What is answered in the end; `waiting` is called each time that there is none yet. */
export async function insist(path, waiting) {
  const backoff = new Backoff();
  for (;;) {
    const { body } = await ask(path);
    if (body !== null) return body;
    waiting();
    await new Promise((go) => setTimeout(go, backoff.next()));
  }
}
