#include "runtime/comm/agreement.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

namespace runtime {

namespace {

constexpr char done = '+';
constexpr char failed = '-';

std::vector<std::string> gather(const Communicator& ranks, const std::string& mine) {
  if (ranks.size() == 1) return {mine};
  const at::Tensor length = at::zeros({1}, at::kLong).fill_(static_cast<std::int64_t>(mine.size()));
  const at::Tensor lengths = at::empty({ranks.size()}, at::kLong);
  ranks.all_gather_into(lengths, length);
  const auto* length_of = lengths.const_data_ptr<std::int64_t>();
  const std::int64_t longest = *std::max_element(length_of, length_of + ranks.size());

  const at::Tensor text = at::zeros({longest}, at::kByte);
  std::memcpy(text.mutable_data_ptr(), mine.data(), mine.size());
  const at::Tensor texts = at::empty({longest * ranks.size()}, at::kByte);
  ranks.all_gather_into(texts, text);
  std::vector<std::string> result;
  for (std::int64_t rank = 0; rank < ranks.size(); ++rank)
    result.emplace_back(static_cast<const char*>(texts.const_data_ptr()) + rank * longest,
                        static_cast<std::size_t>(length_of[rank]));
  return result;
}

}  // namespace

Agreement agree(const Communicator& ranks, const std::function<std::string()>& action) {
  std::string mine;
  try {
    mine = done + action();
  } catch (const CommunicationError&) {
    throw;
  } catch (const std::exception& error) {
    mine = failed + std::string(error.what());
  }
  Agreement agreement;
  for (const std::string& text : gather(ranks, mine)) {
    if (text.front() == failed && agreement.ok())
      agreement.error = fmt::format("rank {}: {}", ranks.ranks()[agreement.texts.size()], text.substr(1));
    agreement.texts.push_back(text.substr(1));
  }
  return agreement;
}

}  // namespace runtime
