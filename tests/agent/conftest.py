import pytest

from tests.agent.server import Server
from tests.tiny import tiny_llama, tiny_lora, tiny_qwen2_5_vl, tiny_qwen3_vl

__all__ = ["tiny_llama", "tiny_lora", "tiny_qwen2_5_vl", "tiny_qwen3_vl"]


@pytest.fixture(scope="module")
def one_thread():
    """Two threads on busy cores wait for each other at every product of these tiny models."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def llama_server(tiny_llama, tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("serving") / "state", tiny_llama).start()
    yield server
    server.stop()
