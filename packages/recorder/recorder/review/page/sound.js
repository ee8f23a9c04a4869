// Plays the pieces of sound on the recording's clock, and knows how loud they are.

export class Sound {
  playing = false;

  constructor(all, tick) {
    this.pieces = all.audio;
    this.duration = all.duration;
    this.tick = tick;
    this.player = new Audio();
  }

  async peaks() {
    const loud = [];
    for (const piece of this.pieces) {
      const answer = await fetch(`peaks/${piece.name}`);
      loud.push({ t: piece.t, seconds: piece.seconds, values: answer.ok ? await answer.json() : [] });
    }
    return loud;
  }

  toggle(t) {
    if (this.playing) return this.stop();
    this.playing = true;
    this.t = t >= this.duration ? 0 : t;
    this.last = performance.now();
    this.piece = null;
    this.frame();
  }

  stop() {
    this.playing = false;
    this.player.pause();
  }

  frame() {
    if (!this.playing) return;
    const now = performance.now(), piece = this.pieces.find((p) => p.t <= this.t && this.t < p.t + p.seconds);
    if (piece !== this.piece) {
      this.piece = piece;
      this.player.pause();
      if (piece) {
        this.player.src = `audio/${piece.name}`;
        this.player.currentTime = this.t - piece.t;
        this.player.play().catch(() => {});
      }
    }
    // The sound leads where there is some; where there is none, the clock does.
    const heard = this.piece && !this.player.paused && this.player.readyState > 2;
    this.t = heard ? this.piece.t + this.player.currentTime : this.t + (now - this.last) / 1000;
    this.last = now;
    this.tick(this.t);
    requestAnimationFrame(() => this.frame());
  }
}
