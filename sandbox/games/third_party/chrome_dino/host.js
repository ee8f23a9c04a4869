// Mounts the component, whose bundle leaves it in window.default, and reads the runner. That is done
// while the page loads: the runner waits for its pictures, and they come by the real clock.
"use strict";

ReactDOM.render(React.createElement(window.default), document.getElementById("root"));
const runner = window.Runner.instance_;
let crashes = 0;

host({
  version: "react-chrome-dino 0.1.3",
  begin() {
    // The blinking of the waiting dinosaur draws from the same chance as the cacti.
    runner.tRex.update(0, "WAITING");
    // The intro is a CSS animation of 0.4 s. A timer ends it at the same moment on every clock.
    const intro = runner.playIntro.bind(runner);
    runner.playIntro = () => {
      intro();
      if (!runner.playingIntro) return;
      runner.containerEl.style.webkitAnimation = "";
      setTimeout(() => runner.startGame(), 400);
    };
    const over = runner.gameOver.bind(runner);
    runner.gameOver = () => { crashes++; over(); };
  },
  state() {
    const { tRex, horizon, distanceMeter, config } = runner;
    return {
      started: runner.started, crashes,
      distance: Math.ceil(distanceMeter ? distanceMeter.getActualDistance(runner.highestScore) : 0),
      run: Math.ceil(distanceMeter ? distanceMeter.getActualDistance(Math.ceil(runner.distanceRan)) : 0),
      speed: runner.currentSpeed, jumping: tRex ? tRex.jumping : false,
      x: tRex ? tRex.xPos : 0, y: tRex ? tRex.yPos : 0, ground: tRex ? tRex.groundYPos : 0,
      obstacles: horizon ? horizon.obstacles.map((o) => ({ x: o.xPos, width: o.width })) : [],
      gravity: config.GRAVITY,
    };
  },
});
