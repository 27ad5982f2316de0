#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "runtime/data/data_error.h"
#include "runtime/data/default_data.h"
#include "runtime/data/indexed_source.h"
#include "runtime/data/text_source.h"
#include "runtime/data/training_data.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::int64_t> read(const TokenSource& source, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(count));
  source.read(first, tokens);
  return tokens;
}

std::string text(const TokenSource& source, std::int64_t first, std::int64_t count) {
  std::string result;
  for (const std::int64_t token : read(source, first, count)) result.push_back(static_cast<char>(token));
  return result;
}

TEST(TextSource, ReadsTheFilesOfAFolderInTheOrderOfTheirPathsWhateverTheSystemLists) {
  const tests::TemporaryFolder folder;
  folder.write("b.txt", "BB");
  folder.write("a/z.txt", "azaz");
  folder.write("c/empty.txt", "");
  folder.write("a/b/deep.h", "deep");
  folder.write("Z.txt", "Z");
  folder.write(".hidden", "no");
  folder.write(".git/config", "no");
  const auto source = TextSource::open(folder.path());
  ASSERT_TRUE(source) << source.diagnostics.render();
  EXPECT_EQ(text(**source, 0, (*source)->size()), "ZdeepazazBB");
}

TEST(TextSource, ReadsAnyRangeAcrossFiles) {
  const tests::TemporaryFolder folder;
  std::string all;
  for (int i = 0; i < 20; ++i) {
    const std::string content(static_cast<std::size_t>(1 + i % 4), static_cast<char>('a' + i));
    folder.write(std::string(1, static_cast<char>('a' + i)), content);
    all += content;
  }
  const auto source = TextSource::open(folder.path());
  ASSERT_TRUE(source);
  for (std::size_t first = 0; first < all.size(); ++first)
    for (std::size_t count = 0; first + count <= all.size(); ++count)
      ASSERT_EQ(text(**source, static_cast<std::int64_t>(first), static_cast<std::int64_t>(count)),
                all.substr(first, count));
}

TEST(TextSource, KeepsBytesAbove127Positive) {
  const tests::TemporaryFolder folder;
  const auto source = TextSource::open(folder.write("t", "\xff\x80"));
  ASSERT_TRUE(source);
  EXPECT_THAT(read(**source, 0, 2), ElementsAre(255, 128));
}

TEST(TextSource, StopsAtTheCap) {
  const tests::TemporaryFolder folder;
  folder.write("a", "12345");
  folder.write("b", "67890");
  folder.write("c", "never");
  const auto source = TextSource::open(folder.path(), 7);
  ASSERT_TRUE(source);
  EXPECT_EQ((*source)->size(), 7);
  EXPECT_EQ(text(**source, 0, 7), "1234567");
}

TEST(TextSource, ReportsAFileThatShrankUnderneath) {
  const tests::TemporaryFolder folder;
  const auto path = folder.write("t", "0123456789");
  const auto source = TextSource::open(path);
  ASSERT_TRUE(source);
  folder.write("t", "0123");
  EXPECT_THROW(read(**source, 0, 10), DataError);
}

TEST(TextSource, RefusesWhatIsMissingOrEmptyWithItsPath) {
  const tests::TemporaryFolder folder;
  const std::string missing = (folder.path() / "nowhere").native();
  EXPECT_THAT(TextSource::open(missing).diagnostics.render(),
              testing::AllOf(HasSubstr(missing), HasSubstr("no such file or folder")));
  EXPECT_THAT(TextSource::open(folder.path()).diagnostics.render(), HasSubstr("holds no text: 0 files"));
  EXPECT_THAT(TextSource::open(folder.write("empty", "")).diagnostics.render(),
              HasSubstr("is empty: 0 bytes"));
  EXPECT_THAT(TextSource::open("/dev/null").diagnostics.render(), HasSubstr("neither a file nor a folder"));
}

