"""TRL's SFTTrainer with marks, in an environment of its own: `python sft_trl.py SETTINGS.json`.

Its best settings for a CPU: rows grouped by length, fused AdamW, no gradient checkpointing (its default
is on), no logging, loss on the completion only. Packing and padding-free batches need flash attention.
Rows come tokenised. "bfloat16" is its mixed precision: fp32 weights under autocast; "bfloat16-weights"
keeps no fp32 copy at all, which is faster and learns less exactly.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
sys.path.insert(0, str(Path(__file__).parent))

import torch
from datasets import Dataset
from sft_marks import Marks
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import SFTConfig, SFTTrainer


def main(path: str) -> None:
    given = json.loads(Path(path).read_text())
    torch.set_num_threads(given["threads"])
    marks = Marks()

    class Mark(TrainerCallback):
        def on_step_end(self, *args: object, **more: object) -> None:
            marks.step()

    low = given["dtype"] == "bfloat16-weights"
    model = AutoModelForCausalLM.from_pretrained(
        given["model"], dtype=torch.bfloat16 if low else torch.float32
    )
    peft = None
    if given["lora_rank"]:
        from peft import LoraConfig

        peft = LoraConfig(
            r=given["lora_rank"], lora_alpha=2 * given["lora_rank"], lora_dropout=0.0,
            target_modules="all-linear", bias="none", task_type="CAUSAL_LM",
        )  # fmt: skip
    config = SFTConfig(
        output_dir=given["out"], max_steps=given["steps"], use_cpu=True,
        per_device_train_batch_size=given["batch_size"],
        learning_rate=given["learning_rate"], lr_scheduler_type="cosine", warmup_steps=2,
        bf16=given["dtype"] == "bfloat16", fp16=False, gradient_checkpointing=False,
        train_sampling_strategy="group_by_length", max_length=None, seed=0,
        completion_only_loss=given["loss"] == "target", logging_strategy="no",
        save_strategy="no", report_to="none", dataloader_pin_memory=False, disable_tqdm=True,
    )  # fmt: skip
    rows = [
        {
            "input_ids": row["prompt"] + row["target"],
            "completion_mask": [0] * len(row["prompt"]) + [1] * len(row["target"]),
        }
        for row in given["rows"]
    ]
    trainer = SFTTrainer(
        model=model, args=config, train_dataset=Dataset.from_list(rows), peft_config=peft,
        processing_class=AutoTokenizer.from_pretrained(given["model"]), callbacks=[Mark()],
    )  # fmt: skip
    collate = trainer.data_collator
    trainer.data_collator = lambda features: marks.count(collate(features))
    trainer.train()
    marks.tell()


if __name__ == "__main__":
    main(sys.argv[1])
