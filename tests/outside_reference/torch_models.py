"""GPT-2 and Llama in PyTorch, from their definitions, and ten steps of their training.

    torch_models.py FOLDER

writes FOLDER/gpt2 and FOLDER/llama, as Hugging Face would keep such models (config.json, safetensors with its
names), each with reference.safetensors: token ids and targets of ten batches, the logits of the first batch
before training, and the loss of each step, computed in fp32 and in fp64.
"""

import json
import math
import pathlib
import struct
import sys

import torch

STEPS, SEQUENCES, LENGTH = 10, 4, 24
LEARNING_RATE, BETAS, EPSILON, WEIGHT_DECAY, CLIP = 1e-3, (0.9, 0.95), 1e-8, 0.1, 1.0

GPT2 = {
    "model_type": "gpt2", "vocab_size": 83, "n_positions": 32, "n_embd": 48, "n_layer": 3, "n_head": 4,
    "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True,
}
LLAMA = {
    "model_type": "llama", "vocab_size": 83, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_act": "silu", "rms_norm_eps": 1e-5,
    "rope_theta": 500.0, "tie_word_embeddings": False, "max_position_embeddings": 64,
    "rope_scaling": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16,
    },
}  # fmt: skip


def attention(queries, keys, values):
    """softmax(q kᵀ / √d + causal mask) v; each [sequences, heads, length, head dim]."""
    length, dim = queries.shape[-2:]
    scores = queries @ keys.transpose(-2, -1) / math.sqrt(dim)
    later = torch.ones(length, length, dtype=torch.bool).triu(1)
    return torch.softmax(scores.masked_fill(later, -math.inf), -1) @ values


def heads_of(x, count):
    return x.unflatten(-1, (count, -1)).transpose(1, 2)


def gpt2_logits(w, tokens):
    def norm(x, name):
        mean = x.mean(-1, keepdim=True)
        variance = ((x - mean) ** 2).mean(-1, keepdim=True)
        return (x - mean) / torch.sqrt(variance + GPT2["layer_norm_epsilon"]) * w[name + ".weight"] + w[name + ".bias"]

    def conv1d(x, name):
        return x @ w[name + ".weight"] + w[name + ".bias"]

    def gelu_new(x):
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))

    x = w["wte.weight"][tokens] + w["wpe.weight"][: tokens.shape[1]]
    for layer in range(GPT2["n_layer"]):
        h = f"h.{layer}."
        q, k, v = conv1d(norm(x, h + "ln_1"), h + "attn.c_attn").chunk(3, -1)
        mixed = attention(*(heads_of(part, GPT2["n_head"]) for part in (q, k, v)))
        x = x + conv1d(mixed.transpose(1, 2).flatten(2), h + "attn.c_proj")
        x = x + conv1d(gelu_new(conv1d(norm(x, h + "ln_2"), h + "mlp.c_fc")), h + "mlp.c_proj")
    return norm(x, "ln_f") @ w["wte.weight"].T


def gpt2_shapes():
    h, f = GPT2["n_embd"], 4 * GPT2["n_embd"]
    shapes = {"wte.weight": (GPT2["vocab_size"], h), "wpe.weight": (GPT2["n_positions"], h)}
    for layer in range(GPT2["n_layer"]):
        for norm in ("ln_1", "ln_2"):
            shapes |= {f"h.{layer}.{norm}.weight": (h,), f"h.{layer}.{norm}.bias": (h,)}
        for name, inner, outer in (
            ("attn.c_attn", h, 3 * h), ("attn.c_proj", h, h), ("mlp.c_fc", h, f), ("mlp.c_proj", f, h),
        ):  # fmt: skip
            shapes |= {f"h.{layer}.{name}.weight": (inner, outer), f"h.{layer}.{name}.bias": (outer,)}
    return shapes | {"ln_f.weight": (h,), "ln_f.bias": (h,)}


