// What waits: setTimeout, setInterval, animation frames, idle callbacks, AbortSignal.timeout.

function installTimers(scope, disguise, engine, real, start) {
  const { replace } = disguise;
  const timers = new Map();
  let lastId = 0, nesting = 0;
  let frames = new Map(), lastFrame = 0;
  const cancelled = new Set();

  const attempt = (run, ...args) => {
    try {
      return run.apply(scope, args);
    } catch (error) {
      real.reportError(error);
    }
  };

  // Five timers deep, HTML lets a timer wait no less than 4 ms.
  const clamp = (delay, depth) => Math.max(depth > 5 ? 4 : 0, Number(delay) | 0);

  function alive() {
    return !scope.document || scope.document.defaultView !== null;
  }

  function add(handler, delay, args, every, depth = nesting + 1) {
    const id = ++lastId;
    const timer = { id, depth, every, gone: false };
    timer.run = () => {
      if (timer.gone) return;
      if (!alive()) return void timers.delete(id);
      if (!every) timers.delete(id);
      nesting = timer.depth;
      if (typeof handler === "function") attempt(handler, ...args);
      else attempt(() => (0, scope.eval)(handler));
      nesting = 0;
      if (!every || timer.gone) return;
      timer.depth += 1;
      timer.due = engine.now() + clamp(delay, timer.depth);
      engine.push(timer);
    };
    timer.due = engine.now() + clamp(delay, timer.depth);
    timers.set(id, timer);
    engine.push(timer);
    return id;
  }

  function remove(id) {
    const timer = timers.get(Number(id));
    if (timer) timer.gone = true;
    timers.delete(Number(id));
  }

  const later = (every) => (original, [handler, delay = 0, ...args]) => {
    const run = typeof handler === "function" ? handler : String(handler);
    return add(run, delay, args, every);
  };
  replace(scope, "setTimeout", later(false));
  replace(scope, "setInterval", later(true));
  replace(scope, "clearTimeout", (original, [id]) => remove(id));
  replace(scope, "clearInterval", (original, [id]) => remove(id));

  if (scope.requestAnimationFrame) {
    replace(scope, "requestAnimationFrame", (original, [run]) => {
      if (typeof run !== "function") return original.call(scope, run);
      frames.set(++lastFrame, run);
      return lastFrame;
    });
    replace(scope, "cancelAnimationFrame", (original, [id]) => {
      frames.delete(Number(id));
      cancelled.add(Number(id)); // one of this very frame, which is a job already
    });
  }

  if (scope.requestIdleCallback) {
    replace(scope, "requestIdleCallback", (original, [run]) => {
      if (typeof run !== "function") return original.call(scope, run);
      let left = 10; // a loop on timeRemaining() ends by its own reads, not by the wall clock
      const deadline = Object.create(scope.IdleDeadline.prototype, {
        didTimeout: { value: false },
        timeRemaining: { value: () => (left = Math.max(0, left - 0.1)) },
      });
      return add(() => run(deadline), 1, [], false, 1);
    });
    replace(scope, "cancelIdleCallback", (original, [id]) => remove(id));
  }

  replace(scope.AbortSignal, "timeout", (original, [ms]) => {
    const controller = new scope.AbortController();
    const reason = new scope.DOMException("signal timed out", "TimeoutError");
    add(() => controller.abort(reason), ms, [], false);
    return controller.signal;
  });

  // Animation frames of this realm, each a job of its own.
  function frame(jobs) {
    if (!frames.size) return;
    const batch = frames;
    frames = new Map();
    const time = engine.now() - start;
    cancelled.clear();
    for (const [id, run] of batch) {
      jobs.push(() => {
        if (!cancelled.has(id)) attempt(run, time);
      });
    }
  }

  return { alive, frame, after: (ms, run) => add(run, ms, [], false, 1), cancel: remove };
}
