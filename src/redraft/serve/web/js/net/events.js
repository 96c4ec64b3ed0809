// What announces news as events.

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
