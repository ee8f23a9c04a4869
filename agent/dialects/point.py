"""The point dialect: UI-TARS-2 and Doubao 1.5, `click(point='<point>x y</point>')`, 0..1000."""

from __future__ import annotations

from dataclasses import dataclass

from agent.dialects.frame import Coordinates, Frame, from_frame
from agent.dialects.grammar import Parsed, write_call
from agent.dialects.reply import read_reply
from agent.dialects.verbs import write_action
from trajectory import Action, Point, Shell

SPACE = """\
click(point='<point>x1 y1</point>')
left_double(point='<point>x1 y1</point>')
right_single(point='<point>x1 y1</point>')
drag(start_point='<point>x1 y1</point>', end_point='<point>x2 y2</point>')
hotkey(key='ctrl c') # keys in lower case, split by spaces
type(content='xxx') # escape quotes and line breaks (\\', \\", \\n); a final \\n submits
scroll(point='<point>x1 y1</point>', direction='down or up or right or left')
wait() # 5 seconds, then a new screenshot
finished(content='xxx') # the answer, if the task asks for one
call_user() # when only the user can go on"""


@dataclass(frozen=True, slots=True)
class PointDialect:
    """Reads and writes the point dialect in one coordinate convention."""

    coordinates: Coordinates = "thousandth"
    name: str = "point"
    space: str = SPACE

    def parse(self, text: str, frame: Frame) -> Parsed:
        """Read a reply, XML tool calls included; raises ParseError naming what can't be read."""
        return read_reply(text, frame, self.coordinates)

    def write(self, action: Action, frame: Frame) -> str:
        """Write a canonical action; raises LossyConversion."""

        def box(point: Point) -> str:
            x, y = from_frame(*point, self.coordinates, frame)
            return f"<point>{x} {y}</point>"

        if isinstance(action, Shell) and action == Shell(action.command) and action.command:
            return write_call("execute_bash", command=action.command)
        return write_action(action, ("point", "start_point", "end_point"), box)
