"""Farama's miniwob (selenium): run by the interpreter of the peers' environment.

`python farama.py TASK`; MINIWOB_CHROME_BINARY and MINIWOB_CHROMEDRIVER name the programs.
"""

import sys

import course
import gymnasium
import miniwob
import numpy
from miniwob.action import ActionTypes


class Environment:
    """As shipped: utterance, whole DOM, reward and the picture decoded to an array."""

    def __init__(self, task):
        gymnasium.register_envs(miniwob)
        self.env = gymnasium.make(f"miniwob/{task}-v1", disable_env_checker=True).unwrapped

    def reset(self, seed):
        seen, _ = self.env.reset(seed=seed)
        assert seen["screenshot"].shape == (210, 160, 3)

    def click(self, x, y):
        place = numpy.array([x, y], dtype=numpy.float32)
        self.step(self.env.create_action(ActionTypes.CLICK_COORDS, coords=place))

    def wait(self):
        self.step(self.env.create_action(ActionTypes.NONE))

    def step(self, action):
        seen, _, done, _, _ = self.env.step(action)
        assert not done and seen["utterance"]


if __name__ == "__main__":
    environment = Environment(sys.argv[1])
    course.run(environment, 0)
    figures = course.run(environment, course.ready())
    course.report(figures)
    environment.env.close()
