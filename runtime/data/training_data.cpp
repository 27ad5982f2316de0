#include "runtime/data/training_data.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "runtime/data/data_error.h"
#include "runtime/data/indexed_source.h"
#include "runtime/data/text_source.h"

namespace runtime {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t byte_symbols = 256;

using SourceResult = specs::Result<std::unique_ptr<TokenSource>>;

template <class Source>
SourceResult as_source(specs::Result<std::unique_ptr<Source>> opened) {
  SourceResult result;
  result.diagnostics = std::move(opened.diagnostics);
  if (opened) result.value = std::move(*opened);
  return result;
}

SourceResult open_source(const fs::path& path, const std::string& tokenizer, std::int64_t vocabulary,
                         std::int64_t maximum_tokens) {
  if (tokenizer == "none" || IndexedSource::recognises(path))
    return as_source(IndexedSource::open(path, vocabulary));
  SourceResult result;
  if (tokenizer != "byte") {
    result.diagnostics.error({path.string()}, fmt::format("tokenizer '{}' is not known", tokenizer),
                             "use tokenizer \"byte\" for text, \"none\" for .bin/.idx files of token ids");
    return result;
  }
  if (vocabulary < byte_symbols) {
    result.diagnostics.error(
        {path.string()},
        fmt::format("text has {} symbols, one for each byte, but the model's vocabulary is {}", byte_symbols,
                    vocabulary),
        fmt::format("set vocabulary to {} or more", byte_symbols));
    return result;
  }
  return as_source(TextSource::open(path, maximum_tokens));
}

/// Tokens that are held back: at least one sequence, where any are.
std::int64_t held_back_tokens(std::int64_t tokens, const specs::TrainingSpec& training) {
  const double fraction = training.data.held_back_fraction;
  if (fraction <= 0) return 0;
  const auto share = static_cast<std::int64_t>(std::ceil(static_cast<double>(tokens) * fraction));
  return std::min(tokens, std::max(share, training.sequence_length + 1));
}

}  // namespace

specs::Result<TrainingData> open_data(const fs::path& path, const specs::TrainingSpec& training,
                                      std::int64_t vocabulary, std::int64_t maximum_tokens) {
  specs::Result<TrainingData> result;
  SourceResult source;
  try {
    source = open_source(path, training.data.tokenizer, vocabulary, maximum_tokens);
  } catch (const DataError& error) {
    result.diagnostics.error({path.string()}, error.what(), "check that the file can be read");
    return result;
  }
  result.diagnostics = std::move(source.diagnostics);
  if (!source) return result;

  const std::int64_t length = training.sequence_length;
  const std::int64_t available = (*source)->size();
  const std::int64_t tokens = maximum_tokens > 0 ? std::min(available, maximum_tokens) : available;
  const std::int64_t held_back = held_back_tokens(tokens, training);
  SequenceRange train(**source, 0, tokens - held_back, length);
  if (train.sequences() < training.global_batch) {
    const std::int64_t needed = training.global_batch * length + 1;
    result.diagnostics.error(
        {path.string()},
        fmt::format("too little text for one batch: {} tokens, of which {} are held back and {} give {} "
                    "sequences of {}, but the global batch is {} sequences ({} tokens to train on)",
                    tokens, held_back, tokens - held_back, train.sequences(), length, training.global_batch,
                    needed),
        "give --data more text, or make global_batch or sequence_length smaller");
    return result;
  }
  SequenceRange evaluation(**source, tokens - held_back, held_back, length);
  result.value.emplace(TrainingData{std::move(*source), train, evaluation});
  return result;
}

double TrainingData::held_back_entropy() const {
  return frequency_entropy(*source, held_back.first_token(), held_back.tokens());
}

double frequency_entropy(const TokenSource& source, std::int64_t first, std::int64_t tokens) {
  constexpr std::int64_t block = 1 << 16;
  std::map<std::int64_t, std::int64_t> counts;
  std::vector<std::int64_t> buffer;
  for (std::int64_t done = 0; done < tokens; done += static_cast<std::int64_t>(buffer.size())) {
    buffer.resize(static_cast<std::size_t>(std::min(block, tokens - done)));
    source.read(first + done, buffer);
    for (const std::int64_t token : buffer) ++counts[token];
  }
  double entropy = 0;
  for (const auto& [token, count] : counts) {
    const double p = static_cast<double>(count) / static_cast<double>(tokens);
    entropy -= p * std::log(p);
  }
  return entropy;
}

}  // namespace runtime
