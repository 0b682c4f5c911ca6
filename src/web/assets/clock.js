// Two clock faces. The server keeps the time; between its answers the faces go on by
// themselves.

const TENTHS_BELOW_MS = 20_000;

/** `1:05`, and `0:09.4` where tenths count. */
export function formatTime(ms) {
  // Up, so that 0:00 is shown only when the time is out.
  if (ms < TENTHS_BELOW_MS) {
    const tenths = Math.ceil(ms / 100);
    return `0:${String(Math.floor(tenths / 10)).padStart(2, "0")}.${tenths % 10}`;
  }
  const seconds = Math.ceil(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  const clock = (n) => String(n).padStart(2, "0");
  if (minutes < 60) return `${minutes}:${clock(seconds % 60)}`;
  return `${Math.floor(minutes / 60)}:${clock(minutes % 60)}:${clock(seconds % 60)}`;
}

export class Clocks {
  /** `faces`: side -> element; `onOut` is called when the running time is out. */
  constructor(faces, onOut) {
    this.faces = faces;
    this.onOut = onOut;
    this.clock = null;
    setInterval(() => this.show(), 50);
  }

  /** Takes over what the server says; null: nobody looks at the time. */
  set(clock) {
    this.clock = clock;
    this.since = performance.now();
    this.told = false;
    this.show();
  }

  left(side) {
    const { left_ms, running } = this.clock;
    const left = left_ms[side === "first" ? 0 : 1];
    return running === side ? Math.max(0, left - (performance.now() - this.since)) : left;
  }

  show() {
    for (const side of ["first", "second"]) {
      const face = this.faces(side);
      face.hidden = this.clock === null;
      if (this.clock === null) continue;
      const left = this.left(side);
      const text = formatTime(left);
      if (face.textContent !== text) face.textContent = text;
      face.classList.toggle("running", this.clock.running === side);
      face.classList.toggle("short", left < TENTHS_BELOW_MS / 2);
    }
    const running = this.clock?.running;
    if (running && !this.told && this.left(running) === 0) {
      this.told = true;
      this.onOut();
    }
  }
}
