// Requests to this server over HTTP, and the addresses of its websockets.

import { Backoff } from "./backoff.js";

/** Milliseconds within which a response must come. */
const LONGEST = 20_000;

/**
 * Returns the status with the body or the error; status 0 if there was no response.
 *
 * @param {string | URL} path
 * @param {object} [asked] body to post
 * @param {string} [key] API key
 */
export async function ask(path, asked, key) {
  const headers = { ...(asked && { "content-type": "application/json" }), ...(key && { authorization: `Bearer ${key}` }) };
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), LONGEST);
  try {
    const answer = await fetch(path, { method: asked ? "POST" : "GET", headers, body: asked && JSON.stringify(asked), signal: late.signal });
    const body = await answer.json();
    return answer.ok ? { status: answer.status, body } : { status: answer.status, body: null, error: body.error };
  } catch {
    return { status: 0, body: null };
  } finally {
    clearTimeout(timer);
  }
}

/** Ask until there is a response; `waiting` is called before every retry. */
export async function insist(path, waiting) {
  const backoff = new Backoff();
  for (;;) {
    const { body } = await ask(path);
    if (body !== null) return body;
    waiting();
    await new Promise((go) => setTimeout(go, backoff.next()));
  }
}

/** The address of a websocket of a server, by default of this one. */
export function address(path, server = location.href) {
  const url = new URL(path, server);
  url.protocol = url.protocol.replace("http", "ws");
  return url;
}
