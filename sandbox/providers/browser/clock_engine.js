// The engine: one `now` in milliseconds, timers in a heap, frames at 60 Hz, and who follows along.
// It holds no reference to what it replaces: `real` carries the browser's own functions.

const FRAME_MS = 1000 / 60;
const LANES = 8; // callbacks per turn of the event loop; each has its own microtask checkpoint
const BUSY_READS = 1e6; // a loop that waits for the clock is let go after so many reads
const LONGEST_SLICE_MS = 50; // of real time, so that a slow page never piles up a debt
const FOLLOWER_MS = 5000; // of real time: a worker that computes is waited for so long

function makeEngine(real, { now = 0, rate = 1, running = false, epoch, seed }) {
  const realms = new Set();
  const followers = new Set();
  const heap = [];
  const uncovered = new Set();
  let sequence = 0, frames = Math.floor(now / FRAME_MS + 1e-9), reads = 0, realmCount = 0;
  let jobs = [], target = now, sliced = false, stopping = false, drained = null;
  let until = null, reached = null, driving = 0, at = 0;
  let idle = Promise.resolve();

  const frameTime = (index) => (index * 1000) / 60;
  const before = (a, b) => a.due < b.due || (a.due === b.due && a.sequence < b.sequence);

  function push(timer) {
    timer.sequence = ++sequence;
    let i = heap.push(timer) - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!before(timer, heap[parent])) break;
      heap[i] = heap[parent];
      i = parent;
    }
    heap[i] = timer;
  }

  function pop() {
    const top = heap[0], last = heap.pop();
    const size = heap.length;
    if (!size) return top;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= size) break;
      if (child + 1 < size && before(heap[child + 1], heap[child])) child += 1;
      if (!before(heap[child], last)) break;
      heap[i] = heap[child];
      i = child;
    }
    heap[i] = last;
    return top;
  }

  function due() {
    while (heap.length && heap[0].gone) pop();
    return heap.length ? heap[0].due : Infinity;
  }

  // Choose what happens next up to `target`; false when there is nothing more.
  function plan() {
    reads = 0;
    for (;;) {
      if (stopping || (followers.size && !sliced)) return false;
      const timer = due(), frame = frameTime(frames + 1);
      if (timer > target && frame > target) {
        now = Math.max(now, target);
        return false;
      }
      if (timer <= frame) {
        now = Math.max(now, timer);
        const { run } = pop();
        jobs.push(run);
        return true;
      }
      now = Math.max(now, frame);
      frames += 1;
      for (const realm of realms) {
        if (realm.alive()) realm.frame(jobs);
        else realms.delete(realm);
      }
      if (jobs.length) return true;
    }
  }

  // A turn is one message; its listeners run one callback each, so the browser itself empties the
  // microtask queue in between, and what the page posted before comes first.
  const turn = new real.MessageChannel();
  let turning = false;
  for (let lane = 0; lane < LANES; lane += 1) {
    real.listen(turn.port2, "message", () => {
      if (lane === 0) {
        turning = jobs.length > 0 || plan();
        if (!turning) return finish();
      }
      if (turning && jobs.length) jobs.shift()();
      if (turning && lane === LANES - 1) turn.port1.postMessage(0);
    });
  }
  turn.port2.start();

  function finish() {
    const done = drained;
    drained = null;
    done();
  }

  function drain(to) {
    target = to;
    return new Promise((resolve) => {
      drained = resolve;
      turn.port1.postMessage(0);
    });
  }

  function follow(follower, to) {
    return new Promise((resolve, reject) => {
      const timer = real.setTimeout(() => {
        followers.delete(follower);
        uncovered.add(`${follower.name} did not answer for ${FOLLOWER_MS / 1000} s`);
        reject(new Error(`${follower.name} did not answer for ${FOLLOWER_MS / 1000} s`));
      }, FOLLOWER_MS);
      follower.done = () => {
        real.clearTimeout(timer);
        resolve();
      };
      follower.send({ to });
    });
  }

  function drop(follower) {
    if (follower && followers.delete(follower)) follower.done?.();
  }

  async function advance(to) {
    stopping = false;
    while (!stopping) {
      sliced = followers.size > 0;
      const slice = sliced ? Math.min(to, Math.max(now, frameTime(frames + 1))) : to;
      if (sliced) {
        for (const one of [...followers]) if (one.gone?.()) drop(one);
        await Promise.all([...followers].map((one) => follow(one, slice)));
      }
      await drain(slice);
      if (now >= to && (sliced || !followers.size)) break;
    }
    for (const realm of realms) realm.rest();
    if (sliced) await Promise.all([...followers].map((one) => follow(one, now)));
  }

  // One advance at a time, in the order they were asked for.
  function queue(to) {
    const next = idle.then(() => advance(to()));
    idle = next.catch(() => {});
    return next;
  }

  function drive() {
    const mine = ++driving;
    at = real.now();
    const tick = async () => {
      if (mine !== driving) return;
      const instant = real.now();
      const span = Math.min(instant - at, LONGEST_SLICE_MS) * rate;
      at = instant;
      try {
        await queue(() => Math.min(now + (mine === driving ? span : 0), until ?? Infinity));
      } catch (error) {
        reached?.(error);
      }
      if (mine !== driving) return;
      if (until !== null && now >= until) {
        driving += 1;
        running = false;
        reached();
      } else real.setTimeout(tick, 4);
    };
    real.setTimeout(tick, 4);
  }

  async function halt() {
    driving += 1;
    stopping = running;
    running = false;
    const left = reached;
    [until, reached] = [null, null];
    left?.();
    await idle;
  }

  function state() {
    return {
      mode: !running ? "stepped" : rate === 1 ? "realtime" : "scaled",
      now, rate, frames, timers: heap.filter((timer) => !timer.gone).length,
      followers: [...followers].map((one) => one.name), uncovered: [...uncovered],
    };
  }

  const api = {
    async pause() {
      await halt();
      return state();
    },
    async resume() {
      if (!running) {
        await idle;
        running = true;
        drive();
      }
      return state();
    },
    async step(ms) {
      await halt();
      const goal = now + ms;
      await queue(() => goal);
      return state();
    },
    async run(ms) {
      await halt();
      running = true;
      const end = new Promise((resolve, reject) => {
        reached = (error) => (error ? reject(error) : resolve());
      });
      until = now + ms;
      drive();
      await end;
      [until, reached] = [null, null];
      return state();
    },
    async rate(x) {
      const [goal, ended] = [until, reached];
      if (running) {
        [until, reached] = [null, null];
        await halt();
        [until, reached, running] = [goal, ended, true];
      }
      rate = x;
      if (running) drive();
      return state();
    },
    state,
  };

  const engine = {
    api, epoch, seed, push, followers, uncovered, drop,
    read() {
      if (++reads > BUSY_READS && reads % 1000 === 0) now += 1;
      return now;
    },
    now: () => now,
    // Follow somebody else's clock: come to their time, which may be later than ours ever was.
    reach: (to) => queue(() => to),
    set: (to) => {
      now = Math.max(now, to);
      frames = Math.max(frames, Math.floor(now / FRAME_MS + 1e-9));
    },
    join(realm) {
      realms.add(realm);
      return realmCount++;
    },
    ordinal: () => realmCount++,
  };
  if (running) drive();
  return engine;
}