def llama_frequencies(dim):
    """Radians per position of each pair of dimensions, stretched as Llama 3.1 does."""
    scaling = LLAMA["rope_scaling"]
    frequencies = []
    for i in range(dim // 2):
        frequency = LLAMA["rope_theta"] ** (-2 * i / dim)
        wavelength = 2 * math.pi / frequency
        turns = scaling["original_max_position_embeddings"] / wavelength
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        if turns < low:
            frequency /= scaling["factor"]
        elif turns < high:
            share = (turns - low) / (high - low)
            frequency = (1 - share) * frequency / scaling["factor"] + share * frequency
        frequencies.append(frequency)
    return torch.tensor(frequencies, dtype=torch.float64)


def llama_logits(w, tokens):
    def norm(x, name):
        return x / torch.sqrt((x**2).mean(-1, keepdim=True) + LLAMA["rms_norm_eps"]) * w[name + ".weight"]

    def linear(x, name):
        return x @ w[name + ".weight"].T

    heads, kv_heads = LLAMA["num_attention_heads"], LLAMA["num_key_value_heads"]
    positions = torch.arange(tokens.shape[1], dtype=torch.float64)
    angles = positions[:, None] * llama_frequencies(LLAMA["hidden_size"] // heads)
    dtype = w["model.norm.weight"].dtype
    cosine, sine = angles.cos().to(dtype), angles.sin().to(dtype)

    def rotate(x):
        first, second = x.chunk(2, -1)
        return torch.cat((first * cosine - second * sine, second * cosine + first * sine), -1)

    x = w["model.embed_tokens.weight"][tokens]
    for layer in range(LLAMA["num_hidden_layers"]):
        h = f"model.layers.{layer}."
        normed = norm(x, h + "input_layernorm")
        q = rotate(heads_of(linear(normed, h + "self_attn.q_proj"), heads))
        k = rotate(heads_of(linear(normed, h + "self_attn.k_proj"), kv_heads))
        v = heads_of(linear(normed, h + "self_attn.v_proj"), kv_heads)
        readers = heads // kv_heads  # query heads in a row that read one key head
        mixed = attention(q, k.repeat_interleave(readers, 1), v.repeat_interleave(readers, 1))
        x = x + linear(mixed.transpose(1, 2).flatten(2), h + "self_attn.o_proj")
        normed = norm(x, h + "post_attention_layernorm")
        gate = linear(normed, h + "mlp.gate_proj")
        inner = gate * torch.sigmoid(gate) * linear(normed, h + "mlp.up_proj")
        x = x + linear(inner, h + "mlp.down_proj")
    return norm(x, "model.norm") @ w["lm_head.weight"].T


def llama_shapes():
    h, f, v = LLAMA["hidden_size"], LLAMA["intermediate_size"], LLAMA["vocab_size"]
    kv = h // LLAMA["num_attention_heads"] * LLAMA["num_key_value_heads"]
    shapes = {"model.embed_tokens.weight": (v, h)}
    for layer in range(LLAMA["num_hidden_layers"]):
        for name, shape in {
            "input_layernorm": (h,), "post_attention_layernorm": (h,), "self_attn.q_proj": (h, h),
            "self_attn.k_proj": (kv, h), "self_attn.v_proj": (kv, h), "self_attn.o_proj": (h, h),
            "mlp.gate_proj": (f, h), "mlp.up_proj": (f, h), "mlp.down_proj": (h, f),
        }.items():  # fmt: skip
            shapes[f"model.layers.{layer}.{name}.weight"] = shape
    return shapes | {"model.norm.weight": (h,), "lm_head.weight": (v, h)}


def random_weights(shapes, seed):
    generator = torch.Generator().manual_seed(seed)

    def value(name, shape):
        noise = torch.randn(shape, generator=generator)
        is_norm_scale = len(shape) == 1 and name.endswith("weight")
        return 1 + 0.1 * noise if is_norm_scale else 0.08 * noise

    return {name: value(name, shape) for name, shape in shapes.items()}


def batches(vocabulary, seed):
    """Random tokens, whose targets are a function of them that can be learned."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(vocabulary, (STEPS, SEQUENCES, LENGTH), generator=generator)
    return tokens, tokens % 7


def train(logits_of, weights, tokens, targets, dtype):
    """Logits of the first batch before training, and the loss of each step."""
    w = {name: value.to(dtype, copy=True).requires_grad_() for name, value in weights.items()}
    decayed = [value for value in w.values() if value.dim() > 1]
    others = [value for value in w.values() if value.dim() == 1]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": WEIGHT_DECAY}, {"params": others, "weight_decay": 0.0}],
        lr=LEARNING_RATE, betas=BETAS, eps=EPSILON,
    )  # fmt: skip
    first_logits, losses = None, []
    for step in range(STEPS):
        logits = logits_of(w, tokens[step]).flatten(0, 1)
        if step == 0:
            first_logits = logits.detach()
        loss = (torch.logsumexp(logits, -1) - logits.gather(1, targets[step].reshape(-1, 1)).squeeze(1)).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(w.values(), CLIP)
        optimizer.step()
        losses.append(loss.item())
    return first_logits, torch.tensor(losses, dtype=torch.float64)


DTYPES = {torch.float32: "F32", torch.float64: "F64", torch.int64: "I64"}


def write_safetensors(path, tensors):
    header, offset, blobs = {}, 0, []
    for name, tensor in tensors.items():
        blob = bytes(tensor.contiguous().view(-1).view(torch.uint8).tolist())
        header[name] = {
            "dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, offset + len(blob)],
        }  # fmt: skip
        offset += len(blob)
        blobs.append(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def write_weights(folder, weights, parts):
    """One file, or several with the index that says which tensor is where."""
    if parts == 1:
        return write_safetensors(folder / "model.safetensors", weights)
    weight_map = {}
    for part in range(parts):
        names = list(weights)[part::parts]
        file = f"model-{part + 1:05}-of-{parts:05}.safetensors"
        write_safetensors(folder / file, {name: weights[name] for name in names})
        weight_map |= dict.fromkeys(names, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def write_model(folder, config, logits_of, shapes, seed, parts):
    folder.mkdir(parents=True, exist_ok=True)
    weights = random_weights(shapes, seed)
    tokens, targets = batches(config["vocab_size"], seed)
    (folder / "config.json").write_text(json.dumps(config))
    write_weights(folder, weights, parts)
    reference = {"tokens": tokens, "targets": targets}
    for name, dtype in (("fp32", torch.float32), ("fp64", torch.float64)):
        reference["logits." + name], reference["losses." + name] = train(logits_of, weights, tokens, targets, dtype)
    write_safetensors(folder / "reference.safetensors", reference)


def main():
    torch.set_num_threads(1)
    folder = pathlib.Path(sys.argv[1])
    write_model(folder / "gpt2", GPT2, gpt2_logits, gpt2_shapes(), seed=1, parts=1)
    write_model(folder / "llama", LLAMA, llama_logits, llama_shapes(), seed=2, parts=2)


main()
