"""The critic, and value pretraining as it is run in earnest: on a run directory, with tiny models."""

from __future__ import annotations

import dataclasses
import json

import pytest
import torch

from agent.serving.checkpoint import load
from tests.training.toy import metrics, play, rewarded, seeing, stream, uneven
from training.trainers import job, states, value
from training.trainers.critic import CriticLearner, open_critic
from training.trainers.learner import accelerator
from training.trainers.settings import Settings
from training.trainers.token_rows import collate, lay_out, sampled_values

pytest_plugins = ["tests.tiny"]
pytestmark = pytest.mark.timeout(300)

CONFIG = {
    "actor": "sha-of-the-actor", "version": "v", "steps": 8, "batch_size": 8, "evaluate_every": 2,
    "lora_rank": 4, "warmup_steps": 1, "learning_rate": 1e-2, "threads": 1,
}  # fmt: skip


def value_main(argv: list[str]) -> int:
    return job.main("value", value.Config, value.train, value.show, argv)


@pytest.fixture(scope="module")
def episodes(tiny_llama):
    loaded = load(tiny_llama)
    return rewarded(play(loaded, 40, seed=1), {"A": 1.0, "B": 0.0}, loaded)


def values_of(learner: CriticLearner, rows) -> torch.Tensor:
    with torch.no_grad():
        return sampled_values(learner.model, *collate(rows, learner.loaded, ""))


def learner_of(settings: Settings, uri: str = "") -> CriticLearner:
    return CriticLearner(*open_critic(settings, uri), settings, accelerator())


@pytest.mark.parametrize(("rank", "dtype"), [(4, "float32"), (0, "float32"), (4, "bfloat16")])
def test_a_critic_says_0_at_first_and_the_same_after_it_was_written(
    tmp_path, tiny_llama, tiny_lora, rank, dtype
):
    settings = Settings(base=str(tiny_lora if rank else tiny_llama), lora_rank=rank, dtype=dtype)
    learner = learner_of(settings)
    heads = []
    whole = learner.model.model
    (whole.get_base_model() if rank else whole).lm_head.register_forward_hook(
        lambda *_: heads.append(1)
    )
    rows = lay_out(uneven(load(tiny_llama), 5), learner.loaded, settings).rows
    assert not values_of(learner, rows).any()
    for _ in range(2):
        (
            1 - sampled_values(learner.model, *collate(rows, learner.loaded, ""))
        ).square().sum().backward()
        learner.step(0.01)
    before = values_of(learner, rows)
    assert before.abs().min() > 0 and not heads
    assert learner.model.head.weight.dtype == torch.float32
    learner.write(tmp_path / "critic", "c")
    assert torch.equal(values_of(learner_of(settings, str(tmp_path / "critic")), rows), before)
    manifest = json.loads((tmp_path / "critic" / "tandem.json").read_text())
    assert (manifest["role"], manifest["kind"]) == ("critic", "lora" if rank else "full")


def test_a_value_is_that_of_the_state_before_its_token(tiny_llama):
    settings = Settings(base=str(tiny_llama), lora_rank=4)
    learner = learner_of(settings)
    torch.nn.init.normal_(learner.model.head.weight, generator=torch.Generator().manual_seed(0))
    rows = lay_out(uneven(load(tiny_llama), 5), learner.loaded, settings).rows
    alone = []
    for row in rows:
        prompt, output = row.step.prompt_ids, row.step.output_ids
        with torch.no_grad():
            trunk = learner.model.model.get_base_model().model
            hidden = trunk(input_ids=torch.tensor([prompt + output[:-1]])).last_hidden_state
            alone.append(learner.model.head(hidden[0, len(prompt) - 1 :])[:, 0])
    assert torch.allclose(values_of(learner, rows), torch.cat(alone), atol=1e-5)


def test_pretraining_lowers_the_held_out_loss_and_says_how_much_is_explained(
    tmp_path, tiny_llama, episodes
):
    run = stream(tmp_path / "run", episodes, base=str(tiny_llama), **CONFIG)
    assert value_main([str(run.path)]) == 0
    said = metrics(run)
    looks = [line for line in said if "held_out_explained_variance" in line]
    assert looks[-1]["held_out_value_loss"] < looks[0]["held_out_value_loss"]
    best = max(line["held_out_explained_variance"] for line in looks)
    assert best > 0.4 and said[-1]["value_loss"] < said[0]["value_loss"] / 2
    newest = run.path / run.status().checkpoint
    manifest = json.loads((newest / "tandem.json").read_text())
    assert (manifest["role"], manifest["actor"]) == ("critic", "sha-of-the-actor")
    assert manifest["explained_variance"] == pytest.approx(best, abs=1e-6)
    assert run.checkpoint(run.steps()[-1]) == newest
    # What stands in the manifest is what the weights in the folder explain.
    config = dataclasses.replace(value.Config.read(run.config()), base=str(newest))
    again = learner_of(config)
    task = value.task_of(episodes, again, config)
    looked = value.look(task, again, config)
    assert looked["held_out_explained_variance"] == pytest.approx(best, abs=1e-5)
    assert not {episodes[n].group for n in task.held} & {episodes[n].group for n in task.learnt}


