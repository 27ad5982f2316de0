// Which memory class the tensors belong to that are allocated from here on.
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

}  // namespace runtime
