// Plays from one of a recording's seconds to another, over as many pieces of sound as that takes.

let context = null;
let playing = [];
const decoded = new Map(); // of the pieces heard last

/** Stop what plays; whether something did. */
export function stop() {
  const had = playing.length > 0;
  for (const source of playing) source.stop();
  playing = [];
  return had;
}

/**
 * Play the seconds `began` to `ended` of `pieces` ([{began, url}]); `done` is called when it is over.
 * Resolves to how many seconds sound; throws an Error for the person where none can be had.
 */
export async function play(pieces, began, ended, done) {
  stop();
  context ??= new AudioContext();
  await context.resume();
  const wanted = inOrder(pieces).filter((piece, at, all) => piece.began < ended && (all[at + 1]?.began ?? Infinity) > began);
  const buffers = await Promise.all(wanted.map((piece) => load(piece.url)));
  const now = context.currentTime + 0.05;
  let seconds = 0;
  wanted.forEach((piece, at) => {
    const from = Math.max(0, began - piece.began);
    const length = Math.min(buffers[at].duration - from, ended - piece.began - from);
    if (length <= 0) return;
    const source = new AudioBufferSourceNode(context, { buffer: buffers[at] });
    source.connect(context.destination);
    source.start(now + Math.max(0, piece.began - began), from, length);
    seconds += length;
    playing.push(source);
    source.onended = () => {
      playing = playing.filter((one) => one !== source);
      if (!playing.length) done();
    };
  });
  if (!playing.length) throw new Error("There is no sound of these seconds.");
  return seconds;
}

const inOrder = (pieces) => [...pieces].sort((one, other) => one.began - other.began);

async function load(url) {
  if (!decoded.has(url)) {
    const response = await fetch(url);
    if (!response.ok) throw new Error(`The sound can't be had: the server answered ${response.status}.`);
    if (decoded.size > 8) decoded.delete(decoded.keys().next().value);
    decoded.set(url, await context.decodeAudioData(await response.arrayBuffer()));
  }
  return decoded.get(url);
}
