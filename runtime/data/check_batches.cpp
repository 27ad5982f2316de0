#include "runtime/data/check_batches.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "runtime/comm/agreement.h"
#include "runtime/data/data_error.h"
#include "runtime/model/counter_random.h"

namespace runtime {

namespace {

/// What one rank reads of a global batch.
struct Reading {
  std::size_t rank = 0;
  std::int64_t data_rank = 0;
  std::int64_t first_place = 0;
  std::int64_t places = 0;
  std::uint64_t hash = 0;  ///< of inputs and targets
};

std::string describe(const BatchLoader& loader, std::int64_t consumed, std::int64_t data_rank) {
  Reading reading;
  for (std::int64_t m = 0; m < loader.micro_batches(); ++m) {
    const MicroBatch batch = loader.training(consumed, m);
    if (m == 0) reading.first_place = batch.first_sequence;
    reading.places += batch.tokens.size(0);
    for (const at::Tensor& tensor : {batch.tokens, batch.targets})
      reading.hash =
          random_key(reading.hash, {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()});
  }
  return fmt::format("{} {} {} {}", data_rank, reading.first_place, reading.places, reading.hash);
}

std::vector<Reading> parse(const std::vector<std::string>& texts) {
  std::vector<Reading> readings;
  for (const std::string& text : texts) {
    Reading reading;
    reading.rank = readings.size();
    std::istringstream(text) >> reading.data_rank >> reading.first_place >> reading.places >> reading.hash;
    readings.push_back(reading);
  }
  std::stable_sort(readings.begin(), readings.end(),
                   [](const Reading& a, const Reading& b) { return a.data_rank < b.data_rank; });
  return readings;
}

}  // namespace

void check_batches(const BatchLoader& loader, std::int64_t consumed, std::int64_t data_rank,
                   const Communicator& world) {
  const Agreement agreement = agree(world, [&] { return describe(loader, consumed, data_rank); });
  if (!agreement.ok()) throw DataError(agreement.error);
  const std::vector<Reading> readings = parse(agreement.texts);
  for (std::size_t i = 1; i < readings.size(); ++i) {
    const Reading &before = readings[i - 1], &reading = readings[i];
    if (before.data_rank == reading.data_rank && before.hash != reading.hash)
      throw DataError(fmt::format(
          "ranks {} and {} belong to one replica but read different tokens: give both the same files",
          before.rank, reading.rank));
    if (before.data_rank != reading.data_rank && before.first_place + before.places != reading.first_place)
      throw DataError(fmt::format(
          "rank {} reads sequences {} to {} of the batch, rank {} of the next replica begins at {}",
          before.rank, before.first_place, before.first_place + before.places - 1, reading.rank,
          reading.first_place));
  }
}

}  // namespace runtime
