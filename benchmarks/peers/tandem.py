"""Our own browser pages: `python -m benchmarks.peers.tandem TASK PAGES KIND`.

One process with PAGES pages in as many browsers as there are cores, a thread for each page. KIND:
"bare" gives utterance, reward, done and the PNG; "full" also the whole DOM as the task's own script
lists it, and the picture decoded; "elements" also the visible elements with their boxes.
"""

import io
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from PIL import Image

from benchmarks.peers import course
from sandbox import miniwob
from sandbox.providers.browser import BrowserPage, Fleet, PageSpec
from trajectory import Action, Click

STATE = (
    "(() => { const said = core.getUtterance(); return {done: WOB_DONE_GLOBAL, "
    "raw_reward: WOB_RAW_REWARD_GLOBAL, utterance: said.utterance || said%s}; })()"
)
PROBES = {
    "bare": STATE % "",
    "elements": STATE % "",
    "full": STATE % ", dom: core.getDOMInfo()",
}


class Environment:
    """One page; a step is one call that acts, reads the state and takes the picture."""

    def __init__(self, page: BrowserPage, task: str, kind: str) -> None:
        self.page, self.probe, self.kind = page, PROBES[kind], kind
        page.navigate(miniwob.url(task, folder=miniwob.assets()))

    def reset(self, seed: int) -> None:
        self.page.evaluate(miniwob.start_script(seed))
        self.step(None)

    def click(self, x: int, y: int) -> None:
        self.step(Click(x, y))

    def wait(self) -> None:
        self.step(None)

    def step(self, action: Action | None) -> None:
        seen = self.page.step(action, probe=self.probe, elements=self.kind == "elements")
        assert isinstance(seen.value, dict) and not seen.value["done"] and seen.value["utterance"]
        if self.kind == "full":
            picture = Image.open(io.BytesIO(seen.png)).convert("RGB")
            assert picture.size == (160, 210)


def main() -> None:
    task, pages, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    browsers = min(pages, os.cpu_count() or 1)
    with Fleet(browsers=browsers) as fleet, ThreadPoolExecutor(pages) as threads:
        spec = PageSpec(width=160, height=210)
        environments = [Environment(fleet.open(spec), task, kind) for _ in range(pages)]
        for environment in environments:
            course.run(environment, 0)
        seconds = course.ready()
        together = threading.Barrier(pages)

        def drive(number: int) -> dict[str, float]:
            together.wait()
            return course.run(environments[number], seconds, 1000 * number)

        found = list(threads.map(drive, range(pages)))
        for environment in environments:
            environment.page.close()
        course.report(
            {
                key: (sum if key in ("steps", "episodes") else max)(one[key] for one in found)
                for key in found[0]
            }
        )


if __name__ == "__main__":
    main()
