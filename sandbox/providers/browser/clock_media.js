// What plays: video and audio elements stand still and are sought; audio contexts stay suspended.

function installMedia(scope, disguise, engine, real, after, cancel) {
  const { replace, replaceGetter, replaceClass } = disguise;
  const MediaElement = scope.HTMLMediaElement;
  const players = new Map();
  if (MediaElement) installElements();
  if (scope.AudioContext) installContexts();

  function installElements() {
    const own = (name) => Object.getOwnPropertyDescriptor(MediaElement.prototype, name);
    const [position, rateOf] = [own("currentTime"), own("playbackRate")];
    const standStill = MediaElement.prototype.pause;
    const heard = [
      "play", "playing", "pause", "timeupdate", "ended", "seeking", "seeked", "waiting",
    ];

    const length = (media) => (Number.isFinite(media.duration) ? media.duration : Infinity);
    const place = (media, note) => {
      const passed = ((engine.now() - note.at) / 1000) * rateOf.get.call(media);
      const total = note.from + passed;
      const whole = length(media);
      return media.loop && whole > 0 ? total % whole : Math.min(total, whole);
    };
    const tell = (media, kind) => after(0, () => real.dispatch(media, new scope.Event(kind)));

    // `ended` comes at its own time; `timeupdate` four times a second, as browsers do.
    function watch(media, note) {
      const left = (length(media) - place(media, note)) * 1000 / (rateOf.get.call(media) || 1);
      const wait = media.loop ? 250 : Math.min(250, Math.max(0, left));
      note.timer = after(wait, () => {
        if (players.get(media) !== note) return;
        if (media.loop || place(media, note) < length(media)) {
          real.dispatch(media, new scope.Event("timeupdate"));
          if (players.get(media) === note) watch(media, note);
          return;
        }
        stop(media, note);
        note.ended = true;
        for (const kind of ["timeupdate", "pause", "ended"]) {
          real.dispatch(media, new scope.Event(kind));
        }
      });
    }

    function begin(media) {
      if (players.has(media)) return;
      const from = position.get.call(media);
      const note = { from: from >= length(media) ? 0 : from, at: engine.now() };
      players.set(media, note);
      standStill.call(media);
      tell(media, "play");
      tell(media, "playing");
      watch(media, note);
    }

    function stop(media, note) {
      players.delete(media);
      cancel(note.timer);
      position.set.call(media, place(media, note));
    }

    const muffle = (event) => event.isTrusted && event.stopImmediatePropagation();
    const mine = new WeakSet();
    function adopt(media) {
      if (mine.has(media)) return;
      mine.add(media);
      for (const kind of heard) {
        real.listen(media, kind, muffle, true);
      }
    }

    // Autoplay starts without a call: stop it at once and play it in our time.
    real.listen(scope, "play", ({ isTrusted, target }) => {
      if (!isTrusted || !(target instanceof MediaElement) || mine.has(target)) return;
      adopt(target);
      position.set.call(target, 0);
      begin(target);
    }, true);

    replace(MediaElement.prototype, "play", async function () {
      adopt(this);
      begin(this);
    });
    replace(MediaElement.prototype, "pause", function (original) {
      const note = players.get(this);
      if (!note) return original.call(this);
      stop(this, note);
      tell(this, "pause");
    });
    replaceGetter(MediaElement.prototype, "paused", function (get) {
      return get.call(this) && !players.has(this);
    });
    replaceGetter(MediaElement.prototype, "ended", function (get) {
      return mine.has(this)
        ? !players.has(this) && position.get.call(this) >= length(this) : get.call(this);
    });
    replaceGetter(MediaElement.prototype, "currentTime",
      function (get) {
        const note = players.get(this);
        return note ? place(this, note) : get.call(this);
      },
      function (set, value) {
        const note = players.get(this);
        set.call(this, value);
        if (note) [note.from, note.at] = [Number(value), engine.now()];
      });

    players.seek = () => {
      for (const [media, note] of players) position.set.call(media, place(media, note));
    };
  }

  function installContexts() {
    const contexts = new WeakMap();
    const base = scope.BaseAudioContext.prototype, prototype = scope.AudioContext.prototype;
    const standStill = prototype.suspend;
    const clock = (note) => (note.state === "running"
      ? note.from + (engine.read() - note.at) / 1000 : note.from);
    const turn = (context, note, state) => {
      if (note.state === state) return;
      [note.from, note.at, note.state] = [clock(note), engine.now(), state];
      after(0, () => real.dispatch(context, new scope.Event("statechange")));
    };

    replaceClass(scope, "AudioContext", {
      construct(target, args, made) {
        const context = Reflect.construct(target, args, made);
        contexts.set(context, { state: "running", from: 0, at: engine.now() });
        real.listen(context, "statechange",
          (event) => event.isTrusted && event.stopImmediatePropagation(), true);
        standStill.call(context).catch(() => {});
        return context;
      },
    });
    replaceGetter(base, "currentTime", function (get) {
      const note = contexts.get(this);
      return note ? clock(note) : get.call(this);
    });
    replaceGetter(base, "state", function (get) {
      return contexts.get(this)?.state ?? get.call(this);
    });
    const turns = { resume: "running", suspend: "suspended", close: "closed" };
    for (const [name, state] of Object.entries(turns)) {
      replace(prototype, name, async function (original) {
        const note = contexts.get(this);
        if (!note || name === "close") await original.call(this);
        if (note) turn(this, note, state);
      });
    }

    // A sound's `ended` is what chains it to the next one.
    const ends = new WeakMap();
    const ending = (source, at) => {
      const note = contexts.get(source.context);
      if (!note) return;
      cancel(ends.get(source));
      const wait = Math.max(0, (at - clock(note)) * 1000);
      if (!Number.isFinite(wait)) return;
      ends.set(source, after(wait, () => real.dispatch(source, new scope.Event("ended"))));
    };
    const owners = [scope.AudioScheduledSourceNode, scope.AudioBufferSourceNode]
      .map((one) => one.prototype);
    for (const owner of owners) {
      if (!Object.hasOwn(owner, "start")) continue;
      replace(owner, "start", function (original, args) {
        original.apply(this, args);
        const [when = 0, offset = 0, duration] = args;
        const whole = this.buffer
          ? (this.buffer.duration - offset) / (this.playbackRate.value || 1) : Infinity;
        const begin = Math.max(when, this.context.currentTime);
        if (!this.loop) ending(this, begin + Math.min(whole, duration ?? Infinity));
      });
    }
    replace(owners[0], "stop", function (original, args) {
      original.apply(this, args);
      ending(this, args[0] ?? 0);
    });
  }

  return { rest: () => players.seek?.() };
}