def test_a_resumed_run_goes_on_from_its_best_look_with_the_same_bits(
    tmp_path, tiny_llama, episodes, monkeypatch
):
    whole = stream(tmp_path / "whole", episodes, base=str(tiny_llama), **CONFIG)
    assert value_main([str(whole.path)]) == 0
    parts = stream(tmp_path / "parts", episodes, base=str(tiny_llama), **CONFIG)
    stop, save = job.Stop(), states.save

    def stop_after(run, step, state):
        stop.asked = step == 4
        save(run, step, state)

    monkeypatch.setattr(states, "save", stop_after)
    status = value.train(parts, value.Config.read(parts.config()), stop)
    monkeypatch.undo()
    assert (status.state, status.step) == ("cancelled", 5)  # told in the midst of it
    assert value_main([str(parts.path)]) == 0
    timed = ("time", "tokens_per_s", "eta_s")
    for a, b in zip(metrics(whole), metrics(parts), strict=True):
        assert {k: v for k, v in a.items() if k not in timed} == {
            k: v for k, v in b.items() if k not in timed
        }


def test_it_ends_where_it_has_converged(tmp_path, tiny_llama, episodes):
    config = CONFIG | {"steps": 50, "patience": 2, "min_gain": 0.9, "evaluate_every": 1}
    run = stream(tmp_path / "run", episodes, base=str(tiny_llama), **config)
    assert value_main([str(run.path)]) == 0
    assert run.status().state == "succeeded" and run.status().step == 3


def test_what_no_critic_can_be_had_from_is_refused(tmp_path, tiny_llama, episodes):
    one = episodes[0].steps[0]
    mixed = [*episodes[:-1], dataclasses.replace(
        episodes[-1], steps=[dataclasses.replace(one, version="base-2")]
    )]  # fmt: skip
    cases = {
        "7 episodes are too few": episodes[:7],
        "every return is 0": [dataclasses.replace(e, reward=0.0) for e in episodes],
        "played by 2 policies": mixed,
        "1 pairs of task and seed": [dataclasses.replace(e, group="one") for e in episodes],
        "raise max_tokens": [
            dataclasses.replace(e, steps=[dataclasses.replace(one, prompt_ids=[5] * 3000)])
            for e in episodes
        ],
    }
    for n, (message, wrong) in enumerate(cases.items()):
        run = stream(tmp_path / str(n), wrong, base=str(tiny_llama), **CONFIG)
        assert value_main([str(run.path)]) == 1
        assert message in run.status().error


def test_the_dry_run_shows_an_episode_with_its_returns(tmp_path, tiny_llama, episodes, capsys):
    run = stream(tmp_path / "run", episodes, base=str(tiny_llama), **CONFIG)
    assert value_main([str(run.path), "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "32 episodes teach, 8 are held out" in said and "at its first token" in said


@pytest.mark.parametrize("model", ["tiny_qwen3_vl", "tiny_qwen2_5_vl"])
def test_a_critic_that_sees_learns_too(tmp_path, request, model):
    base = request.getfixturevalue(model)
    loaded = load(base)
    seen = seeing(tmp_path, loaded, 8)
    run = stream(
        tmp_path / "run", seen, base=str(base), blobs=str(tmp_path), **CONFIG | {"steps": 2}
    )
    assert value_main([str(run.path)]) == 0
    assert metrics(run)[1]["value_loss"] < metrics(run)[0]["value_loss"]

    wrong = dataclasses.replace(seen[0].steps[0], prompt_ids=[1, *seen[0].steps[0].prompt_ids[1:]])
    broken = [dataclasses.replace(seen[0], steps=[wrong]), *seen[1:]]
    other = stream(tmp_path / "other", broken, base=str(base), blobs=str(tmp_path), **CONFIG)
    assert value_main([str(other.path)]) == 1
    assert "row e0/0" in other.status().error and "another tokenizer" in other.status().error
