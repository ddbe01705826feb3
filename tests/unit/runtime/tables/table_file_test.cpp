// The library for tables behind its C header: small files that pyarrow wrote (tests/data/tables),
// and what damaged ones are told.
#include "runtime/tables/table_file.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace troupe::tables {
namespace {

namespace fs = std::filesystem;

fs::path sample(const std::string& name) {
  const char* const source = std::getenv("TROUPE_SOURCE_DIR");
  return fs::path(source == nullptr ? "." : source) / "tests/data/tables" / name;
}

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Tables : public testing::Test {
 protected:
  Tables() { fs::create_directories(folder_); }
  ~Tables() override { fs::remove_all(folder_); }

  fs::path file(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }

  // All lines of a table, or the message of its error without the folder.
  std::string lines(const fs::path& path, TableKind kind) {
    auto table = TableFile::open(path, kind);
    if (!table) return told(table.error());
    std::string out;
    for (std::uint64_t rows = 0;;) {
      auto batch = table->next();
      if (!batch) return out + told(batch.error());
      if (batch->rows == 0) return out;
      EXPECT_EQ(batch->first, rows + 1);
      rows += batch->rows;
      out += batch->lines;
    }
  }
  std::string told(const core::Error& error) {
    const std::string message = error.message;
    const auto slash = message.find_last_of('/', message.find(": "));
    return slash == message.npos ? message : message.substr(slash + 1);
  }

  const fs::path folder_ = fs::temp_directory_path() / ("tables" + std::to_string(::getpid()));
};

TEST_F(Tables, RowsOfEachFormatAreTheSameLines) {
  const std::string expected = bytes_of(sample("rows.jsonl"));
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(lines(sample("rows.parquet"), TableKind::kParquet), expected);
  EXPECT_EQ(lines(sample("rows.feather"), TableKind::kArrowFile), expected);
  EXPECT_EQ(lines(sample("rows.arrow"), TableKind::kArrowStream), expected);
}

TEST_F(Tables, AFileDescribesItself) {
  const auto table = TableFile::open(sample("rows.parquet"), TableKind::kParquet);
  ASSERT_TRUE(table) << table.error().message;
  const auto info = table->info();
  ASSERT_TRUE(info);
  EXPECT_EQ(info->rows, 3u);
  EXPECT_EQ(info->groups, 2u);
  EXPECT_EQ(info->columns_json.find(R"([{"name":"input","type":"Utf8"},)"), 0u)
      << info->columns_json;
  const auto stream = TableFile::open(sample("rows.arrow"), TableKind::kArrowStream);
  ASSERT_TRUE(stream);
  EXPECT_EQ(stream->info()->rows, std::nullopt);
}

TEST_F(Tables, ABadValueIsNamedBehindTheRowsBeforeIt) {
  EXPECT_EQ(lines(sample("nan.parquet"), TableKind::kParquet),
            "{\"a\":1.0}\n{\"a\":2.0}\nnan.parquet:3: column 'a': NaN has no place in JSON");
}

TEST_F(Tables, CutAndForeignFilesAreNamed) {
  const std::string parquet = bytes_of(sample("rows.parquet"));
  const auto cut = file("cut.parquet", parquet.substr(0, parquet.size() - 10));
  EXPECT_EQ(lines(cut, TableKind::kParquet),
            "cut.parquet: no whole Parquet file: it does not end with its mark; was it cut?");
  EXPECT_EQ(lines(file("short.parquet", "PAR1"), TableKind::kParquet),
            "short.parquet: no Parquet file: it is too short");
  std::string lying = parquet;
  lying.replace(lying.size() - 8, 4, "\xFF\xFF\xFF\x7F");
  EXPECT_EQ(lines(file("lying.parquet", lying), TableKind::kParquet),
            "lying.parquet: damaged: the footer is longer than the file");
  const std::string feather = bytes_of(sample("rows.feather"));
  EXPECT_EQ(lines(file("cut.feather", feather.substr(0, 200)), TableKind::kArrowFile),
            "cut.feather: no whole Arrow file: it does not end with its mark; was it cut?");
  const std::string arrow = bytes_of(sample("rows.arrow"));
  EXPECT_NE(lines(file("cut.arrow", arrow.substr(0, arrow.size() - 100)), TableKind::kArrowStream)
                .find("cut.arrow: damaged, or cut: a part lies outside the file"),
            std::string::npos);
  const auto missing = TableFile::open(folder_ / "none", TableKind::kParquet);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, core::ErrorCode::kNotFound);
}

// Any bit that is flipped gives the same rows, other rows or a named error, never a crash.
TEST_F(Tables, FlippedBitsNeverCrash) {
  const struct {
    const char* name;
    TableKind kind;
  } all[] = {{"rows.parquet", TableKind::kParquet},
             {"rows.feather", TableKind::kArrowFile},
             {"rows.arrow", TableKind::kArrowStream}};
  for (const auto& one : all) {
    const std::string whole = bytes_of(sample(one.name));
    int refused = 0;
    for (std::size_t at = 0; at < whole.size(); at += 11) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << (at % 8)));
      const std::string out = lines(file(one.name, bytes), one.kind);
      refused += out.find(std::string(one.name) + ":") == out.npos ? 0 : 1;
    }
    EXPECT_GT(refused, static_cast<int>(whole.size() / 110)) << one.name;
  }
}

TEST_F(Tables, PackedFilesAreUnpackedAndCutOnesNamed) {
  const std::string expected = bytes_of(sample("rows.jsonl"));
  const auto unpacked = [&](const fs::path& path, PackedKind kind) -> std::string {
    auto packed = PackedFile::open(path, kind);
    if (!packed) return told(packed.error());
    std::string out;
    for (char part[7];;) {
      const auto got = packed->read(part, sizeof part);
      if (!got) return told(got.error());
      if (*got == 0) return out;
      out.append(part, *got);
    }
  };
  const std::string gz = bytes_of(sample("rows.jsonl.gz"));
  const std::string zst = bytes_of(sample("rows.jsonl.zst"));
  EXPECT_EQ(unpacked(sample("rows.jsonl.gz"), PackedKind::kGzip), expected);
  EXPECT_EQ(unpacked(sample("rows.jsonl.zst"), PackedKind::kZstd), expected);
  EXPECT_EQ(unpacked(file("two.gz", gz + gz), PackedKind::kGzip), expected + expected);
  EXPECT_EQ(unpacked(file("two.zst", zst + zst), PackedKind::kZstd), expected + expected);
  EXPECT_EQ(unpacked(file("cut.gz", gz.substr(0, gz.size() - 12)), PackedKind::kGzip),
            "cut.gz: the gzip data end too early; was the file cut?");
  EXPECT_EQ(unpacked(file("cut.zst", zst.substr(0, zst.size() - 5)), PackedKind::kZstd)
                .find("cut.zst: the zstd data"),
            0u);
}

}  // namespace
}  // namespace troupe::tables
