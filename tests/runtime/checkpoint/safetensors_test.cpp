#include "runtime/checkpoint/safetensors.h"

#include <cstring>
#include <fstream>
#include <iterator>

#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>
#include <gmock/gmock.h>

#include "runtime/checkpoint/checkpoint_error.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

using testing::HasSubstr;

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string framed(std::string header, const std::string& data) {
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

std::string error_of(const std::filesystem::path& path) {
  try {
    const SafetensorsFile file(path);
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Safetensors, WritesTheBytesThatTheFormatDescribes) {
  const tests::TemporaryFolder folder;
  const auto path = folder.path() / "t";
  const auto tensor = at::arange(6, at::kFloat);
  write_safetensors(path, {{"a", {2, 3}, tensor}}, {{"format", "pt"}});
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})";
  const std::string bytes = content(path);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0);
  EXPECT_EQ(bytes.size(), 8 + length + 24);
  EXPECT_EQ(bytes.substr(8, header.size()), header);
  EXPECT_EQ(bytes.find_first_not_of(' ', 8 + header.size()), 8 + length);
  EXPECT_EQ(std::memcmp(bytes.data() + 8 + length, tensor.const_data_ptr(), 24), 0);
}

TEST(Safetensors, ReadsBackEveryTypeItWrites) {
  const tests::TemporaryFolder folder;
  const auto path = folder.path() / "t";
  std::vector<NamedTensor> tensors;
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kLong, at::kByte})
    tensors.push_back({dtype_name(type), {7}, at::arange(7, at::kLong).to(type)});
  const auto written = write_safetensors(path, tensors, {});
  const SafetensorsFile file(path);
  ASSERT_EQ(file.tensors().size(), tensors.size());
  const InputFile raw(path);
  for (const NamedTensor& tensor : tensors) {
    const StoredTensor& stored = file.tensors().at(tensor.name);
    EXPECT_EQ(stored.dtype, tensor.name);
    EXPECT_EQ(stored.begin, written.at(tensor.name).begin);
    const at::Tensor read = at::empty_like(tensor.data);
    file.read(stored.begin, read.mutable_data_ptr(), read.nbytes());
    EXPECT_TRUE(read.equal(tensor.data));
    EXPECT_EQ(crc32_of(raw, stored.begin, stored.end), written.at(tensor.name).crc32);
  }
}

TEST(Safetensors, ReadsAFileOfAnotherWriter) {
  const tests::TemporaryFolder folder;
  const auto path = folder.write(
      "t", framed(R"({"w":{"data_offsets":[4,8],"shape":[],"dtype":"I32"},"b":{"dtype":"U8","shape":[4],)"
                  R"("data_offsets":[0,4]}})",
                  std::string("abcd\x05\0\0\0", 8)));
  const SafetensorsFile file(path);
  std::int32_t value = 0;
  file.read(file.tensors().at("w").begin, &value, 4);
  EXPECT_EQ(value, 5);
}

TEST(Safetensors, RefusesBrokenFiles) {
  const tests::TemporaryFolder folder;
  const auto broken = [&](const std::string& bytes) { return error_of(folder.write("t", bytes)); };
  EXPECT_THAT(broken("1234"), HasSubstr("shorter than 8 bytes"));
  EXPECT_THAT(broken(std::string(16, '\xff')), HasSubstr("announces a header"));
  EXPECT_THAT(broken(framed("{nonsense}", "")), HasSubstr("no JSON"));
  EXPECT_THAT(broken(framed("[1,2]", "")), HasSubstr("no JSON"));
  const auto entry = [&](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return broken(framed(
        R"({"w":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}",
        "12345678"));
  };
  EXPECT_THAT(entry("Q3", "[2]", "[0,8]"), HasSubstr("unknown type Q3"));
  EXPECT_THAT(entry("F32", "[2]", "[0,9]"), HasSubstr("bytes 0 to 9 of 8"));
  EXPECT_THAT(entry("F32", "[3]", "[0,12]"), HasSubstr("bytes 0 to 12 of 8"));
  EXPECT_THAT(entry("F32", "[2]", "[8,0]"), HasSubstr("bytes 8 to 0 of 8"));
  EXPECT_THAT(entry("F32", "[-2]", "[0,8]"), HasSubstr("impossible shape"));
  EXPECT_THAT(entry("F32", "[4611686018427387904,4611686018427387904]", "[0,8]"),
              HasSubstr("impossible shape"));
  EXPECT_EQ(entry("F32", "[2]", "[0,8]"), "no error");
  EXPECT_THAT(error_of(folder.path() / "missing"), HasSubstr("cannot open: No such file"));
}

}  // namespace
}  // namespace runtime
