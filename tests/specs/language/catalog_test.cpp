#include "specs/language/catalog.h"

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace specs {
namespace {

TEST(Catalog, EveryEntryIsWellFormedAndNamesItsSource) {
  for (const CatalogKind kind : {CatalogKind::device, CatalogKind::node, CatalogKind::network,
                                 CatalogKind::storage, CatalogKind::model, CatalogKind::stack}) {
    const auto entries = catalog_entries(kind);
    EXPECT_FALSE(entries.empty()) << name_of(kind);
    std::set<std::string> names;
    for (const CatalogEntry& entry : entries) {
      SCOPED_TRACE(entry.name);
      EXPECT_TRUE(names.insert(entry.name).second);
      EXPECT_GT(entry.source.size(), 8U);
      EXPECT_FALSE(entry.description.empty());
    }
  }
  const auto expect_clean = [](const std::string& name, const auto& result) {
    EXPECT_TRUE(result) << name << ": " << result.diagnostics.render();
    if (name != "localhost") {
      EXPECT_TRUE(result.diagnostics.empty()) << result.diagnostics.render();
    }
  };
  for (const auto& name : catalog_names(CatalogKind::device)) expect_clean(name, catalog_device(name));
  for (const auto& name : catalog_names(CatalogKind::node)) expect_clean(name, catalog_node(name));
  for (const auto& name : catalog_names(CatalogKind::network)) expect_clean(name, catalog_network(name));
  for (const auto& name : catalog_names(CatalogKind::storage)) expect_clean(name, catalog_storage(name));
  for (const auto& name : catalog_names(CatalogKind::model)) expect_clean(name, catalog_model(name));
  for (const auto& name : catalog_names(CatalogKind::stack)) expect_clean(name, catalog_stack(name));
}

TEST(Catalog, HasEveryGpuOfThePublishedRuns) {
  for (const char* gpu : {"v100-sxm-16gb", "v100-sxm-32gb", "a100-sxm-40gb", "a100-sxm-80gb", "h100-sxm-80gb",
                          "h100-sxm-96gb-500w", "h800-sxm", "h200-sxm", "b200-sxm", "b300", "gb200", "gb300"})
    EXPECT_TRUE(catalog_device(gpu)) << gpu;
}

TEST(Catalog, HasTheUsualParts) {
  for (const char* gpu :
       {"a100-pcie-40gb", "a100-pcie-80gb", "a800-sxm-80gb", "h100-pcie-80gb", "l40s", "rtx-4090"})
    EXPECT_TRUE(catalog_device(gpu)) << gpu;
  for (const char* node :
       {"dgx-a100-80gb", "dgx-a100-40gb", "dgx-h100", "hgx-h200", "dgx-b200", "gb200-nvl72"})
    EXPECT_TRUE(catalog_node(node)) << node;
  for (const char* network : {"ib-hdr-8x200", "ib-ndr-8x400", "ib-edr", "ethernet-25g", "ethernet-100g"})
    EXPECT_TRUE(catalog_network(network)) << network;
}

TEST(Catalog, DevicesAreConsistent) {
  for (const std::string& name : catalog_names(CatalogKind::device)) {
    SCOPED_TRACE(name);
    const DeviceSpec device = *catalog_device(name);
    EXPECT_EQ(device.name, name);
    EXPECT_GT(device.memory_bytes, std::int64_t{1} << 30);
    const bool has_bf16 = device.peak_flops.contains(Precision::bf16);
    EXPECT_EQ(has_bf16, device.generation != "volta");
    if (device.generation == "cpu") continue;
    EXPECT_GT(device.multiprocessors, 0);
    const double fp16 = device.peak_flops.at(Precision::fp16);
    EXPECT_GT(fp16, device.peak_flops.at(Precision::fp32));
    if (device.peak_flops.contains(Precision::fp8)) {
      EXPECT_NEAR(device.peak_flops.at(Precision::fp8) / fp16, 2, 0.03);
    }
    const bool microscaling = device.peak_flops.contains(Precision::nvfp4);
    EXPECT_EQ(microscaling, device.generation == "blackwell");
  }
}

TEST(Catalog, TheNvlinkDomainOfGb200IsLargerThanItsTray) {
  const NodeSpec tray = *catalog_node("gb200-nvl72");
  EXPECT_EQ(tray.devices, 4);
  EXPECT_EQ(tray.link_domain_devices, 72);
  EXPECT_EQ(tray.device.name, "gb200");
}

TEST(Catalog, AnUnknownNameGetsTheNearest) {
  EXPECT_NE(catalog_node("dgx-a1000").diagnostics.render().find("did you mean \"dgx-a100-40gb\"?"),
            std::string::npos)
      << catalog_node("dgx-a1000").diagnostics.render();
  EXPECT_NE(catalog_model("gpt3-175").diagnostics.render().find("did you mean \"gpt3-175b\"?"),
            std::string::npos);
  EXPECT_NE(catalog_device("h100").diagnostics.render().find("did you mean \"h100-sxm-80gb\"?"),
            std::string::npos);
}

TEST(Catalog, StacksSayWhyTheyRefuseZeroBesideAPipeline) {
  for (const std::string& name : catalog_names(CatalogKind::stack)) {
    const StackSpec stack = *catalog_stack(name);
    EXPECT_EQ(stack.name, name);
    EXPECT_FALSE(stack.source.empty());
    EXPECT_FALSE(stack.precisions.empty()) << name;
    if (stack.zero_stage_with_pipeline < 3) {
      EXPECT_FALSE(stack.zero_with_pipeline_reason.empty()) << name;
    }
  }
  EXPECT_TRUE(catalog_stack("dsrun")->cpu_devices);
}

TEST(Catalog, OnlyThisProjectsRuntimeTrainsInFp64) {
  for (const std::string& name : catalog_names(CatalogKind::stack)) {
    const auto precisions = catalog_stack(name)->precisions;
    const bool fp64 = std::find(precisions.begin(), precisions.end(), Precision::fp64) != precisions.end();
    EXPECT_EQ(fp64, name == "dsrun") << name;
  }
}

TEST(Catalog, Localhost) {
  const auto node = catalog_node("localhost");
  ASSERT_TRUE(node);
  EXPECT_EQ(node->device.generation, "cpu");
  EXPECT_EQ(node->devices, node->cpu_cores);
  EXPECT_GE(node->devices, 1);
  EXPECT_GT(node->device.memory_bytes, 0);
  EXPECT_LE(node->device.memory_bytes * node->devices, node->host_memory_bytes + (std::int64_t{64} << 20));
}

}  // namespace
}  // namespace specs
