// Tables of runs that are not the record's: other names, other forms of a CSV, cells that say nothing or
// nonsense. Each row is priced, with what stands in for what is not known, or is listed with the reason.
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/published/fit.h"
#include "tests/published/read_runs.h"
#include "tests/support/temporary_folder.h"

namespace published {
namespace {

using Cells = std::vector<std::pair<std::string, std::string>>;

/// Llama 3 8B on 16 H100.
Cells run_cells() {
  return {{"id", "r"},
          {"family", "acme"},
          {"stack", "nemo"},
          {"model", "Llama-3-8B"},
          {"arch", "llama"},
          {"layers", "32"},
          {"hidden", "4096"},
          {"ffn_hidden", "14336"},
          {"gated_ffn", "1"},
          {"heads", "32"},
          {"kv_heads", "8"},
          {"vocab", "128256"},
          {"position", "rope"},
          {"experts", "0"},
          {"top_k", ""},
          {"gpu", "h100-sxm-80gb"},
          {"gpus", "16"},
          {"gpus_per_node", "8"},
          {"fabric", "infiniband"},
          {"tp", "2"},
          {"cp", "1"},
          {"pp", "2"},
          {"vp", "1"},
          {"dp", "4"},
          {"zero_stage", "1"},
          {"offload", "none"},
          {"micro_batch", "1"},
          {"accum", "32"},
          {"global_batch", "128"},
          {"seq_len", "8192"},
          {"recompute", "none"},
          {"attention", "flash"},
          {"precision", "bf16"},
          {"schedule", "1f1b"},
          {"step_time_s", "4"},
          {"confidence", "a"},
          {"usable", "1"},
          {"note", ""}};
}

std::string text_of(const Cells& cells, const std::string& line_end = "\n", bool quoted = false) {
  std::string header, row;
  for (const auto& [name, value] : cells) {
    const std::string mark = quoted ? "\"" : "";
    const std::string comma = header.empty() ? "" : ",";
    header += comma + mark + name + mark;
    row += comma + mark + value + mark;
  }
  return header + line_end + row + line_end;
}

class ForeignTable : public ::testing::Test {
 protected:
  RunSet read(const std::string& text) {
    const tests::TemporaryFolder folder;
    return read_runs(folder.write("runs.csv", text));
  }
  RunSet with(const std::string& column, const std::string& value) {
    Cells cells = run_cells();
    for (auto& [name, cell] : cells)
      if (name == column) cell = value;
    return read(text_of(cells));
  }
  RunSet without(const std::string& column) {
    Cells cells = run_cells();
    std::erase_if(cells, [&column](const auto& cell) { return cell.first == column; });
    return read(text_of(cells));
  }
  static double seconds(const RunSet& set) {
    if (set.runs.size() != 1) return 0;
    return RunPricer(set.runs).price(0, cost_models::ConstantTable::built_in());
  }
};

TEST_F(ForeignTable, TheFormOfTheFileChangesNothing) {
  const double plain = seconds(read(text_of(run_cells())));
  EXPECT_GT(plain, 1);
  Cells reversed = run_cells();
  std::reverse(reversed.begin(), reversed.end());
  Cells more = run_cells();
  more.emplace_back("colour", "blue");
  Cells spaced = run_cells();
  for (auto& [name, value] : spaced) value = " " + value + "\t";
  Cells noted = run_cells();
  noted.back().second = "\"two, \"\"quoted\"\"\nlines\"";
  for (const std::string& text :
       {text_of(run_cells(), "\r\n"), text_of(run_cells(), "\n", true), "\xEF\xBB\xBF" + text_of(run_cells()),
        text_of(reversed), text_of(more), text_of(spaced), text_of(noted), text_of(run_cells()) + "\n  \n\n"})
    EXPECT_EQ(seconds(read(text)), plain) << text;
}

TEST_F(ForeignTable, NumbersMayBeWrittenInAnyWay) {
  const double plain = seconds(read(text_of(run_cells())));
  for (const auto& [column, value] : {std::pair{"seq_len", "8.192e3"}, {"heads", "32.0"}, {"usable", "1.0"}})
    EXPECT_EQ(seconds(with(column, value)), plain) << column;
}

TEST_F(ForeignTable, WhatFollowsFromOtherCellsMayBeLeftOut) {
  const double plain = seconds(read(text_of(run_cells())));
  for (const char* column : {"dp", "accum", "global_batch", "vp", "cp", "schedule", "offload", "attention",
                             "experts", "gpus_per_node", "fabric"}) {
    EXPECT_EQ(seconds(with(column, "")), plain) << column << " empty";
    EXPECT_EQ(seconds(without(column)), plain) << column << " missing";
  }
}

TEST_F(ForeignTable, NamesInAnotherCaseOrOfOtherSourcesAreKnown) {
  const double plain = seconds(read(text_of(run_cells())));
  for (const auto& [column, value] : {std::pair{"stack", "NeMo"},
                                      {"precision", "BF16"},
                                      {"precision", "bfloat16"},
                                      {"precision", "bf16-mixed"},
                                      {"schedule", "1F1B"},
                                      {"family", "another"},
                                      {"family", ""}}) {
    const RunSet set = with(column, value);
    EXPECT_EQ(seconds(set), plain) << value;
    ASSERT_EQ(set.runs.size(), 1u);
    EXPECT_TRUE(set.runs[0].stack_stand_in.empty()) << value;
  }
  const double in_8_bits = seconds(with("precision", "fp8"));
  EXPECT_LT(in_8_bits, plain);
  EXPECT_EQ(seconds(with("precision", "FP8")), in_8_bits);
  EXPECT_EQ(seconds(with("precision", "fp8-tensorwise")), in_8_bits);
  EXPECT_EQ(seconds(with("precision", "float8")), in_8_bits);
  EXPECT_GT(seconds(with("precision", "fp8_rowwise")), in_8_bits);
  EXPECT_LT(seconds(with("schedule", "zb-2p")), plain);
  EXPECT_LT(seconds(with("schedule", "zb-v")), plain);
}

TEST_F(ForeignTable, AnUnknownStackOrDeviceHasANamedStandIn) {
  for (const auto& [stack, stand_in] : {std::pair{"MaxText", "megatron-core"},
                                        {"jax", "megatron-core"},
                                        {"torchtune", "fsdp2"},
                                        {"my-fsdp", "fsdp2"},
                                        {"Megatron-Bridge", "nemo"},
                                        {"axolotl", "deepspeed"},
                                        {"", "megatron-core"}}) {
    const RunSet set = with("stack", stack);
    ASSERT_EQ(set.runs.size(), 1u) << stack;
    EXPECT_EQ(set.runs[0].stack_stand_in, stand_in) << stack;
    EXPECT_GT(seconds(set), 0) << stack;
  }
  for (const auto& [device, stand_in] : {std::pair{"NVIDIA H100 80GB HBM3", "h100-sxm-80gb"},
                                         {"H100", "h100-sxm-80gb"},
                                         {"A100-SXM4-40GB", "a100-sxm-40gb"},
                                         {"b200-nvl", "b200-sxm"},
                                         {"gb200-nvl72", "gb200"}}) {
    const RunSet set = with("gpu", device);
    ASSERT_EQ(set.runs.size(), 1u) << device;
    EXPECT_EQ(set.runs[0].device_stand_in, stand_in);
    EXPECT_GT(seconds(set), 0);
  }
}

TEST_F(ForeignTable, RowsThatCannotBePricedAreListedWithTheReason) {
  const std::map<std::pair<std::string, std::string>, std::string> reasons{
      {{"gpu", "tpu-v5p"}, "the catalog has no device like tpu-v5p"},
      {{"gpu", ""}, "no gpu"},
      {{"precision", "int3"}, "unknown precision int3"},
      {{"precision", ""}, "unknown precision "},
      {{"arch", "mamba"}, "unknown arch mamba"},
      {{"position", "sinus"}, "unknown position sinus"},
      {{"recompute", "sometimes"}, "unknown recompute sometimes"},
      {{"attention", "linear"}, "unknown attention linear"},
      {{"offload", "moon"}, "unknown offload moon"},
      {{"schedule", "chimera"}, "unknown schedule chimera"},
      {{"layers", ""}, "no layers"},
      {{"hidden", "0"}, "no hidden"},
      {{"micro_batch", ""}, "no micro_batch"},
      {{"seq_len", "-8"}, "no seq_len"},
      {{"vocab", "many"}, "record 2, column vocab: \"many\" is no finite number below 10^9"},
      {{"step_time_s", "nan"}, "record 2, column step_time_s: \"nan\" is no finite number below 10^9"},
      {{"step_time_s", "1e300"}, "record 2, column step_time_s: \"1e300\" is no finite number below 10^9"},
      {{"step_time_s", "0"}, "no step_time_s"},
      {{"step_time_s", ""}, "no step_time_s"},
      {{"gpus", "24"}, "gpus 24 is not tp · cp · pp · dp = 16"},
      {{"pp", "1000"}, "gpus 16 is not tp · cp · pp · dp = 8000"},
      {{"tp", "0"}, "tp is 0"},
      {{"zero_stage", "4"}, "experts or zero_stage out of range"},
      {{"experts", "8"}, "experts without top_k"},
      {{"gpus_per_node", "0"}, "gpus_per_node is 0"}};
  for (const auto& [cell, reason] : reasons) {
    const RunSet set = with(cell.first, cell.second);
    EXPECT_TRUE(set.runs.empty()) << cell.first << " = " << cell.second;
    ASSERT_EQ(set.unpriced.size(), 1u) << cell.first << " = " << cell.second;
    EXPECT_EQ(set.unpriced[0].second, reason);
  }
}

TEST_F(ForeignTable, RowsThatDoNotCountAreCountedAsLeftOut) {
  for (const auto& [column, value] :
       {std::pair{"usable", "0"}, {"usable", ""}, {"confidence", "c"}, {"confidence", ""}}) {
    const RunSet set = with(column, value);
    EXPECT_TRUE(set.runs.empty() && set.unpriced.empty());
    EXPECT_EQ(set.left_out, 1u);
  }
}

TEST_F(ForeignTable, OneBadRowDoesNotTakeTheOthersAlong) {
  Cells bad = run_cells();
  for (auto& [name, cell] : bad)
    if (name == "heads") cell = "?";
  const std::string second = text_of(bad).substr(text_of(bad).find('\n') + 1);
  const RunSet set = read(text_of(run_cells()) + second);
  EXPECT_EQ(set.runs.size(), 1u);
  EXPECT_EQ(set.unpriced.size(), 1u);
}

}  // namespace
}  // namespace published
