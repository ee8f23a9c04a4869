"""The box dialect: UI-TARS 1.0 and 1.5, `click(start_box='<|box_start|>(x,y)<|box_end|>')`."""

from __future__ import annotations

from dataclasses import dataclass

from agent.dialects.frame import Coordinates, Frame, from_frame
from agent.dialects.grammar import Parsed
from agent.dialects.reply import read_reply
from agent.dialects.verbs import write_action
from trajectory import Action, Point

SPACE = """\
click(start_box='<|box_start|>(x1,y1)<|box_end|>')
left_double(start_box='<|box_start|>(x1,y1)<|box_end|>')
right_single(start_box='<|box_start|>(x1,y1)<|box_end|>')
drag(start_box='<|box_start|>(x1,y1)<|box_end|>', end_box='<|box_start|>(x3,y3)<|box_end|>')
hotkey(key='ctrl c') # keys in lower case, split by spaces
type(content='xxx') # escape quotes and line breaks (\\', \\", \\n); a final \\n submits
scroll(start_box='<|box_start|>(x1,y1)<|box_end|>', direction='down or up or right or left')
wait() # 5 seconds, then a new screenshot
finished(content='xxx') # the answer, if the task asks for one
call_user() # when only the user can go on"""


@dataclass(frozen=True, slots=True)
class BoxDialect:
    """Reads and writes the box dialect in one coordinate convention."""

    coordinates: Coordinates = "resized"
    name: str = "box"
    space: str = SPACE

    def parse(self, text: str, frame: Frame) -> Parsed:
        """Read a reply; raises ParseError naming what can't be read."""
        return read_reply(text, frame, self.coordinates)

    def write(self, action: Action, frame: Frame) -> str:
        """Write a canonical action; raises LossyConversion."""

        def box(point: Point) -> str:
            x, y = from_frame(*point, self.coordinates, frame)
            return f"<|box_start|>({x},{y})<|box_end|>"

        return write_action(action, ("start_box", "start_box", "end_box"), box)
