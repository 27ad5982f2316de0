#include "runtime/worker_pool/worker_pool.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/launch/child_process.h"
#include "runtime/monitor/tensor_memory.h"
#include "runtime/worker_pool/message.h"

namespace runtime {
namespace {

constexpr const char* worker_variable = "DSPLAN_WORKER";
constexpr int channel_in_worker = 3;
constexpr std::chrono::seconds rendezvous_timeout{60};
/// What the others still have to say once one has failed; some may be waiting for it in a collective.
constexpr std::chrono::seconds grace_after_failure{3};
using Clock = std::chrono::steady_clock;

/// What a worker is told at its start, as the value of `worker_variable`.
struct WorkerSeat {
  std::int64_t rank = 0;
  std::uint16_t port = 0;
  std::int64_t generation = 0;
  std::int64_t timeout_milliseconds = 0;

  std::string text() const {
    return fmt::format("{} {} {} {}", rank, port, generation, timeout_milliseconds);
  }
  static WorkerSeat parse(const char* text) {
    WorkerSeat seat;
    char* at = nullptr;
    seat.rank = std::strtoll(text, &at, 10);
    seat.port = static_cast<std::uint16_t>(std::strtoll(at, &at, 10));
    seat.generation = std::strtoll(at, &at, 10);
    seat.timeout_milliseconds = std::strtoll(at, &at, 10);
    return seat;
  }
};

std::string serve(const WorkerJobs& jobs, WorkerContext& context, const std::string& job,
                  const std::string& request) {
  const auto known = jobs.find(job);
  if (known == jobs.end()) return "E" + fmt::format("no job is named {}", job);
  try {
    return "V" + known->second(context, request);
  } catch (const std::exception& error) {
    return "E" + std::string(error.what());
  }
}

}  // namespace

std::optional<int> run_as_worker(const WorkerJobs& jobs) {
  const char* seat_text = std::getenv(worker_variable);
  if (seat_text == nullptr) return std::nullopt;
  const WorkerSeat seat = WorkerSeat::parse(seat_text);
  unsetenv(worker_variable);

  install_counting_allocator();
  const Rendezvous rendezvous = Rendezvous::connect({"127.0.0.1", seat.port}, rendezvous_timeout)
                                    .under(std::to_string(seat.generation));
  CommunicationOptions options;
  options.timeout = std::chrono::milliseconds(seat.timeout_milliseconds);
  options.network_interface = "lo";
  ProcessGroups groups(rendezvous, seat.rank, options);

  while (const auto ranks = read_message(channel_in_worker)) {
    const auto job = read_message(channel_in_worker);
    const auto request = read_message(channel_in_worker);
    if (!job || !request) break;
    WorkerContext context{seat.rank, std::stoll(*ranks), groups};
    if (!write_message(channel_in_worker, serve(jobs, context, *job, *request))) break;
  }
  return 0;
}

struct WorkerPool::State {
  struct Worker {
    ChildProcess process;
    int channel = -1;
  };

  std::int64_t size = 0;
  std::chrono::milliseconds communication_timeout{};
  Rendezvous rendezvous;
  std::int64_t generation = 0;
  std::vector<Worker> workers;

  void start();
  void stop();
  static WorkerResult receive(Worker& worker);
  std::vector<WorkerResult> collect(std::int64_t ranks, Clock::time_point deadline);
};

void WorkerPool::State::start() {
  ++generation;
  for (std::int64_t rank = 0; rank < size; ++rank) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      throw std::system_error(errno, std::generic_category(), "cannot connect a worker");
    const WorkerSeat seat{rank, rendezvous.address().port, generation, communication_timeout.count()};
    ChildOptions child;
    child.environment = {{worker_variable, seat.text()},
                         {"OMP_NUM_THREADS", "1"},
                         {"MKL_NUM_THREADS", "1"},
                         {"TORCH_CPP_LOG_LEVEL", "ERROR"}};
    child.descriptors = {{ends[1], channel_in_worker}};
    workers.push_back({ChildProcess::start(child), ends[0]});
    close(ends[1]);
  }
}

void WorkerPool::State::stop() {
  for (Worker& worker : workers) {
    close(worker.channel);
    worker.process.send_signal(SIGKILL);
    worker.process.wait();
  }
  workers.clear();
}

WorkerResult WorkerPool::State::receive(Worker& worker) {
  std::optional<std::string> reply = read_message(worker.channel);
  if (!reply || reply->empty()) {
    const ChildStatus status = worker.process.wait();
    return {{},
            status.signal != 0 ? fmt::format("the worker was killed by signal {}", status.signal)
                               : fmt::format("the worker ended with exit code {}", status.exit_code)};
  }
  if (reply->front() == 'V') return {reply->substr(1), {}};
  return {{}, reply->substr(1)};
}

std::vector<WorkerResult> WorkerPool::State::collect(std::int64_t ranks, Clock::time_point deadline) {
  std::vector<WorkerResult> results(static_cast<std::size_t>(ranks),
                                    WorkerResult{{}, "the worker did not finish in time"});
  std::vector<pollfd> waiting;
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    waiting.push_back({workers[static_cast<std::size_t>(rank)].channel, POLLIN, 0});
  for (std::int64_t outstanding = ranks; outstanding > 0;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0 || poll(waiting.data(), waiting.size(), static_cast<int>(left.count())) <= 0) break;
    for (std::size_t rank = 0; rank < waiting.size(); ++rank) {
      if (waiting[rank].fd < 0 || waiting[rank].revents == 0) continue;
      results[rank] = receive(workers[rank]);
      waiting[rank].fd = -1;
      --outstanding;
      if (!results[rank].ok()) deadline = std::min(deadline, Clock::now() + grace_after_failure);
    }
  }
  return results;
}

WorkerPool::WorkerPool(std::int64_t workers, std::chrono::milliseconds communication_timeout)
    : state_(std::make_unique<State>(State{
          workers, communication_timeout, Rendezvous::host({"127.0.0.1", 0}, rendezvous_timeout), 0, {}})) {}

WorkerPool::~WorkerPool() { state_->stop(); }

std::int64_t WorkerPool::workers() const { return state_->size; }

std::vector<WorkerResult> WorkerPool::run(const std::string& job, const std::string& request,
                                          std::int64_t ranks, std::chrono::milliseconds timeout) {
  if (ranks < 1 || ranks > state_->size)
    throw std::logic_error(fmt::format("{} ranks asked of a pool of {}", ranks, state_->size));
  if (state_->workers.empty()) state_->start();

  const auto deadline = Clock::now() + timeout;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const int channel = state_->workers[static_cast<std::size_t>(rank)].channel;
    // A worker that is gone shows when its answer is read.
    if (write_message(channel, std::to_string(ranks)) && write_message(channel, job))
      write_message(channel, request);
  }
  std::vector<WorkerResult> results = state_->collect(ranks, deadline);
  if (!std::all_of(results.begin(), results.end(), [](const WorkerResult& result) { return result.ok(); }))
    state_->stop();
  return results;
}

}  // namespace runtime
