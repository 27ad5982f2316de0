#include "runtime/data/indexed_source.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>

#include "runtime/data/data_error.h"

namespace runtime {

namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "the format is little endian, and read as it lies");

constexpr std::string_view magic{"MMIDIDX\0\0", 9};
constexpr std::size_t header_bytes = 9 + 8 + 1 + 8 + 8;

std::optional<std::int64_t> bytes_of(TokenType type) {
  switch (type) {
    case TokenType::u8:
    case TokenType::i8:
      return 1;
    case TokenType::i16:
    case TokenType::u16:
      return 2;
    case TokenType::i32:
      return 4;
    case TokenType::i64:
      return 8;
  }
  return std::nullopt;
}

template <class Value>
Value load(const std::byte* from) {
  Value value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class Stored>
void widen(const std::byte* from, std::span<std::int64_t> to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = load<Stored>(from + i * sizeof(Stored));
}

void widen(TokenType type, const std::byte* from, std::span<std::int64_t> to) {
  switch (type) {
    case TokenType::u8:
      return widen<std::uint8_t>(from, to);
    case TokenType::i8:
      return widen<std::int8_t>(from, to);
    case TokenType::i16:
      return widen<std::int16_t>(from, to);
    case TokenType::u16:
      return widen<std::uint16_t>(from, to);
    case TokenType::i32:
      return widen<std::int32_t>(from, to);
    case TokenType::i64:
      return widen<std::int64_t>(from, to);
  }
}

struct Index {
  TokenType type = TokenType::u8;
  std::uint64_t sequences = 0;
  const std::byte* lengths = nullptr;
  const std::byte* offsets = nullptr;
};

/// The index, or why it is none.
std::optional<Index> parse(std::span<const std::byte> bytes, std::string& reason) {
  if (bytes.size() < header_bytes || std::memcmp(bytes.data(), magic.data(), magic.size()) != 0) {
    reason = "does not begin with MMIDIDX: no index of Megatron's format";
    return std::nullopt;
  }
  const auto version = load<std::uint64_t>(bytes.data() + 9);
  if (version != 1) {
    reason = "has version " + std::to_string(version) + "; only version 1 is known";
    return std::nullopt;
  }
  Index index;
  index.type = static_cast<TokenType>(bytes[17]);
  if (!bytes_of(index.type)) {
    reason = "has type code " + std::to_string(std::to_integer<int>(bytes[17])) +
             ", which is no integer; known are 1 u8, 2 i8, 3 i16, 4 i32, 5 i64, 8 u16";
    return std::nullopt;
  }
  index.sequences = load<std::uint64_t>(bytes.data() + 18);
  const auto boundaries = load<std::uint64_t>(bytes.data() + 26);
  const std::uint64_t room = bytes.size() - header_bytes;
  if (index.sequences > room / 12 || boundaries > (room - index.sequences * 12) / 8) {
    reason = "is " + std::to_string(bytes.size()) + " bytes long, too short for the " +
             std::to_string(index.sequences) + " sequences and " + std::to_string(boundaries) +
             " document boundaries it announces";
    return std::nullopt;
  }
  index.lengths = bytes.data() + header_bytes;
  index.offsets = index.lengths + index.sequences * 4;
  return index;
}

fs::path stem_of(const fs::path& path) {
  return path.extension() == ".bin" || path.extension() == ".idx" ? fs::path(path).replace_extension() : path;
}

fs::path with(const fs::path& stem, const char* extension) { return stem.native() + extension; }

}  // namespace

bool IndexedSource::recognises(const fs::path& path) {
  return path.extension() == ".idx" || fs::is_regular_file(with(stem_of(path), ".idx"));
}

specs::Result<std::unique_ptr<IndexedSource>> IndexedSource::open(const fs::path& path,
                                                                  std::int64_t vocabulary) {
  specs::Result<std::unique_ptr<IndexedSource>> result;
  const fs::path stem = stem_of(path);
  const fs::path index_path = with(stem, ".idx"), tokens_path = with(stem, ".bin");
  for (const fs::path& file : {index_path, tokens_path})
    if (!fs::is_regular_file(file))
      result.diagnostics.error({file.string()}, "no such file: tokens need both a .bin and an .idx",
                               "give --data the path of either; they lie beside each other");
  if (result.diagnostics.has_errors()) return result;

  const auto fail = [&](const fs::path& file, const std::string& message) {
    result.diagnostics.error({file.string()}, message, "write both files anew from the same run");
    return std::move(result);
  };
  const MappedFile index_file(index_path);
  std::string reason;
  const std::optional<Index> index = parse(index_file.bytes(), reason);
  if (!index) return fail(index_path, reason);

  std::unique_ptr<IndexedSource> source(
      new IndexedSource(tokens_path.string(), MappedFile(tokens_path), index->type, vocabulary));
  const auto available = static_cast<std::int64_t>(source->tokens_.bytes().size());
  const std::int64_t token_bytes = *bytes_of(index->type);
  source->first_token_.reserve(index->sequences + 1);
  source->byte_offset_.reserve(index->sequences);
  for (std::uint64_t i = 0; i < index->sequences; ++i) {
    const std::int64_t length = load<std::int32_t>(index->lengths + i * 4);
    const auto offset = load<std::int64_t>(index->offsets + i * 8);
    if (length < 0 || offset < 0 || offset > available || length > (available - offset) / token_bytes)
      return fail(tokens_path, "is " + std::to_string(available) + " bytes long, but sequence " +
                                   std::to_string(i) + " of the index has " + std::to_string(length) +
                                   " tokens of " + std::to_string(token_bytes) + " bytes from byte " +
                                   std::to_string(offset));
    source->byte_offset_.push_back(offset);
    source->first_token_.push_back(source->first_token_.back() + length);
  }
  if (source->size() == 0) return fail(index_path, "holds no tokens");
  result.value = std::move(source);
  return result;
}

void IndexedSource::read(std::int64_t first, std::span<std::int64_t> tokens) const {
  auto sequence = static_cast<std::size_t>(std::upper_bound(first_token_.begin(), first_token_.end(), first) -
                                           first_token_.begin() - 1);
  const std::int64_t token_bytes = *bytes_of(type_);
  std::int64_t position = first;
  for (std::span<std::int64_t> rest = tokens; !rest.empty(); ++sequence) {
    const auto count =
        std::min(static_cast<std::int64_t>(rest.size()), first_token_[sequence + 1] - position);
    const std::int64_t offset = byte_offset_[sequence] + (position - first_token_[sequence]) * token_bytes;
    widen(type_, tokens_.bytes().data() + offset, rest.first(static_cast<std::size_t>(count)));
    rest = rest.subspan(static_cast<std::size_t>(count));
    position += count;
  }
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || tokens[i] >= vocabulary_)
      throw DataError(path_ + ": token " + std::to_string(first + static_cast<std::int64_t>(i)) + " is " +
                      std::to_string(tokens[i]) + ", outside of the model's vocabulary of " +
                      std::to_string(vocabulary_));
}

}  // namespace runtime
