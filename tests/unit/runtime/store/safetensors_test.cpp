// Safetensors files: what is written comes back, and malformed files are refused with a reason.
#include "runtime/store/safetensors.hpp"

#include "runtime/core/rng.hpp"
#include "runtime/store/float_formats.hpp"
#include "runtime/store/limits.hpp"
#include "runtime/store/safetensors_header.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

namespace troupe::store {
namespace {

namespace fs = std::filesystem;

class Safetensors : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / (std::string("safetensors_") + info->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    path_ = folder_ / "a.safetensors";
  }
  void TearDown() override { fs::remove_all(folder_); }

  // A file of this header text and `data_bytes` zero bytes.
  void write_raw(const std::string& header, std::size_t data_bytes) {
    std::ofstream out(path_, std::ios::binary);
    const std::uint64_t length = header.size();
    out.write(reinterpret_cast<const char*>(&length), sizeof length);
    out << header << std::string(data_bytes, '\0');
  }
  std::string error_of_open() {
    const auto file = SafetensorsFile::open(path_);
    if (file) return "";
    EXPECT_EQ(file.error().code, core::ErrorCode::kData) << file.error().message;
    EXPECT_NE(file.error().message.find(path_.string()), std::string::npos);
    return file.error().message;
  }
  void expect_refused(const std::string& header, std::size_t data_bytes, const std::string& part) {
    write_raw(header, data_bytes);
    const std::string message = error_of_open();
    EXPECT_NE(message.find(part), std::string::npos) << "got: " << message;
  }

  fs::path folder_;
  fs::path path_;
};

std::string one(const std::string& entry) {
  return "{\"w\":" + entry + "}";
}

// Pieces that end within a number's tensor, at its end and beyond it, of more numbers than are
// rounded at a time.
TEST_F(Safetensors, PiecesMakeTheFileThatIsWrittenAtOnce) {
  std::vector<float> values(700'001);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = 1.0f / static_cast<float>(i + 1);
  std::vector<std::uint16_t> rounded(values.size());
  std::transform(values.begin(), values.end(), rounded.begin(), f32_to_bf16);
  const auto count = static_cast<std::int64_t>(values.size());
  for (const Dtype dtype : {Dtype::kF32, Dtype::kBf16}) {
    const void* const data =
        dtype == Dtype::kF32 ? static_cast<const void*>(values.data()) : rounded.data();
    const auto bytes = dtype_bytes(dtype);
    const std::vector<TensorSource> sources = {
        {"a", dtype, {10}, data},
        {"b", dtype, {count - 10}, static_cast<const char*>(data) + 10 * bytes}};
    const auto whole = write_safetensors(path_, sources, {{"format", "pt"}});
    ASSERT_TRUE(whole);
    const std::vector<TensorShape> shapes = {{"a", dtype, {10}}, {"b", dtype, {count - 10}}};
    auto writer = SafetensorsWriter::create(folder_ / "pieces", shapes, {{"format", "pt"}});
    ASSERT_TRUE(writer);
    std::int64_t done = 0;
    for (const std::int64_t piece : {std::int64_t{3}, std::int64_t{650'000}, count - 650'003}) {
      ASSERT_TRUE(writer->append_f32(values.data() + done, piece, dtype));
      done += piece;
    }
    const auto digest = writer->close();
    ASSERT_TRUE(digest);
    EXPECT_EQ(digest->sha256, whole->sha256);
    EXPECT_EQ(digest->bytes, fs::file_size(path_));
    EXPECT_EQ(sha256_file(folder_ / "pieces")->sha256, whole->sha256);
  }
}

TEST_F(Safetensors, RoundTripOfF32Bf16AndIntegers) {
  const float values[4] = {1.0f, -2.5f, 3.14159265f, 0.0f};
  const std::int64_t steps[1] = {41};
  std::uint16_t rounded[4];
  std::transform(values, values + 4, rounded, f32_to_bf16);
  const std::vector<TensorSource> sources = {
      {"f", Dtype::kF32, {2, 2}, values},
      {"b", Dtype::kBf16, {4}, rounded},
      {"i", Dtype::kI64, {}, steps},
      {"empty", Dtype::kF32, {0, 7}, values},
  };
  ASSERT_TRUE(write_safetensors(path_, sources, {{"format", "pt"}}));
  auto file = SafetensorsFile::open(path_);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->metadata().at("format"), "pt");
  float f[4], b[4];
  ASSERT_TRUE(file->read_f32(*file->find("f"), f));
  ASSERT_TRUE(file->read_f32(*file->find("b"), b));
  EXPECT_EQ(std::memcmp(f, values, sizeof f), 0);
  EXPECT_EQ(b[2], 3.140625f);
  EXPECT_EQ(file->find("f")->shape, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(file->find("i")->count, 1);
  EXPECT_EQ(std::memcmp(file->bytes(*file->find("i")).data(), steps, 8), 0);
  EXPECT_EQ(file->find("empty")->count, 0);
  EXPECT_EQ(file->find("missing"), nullptr);
}

TEST_F(Safetensors, RefusesToReadIntegersAsWeights) {
  const std::int64_t steps[1] = {41};
  ASSERT_TRUE(
      write_safetensors(path_, std::vector<TensorSource>{{"i", Dtype::kI64, {1}, steps}}, {}));
  auto file = SafetensorsFile::open(path_);
  ASSERT_TRUE(file);
  float out = 0;
  const auto read = file->read_f32(*file->find("i"), &out);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("tensor i is stored as I64"), std::string::npos);
}

TEST_F(Safetensors, MissingFileIsNotFound) {
  const auto file = SafetensorsFile::open(folder_ / "none.safetensors");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, core::ErrorCode::kNotFound);
}

TEST_F(Safetensors, RefusesAFolder) {
  fs::create_directory(path_);
  EXPECT_NE(error_of_open().find("not a regular file"), std::string::npos);
}

TEST_F(Safetensors, RefusesTruncatedFiles) {
  const float values[4] = {1, 2, 3, 4};
  ASSERT_TRUE(
      write_safetensors(path_, std::vector<TensorSource>{{"f", Dtype::kF32, {4}, values}}, {}));
  const auto size = fs::file_size(path_);
  for (std::uintmax_t keep = 0; keep < size; ++keep) {
    fs::resize_file(path_, keep);
    EXPECT_NE(error_of_open(), "") << keep;
    ASSERT_TRUE(
        write_safetensors(path_, std::vector<TensorSource>{{"f", Dtype::kF32, {4}, values}}, {}));
  }
}

TEST_F(Safetensors, RefusesBytesAfterTheLastTensor) {
  expect_refused(one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})"), 5,
                 "belong to no tensor");
}

