"""PPO as it is run in earnest: over a stream in a run directory, with tiny models; what it computes
is compared with the plain thing, token by token."""

from __future__ import annotations

import dataclasses
import json

import pytest
import torch

from agent.serving.checkpoint import load
from tests.training.toy import feed, metrics, play, rewarded, seeing, speller, stream, uneven
from training.algos import gae
from training.trainers import job, ppo, value
from training.trainers.token_rows import collate, lay_out, sampled_logits, thought_tokens
from training.weights.fingerprint import files_of, fingerprint

pytest_plugins = ["tests.tiny"]
pytestmark = pytest.mark.timeout(300)

CONFIG = {
    "version": "p", "updates": 3, "batch": 8, "group": 4, "lora_rank": 4, "warmup_steps": 0,
    "learning_rate": 1e-3, "critic_learning_rate": 1e-3, "any_critic": "yes", "threads": 1,
    "save_every": 0,
}  # fmt: skip


def ppo_main(argv: list[str]) -> int:
    return job.main("ppo", ppo.Config, ppo.train, ppo.show, argv)


def config_of(base: object, **changes: object) -> ppo.Config:
    return ppo.Config.read({**CONFIG, "base": str(base), **changes})


@pytest.fixture(scope="module")
def spelling(tmp_path_factory, tiny_llama):
    return speller(tmp_path_factory.mktemp("speller") / "speller", tiny_llama)


@pytest.fixture(scope="module")
def mixed(tiny_llama):
    return uneven(load(tiny_llama), 8)


def test_it_learns_to_answer_from_the_weights_that_it_serves(tmp_path, spelling, monkeypatch):
    actor = fingerprint(files_of(spelling))
    loaded = load(spelling)
    learn = {"learning_rate": 3e-3, "critic_learning_rate": 3e-3, "lora_rank": 0, "threads": 1}
    critic = stream(
        tmp_path / "value", play(loaded, 64, seed=9), base=str(spelling), version="v", actor=actor,
        steps=20, evaluate_every=5, warmup_steps=0, **learn,
    )  # fmt: skip
    assert job.main("value", value.Config, value.train, value.show, [str(critic.path)]) == 0
    run = stream(
        tmp_path / "run", [], end=False, base=str(spelling), actor=actor, version="p", batch=48,
        critic=str(critic.path / critic.status().checkpoint), updates=10, warmup_steps=1,
        min_explained_variance=0.0, alpha=1.0, ppo_epochs=2, minibatches=2, **learn,
    )  # fmt: skip
    feed(monkeypatch, run, spelling)
    assert ppo_main([str(run.path)]) == 0
    said = metrics(run)
    before = sum(line["success"] for line in said[:2]) / 2
    after = sum(line["success"] for line in said[-3:]) / 3
    assert before < 0.45 and after > 0.8
    assert [line["step"] for line in said] == list(range(1, 11))
    assert said[-1]["entropy"] < said[0]["entropy"]
    assert max(line["mismatch_kl"] for line in said) < 1e-6
    assert all(line["staleness_max"] == 0 for line in said)
    status = run.status()
    assert (status.state, status.checkpoint) == ("succeeded", "checkpoints/step-10")
    manifest = json.loads((run.path / "critics" / "step-10" / "tandem.json").read_text())
    assert manifest["role"] == "critic"
    assert manifest["actor"] == fingerprint(files_of(run.checkpoint(10)))
    known = [line["explained_variance"] for line in said if "explained_variance" in line]
    assert manifest["explained_variance"] == pytest.approx(known[-1], abs=1e-5)
    lines = (run.path / "updates.jsonl").read_text().splitlines()
    used = [name for line in lines for name in json.loads(line)["episodes"]]
    assert len(used) == len(set(used)) == 10 * 48


