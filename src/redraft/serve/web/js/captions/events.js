// What announces news as events, and the keys of captions in them.

export const keyOf = ({ utterance, language }) => JSON.stringify([utterance, language]);

export class Source extends EventTarget {
  /** Dispatch an event with a detail. */
  emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  /** Dispatch the events of these types of another source, too. */
  forward(source, types) {
    for (const type of types) source.addEventListener(type, ({ detail }) => this.emit(type, detail));
  }
}
