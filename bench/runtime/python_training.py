"""One rank of a training run in PyTorch, as its documentation says it runs best; bench/vs_python starts it.

    python_training.py MODE PRECISION RANK RANKS STORE    MODE: ddp, fsdp2 or pipeline; PRECISION: fp32 or bf16

Prints seconds a step (median) and peak memory above the value after start-up as one line of JSON.
"""

import contextlib
import json
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

LAYERS, HIDDEN, HEADS, VOCABULARY, LENGTH = 6, 512, 8, 8192, 256
SEQUENCES = 16  # a step, of all ranks
PIPELINE_MICRO_BATCHES = 4
WARM_UP, STEPS = 1, 3


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.qkv, self.attention_output = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.up, self.down = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, x):
        q, k, v = (
            part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.qkv(self.ln_1(x)).chunk(3, -1)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attention_output(mixed.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """All of the model, or the blocks of one pipeline stage with the ends that belong to it."""

    def __init__(self, first=0, last=LAYERS, tied=True):
        super().__init__()
        self.begins, self.ends = first == 0, last == LAYERS
        if self.begins:
            self.tokens, self.positions = nn.Embedding(VOCABULARY, HIDDEN), nn.Embedding(LENGTH, HIDDEN)
        self.blocks = nn.ModuleList(Block() for _ in range(first, last))
        if self.ends:
            self.norm = nn.LayerNorm(HIDDEN)
            self.output = nn.Linear(HIDDEN, VOCABULARY, bias=False)
            if tied:
                self.output.weight = self.tokens.weight
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, x):
        if self.begins:
            x = self.tokens(x) + self.positions.weight[: x.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.output(self.norm(x)) if self.ends else x


def loss_of(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def status(field):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def optimizer_of(model):
    return torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)


def autocast(precision):
    return torch.autocast("cpu", torch.bfloat16) if precision == "bf16" else contextlib.nullcontext()


def data_parallel_step(mode, precision, rank, ranks):
    model = Gpt()
    if mode == "ddp":
        model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True, static_graph=True)
        context = lambda: autocast(precision)
    else:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

        mesh = init_device_mesh("cpu", (ranks,))
        policy = (
            MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
            if precision == "bf16"
            else MixedPrecisionPolicy()
        )
        for block in model.blocks:
            fully_shard(block, mesh=mesh, mp_policy=policy)
        fully_shard(model, mesh=mesh, mp_policy=policy)
        context = contextlib.nullcontext
    optimizer = optimizer_of(model)
    share = SEQUENCES // ranks

    def step(tokens, targets):
        with context():
            loss = loss_of(model(tokens[rank * share :][:share]), targets[rank * share :][:share])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def pipeline_step(precision, rank, ranks):
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    # Embedding and output are separate tables here: PyTorch's pipelines do not sum tied ones.
    model = Gpt(LAYERS * rank // ranks, LAYERS * (rank + 1) // ranks, tied=False)
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32

    class Stage(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, x):
            with autocast(precision):
                y = self.model(x)
            return y if model.ends else y.to(dtype)

    size = SEQUENCES // PIPELINE_MICRO_BATCHES
    tokens_like = torch.zeros(size, LENGTH, dtype=torch.long)
    stream_like = torch.zeros(size, LENGTH, HIDDEN, dtype=dtype, requires_grad=True)
    logits_like = torch.zeros(size, LENGTH, VOCABULARY, dtype=dtype, requires_grad=True)
    stage = PipelineStage(
        Stage(), rank, ranks, torch.device("cpu"),
        input_args=tokens_like if model.begins else stream_like, output_args=logits_like if model.ends else stream_like,
    )  # fmt: skip
    del tokens_like, stream_like, logits_like
    schedule = Schedule1F1B(stage, PIPELINE_MICRO_BATCHES, loss_fn=loss_of)
    optimizer = optimizer_of(model)

    def step(tokens, targets):
        if rank == 0:
            schedule.step(tokens)
        else:
            schedule.step(target=targets, losses=[])
        optimizer.step()
        optimizer.zero_grad()

    return step


def main():
    mode, precision, rank, ranks, store = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    dist.barrier()
    start_bytes = status("VmRSS")
    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")
    step = pipeline_step(precision, rank, ranks) if mode == "pipeline" else data_parallel_step(mode, precision, rank, ranks)
    generator = torch.Generator().manual_seed(0)
    tokens, targets = (torch.randint(VOCABULARY, (SEQUENCES, LENGTH), generator=generator) for _ in range(2))
    seconds = []
    for index in range(WARM_UP + STEPS):
        begin = time.perf_counter()
        step(tokens, targets)
        dist.barrier()
        if index >= WARM_UP:
            seconds.append(time.perf_counter() - begin)
    print(json.dumps({"seconds": statistics.median(seconds), "peak_bytes": status("VmHWM") - start_bytes}), flush=True)
    dist.destroy_process_group()


main()