@pytest.mark.parametrize("advantage", ["grpo", "reinforce"])
def test_it_learns_by_comparison_without_a_critic(tmp_path, spelling, monkeypatch, advantage):
    run = stream(
        tmp_path / "run", [], end=False, base=str(spelling), advantage=advantage, batch=48, group=8,
        version="p", updates=15, lora_rank=0, warmup_steps=1, learning_rate=3e-3, threads=1,
        positive_lm=0.0,
    )  # fmt: skip
    feed(monkeypatch, run, spelling, steps=1, group=8)
    assert ppo_main([str(run.path)]) == 0
    said = metrics(run)
    assert said[0]["success"] < 0.7 and said[-1]["success"] > 0.85
    assert not (run.path / "critics").exists()


def test_an_episode_whose_every_step_is_too_long_counts_in_its_group_as_what_it_earned(
    tiny_llama, mixed
):
    config = config_of(tiny_llama, advantage="reinforce", max_tokens=60)
    long = dataclasses.replace(mixed[1].steps[0], prompt_ids=[1] * 100)
    episodes = [*mixed[:4]]
    episodes[1] = dataclasses.replace(mixed[1], steps=[long], reward=1.0)
    numbers = ppo.prepare(1, episodes, ppo.open_models(config), config, "p")
    cost = [0.1 * sum(not step.readable for step in episode.steps) for episode in episodes]
    earned = [episode.reward - own for episode, own in zip(episodes, cost, strict=True)]
    others = (sum(earned) - earned[0]) / 3
    assert float(numbers.advantages[0]) == pytest.approx(earned[0] - others, abs=1e-5)
    assert numbers.layout.lengths()[1] == [0]


def test_log_probabilities_are_those_of_each_row_alone(tiny_llama, mixed):
    loaded = load(tiny_llama)
    layout = lay_out(mixed, loaded, config_of(tiny_llama))
    batch, sampled = collate(layout.rows, loaded, "")
    logits, ids = sampled_logits(loaded.model, batch, sampled)
    logprobs = logits.log_softmax(-1).gather(1, ids[:, None])[:, 0]
    alone = torch.tensor([p for row in layout.rows for p in row.step.logprobs])
    assert torch.allclose(logprobs, alone, atol=1e-4)
    assert layout.tokens == sum(episode.tokens for episode in mixed)


def test_what_an_update_learns_from_is_computed_over_whole_episodes(tiny_llama, mixed):
    config = config_of(tiny_llama, whiten="no", staleness=1, gamma=0.9, length_penalty=0.5,
                       length_budget=1)  # fmt: skip
    models = ppo.open_models(config)
    torch.nn.init.normal_(
        models.critic.model.head.weight, generator=torch.Generator().manual_seed(1)
    )
    old = dataclasses.replace(mixed[2].steps[0], version="p-step-2")
    episodes = [*mixed]
    episodes[2] = dataclasses.replace(mixed[2], steps=[old, *mixed[2].steps[1:]])
    numbers = ppo.prepare(4, episodes, models, config, "p")
    at = 0
    for n, episode in enumerate(episodes):
        end = at + episode.tokens
        rewards, place = [0.0] * episode.tokens, -1
        for step in episode.steps:
            place += len(step.output_ids)
            rewards[place] -= 0.0 if step.readable else 0.1
        rewards[place] += episode.reward - 0.5 * max(0, len(episode.steps) - 1)
        rewards[place] += 0.5 * max(0, len(episode.steps) - 2)  # no more than all of it
        values = [*numbers.values[at:end].tolist(), 0.0]
        lam = max(0.0, 1 - 1 / (0.05 * episode.tokens))
        assert float(numbers.lambdas[n]) == pytest.approx(lam)
        advantage = ret = 0.0
        for t in reversed(range(episode.tokens)):
            delta = rewards[t] + 0.9 * values[t + 1] - values[t]
            advantage = delta + 0.9 * lam * advantage
            ret = rewards[t] + 0.9 * ret
            assert float(numbers.advantages[at + t]) == pytest.approx(advantage, abs=1e-5)
            assert float(numbers.returns[at + t]) == pytest.approx(ret, abs=1e-5)
        at = end
    # "base" is the start: three updates behind, and the bound is one.
    fresh = numbers.learnt.nonzero()[:, 0].tolist()
    first = sum(episode.tokens for episode in episodes[:2])
    assert fresh == list(range(first, first + len(old.output_ids)))
    figures = ppo.figures_of(numbers, models, config)
    rows = len(numbers.layout.rows)
    assert (figures["too_stale"], figures["staleness_max"]) == (rows - 1, 3)
    moved = ppo.update(4, numbers, models, config)
    assert moved["grad_norm"] > 0


