#include "runtime/monitor/tensor_memory.h"

#include <thread>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "runtime/monitor/memory_class.h"

namespace runtime {
namespace {

class TensorMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    install_counting_allocator();
    before_ = tensor_memory();
    reset_peak_tensor_memory();
  }
  std::int64_t current() const { return tensor_memory().current_bytes - before_.current_bytes; }
  std::int64_t peak() const { return tensor_memory().peak_bytes - before_.current_bytes; }

  TensorMemory before_;
};

TEST_F(TensorMemoryTest, CountsExactlyTheBytesOfLiveTensorsAndTheirPeak) {
  {
    const at::Tensor one = at::empty({1000}, at::kFloat);
    EXPECT_EQ(current(), 4000);
    {
      const at::Tensor two = at::empty({500}, at::kDouble);
      EXPECT_EQ(current(), 8000);
    }
    const at::Tensor view = one.narrow(0, 0, 10);
    EXPECT_EQ(current(), 4000);
  }
  EXPECT_EQ(current(), 0);
  EXPECT_EQ(peak(), 8000);
}

TEST_F(TensorMemoryTest, AResetPeakStartsFromWhatIsLive) {
  const at::Tensor kept = at::empty({100}, at::kByte);
  { const at::Tensor gone = at::empty({1000}, at::kByte); }
  EXPECT_EQ(peak(), 1100);
  reset_peak_tensor_memory();
  EXPECT_EQ(peak(), 100);
}

TEST_F(TensorMemoryTest, ScopesTagAllocationsAndFreesReturnToTheirOwnClass) {
  const auto of = [&](specs::MemoryClass memory_class) {
    const auto index = static_cast<std::size_t>(memory_class);
    return tensor_memory().current_bytes_of[index] - before_.current_bytes_of[index];
  };
  at::Tensor weights;
  {
    const MemoryClassScope scope(specs::MemoryClass::parameters);
    weights = at::empty({100}, at::kByte);
    {
      const MemoryClassScope inner(specs::MemoryClass::gradients);
      const at::Tensor gradient = at::empty({30}, at::kByte);
      EXPECT_EQ(of(specs::MemoryClass::gradients), 30);
    }
  }
  const at::Tensor activation = at::empty({7}, at::kByte);
  EXPECT_EQ(of(specs::MemoryClass::parameters), 100);
  EXPECT_EQ(of(specs::MemoryClass::gradients), 0);
  EXPECT_EQ(of(specs::MemoryClass::activations), 7);
  EXPECT_EQ(tensor_memory().at_peak(specs::MemoryClass::gradients) -
                before_.current_bytes_of[static_cast<std::size_t>(specs::MemoryClass::gradients)],
            30);
  weights.reset();
  EXPECT_EQ(of(specs::MemoryClass::parameters), 0);
}

TEST_F(TensorMemoryTest, EachClassHasAPeakOfItsOwn) {
  const auto peak_of = [](specs::MemoryClass memory_class) { return tensor_memory().peak_of(memory_class); };
  const std::int64_t gradients = peak_of(specs::MemoryClass::gradients);
  const std::int64_t buckets = peak_of(specs::MemoryClass::communication_buckets);
  {
    const MemoryClassScope scope(specs::MemoryClass::gradients);
    const at::Tensor gone = at::empty({100}, at::kByte);
  }
  const at::Tensor larger = at::empty({1000}, at::kByte);
  EXPECT_EQ(tensor_memory().at_peak(specs::MemoryClass::gradients), gradients);
  EXPECT_EQ(peak_of(specs::MemoryClass::gradients), gradients + 100);
  at::Tensor retagged;
  {
    const MemoryClassScope scope(specs::MemoryClass::workspace);
    retagged = at::empty({40}, at::kByte);
  }
  retag(retagged.storage().data_ptr(), specs::MemoryClass::communication_buckets);
  EXPECT_EQ(peak_of(specs::MemoryClass::communication_buckets), buckets + 40);
  reset_peak_tensor_memory();
  EXPECT_EQ(peak_of(specs::MemoryClass::gradients), gradients);
}

TEST_F(TensorMemoryTest, HostMemoryIsCountedBesideTheDevicesWithItsOwnPeak) {
  const auto host = [&] { return tensor_memory().host.current_bytes - before_.host.current_bytes; };
  const at::Tensor on_device = at::empty({10}, at::kByte);
  at::Tensor on_host;
  {
    const HostMemoryScope scope;
    const MemoryClassScope state(specs::MemoryClass::optimizer_state);
    on_host = at::empty({100}, at::kByte);
  }
  EXPECT_EQ(current(), 10);
  EXPECT_EQ(host(), 100);
  EXPECT_EQ(tensor_memory().host.current_of(specs::MemoryClass::optimizer_state) -
                before_.host.current_of(specs::MemoryClass::optimizer_state),
            100);
  EXPECT_EQ(tensor_memory().current_of(specs::MemoryClass::optimizer_state),
            before_.current_of(specs::MemoryClass::optimizer_state));
  on_host.reset();
  EXPECT_EQ(host(), 0);
  EXPECT_EQ(tensor_memory().host.peak_bytes - before_.host.current_bytes, 100);
  EXPECT_EQ(peak(), 10);
}

TEST_F(TensorMemoryTest, TensorsOfOtherThreadsCountAndKeepTheirAlignment) {
  at::Tensor made;
  std::thread([&] { made = at::empty({33}, at::kByte); }).join();
  EXPECT_EQ(current(), 33);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(made.data_ptr()) % 64, 0U);
}

}  // namespace
}  // namespace runtime
