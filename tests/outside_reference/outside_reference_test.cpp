// The runtime against GPT-2 and Llama written in PyTorch (torch_models.py): the same weights give the same
// logits and the same training, under any placement.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include "runtime/checkpoint/safetensors.h"
#include "tests/outside_reference/reference_job.h"
#include "tests/runtime/pool_fixture.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

constexpr const char* program = "tests/outside_reference/torch_models.py";

class OutsideReference : public PoolFixture<4> {
 protected:
  static void SetUpTestSuite() {
    ASSERT_TRUE(std::filesystem::exists(DSPLAN_PYTHON_TORCH))
        << "PyTorch for Python is not in " DSPLAN_PYTHON_TORCH ": run script/bootstrap --python-torch";
    PoolFixture<4>::SetUpTestSuite();
    folder_ = std::make_unique<tests::TemporaryFolder>();
    const auto run =
        tests::run_program("PYTHONWARNINGS=ignore PYTHONPATH='" DSPLAN_PYTHON_TORCH "' " DSPLAN_PYTHON " " +
                           std::string(program) + " " + folder_->path().native());
    ASSERT_EQ(run.exit_code, 0) << run.err;
  }
  static void TearDownTestSuite() {
    folder_.reset();
    PoolFixture<4>::TearDownTestSuite();
  }

  static ReferenceResult train(const ReferenceRequest& request) {
    return result_from(values("reference", to_text(request), request.ranks()).front());
  }

  static std::vector<double> expected_losses(const ReferenceRequest& request) {
    const SafetensorsFile file(request.model / "reference.safetensors");
    const StoredTensor& stored =
        file.tensors().at("losses." + std::string(specs::name_of(request.precision)));
    std::vector<double> losses(static_cast<std::size_t>(stored.shape.at(0)));
    file.read(stored.begin, losses.data(), losses.size() * sizeof(double));
    return losses;
  }

  static void expect_same(ReferenceRequest request, double bar) {
    SCOPED_TRACE(request.name());
    const ReferenceResult result = train(request);
    const std::vector<double> expected = expected_losses(request);
    EXPECT_LE(result.logit_difference, bar);
    ASSERT_EQ(result.losses.size(), 10U);
    ASSERT_EQ(expected.size(), 10U);
    EXPECT_GT(expected.front() - expected.back(), 0.01) << "nothing was learned";
    double largest = 0;
    for (std::size_t step = 0; step < expected.size(); ++step)
      largest = std::max(largest, std::abs(result.losses[step] - expected[step]));
    EXPECT_LE(largest, bar);
    std::printf("%s: losses differ by %.1e", request.name().c_str(), largest);
    if (request.ranks() == 1) std::printf(", logits by %.1e", result.logit_difference);
    std::printf("\n");
  }

  static std::vector<ReferenceRequest> placements(const char* model, specs::Precision precision) {
    const std::filesystem::path folder = folder_->path() / model;
    return {{folder, precision},       {folder, precision, 2},          {folder, precision, 2, 1, 1, 0, true},
            {folder, precision, 1, 3}, {folder, precision, 1, 1, 2, 1}, {folder, precision, 2, 1, 2, 1},
            {folder, precision, 2, 2}};
  }

  static inline std::unique_ptr<tests::TemporaryFolder> folder_;
};

TEST_F(OutsideReference, Gpt2InFp32) {
  for (const auto& request : placements("gpt2", specs::Precision::fp32)) expect_same(request, 1e-5);
}

TEST_F(OutsideReference, LlamaWithGroupedHeadsAndScaledRotationInFp32) {
  for (const auto& request : placements("llama", specs::Precision::fp32)) expect_same(request, 1e-5);
}

TEST_F(OutsideReference, BothInFp64ToRounding) {
  for (const char* model : {"gpt2", "llama"})
    for (const auto& request : placements(model, specs::Precision::fp64)) expect_same(request, 1e-10);
}

TEST_F(OutsideReference, WeightsOfAnotherModelAreRefusedByName) {
  ReferenceRequest request{folder_->path() / "mixed", specs::Precision::fp32, 2};
  std::filesystem::copy(folder_->path() / "llama", request.model);
  for (const auto& entry : std::filesystem::directory_iterator(request.model))
    if (entry.path().filename().native().starts_with("model")) std::filesystem::remove(entry.path());
  std::filesystem::copy(folder_->path() / "gpt2" / "model.safetensors", request.model);
  for (const WorkerResult& result : pool_->run("reference", to_text(request), 2)) {
    EXPECT_FALSE(result.ok());
    EXPECT_NE(result.error.find("has no tensor lm_head.weight: it is of another model"), std::string::npos)
        << result.error;
  }
}

}  // namespace
}  // namespace runtime
