#include "specs/language/localhost.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/temporary_folder.h"

namespace specs {
namespace {

constexpr std::int64_t gib = std::int64_t{1} << 30;

/// A machine of four cores and 16 GiB below a folder of its own.
class LocalMachineFiles : public testing::Test {
 protected:
  LocalMachineFiles() {
    std::string cpuinfo;
    for (int i = 0; i < 4; ++i)
      cpuinfo += "processor\t: " + std::to_string(i) + "\nmodel name\t: Example CPU 3 GHz\n\n";
    write("proc/cpuinfo", cpuinfo);
    write("proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 1 kB\nMemAvailable:   12582912 kB\n");
  }

  void write(const std::string& path, const std::string& text) const { root_.write(path, text); }
  LocalMachine read() const { return read_local_machine(root_.path().string() + "/"); }

 private:
  const tests::TemporaryFolder root_;
};

TEST_F(LocalMachineFiles, GiveCoresAndMemory) {
  const LocalMachine machine = read();
  EXPECT_EQ(machine.processor, "Example CPU 3 GHz");
  EXPECT_EQ(machine.cores, 4);
  EXPECT_EQ(machine.memory_bytes, 16 * gib);
  EXPECT_EQ(machine.available_memory_bytes, 12 * gib);
}

TEST_F(LocalMachineFiles, AreLimitedByTheControlGroupAndThoseAroundIt) {
  write("proc/self/cgroup", "0::/job/step\n");
  write("sys/fs/cgroup/job/cpu.max", "250000 100000\n");
  write("sys/fs/cgroup/job/step/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/job/step/memory.max", std::to_string(8 * gib) + "\n");
  write("sys/fs/cgroup/job/step/memory.current", std::to_string(3 * gib) + "\n");
  write("sys/fs/cgroup/job/step/memory.stat", "anon 1\ninactive_file " + std::to_string(gib) + "\n");
  const LocalMachine machine = read();
  EXPECT_EQ(machine.cores, 2);
  EXPECT_EQ(machine.memory_bytes, 8 * gib);
  EXPECT_EQ(machine.available_memory_bytes, 6 * gib);
}

TEST_F(LocalMachineFiles, AreLimitedByTheOldControlGroupsToo) {
  write("proc/self/cgroup", "5:memory:/job\n4:cpu,cpuacct:/job\n");
  write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "100000\n");
  write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", std::to_string(4 * gib) + "\n");
  write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", std::to_string(gib) + "\n");
  const LocalMachine machine = read();
  EXPECT_EQ(machine.cores, 1);
  EXPECT_EQ(machine.available_memory_bytes, 3 * gib);
}

LocalhostProbe example_probe() {
  LocalhostProbe probe;
  probe.processor = "Example CPU 3 GHz";
  probe.memory_bytes_per_second = 11e9;
  probe.operator_seconds = 3e-6;
  probe.gemm_rates = {
      {Precision::fp32, 256, 40e9}, {Precision::fp32, 1024, 60e9}, {Precision::fp64, 512, 25e9}};
  probe.collective_rates = {{MeasuredCollective::all_reduce, 2, 60e-6, 1.5e9},
                            {MeasuredCollective::send_receive, 2, 40e-6, 2.5e9}};
  return probe;
}

TEST(Localhost, TakesItsRatesFromAProbeOfTheSameProcessor) {
  NodeSpec node;
  node.device.peak_flops = {{Precision::fp32, 1e9}, {Precision::bf16, 2e9}};
  const LocalMachine machine{"Example CPU 3 GHz", 4, 16 * gib, 12 * gib};
  EXPECT_TRUE(apply_local_machine(machine, example_probe(), node).empty());
  EXPECT_EQ(node.devices, 4);
  EXPECT_EQ(node.device.memory_bytes, 3 * gib);
  EXPECT_EQ(node.device.peak_flops.at(Precision::fp32), 60e9);
  EXPECT_EQ(node.device.peak_flops.at(Precision::fp64), 25e9);
  EXPECT_EQ(node.device.peak_flops.at(Precision::bf16), 2e9) << "not measured";
  EXPECT_EQ(node.device.memory_bytes_per_second, 11e9);
  EXPECT_EQ(node.device.operator_seconds, 3e-6);
  EXPECT_EQ(node.device.gemm_rates.size(), 3U);
  EXPECT_EQ(node.link_bytes_per_second, 2.5e9);
  EXPECT_EQ(node.link_latency_seconds, 40e-6);
  EXPECT_EQ(node.collective_rates.size(), 2U);
}

TEST(Localhost, KeepsCautiousRatesWithoutAProbeAndSaysSo) {
  NodeSpec node;
  node.device.peak_flops = {{Precision::fp32, 1e9}};
  const LocalMachine machine{"Example CPU 3 GHz", 2, 4 * gib, 3 * gib};
  const Diagnostics notes = apply_local_machine(machine, std::nullopt, node);
  ASSERT_EQ(notes.entries().size(), 1U);
  EXPECT_FALSE(notes.has_errors());
  EXPECT_NE(notes.render().find("dsrun --probe"), std::string::npos);
  EXPECT_EQ(node.device.peak_flops.at(Precision::fp32), 1e9);
}

TEST(Localhost, DoesNotUseTheProbeOfAnotherProcessor) {
  NodeSpec node;
  const LocalMachine machine{"Other CPU", 2, 4 * gib, 3 * gib};
  EXPECT_NE(apply_local_machine(machine, example_probe(), node).render().find("Example CPU"),
            std::string::npos);
  EXPECT_TRUE(node.device.gemm_rates.empty());
}

TEST(Probe, IsWrittenWholeAndReadBack) {
  const tests::TemporaryFolder folder;
  const auto path = folder.path() / "deeper" / "localhost.toml";
  EXPECT_TRUE(write_probe(example_probe(), path).empty());
  const auto probe = read_probe(path);
  ASSERT_TRUE(probe) << probe.diagnostics.render();
  EXPECT_EQ(*probe, example_probe());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path() / "deeper"), {}), 1)
      << "no temporary stays";

  std::ofstream(path) << "format_version = 99\nprocesor = \"x\"\n";
  const auto broken = read_probe(path);
  EXPECT_FALSE(broken);
  EXPECT_NE(broken.diagnostics.render().find("did you mean \"processor\"?"), std::string::npos);
  EXPECT_NE(broken.diagnostics.render().find("format_version 99 is not 1"), std::string::npos);
  std::filesystem::remove(path);
  EXPECT_FALSE(read_probe(path));
}

TEST(Probe, CannotBeWrittenWhereAFileIsInTheWay) {
  const tests::TemporaryFolder folder;
  const auto file = folder.write("in-the-way", "x");
  EXPECT_TRUE(write_probe(example_probe(), file / "localhost.toml").has_errors());
}

}  // namespace
}  // namespace specs
