// Starting from weights of another program: safetensors files with Hugging Face's names.
#pragma once

#include <filesystem>

#include "runtime/train/trainer.h"

namespace runtime {

/// Collective, before the first step. `path`: a .safetensors file, or a folder with model.safetensors or with
/// model.safetensors.index.json and the files that it names; F64, F32, BF16 or F16. Each rank reads the parts
/// of the tensors that it answers for, whatever the placement. Errors: CheckpointError, the same on every
/// rank, naming the tensor that is absent or has another shape.
void load_pretrained_weights(const std::filesystem::path& path, Trainer& trainer);

}  // namespace runtime
