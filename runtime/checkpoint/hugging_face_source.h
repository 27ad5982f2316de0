// Where a parameter stands in the weight files of Hugging Face's GPT-2 and Llama families.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "specs/language/model.h"

namespace runtime {

/// The parameter [out, in] (or [out]) is part of a stored tensor: rows first_row … of it, or, where it is
/// stored transposed (GPT-2's Conv1D keeps [in, out]), as many columns.
struct HuggingFaceSource {
  std::string name;
  std::vector<std::int64_t> shape;  ///< of the stored tensor
  bool transposed = false;
  std::int64_t first_row = 0;
};

/// `name` and `shape` of `ParameterNames`. Files without GPT-2's leading "transformer." have the rest of the
/// name.
HuggingFaceSource hugging_face_source(const specs::ModelSpec& model, const std::string& name,
                                      const std::vector<std::int64_t>& shape);

}  // namespace runtime
