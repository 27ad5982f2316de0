// What a software stack does that changes the price of a placement: which kernels it has, what it keeps, what
// it overlaps. Facts, not fits: the fitted numbers stand in specs/catalog/constants under the stack's name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "specs/language/training.h"

namespace cost_models {

/// The family of memory formulas that a stack follows.
enum class MemoryRules : std::uint8_t {
  megatron_core,       ///< Transformer Engine modules, distributed optimizer
  fsdp2,               ///< fully sharded parameters in fp32, compute copies in bf16
  deepspeed,           ///< Hugging Face modules under ZeRO
  megatron_deepspeed,  ///< DeepSpeed's pipeline engine around Megatron layers
  dsrun,               ///< this project's runtime
};

/// Releases whose mixture-of-experts kernels differ in speed.
enum class MixtureRelease : std::uint8_t { early, r25_09, r26_02 };

/// How the loss is computed from the logits.
enum class CrossEntropy : std::uint8_t {
  parallel,  ///< Megatron's vocabulary-parallel loss: one kernel for each operation, in fp32
  jit,       ///< the same with its operations fused by the JIT compiler
  eager,     ///< PyTorch's log-softmax on fp32 logits
  compiled,  ///< the whole loss compiled
  fused,     ///< one kernel forward, one backward, in 16 bits
};

/// Switches of a run beyond its stack's defaults: the experiment's `stack_features` and `compile`.
struct StackOptions {
  bool compiled = false;                    ///< torch.compile
  bool async_tensor_parallel = false;       ///< "async_tp": communication split and overlapped with its GEMM
  bool rowwise_scales = false;              ///< "float8_rowwise"
  bool layers_only = false;                 ///< "layers_only": no embedding, output layer or optimizer step
  bool fused_linear_cross_entropy = false;  ///< "liger": logits in slices
  bool fused_cross_entropy = false;         ///< "fused_cross_entropy": gradient in place of the logits
  bool balanced_stages = false;  ///< "balanced_stages": cut by hand so that all ranks take equally long
  bool partial_graphs = false;   ///< "partial_graphs": CUDA graphs of attention, router and preprocessing
  bool full_graphs =
      false;  ///< "full_graphs": CUDA graphs of the whole iteration, with fused grouped products
  bool expert_overlap = false;  ///< "expert_overlap": all-to-all beside the compute of another micro-batch
  bool local_reduction =
      false;  ///< "no_torch_ddp": gradients are reduced in one go after the last backward pass
  bool compiled_loss = false;  ///< "compiled_loss": torchtitan since early 2025
  bool operator==(const StackOptions&) const = default;
};

StackOptions stack_options(const specs::TrainingSpec& training);

struct StackProfile {
  std::string name;
  std::string constants;         ///< name under which the fitted constants stand
  std::string tensor_constants;  ///< "default", "nemo" or "megatron-core": the exposed shares
  std::string data_constants;
  MemoryRules memory = MemoryRules::megatron_core;
  CrossEntropy cross_entropy = CrossEntropy::eager;
  MixtureRelease mixture_release = MixtureRelease::r26_02;
  bool flash_attention_2 = false;            ///< on Hopper: not the Hopper-specific kernel
  bool triton_attention = false;             ///< on Hopper: the Triton kernel
  bool accumulates_in_gemm_buffers = false;  ///< weight gradients are added to a buffer each micro-batch
  bool transformer_engine = false;           ///< modules of Transformer Engine
  bool hides_backward_tensor_communication = false;  ///< behind the weight-gradient product of the same layer
  bool hides_pipeline_transfers = false;
  bool checkpointing_synchronises = false;  ///< activation checkpointing lets the device wait
  bool prefetches_gathers = true;           ///< ZeRO-3 gathers run ahead of their use
  bool exact = true;                        ///< false: constants are the nearest stack's
  std::string stand_in;                     ///< that stack
  StackOptions options;
  bool operator==(const StackProfile&) const = default;
};

/// The profile of a stack and release, or the nearest known one with `exact` false.
StackProfile stack_profile(std::string_view stack, std::string_view release,
                           const StackOptions& options = {});

StackProfile stack_profile(const specs::TrainingSpec& training);

/// Bytes that the loss moves for each 16-bit logit, forward and backward, counting each kernel's reads and
/// writes.
double loss_bytes_per_logit(const StackProfile& profile);

}  // namespace cost_models