TEST_F(Safetensors, RefusesHugeHeaderLengths) {
  for (const std::uint64_t length :
       {std::uint64_t{1} << 25, ~std::uint64_t{0}, ~std::uint64_t{0} - 7}) {
    std::ofstream out(path_, std::ios::binary);
    out.write(reinterpret_cast<const char*>(&length), sizeof length);
    out << "{}";
    out.close();
    EXPECT_NE(error_of_open().find("the limit is"), std::string::npos) << length;
  }
}

TEST_F(Safetensors, RefusesOverlapAndGap) {
  expect_refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
                     "b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                 12, "tensor b: overlaps");
  expect_refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},
                     "b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
                 12, "tensor b: leaves a gap");
  expect_refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},
                     "b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                 4, "overlaps");
}

TEST_F(Safetensors, RefusesWrongEntries) {
  expect_refused(one(R"({"dtype":"F33","shape":[1],"data_offsets":[0,4]})"), 4,
                 "unknown dtype `F33`");
  expect_refused(one(R"({"dtype":7,"shape":[1],"data_offsets":[0,4]})"), 4, "`dtype`");
  expect_refused(one(R"({"dtype":"F32","shape":[1]})"), 4, "needs `dtype`");
  expect_refused(one(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})"), 4, "dimension");
  expect_refused(one(R"({"dtype":"F32","shape":[1.5],"data_offsets":[0,4]})"), 4, "dimension");
  expect_refused(one(R"({"dtype":"F32","shape":4,"data_offsets":[0,4]})"), 4, "`shape`");
  expect_refused(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})"), 4, "needs 8 bytes");
  expect_refused(one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})"), 4, "end before");
  expect_refused(one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4,8]})"), 4, "pair");
  expect_refused(one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,-4]})"), 4, "pair");
  expect_refused(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})"), 4, "truncated");
  expect_refused(one("3"), 4, "not an object");
}

TEST_F(Safetensors, RefusesShapesThatOverflow) {
  expect_refused(one(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]})"), 0,
                 "overflows");
  expect_refused(one(R"({"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]})"), 0,
                 "overflows");
  expect_refused(one(R"({"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]})"), 4,
                 "dimension");
  expect_refused(one(R"({"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]})"), 4,
                 "9 dimensions");
}