@pytest.mark.parametrize("changes", [{}, {"kl": 0.1, "entropy": 0.01, "value_clip": 0.2}])
def test_an_update_is_the_same_however_it_is_split_into_passes(tiny_llama, mixed, changes):
    said, weights = [], []
    for micro in (0, 30):
        config = config_of(
            tiny_llama, micro_tokens=micro, ppo_epochs=2, minibatches=2, critic_updates=2,
            learning_rate=1e-4, critic_learning_rate=1e-4, **changes,
        )  # fmt: skip
        models = ppo.open_models(config)
        numbers = ppo.prepare(1, mixed, models, config, "p")
        said.append(
            ppo.figures_of(numbers, models, config) | ppo.update(1, numbers, models, config)
        )
        weights.append(
            [p.detach().clone() for one in (models.policy, models.critic) for p in one.masters.full]
        )
    for other, moved in zip(said[1:], weights[1:], strict=True):
        assert other == pytest.approx(said[0], rel=1e-4, abs=1e-5)
        assert (
            max(float((a - b).abs().max()) for a, b in zip(moved, weights[0], strict=True)) < 1e-5
        )


def test_the_loss_on_what_succeeded_is_the_mean_over_its_own_tokens(tiny_llama, mixed):
    config = config_of(tiny_llama)
    models = ppo.open_models(config)
    numbers = ppo.prepare(1, mixed, models, config, "p")
    figures = ppo.update(1, numbers, models, config)
    of_successes = torch.cat([
        torch.tensor(step.logprobs) for e in mixed if e.reward == 1 for step in e.steps
    ])  # fmt: skip
    assert figures["positive_nll"] == pytest.approx(float(-of_successes.mean()), rel=1e-4)
    # With advantages of mean 0 and unchanged weights the policy's own part is 0.
    assert figures["policy_loss"] == pytest.approx(0, abs=1e-4)
    assert figures["loss"] == pytest.approx(0.1 * figures["positive_nll"], abs=1e-4)


def test_the_price_of_leaving_the_start_is_taken_from_the_reward(tiny_llama, tiny_lora, mixed):
    """Without its adapter a model is the start only where the adapter began with the run."""
    for base, start in ((tiny_llama, None), (tiny_lora, object)):
        config = config_of(base, kl=0.5, learning_rate=1e-2)
        models = ppo.open_models(config)
        assert (models.start is None) == (start is None)
        first = ppo.prepare(1, mixed, models, config, "p")
        assert first.figures["kl_start"] == pytest.approx(0, abs=1e-5)
        ppo.update(1, first, models, config)
        then = ppo.prepare(2, mixed, models, config, "p")
        cost = 0.5 * (then.prox - first.prox)
        assert float(cost.abs().max()) > 0.01
        assert torch.allclose(first.rewards - then.rewards, cost, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "the run has no critic"),
        ({"critic": "base"}, "is no critic, its role is policy"),
        ({"critic": "pretrained", "actor": "another"}, "belongs to the actor own"),
        ({"critic": "pretrained", "min_explained_variance": 0.99}, "below the 0.99"),
    ],
)
def test_it_refuses_a_critic_that_it_was_not_told_to_take(
    tmp_path, tiny_llama, spelling, change, message
):
    if change.get("critic") == "pretrained":
        loaded = load(tiny_llama)
        played = rewarded(play(loaded, 20, seed=1), {"A": 1.0, "B": 0.0}, loaded)
        run = stream(tmp_path / "v", played, base=str(tiny_llama), version="v", actor="own", steps=1,
                     lora_rank=4)  # fmt: skip
        assert job.main("value", value.Config, value.train, value.show, [str(run.path)]) == 0
        change = {**change, "critic": str(run.path / run.status().checkpoint)}
    elif change:
        change = {"critic": str(tiny_llama)}
    config = {**CONFIG, "any_critic": "no", "actor": "own", **change}
    run = stream(tmp_path / "p", [], base=str(tiny_llama), **config)
    assert ppo_main([str(run.path)]) == 1
    assert message in run.status().error
    assert not (run.path / "updates.jsonl").exists()


