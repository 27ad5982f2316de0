// The text of a run: what is trained on, and what is held back to measure the loss.
//
// The last `held_back_fraction` of the tokens is held back and never trained on. Both parts are cut into
// sequences of S inputs and their S targets, which are the inputs shifted by one token: sequence i covers
// tokens i · S … i · S + S of its part. What is left at the end of a part and fills no sequence is not used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "runtime/data/token_source.h"
#include "specs/diagnostics/diagnostic.h"
#include "specs/language/training.h"

namespace runtime {

/// Sequences of one length, side by side in a part of a source.
class SequenceRange {
 public:
  SequenceRange(const TokenSource& source, std::int64_t first_token, std::int64_t tokens, std::int64_t length)
      : source_(&source), first_token_(first_token), tokens_(tokens), length_(length) {}

  std::int64_t sequences() const { return tokens_ > 0 ? (tokens_ - 1) / length_ : 0; }
  std::int64_t length() const { return length_; }
  std::int64_t first_token() const { return first_token_; }
  std::int64_t tokens() const { return tokens_; }

  /// `tokens` has length + 1 places: the inputs are all but the last, the targets all but the first.
  void read(std::int64_t sequence, std::span<std::int64_t> tokens) const {
    source_->read(first_token_ + sequence * length_, tokens);
  }

 private:
  const TokenSource* source_;
  std::int64_t first_token_;
  std::int64_t tokens_;
  std::int64_t length_;
};

struct TrainingData {
  std::unique_ptr<TokenSource> source;
  SequenceRange training;
  SequenceRange held_back;

  /// Of the frequencies of the held-back tokens, in nats; 0 where there are none. Reads them all.
  double held_back_entropy() const;
};

/// Opens text, or tokens in Megatron's format, and checks that one global batch can be made of it, and one
/// held-back sequence unless the fraction is 0. Only the first `maximum_tokens` are used; 0: all.
specs::Result<TrainingData> open_data(const std::filesystem::path& path, const specs::TrainingSpec& training,
                                      std::int64_t vocabulary, std::int64_t maximum_tokens = 0);

/// −Σ p ln p over the frequencies p of tokens first … first + tokens − 1: the loss, in nats for each token,
/// of the best model that does not look at what came before.
double frequency_entropy(const TokenSource& source, std::int64_t first, std::int64_t tokens);

}  // namespace runtime
