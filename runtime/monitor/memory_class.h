// Which memory class, and which memory, the tensors belong to that are allocated from here on.
#pragma once

#include "specs/plan/cost_breakdown.h"

namespace runtime {

/// Tags the allocations of this thread while it lives; scopes nest, the innermost counts. Outside of any
/// scope an allocation is `activations` (what autograd saves).
class MemoryClassScope {
 public:
  explicit MemoryClassScope(specs::MemoryClass memory_class);
  ~MemoryClassScope();
  MemoryClassScope(const MemoryClassScope&) = delete;
  MemoryClassScope& operator=(const MemoryClassScope&) = delete;

 private:
  specs::MemoryClass outer_;
};

/// What this thread allocates while it lives counts as host memory, beside that of the device: where both are
/// the same RAM, too. Scopes nest.
class HostMemoryScope {
 public:
  HostMemoryScope();
  ~HostMemoryScope();
  HostMemoryScope(const HostMemoryScope&) = delete;
  HostMemoryScope& operator=(const HostMemoryScope&) = delete;

 private:
  bool outer_;
};

}  // namespace runtime
