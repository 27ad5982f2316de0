// Tokens in Megatron's indexed format: a .bin file of raw tokens and an .idx file that tells where each
// sequence of them lies.
//
// .idx, little endian: "MMIDIDX\0\0" | u64 version 1 | u8 type code | u64 sequences | u64 document boundaries
// | i32 lengths[sequences] | i64 byte offsets[sequences] | i64 boundaries[document boundaries] | optional i8
// modes[sequences]. (Megatron-LM, megatron/core/datasets/indexed_dataset.py)
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/data/mapped_file.h"
#include "runtime/data/token_source.h"
#include "specs/diagnostics/diagnostic.h"

namespace runtime {

/// How a token is stored; the values are the type codes of the format, which has floating-point ones too.
enum class TokenType : std::uint8_t { u8 = 1, i8 = 2, i16 = 3, i32 = 4, i64 = 5, u16 = 8 };

/// All sequences, in the order of the index, as one stream.
class IndexedSource final : public TokenSource {
 public:
  /// `path` is the .bin, the .idx, or what they have in common. A token outside 0 … vocabulary − 1 is a
  /// DataError when it is read.
  static specs::Result<std::unique_ptr<IndexedSource>> open(const std::filesystem::path& path,
                                                            std::int64_t vocabulary);

  /// True where `path` names either file, or what they have in common.
  static bool recognises(const std::filesystem::path& path);

  std::int64_t size() const override { return first_token_.back(); }
  void read(std::int64_t first, std::span<std::int64_t> tokens) const override;

 private:
  IndexedSource(std::string path, MappedFile tokens, TokenType type, std::int64_t vocabulary)
      : path_(std::move(path)), tokens_(std::move(tokens)), type_(type), vocabulary_(vocabulary) {}

  std::string path_;
  MappedFile tokens_;
  TokenType type_;
  std::int64_t vocabulary_;
  std::vector<std::int64_t> first_token_{0};  ///< of each sequence, and the total at the end
  std::vector<std::int64_t> byte_offset_;     ///< of each sequence in the .bin
};

}  // namespace runtime
