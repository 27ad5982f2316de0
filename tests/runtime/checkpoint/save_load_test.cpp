#include <fstream>
#include <functional>
#include <iterator>

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/checkpoint/checkpoint_error.h"
#include "runtime/checkpoint/load.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/save.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

/// Two tensors of one rank, every element `value`.
std::vector<TensorPiece> pieces_of(double value, std::int64_t rows = 8) {
  const auto piece = [&](const std::string& name) {
    return TensorPiece{name, {rows, 4}, {{{0, 0}, {rows, 4}}, 0, rows * 4}, at::full({rows * 4}, value)};
  };
  return {piece("w"), piece("optimizer.momentum.w")};
}

TrainingState state_of(std::int64_t step) {
  TrainingState state;
  state.step = step;
  state.consumed_samples = step * 16;
  state.optimizer_updates = step - 1;
  state.learning_rate = 0.1 / static_cast<double>(step);
  state.seed = 0xffffffffffffffffULL;
  state.loss_scaler = {1024, 7, 2, 3};
  state.plan_hash = "abc";
  return state;
}

class CheckpointTest : public testing::Test {
 protected:
  void save(std::int64_t step, const fs::path& checkpoints, std::int64_t rows = 8) const {
    save_checkpoint(checkpoints, state_of(step), pieces_of(static_cast<double>(step), rows), world_);
  }
  void save(std::int64_t step) const { save(step, checkpoints()); }
  std::optional<LoadedCheckpoint> load(const fs::path& from, std::int64_t rows = 8) {
    loaded_ = pieces_of(-1, rows);
    return load_newest_checkpoint(from, loaded_, world_);
  }
  std::optional<LoadedCheckpoint> load() { return load(checkpoints()); }
  std::string load_error(const fs::path& from) {
    try {
      load(from);
    } catch (const CheckpointError& error) {
      return error.what();
    }
    return "no error";
  }

  fs::path checkpoints() const { return folder_.path() / "checkpoints"; }
  fs::path file(std::int64_t step) const { return checkpoints() / checkpoint_name(step) / rank_file_name(0); }
  static std::vector<std::string> entries(const fs::path& folder) {
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder))
      names.push_back(entry.path().filename().native());
    return names;
  }
  static std::string content(const fs::path& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  tests::TemporaryFolder folder_;
  Communicator world_{"world"};
  std::vector<TensorPiece> loaded_;
};

TEST_F(CheckpointTest, GivesBackTensorsAndState) {
  const SavedCheckpoint saved = save_checkpoint(checkpoints(), state_of(5), pieces_of(2.5), world_);
  EXPECT_EQ(saved.folder, checkpoints() / "step_5");
  EXPECT_EQ(saved.bytes, static_cast<std::int64_t>(fs::file_size(file(5))));
  const auto loaded = load();
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->state, state_of(5));
  EXPECT_EQ(loaded->folder, checkpoints() / "step_5");
  EXPECT_THAT(loaded->passed_over, ElementsAre());
  for (const TensorPiece& piece : loaded_) EXPECT_TRUE(piece.data.equal(at::full({32}, 2.5)));
}

TEST_F(CheckpointTest, LeavesWholeFoldersAndTheNameOfTheLatest) {
  save(5);
  save(10);
  EXPECT_THAT(entries(checkpoints()), UnorderedElementsAre("step_5", "step_10", "latest"));
  EXPECT_THAT(entries(checkpoints() / "step_10"),
              UnorderedElementsAre("manifest.json", "rank_00000.safetensors"));
  EXPECT_EQ(content(checkpoints() / "latest"), "step_10\n");
}

TEST_F(CheckpointTest, FindsNothingWhereNothingIs) {
  EXPECT_FALSE(load());
  fs::create_directories(checkpoints() / "step_7.tmp");
  fs::create_directories(checkpoints() / "step_x");
  EXPECT_FALSE(load());
}

TEST_F(CheckpointTest, IgnoresAFolderThatIsNotFinishedAndRemovesItAtTheNextSave) {
  save(5);
  fs::copy(checkpoints() / "step_5", checkpoints() / "step_9.tmp");
  EXPECT_EQ(load()->state.step, 5);
  save(6);
  EXPECT_FALSE(fs::exists(checkpoints() / "step_9.tmp"));
}

TEST_F(CheckpointTest, FallsBackToTheLastWholeOneAndSaysWhy) {
  save(5);
  save(10);
  const std::string good = content(file(10));
  const std::string manifest = content(checkpoints() / "step_10" / manifest_name);
  const auto expect_fallback = [&](const std::string& reason) {
    const auto loaded = load();
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->state.step, 5);
    EXPECT_THAT(loaded->passed_over, ElementsAre(AllOf(HasSubstr("step_10"), HasSubstr(reason))));
    EXPECT_TRUE(loaded_[0].data.equal(at::full({32}, 5.0)));
  };
  const auto rewrite = [](const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  };
  rewrite(file(10), good.substr(0, good.size() - 10));
  expect_fallback("were written");
  fs::remove(file(10));
  expect_fallback("cannot open: No such file");
  std::string flipped = good;
  flipped[good.size() - 3] = static_cast<char>(flipped[good.size() - 3] ^ 1);
  rewrite(file(10), flipped);
  expect_fallback("do not have their checksum");
  rewrite(file(10), good);
  EXPECT_EQ(load()->state.step, 10);
  rewrite(checkpoints() / "step_10" / manifest_name, manifest.substr(0, manifest.size() / 2));
  expect_fallback("is damaged");
  fs::remove(checkpoints() / "step_10" / manifest_name);
  expect_fallback("manifest.json");
}