template <class Value>
std::string raw(const std::vector<Value>& values) {
  std::string bytes(values.size() * sizeof(Value), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// An index as the format describes it.
std::string index_of(std::uint8_t type, std::uint64_t version, const std::vector<std::int32_t>& lengths,
                     const std::vector<std::int64_t>& offsets, const std::vector<std::int64_t>& documents) {
  return std::string("MMIDIDX\0\0", 9) + raw<std::uint64_t>({version}) + raw<std::uint8_t>({type}) +
         raw<std::uint64_t>({lengths.size(), documents.size()}) + raw(lengths) + raw(offsets) +
         raw(documents);
}

TEST(IndexedSource, ReadsSequencesInTheOrderOfTheIndex) {
  const tests::TemporaryFolder folder;
  folder.write("d.bin", raw<std::uint16_t>({10, 11, 12, 60000, 21}));
  // The second sequence lies first in the file.
  folder.write("d.idx", index_of(8, 1, {2, 0, 3}, {6, 6, 0}, {0, 1, 3}));
  for (const char* name : {"d", "d.bin", "d.idx"}) {
    EXPECT_TRUE(IndexedSource::recognises(folder.path() / name));
    const auto source = IndexedSource::open(folder.path() / name, 65536);
    ASSERT_TRUE(source) << source.diagnostics.render();
    EXPECT_EQ((*source)->size(), 5);
    EXPECT_THAT(read(**source, 0, 5), ElementsAre(60000, 21, 10, 11, 12));
    EXPECT_THAT(read(**source, 1, 3), ElementsAre(21, 10, 11));
  }
}

TEST(IndexedSource, ReadsEveryIntegerType) {
  const tests::TemporaryFolder folder;
  const std::vector<std::pair<std::uint8_t, std::string>> stored{
      {1, raw<std::uint8_t>({3, 200})}, {2, raw<std::int8_t>({3, 100})},
      {3, raw<std::int16_t>({3, 300})}, {4, raw<std::int32_t>({3, 70000})},
      {5, raw<std::int64_t>({3, 5})},   {8, raw<std::uint16_t>({3, 65535})},
  };
  const std::vector<std::int64_t> second{200, 100, 300, 70000, 5, 65535};
  for (std::size_t i = 0; i < stored.size(); ++i) {
    folder.write("d.bin", stored[i].second);
    folder.write("d.idx", index_of(stored[i].first, 1, {2}, {0}, {0, 1}));
    const auto source = IndexedSource::open(folder.path() / "d", 100000);
    ASSERT_TRUE(source) << source.diagnostics.render();
    EXPECT_THAT(read(**source, 0, 2), ElementsAre(3, second[i]));
  }
}

TEST(IndexedSource, RefusesBrokenFilesWithTheNumbers) {
  const tests::TemporaryFolder folder;
  const auto error = [&](const std::string& tokens, const std::string& index) {
    folder.write("d.bin", tokens);
    folder.write("d.idx", index);
    const auto source = IndexedSource::open(folder.path() / "d", 256);
    EXPECT_FALSE(source);
    return source.diagnostics.render();
  };
  EXPECT_THAT(error("1234", "nonsense"), HasSubstr("does not begin with MMIDIDX"));
  EXPECT_THAT(error("1234", index_of(1, 2, {4}, {0}, {0, 1})), HasSubstr("version 2"));
  EXPECT_THAT(error("1234", index_of(7, 1, {1}, {0}, {0, 1})), HasSubstr("type code 7"));
  EXPECT_THAT(error("1234", index_of(1, 1, {5}, {0}, {0, 1})), HasSubstr("is 4 bytes long"));
  EXPECT_THAT(error("1234", index_of(1, 1, {4}, {-1}, {0, 1})), HasSubstr("from byte -1"));
  EXPECT_THAT(error("1234", index_of(1, 1, {-4}, {0}, {0, 1})), HasSubstr("-4 tokens"));
  EXPECT_THAT(error("1234", index_of(1, 1, {}, {}, {0})), HasSubstr("holds no tokens"));
  const std::string whole = index_of(1, 1, {4}, {0}, {0, 1});
  EXPECT_THAT(error("1234", whole.substr(0, whole.size() - 1)), HasSubstr("too short for the 1 sequences"));
  EXPECT_THAT(error("1234", std::string("MMIDIDX\0\0", 9) + raw<std::uint64_t>({1}) + std::string(1, '\1') +
                                raw<std::uint64_t>({~0ULL, ~0ULL})),
              HasSubstr("too short"));
  std::filesystem::remove(folder.path() / "d.bin");
  EXPECT_THAT(IndexedSource::open(folder.path() / "d", 256).diagnostics.render(), HasSubstr("d.bin"));
}

TEST(IndexedSource, NamesATokenOutsideOfTheVocabulary) {
  const tests::TemporaryFolder folder;
  folder.write("d.bin", raw<std::uint16_t>({1, 2, 512}));
  folder.write("d.idx", index_of(8, 1, {3}, {0}, {0, 1}));
  const auto source = IndexedSource::open(folder.path() / "d", 512);
  ASSERT_TRUE(source);
  EXPECT_THAT(read(**source, 0, 2), ElementsAre(1, 2));
  try {
    read(**source, 1, 2);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("token 2 is 512, outside of the model's vocabulary of 512"));
  }
}

specs::TrainingSpec training_of(std::int64_t batch, std::int64_t length, double held_back) {
  specs::TrainingSpec training;
  training.global_batch = batch;
  training.sequence_length = length;
  training.data.held_back_fraction = held_back;
  return training;
}

TEST(TrainingData, HoldsBackTheEndOfTheText) {
  const tests::TemporaryFolder folder;
  std::string content;
  for (int i = 0; i < 100; ++i) content.push_back(static_cast<char>(i));
  const auto data = open_data(folder.write("t", content), training_of(4, 10, 0.25), 256);
  ASSERT_TRUE(data) << data.diagnostics.render();
  EXPECT_EQ(data->training.tokens(), 75);
  EXPECT_EQ(data->training.sequences(), 7);
  EXPECT_EQ(data->held_back.first_token(), 75);
  EXPECT_EQ(data->held_back.sequences(), 2);
  std::vector<std::int64_t> last(11), held(11);
  data->training.read(6, last);
  data->held_back.read(0, held);
  EXPECT_EQ(last.front(), 60);
  EXPECT_EQ(last.back(), 70);
  EXPECT_EQ(held.front(), 75);
  EXPECT_NEAR(data->held_back_entropy(), std::log(25.0), 1e-12);
}

TEST(TrainingData, EntropyIsThatOfTheHeldBackFrequencies) {
  const tests::TemporaryFolder folder;
  const auto data =
      open_data(folder.write("t", std::string(90, 'x') + "aaaaabbbcc"), training_of(1, 4, 0.1), 256);
  ASSERT_TRUE(data);
  const double expected = -(0.5 * std::log(0.5) + 0.3 * std::log(0.3) + 0.2 * std::log(0.2));
  EXPECT_NEAR(data->held_back_entropy(), expected, 1e-12);
}

TEST(TrainingData, HoldsNothingBackAtFractionZero) {
  const tests::TemporaryFolder folder;
  const auto data = open_data(folder.write("t", std::string(21, 'x')), training_of(2, 10, 0), 256);
  ASSERT_TRUE(data);
  EXPECT_EQ(data->training.sequences(), 2);
  EXPECT_EQ(data->held_back.sequences(), 0);
  EXPECT_EQ(data->held_back_entropy(), 0);
}

TEST(TrainingData, RefusesTooLittleTextWithTheNumbers) {
  const tests::TemporaryFolder folder;
  const auto data = open_data(folder.write("t", std::string(100, 'x')), training_of(8, 16, 0.2), 256);
  ASSERT_FALSE(data);
  EXPECT_THAT(
      data.diagnostics.render(),
      testing::AllOf(HasSubstr("100 tokens, of which 20 are held back"), HasSubstr("80 give 4 sequences"),
                     HasSubstr("global batch is 8 sequences (129 tokens")));
  EXPECT_EQ(data.diagnostics.entries().size(), 1);
}

TEST(TrainingData, RefusesTextForAVocabularyWithoutAllBytes) {
  const tests::TemporaryFolder folder;
  const auto data = open_data(folder.write("t", std::string(100, 'x')), training_of(1, 4, 0.2), 128);
  ASSERT_FALSE(data);
  EXPECT_THAT(data.diagnostics.render(), HasSubstr("vocabulary is 128"));
}

TEST(DefaultData, IsTheHeadersOfTheLibTorchInUse) {
  const auto path = default_data();
  ASSERT_TRUE(path);
  EXPECT_TRUE(std::filesystem::exists(*path / "ATen/core/Tensor.h")) << *path;
  const auto data = open_data(*path, training_of(8, 128, 0.05), 256);
  ASSERT_TRUE(data) << data.diagnostics.render();
  EXPECT_GT(data->training.tokens(), 10'000'000);
  EXPECT_GT(data->held_back_entropy(), 2.5);
  EXPECT_LT(data->held_back_entropy(), std::log(256.0));
}

}  // namespace
}  // namespace runtime
