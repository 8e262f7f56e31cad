"""Watch a Hugging Face Trainer: `python examples/training/watch_transformers.py RUN`."""

import sys
import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

import difflens

torch.manual_seed(0)
config = GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=2)
lines = torch.randint(0, 64, (128, 1)).add(torch.arange(32)).remainder(64)  # counting
data = [{"input_ids": line, "labels": line} for line in lines]

with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder, max_steps=40, per_device_train_batch_size=16, learning_rate=1e-3, logging_steps=1,
        report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    Trainer(
        GPT2LMHeadModel(config),
        arguments,
        train_dataset=data,
        callbacks=[difflens.transformers_callback(sys.argv[1], every=1)],
    ).train()
