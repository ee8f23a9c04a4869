"""browsergym-miniwob (Playwright) with its delays at 0: run by the peers' environment's interpreter.

`python browsergym.py TASK`; MINIWOB_URL names the pages, PLAYWRIGHT_BROWSERS_PATH the browser.
"""

import sys

# This file would hide the package of its name.
HERE = sys.path.pop(0)

import browsergym.miniwob  # noqa: E402, F401
import gymnasium  # noqa: E402
from browsergym.core.action.highlevel import HighLevelActionSet  # noqa: E402

sys.path.insert(0, HERE)
import course  # noqa: E402


class Environment:
    """As shipped but for the delays: DOM snapshot, accessibility tree, decoded picture, reward."""

    def __init__(self, task):
        self.env = gymnasium.make(
            f"browsergym/miniwob.{task}",
            action_mapping=HighLevelActionSet(subsets=["miniwob_all"]).to_python_code,
            slow_mo=0,
            pre_observation_delay=0,
            disable_env_checker=True,
        ).unwrapped

    def reset(self, seed):
        seen, _ = self.env.reset(seed=seed)
        assert seen["screenshot"].ndim == 3 and seen["goal"]

    def click(self, x, y):
        self.step(f"mouse_click({x}, {y})")

    def wait(self):
        self.step("noop(0)")

    def step(self, action):
        seen, _, done, _, _ = self.env.step(action)
        assert not done and not seen["last_action_error"], seen["last_action_error"]


if __name__ == "__main__":
    environment = Environment(sys.argv[1])
    course.run(environment, 0)
    figures = course.run(environment, course.ready())
    course.report(figures)
    environment.env.close()