TEST_F(Safetensors, RefusesHeadersThatAreNotAnObjectOfTensors) {
  expect_refused("[]", 0, "not a JSON object");
  expect_refused("{", 0, "not valid JSON");
  expect_refused("{} {}", 0, "not valid JSON");
  expect_refused(R"({"__metadata__":{"a":1}})", 0, "__metadata__");
  expect_refused(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},
                     "w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                 4, "has the name `w` twice");
  expect_refused(one(R"({"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]})"), 4,
                 "has the name `shape` twice");
  expect_refused(R"({"__metadata__":{"a":"1","a":"2"}})", 0, "has the name `a` twice");
  expect_refused(one(R"({"dtype":"F32","shape":[[[[1]]]],"data_offsets":[0,4]})"), 4, "dimension");
  expect_refused(std::string(100'000, '['), 0, "nested deeper");
}

TEST_F(Safetensors, RefusesWhatStandsBesideTheHeader) {
  const std::string good = one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})");
  expect_refused(good + std::string("\0{", 2), 4, "is a NUL");
  expect_refused(good + std::string(8, '\0'), 4, "is a NUL");
  expect_refused("\xEF\xBB\xBF" + good, 4, "byte order mark");
  expect_refused(good + "x", 4, "not valid JSON");
}

std::string entries(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += (i == 0 ? "{\"t" : ",\"t") + std::to_string(i) +
            R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  }
  return text;
}

// The header is not even closed: the limit holds while it is read, not behind it.
TEST(SafetensorsHeader, TheNumberOfTensorsIsBoundedWhileItIsRead) {
  const auto all = parse_safetensors_header(entries(limits::kSafetensorsTensors_max) + "}", 0);
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->tensors.size(), limits::kSafetensorsTensors_max);
  const auto more = parse_safetensors_header(entries(limits::kSafetensorsTensors_max + 2), 0);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().message, "its header has more than 50001 names in one object");
}

// Twenty thousand damaged copies of a good header: each is refused or describes the data it has.
TEST(SafetensorsHeader, DamageIsRefusedOrHarmless) {
  const std::vector<TensorInfo> tensors = {{"first", Dtype::kF32, {2, 2}, 4, 0, 16},
                                           {"second", Dtype::kBf16, {2}, 2, 16, 20}};
  const std::string good = format_safetensors_header(tensors, {{"format", "pt"}});
  constexpr std::string_view kAlphabet = "0123456789{}[],:\"-.eE F";
  core::Rng rng(11);
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = good;
    for (std::uint64_t n = rng.next_below(3) + 1; n > 0; --n) {
      const char c = rng.next_below(4) == 0 ? static_cast<char>(rng.next_below(256))
                                            : kAlphabet[rng.next_below(kAlphabet.size())];
      text[rng.next_below(text.size())] = c;
    }
    const auto header = parse_safetensors_header(text, 20);
    if (!header) continue;
    ++accepted;
    std::uint64_t covered = 0;
    for (const TensorInfo& tensor : header->tensors) {
      std::int64_t count = 0;
      std::uint64_t bytes = 0;
      ASSERT_TRUE(checked_size(tensor.shape, tensor.dtype, count, bytes));
      ASSERT_EQ(tensor.begin, covered);
      ASSERT_EQ(tensor.end, covered + bytes);
      ASSERT_EQ(tensor.count, count);
      covered = tensor.end;
    }
    ASSERT_EQ(covered, 20u);
  }
  EXPECT_GT(accepted, 0);  // damage in a name is no damage
}

TEST_F(Safetensors, AcceptsBlanksAfterTheHeader) {
  write_raw(one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})") + "     ", 4);
  EXPECT_TRUE(SafetensorsFile::open(path_));
}

TEST(FloatFormats, Bf16RoundsToNearestEven) {
  EXPECT_EQ(f32_to_bf16(1.0f), 0x3F80);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F808000u)), 0x3F80);  // tie: down to even
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F818000u)), 0x3F82);  // tie: up to even
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F808001u)), 0x3F81);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::infinity()), 0x7F80);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7F800001u)))));
}

TEST(FloatFormats, HalfIsReadExactly) {
  EXPECT_EQ(f16_to_f32(0x3C00), 1.0f);
  EXPECT_EQ(f16_to_f32(0xC000), -2.0f);
  EXPECT_EQ(f16_to_f32(0x7BFF), 65504.0f);
  EXPECT_EQ(f16_to_f32(0x0001), 0x1p-24f);
  EXPECT_EQ(f16_to_f32(0x03FF), 1023 * 0x1p-24f);
  EXPECT_TRUE(std::signbit(f16_to_f32(0x8000)));
  EXPECT_TRUE(std::isinf(f16_to_f32(0x7C00)));
  EXPECT_TRUE(std::isnan(f16_to_f32(0x7E00)));
}

}  // namespace
}  // namespace troupe::store
