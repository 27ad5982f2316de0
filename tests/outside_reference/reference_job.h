// Trains a model from Hugging Face's files under one placement, for comparison with what PyTorch made of it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/worker_pool/worker_pool.h"
#include "specs/language/vocabulary.h"

namespace runtime {

struct ReferenceRequest {
  std::filesystem::path model;  ///< folder with config.json, weights and reference.safetensors
  specs::Precision precision = specs::Precision::fp32;
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::int64_t data = 1;
  std::int64_t zero_stage = 0;
  bool sequence_parallel = false;

  std::int64_t ranks() const { return tensor * pipeline * data; }
  std::string name() const;
};

struct ReferenceResult {
  std::vector<double> losses;
  double logit_difference = 0;  ///< largest, from PyTorch's; of one rank only
};

/// The job of the ranks, by the name "reference".
WorkerJobs reference_jobs();

std::string to_text(const ReferenceRequest& request);
ReferenceResult result_from(const std::string& text);

}  // namespace runtime