def test_a_stream_that_ends_gives_a_shorter_last_batch_and_an_empty_one_nothing(
    tmp_path, tiny_llama
):
    config = {**CONFIG, "dtype": "bfloat16", "gradient_checkpointing": "yes"}
    run = stream(tmp_path / "run", play(tiny_llama, 11, seed=1), base=str(tiny_llama), **config)
    assert ppo_main([str(run.path)]) == 0
    assert [line["episodes"] for line in metrics(run)] == [8, 3]
    assert metrics(run)[0]["mismatch_kl"] < 0.01  # what half the precision of the trainer costs
    assert (run.status().state, run.status().step, run.steps()) == ("succeeded", 2, [2])
    empty = stream(tmp_path / "empty", [], base=str(tiny_llama), **CONFIG)
    assert ppo_main([str(empty.path)]) == 1
    assert "without an episode" in empty.status().error


@pytest.mark.parametrize("model", ["tiny_qwen3_vl", "tiny_qwen2_5_vl"])
def test_a_model_that_sees_is_updated(tmp_path, request, model):
    base = request.getfixturevalue(model)
    seen = seeing(tmp_path, load(base), 8)
    run = stream(
        tmp_path / "run", seen, base=str(base), blobs=str(tmp_path), **{**CONFIG, "updates": 1}
    )
    assert ppo_main([str(run.path)]) == 0
    (line,) = metrics(run)
    assert line["grad_norm"] > 0 and line["critic_grad_norm"] > 0 and line["rounds"] == 2
    assert load(run.checkpoint(1)).manifest.version == "p-step-1"


def test_a_step_that_can_not_be_learnt_from_is_passed_over(tmp_path, tiny_llama, capsys):
    episodes = play(tiny_llama, 8, seed=1)
    long = dataclasses.replace(episodes[0].steps[0], prompt_ids=[5] * 3000)
    episodes[0] = dataclasses.replace(episodes[0], steps=[long, episodes[0].steps[1]])
    run = stream(tmp_path / "run", episodes, base=str(tiny_llama), **CONFIG)
    assert ppo_main([str(run.path)]) == 0
    (line,) = metrics(run)
    assert (line["left_out"], line["tokens"]) == (1, 30)
    assert "row episode-1-1/0: 3002 tokens, more than 2048: left out" in capsys.readouterr().out


def test_thoughts_are_what_comes_before_the_action(tiny_llama):
    loaded = load(tiny_llama)
    encode = loaded.processor.tokenizer.encode
    episode = play(loaded, 1, seed=1)[0]
    for text, before in (
        ("Thought: I do.\nAction: wait()", 15),
        ("Thought: I", 10),
        ("Action: a", 0),
    ):
        step = dataclasses.replace(
            episode.steps[0], output_ids=encode(text).ids, logprobs=[0.0] * len(encode(text).ids)
        )
        (row,) = lay_out(
            [dataclasses.replace(episode, steps=[step])], loaded, config_of(tiny_llama)
        ).rows
        assert thought_tokens(row, loaded) == before


def test_the_dry_run_colours_what_was_said_by_its_advantage(tmp_path, tiny_llama, capsys):
    run = stream(tmp_path / "run", play(tiny_llama, 8, seed=1), base=str(tiny_llama), **CONFIG)
    assert ppo_main([str(run.path), "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert f"lambda {float(gae.length_adaptive_lambda(torch.tensor([4]))[0]):.4f}" in said
    assert "\033[90m0:say " in said and "half-life" in said and "return" in said
    assert run.status().state == "queued" and not (run.path / "updates.jsonl").exists()
