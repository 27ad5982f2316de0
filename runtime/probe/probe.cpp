#include "runtime/probe/probe.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <limits>
#include <sstream>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include "runtime/kernels/matrix_products.h"
#include "runtime/launch/exit_codes.h"
#include "runtime/probe/latency_fit.h"
#include "runtime/train/run_summary.h"
#include "runtime/version.h"
#include "specs/language/localhost.h"

namespace runtime {
namespace {

using Clock = std::chrono::steady_clock;

double time_of(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The best of what fits into `budget_seconds`, at least three after one that warms up: other programs can
/// only make it slower.
double best_time(const std::function<void()>& work, double budget_seconds) {
  work();
  double best = std::numeric_limits<double>::infinity();
  double spent = 0;
  for (int repetition = 0; repetition < 3 || spent < budget_seconds; ++repetition) {
    const double seconds = time_of(work);
    best = std::min(best, seconds);
    spent += seconds;
  }
  return best;
}

at::ScalarType type_of(specs::Precision precision) {
  switch (precision) {
    case specs::Precision::fp64:
      return at::kDouble;
    case specs::Precision::bf16:
      return at::kBFloat16;
    case specs::Precision::fp16:
      return at::kHalf;
    default:
      return at::kFloat;
  }
}

std::vector<specs::GemmRate> measure_products() {
  // A type that the processor has no instructions for is a hundred times slower: its larger products would
  // take seconds each, and tell nothing more.
  constexpr double longest_seconds = 0.5;
  std::vector<specs::GemmRate> rates;
  for (const auto precision :
       {specs::Precision::fp64, specs::Precision::fp32, specs::Precision::bf16, specs::Precision::fp16})
    for (const std::int64_t size : {256, 512, 1024}) {
      const at::Tensor a = at::ones({size, size}, type_of(precision));
      const at::Tensor b = at::ones({size, size}, type_of(precision));
      at::Tensor out = at::empty({size, size}, type_of(precision));
      // fp16 does not go through LibTorch's products.
      const double seconds = best_time(
          [&] {
            precision == specs::Precision::fp16 ? out = kernels::multiply_matrices(a, b)
                                                : at::mm_out(out, a, b);
          },
          0.1);
      rates.push_back({precision, size, 2.0 * static_cast<double>(size * size * size) / seconds});
      if (8 * seconds > longest_seconds) break;
    }
  return rates;
}

double measure_memory() {
  constexpr std::int64_t bytes = 64 << 20;  // well over the caches of one core
  const at::Tensor from = at::zeros({bytes}, at::kByte);
  const at::Tensor to = at::zeros({bytes}, at::kByte);
  return 2.0 * bytes / best_time([&] { to.copy_(from); }, 0.2);
}

double measure_operator() {
  constexpr int operators = 2000;
  at::Tensor tensor = at::zeros({1}, at::kFloat);
  return best_time(
             [&] {
               for (int i = 0; i < operators; ++i) tensor.add_(1.0);
             },
             0.05) /
         operators;
}

/// One rank's part of timing a collective; the slowest rank's time counts. The request names the collective
/// and the bytes; the answer is the best time.
std::string time_collective(WorkerContext& context, const std::string& request) {
  std::istringstream words(request);
  std::string name;
  std::int64_t bytes = 0;
  words >> name >> bytes;
  std::vector<std::int64_t> ranks;
  for (std::int64_t rank = 0; rank < context.ranks; ++rank) ranks.push_back(rank);
  const Communicator group = context.groups.communicator("probe", ranks);

  const std::int64_t elements = bytes / 4;
  const at::Tensor whole = at::zeros({elements}, at::kFloat);
  const at::Tensor part = at::zeros({elements / group.size()}, at::kFloat);
  const at::Tensor other = at::zeros({elements}, at::kFloat);
  const auto collective = specs::from_name<specs::MeasuredCollective>(name).value();
  const auto once = [&] {
    switch (collective) {
      case specs::MeasuredCollective::all_reduce:
        return group.all_reduce(whole);
      case specs::MeasuredCollective::all_gather:
        return group.all_gather_into(whole, part);
      case specs::MeasuredCollective::reduce_scatter:
        return group.reduce_scatter_in_place_async(whole).wait();
      case specs::MeasuredCollective::send_receive: {
        PendingWork sent = group.send(whole, (group.rank() + 1) % group.size(), 0);
        group.receive(other, (group.rank() + group.size() - 1) % group.size(), 0).wait();
        sent.wait();
      }
    }
  };
  constexpr int repetitions = 7;
  std::vector<double> seconds;
  for (int repetition = 0; repetition <= repetitions; ++repetition) {
    group.barrier();
    const double elapsed = time_of(once);
    if (repetition > 0) seconds.push_back(elapsed);
  }
  return fmt::format("{}", median(seconds));
}

std::vector<specs::CollectiveRate> measure_collectives() {
  std::vector<specs::CollectiveRate> rates;
  WorkerPool pool(4);
  for (const std::int64_t ranks : {2, 4})
    for (const auto& [collective, name] : specs::EnumNames<specs::MeasuredCollective>::names) {
      std::vector<TimedTransfer> transfers;
      for (const std::int64_t bytes : {16 << 10, 256 << 10, 4 << 20}) {
        double slowest = 0;
        for (const WorkerResult& result :
             pool.run("time_collective", fmt::format("{} {}", name, bytes), ranks)) {
          if (!result.ok())
            throw std::runtime_error("cannot measure " + std::string(name) + ": " + result.error);
          slowest = std::max(slowest, std::stod(result.value));
        }
        transfers.push_back({static_cast<double>(bytes), slowest});
      }
      const LatencyFit fit = fit_latency(transfers);
      rates.push_back({collective, ranks, fit.latency_seconds, fit.bytes_per_second});
    }
  return rates;
}

void print(const specs::LocalhostProbe& probe) {
  fmt::print("{}\n", probe.processor);
  for (const specs::GemmRate& rate : probe.gemm_rates)
    fmt::print("  product {:>4} {:<5}{:>8.1f} GFLOP/s\n", rate.size, specs::name_of(rate.precision),
               rate.flops_per_second / 1e9);
  fmt::print("  memory            {:>8.1f} GB/s\n", probe.memory_bytes_per_second / 1e9);
  fmt::print("  operator          {:>8.2f} us\n", probe.operator_seconds * 1e6);
  for (const specs::CollectiveRate& rate : probe.collective_rates)
    fmt::print("  {:<15}{} ranks {:>8.0f} us + {:.2f} GB/s\n", specs::name_of(rate.collective), rate.ranks,
               rate.latency_seconds * 1e6, rate.bytes_per_second / 1e9);
}

}  // namespace

WorkerJobs probe_jobs() { return {{"time_collective", time_collective}}; }

specs::LocalhostProbe measure_localhost() {
  specs::LocalhostProbe probe;
  probe.processor = specs::read_local_machine().processor;
  probe.library = "libtorch " + libtorch_version();
  probe.measured_at =
      fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                  fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
  // Before this process has other threads: ranks are forked from it.
  probe.collective_rates = measure_collectives();
  at::set_num_threads(1);
  probe.gemm_rates = measure_products();
  probe.memory_bytes_per_second = measure_memory();
  probe.operator_seconds = measure_operator();
  return probe;
}

int run_probe(const std::optional<std::string>& path) {
  const std::filesystem::path file = path ? std::filesystem::path(*path) : specs::default_probe_path();
  if (file.empty()) {
    fmt::print(stderr, "error: neither XDG_CACHE_HOME nor HOME is set\n  remedy: give --probe-file\n");
    return exit_bad_input;
  }
  const specs::LocalhostProbe probe = measure_localhost();
  const specs::Diagnostics written = specs::write_probe(probe, file);
  if (written.has_errors()) {
    fmt::print(stderr, "{}", written.render());
    return exit_internal;
  }
  print(probe);
  fmt::print("written to {}\n", file.string());
  return exit_done;
}

}  // namespace runtime