TEST_F(CheckpointTest, AChangedManifestIsPassedOverWhateverChanged) {
  save(5);
  save(10);
  const fs::path path = checkpoints() / "step_10" / manifest_name;
  const std::string whole = content(path);
  const auto passed_over_with = [&](const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
    const auto loaded = load();
    return loaded && loaded->state.step == 5;
  };
  EXPECT_FALSE(passed_over_with(whole));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    const char digit = changed[at];
    if (digit < '0' || digit > '9') continue;
    changed[at] = digit == '1' ? '2' : '1';
    EXPECT_TRUE(passed_over_with(changed)) << "byte " << at;
  }
}

TEST_F(CheckpointTest, AManifestWithoutChecksumIsHeldToWhatARunCanHaveDone) {
  const auto error_of = [&](const std::string& key, const nlohmann::ordered_json& value) {
    nlohmann::ordered_json json = nlohmann::ordered_json::parse(to_json(Manifest{.state = state_of(5)}));
    json.erase("crc32");
    json[nlohmann::ordered_json::json_pointer("/state/" + key)] = value;
    try {
      parse_manifest(json.dump(), "manifest.json");
    } catch (const CheckpointError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(error_of("step", 5), "");
  EXPECT_EQ(error_of("consumed_samples", -1), "manifest.json: has an impossible state: consumed_samples -1");
  EXPECT_EQ(error_of("step", std::int64_t{1} << 62),
            "manifest.json: has an impossible state: step 4611686018427387904");
  EXPECT_EQ(error_of("learning_rate", -1.0), "manifest.json: has an impossible state: learning_rate -1");
  EXPECT_EQ(error_of("loss_scaler/scale", 0.0),
            "manifest.json: has an impossible state: loss_scaler.scale 0");
}

TEST_F(CheckpointTest, SaysOfEachCheckpointWhyNoneCanBeRead) {
  save(5);
  save(10);
  fs::remove(file(5));
  fs::remove(file(10));
  EXPECT_THAT(load_error(checkpoints()), AllOf(HasSubstr("step_5"), HasSubstr("step_10")));
}

TEST_F(CheckpointTest, ReplacesABrokenOneOfTheSameStep) {
  save(5);
  fs::remove(file(5));
  save(5);
  EXPECT_EQ(load()->state.step, 5);
  EXPECT_THAT(entries(checkpoints()), UnorderedElementsAre("step_5", "latest"));
}

TEST_F(CheckpointTest, RefusesAnotherModel) {
  save(5);
  loaded_ = pieces_of(0, 6);
  EXPECT_THROW(load_newest_checkpoint(checkpoints(), loaded_, world_), CheckpointMismatch);
  loaded_ = pieces_of(0);
  loaded_[1].name = "optimizer.exp_avg.w";
  try {
    load_newest_checkpoint(checkpoints(), loaded_, world_);
    FAIL();
  } catch (const CheckpointMismatch& error) {
    EXPECT_THAT(error.what(), HasSubstr("it has no tensor optimizer.exp_avg.w"));
  }
}

/// What a child process returns from `body`, which must not touch GoogleTest.
int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(CheckpointTest, AWriteThatFailsLeavesNothingBehindAndTheEarlierOneWhole) {
  save(5);
  const int code = in_child([&] {
    // A limit on the size of files fails writes as a full disk does, on any machine.
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      save(10, checkpoints(), 4096);
    } catch (const CheckpointError& error) {
      return std::string(error.what()).find("cannot write") != std::string::npos ? 0 : 1;
    }
    return 2;
  });
  EXPECT_EQ(code, 0);
  EXPECT_THAT(entries(checkpoints()), UnorderedElementsAre("step_5", "latest"));
  EXPECT_EQ(load()->state.step, 5);
}

TEST_F(CheckpointTest, AFullDiskIsReportedAsSuch) {
  const fs::path disk = folder_.path() / "disk";
  fs::create_directories(disk);
  if (::mount("dsplan_test", disk.c_str(), "tmpfs", 0, "size=256k") != 0)
    GTEST_SKIP() << "mounting a small disk needs root";
  save(5, disk);
  std::string message;
  try {
    save(10, disk, 16384);
  } catch (const CheckpointError& error) {
    message = error.what();
  }
  const auto left = entries(disk);
  const auto loaded = load(disk);
  ::umount(disk.c_str());
  EXPECT_THAT(message, AllOf(HasSubstr("checkpoint of step 10 was not written"), HasSubstr("rank_00000"),
                             HasSubstr("No space left on device")));
  EXPECT_THAT(left, UnorderedElementsAre("step_5", "latest"));
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->state.step, 5);
}

TEST_F(CheckpointTest, KilledAtAnyMomentOfASaveTheLastWholeOneLoads) {
  for (int round = 0; round < 40; ++round) {
    const fs::path checkpoints = folder_.path() / std::to_string(round);
    save(1, checkpoints, 4096);
    const pid_t child = ::fork();
    if (child == 0) {
      for (std::int64_t step = 2;; ++step) save(step, checkpoints, 4096);
    }
    ::usleep(static_cast<useconds_t>(500 + round * 700));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const auto loaded = load(checkpoints, 4096);
    ASSERT_TRUE(loaded);
    EXPECT_THAT(loaded->passed_over, ElementsAre());
    for (const TensorPiece& piece : loaded_)
      ASSERT_TRUE(piece.data.equal(at::full({4096 * 4}, static_cast<double>(loaded->state.step))));
    // And the next save of a step that was under way when the process died works.
    save(loaded->state.step + 1, checkpoints, 4096);
    EXPECT_EQ(load(checkpoints, 4096)->state.step, loaded->state.step + 1);
  }
}

}  // namespace
}  // namespace runtime
