"""The child of guest.python: runs what it is sent in one namespace. Any Python 3.8 runs it.

It is started by its text (`python -c`), so that none of our modules can be imported by accident.
Arguments: the descriptors of orders (8 bytes of length, then UTF-8) and answers (one byte each).
"""

import ast
import linecache
import os
import signal
import struct
import sys
import traceback
import types


def serve(orders: int, answers: int) -> None:
    os.set_inheritable(orders, False)
    os.set_inheritable(answers, False)
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    sys.argv = [""]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    number = 0
    with os.fdopen(orders, "rb") as stream:
        while len(head := stream.read(8)) == 8:
            code = stream.read(struct.unpack("!Q", head)[0]).decode()
            number += 1
            fine = run(code, f"<run {number}>", main.__dict__)
            for output in (sys.stdout, sys.stderr):
                try:
                    output.flush()
                except Exception:  # closed or replaced by what was run
                    pass
            os.write(answers, b"+" if fine else b"-")


def run(code: str, name: str, names: dict) -> bool:  # type: ignore[type-arg]
    """Run `code` and print the value of its last expression; False if it raised."""
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        tree = ast.parse(code, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), names)
            if value is not None:
                names["_"] = value
                print(repr(value))
        return True
    except BaseException as error:
        # Not the frames of this file.
        shown = error.__traceback__ and error.__traceback__.tb_next
        try:
            print("".join(traceback.format_exception(type(error), error, shown)), end="")
        except BaseException:
            print(type(error).__name__)
        return False
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]))
