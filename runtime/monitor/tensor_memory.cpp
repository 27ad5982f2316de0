#include "runtime/monitor/tensor_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>

#if defined(__GLIBC__)
#include <malloc.h>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include "runtime/monitor/memory_class.h"

namespace runtime {
namespace {

constexpr std::size_t class_index(specs::MemoryClass memory_class) {
  return static_cast<std::size_t>(memory_class);
}

thread_local specs::MemoryClass allocation_class = specs::MemoryClass::activations;
thread_local bool allocates_on_host = false;

/// Stands before each tensor's data; 64 bytes, so that the data keep LibTorch's alignment.
struct alignas(64) Header {
  std::size_t bytes = 0;
  specs::MemoryClass memory_class = specs::MemoryClass::activations;
  bool on_host = false;
};
static_assert(sizeof(Header) == 64);

/// Large tensors in huge pages, where the system has them to spare: one entry of the processor's address
/// cache for 2 MiB, and one fault. Whole pages at both ends, so that neighbours in the heap join.
void ask_for_huge_pages(char* begin, std::size_t bytes) {
#if defined(__linux__)
  constexpr std::size_t least_bytes = 1 << 20;
  if (bytes < least_bytes) return;
  static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = address / page * page, end = (address + bytes + page - 1) / page * page;
  madvise(begin - (address - first), end - first, MADV_HUGEPAGE);
#else
  static_cast<void>(begin), static_cast<void>(bytes);
#endif
}

class CountingAllocator final : public c10::Allocator {
 public:
  static CountingAllocator& instance() {
    // Never destroyed: tensors of static storage may outlive any other order.
    static auto* const allocator = new CountingAllocator;
    return *allocator;
  }

  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &release, c10::Device(c10::kCPU)};
    auto* const base = static_cast<char*>(c10::alloc_cpu(bytes + sizeof(Header)));
    ask_for_huge_pages(base, bytes + sizeof(Header));
    const Header header{bytes, allocation_class, allocates_on_host};
    std::memcpy(base, &header, sizeof(header));
    count(header, 1);
    char* const data = base + sizeof(Header);
    return {data, data, &release, c10::Device(c10::kCPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* destination, const void* source, std::size_t bytes) const override {
    default_copy_data(destination, source, bytes);
  }

  void retag(const c10::DataPtr& memory, specs::MemoryClass memory_class) {
    if (memory.get() == nullptr || memory.get_deleter() != &release) return;
    char* const base = static_cast<char*>(memory.get()) - sizeof(Header);
    Header header;
    std::memcpy(&header, base, sizeof(header));
    const auto bytes = static_cast<std::int64_t>(header.bytes);
    const std::lock_guard lock(mutex_);
    MemoryCount& count = header.on_host ? memory_.host : memory_;
    count_class(count, header.memory_class, -bytes);
    count_class(count, memory_class, bytes);
    header.memory_class = memory_class;
    std::memcpy(base, &header, sizeof(header));
  }

  TensorMemory read() {
    const std::lock_guard lock(mutex_);
    return memory_;
  }

  void reset_peak() {
    const std::lock_guard lock(mutex_);
    for (MemoryCount* const memory : {static_cast<MemoryCount*>(&memory_), &memory_.host}) {
      start_peak(*memory);
      memory->peak_bytes_of = memory->current_bytes_of;
    }
  }

 private:
  static void start_peak(MemoryCount& memory) {
    memory.peak_bytes = memory.current_bytes;
    memory.bytes_at_peak = memory.current_bytes_of;
  }

  static void count_class(MemoryCount& memory, specs::MemoryClass memory_class, std::int64_t bytes) {
    std::int64_t& current = memory.current_bytes_of[class_index(memory_class)];
    std::int64_t& peak = memory.peak_bytes_of[class_index(memory_class)];
    current += bytes;
    peak = std::max(peak, current);
  }

  static void release(void* data) {
    if (data == nullptr) return;
    char* const base = static_cast<char*>(data) - sizeof(Header);
    Header header;
    std::memcpy(&header, base, sizeof(header));
    instance().count(header, -1);
    c10::free_cpu(base);
  }

  void count(const Header& header, std::int64_t sign) {
    const auto bytes = sign * static_cast<std::int64_t>(header.bytes);
    const std::lock_guard lock(mutex_);
    MemoryCount& memory = header.on_host ? memory_.host : memory_;
    memory.current_bytes += bytes;
    count_class(memory, header.memory_class, bytes);
    if (sign > 0) ++memory_.allocations;
    if (memory.current_bytes > memory.peak_bytes) start_peak(memory);
  }

  std::mutex mutex_;
  TensorMemory memory_;
};

/// Each step allocates what the last one freed: memory that went back to the system in between would come
/// again as zeroed pages, one fault each.
void keep_freed_memory() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);  // never
#endif
}

}  // namespace

MemoryClassScope::MemoryClassScope(specs::MemoryClass memory_class) : outer_(allocation_class) {
  allocation_class = memory_class;
}

MemoryClassScope::~MemoryClassScope() { allocation_class = outer_; }

HostMemoryScope::HostMemoryScope() : outer_(allocates_on_host) { allocates_on_host = true; }

HostMemoryScope::~HostMemoryScope() { allocates_on_host = outer_; }

void install_counting_allocator() {
  static std::once_flag once;
  std::call_once(once, [] {
    keep_freed_memory();
    c10::SetCPUAllocator(&CountingAllocator::instance(), /*priority=*/100);
  });
}

void retag(const c10::DataPtr& memory, specs::MemoryClass memory_class) {
  CountingAllocator::instance().retag(memory, memory_class);
}

TensorMemory tensor_memory() { return CountingAllocator::instance().read(); }

void reset_peak_tensor_memory() { CountingAllocator::instance().reset_peak(); }

}  // namespace runtime
