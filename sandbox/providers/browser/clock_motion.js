// What moves by itself: CSS animations and transitions, Web Animations, document.timeline, SMIL.
// Each animation is held at playback rate 0, which leaves its play state and its style rules as
// they were, and is sought frame by frame. Its events are sent when the frame passes them.

function installMotion(scope, disguise, engine, real, start) {
  const { replace, replaceGetter } = disguise;
  const document = scope.document;
  const { Animation, CSSAnimation, CSSTransition, DocumentTimeline } = scope;
  if (!document || !Animation) return { frame() {}, rest() {} };
  const own = (name) => Object.getOwnPropertyDescriptor(Animation.prototype, name);
  const [current, speed, playState] = ["currentTime", "playbackRate", "playState"].map(own);
  const timelineOf = own("timeline").get;
  const listAnimations = scope.Document.prototype.getAnimations;
  const held = new Map();
  const known = new WeakSet();

  replaceGetter(scope.AnimationTimeline.prototype, "currentTime", function (get) {
    return this instanceof DocumentTimeline ? engine.read() - start : get.call(this);
  });

  function hold(animation) {
    const state = playState.get.call(animation);
    if (held.has(animation) || state === "idle" || state === "finished") return;
    if (timelineOf.call(animation) !== document.timeline) return; // driven by scrolling
    if (!known.has(animation)) {
      known.add(animation);
      real.listen(animation, "finish", muffle, true);
      // What already ran in real time before it was found did not run in ours.
      if (animation instanceof CSSAnimation || animation instanceof CSSTransition) {
        current.set.call(animation, 0);
      }
    }
    held.set(animation, { rate: speed.get.call(animation), at: null, active: false, round: 0 });
    speed.set.call(animation, 0);
  }

  const muffle = (event) => event.isTrusted && event.stopImmediatePropagation();

  // The browser sends its own when it next draws: by then ours have been sent at the right time.
  const kinds = ["animationstart", "animationiteration", "animationend",
    "transitionrun", "transitionstart", "transitionend"];
  for (const kind of kinds) {
    real.listen(scope, kind, (event) => {
      if (!event.isTrusted) return;
      event.stopImmediatePropagation();
      for (const animation of listAnimations.call(document)) hold(animation);
    }, true);
  }

  function send(animation, kind, elapsedMs) {
    const { target, pseudoElement } = animation.effect ?? {};
    if (!target) return;
    const detail = {
      bubbles: true, elapsedTime: elapsedMs / 1000, pseudoElement: pseudoElement ?? "",
    };
    if (animation instanceof CSSAnimation) {
      detail.animationName = animation.animationName;
      real.dispatch(target, new scope.AnimationEvent(`animation${kind}`, detail));
    } else if (animation instanceof CSSTransition) {
      detail.propertyName = animation.transitionProperty;
      real.dispatch(target, new scope.TransitionEvent(`transition${kind}`, detail));
    }
  }

  function finish(animation, note, timing, jobs) {
    held.delete(animation);
    const end = note.rate > 0 ? timing.endTime : 0;
    speed.set.call(animation, note.rate);
    current.set.call(animation, end);
    jobs.push(() => {
      send(animation, "end", timing.activeDuration);
      real.dispatch(animation, new scope.AnimationPlaybackEvent("finish", {
        currentTime: end, timelineTime: engine.now() - start,
      }));
    });
  }

  function seek(animation, note, jobs) {
    const time = current.get.call(animation);
    const state = playState.get.call(animation);
    if (time === null || state === "idle" || state === "finished" || !animation.effect) {
      held.delete(animation);
      return;
    }
    const now = engine.now();
    const passed = note.at === null || state === "paused" ? 0 : now - note.at;
    if (note.at === null && animation instanceof CSSTransition) {
      jobs.push(() => send(animation, "run", 0));
    }
    note.at = now;
    const next = time + passed * note.rate;
    const timing = animation.effect.getComputedTiming();
    const active = next - timing.delay;
    if (!note.active && active >= 0) {
      note.active = true;
      jobs.push(() => send(animation, "start", Math.max(0, -timing.delay)));
    }
    if ((note.rate > 0 && next >= timing.endTime) || (note.rate < 0 && next <= 0)) {
      finish(animation, note, timing, jobs);
      return;
    }
    const round = timing.duration > 0 ? Math.floor(Math.max(0, active) / timing.duration) : 0;
    if (round !== note.round && active < timing.activeDuration) {
      note.round = round;
      const elapsed = round * timing.duration;
      if (animation instanceof CSSAnimation) jobs.push(() => send(animation, "iteration", elapsed));
    }
    if (passed) current.set.call(animation, next);
  }

  replaceGetter(Animation.prototype, "playbackRate",
    function (get) { return held.get(this)?.rate ?? get.call(this); },
    function (set, rate) {
      const note = held.get(this);
      if (note) note.rate = Number(rate);
      else set.call(this, rate);
    });
  replace(Animation.prototype, "updatePlaybackRate", function (original, [rate]) {
    const note = held.get(this);
    if (note) note.rate = Number(rate);
    else original.call(this, rate);
  });
  for (const name of ["play", "reverse", "finish"]) {
    replace(Animation.prototype, name, function (original, args) {
      const note = held.get(this);
      if (note) speed.set.call(this, note.rate);
      held.delete(this);
      const said = original.apply(this, args);
      hold(this);
      return said;
    });
  }
  replace(scope.Element.prototype, "animate", function (original, args) {
    const animation = original.apply(this, args);
    hold(animation);
    return animation;
  });

  const pictures = document.getElementsByTagName("svg");
  const moving = ["animate", "animateTransform", "animateMotion", "set"];
  const smil = moving.map((tag) => document.getElementsByTagName(tag));

  // `pauseAnimations` and `setCurrentTime` belong to the outermost svg.
  function seekPictures() {
    if (!pictures.length || !smil.some((list) => list.length)) return;
    for (const picture of pictures) {
      if (picture.ownerSVGElement || !picture.querySelector(moving.join())) continue;
      picture.pauseAnimations();
      picture.setCurrentTime((engine.now() - start) / 1000);
    }
  }

  return {
    frame(jobs) {
      for (const animation of listAnimations.call(document)) hold(animation);
      for (const [animation, note] of held) seek(animation, note, jobs);
    },
    rest: seekPictures,
  };
}
